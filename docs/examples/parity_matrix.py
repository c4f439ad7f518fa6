# --8<-- [start:grid]
import contextlib
import csv
import functools
import itertools
import math
import operator
import sys
from typing import NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention

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
@functools.lru_cache(1)
def problem(dtype, d_model, H, inputs):
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
    return layer, xs, mask_kinds(normal, H, n, True if inputs == "self" else "upper_left")


def mask_kinds(normal, H, n, causal):
    keep = normal(B, n) > -0.5  # (B, n)
    keep[:, 0] = True
    left = torch.arange(n) >= torch.tensor([[2], [0], [n]])  # (B, n)
    bias = normal(B, H, L, n)
    bias = bias.masked_fill(bias < -1, -math.inf)  # (B, H, L, n)
    bias[..., 0] = 0.0
    allow = torch.ones(B, H, L, n, dtype=torch.bool)
    allow[0], allow[1, :, 2], allow[2, 0, 1:3] = False, False, False
    return {
        "none": {},
        "causal": {"causal": causal},
        "padding": {"key_allow": keep},
        "causal+padding": {"causal": causal, "key_allow": keep},
        "additive": {"score_bias": bias},
        "allow+additive": {"allow": allow, "score_bias": bias},
        "causal+left": {"causal": causal, "key_allow": left},
        "lower_right": {"causal": "lower_right", "allow": allow[:, 0]},
    }


def sample(x, batch):
    return x if batch else x[2]


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


# --8<-- [end:problem]


# --8<-- [start:runs]
def arguments(dtype, *setting):
    *size, inputs, mask, batch = setting
    layer, xs, masks = problem(dtype, *size, inputs)
    masks = {  # copies: what a layer writes into them must not reach the truth
        k: m if k == "causal" else sample(m, batch).clone() for k, m in masks[mask].items()
    }
    return layer, [sample(x, batch) for x in xs], masks


def gradients(results, leaves, batch=True):
    generator = torch.Generator().manual_seed(1)
    loss = []
    for x, axes in zip(results, (2, 3), strict=False):  # (B, L, d_model), (B, H, L, n)
        draws = torch.randn(B, *x.shape[-axes:], generator=generator).to(x.dtype)
        loss.append(sample(draws, batch).expand_as(x))
    return torch.autograd.grad(results, leaves, loss, retain_graph=True, materialize_grads=True)


@functools.lru_cache(1)
def runs(dtype, *setting):
    layer, xs, masks = arguments(dtype, *setting)
    found = []
    for (mode, context), need_weights in itertools.product(MODES.items(), (True, False)):
        layer.train(mode == "train")
        own = [x.clone().requires_grad_() for x in xs]
        with context():
            results = layer(*own, **masks, need_weights=need_weights)[: 1 + need_weights]
        leaves = [*own, *layer.parameters()]
        slopes = () if mode == "inference" else gradients(results, leaves, setting[-1])
        found.append((mode, need_weights, results, slopes))
    return found


def cell(against, dtype, setting, need_weights, rows):
    errors = [r.max_error / r.tolerance if r.tolerance else r.max_error for r in rows]
    limit = LIMITS[dtype]
    error = limit * max(e if e == e else math.inf for e in errors)
    name = str(dtype).removeprefix("torch.")
    return Cell(against, name, *setting, str(need_weights), len(rows), error, limit)


# --8<-- [end:runs]


# --8<-- [start:module]
@functools.lru_cache(1)
def module(layer):
    return layer.to_torch().double().eval()


def against_module(dtype, *setting):
    layer, xs, masks = arguments(dtype, *setting)
    reference = module(layer)
    for mode in ("train", "eval"):
        rows = mha.parity(layer.train(mode == "train"), reference, *xs, **masks).rows
        yield cell("nn.MultiheadAttention", dtype, (*setting, mode), "both", rows)
    # eval and no gradients: the reference takes its fast path
    doubles = [x.double() for x in xs]
    full = doubles if len(doubles) == 3 else doubles * 3
    options = {"attn_mask": table(layer, xs, masks).flatten(0, -3)} if masks else {}
    with torch.inference_mode():
        expected = [*reference(*full, **options, average_attn_weights=False)]
        expected.append(reference(*full, **options, need_weights=False)[0])
    (*_, found, _), (*_, lean, _) = runs(dtype, *setting)[-2:]
    rows = [mha.compare(*pair) for pair in zip((*found, *lean), expected, strict=True)]
    yield cell("nn.MultiheadAttention", dtype, (*setting, "inference"), "both", rows)


# --8<-- [end:module]


# --8<-- [start:kernel]
def kernel(xs, weights, biases, H, added):
    q, k, v = (
        (x @ w.mT + b.unsqueeze(-2)).unflatten(-1, (H, -1)).movedim(-2, -3).flatten(0, 1)
        for x, w, b in zip(xs, weights[:3], biases[:3], strict=True)
    )  # (8*B, H, L, d_k)
    eye = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], -1)
    context, shares = (
        scaled_dot_product_attention(q, k, x, added).unflatten(0, (-1, B)) for x in (v, eye)
    )  # (8, B, H, L, d_k), (8, B, H, L, n)
    merged = context.movedim(-3, -2).flatten(-2)  # (8, B, L, d_model)
    return merged @ weights[3].mT + biases[3].unsqueeze(-2), shares


@functools.lru_cache(1)
def every_mask(dtype, *size_and_inputs):
    layer, xs, masks = problem(dtype, *size_and_inputs)
    # each mask and sample has inputs and parameters of its own: so they get gradients of their own
    own = [x.double().expand(len(masks), *x.shape).requires_grad_() for x in xs]
    parameters = [
        p.detach().double().expand(len(masks), B, *p.shape).requires_grad_()
        for p in layer.parameters()
    ]
    added = torch.cat([table(layer, xs, m) for m in masks.values()])  # (8*B, H, L, n)
    full = own if len(own) == 3 else own * 3
    results = kernel(full, parameters[::2], parameters[1::2], layer.num_heads, added)
    return results, {n: gradients(results[:n], [*own, *parameters]) for n in (1, 2)}


def against_kernel(dtype, *setting):
    *size_and_inputs, mask, batch = setting
    i = (MASKS + NO_KEYS).index(mask)
    results, slopes = every_mask(dtype, *size_and_inputs)
    expected = [sample(x[i], batch) for x in results]
    wanted = {n: [sample(x[i], batch) for x in xs] for n, xs in slopes.items()}
    for xs in wanted.values() if batch else ():  # what the parameters get from all samples
        xs[-8:] = [x.sum(0) for x in xs[-8:]]
    for mode, need_weights, found, got in runs(dtype, *setting):
        rows = [mha.compare(*pair) for pair in zip(found, expected, strict=False)]
        if mode != "inference":
            want = wanted[len(found)]
            scale = max(float(x.abs().max()) for x in want)
            rows += [mha.compare(*pair, scale=scale) for pair in zip(got, want, strict=True)]
        yield cell(
            "scaled_dot_product_attention", dtype, (*setting, mode), need_weights, rows
        )


# --8<-- [end:kernel]


# --8<-- [start:oracle]
def dot(a, b):
    return math.fsum(itertools.starmap(operator.mul, zip(a, b, strict=True)))


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


def attend(layer, q, k, v, added):
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


@functools.lru_cache(1)
def oracle(dtype, *size_and_inputs):
    layer, xs, masks = problem(dtype, *size_and_inputs)
    full = xs if len(xs) == 3 else xs * 3
    projections = layer.q_proj, layer.k_proj, layer.v_proj
    projected = [
        [affine(x, p) for x, p in zip(inputs, projections, strict=True)]
        for inputs in zip(*full, strict=True)
    ]
    expected = {}
    for mask in NO_KEYS:
        added = table(layer, xs, masks[mask])
        pairs = [attend(layer, *qkv, m) for qkv, m in zip(projected, added, strict=True)]
        expected[mask] = [torch.stack(parts) for parts in zip(*pairs, strict=True)]
    return expected


def against_oracle(dtype, *setting):
    *size_and_inputs, mask, batch = setting
    expected = [sample(x, batch) for x in oracle(dtype, *size_and_inputs)[mask]]
    for mode, need_weights, found, _ in runs(dtype, *setting):
        rows = [mha.compare(*pair, scale=1.0) for pair in zip(found, expected, strict=False)]
        yield cell("oracle", dtype, (*setting, mode), need_weights, rows)


# --8<-- [end:oracle]


# --8<-- [start:cells]
def cells():
    modules, kernels, oracles = [], [], []
    for dtype, size, inputs, mask, batch in itertools.product(
        LIMITS, SIZES, INPUTS, MASKS + NO_KEYS, (True, False)
    ):
        setting = dtype, *size, inputs, mask, batch
        kernels += against_kernel(*setting)
        if mask in MASKS:
            modules += against_module(*setting)
        else:
            oracles += against_oracle(*setting)
    return modules + kernels + oracles


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
