"""Weights of other libraries: how each of them packs query, key and value, and the way back.

In between stand three matrices `(out, in)`, as a torch `Linear` stores them and as
`torch.nn.MultiheadAttention` keeps them apart where `kdim` or `vdim` is given: q has `H * d_k`
rows, k and v have `H_kv * d_k`, and head h is rows `h*d_k` to `(h+1)*d_k - 1`. Biases lack the axis
`in`. Arrays and tensors alike; every number is carried over bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .functions import as_array, check_kv_heads, cut_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .functions import A

LAYOUTS = ("block", "transposed", "interleaved", "grouped", "einsum")


def pack(
    q: A, k: A, v: A, *, layout: str, num_heads: int, num_kv_heads: int | None = None
) -> A | tuple[A, A, A]:
    """Store three projections as another library does.

    - "block" `(H*d_k + 2*H_kv*d_k, in)`: all rows of q, then of k, then of v, as in
      `torch.nn.MultiheadAttention`. "transposed": the same as `(in, out)`, as in GPT-2.
    - "interleaved": q, k, v of head 0, then of head 1, ..., as in GPT-NeoX and BLOOM. "grouped": q
      of the heads that share key 0, key 0, value 0, then the next group, as in Falcon.
    - "einsum": three arrays `(H, in, d_k)`, a matrix for each head, as in TransformerLens. Keras
      and Flax store `(in, H, d_k)`: the first two axes swapped.
    - Weights are `(out, in)`, biases `(out,)`; `num_kv_heads`, H_kv, is `num_heads` by default.
    - `ValueError` for another layout or shapes that do not fit, `TypeError` for different dtypes.
    - What is returned may share memory with what was given.

    Source: `in_proj_weight` of `torch.nn.MultiheadAttention`; `c_attn` and `query_key_value` in
    Hugging Face's transformers; `W_Q` in TransformerLens.

    >>> q, k, v = np.array(["q0", "q1"]), np.array(["k0", "k1"]), np.array(["v0", "v1"])
    >>> pack(q, k, v, layout="interleaved", num_heads=2).tolist()
    ['q0', 'k0', 'v0', 'q1', 'k1', 'v1']
    """
    H_kv = _check_layout(layout, num_heads, num_kv_heads)
    q, k, v = _check_parts((q, k, v), num_heads, H_kv, own_widths=layout == "einsum")
    if layout == "einsum":
        d_k = len(q) // num_heads
        heads = (x.reshape(len(x) // d_k, d_k, *x.shape[1:]).swapaxes(1, -1) for x in (q, k, v))
        query, key, value = heads  # (H, in, d_k)
        return query, key, value
    n, runs = len(q) + len(k) + len(v), _runs(layout, H_kv)
    parts = [x.reshape(runs, len(x) // runs, *x.shape[1:]) for x in (q, k, v)]
    packed: A = _join(parts).reshape(n, *q.shape[1:])
    return packed.swapaxes(0, -1) if layout == "transposed" else packed


def unpack(
    packed: A | Sequence[A], *, layout: str, num_heads: int, num_kv_heads: int | None = None
) -> tuple[A, A, A]:
    """Take q, k and v `(out, in)` out of what another library stores: the inverse of `pack`.

    - `packed` is a weight or a bias in one of the layouts of `pack`; for "einsum", three of them.
    - `ValueError` for another layout or shapes that do not fit, `TypeError` for different dtypes.
    - What is returned may share memory with what was given.

    Source: as for `pack`.

    >>> rows = np.array(["q0", "q1", "k0", "v0", "q2", "q3", "k1", "v1"])
    >>> q, k, v = unpack(rows, layout="grouped", num_heads=4, num_kv_heads=2)
    >>> q.tolist(), k.tolist(), v.tolist()
    (['q0', 'q1', 'q2', 'q3'], ['k0', 'k1'], ['v0', 'v1'])
    """
    H_kv = _check_layout(layout, num_heads, num_kv_heads)
    if layout == "einsum":
        return _check_parts(_flat(packed, (num_heads, H_kv, H_kv)), num_heads, H_kv, True)
    x: Any = packed
    x = as_array("packed", x, 1, "(out, in) or (out,)")
    rows = x.swapaxes(0, -1) if layout == "transposed" else x  # (out, in)
    d_k, rest = divmod(len(rows), num_heads + 2 * H_kv)
    if rest or not d_k or x.ndim > 2:
        full = "(in, out)" if layout == "transposed" else "(out, in)"
        sizes = f"out a multiple of {num_heads} + 2 * {H_kv}"
        raise ValueError(f"packed must have shape {full} or (out,), {sizes}, got {tuple(x.shape)}")
    return cut_rows(rows, (num_heads * d_k, H_kv * d_k, H_kv * d_k), _runs(layout, H_kv))


def _runs(layout: str, H_kv: int) -> int:
    """How often q, k and v alternate."""
    return H_kv if layout in ("interleaved", "grouped") else 1


def _flat(packed: Any, heads: tuple[int, int, int]) -> list[Any]:
    """Three arrays `(H, in, d_k)` as matrices `(H*d_k, in)`."""
    if len(packed) != 3:
        raise ValueError(f"packed must be three arrays (H, in, d_k), got {len(packed)}")
    parts = []
    for i, H in enumerate(heads):
        name, full = "qkv"[i], f"({H}, in, d_k) or ({H}, d_k)"
        x = as_array(name, packed[i], 2, full)
        if x.ndim > 3 or len(x) != H:
            raise ValueError(f"{name} must have shape {full}, got {tuple(x.shape)}")
        x = x.swapaxes(1, -1)  # (H, d_k, in)
        parts.append(x.reshape(H * x.shape[1], *x.shape[2:]))
    return parts


def _join(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, 1)
    import torch

    return torch.cat(parts, 1)


def _check_layout(layout: str, num_heads: int, num_kv_heads: int | None) -> int:
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be one of {LAYOUTS}, got {layout!r}")
    H_kv = check_kv_heads(num_heads, num_kv_heads)
    if layout == "interleaved" and H_kv != num_heads:
        raise ValueError(f'"interleaved" has a key for every head; {num_kv_heads=} needs "grouped"')
    return H_kv


def _check_parts(parts: Sequence[Any], H: int, H_kv: int, own_widths: bool) -> tuple[Any, Any, Any]:
    full = "(out, in) or (out,)"
    q, k, v = (as_array("qkv"[i], parts[i], 1, full) for i in range(3))
    d_k, rest = divmod(len(q), H)
    if rest or not d_k or q.ndim > 2:
        got = tuple(q.shape)
        raise ValueError(f"q must have shape {full}, out a multiple of num_heads={H}, got {got}")
    for name, x in (("k", k), ("v", v)):
        width = x.shape[1:] if own_widths and x.ndim == q.ndim else q.shape[1:]
        if tuple(x.shape) != (H_kv * d_k, *width):
            wanted = (H_kv * d_k, *width)
            raise ValueError(f"{name} must have shape {wanted}, got {tuple(x.shape)}")
        if x.dtype != q.dtype:
            raise TypeError(f"{name} must be {q.dtype}, as q is, got {x.dtype}")
    return q, k, v
