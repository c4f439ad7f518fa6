"""The NumPy half, sentence by sentence; where the torch half has the same rule, it is tried too."""

import dataclasses
import itertools
import math
import tracemalloc
import warnings

import mha_oracle as oracle
import numpy as np
import pytest
import torch
from mha_oracle import INF, lattice, parameters, table
from mha_ways import check_attention, check_layer, close, layer_of, projections_of, tensors

import mha

NAN = math.nan


# softmax


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (2, 3, 5), (2, 3, 5, 7)])
def test_softmax_of_any_rank_and_axis(shape):
    scores = lattice(*shape)
    for axis in range(-len(shape), len(shape)):
        weights = mha.softmax(scores, axis)
        moved = np.moveaxis(scores, axis, -1).reshape(-1, shape[axis])
        expected = np.array([oracle.softmax(row) for row in moved])
        expected = expected.reshape(np.moveaxis(scores, axis, -1).shape)
        close(weights, np.moveaxis(expected, -1, axis), 1e-15)
    if not shape:
        assert mha.softmax(scores) == 1.0


def test_softmax_of_nothing():
    assert mha.softmax(np.zeros((3, 0))).shape == (3, 0)
    assert mha.softmax(np.zeros((0, 3))).shape == (0, 3)
    assert mha.softmax([]).dtype == np.float64
    close(mha.softmax([-INF, -INF]), [0, 0], 0)
    close(mha.softmax([[-INF, 1.0], [-INF, -INF]], axis=0), [[0, 1], [0, 0]], 0)


def test_softmax_keeps_nan_and_inf_in_their_slice():
    weights = mha.softmax([[NAN, 1], [INF, INF], [INF, -INF], [1, 1]])
    assert np.isnan(weights[:3]).all()
    assert weights[3].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_softmax_keeps_float_dtypes(dtype):
    assert mha.softmax(np.zeros(3, dtype)).dtype == np.dtype(dtype)
    assert mha.softmax(np.zeros(0, dtype)).dtype == np.dtype(dtype)


def test_half_precision_is_rounded_once():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=s).astype(np.float16) for s in ((5, 8), (7, 8), (7, 3)))
    single = mha.attention(*(x.astype(np.float32) for x in (q, k, v)))
    for half, one in zip(mha.attention(q, k, v), single, strict=True):
        assert np.array_equal(half, one.astype(np.float16))
    assert np.array_equal(mha.softmax(q), mha.softmax(q.astype(np.float32)).astype(np.float16))
    for dtype in (torch.float16, torch.bfloat16):
        halves = [tensors(x).to(dtype) for x in (q, k, v)]
        single = mha.torch_attention(*(x.float() for x in halves))
        for half, one in zip(mha.torch_attention(*halves), single, strict=True):
            assert torch.equal(half, one.to(dtype))


# Masks


@pytest.mark.parametrize("axes", list(itertools.product([True, False], repeat=4)))
def test_an_axis_of_one_stands_for_all(axes):
    q, k, v = lattice(2, 3, 5, 2), lattice(2, 3, 7, 2, start=6), lattice(2, 3, 7, 11, start=1)
    size = [1 if one else n for one, n in zip(axes, (2, 3, 5, 7), strict=True)]
    allow, bias = lattice(*size, step=5) > -0.5, lattice(*size, step=3)
    full = np.broadcast_to(allow, (2, 3, 5, 7)), np.broadcast_to(bias, (2, 3, 5, 7))
    expected = mha.attention(q, k, v, allow=full[0], score_bias=full[1])
    check_attention(q, k, v, output=expected[0], weights=expected[1], allow=allow, score_bias=bias)
    if size[0] == size[1] == 1:
        check_attention(
            q,
            k,
            v,
            output=expected[0],
            weights=expected[1],
            allow=allow[0, 0],
            score_bias=bias[0, 0],
        )


def heads_masks(B, H, L, S):
    """Per-head tables, and the shape in which a mask of each rank is given."""
    shapes = [(L, S), (B, L, S), (B, H, L, S), (1, S), (L, 1), (1, 1)]
    shapes += [
        (B, 1, S),
        (1, L, S),
        (B, L, 1),
        (B, 1, L, S),
        (1, H, L, S),
        (B, H, 1, S),
        (1, 1, 1, 1),
    ]
    for shape in shapes:
        lifted = (*shape[:1], 1, *shape[1:]) if len(shape) == 3 else shape
        yield shape, (lambda m, lifted=lifted: np.broadcast_to(m.reshape(lifted), (B, H, L, S)))


@pytest.mark.parametrize("kind", ["allow", "score_bias"])
def test_masks_of_several_heads(kind):
    B, H, L, S = 2, 3, 5, 7
    state = parameters(6, kdim=11, vdim=13)
    xs = lattice(B, L, 6), lattice(B, S, 11, start=6), lattice(B, S, 13, start=1)
    for shape, spread in heads_masks(B, H, L, S):
        mask = lattice(*shape, step=5)
        mask = mask > -0.75 if kind == "allow" else np.where(mask < -1, -INF, mask)
        name = "allow" if kind == "allow" else "bias"
        found = [
            oracle.multi_head(
                *x, state, H, per_head=[table(L, S, **{name: head}) for head in sample]
            )
            for *x, sample in zip(*xs, spread(mask), strict=True)
        ]
        output, weights = (np.array([f[i] for f in found]) for i in (0, 1))
        check_layer(state, H, *xs, output=output, weights=weights, **{kind: mask})
        if len(shape) == 2 or (len(shape) == 4 and shape[0] == 1):
            bare = mask if len(shape) == 2 else mask[0]
            one = [x[0] for x in xs]
            check_layer(state, H, *one, output=output[0], weights=weights[0], **{kind: bare})


def test_per_sample_masks_when_every_size_is_the_same():
    """With B == H the axis of a 3-D mask is the sample, without a batch the head."""
    x, state = lattice(3, 3, 6), parameters(6)
    allow = lattice(3, 3, 3, step=5) > -0.5
    output, weights = oracle.batch(x, x, x, state, 3, [table(3, 3, allow=a) for a in allow])
    check_layer(state, 3, x, output=output, weights=weights, allow=allow)
    per_head = [table(3, 3, allow=a) for a in allow]
    output, weights = oracle.multi_head(x[0], x[0], x[0], state, 3, per_head=per_head)
    check_layer(state, 3, x[0], output=output, weights=weights, allow=allow)
    check_layer(state, 3, x[:1], output=output[None], weights=weights[None], allow=allow[None])


def test_key_allow_hides_columns_of_its_sample():
    x, state = lattice(3, 5, 6), parameters(6)
    keep = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    output, weights = oracle.batch(x, x, x, state, 2, [table(5, 5, key_allow=k) for k in keep])
    for out, w in check_layer(state, 2, x, output=output, weights=weights, key_allow=keep):
        close(out[1], [state["out_proj.bias"]] * 5, 0)
        assert w is None or bool((w[1] == 0).all())
    one = np.broadcast_to(keep[:1], (3, 5))
    expected = oracle.batch(x, x, x, state, 2, [table(5, 5, key_allow=k) for k in one])
    check_layer(state, 2, x, output=expected[0], key_allow=keep[:1])
    check_layer(state, 2, x[0], output=output[0], weights=weights[0], key_allow=keep[0])


def test_all_masks_together_are_an_intersection():
    B, H, L = 2, 3, 5
    x, state = lattice(B, L, 6), parameters(6)
    allow = lattice(B, H, L, L, step=5) > -0.75
    keep = np.array([[1, 1, 1, 0, 1], [1, 0, 1, 1, 1]], bool)
    bias = lattice(H, L, L, step=3)[None]
    bias[0, 1, 3] = -INF
    for causal, offset in ((False, None), (True, 0), ("lower_right", 0)):
        found = []
        for b in range(B):
            per_head = [
                table(L, L, allow=allow[b, h], key_allow=keep[b], bias=bias[0, h], offset=offset)
                for h in range(H)
            ]
            found.append(oracle.multi_head(x[b], x[b], x[b], state, H, per_head=per_head))
        output, weights = (np.array([f[i] for f in found]) for i in (0, 1))
        check_layer(
            state,
            H,
            x,
            output=output,
            weights=weights,
            allow=allow,
            key_allow=keep,
            score_bias=bias,
            causal=causal,
        )


@pytest.mark.parametrize("junk", [NAN, INF, -INF, 1e308, -1e308])
def test_numbers_of_blocked_keys_do_not_matter(junk):
    q, k, v = lattice(5, 2), lattice(5, 2, start=6), lattice(5, 3, start=1)
    allow = lattice(5, 5, step=5) > -0.5
    allow[2] = False
    expected = mha.attention(q, k, v, allow=allow)
    bias = np.where(allow, 0.0, junk)
    for out, w in check_attention(
        q, k, v, output=expected[0], weights=expected[1], allow=allow, score_bias=bias
    ):
        assert w is None or (np.asarray(w)[~allow] == 0).all()
        assert (np.asarray(out[2]) == 0).all()
    triangle = np.tri(5, dtype=bool)
    expected = mha.attention(q, k, v, allow=triangle)
    check_attention(
        q, k, v, output=expected[0], causal=True, score_bias=np.where(triangle, 0.0, junk)
    )
    state, keep = parameters(4), np.array([True, True, False])
    x = lattice(1, 3, 4)
    bias = np.where(keep, 0.0, junk)[None]
    expected = oracle.batch(x, x, x, state, 2, [table(3, 3, key_allow=keep)])
    check_layer(state, 2, x, output=expected[0], key_allow=keep[None], score_bias=bias)


def test_finite_numbers_never_block():
    for dtype in (np.float32, np.float64):
        q, k, v = np.zeros((1, 2), dtype), np.zeros((3, 2), dtype), np.eye(3, dtype=dtype)
        for number in (np.finfo(dtype).min, np.finfo(dtype).max, -1e9):
            even = np.full((1, 3), number, dtype)
            check_attention(q, k, v, weights=[[1 / 3] * 3], tol=1e-6, score_bias=even)
            even[0, 2] = -INF
            check_attention(q, k, v, weights=[[0.5, 0.5, 0]], tol=1e-6, score_bias=even)


def test_score_bias_beyond_the_range_of_the_query():
    """In torch it becomes infinite, NumPy computes in the finer dtype; results keep theirs."""
    q, k, v = np.zeros((1, 2)), np.zeros((3, 2)), np.eye(3)
    lowest = np.array([[np.finfo(np.float32).min, 0.0, 0.0]])
    for dtype in (torch.float16, torch.bfloat16):
        for bias in (lowest, np.full((1, 3), lowest[0, 0])):
            blocked = [[0, 0.5, 0.5]] if bias is lowest else [[0, 0, 0]]
            for need_weights in (True, False):
                out, w = mha.torch_attention(
                    *(tensors(x, dtype) for x in (q, k, v)),
                    score_bias=tensors(bias).float(),
                    need_weights=need_weights,
                )
                assert out.dtype == dtype
                close(out, blocked, 1e-3)
                assert w is None or w.dtype == dtype
    for dtype in (np.float16, np.float32):
        out, w = mha.attention(
            *(x.astype(dtype) for x in (q, k, v)), score_bias=np.full((1, 3), -1e300)
        )
        assert out.dtype == w.dtype == dtype
        close(w, [[1 / 3] * 3], 1e-3)


@pytest.mark.parametrize(("L", "S"), [(5, 5), (3, 7), (7, 3), (1, 5), (5, 1), (0, 3), (3, 0)])
def test_causal_by_name(L, S):
    qkv = lattice(L, 2), lattice(S, 2, start=6), lattice(S, 3, start=1)
    for name, offset in (("upper_left", 0), ("lower_right", S - L)):
        output, weights = oracle.attention(*qkv, table(L, S, offset=offset))
        check_attention(*qkv, output=output, weights=weights, causal=name)
    if L == S:
        check_attention(*qkv, output=output, weights=weights, causal=True)


# Blocked keys, rows without keys, NaN


@pytest.mark.parametrize("junk", [NAN, INF, -INF])
def test_unseen_keys_are_as_good_as_absent(junk):
    """Per sample and head: the key is junk only where no query of that sample and head sees it."""
    q, k, v = lattice(2, 3, 5, 2), lattice(2, 3, 7, 2, start=6), lattice(2, 3, 7, 11, start=1)
    allow = lattice(2, 3, 5, 7, step=5) > -1
    allow[:, 1, :, 4] = False
    allow[1, :, :, 2] = False
    clean = mha.attention(q, k, v, allow=allow)
    for part in (k, v):
        part[:, 1, 4] = junk
        part[1, :, 2] = junk
    check_attention(q, k, v, output=clean[0], weights=clean[1], allow=allow)
    bias = np.where(allow, 0.0, -INF)
    check_attention(q, k, v, output=clean[0], weights=clean[1], score_bias=bias)
    for leaves, need_weights in itertools.product(
        [[tensors(x).requires_grad_() for x in (q, k, v)]], (True, False)
    ):
        out, _ = mha.torch_attention(*leaves, allow=tensors(allow), need_weights=need_weights)
        grads = torch.autograd.grad((out * tensors(lattice(*out.shape))).sum(), leaves)
        assert all(g.isfinite().all() for g in grads)
        for g in grads[1:]:
            assert (g[:, 1, 4] == 0).all()
            assert (g[1, :, 2] == 0).all()


@pytest.mark.parametrize("junk", [NAN, INF])
def test_padding_of_the_layer(junk):
    """Junk in padded tokens reaches their own rows only, in cross-attention not even a gradient."""
    state, keep = parameters(6), np.array([[1, 1, 1, 0], [1, 0, 0, 0]], bool)
    x, query = lattice(2, 4, 6), lattice(2, 3, 6, start=6)
    masks = [table(4, 4, key_allow=k) for k in keep]
    output, weights = oracle.batch(x, x, x, state, 3, masks)
    cross, _ = oracle.batch(query, x, x, state, 3, [m[:3] for m in masks])
    x[~keep] = junk
    with np.errstate(all="raise"):
        for out, w in check_layer(state, 3, x, key_allow=keep):
            for b, n in ((0, 3), (1, 1)):
                close(out[b, :n], output[b, :n])
                if w is not None:
                    close(w[b, :, :n], weights[b, :, :n])
        check_layer(state, 3, query, x, x, output=cross, key_allow=keep)
    for need_weights, key_only in itertools.product((True, False), repeat=2):
        layer = layer_of(state, 3)
        leaves = [tensors(a).requires_grad_() for a in (query, x, x)]
        named = {"key_allow": keep} if key_only else {"allow": keep[:, None]}
        layer(*leaves, **tensors(named), need_weights=need_weights)[0].sum().backward()
        for parameter in (*leaves, *layer.parameters()):
            assert parameter.grad.isfinite().all()
        for leaf in leaves[1:]:
            assert (leaf.grad[~tensors(keep)] == 0).all()


def test_a_key_of_one_sample_is_not_a_key_of_another():
    q, k, v = lattice(3, 5, 2), lattice(3, 7, 2, start=6), lattice(3, 7, 11, start=1)
    expected = mha.attention(q, k, v)
    k[1, 2] = NAN
    v[1, 3] = INF
    for out, _ in check_attention(q, k, v):
        close(out[0], expected[0][0])
        close(out[2], expected[0][2])


@pytest.mark.parametrize("bad", [NAN, INF])
def test_nan_and_inf_are_never_hidden(bad):
    q, k, v = lattice(5, 2), np.abs(lattice(7, 2)) + 1, lattice(7, 3, start=1)
    clean = mha.attention(q, k, v)
    allow = np.ones((5, 7), bool)
    allow[:, 6] = False
    q[2] = bad
    bias = np.zeros((5, 7))
    bias[3, 1] = bad
    for masks in ({}, {"allow": allow}, {"score_bias": bias}, {"causal": "lower_right"}):
        rows = [2, 3] if "score_bias" in masks else [2]
        others = [i for i in range(5) if i not in rows]
        expected = mha.attention(lattice(5, 2), k, v, **{**masks, "score_bias": None})
        for out, w in check_attention(q, k, v, **masks):
            assert np.isnan(np.asarray(out)[rows]).all()
            close(np.asarray(out)[others], expected[0][others])
            if w is not None:
                close(np.asarray(w)[others], expected[1][others])
                assert "allow" in masks or "causal" in masks or np.isnan(np.asarray(w)[rows]).all()
    assert clean[0].shape == (5, 3)


def test_a_query_without_keys_may_hold_anything():
    q, k, v = lattice(3, 2), lattice(5, 2), lattice(5, 7)
    allow = np.ones((3, 5), bool)
    allow[1] = False
    expected = mha.attention(q, k, v, allow=allow)
    q[1] = NAN
    check_attention(q, k, v, output=expected[0], weights=expected[1], allow=allow)
    for need_weights in (True, False):
        leaves = [tensors(x).requires_grad_() for x in (q, k, v)]
        out, _ = mha.torch_attention(*leaves, allow=tensors(allow), need_weights=need_weights)
        out.sum().backward()
        assert all(x.grad.isfinite().all() for x in leaves)
        assert (leaves[0].grad[1] == 0).all()


def test_finite_input_never_warns():
    """Not even with every floating point error made an exception."""
    huge = np.array([[1e4, -1e4]])
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        mha.softmax([[-INF, -INF], [1e4, -1e4], [-1e308, 1e308]])
        lowest = np.array([[np.finfo(np.float64).min, -INF, 0.0]])
        for masks in (
            {"score_bias": lowest},
            {"allow": np.array([[True, False, False]])},
            {"allow": np.zeros((1, 3), bool)},
        ):
            mha.attention(huge, lattice(3, 2) * 1e3, lattice(3, 2), **masks)
        keep = np.zeros((1, 3), bool)
        projections = projections_of(parameters(4))
        mha.multi_head_attention(
            lattice(1, 3, 4), projections=projections, num_heads=2, key_allow=keep
        )


def test_sizes_of_zero():
    for lead, L, S in itertools.product([(), (0,), (2, 0)], (0, 3), (0, 5)):
        qkv = np.zeros((*lead, L, 2)), np.zeros((*lead, S, 2)), np.zeros((*lead, S, 7))
        masks = {"allow": np.ones((L, S), bool), "score_bias": np.zeros((L, S))}
        ones = {"allow": np.ones((1, 1), bool), "score_bias": np.zeros((1, 1))}
        for given in ({}, masks, ones, {"causal": "lower_right"}):
            check_attention(
                *qkv,
                output=np.zeros((*lead, L, 7)),
                weights=np.zeros((*lead, L, S)) if not S else None,
                **given,
            )
    check_attention(np.zeros((3, 2)), np.zeros((5, 2)), np.zeros((5, 0)), output=np.zeros((3, 0)))


def test_sizes_of_zero_have_gradients():
    state = parameters(6)
    for B, L, S, need_weights in itertools.product((0, 2), (0, 3), (0, 5), (True, False)):
        layer = layer_of(state, 2)
        xs = [torch.zeros(B, n, 6, dtype=torch.float64, requires_grad=True) for n in (L, S, S)]
        for masks in ({}, {"key_allow": torch.ones(B, S, dtype=torch.bool)}):
            out, w = layer(*xs, **masks, need_weights=need_weights)
            assert out.shape == (B, L, 6)
            assert (w is None) == (not need_weights)
            assert w is None or w.shape == (B, 2, L, S)
            out.sum().backward()
        assert all(p.grad.isfinite().all() for p in (*layer.parameters(), *xs))


# Dtypes


def test_common_dtype_of_the_inputs():
    names = ["float16", "float32", "float64", "int8", "uint64", "bool"]
    for dtypes in itertools.product(names, repeat=3):
        qkv = [np.ones((2, 2), dtype) for dtype in dtypes]
        floats = [np.dtype(d) if "float" in d else np.dtype("float64") for d in dtypes]
        for result in mha.attention(*qkv):
            assert result.dtype == np.result_type(*floats)
    state = parameters(4)
    for dtype in (np.float16, np.float32, np.float64):
        cast = mha.Projections(*(projections_of(state).__dict__[n].astype(dtype) for n in NAMES))
        x = lattice(1, 3, 4)
        out, w = mha.multi_head_attention(x.astype(dtype), projections=cast, num_heads=2)
        assert out.dtype == w.dtype == dtype
        close(
            out, oracle.batch(x, x, x, state, 2)[0], {2: 5e-2, 4: 1e-5, 8: 1e-12}[dtype().itemsize]
        )
        out, w = mha.multi_head_attention(x, projections=cast, num_heads=2)
        assert out.dtype == w.dtype == np.float64


NAMES = ["w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v", "b_o"]


def test_scale_and_bias_do_not_change_the_dtype():
    q, k, v = (np.ones((2, 2), np.float32) for _ in range(3))
    for scale in (None, 1, 0.5, np.float64(0.5), np.int64(1)):
        assert mha.attention(q, k, v, scale=scale)[0].dtype == np.float32
        qkv = [torch.from_numpy(x) for x in (q, k, v)]
        for need_weights in (True, False):
            out, w = mha.torch_attention(*qkv, scale=scale, need_weights=need_weights)
            assert out.dtype == torch.float32
    for dtype in (np.float16, np.float64, np.longdouble):
        out, w = mha.attention(q, k, v, score_bias=np.ones((2, 2), dtype))
        assert out.dtype == w.dtype == np.float32
    for dtype, need_weights in itertools.product((torch.float16, torch.float64), (True, False)):
        bias = torch.ones(2, 2, dtype=dtype)
        out, w = mha.torch_attention(*qkv, score_bias=bias, need_weights=need_weights)
        assert out.dtype == torch.float32
        assert w is None or w.dtype == torch.float32


def test_float32_is_computed_in_float32():
    query, key = np.full((1, 1), 1e30, np.float32), np.array([[1e30], [0]], np.float32)
    assert np.isnan(mha.attention(query, key, key)[1]).all()
    assert np.isnan(mha.attention(query, key, key, score_bias=np.zeros((1, 2), "f4"))[1]).all()
    close(mha.attention(query.astype(float), key, key)[1], [[1, 0]])


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no finer dtype here")
def test_finer_than_float64_is_computed_as_it_is():
    query = np.array([[np.longdouble(2) ** 60 + 1, np.longdouble(2) ** 60]])  # their difference: 1
    key, value = np.array([[1.0, -1.0], [0.0, 0.0]]), np.eye(2)
    expected = oracle.softmax([1, 0])
    for bias in (None, np.zeros((1, 2), np.float32), np.zeros((1, 2))):
        for result in mha.attention(query, key, value, scale=1, score_bias=bias):
            close(result, [expected], 1e-15)
    beyond = np.full((1, 2), np.longdouble("-1e400"))
    assert mha.attention([[0.0]], [[0.0]] * 2, value, score_bias=beyond)[1].tolist() == [[0.5] * 2]


def test_lists_and_other_orders_are_welcome():
    out, w = mha.attention([[0]], [[1], [2]], [[4], [6]], allow=[[True, False]])
    close(out, [[4]])
    close(w, [[1, 0]])
    assert mha.split_heads([[1, 2]], 2).tolist() == [[[1]], [[2]]]
    assert mha.merge_heads([[[1]], [[2]]]).tolist() == [[1, 2]]
    assert [x.tolist() for x in mha.unpack_qkv([1, 2, 3])] == [[1], [2], [3]]
    big_endian = lattice(3, 2).astype(">f8")
    close(
        mha.attention(big_endian, big_endian, big_endian)[0], mha.attention(*[lattice(3, 2)] * 3)[0]
    )


# Heads and projections


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("shape", [(5, 6), (7, 5, 6), (2, 7, 5, 6), (0, 5, 6), (2, 0, 6)])
def test_heads_are_columns(kind, shape):
    for dtype in (np.float32, np.int64, bool):
        x = kind(np.arange(math.prod(shape)).reshape(shape).astype(dtype))
        split = mha.split_heads(x, 3)
        assert type(split) is type(x)
        assert split.dtype == x.dtype
        assert tuple(split.shape) == (*shape[:-2], 3, shape[-2], 2)
        for h in range(3):
            assert split[..., h, :, :].tolist() == x[..., 2 * h : 2 * h + 2].tolist()
        merged = mha.merge_heads(split)
        assert type(merged) is type(x)
        assert merged.tolist() == x.tolist()
        assert mha.split_heads(merged, 3).tolist() == split.tolist()


def test_heads_of_integers_like_numpy_has_them():
    assert mha.split_heads(np.zeros((5, 6)), np.int64(3)).shape == (3, 5, 2)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_unpack(kind):
    H, d_k, rest = 3, 2, 5
    q, k, v = (np.arange(30.0).reshape(H * d_k, rest) + 100 * i for i in range(3))
    block = kind(np.concatenate([q, k, v]))
    mixed = kind(np.concatenate([m[2 * h : 2 * h + 2] for h in range(H) for m in (q, k, v)]))
    for cut in (mha.unpack_qkv(block), mha.unpack_qkv(mixed, layout="interleaved", num_heads=H)):
        assert type(cut) is tuple
        for one, expected in zip(cut, (q, k, v), strict=True):
            assert type(one) is type(block)
            assert one.tolist() == expected.tolist()
    for cut in (
        mha.unpack_qkv(block[:, 0]),
        mha.unpack_qkv(mixed[:, 0], layout="interleaved", num_heads=H),
    ):
        assert [one.tolist() for one in cut] == [m[:, 0].tolist() for m in (q, k, v)]
    assert mha.unpack_qkv(kind(np.zeros((18, 2, 7), np.int64)))[2].shape == (6, 2, 7)


def test_unpack_keeps_gradients():
    packed = torch.arange(18.0, requires_grad=True)
    mha.unpack_qkv(packed, layout="interleaved", num_heads=3)[1].sum().backward()
    assert packed.grad.reshape(3, 3, 2).tolist() == [[[0, 0], [1, 1], [0, 0]]] * 3


def test_projections_are_frozen():
    fields = [f.name for f in dataclasses.fields(mha.Projections)]
    assert fields == NAMES
    projections = mha.Projections(*[np.eye(2)] * 4)
    assert (projections.b_q, projections.b_k, projections.b_v, projections.b_o) == (None,) * 4
    with pytest.raises(dataclasses.FrozenInstanceError):
        projections.w_q = np.zeros((2, 2))


@pytest.mark.parametrize("missing", ["b_q", "b_k", "b_v", "b_o"])
def test_a_missing_bias_is_one_of_zeros(missing):
    x, state = lattice(1, 3, 4), parameters(4)
    name = {"q": "q", "k": "k", "v": "v", "o": "out"}[missing[2]] + "_proj.bias"
    zeros = state | {name: np.zeros(4)}
    without = dataclasses.replace(projections_of(state), **{missing: None})
    out, w = mha.multi_head_attention(x, projections=without, num_heads=2)
    expected = oracle.batch(x, x, x, zeros, 2)
    close(out, expected[0])
    close(w, expected[1])


def test_the_key_bias_counts_where_numbers_are_huge():
    """It cancels in the softmax, unless the scores without it leave the range of their dtype."""
    eye, zero = np.eye(4), np.zeros((4, 4))
    for number, projections in (
        (1e160, mha.Projections(eye, eye, eye, eye, b_k=np.full(4, -1e160))),
        (1e308, mha.Projections(eye, zero, eye, eye)),
    ):
        x = np.full((2, 4), number)
        close(
            mha.multi_head_attention(x, projections=projections, num_heads=1)[1], [[[0.5] * 2] * 2]
        )


@pytest.mark.parametrize("num_heads", [1, 2, 3, 6])
def test_cross_attention_with_widths_of_its_own(num_heads):
    state = parameters(6, kdim=11, vdim=13)
    xs = lattice(2, 5, 6), lattice(2, 7, 11, start=6), lattice(2, 7, 13, start=1)
    output, weights = oracle.batch(*xs, state, num_heads)
    check_layer(state, num_heads, *xs, output=output, weights=weights)
    check_layer(state, num_heads, *(x[0] for x in xs), output=output[0], weights=weights[0])


def test_inputs_stay_as_they_are():
    x, state = lattice(2, 3, 4), parameters(4)
    masks = {
        "allow": np.ones((3, 3), bool),
        "key_allow": np.array([[1, 1, 0], [0, 0, 0]], bool),
        "score_bias": lattice(3, 3),
    }
    projections = projections_of(state)
    everything = [x, *masks.values(), *vars(projections).values()]
    before = [a.copy() for a in everything]
    for a in everything:
        a.flags.writeable = False
    first = mha.multi_head_attention(x, projections=projections, num_heads=2, **masks)
    second = mha.multi_head_attention(x, projections=projections, num_heads=2, **masks)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(everything, before, strict=True))
    scores = lattice(3, 3)
    scores.flags.writeable = False
    mha.softmax(scores)
    assert np.array_equal(scores, lattice(3, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_table_but_the_weights(dtype):
    q, k, v = (lattice(2, 97, 64).astype(dtype) for _ in range(3))  # not much smaller than a table
    mha.attention(q, k, v)
    tracemalloc.start()
    output, weights = mha.attention(q, k, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - output.nbytes < 1.1 * weights.nbytes
