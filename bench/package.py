"""How fast `mha` is and how much memory it takes, beside the simplest that does the same work.

The floor is four Linear layers around torch's own scaled_dot_product_attention, without a check.
"""

import runpy
import sys
import tracemalloc

import numpy as np
import torch
from timing import ROOT, cpu_and_wall, exponent, in_turns, peak_of, record

import mha

SIZES = (8, 128, 256, 8), (1, 1024, 512, 8), (1, 4096, 512, 8)  # (B, T, d_model, H)
LONG = [size for size in SIZES if size[1] >= 1024]
LENGTHS = 512, 1024, 2048, 4096, 8192


def main() -> None:
    """Measure everything, print it, and write it down."""
    parts = without_weights, with_weights, tiny, growth, memory, numpy_speed, numpy_memory, imports
    chosen = [part for part in parts if part.__name__ in sys.argv[1:]] or parts
    rows = [row for part in chosen for row in part()]
    if chosen is parts:
        record("package", rows)


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


def row(what: str, size, limit: float, step, x, ours, other) -> dict:
    """Two ways of one step, in turns."""
    ways = (lambda: step(ours, x)), (lambda: step(other, x))
    named = {"what": what, "size": list(size), "step": step.__name__, "limit": limit}
    return show({**named, **in_turns(*ways)})


def show(line: dict) -> dict:
    """Print what was measured while the rest still runs."""
    print(*(f"{x:.4g}" if isinstance(x, float) else x for x in line.values()), flush=True)
    return line


def without_weights():
    """need_weights=False against the floor, and against nn.MultiheadAttention in both modes."""
    for size in SIZES:
        ours, theirs, floor, x = layers(size)
        T = size[1]
        triangle = torch.nn.Transformer.generate_square_subsequent_mask(T)
        for step in (forward, backward):
            for causal in (False, True):
                mask = {"attn_mask": triangle, "is_causal": True} if causal else {}

                def our(x, causal=causal):
                    return ours(x, causal=causal, need_weights=False)[0]

                def plain(x, causal=causal):
                    return floor(x, causal)

                def other(x, mask=mask):
                    return theirs(x, x, x, need_weights=False, **mask)[0]

                sort = "causal" if causal else "full"
                yield row(f"floor, {sort}", size, 1.05, step, x, our, plain)
                yield row(f"torch train, {sort}", size, 0.95, step, x, our, other)
                if step is forward:  # in eval torch has a faster path, without gradients
                    theirs.eval()
                    yield row(f"torch eval, {sort}", size, 0.75, step, x, our, other)
                    theirs.train()


def with_weights():
    """Weights per head against nn.MultiheadAttention's, and against the chapter's formulation."""
    chapter = runpy.run_path(str(ROOT / "docs/examples/torch_module.py"))["MultiHeadAttention"]
    for size in SIZES:
        ours, theirs, _, x = layers(size)

        def other(x, theirs=theirs):
            return theirs(x, x, x, average_attn_weights=False)[0]

        for step, limit in ((forward, 0.95), (backward, 1.0)):
            yield row("torch, weights", size, limit, step, x, lambda x: ours(x)[0], other)
        if size in LONG:
            module = chapter(*size[2:])
            yield row(
                "chapter, weights",
                size,
                0.75,
                forward,
                x,
                lambda x: ours(x)[0],
                lambda x: module(x)[0],
            )


def tiny():
    """Where every check counts."""
    ours, _, floor, x = layers((1, 4, 6, 2))
    our = lambda x: ours(x, need_weights=False)[0]  # noqa: E731
    yield row("floor, full", (1, 4, 6, 2), 1.10, forward, x, our, floor)


def growth():
    """How the time of a causal forward grows with T."""
    times = []
    for T in LENGTHS[1:4]:
        ours, _, floor, x = layers((1, T, 512, 8))
        measured = row(
            "floor, causal", (1, T, 512, 8), 1.05, forward, x,
            lambda x: ours(x, causal=True, need_weights=False)[0], lambda x: floor(x, True),
        )  # fmt: skip
        times.append((measured["ours"], measured["other"]))
    ours, other = (exponent(LENGTHS[1:4], column) for column in zip(*times, strict=True))
    yield show({"what": "growth of time, causal", "ours": ours, "other": other, "limit": other})


def memory():
    """Peak memory beyond what is there before, without a mask and causal."""
    for causal in (False, True):
        peaks = []
        for T in LENGTHS:
            ours, theirs, floor, x = layers((1, T, 512, 8))
            steps = (
                lambda: ours(x, causal=causal, need_weights=False),
                lambda: floor(x, causal),
                lambda: theirs.eval()(x, x, x, need_weights=False),
            )
            with torch.no_grad():
                peaks.append([peak_of(step) for step in steps])
            our, plain, other = peaks[-1]
            named = {"what": f"memory, {'causal' if causal else 'full'}", "size": [1, T, 512, 8]}
            yield show({**named, "limit": 1.0, "ours": our, "other": plain, "ratio": our / plain})
            if T == 4096 and not causal:
                yield show(
                    {"what": "memory of torch eval", "size": [1, T, 512, 8], "ratio": other / our}
                )
        grows = exponent(LENGTHS, [peak[0] for peak in peaks])
        yield show({"what": "growth of memory", "ours": grows, "limit": 1.05})


def lean(query, key, value):
    """Attention in NumPy with as few arrays as it takes."""
    scores = query @ key.swapaxes(-2, -1)
    scores *= scores.dtype.type(query.shape[-1] ** -0.5)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ value, scores


def _arrays(size, dtype):
    B, T, d_model, H = size
    shape = (3, B, H, T, d_model // H)
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def numpy_speed():
    """mha.attention on arrays against the lean formulation."""
    for size in SIZES[:2]:
        for dtype in ("float32", "float64"):
            qkv = _arrays(size, dtype)
            ways = (lambda: mha.attention(*qkv)), (lambda: lean(*qkv))
            named = {"what": f"lean NumPy, {dtype}", "size": list(size), "step": "forward"}
            yield show({**named, "limit": 1.18, **in_turns(*ways)})


def numpy_memory():
    """Peak memory of mha.attention in score matrices."""
    for dtype in ("float32", "float64"):
        qkv = _arrays(SIZES[1], dtype)
        tracemalloc.start()
        mha.attention(*qkv)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        _, T, d_model, H = SIZES[1]
        scores = (H * T * T + H * T * d_model // H) * qkv.itemsize  # weights and output
        named = {"what": f"memory of NumPy, {dtype}", "size": list(SIZES[1]), "limit": 1.1}
        yield show({**named, "ratio": peak / scores})


def imports():
    """`import mha` against `import numpy`, in processes of their own."""
    python = sys.executable
    ways = (
        lambda: cpu_and_wall(python, "-c", "import mha, sys; assert 'torch' not in sys.modules"),
        lambda: cpu_and_wall(python, "-c", "import numpy"),
    )
    yield show({"what": "import mha", "limit": 1.1, **in_turns(*ways)})


if __name__ == "__main__":
    main()
