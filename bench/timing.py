"""Ways of the same work, taken in turns: on a busy machine only their ratio counts."""

import ctypes
import gc
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/measured.json"
sys.path[:0] = [str(ROOT), str(ROOT / "docs/hooks")]  # this mha, and what says where it runs

from stamp import stamp  # noqa: E402

BEGUN = vars(stamp())  # the commit as it is before results are written
ROUNDS = int(os.environ.get("ROUNDS") or 7)  # fewer, where the machine is slow or busy
SECONDS, BYTES = {"unit": "s"}, {"unit": "B"}  # a part of a row


def in_turns(ways: Mapping[str, Callable[[], float]], most: int = ROUNDS) -> dict:
    """Let each way measure itself, A B C A B C …; the amounts of each, in order."""
    amounts: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(min(most, ROUNDS)):
        for name, way in ways.items():
            amounts[name].append(way())
    return amounts


def compare(amounts: Mapping[str, Sequence[float]], limits: Mapping, **named) -> Iterable[dict]:
    """A row for each way beside ours: both medians, and the median of the ratios in each round."""
    for name, limit in limits.items():
        ratios = [a / b for a, b in zip(amounts["ours"], amounts[name], strict=True)]
        yield {
            "against": name,
            **named,
            "ours": statistics.median(amounts["ours"]),
            "other": statistics.median(amounts[name]),
            "ratio": statistics.median(ratios),
            "limit": limit,
        }


def timed(way: Callable[[], object], at_least: float = 0.1) -> Callable[[], float]:
    """Something that gives the seconds of one run, by running as often as it takes to tell."""
    way()  # what is done only once is done
    number = max(1, round(at_least / max(_seconds(way, 1), 1e-7)))
    return lambda: _seconds(way, number)


def _seconds(way: Callable[[], object], number: int) -> float:
    gc.collect()
    start = time.perf_counter()
    for _ in range(number):
        way()
    return (time.perf_counter() - start) / number


def exponent(sizes: Sequence[int], amounts: Sequence[float]) -> float:
    """The p of amount ~ size**p: the slope of the line through their logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(amounts), 1)[0])


def peak_of(step: Callable[[], object]) -> int:
    """Bytes that a step holds at its peak beyond what was there before (Linux only).

    For a process of its own: what it asks of the C library makes everything slower.
    """
    libc = ctypes.CDLL(None)
    libc.mallopt(-3, 1 << 16)  # what is freed goes back to the system at once
    step()  # what is needed only once is there afterwards
    gc.collect()
    libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS")
    step()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    return int(re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024


def cpu_and_wall(*commands: Sequence[str], **environment: str) -> tuple[float, float]:
    """Seconds of processor, children included, and of the clock that commands take side by side."""
    before, start = os.times(), time.perf_counter()
    running = [_start(command, environment) for command in commands]
    outputs = [process.communicate()[0] for process in running]
    wall, after = time.perf_counter() - start, os.times()
    for process, output in zip(running, outputs, strict=True):
        if process.returncode:
            raise RuntimeError(f"{process.args} ended with {process.returncode}:\n{output}")
    cpu = after.children_user + after.children_system
    return cpu - before.children_user - before.children_system, wall


def peak_of_tree(command: Sequence[str]) -> int:
    """Bytes that a command and its children hold at their peak; what they share counts once."""
    process, peak = _start(command, {}), 0
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        peak = max(peak, sum(map(_held, [watched, *watched.children(recursive=True)])))
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}:\n{process.stdout.read()}")
    return peak


def _held(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:  # it has just ended
        return 0


def _start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, "PAGE_SECONDS": "600", **environment},  # however busy the machine is
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def record(part: Callable[[], Iterable[dict]]) -> None:
    """Measure one part, print its rows as they come, and write them down."""
    found = {"where": where(), "rows": []}
    print(f"\n{part.__name__}: {part.__doc__.partition(chr(10))[0]}", flush=True)
    for row in part():
        print(*(f"{x:.4g}" if isinstance(x, float) else x for x in row.values()), flush=True)
        found["rows"].append(row)
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results[part.__name__] = found
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


def where() -> dict:
    """The date, the machine, what it runs and what else it has to do."""
    import torch

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    mkl = torch.backends.mkl.is_available()
    return {
        **BEGUN,
        "date": datetime.now(UTC).date().isoformat(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "rounds": ROUNDS,
        "blas": f"NumPy: {blas['name']} {blas['version']}; PyTorch: {'MKL' if mkl else 'no MKL'}",
        "load": round(os.getloadavg()[0], 1),
    }
