# --8<-- [start:grid]
import contextlib
import csv
import itertools
import math
import sys
from typing import NamedTuple

import torch
from torch.nn.functional import linear, scaled_dot_product_attention

import mha

B, L, S, KDIM, VDIM = 3, 5, 7, 11, 13
SIZES = (19, 1), (38, 2), (34, 17)
INPUTS = {"self": (L, 0, 0), "cross": (S, 0, 0), "kdim/vdim": (S, KDIM, VDIM)}
MASKS = "none", "causal", "padding", "causal+padding", "additive"
NO_KEYS = "allow+additive", "causal+left", "lower_right"
MODES = {
    "train": contextlib.nullcontext,
    "eval": contextlib.nullcontext,
    "inference": torch.inference_mode,
}
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-5}


class Cell(NamedTuple):
    against: str
    dtype: str
    d_model: int
    H: int
    inputs: str
    mask: str
    batch: bool
    mode: str
    need_weights: str
    arrays: int
    error: float
    limit: float


# --8<-- [end:grid]


# --8<-- [start:problem]
def problem(dtype, d_model, H, inputs, mask, batch):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=generator).to(dtype)

    n, kdim, vdim = INPUTS[inputs]
    layer = mha.MultiHeadAttention(
        d_model, H, kdim=kdim or None, vdim=vdim or None, dtype=dtype
    )
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(normal(*p.shape) / p.shape[-1] ** 0.5)
    sizes = (L, d_model), (n, kdim or d_model), (n, vdim or d_model)
    xs = [normal(B, *size) for size in sizes][: 1 if inputs == "self" else 3]
    keep = normal(B, n) > -0.5  # (B, n)
    keep[:, 0] = True
    left = torch.arange(n) >= torch.tensor([[2], [0], [n]])  # (B, n)
    bias = normal(B, H, L, n)
    bias = bias.masked_fill(bias < -1, -math.inf)  # (B, H, L, n)
    bias[..., 0] = 0.0
    allow = torch.ones(B, H, L, n, dtype=torch.bool)
    allow[0], allow[1, :, 2], allow[2, 0, 1:3] = False, False, False
    causal = True if inputs == "self" else "upper_left"
    masks = {
        "none": {},
        "causal": {"causal": causal},
        "padding": {"key_allow": keep},
        "causal+padding": {"causal": causal, "key_allow": keep},
        "additive": {"score_bias": bias},
        "allow+additive": {"allow": allow, "score_bias": bias},
        "causal+left": {"causal": causal, "key_allow": left},
        "lower_right": {"causal": "lower_right", "allow": allow[:, 0]},
    }[mask]
    if not batch:
        xs = [x[2] for x in xs]
        masks = {k: m if k == "causal" else m[2] for k, m in masks.items()}
    return layer, xs, masks


def cell(against, dtype, setting, need_weights, rows):
    errors = [r.max_error / r.tolerance if r.tolerance else r.max_error for r in rows]
    limit = LIMITS[dtype]
    error = limit * max(e if e == e else math.inf for e in errors)
    name = str(dtype).removeprefix("torch.")
    return Cell(against, name, *setting, str(need_weights), len(rows), error, limit)


# --8<-- [end:problem]


# --8<-- [start:module]
def against_module(dtype, *setting):
    layer, xs, masks = problem(dtype, *setting)
    reference = layer.to_torch()
    for mode in ("train", "eval"):
        rows = mha.parity(layer.train(mode == "train"), reference, *xs, **masks).rows
        yield cell("nn.MultiheadAttention", dtype, (*setting, mode), "both", rows)
    # eval and no gradients: the reference takes its fast path
    doubles = [x.double() for x in xs]
    full = doubles if len(doubles) == 3 else doubles * 3
    options = {"attn_mask": table(layer, xs, masks).flatten(0, -3)} if masks else {}
    with torch.inference_mode():
        theirs = reference.double().eval()
        expected = [*theirs(*full, **options, average_attn_weights=False)]
        expected.append(theirs(*full, **options, need_weights=False)[0])
        found = [*layer(*xs, **masks), layer(*xs, **masks, need_weights=False)[0]]
    rows = [mha.compare(*pair) for pair in zip(found, expected, strict=True)]
    yield cell("nn.MultiheadAttention", dtype, (*setting, "inference"), "both", rows)


# --8<-- [end:module]


# --8<-- [start:kernel]
def table(layer, xs, masks):
    n, batch = xs[-1].shape[-2], xs[0].shape[:-2]
    added = torch.zeros(*batch, layer.num_heads, L, n, dtype=torch.float64)
    if "score_bias" in masks:
        added += masks["score_bias"]
    if "allow" in masks:
        allow = masks["allow"]
        allow = allow if allow.ndim == added.ndim else allow.unsqueeze(-3)
        added = added.masked_fill(~allow, -math.inf)
    if "key_allow" in masks:
        added = added.masked_fill(~masks["key_allow"][..., None, None, :], -math.inf)
    if "causal" in masks:
        offset = n - L if masks["causal"] == "lower_right" else 0
        added += torch.full((L, n), -math.inf, dtype=torch.float64).triu(1 + offset)
    return added  # (B, H, L, n)


def kernel(layer, xs, mask):
    names = "q_proj", "k_proj", "v_proj"
    q, k, v = (
        linear(x, layer.get_parameter(f"{n}.weight"), layer.get_parameter(f"{n}.bias"))
        .unflatten(-1, (layer.num_heads, -1))
        .movedim(-2, -3)  # (B, H, L, d_k)
        for n, x in zip(names, xs, strict=True)
    )
    eye = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], -1)
    context = scaled_dot_product_attention(q, k, v, mask)
    weights = scaled_dot_product_attention(q, k, eye, mask)  # (B, H, L, n)
    o = layer.out_proj
    return linear(context.movedim(-3, -2).flatten(-2), o.weight, o.bias), weights


def gradients(results, leaves):
    generator = torch.Generator().manual_seed(1)
    loss = [torch.randn(x.shape, generator=generator).to(x) for x in results]
    return torch.autograd.grad(results, leaves, loss, retain_graph=True, materialize_grads=True)


def against_kernel(dtype, *setting):
    layer, xs, masks = problem(dtype, *setting)
    truth = problem(dtype, *setting)[0].double()
    leaves = [x.double().requires_grad_() for x in xs]
    full = leaves if len(leaves) == 3 else leaves * 3
    expected = kernel(truth, full, table(layer, xs, masks))
    inputs = [*leaves, *truth.parameters()]
    wanted = {n: gradients(expected[:n], inputs) for n in (1, 2)}
    for (mode, context), need_weights in itertools.product(MODES.items(), (True, False)):
        layer.train(mode == "train")
        own = [x.clone().requires_grad_() for x in xs]
        with context():
            found = layer(*own, **masks, need_weights=need_weights)
        found = found if need_weights else found[:1]
        rows = [mha.compare(*pair) for pair in zip(found, expected, strict=False)]
        if mode != "inference":
            want, got = wanted[len(found)], gradients(found, [*own, *layer.parameters()])
            scale = max(float(x.abs().max()) for x in want)
            rows += [mha.compare(*pair, scale=scale) for pair in zip(got, want, strict=True)]
        yield cell(
            "scaled_dot_product_attention", dtype, (*setting, mode), need_weights, rows
        )


# --8<-- [end:kernel]


# --8<-- [start:oracle]
def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def affine(x, layer):
    weight, bias = layer.weight.tolist(), layer.bias.tolist()
    return [[dot(row, w) + b for w, b in zip(weight, bias, strict=True)] for row in x.tolist()]


def softmax(row):
    top = max(row)
    if top == -math.inf:
        return [0.0 for _ in row]
    exps = [math.exp(x - top) for x in row]
    total = math.fsum(exps)
    return [e / total for e in exps]


def oracle(layer, query, key, value, added):
    q, k, v = (
        affine(x, p)
        for x, p in (
            (query, layer.q_proj),
            (key, layer.k_proj),
            (value, layer.v_proj),
        )
    )
    d_k = layer.d_model // layer.num_heads
    weights, context = [], [[] for _ in q]
    for h, mask in enumerate(added.tolist()):
        own = slice(h * d_k, (h + 1) * d_k)
        head = [
            softmax([dot(a[own], b[own]) / d_k**0.5 + m for b, m in zip(k, row, strict=True)])
            for a, row in zip(q, mask, strict=True)
        ]
        columns = list(zip(*(b[own] for b in v), strict=True))
        for row, w in zip(context, head, strict=True):
            row += [dot(w, column) for column in columns]
        weights.append(head)
    output = affine(added.new_tensor(context), layer.out_proj)
    return added.new_tensor(output), added.new_tensor(weights)


def against_oracle(dtype, *setting):
    layer, xs, masks = problem(dtype, *setting)
    full = xs if len(xs) == 3 else xs * 3
    added = table(layer, xs, masks)
    truth = problem(dtype, *setting)[0].double()
    if xs[0].ndim == 3:
        samples = [oracle(truth, *s) for s in zip(*full, added, strict=True)]
        expected = [torch.stack(parts) for parts in zip(*samples, strict=True)]
    else:
        expected = oracle(truth, *full, added)
    for (mode, context), need_weights in itertools.product(MODES.items(), (True, False)):
        layer.train(mode == "train")
        with context():
            found = layer(*xs, **masks, need_weights=need_weights)
        found = found if need_weights else found[:1]
        rows = [mha.compare(*pair, scale=1.0) for pair in zip(found, expected, strict=False)]
        yield cell("oracle", dtype, (*setting, mode), need_weights, rows)


# --8<-- [end:oracle]


# --8<-- [start:cells]
def cells():
    found = []
    for against, masks in (
        (against_module, MASKS),
        (against_kernel, MASKS + NO_KEYS),
        (against_oracle, NO_KEYS),
    ):
        for dtype, size, inputs, mask, batch in itertools.product(
            LIMITS, SIZES, INPUTS, masks, (True, False)
        ):
            found += against(dtype, *size, inputs, mask, batch)
    return found


def columns(group):
    return list(dict.fromkeys((c.batch, c.mode, c.need_weights) for c in group))


def show(group):
    heads = columns(group)
    print(group[0].against, group[0].dtype)
    for i, name in enumerate(("batch", "mode", "need_weights")):
        print(f"{name:30}" + "".join(f"{str(head[i])[:5]:>6}" for head in heads))
    rows = {}
    for c in group:
        label = f"{c.d_model:>3} {c.H:>2} {c.inputs:9} {c.mask:14}"
        rows.setdefault(label, {})[c.batch, c.mode, c.need_weights] = f"{c.error:6.0e}"
    for label, row in rows.items():
        print(label + "".join(row[head] for head in heads))
    print()


def main():
    torch.set_num_threads(1)  # quicker for arrays as small as these
    found = cells()
    wrong = sum(not c.error <= c.limit for c in found)
    if "--csv" in sys.argv:
        short = (c._replace(error=f"{c.error:.1e}") for c in found)
        csv.writer(sys.stdout, lineterminator="\n").writerows([Cell._fields, *short])
        return min(wrong, 1)
    groups = {}
    for c in found:
        groups.setdefault((c.against, c.dtype), []).append(c)
    for group in groups.values():
        show(group)
    print(f"{'against':30}{'dtype':9}{'cells':>6}{'arrays':>8}{'error':>10}{'limit':>8}")
    for (against, dtype), group in groups.items():
        largest, arrays = max(c.error for c in group), sum(c.arrays for c in group)
        print(
            f"{against:30}{dtype:9}{len(group):6}{arrays:8}{largest:10.1e}{group[0].limit:8.0e}"
        )
    print(f"{'':39}{len(found):6}{wrong:8}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
# --8<-- [end:cells]
