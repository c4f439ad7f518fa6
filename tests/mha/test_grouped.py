"""Heads that share keys and values: the layer whose shared heads are written out is the oracle."""

import copy
import math
import pickle
import re

import mha_oracle as oracle
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mha_oracle import INF, lattice, parameters, table
from mha_ways import close, tensors
from torch.nn.functional import scaled_dot_product_attention

import mha

F64 = torch.float64
SIZES = [(6, 3), (6, 2), (6, 1), (15, 5), (5, 1), (3, 3)]  # H, H_kv
D_K, KDIM, VDIM, B, L, S = 2, 11, 13, 2, 5, 7


def state_of(H, H_kv, *, bias=True, kdim=KDIM, vdim=VDIM):
    """Parameters (out, in) of a grouped layer: those of its first H_kv heads of key and value."""
    state = parameters(H * D_K, kdim=kdim, vdim=vdim, bias=bias)
    return {n: x[: H_kv * D_K] if n[0] in "kv" else x for n, x in state.items()}


def written_out(state, H, H_kv):
    """The same with a key and a value for every head: heads of a group have equal rows."""
    rows = np.repeat(np.arange(H_kv * D_K).reshape(H_kv, D_K), H // H_kv, axis=0).ravel()
    return {n: x[rows] if n[0] in "kv" else x for n, x in state.items()}


def layer_of(state, H, H_kv, **options):
    kdim, vdim = (state[f"{n}_proj.weight"].shape[1] for n in "kv")
    layer = mha.MultiHeadAttention(
        H * D_K,
        H,
        num_kv_heads=H_kv,
        kdim=kdim,
        vdim=vdim,
        bias="q_proj.bias" in state,
        **{"dtype": F64, **options},
    )
    layer.load_state_dict(tensors(state, layer.q_proj.weight.dtype))
    return layer


def inputs(H, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(B, n, w)) for n, w in ((L, H * D_K), (S, KDIM), (S, VDIM))]


def masks_of(H, seed=0):
    """Mixes of masks, and for every sample and head the table of the oracle."""
    rng = np.random.default_rng(seed)
    allow, bias = rng.random((B, H, L, S)) < 0.6, rng.normal(size=(L, S))
    allow[0, :, 2], allow[1, 0, 3] = False, False  # rows without keys, for all heads and for one
    keep = np.array([[1, 0, 1, 1, 1, 0, 1], [0] * S], bool)
    yield {}, lambda b, h: None
    yield {"causal": "lower_right"}, lambda b, h: table(L, S, offset=S - L)
    yield {"allow": allow[0, 0]}, lambda b, h: table(L, S, allow=allow[0, 0])
    yield {"allow": allow[:, 0]}, lambda b, h: table(L, S, allow=allow[b, 0])
    yield {"allow": allow[:, :1]}, lambda b, h: table(L, S, allow=allow[b, 0])
    yield (
        {"allow": allow, "key_allow": keep, "score_bias": bias, "causal": "upper_left"},
        lambda b, h: table(L, S, allow=allow[b, h], key_allow=keep[b], bias=bias, offset=0),
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("H", "H_kv"), SIZES)
def test_every_path_is_the_oracle(H, H_kv, bias):
    state, xs = state_of(H, H_kv, bias=bias), inputs(H)
    full, layer = written_out(state, H, H_kv), layer_of(state, H, H_kv)
    for masks, table_of in masks_of(H):
        found = []
        for b in range(B):
            own = [x[b] for x in xs]
            per_head = [table_of(b, h) for h in range(H)]
            found.append(oracle.multi_head(*own, full, H, per_head=per_head))
        output, weights = (np.array([f[i] for f in found]) for i in (0, 1))
        own = mha.multi_head_attention(
            *xs, projections=layer.to_numpy(), num_heads=H, num_kv_heads=H_kv, **masks
        )
        with_weights = layer(*tensors_of(xs), **tensors(masks))
        without, none = layer(*tensors_of(xs), **tensors(masks), need_weights=False)
        assert none is None
        for out, w in (own, with_weights, (without, None)):
            close(out, output)
            if w is not None:
                close(w, weights)


def tensors_of(xs):
    return [torch.from_numpy(x) for x in xs]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(("H", "H_kv"), SIZES)
def test_without_a_batch(H, H_kv, need_weights):
    layer, xs = layer_of(state_of(H, H_kv), H, H_kv), tensors_of(inputs(H))
    for masks, _ in masks_of(H):
        if any(getattr(mask, "ndim", 0) == 3 for mask in masks.values()):
            continue
        whole, weights = layer(*xs, **tensors(masks), need_weights=need_weights)
        for b in range(B):
            own = {
                n: m if n == "causal" or m.shape == (L, S) else m[b % len(m)]
                for n, m in tensors(masks).items()
            }
            one, w = layer(*(x[b] for x in xs), **own, need_weights=need_weights)
            close(one, whole[b].detach())
            if need_weights:
                close(w, weights[b].detach())


@pytest.mark.parametrize("mask", ["none", "causal", "table"])
@pytest.mark.parametrize(("H", "H_kv"), SIZES)
def test_it_is_torch_with_enable_gqa(H, H_kv, mask):
    """Output and gradients, on both paths."""
    layer = layer_of(state_of(H, H_kv, kdim=H * D_K, vdim=H * D_K), H, H_kv)
    x = torch.from_numpy(inputs(H)[0]).requires_grad_()
    allow = torch.from_numpy(lattice(B, H, L, L, step=5) > -0.75)
    allow[..., 0] = True
    ours = {"none": {}, "causal": {"causal": True}, "table": {"allow": allow}}[mask]
    theirs = {"none": {}, "causal": {"is_causal": True}, "table": {"attn_mask": allow}}[mask]
    q = mha.split_heads(layer.q_proj(x), H)
    k, v = (mha.split_heads(p(x), H_kv) for p in (layer.k_proj, layer.v_proj))
    context = scaled_dot_product_attention(q, k, v, **theirs, enable_gqa=True)
    truth = layer.out_proj(mha.merge_heads(context))
    loss = torch.from_numpy(lattice(B, L, H * D_K, step=3))
    leaves = [x, *layer.parameters()]
    gradients = torch.autograd.grad(truth, leaves, loss)
    for need_weights in (True, False):
        output, _ = layer(x, **ours, need_weights=need_weights)
        close(output, truth.detach())
        for one, other in zip(torch.autograd.grad(output, leaves, loss), gradients, strict=True):
            close(one, other)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(("H", "H_kv"), SIZES)
def test_gradients_of_a_group_are_added(H, H_kv, need_weights):
    state = state_of(H, H_kv)
    layer, full = layer_of(state, H, H_kv), layer_of(written_out(state, H, H_kv), H, H)
    loss = torch.from_numpy(lattice(B, L, H * D_K, step=3))
    for masks, _ in masks_of(H):
        for module in (layer, full):
            module.zero_grad()
            xs = tensors_of(inputs(H))
            output, _ = module(*xs, **tensors(masks), need_weights=need_weights)
            (output * loss).sum().backward()
        for name, parameter in layer.named_parameters():
            expected = full.get_parameter(name).grad
            if name[0] in "kv":
                shape = H_kv, H // H_kv, D_K, *expected.shape[1:]
                expected = expected.reshape(shape).sum(1).reshape(parameter.shape)
            close(parameter.grad, expected)


def test_heads_of_a_group_stand_together():
    """repeat_interleave, not tile: the two differ wherever there is more than one group."""
    state, xs = state_of(6, 2), tensors_of(inputs(6))
    rows = np.tile(np.arange(2 * D_K), 3)
    tiled = {n: x[rows] if n[0] in "kv" else x for n, x in state.items()}
    right = layer_of(written_out(state, 6, 2), 6, 6)(*xs)[0].detach()
    close(layer_of(state, 6, 2)(*xs)[0], right)
    assert not torch.allclose(layer_of(tiled, 6, 6)(*xs)[0], right, atol=0.1)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=20)
def test_as_many_keys_as_heads_is_the_layer_without_the_argument(seed, as_one):
    rng = np.random.default_rng(seed)
    H_kv = int(rng.integers(1, 4))
    H = H_kv if as_one else H_kv * int(rng.integers(2, 4))
    state = {n: rng.normal(size=x.shape) for n, x in state_of(H, H_kv).items()}
    layer, full = layer_of(state, H, H_kv), layer_of(written_out(state, H, H_kv), H, None)
    xs = tensors_of(inputs(H, seed))
    allow = torch.from_numpy(rng.random((B, H, L, S)) < 0.5)
    for one, other in zip(layer(*xs, allow=allow), full(*xs, allow=allow), strict=True):
        close(one, other.detach())


@pytest.mark.parametrize("need_weights", [True, False])
def test_padding_may_hold_anything(need_weights):
    layer, xs = layer_of(state_of(6, 2), 6, 2), inputs(6)
    keep = np.array([[1, 1, 0, 1, 1, 0, 1], [1] * S], bool)
    expected, _ = layer(*tensors_of(xs), key_allow=tensors(keep))
    for x in xs[1:]:
        x[0, 2], x[0, 5] = math.nan, INF
    memory = [x.requires_grad_() for x in tensors_of(xs)]
    output, _ = layer(*memory, key_allow=tensors(keep), need_weights=need_weights)
    close(output, expected.detach())
    output.sum().backward()
    for x in memory[1:]:
        assert (x.grad[~tensors(keep)] == 0).all()
    own, _ = mha.multi_head_attention(
        *xs, projections=layer.to_numpy(), num_heads=6, num_kv_heads=2, key_allow=keep
    )
    close(own, expected.detach())


def test_a_key_that_no_head_of_its_group_sees_may_hold_anything():
    """Heads 0 to 2 share a key; only when all of them are blocked is it as good as absent."""
    layer, (x, k, v) = layer_of(state_of(6, 2), 6, 2), inputs(6)
    allow = np.ones((B, 6, L, S), bool)
    allow[:, :3, :, 4] = False
    projections = layer.to_numpy()
    expected = mha.multi_head_attention(
        x, k, v, projections=projections, num_heads=6, num_kv_heads=2, allow=allow
    )[1][:, :3]
    k[:, 4] = math.nan  # heads 3 to 5 do see it, and may show it
    weights = mha.multi_head_attention(
        x, k, v, projections=projections, num_heads=6, num_kv_heads=2, allow=allow
    )[1]
    close(weights[:, :3], expected)
    weights = layer(*tensors_of([x, k, v]), allow=tensors(allow))[1]
    close(weights[:, :3], expected)


@pytest.mark.parametrize("sizes", [(0, L, S), (B, 0, S), (B, L, 0)], ids=str)
def test_emptiness(sizes):
    batch, length, source = sizes
    layer = layer_of(state_of(6, 2), 6, 2)
    xs = np.zeros((batch, length, 12)), np.zeros((batch, source, KDIM))
    xs = [*xs, np.zeros((batch, source, VDIM))]
    for need_weights in (True, False):
        output, weights = layer(*tensors_of(xs), need_weights=need_weights)
        assert output.shape == (batch, length, 12)
        assert weights is None or weights.shape == (batch, 6, length, source)
    own = mha.multi_head_attention(
        *xs, projections=layer.to_numpy(), num_heads=6, num_kv_heads=2, key_allow=None
    )
    assert [x.shape for x in own] == [(batch, length, 12), (batch, 6, length, source)]


def test_no_key_is_repeated():
    """With weights, nothing larger than the scores is made of a key: no axis of H beside S, d_k."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Shapes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            seen.extend(x.shape for x in (result,) if isinstance(x, torch.Tensor))
            return result

    seen, layer = [], layer_of(state_of(6, 2, kdim=12, vdim=12), 6, 2)
    x = torch.randn(B, 31, 12, dtype=F64)  # no other axis is 31 long
    with Shapes(), torch.no_grad():
        layer(x)
    keys = [s.numel() for s in seen if 31 in s and s[-1] == D_K and s[-2] == 31]
    assert max(keys) == B * 31 * 12  # the query; a key is a third of it
    assert not any(s.numel() == B * 6 * 31 * D_K and s[-1] == 31 for s in seen)  # key.mT, repeated


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("need_weights", [True, False])
def test_other_dtypes(dtype, need_weights):
    truth, _ = layer_of(state_of(6, 2), 6, 2)(*tensors_of(inputs(6)))
    layer = layer_of(state_of(6, 2), 6, 2, dtype=dtype)
    xs = [x.to(dtype) for x in tensors_of(inputs(6))]
    output, _ = layer(*xs, need_weights=need_weights)
    assert output.dtype == dtype
    tol = {torch.float16: 0.1, torch.bfloat16: 0.8, torch.float32: 1e-4}[dtype]
    close(output, truth.detach(), tol)


def test_attributes_and_start_values():
    layer = mha.MultiHeadAttention(128, 8, num_kv_heads=2, kdim=32)
    assert (layer.num_heads, layer.num_kv_heads) == (8, 2)
    assert mha.MultiHeadAttention(6, 3).num_kv_heads == 3
    for name, n_in, n_out in (("k_proj", 32, 32), ("v_proj", 128, 32), ("q_proj", 128, 128)):
        weight, bound = getattr(layer, name).weight, math.sqrt(6 / (n_in + n_out))
        assert tuple(weight.shape) == (n_out, n_in)
        assert 0.98 * bound < weight.abs().max() <= bound * (1 + 1e-6)
        assert tuple(getattr(layer, name).bias.shape) == (n_out,)
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert copied.num_kv_heads == 2
    projections = layer.to_numpy()
    assert [projections.w_k.shape, projections.w_v.shape] == [(32, 32), (128, 32)]
    assert [projections.b_k.shape, projections.b_q.shape] == [(32,), (128,)]


@pytest.mark.parametrize("need_weights", [True, False])
def test_shards_add_up(need_weights):
    """Tensor parallelism gives every process whole groups: rows of q, k and v, columns of out."""
    layer, x = layer_of(state_of(6, 3, kdim=12, vdim=12), 6, 3), tensors_of(inputs(6))[0]
    whole, weights = layer(x, causal=True)
    total = 0
    for rank in range(3):
        piece = copy.deepcopy(layer)
        for name, n in (("q_proj", 4), ("k_proj", 2), ("v_proj", 2)):
            for part in ("weight", "bias"):
                cut = layer.get_parameter(f"{name}.{part}")[rank * n : rank * n + n].detach()
                setattr(getattr(piece, name), part, torch.nn.Parameter(cut.clone()))
        cut = layer.out_proj.weight[:, rank * 4 : rank * 4 + 4].detach()
        piece.out_proj.weight = torch.nn.Parameter(cut.clone())
        if rank:
            piece.out_proj.bias = None
        out, w = piece(x, causal=True, need_weights=need_weights)
        total = total + out
        if need_weights:
            close(w, weights[:, 2 * rank : 2 * rank + 2].detach())
    close(total, whole.detach())


@pytest.mark.parametrize("need_weights", [True, False])
def test_compile_and_export(need_weights):
    layer = layer_of(state_of(6, 2, kdim=12, vdim=12), 6, 2)
    x, keep = torch.randn(B, L, 12, dtype=F64), torch.tensor([[True] * 4 + [False], [True] * 5])
    options = {"key_allow": keep, "causal": True, "need_weights": need_weights}
    expected, _ = layer(x, **options)
    for call in (
        torch.compile(layer, fullgraph=True, backend="eager"),
        torch.export.export(layer, (x,), options).module(),
    ):
        close(call(x, **options)[0], expected.detach())


# Bad input

LAYER = {"d_model": 12, "num_heads": 6}


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (4, ValueError, "num_heads=6 is not divisible by num_kv_heads=4"),
        (12, ValueError, "num_heads=6 is not divisible by num_kv_heads=12"),
        (0, ValueError, "num_kv_heads must be at least 1, got 0"),
        (-2, ValueError, "num_kv_heads must be at least 1, got -2"),
        (2.0, TypeError, "num_kv_heads must be an integer, got 2.0 (float)"),
        (True, TypeError, "num_kv_heads must be an integer, got True (bool)"),
        ("2", TypeError, "num_kv_heads must be an integer, got '2' (str)"),
    ],
)
def test_numbers_that_are_refused(number, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        mha.MultiHeadAttention(**LAYER, num_kv_heads=number)
    eye = np.eye(12)
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        mha.multi_head_attention(
            eye, projections=mha.Projections(*[eye] * 4), num_heads=6, num_kv_heads=number
        )


@pytest.mark.parametrize("name", ["w_k", "w_v", "b_k", "b_v"])
def test_projections_of_another_width(name):
    """The count is an argument and never guessed from the widths: both have to fit."""
    sizes = {"w_q": (12, 12), "w_k": (11, 4), "w_v": (13, 4), "w_o": (12, 12)}
    sizes |= {"b_k": (4,), "b_v": (4,)}
    xs = inputs(6)
    good = {n: np.zeros(size) for n, size in sizes.items()}
    for H_kv, got in ((2, 12), (None, 4)):
        wanted = 4 if H_kv else 12
        given = {**{n: np.zeros((*s[:-1], wanted)) for n, s in sizes.items() if n[2:] in "kv"}}
        given = {**good, **given, name: np.zeros((*sizes[name][:-1], got))}
        full = (*sizes[name][:-1], wanted)
        message = f"{name} must have shape {full}, got {given[name].shape}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            mha.multi_head_attention(
                *xs, projections=mha.Projections(**given), num_heads=6, num_kv_heads=H_kv
            )


def test_torch_has_no_such_module():
    message = (
        "torch.nn.MultiheadAttention has a key for every head, not num_heads=6 and num_kv_heads=2"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        mha.MultiHeadAttention(**LAYER, num_kv_heads=2).to_torch()
    full = mha.MultiHeadAttention(**LAYER, num_kv_heads=6)
    back = mha.MultiHeadAttention.from_torch(full.to_torch())
    assert back.num_kv_heads == 6
    report = mha.parity(mha.MultiHeadAttention(**LAYER, num_kv_heads=2), full.to_torch())
    assert not report


@pytest.mark.parametrize(("rows", "message"), [(2, "got 2 and 2"), (1, None)])
def test_shard_without_the_keys_of_its_heads_is_refused(rows, message):
    """Half of six heads, which share two keys: they need the first key, and no other."""
    whole = mha.MultiHeadAttention(30, 6, num_kv_heads=2, dtype=torch.float64)
    shard = copy.deepcopy(whole)
    for name, heads in (("q_proj", 3), ("k_proj", rows), ("v_proj", rows)):
        projection = getattr(shard, name)
        projection.weight = torch.nn.Parameter(projection.weight[: heads * 5])
        projection.bias = torch.nn.Parameter(projection.bias[: heads * 5])
    shard.out_proj.weight = torch.nn.Parameter(shard.out_proj.weight[:, :15])
    x = torch.randn(2, 7, 30, dtype=torch.float64)
    if message:
        with pytest.raises(ValueError, match=f"3 of 6 heads need 1 of 2 keys .*{message}"):
            shard(x)
    else:
        assert mha.compare(shard(x)[1], whole(x)[1][:, :3])
