"""The torch half: both paths, gradients, dropout, precision, import and export, compilers."""

import copy
import itertools
import math
import pickle
import warnings

import mha_oracle as oracle
import numpy as np
import pytest
import torch
from mha_oracle import INF, lattice, parameters, table
from mha_ways import close, layer_of, projections_of, tensors, torch_of
from torch.utils._python_dispatch import TorchDispatchMode

import mha

F64 = torch.float64


def normal(*shape, seed=0, dtype=F64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64).to(dtype)


def random_mask(*shape, seed=0, share=0.5):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < share


# Both paths are one function


MASKS = {
    "none": {},
    "allow": {"allow": "full"},
    "allow for all": {"allow": "flat"},
    "bias": {"score_bias": "full"},
    "bias for all": {"score_bias": "flat"},
    "allow and bias": {"allow": "full", "score_bias": "flat"},
    "both flat": {"allow": "flat", "score_bias": "flat"},
    "columns": {"allow": "columns", "score_bias": "rows"},
}


def masks_for(kind, lead, L, S, causal):
    size = {
        "full": (*lead, L, S),
        "flat": (L, S),
        "columns": (*(1 for _ in lead), 1, S),
        "rows": (*(1 for _ in lead), L, 1),
    }
    masks = {"causal": causal} if causal else {}
    for name, shape in MASKS[kind].items():
        mask = random_mask(*size[shape], seed=1, share=0.6)
        if name == "score_bias":
            bias = normal(*size[shape], seed=2)
            mask = bias.masked_fill(~mask, -INF).requires_grad_()
        masks[name] = mask
    return masks


@pytest.mark.parametrize("causal", [False, True, "upper_left", "lower_right"])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 3)], ids=str)
def test_same_output_and_gradients_on_both_paths(lead, kind, causal):
    for L, S, d_v in ((5, 5, 2), (5, 7, 3), (7, 3, 2)):
        if causal is True and L != S:
            continue
        masks = masks_for(kind, lead, L, S, causal)
        leaves = [
            normal(*lead, n, w, seed=i) for i, (n, w) in enumerate(((L, 2), (S, 2), (S, d_v)))
        ]
        leaves = [x.requires_grad_() for x in leaves]
        leaves += [m for m in masks.values() if isinstance(m, torch.Tensor) and m.requires_grad]
        loss, results = normal(*lead, L, d_v, seed=9), []
        for need_weights in (True, False):
            out, w = mha.torch_attention(*leaves[:3], **masks, need_weights=need_weights)
            assert (w is None) == (not need_weights)
            results.append([out, *torch.autograd.grad(out, leaves, loss)])
        for one, other in zip(*results, strict=True):
            assert one.isfinite().all()
            close(one, other.detach())
        arrays = {n: m.detach().numpy() if n != "causal" else m for n, m in masks.items()}
        truth = mha.attention(*(x.detach().numpy() for x in leaves[:3]), **arrays)
        close(results[0][0], truth[0])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masks", [{}, {"causal": True, "allow": True}, {"allow": False}], ids=str)
def test_against_finite_differences(masks, need_weights):
    leaves = [normal(3, 2, seed=i).requires_grad_() for i in range(4)]
    leaves[3] = normal(3, 3, seed=4).requires_grad_()
    blocked = torch.eye(3, dtype=torch.bool).roll(1, 0)
    if "allow" in masks:
        masks = {**masks, "allow": random_mask(3, 3, share=0.7) & masks["allow"]}

    def call(q, k, v, bias):
        bias = bias.masked_fill(blocked, -INF)
        return mha.torch_attention(q, k, v, score_bias=bias, **masks, need_weights=need_weights)[0]

    assert torch.autograd.gradcheck(call, leaves)
    if need_weights:
        assert torch.autograd.gradgradcheck(call, leaves)


def test_second_derivatives_and_forward_mode_of_the_layer():
    layer, x = layer_of(parameters(4), 2), tensors(lattice(1, 3, 4)).requires_grad_()
    keep = torch.tensor([[True, False, True]])
    assert torch.autograd.gradgradcheck(lambda x: layer(x, key_allow=keep, causal=True)[0], (x,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, on first use
        forward = torch.func.jacfwd(lambda x: layer(x, key_allow=keep)[0])(x)
    close(forward, torch.func.jacrev(lambda x: layer(x, key_allow=keep)[0])(x).detach())


@pytest.mark.parametrize("need_weights", [True, False])
def test_blocked_keys_get_exactly_nothing(need_weights):
    state = parameters(6)
    layer, x = layer_of(state, 3), tensors(lattice(2, 5, 6)).requires_grad_()
    keep = torch.tensor([[True, True, True, False, False], [False, True, True, True, True]])
    bias = normal(5, 5).requires_grad_()
    out, _ = layer(x, x, x, key_allow=keep, score_bias=bias, need_weights=need_weights)
    memory = tensors(lattice(2, 7, 6, start=6)).requires_grad_()
    wide = torch.cat([keep, keep[:, :2]], dim=1)
    crossed, _ = layer(x.detach(), memory, memory, key_allow=wide, need_weights=need_weights)
    grads = torch.autograd.grad(crossed.sum(), memory)[0]
    assert (grads[~wide] == 0).all()
    assert (grads[wide].abs().amax(-1) > 0).all()
    (out * normal(2, 5, 6)).sum().backward()
    assert x.grad.isfinite().all()
    everywhere_blocked = torch.tensor([[True, True, True, True, False]] * 2) & False
    blocked = layer_of(state, 3)
    out, _ = blocked(x.detach(), key_allow=everywhere_blocked, need_weights=need_weights)
    (out * normal(2, 5, 6)).sum().backward()
    for name, parameter in blocked.named_parameters():
        assert (parameter.grad == 0).all() == (name != "out_proj.bias")
    seen = keep.any(0)
    assert (bias.grad[:, ~seen] == 0).all()


@pytest.mark.parametrize("need_weights", [True, False])
def test_score_bias_learns_where_it_is_not_blocked(need_weights):
    q, k, v = (normal(3, 5, 2, seed=i) for i in range(3))
    allow = random_mask(5, 5, share=0.6)
    allow[2] = False
    bias = normal(5, 5, seed=7).requires_grad_()
    out, _ = mha.torch_attention(
        q, k, v, allow=allow, score_bias=bias, causal=True, need_weights=need_weights
    )
    (out * normal(3, 5, 2, seed=8)).sum().backward()
    counts = (allow & torch.ones_like(allow).tril()).sum(-1, keepdim=True)
    learns = allow.tril() & (counts > 1)
    assert (bias.grad[~allow.tril()] == 0).all()
    assert (bias.grad[learns] != 0).all()


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_loss_without_some_rows_is_the_problem_without_them(need_weights):
    state, L, n = parameters(6), 5, 3
    layer, small = layer_of(state, 2), layer_of(state, 2)
    x = normal(2, L, 6)
    loss = normal(2, n, 6, seed=3)
    out, _ = layer(x, causal=True, need_weights=need_weights)
    (out[:, :n] * loss).sum().backward()
    out, _ = small(x[:, :n], causal=True, need_weights=need_weights)
    (out * loss).sum().backward()
    for one, other in zip(layer.parameters(), small.parameters(), strict=True):
        close(one.grad, other.grad)


class Shapes(TorchDispatchMode):
    """Records the shape of every tensor that is made, and the name of every operation."""

    def __init__(self):
        super().__init__()
        self.shapes, self.names = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.names.append(str(func))
        for x in result if isinstance(result, tuple | list) else (result,):
            if isinstance(x, torch.Tensor):
                self.shapes.append(tuple(x.shape))
        return result


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_no_table_of_scores_without_weights(lead, causal):
    qkv = [normal(*lead, 11, 4, seed=i, dtype=torch.float32) for i in range(3)]
    with Shapes() as seen:
        mha.torch_attention(*qkv, causal=causal, need_weights=False)
    assert not any(shape[-2:] == (11, 11) for shape in seen.shapes)
    assert any("flash_attention" in name for name in seen.names)
    layer, x = mha.MultiHeadAttention(8, 2), normal(11, 8, dtype=torch.float32)
    for x_in in (x, x[None].expand(5, 11, 8)):
        with Shapes() as seen, torch.no_grad():
            layer(x_in, causal=causal, need_weights=False)
        assert not any(shape[-2:] == (11, 11) for shape in seen.shapes)
        assert any("flash_attention" in name for name in seen.names)


@pytest.mark.parametrize("masks", [{"allow": True}, {"score_bias": True}, {"key_allow": True}])
def test_masks_keep_the_fast_kernel(masks):
    layer, x = mha.MultiHeadAttention(8, 2), normal(5, 11, 8, dtype=torch.float32)
    shape = (5, 11) if "key_allow" in masks else (5, 11, 11)
    mask = torch.ones(shape, dtype=torch.bool)
    mask = mask.float() if "score_bias" in masks else mask
    for batched in (True, False):
        one, given = (x, mask) if batched else (x[0], mask[0])
        with Shapes() as seen, torch.no_grad():
            layer(one, **dict.fromkeys(masks, given), need_weights=False)
        assert any("flash_attention" in name for name in seen.names)


# Dropout


def test_dropout_acts_on_the_weights_that_multiply_the_values():
    S, p = 4001, 0.25
    q, k, v = torch.zeros(3, 1, dtype=F64), torch.zeros(S, 1, dtype=F64), torch.eye(S, dtype=F64)
    torch.manual_seed(0)
    out, w = mha.torch_attention(q, k, v, dropout_p=p)
    close(w, np.full((3, S), 1 / S))
    kept = out * S * (1 - p)
    assert (((kept - 1).abs() < 1e-9) | (out == 0)).all()
    assert abs((out == 0).double().mean() - p) < 0.02
    assert not torch.equal(out[0], out[1])
    out, w = mha.torch_attention(q, k, v, dropout_p=p, need_weights=False)
    assert w is None
    assert abs((out == 0).double().mean() - p) < 0.02
    kept = out * S * (1 - p)
    assert (((kept - 1).abs() < 1e-9) | (out == 0)).all()


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_only_in_train(need_weights):
    state, x = parameters(4), tensors(lattice(1, 3, 4))
    layer, plain = layer_of(state, 2, dropout=0.5), layer_of(state, 2)
    torch.manual_seed(0)
    assert not torch.equal(
        layer(x, need_weights=need_weights)[0], layer(x, need_weights=need_weights)[0]
    )
    before = torch.get_rng_state()
    layer.eval()
    assert torch.equal(
        layer(x, need_weights=need_weights)[0], plain(x, need_weights=need_weights)[0]
    )
    plain.train()(x, need_weights=need_weights)
    assert torch.equal(before, torch.get_rng_state())
    layer.train()
    assert torch.equal(layer(x)[1], plain(x)[1])


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_with_rows_without_keys(need_weights):
    state, keep = parameters(4), torch.tensor([[False, False, False]])
    layer = layer_of(state, 2, dropout=0.5)
    out, _ = layer(tensors(lattice(1, 3, 4)), key_allow=keep, need_weights=need_weights)
    close(out, [[state["out_proj.bias"]] * 3], 0)


# Precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("need_weights", [True, False])
def test_half_precision_of_the_layer(dtype, need_weights):
    state = parameters(4, kdim=5, vdim=3)
    xs = lattice(2, 5, 4), lattice(2, 7, 5, start=6), lattice(2, 7, 3, start=1)
    keep = np.array([[1, 1, 0, 1, 1, 0, 1], [0] * 7], bool)
    bias = lattice(5, 7, step=5)
    masks = [table(5, 7, key_allow=k, bias=bias) for k in keep]
    output, weights = oracle.batch(*xs, state, 2, masks)
    layer = layer_of(state, 2, dtype=dtype)
    qkv = [tensors(x, dtype).requires_grad_() for x in xs]
    given = {"key_allow": tensors(keep), "score_bias": tensors(bias, dtype)}
    out, w = layer(*qkv, **given, need_weights=need_weights)
    tol = 0.02 if dtype == torch.float16 else 0.15
    assert out.dtype == dtype
    close(out, output, tol)
    if need_weights:
        assert w.dtype == dtype
        close(w, weights, tol)
    out.float().sum().backward()
    for x in (*qkv, *layer.parameters()):
        assert x.grad.dtype == dtype
        assert x.grad.isfinite().all()


def test_half_precision_that_would_overflow():
    """Scores of 65536, whose row is the same in float32: only the softmax in half would fail."""
    for dtype, need_weights in itertools.product((torch.float16, torch.bfloat16), (True, False)):
        q, k = torch.full((1, 64), 90.5).to(dtype), torch.full((2, 64), 90.5).to(dtype)
        k[1, 0] = -90.5
        out, w = mha.torch_attention(q, k, torch.eye(2).to(dtype), need_weights=need_weights)
        assert out.tolist() == [[1.0, 0.0]]
        assert w is None or w.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("need_weights", [True, False])
def test_autocast(dtype, need_weights):
    state, keep = parameters(4), np.array([[True, False, True]])
    x, bias = lattice(1, 3, 4), np.array([[0, -1, 0.5], [np.finfo(np.float32).min] * 3, [1, 0, 0]])
    mask = table(3, 3, key_allow=keep[0], bias=bias)
    mask[1] = [-INF] * 3  # beyond the range of half precision
    output, _ = oracle.batch(x, x, x, state, 2, [mask])
    layer = layer_of(state, 2, dtype=torch.float32)
    given = {"key_allow": tensors(keep), "score_bias": tensors(bias, torch.float32)}
    for own in (torch.float32, dtype):
        with torch.autocast("cpu", dtype):
            out, w = layer(tensors(x, own), **given, need_weights=need_weights)
            assert torch.is_autocast_enabled("cpu")
        assert out.dtype == dtype
        assert w is None or w.dtype == dtype
        close(out, output, 3e-2)
    single = [tensors(x[0], torch.float32)] * 3
    with torch.autocast("cpu", dtype):
        out, _ = mha.torch_attention(*single, need_weights=need_weights)
    assert torch.equal(out, mha.torch_attention(*single, need_weights=need_weights)[0])
    assert out.dtype == torch.float32


# The module


def test_autocast_mixes_dtypes_for_the_layer_only():
    x = torch.ones(2, 2)
    message = r"key must be torch\.float32, got torch\.bfloat16"
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(TypeError, match=message):
        mha.torch_attention(x, x.bfloat16(), x)


def test_attributes_and_state():
    layer = mha.MultiHeadAttention(6, 3, kdim=11, vdim=13, dropout=0.25)
    assert (layer.d_model, layer.num_heads, layer.dropout) == (6, 3, 0.25)
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    assert [name for name, _ in layer.named_children()] == list(names)
    assert all(type(getattr(layer, name)) is torch.nn.Linear for name in names)
    assert list(layer.state_dict()) == [f"{n}.{k}" for n in names for k in ("weight", "bias")]
    shapes = {"q_proj": (6, 6), "k_proj": (6, 11), "v_proj": (6, 13), "out_proj": (6, 6)}
    for name, shape in shapes.items():
        assert tuple(getattr(layer, name).weight.shape) == shape
        assert tuple(getattr(layer, name).bias.shape) == (6,)
    bare = mha.MultiHeadAttention(6, 3, bias=False)
    assert list(bare.state_dict()) == [f"{n}.weight" for n in names]
    assert bare.dropout == 0.0
    assert all(p.requires_grad for p in layer.parameters())


def test_default_dtype_and_device():
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(F64)
        layer = mha.MultiHeadAttention(4, 2)
    finally:
        torch.set_default_dtype(before)
    assert {p.dtype for p in layer.parameters()} == {F64}
    assert {p.dtype for p in mha.MultiHeadAttention(4, 2).parameters()} == {torch.float32}
    half = mha.MultiHeadAttention(4, 2, dtype=torch.bfloat16, device="meta")
    assert {(p.dtype, p.device.type) for p in half.parameters()} == {(torch.bfloat16, "meta")}


def test_default_dtype_does_not_leak_into_the_result():
    before = torch.get_default_dtype()
    layer, x = mha.MultiHeadAttention(4, 2), torch.ones(1, 3, 4)
    keep = torch.tensor([[True, False, True]])
    try:
        torch.set_default_dtype(F64)
        for need_weights in (True, False):
            out, w = layer(x, key_allow=keep, causal=True, need_weights=need_weights)
            assert out.dtype == torch.float32
            assert w is None or w.dtype == torch.float32
    finally:
        torch.set_default_dtype(before)


def test_xavier_on_every_matrix():
    layer = mha.MultiHeadAttention(128, 4, kdim=32, vdim=512)
    for name, n_in in (("q_proj", 128), ("k_proj", 32), ("v_proj", 512), ("out_proj", 128)):
        weight, bound = getattr(layer, name).weight, math.sqrt(6 / (n_in + 128))
        assert 0.99 * bound < weight.abs().max() <= bound * (1 + 1e-6)
        assert abs(weight.std() / (bound / math.sqrt(3)) - 1) < 0.05
        assert (getattr(layer, name).bias == 0).all()


def test_meta_device():
    layer = mha.MultiHeadAttention(6, 2, device="meta")
    x, keep = torch.zeros(3, 5, 6, device="meta"), torch.ones(3, 5, dtype=torch.bool, device="meta")
    for need_weights in (True, False):
        out, w = layer(x, key_allow=keep, causal=True, need_weights=need_weights)
        assert out.shape == (3, 5, 6)
        assert w is None or w.shape == (3, 2, 5, 5)
    assert mha.MultiHeadAttention.from_torch(layer.to_torch()).q_proj.weight.device.type == "meta"


def test_nothing_depends_on_the_mode():
    state, x = parameters(6), tensors(lattice(2, 5, 6))
    keep = torch.tensor([[True] * 5, [False] * 5])
    layer, found = layer_of(state, 3), []
    for inputs in ((x,), (x, x, x), (x, x.clone(), x.clone())):
        for train, context in itertools.product(
            (True, False), (torch.enable_grad, torch.no_grad, torch.inference_mode)
        ):
            layer.train(train)
            with context():
                found += [layer(*inputs, key_allow=keep, causal=True)]
    for out, w in found[1:]:
        assert torch.equal(out, found[0][0])
        assert torch.equal(w, found[0][1])


def test_frozen_parameters_and_input_without_gradient():
    layer = layer_of(parameters(4), 2).requires_grad_(False)
    out, w = layer(tensors(lattice(1, 3, 4)))
    assert not out.requires_grad
    assert not w.requires_grad


def test_weights_carry_gradients_too():
    layer, x = layer_of(parameters(4), 2), tensors(lattice(1, 3, 4)).requires_grad_()
    layer(x)[1][0, 0, 0, 1].backward()
    assert (x.grad != 0).any()


def shard(layer, rank, parts):
    """A layer that holds every part-th share of the heads, as tensor parallelism leaves it."""
    piece = copy.deepcopy(layer)
    n = layer.d_model // parts
    cut = slice(rank * n, (rank + 1) * n)
    with torch.no_grad():
        for name in ("q_proj", "k_proj", "v_proj"):
            whole, part = getattr(layer, name), getattr(piece, name)
            part.weight = torch.nn.Parameter(whole.weight[cut].clone())
            part.bias = torch.nn.Parameter(whole.bias[cut].clone())
        piece.out_proj.weight = torch.nn.Parameter(layer.out_proj.weight[:, cut].clone())
        if rank:
            piece.out_proj.bias.zero_()
    return piece


@pytest.mark.parametrize("need_weights", [True, False])
def test_shards_add_up(need_weights):
    layer, x = layer_of(parameters(12), 6), tensors(lattice(2, 5, 12))
    keep, allow = random_mask(2, 5, share=0.7), random_mask(2, 6, 5, 5, share=0.7)
    for masks in ({}, {"key_allow": keep, "causal": True}, {"allow": allow}):
        whole, weights = layer(x, **masks)
        total = 0
        for rank in range(3):
            own = (
                {**masks, "allow": allow[:, 2 * rank : 2 * rank + 2]} if "allow" in masks else masks
            )
            out, w = shard(layer, rank, 3)(x, **own, need_weights=need_weights)
            total = total + out
            if need_weights:
                close(w, weights[:, 2 * rank : 2 * rank + 2].detach())
        close(total, whole.detach())


# Import and export


OPTIONS = [
    {},
    {"bias": False},
    {"kdim": 11},
    {"vdim": 13},
    {"kdim": 11, "vdim": 13, "bias": False},
    {"kdim": 6, "vdim": 6},
    {"dropout": 0.25, "batch_first": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [F64, torch.float32, torch.bfloat16])
def test_there_and_back(options, dtype):
    source = torch.nn.MultiheadAttention(6, 3, dtype=dtype, **options)
    with torch.no_grad():
        for p in source.parameters():
            p.copy_(normal(*p.shape, seed=p.numel()))
    before = copy.deepcopy(source.state_dict())
    for train in (True, False):
        rng = torch.get_rng_state()
        layer = mha.MultiHeadAttention.from_torch(source.train(train))
        back = layer.to_torch()
        again = mha.MultiHeadAttention.from_torch(back)
        assert torch.equal(rng, torch.get_rng_state())
        assert (layer.training, back.training, again.training) == (train,) * 3
        assert (layer.d_model, layer.num_heads, layer.dropout) == (6, 3, source.dropout)
        assert (back.embed_dim, back.num_heads, back.dropout) == (6, 3, source.dropout)
        assert back.batch_first
        assert (back.kdim, back.vdim) == (source.kdim, source.vdim)
        for one, other in ((before, source), (before, back), (layer.state_dict(), again)):
            other = other.state_dict()
            assert list(one) == list(other)
            assert all(torch.equal(one[n], other[n]) and one[n].dtype == dtype for n in one)
        storages = [
            {p.untyped_storage().data_ptr() for p in m.parameters()}
            for m in (source, layer, back, again)
        ]
        assert all(a.isdisjoint(b) for a, b in itertools.combinations(storages, 2))
        for module in (layer, back):
            assert all(p.is_leaf and p.requires_grad for p in module.parameters())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_numbers_after_import(options):
    source = torch.nn.MultiheadAttention(6, 3, dtype=F64, **{**options, "batch_first": True}).eval()
    with torch.no_grad():
        for p in source.parameters():
            p.copy_(normal(*p.shape, seed=p.numel()))
    xs = [normal(2, n, w) for n, w in ((5, 6), (7, source.kdim), (7, source.vdim))]
    out, w = mha.MultiHeadAttention.from_torch(source)(*xs)
    truth, truth_weights = source(*xs, average_attn_weights=False)
    close(out, truth.detach())
    close(w, truth_weights.detach())


def test_import_of_parts():
    """A bias that was taken away counts as zero; a tied matrix is copied twice."""
    source = torch.nn.MultiheadAttention(6, 3, dtype=F64)
    with torch.no_grad():
        source.in_proj_bias.copy_(normal(18))
    source.out_proj.bias = None
    layer = mha.MultiHeadAttention.from_torch(source)
    assert (layer.out_proj.bias == 0).all()
    close(layer.k_proj.bias, source.in_proj_bias[6:12].detach(), 0)
    tied = layer_of(parameters(4), 2)
    tied.v_proj.weight = tied.k_proj.weight
    assert torch.equal(tied.to_torch().in_proj_weight[8:], tied.k_proj.weight)
    close(tied.to_numpy().w_v, tied.k_proj.weight.detach().T, 0)
    tied = torch.nn.MultiheadAttention(6, 3, kdim=5, vdim=5)
    tied.v_proj_weight = tied.k_proj_weight
    assert torch.equal(mha.MultiHeadAttention.from_torch(tied).v_proj.weight, tied.k_proj_weight)


def test_a_weight_that_is_no_parameter_is_not_taken_for_zero():
    source = torch.nn.MultiheadAttention(6, 2)
    weight = source.in_proj_weight.detach()
    del source.in_proj_weight
    source.register_buffer("in_proj_weight", weight)
    with pytest.raises(KeyError, match=r"q_proj\.weight"):
        mha.MultiHeadAttention.from_torch(source)


def test_subclasses_stay_what_they_are():
    class Own(mha.MultiHeadAttention):
        pass

    assert type(Own.from_torch(torch.nn.MultiheadAttention(6, 3))) is Own


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 11, "vdim": 13}], ids=str)
@pytest.mark.parametrize("dtype", [F64, torch.float32, torch.float16, torch.bfloat16])
def test_to_numpy(options, dtype):
    layer = mha.MultiHeadAttention(6, 3, dtype=dtype, **options)
    projections = layer.to_numpy()
    assert isinstance(projections, mha.Projections)
    own = np.float32 if dtype == torch.bfloat16 else str(dtype).removeprefix("torch.")
    for letter, name in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("o", "out_proj")):
        linear = getattr(layer, name)
        w, b = getattr(projections, f"w_{letter}"), getattr(projections, f"b_{letter}")
        assert w.dtype == own
        close(w, linear.weight.detach().float().T, 0) if dtype != F64 else close(
            w, linear.weight.detach().T, 0
        )
        assert (b is None) == (linear.bias is None)
        w[:] = 7  # a copy, and writable
        assert not (linear.weight == 7).any()
    if dtype == F64:
        xs = [normal(2, n, w) for n, w in zip((5, 7, 7), layer.widths, strict=True)]
        out, w = mha.multi_head_attention(
            *(x.numpy() for x in xs), projections=layer.to_numpy(), num_heads=3
        )
        truth, truth_weights = layer(*xs)
        close(out, truth.detach())
        close(w, truth_weights.detach())


# Masks of torch


def test_masks_from_torch_holds_what_is_needed():
    bools, floats = torch.zeros(5, 7, dtype=torch.bool), normal(5, 7)
    pad, soft = torch.zeros(2, 7, dtype=torch.bool), normal(2, 7)
    assert mha.masks_from_torch() == {}
    for attn, key, names in (
        (bools, None, ["allow"]),
        (floats, None, ["score_bias"]),
        (None, pad, ["key_allow"]),
        (None, soft, ["score_bias"]),
        (bools, pad, ["allow", "key_allow"]),
        (floats, pad, ["key_allow", "score_bias"]),
        (bools, soft, ["allow", "score_bias"]),
        (floats, soft, ["score_bias"]),
    ):
        assert sorted(mha.masks_from_torch(attn, key)) == names


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("attn", ["none", "bool", "float", "bool heads", "float heads"])
@pytest.mark.parametrize("key", ["none", "bool", "float"])
def test_masks_from_torch_mean_the_same(attn, key, need_weights):
    """Against torch's own module, fed with the very masks; no row is empty."""
    B, H, L, S = 2, 3, 5, 7
    state = parameters(6)
    x, memory = tensors(lattice(B, L, 6)), tensors(lattice(B, S, 6, start=6))
    attn_mask = padding = None
    if attn != "none":
        attn_mask = random_mask(*((B * H,) if "heads" in attn else ()), L, S, share=0.4)
        attn_mask[..., 0] = False
    if key != "none":
        padding = random_mask(B, S, seed=1, share=0.4)
        padding[:, 0] = False
    if "float" in attn:
        attn_mask = normal(*attn_mask.shape).masked_fill(attn_mask, -INF)
    if key == "float":
        padding = normal(B, S, seed=2).masked_fill(padding, -INF)
    masks = mha.masks_from_torch(attn_mask, padding, num_heads=H)
    out, w = layer_of(state, H)(x, memory, memory, **masks, need_weights=need_weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch deprecates masks of two kinds
        truth, truth_weights = torch_of(state, H)(
            x, memory, memory, padding, attn_mask=attn_mask, average_attn_weights=False
        )
    close(out, truth.detach())
    if need_weights:
        close(w, truth_weights.detach())


def test_masks_from_torch_of_a_single_sequence():
    state, x = parameters(6), tensors(lattice(5, 6))
    for padding in (
        torch.tensor([False, True, False, False, True]),
        torch.tensor([0.5, -INF, 0, 1, 2], dtype=F64),
    ):
        masks = mha.masks_from_torch(torch.eye(5, dtype=F64) * 3, padding)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            truth, _ = torch_of(state, 3)(x, x, x, padding, attn_mask=torch.eye(5, dtype=F64) * 3)
        close(layer_of(state, 3)(x, **masks)[0], truth.detach())


def test_blocked_in_one_float_mask_is_blocked():
    attn = torch.tensor([[math.nan, 1.0, INF, -INF, -INF]], dtype=F64)
    padding = torch.tensor([[-INF, 0.0, -INF, INF, math.nan]], dtype=F64)
    expected = [[[-INF, 1.0, -INF, -INF, -INF]]]
    assert mha.masks_from_torch(attn, padding)["score_bias"].tolist() == expected


def test_zeros_and_ones_warn_and_others_do_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mha.masks_from_torch(torch.zeros(3, 3))
        mha.masks_from_torch(torch.full((3, 3), -INF).triu(1))
        mha.masks_from_torch(torch.zeros(0, 3), torch.zeros(2, 3))
        mha.masks_from_torch(torch.tensor([[0.0, 1.0, 2.0]]))
    words = "a float mask of zeros and ones is added to the scores and hides nothing$"
    for mask in (torch.ones(3, 3), torch.eye(3), torch.eye(3).half()):
        with pytest.warns(UserWarning, match=f"^attn_mask: {words}"):
            mha.masks_from_torch(mask)
        with pytest.warns(UserWarning, match=f"^key_padding_mask: {words}"):
            mha.masks_from_torch(None, mask)


def test_zeros_and_ones_warns_at_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="hides nothing") as caught:
        mha.masks_from_torch(torch.ones(3, 3))
    assert caught[0].filename == __file__


# Compilers and transforms


ROW_WITHOUT_KEYS = torch.ones(5, 5, dtype=torch.bool)
ROW_WITHOUT_KEYS[1] = False
EVERY_MASK = {
    "none": {},
    "causal": {"causal": True},
    "lower_right": {"causal": "lower_right"},
    "allow": {"allow": ROW_WITHOUT_KEYS},
    "all": {
        "allow": ROW_WITHOUT_KEYS,
        "key_allow": torch.tensor([[True, True, True, False, True], [False] * 5]),
        "score_bias": normal(2, 3, 5, 5),
        "causal": "upper_left",
    },
}


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    ("backend", "kind"), [*(("eager", kind) for kind in EVERY_MASK), ("aot_eager", "all")]
)
def test_compile(backend, kind, need_weights):
    torch._dynamo.reset()
    layer, x, masks = layer_of(parameters(6), 3), tensors(lattice(2, 5, 6)), EVERY_MASK[kind]
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    x.requires_grad_()
    out, w = compiled(x, **masks, need_weights=need_weights)
    grads = torch.autograd.grad(out.sum(), (x, *layer.parameters()))
    truth, truth_weights = layer(x, **masks, need_weights=need_weights)
    close(out, truth.detach())
    if need_weights:
        close(w, truth_weights.detach())
    for one, other in zip(
        grads, torch.autograd.grad(truth.sum(), (x, *layer.parameters())), strict=True
    ):
        close(one, other)


@pytest.mark.parametrize("need_weights", [True, False])
def test_compile_other_shapes_and_functions(need_weights):
    torch._dynamo.reset()
    layer = layer_of(parameters(6), 3)
    compiled = torch.compile(layer, fullgraph=True, backend="eager", dynamic=True)
    for B, L in ((2, 5), (3, 7), (5, 11)):
        x, keep = normal(B, L, 6), random_mask(B, L, share=0.7)
        for masks in ({}, {"key_allow": keep, "causal": True}):
            out, _ = compiled(x, **masks, need_weights=need_weights)
            close(out, layer(x, **masks)[0].detach())
    torch._dynamo.reset()
    function = torch.compile(mha.torch_attention, fullgraph=True, backend="eager")
    x = normal(3, 5, 2)
    close(function(x, x, x, need_weights=need_weights)[0], mha.torch_attention(x, x, x)[0])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    ("strict", "kind"), [*((False, kind) for kind in EVERY_MASK), (True, "all")]
)
def test_export(strict, kind, need_weights):
    layer, x = layer_of(parameters(6), 3).eval(), tensors(lattice(2, 5, 6))
    kwargs = {**EVERY_MASK[kind], "need_weights": need_weights}
    exported = torch.export.export(layer, (x,), kwargs, strict=strict).module()
    out, w = exported(x, **kwargs)
    close(out, layer(x, **kwargs)[0].detach())
    assert (w is None) == (not need_weights)


def test_export_with_free_sizes():
    layer, free = layer_of(parameters(6), 3).eval(), torch.export.Dim.AUTO
    keep = random_mask(2, 5, share=0.7)
    for need_weights in (True, False):
        exported = torch.export.export(
            layer,
            (tensors(lattice(2, 5, 6)),),
            {"key_allow": keep, "causal": True, "need_weights": need_weights},
            dynamic_shapes={
                "query": {0: free, 1: free},
                "key_allow": {0: free, 1: free},
                "causal": None,
                "need_weights": None,
            },
        ).module()
        x, keep_more = normal(3, 7, 6), random_mask(3, 7, share=0.7)
        kwargs = {"key_allow": keep_more, "causal": True, "need_weights": need_weights}
        close(exported(x, **kwargs)[0], layer(x, **kwargs)[0].detach())


@pytest.mark.parametrize("kind", ["none", "causal", "allow"])
def test_vmap(kind):
    layer, x, masks = layer_of(parameters(6), 3), tensors(lattice(2, 5, 6)), EVERY_MASK[kind]
    out, w = torch.func.vmap(lambda x: layer(x, **masks))(x)
    truth, truth_weights = layer(x, **masks)
    close(out, truth.detach())
    close(w, truth_weights.detach())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's kernel has no rule for batches yet
        out = torch.func.vmap(lambda x: layer(x, **masks, need_weights=False)[0])(x)
    close(out, truth.detach())


def test_vmap_over_masks_and_over_layers():
    layers = [layer_of(parameters(6), 3) for _ in range(2)]
    with torch.no_grad():
        layers[1].v_proj.weight.mul_(2)
    x, allow = tensors(lattice(2, 5, 6)), random_mask(2, 5, 5, share=0.7)
    out = torch.func.vmap(lambda x, a: layers[0](x, allow=a)[0])(x, allow)
    close(out, layers[0](x, allow=allow)[0].detach())
    stacked, _ = torch.func.stack_module_state(layers)
    out = torch.func.vmap(lambda p: torch.func.functional_call(layers[0], p, (x,))[0])(stacked)
    close(out, torch.stack([layer(x)[0] for layer in layers]).detach())
    assert "vmap" in mha.torch_attention.__doc__


def test_without_gradients_every_transform_works_as_well():
    layer = layer_of(parameters(6), 3).requires_grad_(False)
    frozen, x, tangent = (lambda x: layer(x)[0]), tensors(lattice(2, 5, 6)), normal(2, 5, 6)
    truth = frozen(x)
    close(torch.func.vmap(frozen)(x), truth)
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad((frozen(leaf) * tangent).sum(), leaf)
    close(torch.func.grad(lambda x: (frozen(x) * tangent).sum())(x), slope)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, on first use
        _, along = torch.func.jvp(frozen, (x,), (tangent,))
    step = 1e-6 * tangent
    close(along, (frozen(x + step) - frozen(x - step)) / 2e-6, 1e-8)


@pytest.mark.parametrize("grad", [False, True])
def test_one_table_of_scores_without_gradients(grad):
    tables = set()

    class Tables(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.numel() == 2 * 3 * 11 * 11:
                tables.add(result.untyped_storage()._cdata)
                held.append(result)
            return result

    held, layer = [], layer_of(parameters(6), 3)
    with torch.set_grad_enabled(grad), Tables():
        layer(tensors(lattice(2, 11, 6)))
    assert len(tables) == (2 if grad else 1)


def test_plain_input_needs_no_words(monkeypatch):
    layer, x = layer_of(parameters(6), 3), tensors(lattice(2, 5, 6))
    for name in ("_check_tensors", "check_shapes"):
        monkeypatch.setattr(f"mha.layer.{name}", None)
    layer(x)
    layer(x, x, x, causal=True)
    for other in ((x, x, x.clone()), (x[0],)):
        with pytest.raises(TypeError, match="not callable"):
            layer(*other)


def test_one_input_for_all_three_is_checked_as_well():
    layer, x = layer_of(parameters(6), 3), tensors(lattice(2, 5, 6))
    for wrong in (x.float(), x[..., :5], x[None], x[0, 0], x.numpy(), x.to("meta")):
        with pytest.raises((TypeError, ValueError), match=r"^query must .* got "):
            layer(wrong)
    layer.q_proj.weight = torch.nn.Parameter(layer.q_proj.weight.to(torch.complex128))
    with pytest.raises(TypeError, match=r"^query must be floating .*torch\.complex128"):
        layer(x.to(torch.complex128))


def test_copies_are_independent():
    layer, x = layer_of(parameters(6), 3, dropout=0.5).eval(), tensors(lattice(2, 5, 6))
    truth = layer(x)[0].detach()
    for make in (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
        other = make(layer)
        assert (other.d_model, other.num_heads, other.dropout) == (6, 3, 0.5)
        assert not other.training
        assert torch.equal(other(x)[0], truth)
        with torch.no_grad():
            other.v_proj.weight.zero_()
        assert torch.equal(layer(x)[0], truth)


def test_state_dict_round_trip():
    layer, other = (mha.MultiHeadAttention(6, 3, kdim=11) for _ in range(2))
    other.load_state_dict(layer.state_dict(), strict=True)
    xs = [normal(2, n, w, dtype=torch.float32) for n, w in ((5, 6), (7, 11), (7, 6))]
    assert torch.equal(layer(*xs)[0], other(*xs)[0])
    with pytest.raises(RuntimeError, match="q_proj"):
        other.load_state_dict({})


def test_projections_of_the_layer_are_those_of_the_function():
    state = parameters(4)
    ours, given = layer_of(state, 2).to_numpy(), projections_of(state)
    for name, array in vars(given).items():
        assert np.array_equal(getattr(ours, name), array)
