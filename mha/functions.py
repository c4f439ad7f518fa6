"""Multi-head attention in NumPy, and the checks of shapes and masks that the torch half shares."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:  # for the type checker only: `import mha` must not load torch
    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor

    Causal = bool | str
    Shape = tuple[int, ...]
    Masks = tuple[NDArray[Any] | None, NDArray[Any] | None]
    A = TypeVar("A", NDArray[Any], Tensor)  # arrays give arrays, tensors give tensors


def softmax(scores: ArrayLike, axis: int = -1) -> NDArray[Any]:
    """Turn scores into weights that sum to 1 along `axis`.

    `exp(scores - max) / sum(exp(scores - max))`: taking the maximum away changes no weight and
    keeps `exp` from overflowing.

    - Scores of any rank give weights of the same shape and float dtype. Integers and bool count as
      float64; half precision is summed in float32.
    - A score of `-inf` weighs 0; a slice of nothing but `-inf`, or of length 0, gives zeros. A NaN
      or `+inf` makes its own slice NaN.
    - `TypeError` for complex numbers, objects and strings.

    Source: Goodfellow, Bengio and Courville, *Deep Learning* (2016), section 4.1.

    >>> softmax([[2.0, 2.0], [2.0, -np.inf], [-np.inf, -np.inf]])
    array([[0.5, 0.5],
           [1. , 0. ],
           [0. , 0. ]])
    """
    x, dtype = _floats(scores=scores)
    with np.errstate(all="ignore"):
        return _softmax_in_place(x["scores"].copy(), axis).astype(dtype, copy=False)


def attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    allow: ArrayLike | None = None,
    score_bias: ArrayLike | None = None,
    causal: Causal = False,
    scale: float | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give every query its weighted mean of the values: scaled dot-product attention.

    `softmax(scale * query @ key.T + score_bias) @ value`, with `scale = 1 / sqrt(d_k)`.

    - query `(..., L, d_k)`, key `(..., S, d_k)`, value `(..., S, d_v)` give output `(..., L, d_v)`
      and weights `(..., L, S)` in their common float dtype.
    - `allow` (bool, True = may attend) and `score_bias` (float, `-inf` = blocked) are `(L, S)` or
      `(..., L, S)`, where 1 stands for any size; `causal` is False, True (needs `L == S`),
      "upper_left" or "lower_right". A key counts only if all of them let it through; a query
      without keys gets zeros.
    - `ValueError` for sizes that do not fit, `TypeError` for a wrong dtype.

    Source: Vaswani et al., *Attention Is All You Need* (2017), section 3.2.1.

    >>> attention([[0.0]], [[1.0], [2.0]], [[4.0], [6.0]])
    (array([[5.]]), array([[0.5, 0.5]]))
    """
    x, dtype = _floats(query=query, key=key, value=value)
    check_shapes(*(array.shape for array in x.values()))
    shape = (*x["query"].shape[:-1], x["key"].shape[-2])  # (..., L, S)
    masks = merge_masks(shape, _mask, _triangle, allow, score_bias, causal)
    scale = check_scale(scale, x["query"].shape[-1])
    output, weights = _attend(x["query"], x["key"], x["value"], masks, scale)
    return output.astype(dtype, copy=False), weights.astype(dtype, copy=False)


def split_heads(x: A, num_heads: int) -> A:
    """Cut the last axis into heads: head h is columns `h*d` to `(h+1)*d - 1`.

    - `(..., L, H*d)` gives `(..., H, L, d)`; an array gives an array, a tensor a tensor, of the
      same dtype.
    - `ValueError` if `num_heads` does not divide the width.

    Source: Vaswani et al., *Attention Is All You Need* (2017), section 3.2.2.

    >>> split_heads(np.array([[0, 1, 2, 3]]), 2).tolist()
    [[[0, 1]], [[2, 3]]]
    """
    x = as_array("x", x, 2, "(..., L, H*d)")
    d = check_heads(x.shape[-1], num_heads)
    return x.reshape(*x.shape[:-1], num_heads, d).swapaxes(-3, -2)  # (..., H, L, d)


def merge_heads(x: A) -> A:
    """Put the heads side by side again: the inverse of `split_heads`.

    - `(..., H, L, d)` gives `(..., L, H*d)`; an array gives an array, a tensor a tensor, of the
      same dtype.
    - `ValueError` for fewer than three axes.

    Source: Vaswani et al., *Attention Is All You Need* (2017), section 3.2.2.

    >>> merge_heads(np.array([[[0, 1]], [[2, 3]]])).tolist()
    [[0, 1, 2, 3]]
    """
    x = as_array("x", x, 3, "(..., H, L, d)")
    H, L, d = x.shape[-3:]
    return x.swapaxes(-3, -2).reshape(*x.shape[:-3], L, H * d)  # (..., L, H*d)


@dataclass(frozen=True)
class Projections:
    """Matrices and biases of `multi_head_attention`, for `x @ w + b`.

    - w_q `(d_model, d_model)`, w_k `(kdim, d_model)`, w_v `(vdim, d_model)`, w_o
      `(d_model, d_model)`: `(in, out)`, where a torch `Linear` stores `(out, in)`.
    - Every `b` is `(d_model,)`, or None.
    - With `num_kv_heads`, w_k, w_v, b_k and b_v are only `num_kv_heads * d_k` wide.

    >>> eye = np.eye(6)
    >>> Projections(eye, eye, eye, eye).b_o is None
    True
    """

    w_q: ArrayLike
    w_k: ArrayLike
    w_v: ArrayLike
    w_o: ArrayLike
    b_q: ArrayLike | None = None
    b_k: ArrayLike | None = None
    b_v: ArrayLike | None = None
    b_o: ArrayLike | None = None


def multi_head_attention(
    query: ArrayLike,
    key: ArrayLike | None = None,
    value: ArrayLike | None = None,
    *,
    projections: Projections,
    num_heads: int,
    num_kv_heads: int | None = None,
    allow: ArrayLike | None = None,
    key_allow: ArrayLike | None = None,
    score_bias: ArrayLike | None = None,
    causal: Causal = False,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Attend in H subspaces at once, and mix what the heads found.

    `concat(head_1, ..., head_H) @ w_o + b_o`; head h attends with its own `d_k = d_model / H`
    columns of `query @ w_q + b_q`, `key @ w_k + b_k` and `value @ w_v + b_v`.

    - query `(B, L, d_model)`, key `(B, S, kdim)`, value `(B, S, vdim)` give `(B, L, d_model)` and
      weights `(B, H, L, S)`; also all without `B`. Neither key nor value: self-attention.
    - `num_kv_heads`, H_kv, lets `H / H_kv` heads in a row share a key and a value: head h uses
      number `h // (H / H_kv)`. Grouped-query attention; multi-query if it is 1.
    - Masks as in `attention`: `(L, S)`, `(B, L, S)`, `(B, H, L, S)`; `key_allow` `(B, S)` is bool,
      True = not padding.
    - `ValueError` for sizes that do not fit, `TypeError` for a wrong dtype or a key without value.

    Source: Vaswani et al., *Attention Is All You Need* (2017), section 3.2.2; for `num_kv_heads`
    Ainslie et al., *GQA* (2023), section 2.2.

    >>> eye = np.eye(2)
    >>> multi_head_attention(eye, projections=Projections(eye, eye, eye, eye), num_heads=2)[1].shape
    (2, 2, 2)
    """
    query, key, value = self_or_cross(query, key, value)
    if not isinstance(projections, Projections):
        got = type(projections).__name__
        raise TypeError(f"projections must be a Projections, got {got}")
    given = {n: w for n, w in vars(projections).items() if w is not None or n.startswith("w")}
    x, dtype = _floats(query=query, key=key, value=value, **given)
    H_kv = check_kv_heads(num_heads, num_kv_heads)
    check_shapes(x["query"].shape, x["key"].shape, x["value"].shape, _widths(x, num_heads, H_kv))
    *batch, L, d_model = x["query"].shape
    d_k = check_heads(d_model, num_heads)
    shape = (*batch, num_heads, L, x["key"].shape[-2])  # (B, H, L, S)
    masks = merge_masks(shape, _mask, _triangle, allow, score_bias, causal, key_allow, bool(batch))
    with np.errstate(all="ignore"):
        q = split_heads(x["query"] @ x["w_q"] + x.get("b_q", 0), num_heads)  # (B, H, L, d_k)
        k = split_heads(x["key"] @ x["w_k"] + x.get("b_k", 0), H_kv)  # (B, H_kv, S, d_k)
        v = split_heads(x["value"] @ x["w_v"] + x.get("b_v", 0), H_kv)  # (B, H_kv, S, d_k)
        context, weights = _attend(q, k, v, masks, d_k**-0.5)  # (B, H, L, d_k)
        output = merge_heads(context) @ x["w_o"] + x.get("b_o", 0)  # (B, L, d_model)
    return output.astype(dtype, copy=False), weights.astype(dtype, copy=False)


def unpack_qkv(packed: A, *, layout: str = "block", num_heads: int | None = None) -> tuple[A, A, A]:
    """Cut a packed projection into those of query, key and value.

    - A weight `(3*d_model, ...)` or bias `(3*d_model,)`, array or tensor, gives three of
      `(d_model, ...)`, of the same kind and dtype.
    - "block": all rows of q, then of k, then of v, as `torch.nn.MultiheadAttention` stores them.
      "interleaved": q, k, v of head 0, then of head 1, ...; needs `num_heads`. Both fit in shape,
      only one gives the right numbers.
    - `ValueError` for another layout, or sizes that do not divide.

    Source: `in_proj_weight` of `torch.nn.MultiheadAttention`; `query_key_value` of GPT-NeoX.

    >>> q, k, v = unpack_qkv(np.arange(12), layout="interleaved", num_heads=2)
    >>> q.tolist(), k.tolist(), v.tolist()
    ([0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11])
    """
    if layout not in ("block", "interleaved"):
        raise ValueError(f'layout must be "block" or "interleaved", got {layout!r}')
    packed = as_array("packed", packed, 1, "(3*d_model, ...)")
    n = packed.shape[0]
    if n % 3:
        raise ValueError(f"packed must have shape (3*d_model, ...), got {tuple(packed.shape)}")
    H: Any = num_heads if layout == "interleaved" or num_heads is not None else 1
    check_heads(n // 3, H)
    return cut_rows(packed, (n // 3,) * 3, H if layout == "interleaved" else 1)


# The arithmetic of the NumPy half, on arrays of float32 or finer.


def _attend(
    query: NDArray[Any], key: NDArray[Any], value: NDArray[Any], masks: Masks, scale: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    allowed, bias = masks
    with np.errstate(all="ignore"):
        if bias is not None:  # in the finer dtype, so that a finite bias stays finite
            query = query.astype(np.result_type(query, bias))
        if allowed is not None:
            key, value = drop_unseen(np.where, allowed, key, value)
        scores = share(query * scale, key) @ key.swapaxes(-1, -2)
        scores = scores.reshape(*query.shape[:-1], key.shape[-2])  # (..., L, S)
        if bias is not None:
            scores += bias
        if allowed is not None:
            np.copyto(scores, -np.inf, where=~allowed)
        weights = _softmax_in_place(scores, -1)  # (..., L, S)
        output = share(weights, value) @ value
        return output.reshape(*query.shape[:-1], value.shape[-1]), weights  # (..., L, d_v)


def _softmax_in_place(scores: NDArray[Any], axis: int) -> NDArray[Any]:
    top = scores.max(axis=axis, keepdims=True, initial=-np.inf)
    scores -= np.where(top == -np.inf, 0, top)  # without keys, -inf - (-inf) would be NaN
    np.exp(scores, out=scores)
    total = scores.sum(axis=axis, keepdims=True)
    scores /= np.where(total == 0, 1, total)
    return scores


def as_array(name: str, x: A, ndim: int, full: str) -> A:
    array: Any = x if hasattr(x, "swapaxes") else np.asarray(x)
    if array.ndim < ndim:
        raise ValueError(f"{name} must have shape {full}, got {tuple(array.shape)}")
    return array  # type: ignore[no-any-return]


def _floats(**given: ArrayLike) -> tuple[dict[str, NDArray[Any]], np.dtype[Any]]:
    """Arrays to compute with, float32 or finer, to read only; and the dtype of the result."""
    x = {name: np.asarray(array) for name, array in given.items()}
    for name, array in x.items():
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}")
    dtype = np.result_type(*(a.dtype if a.dtype.kind == "f" else np.float64 for a in x.values()))
    work = np.result_type(dtype, np.float32)
    return {name: array.astype(work, copy=False) for name, array in x.items()}, dtype


def _widths(x: dict[str, NDArray[Any]], H: int, H_kv: int) -> Shape:
    """d_model, kdim and vdim, after checking every matrix and bias."""
    d_model, kdim, vdim = (x[w].shape[0] if x[w].ndim else 0 for w in ("w_q", "w_k", "w_v"))
    for name, size in (("d_model", d_model), ("kdim", kdim), ("vdim", vdim)):
        check_count(name, size)
    rows = {"w_q": (d_model,), "w_k": (kdim,), "w_v": (vdim,), "w_o": (d_model,)}
    for name, array in x.items():
        columns = d_model * H_kv // H if name[2:] in ("k", "v") else d_model
        full = (*rows.get(name, ()), columns)
        if name not in ("query", "key", "value") and array.shape != full:
            raise ValueError(f"{name} must have shape {full}, got {array.shape}")
    return d_model, kdim, vdim


def _mask(name: str, mask: ArrayLike) -> NDArray[Any]:
    array, kind = np.asarray(mask), "float" if name == "score_bias" else "bool"
    if array.dtype.kind != kind[0]:
        raise TypeError(f"{name} must be {kind}, got dtype {array.dtype}")
    return array


def _triangle(L: int, S: int, offset: int) -> NDArray[Any]:
    return np.tri(L, S, offset, dtype=bool)


# What both halves share: shapes are tuples, masks are all arrays or all tensors.


def check_count(name: str, number: Any) -> None:
    """A size is a whole number of at least 1; `True` and `2.0` are none."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(f"{name} must be an integer, got {number!r} ({type(number).__name__})")
    if number < 1:
        raise ValueError(f"{name} must be at least 1, got {number}")


def check_heads(d_model: int, num_heads: Any) -> int:
    """The width of one head."""
    check_count("num_heads", num_heads)
    if d_model % num_heads:
        raise ValueError(f"d_model={d_model} is not divisible by num_heads={num_heads}")
    return d_model // int(num_heads)


def check_kv_heads(num_heads: Any, num_kv_heads: Any) -> int:
    """How many heads of key and value there are: as many as of the query, unless it is said."""
    check_count("num_heads", num_heads)
    if num_kv_heads is None:
        return int(num_heads)
    check_count("num_kv_heads", num_kv_heads)
    if num_heads % num_kv_heads:
        raise ValueError(f"{num_heads=} is not divisible by {num_kv_heads=}")
    return int(num_kv_heads)


def check_scale(scale: Any, d_k: int) -> float:
    """The given scale, or that of the paper; a tensor is refused, as its gradient would be lost."""
    if scale is not None and not isinstance(scale, Real):
        raise TypeError(f"scale must be a number or None, got {type(scale).__name__}")
    return d_k**-0.5 if scale is None else float(scale)


def check_shapes(query: Shape, key: Shape, value: Shape, widths: Shape | None = None) -> None:
    """Nothing is stretched. With `widths`, the input of several heads: two or three axes."""
    for i, shape in enumerate((query, key, value)):
        rank = len(shape)
        if rank < 2 or (widths and (rank > 3 or shape[-1] != widths[i])):
            name, own = ("query", "key", "value")[i], f"{'LSS'[i]}, {widths[i] if widths else 'd'}"
            full = f"(B, {own}) or ({own})" if widths else f"(..., {own})"
            raise ValueError(f"{name} must have shape {full}, got {shape}")
    if not query[:-2] == key[:-2] == value[:-2]:
        what = f"leading axes of query, key and value: {query[:-2]}, {key[:-2]} and {value[:-2]}"
    elif not widths and not query[-1] == key[-1] >= 1:
        what = f"width d_k (at least 1) of query and key: {query[-1]} and {key[-1]}"
    elif key[-2] != value[-2]:
        what = f"length S of key and value: {key[-2]} and {value[-2]}"
    else:
        return
    raise ValueError(f"{what} must be equal, in shapes {query}, {key} and {value}")


def self_or_cross(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Self-attention if neither key nor value is given."""
    if (key is None) != (value is None):
        given = "value without key" if key is None else "key without value"
        raise TypeError(f"key and value come together or not at all, got {given}")
    return (query, query, query) if key is None else (query, key, value)


def causal_offset(causal: Any, L: int, S: int) -> int | None:
    """Query i sees keys 0 to i + offset; None is no limit."""
    if causal is False:
        return None
    if causal is True and L != S:
        raise ValueError(
            f'causal=True needs L == S, got L={L} and S={S}: say "upper_left" (query i sees keys '
            f'0 to i) or "lower_right" (the last query sees every key)'
        )
    names = ("upper_left", "lower_right")
    if causal is not True and not (isinstance(causal, str) and causal in names):
        raise ValueError(
            f'causal must be False, True, "upper_left" or "lower_right", got {causal!r}'
        )
    return S - L if causal == "lower_right" else 0


def merge_masks(
    shape: Shape,
    convert: Callable[[str, Any], A],
    triangle: Callable[[int, int, int], A],
    allow: Any,
    score_bias: Any,
    causal: Causal,
    key_allow: Any = None,
    batched: bool = False,
) -> tuple[A | None, A | None]:
    """One table of what every mask lets through, and the bias, for weights of `shape`."""
    L, S = shape[-2:]
    legal = [(L, S), (shape[0], L, S), shape] if batched else [(L, S), shape]
    tables = []
    offset = causal_offset(causal, L, S)
    if offset is not None:
        tables.append(triangle(L, S, offset))
    if allow is not None:
        tables.append(_fit("allow", convert("allow", allow), legal))
    if key_allow is not None:
        columns = _fit("key_allow", convert("key_allow", key_allow), [(*shape[:-3], S)])
        tables.append(columns[..., None, None, :])  # (B, 1, 1, S)
    if score_bias is not None:
        score_bias = _fit("score_bias", convert("score_bias", score_bias), legal)
        tables.append(score_bias != -math.inf)
    return reduce(operator.and_, tables) if tables else None, score_bias


def _fit(name: str, mask: A, legal: list[Shape]) -> A:
    """The mask with one axis for the heads, after checking its shape."""
    size = tuple(mask.shape)
    for full in legal:
        if len(size) == len(full) and all(
            m == 1 or m == n  # torch.compile would take `m in (1, n)` for False
            for m, n in zip(size, full, strict=True)
        ):
            return mask[:, None] if len(legal) == len(size) == 3 else mask
    names = " or ".join(str(full) for full in dict.fromkeys(legal))
    raise ValueError(f"{name} must have shape {names} (1 stands for any size), got {size}")


def drop_unseen(where: Callable[..., A], allowed: Any, key: A, value: A) -> tuple[A, A]:
    """Zeros for every key that no query may see: its weight is 0, but 0 * NaN would be NaN."""
    seen = share(allowed, key).any(-2)[..., None]  # (..., S, 1)
    return where(seen, key, 0.0), where(seen, value, 0.0)


def share(x: A, key: A) -> A:
    """Rows `(..., H, L, n)` of heads that share a key `(..., H_kv, S, d_k)`, as those of one head.

    Heads of a group stand below one another, `(..., H_kv, H/H_kv*L, n)`: no key is repeated.
    """
    if x.ndim < 3 or x.shape[-3] <= key.shape[-3]:
        return x
    *lead, H, L, n = x.shape
    H_kv = key.shape[-3]
    return x.reshape(*lead, H_kv, H // H_kv * L, n)


def as_numpy(x: Any) -> NDArray[Any]:
    """An array of what may be a tensor: with a gradient, in bfloat16, on another device."""
    if hasattr(x, "detach"):  # without loading torch to ask
        x = x.detach().cpu()
        x = x.double() if x.is_floating_point() else x
    return np.asarray(x)


def cut_rows(packed: A, sizes: tuple[int, int, int], runs: int) -> tuple[A, A, A]:
    """Query, key and value out of equal runs of rows, each with its share of all three."""
    n, *rest = packed.shape
    x = packed.reshape(runs, n // runs, *rest)
    q, k = sizes[0] // runs, (sizes[0] + sizes[1]) // runs
    query, key, value = x[:, :q], x[:, q:k], x[:, k:]
    return (
        query.reshape(sizes[0], *rest),
        key.reshape(sizes[1], *rest),
        value.reshape(sizes[2], *rest),
    )
