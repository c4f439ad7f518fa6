"""A layer whose heads are spread over several processes, against the same layer whole."""

import copy
import itertools
import os
import socket
import time
from datetime import timedelta

import torch
import torch._dynamo  # which torch would load in every process, at the first call
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.utils._python_dispatch import TorchDispatchMode

import mha

B, L, S, H, D_K, KDIM, VDIM = 3, 5, 7, 4, 2, 11, 13
D_MODEL = H * D_K
PLAN = dict.fromkeys(("q_proj", "k_proj", "v_proj"), ColwiseParallel)
PLAN |= {"out_proj": RowwiseParallel}
MASKS = "none", "causal", "allow", "per sample", "per head", "padding", "bias", "no keys", "nan"
CASES = [  # NaN in padding would also stand in the queries of self-attention
    *itertools.product(("self", "cross"), MASKS[:-1], (True,), (True, False)),
    *itertools.product(("cross",), ("none", "nan"), (True, False), (True, False)),
]


def problem(inputs, mask, bias):
    """A layer, its inputs, the masks that are the same everywhere, and those to be cut by head."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    n, kdim, vdim = (L, D_MODEL, D_MODEL) if inputs == "self" else (S, KDIM, VDIM)
    layer = mha.MultiHeadAttention(D_MODEL, H, kdim=kdim, vdim=vdim, bias=bias, dtype=torch.float64)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(normal(*p.shape) / 4)
    xs = [normal(B, L, D_MODEL), normal(B, n, kdim), normal(B, n, vdim)]
    xs = xs[:1] if inputs == "self" else xs
    causal = {"causal": "lower_right"}
    keep = torch.arange(n) >= torch.tensor([[1], [0], [n]])  # (B, n): padding on the left
    heads = normal(B, H, L, n) > 0.8  # many a head sees nothing of a key that another one sees
    if mask == "nan":
        xs[1:] = [x.masked_fill(~keep[..., None], torch.nan) for x in xs[1:]]
    same = {
        "causal": causal,
        "allow": {"allow": normal(L, n) > -0.5},
        "per sample": {"allow": normal(B, L, n) > -0.5},
        "padding": {"key_allow": keep},
        "no keys": {"key_allow": keep, **causal},
        "nan": {"key_allow": keep},
    }.get(mask, {})
    cut = {"per head": {"allow": heads}, "bias": {"score_bias": normal(B, H, L, n)}}.get(mask, {})
    return layer, xs, same, cut


class Traffic(TorchDispatchMode):
    """The bytes of each tensor that this process gives away to be added up."""

    def __init__(self):
        super().__init__()
        self.sent = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        """Take down the sums over processes, and run everything."""
        if DTensor in types:
            return NotImplemented
        if op.name() == "_c10d_functional::all_reduce":
            self.sent.append(args[0].nbytes)
        return op(*args, **(kwargs or {}))


def step(layer, xs, masks, need_weights):
    """Results by name, and what travelled: forward, backward."""
    leaves = [x.clone().requires_grad_() for x in xs]
    with Traffic() as forward:
        output, weights = layer(*leaves, **masks, need_weights=need_weights)
    names = ["query", "key", "value"][: len(leaves)] + [n for n, _ in layer.named_parameters()]
    parts = [output] if weights is None else [output, weights]
    generator = torch.Generator().manual_seed(1)
    loss = torch.randn(output.shape, generator=generator, dtype=torch.float64)
    with Traffic() as backward:
        found = torch.autograd.grad(output, [*leaves, *layer.parameters()], loss)
    results = dict(zip(["output", "weights"], parts, strict=False))
    return results | dict(zip(names, found, strict=True)), forward.sent, backward.sent


def spread(layer, mesh):
    """Give this process its share of a copy of the layer."""
    plan = {name: style() for name, style in PLAN.items()}
    return parallelize_module(copy.deepcopy(layer), mesh, plan)


def compare(rank, n, mesh, shards, inputs, mask, bias, need_weights):
    """One case on one process: errors by name, bytes sent, shapes of the shards, torch's count."""
    layer, xs, same, cut = problem(inputs, mask, bias)
    expected, *_ = step(layer, xs, same | cut, need_weights)
    if (inputs, bias) not in shards:  # the layer is the same for every mask
        shards[inputs, bias] = spread(layer, mesh)
    shard = shards[inputs, bias]
    own = slice(rank * H // n, (rank + 1) * H // n)
    masks = same | {name: table[:, own] for name, table in cut.items()}
    found, *sent = step(shard, xs, masks, need_weights)
    if need_weights:
        expected["weights"] = expected["weights"][:, own]
    errors = {}
    for name, part in found.items():
        whole = part.full_tensor() if isinstance(part, DTensor) else part
        errors[name] = (whole - expected[name]).abs().max().item()
    shapes = {name: tuple(p.to_local().shape) for name, p in shard.named_parameters()}
    with torch.no_grad(), CommDebugMode() as counter:
        shard(*xs, **masks, need_weights=need_weights)
    return errors, sent, shapes, counter.get_total_counts()


def refused(rank, n, mesh):
    """What a shard says to a mask of all heads, and to projections cut inside of heads."""
    layer, xs, _, cut = problem("self", "per head", True)
    wide = mha.MultiHeadAttention(D_MODEL, 1, dtype=torch.float64)
    messages = []
    for shard, masks in ((spread(layer, mesh), cut), (spread(wide, mesh), {})):
        try:
            shard(*xs, **masks)
        except Exception as error:
            messages.append(f"{type(error).__name__}: {error}")
    return messages


def work(rank, n, folder):
    """Every case on one of n processes; the results go to a file."""
    os.environ["GLOO_SOCKET_IFNAME"] = socket.if_nameindex()[0][1]  # loopback
    torch.set_num_threads(1)
    meeting, limit = f"file://{folder}/meeting", timedelta(seconds=60)
    dist.init_process_group("gloo", meeting, rank=rank, world_size=n, timeout=limit)
    mesh = dist.init_device_mesh("cpu", (n,))
    shards: dict = {}
    results = {case: compare(rank, n, mesh, shards, *case) for case in CASES}
    results["refused"] = refused(rank, n, mesh)
    torch.save(results, f"{folder}/{rank}")
    dist.destroy_process_group()


def hang(rank, n, folder):
    """A process that does not come to an end."""
    time.sleep(600)


def fail(rank, n, folder):
    """One that fails, while another one waits for it."""
    if rank == 1:
        raise ValueError(f"{rank} of {n} fails")
    time.sleep(600)
