"""How fast `mha` is and how much memory it takes, beside the simplest that does the same work.

The floor is four Linear layers around torch's own scaled_dot_product_attention, without a check.
In every comparison all ways run in this one process, in turns, on the same input, in float32 (NumPy
also in float64), with the threads that torch and the BLAS of NumPy take by themselves.
"""

import contextlib
import io
import runpy
import sys
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import torch
from timing import BYTES, ROOT, SECONDS, compare, cpu_and_wall, exponent, in_turns, peak_of, timed
from torch.profiler import ProfilerActivity, profile

import mha

SIZES = (8, 128, 256, 8), (1, 1024, 512, 8), (1, 4096, 512, 8)  # (B, T, d_model, H)
LENGTHS = 512, 1024, 2048, 4096, 8192
TORCH_FITS = 4096  # the longest for which torch's own layer gets by without gigabytes


class Floor(torch.nn.Module):
    """Projections around scaled_dot_product_attention."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (torch.nn.Linear(d_model, d_model) for _ in range(4))
        self.num_heads = num_heads

    def forward(self, x, causal=False):
        q, k, v = (
            projection(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for projection in (self.q, self.k, self.v)
        )
        z = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.o(z.transpose(1, 2).flatten(2))


def layers(size: tuple[int, ...]):
    """The layer, torch's own with the same weights, the floor, and an input."""
    B, T, d_model, H = size
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(d_model, H, batch_first=True)
    x = torch.randn(B, T, d_model)
    return mha.MultiHeadAttention.from_torch(theirs), theirs, Floor(d_model, H), x


def forward(way, x) -> None:
    """Only the output."""
    with torch.no_grad():
        way(x)


def backward(way, x) -> None:
    """The output, and the gradients of the input and of every parameter."""
    way(x.detach().requires_grad_()).sum().backward()


STEPS = {"forward": forward, "forward + backward": backward}


def turns(step, x, ways: dict) -> dict:
    """Seconds of one step of each way."""
    return in_turns({name: timed(partial(step, way, x)) for name, way in ways.items()})


def without_weights(size, causal: bool) -> dict:
    """Every way to the output alone; torch in eval mode, its fast one, only without gradients.

    torch gets the causal mask in the form that is fastest for it: float, with `is_causal`.
    """
    ours, theirs, floor, _ = layers(size)
    triangle = torch.nn.Transformer.generate_square_subsequent_mask(size[1])
    mask = {"attn_mask": triangle, "is_causal": True} if causal else {}

    def torch_in(training: bool, x):
        return theirs.train(training)(x, x, x, need_weights=False, **mask)[0]

    return {
        "ours": lambda x: ours(x, causal=causal, need_weights=False)[0],
        "floor": lambda x: floor(x, causal),
        "torch, train": partial(torch_in, True),
        "torch, eval": partial(torch_in, False),
    }


def output():
    """need_weights=False against the floor and torch.nn.MultiheadAttention: the same output."""
    limits = {"floor": 1.05, "torch, train": 0.95, "torch, eval": 0.75}
    for size in SIZES:
        x = layers(size)[-1]
        for step in STEPS:
            for causal in (False, True):
                ways = without_weights(size, causal)
                if step != "forward":
                    del ways["torch, eval"]
                found = turns(STEPS[step], x, ways)
                mask = "causal" if causal else "none"
                named = {"mask": mask, "step": step, "size": size, **SECONDS}
                yield from compare(found, {n: limits[n] for n in ways if n != "ours"}, **named)


def weights():
    """Weights per head as well, against torch's and against the class of the page torch-module."""
    with contextlib.redirect_stdout(io.StringIO()):  # what the example prints
        names = runpy.run_path(str(ROOT / "docs/examples/torch_module.py"))
    for size in SIZES:
        ours, theirs, _, x = layers(size)
        written = names["MultiHeadAttention"](*size[2:])
        ways = {
            "ours": lambda x: ours(x)[0],
            "torch, train": lambda x: theirs(x, x, x, average_attn_weights=False)[0],
            "chapter": lambda x: written(x)[0],
        }
        for step, limit in (("forward", 0.95), ("forward + backward", 1.0)):
            limits = {"torch, train": limit}
            if step == "forward" and size[1] >= 1024:
                limits["chapter"] = 0.75
            found = turns(STEPS[step], x, {n: ways[n] for n in ("ours", *limits)})
            yield from compare(found, limits, step=step, size=size, **SECONDS)


def tiny():
    """Four tokens, where every check counts."""
    size = 1, 4, 6, 2
    ways = without_weights(size, causal=False)
    found = turns(forward, layers(size)[-1], {n: ways[n] for n in ("ours", "floor")})
    yield from compare(found, {"floor": 1.10}, step="forward", size=size, **SECONDS)


def growth():
    """Seconds of a causal forward for longer and longer texts."""
    seconds = {"ours": [], "floor": []}
    for T in LENGTHS:
        size = 1, T, 512, 8
        ways = without_weights(size, causal=True)
        del ways["torch, train"]
        if T > TORCH_FITS:
            del ways["torch, eval"]
        found = turns(forward, layers(size)[-1], ways)
        rows = list(compare(found, dict.fromkeys(list(ways)[1:]), T=T, size=size, **SECONDS))
        seconds["ours"].append(rows[0]["ours"])
        seconds["floor"].append(rows[0]["other"])
        yield from rows
    ours, other = (exponent(LENGTHS, column) for column in seconds.values())
    row = {"ours": ours, "other": other, "ratio": ours / other, "limit": 1.0}
    yield {"against": "floor", "what": "exponent", **row, "unit": ""}


def memory():
    """Bytes held at the peak of a forward, beyond what is there before."""
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        yield from fresh.submit(peaks_of_forward).result()


def peaks_of_forward() -> list[dict]:
    """The rows of memory, in this process."""
    rows = []
    for causal in (False, True):
        peaks, mask = [], "causal" if causal else "none"
        for T in LENGTHS:
            size = 1, T, 512, 8
            ways, x = without_weights(size, causal), layers(size)[-1]
            del ways["torch, train"]
            if T > TORCH_FITS:
                del ways["torch, eval"]
            found = {name: [peak_of(partial(forward, way, x))] for name, way in ways.items()}
            peaks += found["ours"]
            limits = {"floor": 1.0, "torch, eval": None}
            limits = {name: limits[name] for name in ways if name != "ours"}
            rows += compare(found, limits, mask=mask, T=T, size=size, **BYTES)
        grows = {"ours": exponent(LENGTHS, peaks), "limit": 1.05, "unit": ""}
        rows.append({"mask": mask, "what": "exponent", **grows})
    return rows


def lean(query, key, value):
    """Attention in NumPy with as few arrays as it takes."""
    scores = query @ key.swapaxes(-2, -1)
    scores *= scores.dtype.type(query.shape[-1] ** -0.5)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ value, scores


def arrays(size, dtype: str):
    """Query, key and value with H heads."""
    B, T, d_model, H = size
    shape = (3, B, H, T, d_model // H)
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def numpy():
    """mha.attention on arrays against the lean formulation."""
    for size in SIZES[:2]:
        for dtype in ("float32", "float64"):
            qkv = arrays(size, dtype)
            ours, other = mha.attention(*qkv)[0], lean(*qkv)[0]
            assert ours.dtype == other.dtype == dtype
            assert mha.compare(ours, other)
            ways = {"ours": lambda: mha.attention(*qkv), "lean": lambda: lean(*qkv)}
            found = in_turns({name: timed(way) for name, way in ways.items()})
            yield from compare(found, {"lean": 1.18}, dtype=dtype, size=size, **SECONDS)


def numpy_memory():
    """Bytes held at the peak of mha.attention but for the output, in matrices of scores."""
    for size in SIZES[:2]:
        for dtype in ("float32", "float64"):
            qkv = arrays(size, dtype)
            tracemalloc.start()
            output, scores = mha.attention(*qkv)
            peak = tracemalloc.get_traced_memory()[1] - output.nbytes
            tracemalloc.stop()
            named = {"against": "scores", "dtype": dtype, "size": size, **BYTES}
            found = {"ours": peak, "other": scores.nbytes, "ratio": peak / scores.nbytes}
            yield {**named, **found, "limit": 1.1}


def imports():
    """Seconds of processor for `import mha`, in a process of its own; torch must not be loaded."""

    def python(code: str) -> float:
        return cpu_and_wall([sys.executable, "-c", code])[0]

    ways = {
        "ours": lambda: python("import mha, sys; assert 'torch' not in sys.modules"),
        "import numpy": lambda: python("import numpy"),
    }
    for way in ways.values():
        way()
    yield from compare(in_turns(ways), {"import numpy": 1.1}, **SECONDS)


def profiles():
    """Where the time of the three largest cases goes: the eight operations that take the most."""
    size = SIZES[-1]
    ours, *_, x = layers(size)
    for step, need_weights in (
        ("forward", False),
        ("forward + backward", False),
        ("forward + backward", True),
    ):
        run = partial(STEPS[step], lambda x: ours(x, need_weights=need_weights)[0], x)
        run()
        with profile(activities=[ProfilerActivity.CPU]) as record:
            run()
        found = record.key_averages()
        total = sum(operation.self_cpu_time_total for operation in found)
        for operation in sorted(found, key=lambda o: -o.self_cpu_time_total)[:8]:
            share = operation.self_cpu_time_total / total
            named = {"weights": need_weights, "step": step, "size": size}
            yield {**named, "operation": operation.key, "calls": operation.count, "share": share}


PARTS = output, weights, tiny, growth, memory, numpy, numpy_memory, imports, profiles
