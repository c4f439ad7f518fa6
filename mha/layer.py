"""Multi-head attention in torch: the numbers of the NumPy half, in a layer that can be trained."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention
from torch.nn.utils import skip_init

from .functions import (
    Projections,
    causal_offset,
    check_count,
    check_heads,
    check_kv_heads,
    check_scale,
    check_shapes,
    drop_unseen,
    merge_masks,
    self_or_cross,
    share,
    unpack_qkv,
)

if TYPE_CHECKING:
    from .functions import Causal

    TorchMasks = tuple[Tensor | None, Tensor | None, bool]


def torch_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    allow: Tensor | None = None,
    score_bias: Tensor | None = None,
    causal: Causal = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
    need_weights: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """Do for tensors what `attention` does: the same shapes, masks and numbers, and gradients.

    `softmax(scale * query @ key.mT + score_bias) @ value`, with `scale = 1 / sqrt(d_k)`.

    - query `(..., L, d_k)`, key `(..., S, d_k)`, value `(..., S, d_v)` give output `(..., L, d_v)`
      and weights `(..., L, S)` in the dtype of `query`. Masks as in `attention`.
    - Dropout acts on the weights that multiply `value`; those returned are from before it.
    - `need_weights=False` gives `(output, None)` from torch's fused kernel: same output, same
      gradients. Second derivatives and forward mode need the weights; `torch.func.vmap` works on
      both paths, but warns that the kernel then runs sample by sample. The kernel adds masks to
      the scores, so scores have to be within the range of their dtype, blocked ones too.
    - `ValueError` for sizes that do not fit, `TypeError` for a wrong dtype.

    Source: Vaswani et al., *Attention Is All You Need* (2017), section 3.2.1.

    >>> query, key, value = torch.zeros(1, 1), torch.ones(2, 1), torch.tensor([[4.0], [6.0]])
    >>> torch_attention(query, key, value)
    (tensor([[5.]]), tensor([[0.5000, 0.5000]]))
    """
    _check_dropout("dropout_p", dropout_p)
    _check_tensors(query, (query, key, value), ("d_k", "d_k", "d_v"))
    check_shapes(tuple(query.shape), tuple(key.shape), tuple(value.shape))
    masks = torch_masks(query, key, need_weights, allow, score_bias, causal)
    scale = check_scale(scale, query.shape[-1])
    return _attend(query, key, value, masks, scale, dropout_p, need_weights)


class MultiHeadAttention(nn.Module):
    """Attend in H subspaces at once, with weights that can be trained.

    `concat(head_1, ..., head_H) @ W_O + b_O`; head h attends with its own `d_k = d_model / H`
    columns of the projected query, key and value.

    - Batch first. The result is always a pair: the output, and the weights per head or None. Their
      mean over heads is `weights.mean(dim=-3)`.
    - `dropout` acts in `train()` only, on the weights that multiply the values; the weights
      returned are from before it.
    - Start values: Xavier-uniform for each matrix, `±sqrt(6 / (in + out))`, and biases of zero.
      (`torch.nn.MultiheadAttention` draws q, k, v as one matrix: `±sqrt(6 / (4 * d_model))`.)
    - `num_kv_heads` lets `H / num_kv_heads` heads in a row share a key and a value, as in
      `multi_head_attention`; `k_proj` and `v_proj` are then `num_kv_heads * d_k` wide. With
      weights, `torch.export` for texts of any length then needs `strict=True`.
    - `ValueError` for a size below 1, a `d_model` that `num_heads` does not divide, a `num_heads`
      that `num_kv_heads` does not divide, a `dropout` outside `[0, 1)`; `TypeError` for a size that
      is no integer.

    Source: Vaswani et al., *Attention Is All You Need* (2017), section 3.2.2; for `num_kv_heads`
    Ainslie et al., *GQA* (2023), section 2.2.

    >>> output, weights = MultiHeadAttention(6, 2)(torch.ones(5, 3, 6), causal=True)
    >>> output.shape, weights.shape
    (torch.Size([5, 3, 6]), torch.Size([5, 2, 3, 3]))
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        kdim, vdim = d_model if kdim is None else kdim, d_model if vdim is None else vdim
        for name, size in (("d_model", d_model), ("kdim", kdim), ("vdim", vdim)):
            check_count(name, size)
        d_k = check_heads(d_model, num_heads)
        self.num_kv_heads = check_kv_heads(num_heads, num_kv_heads)
        _check_dropout("dropout", dropout)
        self.d_model, self.num_heads, self.dropout = d_model, num_heads, dropout
        self.widths = d_model, kdim, vdim
        linear = partial(nn.Linear, bias=bias, device=device, dtype=dtype)
        kv_width = self.num_kv_heads * d_k
        self.q_proj, self.k_proj = linear(d_model, d_model), linear(kdim, kv_width)
        self.v_proj, self.out_proj = linear(vdim, kv_width), linear(d_model, d_model)
        with torch.no_grad():
            for x in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
                # nn.Linear drew from ±1/sqrt(in): stretched, that is Xavier's range
                x.weight *= math.sqrt(6 / (x.in_features + x.out_features) * x.in_features)
                if bias:
                    x.bias.zero_()

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        allow: Tensor | None = None,
        key_allow: Tensor | None = None,
        score_bias: Tensor | None = None,
        causal: Causal = False,
        need_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Output `(B, L, d_model)`, and weights `(B, H, L, S)` or None.

        query `(B, L, d_model)`, key `(B, S, kdim)`, value `(B, S, vdim)`, or all of them without
        `B`; neither key nor value means self-attention. Masks as in `multi_head_attention`.
        """
        query, key, value = self_or_cross(query, key, value)
        q_proj, d_k = self.q_proj, self.d_model // self.num_heads
        if not _is_plain_self_attention(q_proj.weight, query, key, value, self.widths):
            _check_tensors(q_proj.weight, (query, key, value), self.widths, mixed=True)
            check_shapes(tuple(query.shape), tuple(key.shape), tuple(value.shape), self.widths)
        q = _heads(q_proj(query), d_k)  # (B, H, L, d_k)
        masks = torch_masks(q, key, need_weights, allow, score_bias, causal, key_allow, q.ndim == 4)
        if masks[0] is not None:  # what padding holds, NaN too, reaches no gradient
            seen = masks[0].any(-3) if masks[0].ndim > 2 else masks[0]  # (B, L, S)
            seen = seen.any(-2)[..., None]  # (B, S, 1)
            # Finite numbers stay: heads on other processes may see what those here do not.
            key, value = (torch.where(seen, x, x.nan_to_num(0, 0, 0)) for x in (key, value))
        k = _heads(self.k_proj(key), d_k)  # (B, H_kv, S, d_k)
        v = _heads(self.v_proj(value), d_k)  # (B, H_kv, S, d_k)
        self._check_groups(q.shape[-3], k.shape[-3], v.shape[-3])
        dropout_p = self.dropout if self.training else 0.0
        context, weights = _attend(q, k, v, masks, d_k**-0.5, dropout_p, need_weights)
        merged = context.transpose(-3, -2).flatten(-2)  # (B, L, d_model)
        return self.out_proj(merged), weights

    def _check_groups(self, H: int, H_k: int, H_v: int) -> None:
        """Does this process hold the keys of its own heads? On one process it always does."""
        wanted = 1 if self.num_kv_heads == 1 else H * self.num_kv_heads / self.num_heads
        if not H_k == H_v == wanted:
            raise ValueError(
                f"{H} of {self.num_heads} heads need {wanted:g} of {self.num_kv_heads} keys and "
                f"values here, got {H_k} and {H_v}: cut k_proj and v_proj as q_proj"
            )

    @classmethod
    def from_torch(cls, source: nn.MultiheadAttention) -> MultiHeadAttention:
        """Make a layer with the numbers of a `torch.nn.MultiheadAttention`.

        - Reads torch's packed matrix in "block" layout: all of q, then all of k, then all of v.
        - Takes over sizes, number of heads, dropout, bias or none, dtype, device and mode; batch
          first, whatever the source is. The parameters are copies, and trainable.
        - `TypeError` for another module; `ValueError` for what has no counterpart here
          (`add_bias_kv`, `add_zero_attn`, parameters of your own).

        >>> MultiHeadAttention.from_torch(nn.MultiheadAttention(6, 2)).q_proj.weight.shape
        torch.Size([6, 6])
        """
        tensors = read_torch(source)
        layer: MultiHeadAttention = skip_init(  # type: ignore[no-untyped-call]
            cls,
            source.embed_dim,
            source.num_heads,
            kdim=source.kdim,
            vdim=source.vdim,
            bias="q_proj.bias" in tensors or "out_proj.bias" in tensors,
            dropout=source.dropout,
            device=source.out_proj.weight.device,
            dtype=source.out_proj.weight.dtype,
        )
        _copy(tensors, _parameters(layer))
        return layer.train(source.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Make a `torch.nn.MultiheadAttention(batch_first=True)` with the numbers of this layer.

        `from_torch(layer.to_torch())` gives every parameter back bit for bit. `ValueError` for a
        layer whose heads share keys: torch's module has none.

        >>> MultiHeadAttention(6, 2).to_torch().in_proj_weight.shape
        torch.Size([18, 6])
        """
        if self.num_kv_heads != self.num_heads:
            given = f"num_heads={self.num_heads} and num_kv_heads={self.num_kv_heads}"
            raise ValueError(f"torch.nn.MultiheadAttention has a key for every head, not {given}")
        target: nn.MultiheadAttention = skip_init(  # type: ignore[no-untyped-call]
            nn.MultiheadAttention,
            self.d_model,
            self.num_heads,
            kdim=self.widths[1],
            vdim=self.widths[2],
            bias=self.out_proj.bias is not None,
            dropout=self.dropout,
            batch_first=True,
            device=self.out_proj.weight.device,
            dtype=self.out_proj.weight.dtype,
        )
        with torch.no_grad():  # what is read are views: writing to them fills the packed matrix
            _copy(_parameters(self), read_torch(target))
        return target.train(self.training)

    def to_numpy(self) -> Projections:
        """Copy the matrices, transposed, for `multi_head_attention`; bfloat16 becomes float32.

        >>> MultiHeadAttention(6, 2, kdim=5).to_numpy().w_k.shape
        (5, 6)
        """
        arrays = {}
        for name, parameter in _parameters(self).items():
            projection, kind = name.split(".")  # "q_proj.weight" becomes w_q
            x = parameter.detach().cpu()
            x = x.float() if x.dtype == torch.bfloat16 else x
            arrays[f"{kind[0]}_{projection[0]}"] = np.array(x.numpy().T)  # (in, out)
        return Projections(**arrays)


def masks_from_torch(
    attn_mask: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    *,
    num_heads: int | None = None,
) -> dict[str, Tensor]:
    """Translate masks of `torch.nn.MultiheadAttention`: `layer(x, **masks_from_torch(...))`.

    - A bool `attn_mask`, where True *blocks*, becomes `allow`, a bool `key_padding_mask` becomes
      `key_allow`, a float one of either kind joins `score_bias`; only what is needed is there.
    - `attn_mask` is `(L, S)`, or `(B*H, L, S)` with slice `b*H + h` for head h of sample b: this
      needs `num_heads` and becomes `(B, H, L, S)`. `key_padding_mask` is `(B, S)` or `(S,)`.
    - `UserWarning` for a float mask of zeros and ones, `TypeError` for integers or a missing
      `num_heads`, `ValueError` for sizes that do not fit.

    Source: `forward` in the documentation of `torch.nn.MultiheadAttention`.

    >>> masks_from_torch(torch.tensor([[False, True], [False, False]]))
    {'allow': tensor([[ True, False],
            [ True,  True]])}
    """
    masks: dict[str, Tensor] = {}
    if attn_mask is not None:
        _check_torch_mask("attn_mask", attn_mask, (2, 3))
        if attn_mask.ndim == 3:
            H: Any = num_heads
            check_count("num_heads", H)
            if len(attn_mask) % H:
                raise ValueError(f"attn_mask has {len(attn_mask)} slices, not B * num_heads={H}")
            attn_mask = attn_mask.reshape(len(attn_mask) // H, H, *attn_mask.shape[1:])
        blocks = attn_mask.dtype == torch.bool
        masks = {"allow": ~attn_mask} if blocks else {"score_bias": attn_mask}
    if key_padding_mask is not None:
        _check_torch_mask("key_padding_mask", key_padding_mask, (1, 2))
        if key_padding_mask.dtype == torch.bool:
            masks["key_allow"] = ~key_padding_mask
        else:
            masks["score_bias"] = _join(masks.get("score_bias"), key_padding_mask)
    return masks


def _check_torch_mask(name: str, mask: Tensor, ranks: tuple[int, int]) -> None:
    if not isinstance(mask, Tensor) or (mask.dtype != torch.bool and not mask.is_floating_point()):
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"{name} must be a bool or floating point tensor, got {got}")
    if mask.ndim not in ranks:
        raise ValueError(f"{name} must have {ranks[0]} or {ranks[1]} axes, got {tuple(mask.shape)}")
    if mask.dtype != torch.bool and bool((mask == 1).any() and ((mask == 0) | (mask == 1)).all()):
        message = "a float mask of zeros and ones is added to the scores and hides nothing"
        warnings.warn(f"{name}: {message}", stacklevel=3)


def _join(bias: Tensor | None, padding: Tensor) -> Tensor:
    """The sum of two float masks; blocked where one of them blocks."""
    columns = padding[..., None, :]  # (B, 1, S), unbatched (1, S)
    if bias is None:
        return columns
    columns = columns[..., None, :, :] if bias.ndim == 4 else columns  # (B, 1, 1, S)
    try:
        blocked = (bias == -math.inf) | (columns == -math.inf)
    except RuntimeError as error:
        sizes = f"{tuple(bias.shape)} and {tuple(padding.shape)}"
        raise ValueError(f"attn_mask and key_padding_mask do not fit: got {sizes}") from error
    return torch.where(blocked, -math.inf, bias + columns)


def read_torch(source: nn.MultiheadAttention) -> dict[str, Tensor]:
    """The parameters of torch's module under the names of this layer."""
    if not isinstance(source, nn.MultiheadAttention):
        raise TypeError(f"expected a torch.nn.MultiheadAttention, got {type(source).__name__}")
    options = {"add_bias_kv": source.bias_k is not None, "add_zero_attn": source.add_zero_attn}
    for option, given in options.items():
        if given:
            raise ValueError(f"this layer has no {option}, but the source has")
    return rename(_parameters(source))


def rename(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Parameters, or their gradients: torch's packed ones are cut and named as in this layer."""
    renamed: dict[str, Tensor] = {}
    for name, x in tensors.items():
        if name.startswith("in_proj_"):  # (3*d_model, ...)
            names = (f"{letter}_proj.{name.removeprefix('in_proj_')}" for letter in "qkv")
            renamed |= zip(names, unpack_qkv(x), strict=True)
        else:
            renamed[name.replace("_proj_weight", "_proj.weight")] = x
    known = {f"{p}_proj.{kind}" for p in ("q", "k", "v", "out") for kind in ("weight", "bias")}
    if renamed.keys() - known:
        raise ValueError(f"this layer has no {sorted(renamed.keys() - known)}, but the source has")
    return renamed


def _parameters(module: nn.Module) -> dict[str, Tensor]:
    return dict(module.named_parameters(remove_duplicate=False))  # tied ones count twice


def _copy(source: dict[str, Tensor], target: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, x in target.items():
            if name in source or name.endswith("weight"):
                x.copy_(source[name])
            else:  # a missing bias is one of zeros
                x.zero_()


def _heads(x: Tensor, d_k: int) -> Tensor:
    """Split by width, not by number: a shard of the projections holds a share of the heads."""
    *lead, width = x.shape
    if width % d_k:
        raise ValueError(f"expected whole heads of d_k={d_k}, got {width} columns")
    return x.view(*lead, width // d_k, d_k).transpose(-3, -2)  # (..., H, L, d_k)


def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masks: TorchMasks,
    scale: float,
    dropout_p: float,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    if autocasts(query):  # it would round the float32 scores of half-precision input
        with torch.autocast(query.device.type, enabled=False):
            return _attend(query, key, value, masks, scale, dropout_p, need_weights)
    kernel = _formula if need_weights else _fused
    allowed, bias, is_causal = masks
    if allowed is None:
        return kernel(query, key, value, masks, scale, dropout_p)
    rows = allowed.any(-1, keepdim=True)  # (..., L, 1)
    query = torch.where(rows, query, 0.0)
    key, value = drop_unseen(torch.where, allowed, key, value)
    bias = None if bias is None else torch.where(allowed, bias, 0.0)
    # A query without keys sees all of them for now: no NaN arises, and its result is dropped.
    masks = allowed | ~rows, bias, is_causal
    output, weights = kernel(query, key, value, masks, scale, dropout_p)
    output = torch.where(rows, output, 0.0)
    return output, None if weights is None else torch.where(rows, weights, 0.0)


def _formula(
    query: Tensor, key: Tensor, value: Tensor, masks: TorchMasks, scale: float, dropout_p: float
) -> tuple[Tensor, Tensor | None]:
    allowed, bias, _ = masks
    work = torch.promote_types(query.dtype, torch.float32)
    scores = share(query.to(work) * scale, key) @ key.to(work).mT
    scores = scores.reshape(*query.shape[:-1], key.shape[-2])  # (..., L, S)
    if bias is not None:
        scores = scores + bias
    if allowed is not None:
        scores = torch.where(allowed, scores, -math.inf)
    weights = _softmax(scores)  # (..., L, S)
    context = share(dropout(weights, dropout_p), value) @ value.to(work)
    context = context.reshape(*query.shape[:-1], value.shape[-1])  # (..., L, d_v)
    return context.to(query.dtype), weights.to(query.dtype)


def _softmax(scores: Tensor) -> Tensor:
    """In place where no gradient flows: to ask for memory takes longer than to compute."""
    if scores.requires_grad or torch.compiler.is_compiling():
        return torch.softmax(scores, -1)
    try:
        return torch.softmax(scores, -1, out=scores)
    except RuntimeError:  # torch.func and forward mode cannot
        return torch.softmax(scores, -1)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, masks: TorchMasks, scale: float, dropout_p: float
) -> tuple[Tensor, Tensor | None]:
    mask, bias, is_causal = masks
    if mask is not None and bias is not None:
        mask = torch.where(mask, bias, -math.inf)
    if query.ndim != 4:  # the kernel is slow for any other number of axes
        lead = query.shape[:-2]
        if mask is not None and mask.ndim > 2:
            mask = mask.expand(*lead, *mask.shape[-2:])
        query, key, value, mask = (_four_axes(x) for x in (query, key, value, mask))
        output, _ = _fused(query, key, value, (mask, None, is_causal), scale, dropout_p)
        return output.reshape(*lead, *output.shape[2:]), None  # (..., L, d_v)
    shared = key.shape[1] < query.shape[1]
    output = scaled_dot_product_attention(
        query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=shared
    )
    return output, None


def _four_axes(x: Any) -> Any:
    return None if x is None else x[None, None].flatten(0, -4)


def autocasts(x: Tensor) -> bool:
    """Whether autocast is on; the meta device has none."""
    if x.is_cpu:  # the type of a device takes long to spell
        return torch.is_autocast_enabled("cpu")
    device = x.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def torch_masks(
    query: Tensor,
    key: Tensor,
    need_weights: bool,
    allow: Tensor | None,
    score_bias: Tensor | None,
    causal: Causal,
    key_allow: Tensor | None = None,
    batched: bool = False,
) -> TorchMasks:
    """What is allowed, the bias, and whether torch's kernel makes the causal mask itself."""
    if allow is score_bias is key_allow is None:
        if causal is False:
            return None, None, False
        if causal is True and not need_weights:
            causal_offset(causal, query.shape[-2], key.shape[-2])
            return None, None, True

    def triangle(L: int, S: int, offset: int) -> Tensor:
        return torch.ones(L, S, dtype=torch.bool, device=query.device).tril(offset)

    convert, shape = partial(_mask, query), (*query.shape[:-1], key.shape[-2])  # (..., L, S)
    masks = merge_masks(shape, convert, triangle, allow, score_bias, causal, key_allow, batched)
    return *masks, False


def _mask(query: Tensor, name: str, mask: Tensor) -> Tensor:
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(mask).__name__}")
    legal = mask.is_floating_point() if name == "score_bias" else mask.dtype == torch.bool
    if not legal:
        kind = "floating point" if name == "score_bias" else "torch.bool"
        raise TypeError(f"{name} must be {kind}, got {mask.dtype}")
    if mask.device != query.device:
        raise ValueError(f"{name} must be on {query.device}, got {mask.device}")
    return mask.to(query.dtype) if name == "score_bias" else mask


def _is_plain_self_attention(
    like: Tensor, query: Tensor, key: Tensor, value: Tensor, widths: Any
) -> bool:
    """Whether it is self-attention with nothing amiss: with a few tokens, longer checks show."""
    return (
        query is key is value
        and isinstance(query, Tensor)
        and query.dtype == like.dtype
        and query.device == like.device
        and query.is_floating_point()
        and query.ndim == 3
        and (query.shape[2],) * 3 == widths
    )


def _check_tensors(
    like: Tensor, qkv: tuple[Tensor, ...], widths: tuple[object, ...], mixed: bool = False
) -> None:
    """Tensors of one dtype (`mixed`: unless autocast rounds them), on one device."""
    for name, x, width in zip(("query", "key", "value"), qkv, widths, strict=True):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a tensor, got {type(x).__name__}")
        if not x.is_floating_point():
            got = f"{x.dtype} in shape {tuple(x.shape)}"
            raise TypeError(f"{name} must be floating point, of width {width}, got {got}")
        if x.dtype != like.dtype and not (mixed and autocasts(x)):
            raise TypeError(f"{name} must be {like.dtype}, got {x.dtype}")
        if x.device != like.device:
            raise ValueError(f"{name} must be on {like.device}, got {x.device}")


def _check_dropout(name: str, p: float) -> None:
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {p}")
