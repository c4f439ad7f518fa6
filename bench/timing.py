"""Two ways of the same work, taken in turns: on a busy machine only their ratio counts."""

import ctypes
import gc
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/measured.json"


def in_turns(ours: Callable, other: Callable, seconds: float = 4.0, rounds: int = 9) -> dict:
    """Median seconds of both, and the median of their ratio over all rounds."""
    number = [_number(way, seconds / rounds / 2) for way in (ours, other)]
    pairs = [(_time(ours, number[0]), _time(other, number[1])) for _ in range(rounds)]
    return {
        "ours": statistics.median(pair[0] for pair in pairs),
        "other": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(pair[0] / pair[1] for pair in pairs),
    }


def _number(way: Callable, seconds: float) -> int:
    """How often this has to run to take about so long; the first run is not counted."""
    way()
    return max(1, round(seconds / max(_time(way, 1), 1e-7)))


def _time(way: Callable, number: int) -> float:
    """Seconds that one run takes."""
    gc.collect()
    start = time.perf_counter()
    for _ in range(number):
        way()
    return (time.perf_counter() - start) / number


def exponent(sizes: Sequence[int], amounts: Sequence[float]) -> float:
    """The p of amount ~ size**p, between the smallest and the largest size."""
    return math.log(amounts[-1] / amounts[0]) / math.log(sizes[-1] / sizes[0])


def peak_of(step: Callable) -> int:
    """Bytes that a step holds at its peak beyond what was there before (Linux only)."""
    ctypes.CDLL(None).mallopt(-3, 1 << 16)  # glibc: what is freed goes back to the system
    step()  # what is needed only once is there afterwards
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _bytes("VmRSS")
    step()
    return _bytes("VmHWM") - before


def _bytes(name: str) -> int:
    return int(re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024


def record(part: str, rows: list[dict]) -> None:
    """Write one part of the results, with when and where it was measured."""
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results[part] = {"where": where(), "rows": rows}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", "utf-8")


def where() -> dict:
    """The date, the machine, and what it runs."""
    import numpy
    import torch

    sys.path.insert(0, str(ROOT / "docs/hooks"))
    from stamp import stamp

    blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        **vars(stamp()),
        "date": datetime.now(UTC).date().isoformat(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "blas": f"{blas['name']} {blas['version']}",
        "load": round(os.getloadavg()[0], 1),
    }


def cpu_and_wall(*command: str, cwd: Path = ROOT, **environment: str) -> tuple[float, float]:
    """Seconds of processor, children included, and of the clock that a command takes."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    wall, after = time.perf_counter() - start, os.times()
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system, wall
