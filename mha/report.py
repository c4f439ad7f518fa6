"""Are two results the same? Judged by dtype and scale; and a whole layer held against torch's."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .functions import as_numpy, self_or_cross

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from .functions import Causal
    from .layer import MultiHeadAttention

# What rounding may cost, relative to the largest number of the result.
RTOL = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
RTOL[np.dtype(np.longdouble).name] = RTOL["float64"]


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. `bool(comparison)` is `comparison.ok`.

    - `name`: of what was compared; `ok`: whether it agrees; `reason`: why, in words.
    - `max_error`: the largest absolute difference; `tolerance`: the largest that is accepted. Both
      are NaN where nothing could be compared.

    >>> compare([1.0], [1.0, 2.0]).reason
    'cannot be judged: shape (1,), expected (2,)'
    """

    name: str
    ok: bool
    reason: str
    max_error: float
    tolerance: float

    def __bool__(self) -> bool:
        return self.ok


def compare(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    scale: float | None = None,
    name: str = "values",
) -> Comparison:
    """Say whether `|actual - expected| <= rtol * scale` everywhere.

    - `actual` and `expected` are arrays, tensors, or what `np.asarray` takes.
    - `scale` is the largest finite `|expected|`; `rtol` follows the coarser of the two dtypes:
      float64 and integers 1e-12, float32 1e-5, float16 2e-3, bfloat16 2e-2.
    - What cannot be judged (another shape, nothing to compare, NaN, infinity, no numbers) is
      neither ok nor an exception: `reason` says why.
    - `ValueError` for an `rtol` or a `scale` that is not a finite number >= 0.

    Source: Higham, *Accuracy and Stability of Numerical Algorithms* (2002), section 1.2.

    >>> compare(np.float32([1e4]), [1e4 + 0.0078125]).reason
    'largest error 7.812e-03, tolerance 1.000e-01'
    """
    for label, n in (("rtol", rtol), ("scale", scale)):
        number = isinstance(n, Real) and not isinstance(n, bool) and math.isfinite(n) and n >= 0
        if n is not None and not number:
            raise ValueError(f"{label} must be a finite number >= 0, got {n!r}")
    try:
        (a, a_rtol), (b, b_rtol) = _numbers(actual), _numbers(expected)
        if a.shape != b.shape or not a.size:
            raise ValueError(f"shape {a.shape}, expected {b.shape if b.size else 'numbers'}")
    except Exception as error:  # whatever it is, it is no pass
        return Comparison(name, False, f"cannot be judged: {error}", math.nan, math.nan)
    with np.errstate(all="ignore"):
        max_error = float(np.abs(a - b).max())
    relative = max(a_rtol, b_rtol) if rtol is None else float(rtol)
    tolerance = relative * (_largest(b) if scale is None else float(scale))
    reason = f"largest error {max_error:.3e}, tolerance {tolerance:.3e}"
    finite = math.isfinite(max_error)  # and then every number is
    if not finite:
        for label, x in (("actual", a), ("the reference", b)):
            reason += "" if np.isfinite(x).all() else f"; {label} is not finite"
    ok = finite and max_error <= tolerance
    return Comparison(name, ok, reason, max_error, tolerance)


def _numbers(x: Any) -> tuple[NDArray[Any], float]:
    """Numbers in float64, and the relative tolerance of the dtype they came in."""
    name = str(x.dtype).removeprefix("torch.") if hasattr(x, "detach") else ""
    x = as_numpy(x)
    name = name or x.dtype.name
    if x.dtype.kind not in "biu" and name not in RTOL:
        raise TypeError(f"{name} is no kind of number with a known precision")
    return np.asarray(x, np.float64), RTOL.get(name, RTOL["float64"])


def _largest(x: NDArray[Any]) -> float:
    return float(np.abs(x[np.isfinite(x)]).max(initial=0))


@dataclass(frozen=True)
class ParityReport:
    """What `parity` found: one `Comparison` per row. `bool(report)` is `report.ok`.

    >>> print(ParityReport((compare([1.0], [1.0], name="output"),)))
    ok   output: largest error 0.000e+00, tolerance 1.000e-12
    """

    rows: tuple[Comparison, ...]

    @property
    def ok(self) -> bool:
        """Whether every row is ok, and there is one."""
        return bool(self.rows) and all(self.rows)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return "\n".join(f"{'ok' if r else 'FAIL':4} {r.name}: {r.reason}" for r in self.rows)


def parity(
    layer: MultiHeadAttention,
    reference: nn.MultiheadAttention,
    query: Tensor | None = None,
    key: Tensor | None = None,
    value: Tensor | None = None,
    *,
    allow: Tensor | None = None,
    key_allow: Tensor | None = None,
    score_bias: Tensor | None = None,
    causal: Causal = False,
    rtol: float | None = None,
    seed: int = 0,
) -> ParityReport:
    """Hold a layer against a `torch.nn.MultiheadAttention`, gradients included.

    - Compares the outputs with and without weights, the weights per head, and the gradients of a
      random linear loss of these for query, key, value and every parameter.
    - Both run as copies without dropout, the reference in float64 on the same numbers.
    - Inputs are batch first, whatever `reference.batch_first` says; without `query` they are drawn
      from `torch.Generator().manual_seed(seed)`.
    - Gradients share one scale, the largest of them: that of the key bias is 0 up to rounding. A
      wrong key bias cannot show: it adds one number to all scores of a query.
    - For queries without keys torch gives NaN: such a report is not ok, and says so.
    - `TypeError` for other modules, `ValueError` for sizes that differ.

    >>> import torch, mha
    >>> reference = torch.nn.MultiheadAttention(6, 2)
    >>> bool(parity(mha.MultiHeadAttention.from_torch(reference), reference, causal=True))
    True
    """
    import torch

    masks = {"allow": allow, "key_allow": key_allow, "score_bias": score_bias}
    with torch.inference_mode(False), torch.enable_grad():
        ours, theirs = _copies(layer, reference)
        inputs = _inputs(ours, query, key, value, seed)
        with torch.autocast(ours.out_proj.weight.device.type, enabled=False):
            return _report(ours, theirs, inputs, {**masks, "causal": causal}, rtol, seed)


def _copies(layer: Any, reference: Any) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    from .layer import MultiHeadAttention, read_torch

    if not isinstance(layer, MultiHeadAttention):
        raise TypeError(f"layer must be a MultiHeadAttention, got {type(layer).__name__}")
    read_torch(reference)  # raises for what has no counterpart
    ours, theirs = layer.widths, (reference.embed_dim, reference.kdim, reference.vdim)
    if ours != theirs:
        raise ValueError(f"(d_model, kdim, vdim) of layer and reference: {ours} and {theirs}")
    layer, reference = copy.deepcopy(layer), copy.deepcopy(reference).double().train()
    layer.dropout = reference.dropout = 0.0
    reference.batch_first = True
    return layer.requires_grad_(), reference.requires_grad_()


def _inputs(layer: Any, query: Any, key: Any, value: Any, seed: int) -> tuple[Tensor, ...]:
    """What was given, or random numbers: cross-attention if the widths differ."""
    import torch

    if query is not None:
        return self_or_cross(query, key, value)
    if key is not None or value is not None:
        raise TypeError("key and value need a query, got none")
    generator, like = torch.Generator().manual_seed(seed), layer.q_proj.weight
    d_model, kdim, vdim = layer.widths
    sizes = [(2, 5, d_model), (2, 7, kdim), (2, 7, vdim)]
    query, key, value = (torch.randn(size, generator=generator).to(like) for size in sizes)
    return (query, query, query) if d_model == kdim == vdim else (query, key, value)


def _report(
    ours: Any, theirs: Any, inputs: Any, masks: dict[str, Any], rtol: float | None, seed: int
) -> ParityReport:
    actual = _results(ours, inputs, masks, seed)
    options = {"attn_mask": _attn_mask(theirs, inputs, masks), "average_attn_weights": False}
    expected = _results(theirs, [x.double() for x in inputs], options, seed)
    gradients = [x for name, x in expected.items() if name.startswith("gradient")]
    largest = max(_largest(_numbers(x)[0]) for x in gradients)
    rows = []
    for name in actual | expected:
        scale = largest if name.startswith("gradient") else None
        pair = actual.get(name), expected.get(name)
        rows.append(compare(*pair, rtol=rtol, scale=scale, name=name))
    return ParityReport(tuple(rows))


def _attn_mask(layer: Any, inputs: Any, masks: dict[str, Any]) -> Tensor | None:
    """All masks as the one that torch adds to the scores, (B*H, L, S) in float64."""
    import torch

    from .layer import torch_masks

    query, key, _ = inputs
    *batch, L, _ = query.shape
    scores = query.new_zeros(*batch, layer.num_heads, L, key.shape[-2])  # (B, H, L, S)
    allowed, bias, _ = torch_masks(scores, key, True, **masks, batched=bool(batch))
    if allowed is None:
        return None
    added = scores if bias is None else scores + bias
    return torch.where(allowed, added.double(), -math.inf).flatten(0, -3)  # (B*H, L, S)


def _results(module: Any, inputs: Any, options: dict[str, Any], seed: int) -> dict[str, Tensor]:
    """Outputs, weights and gradients, by name; the loss has numbers that every dtype can hold."""
    import torch

    from .layer import rename

    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    output, weights = module(*leaves, **options)
    lean, _ = module(*leaves, need_weights=False, **options)
    results = {"output": output, "output without weights": lean, "weights": weights}
    generator = torch.Generator().manual_seed(seed)
    loss = [torch.randint(-9, 9, x.shape, generator=generator).to(x) for x in results.values()]
    parameters = dict(module.named_parameters())
    wanted = [*leaves, *parameters.values()]
    found = iter(torch.autograd.grad([*results.values()], wanted, loss, materialize_grads=True))
    gradients = {name: next(found) for name in ("query", "key", "value")}
    gradients |= rename({name: next(found) for name in parameters})
    return results | {f"gradient of {name}": x for name, x in gradients.items()}
