"""The heads of a layer on several processes, by PyTorch's own tensor parallelism."""

import multiprocessing
import time
from math import prod

import mha_shards
import pytest
import torch
from mha_shards import CASES, D_K, D_MODEL, KDIM, VDIM, B, H, L
from torch.multiprocessing import start_processes

PROCESSES = 1, 2, 4
SECONDS = 240
# Forked from a process that has imported torch and done nothing else: quick, and no lock is held.
IMPORTS = ["torch._dynamo", "torch.distributed.tensor.parallel", "torch.distributed.tensor.debug"]
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def run(work, n, folder, seconds=SECONDS):
    """What each of n processes found; a failure instead of a test that never ends."""
    if METHOD == "forkserver":
        multiprocessing.get_context(METHOD).set_forkserver_preload(IMPORTS)
    running = start_processes(work, (n, folder), n, join=False, start_method=METHOD)
    end = time.monotonic() + seconds
    try:
        while not running.join(timeout=1):
            assert time.monotonic() < end, f"{n} processes: not done after {seconds} s"
    finally:
        for process in running.processes:
            process.kill()
    return [torch.load(folder / str(rank)) for rank in range(n)]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """By number of processes: what each of them found."""
    return {n: run(mha_shards.work, n, tmp_path_factory.mktemp(f"on-{n}")) for n in PROCESSES}


@pytest.mark.parametrize("n", PROCESSES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_process_finds_what_the_whole_layer_finds(results, n, case):
    inputs, _, bias, need_weights = case
    for errors, _, shapes, _ in (found[case] for found in results[n]):
        assert max(errors.values()) < 1e-12, errors
        assert len(errors) == 1 + need_weights + (1 if inputs == "self" else 3) + 4 * (1 + bias)
        rows = H // n * D_K
        kdim, vdim = (D_MODEL, D_MODEL) if inputs == "self" else (KDIM, VDIM)
        assert {k: s for k, s in shapes.items() if k.endswith("weight")} == {
            "q_proj.weight": (rows, D_MODEL),
            "k_proj.weight": (rows, kdim),
            "v_proj.weight": (rows, vdim),
            "out_proj.weight": (D_MODEL, rows),
        }


@pytest.mark.parametrize("n", PROCESSES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_travels_is_the_output_and_the_gradients_of_the_inputs(results, n, case):
    inputs, many = case[0], n > 1
    keys = L if inputs == "self" else mha_shards.S
    widths = [(L, D_MODEL), (keys, D_MODEL if inputs == "self" else KDIM)]
    widths += [(keys, D_MODEL if inputs == "self" else VDIM)]
    for _, (forward, backward), _, counted in (found[case] for found in results[n]):
        assert forward == [8 * B * L * D_MODEL] * many  # float64
        assert sorted(backward) == sorted(8 * B * prod(size) for size in widths) * many
        assert counted == many  # PyTorch's own counter, forward


def test_masks_of_all_heads_and_cut_heads_are_refused(results):
    for n in PROCESSES[1:]:
        for found in results[n]:
            mask, cut = found["refused"]
            assert f"ValueError: allow must have shape ({L}, {L})" in mask
            assert f"({B}, {H // n}, {L}, {L}) (1 stands for any size), got ({B}, {H}," in mask
            width = D_MODEL // n
            assert f"ValueError: expected whole heads of d_k={D_MODEL}, got {width} col" in cut


def test_processes_that_hang_or_fail_neither_hang_nor_pass_here(tmp_path):
    with pytest.raises(AssertionError, match="2 processes: not done after 0 s"):
        run(mha_shards.hang, 2, tmp_path, seconds=0)
    with pytest.raises(Exception, match="ValueError: 1 of 2 fails"):
        run(mha_shards.fail, 2, tmp_path)
