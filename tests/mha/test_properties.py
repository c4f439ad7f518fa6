"""What holds for every input, tried on many: sizes, masks and numbers drawn by hypothesis."""

import itertools

import mha_oracle as oracle
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mha_oracle import INF, table
from mha_ways import (
    check_attention,
    check_layer,
    close,
    layer_of,
    projections_of,
    tensors,
    torch_of,
)

import mha

seeds = st.integers(0, 2**32 - 1)
causal = st.sampled_from([False, "upper_left", "lower_right"])
JUNK = st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300])


@st.composite
def problems(draw, heads=False):
    """Sizes, random numbers, and a mix of masks; a row without keys now and then."""
    rng = np.random.default_rng(draw(seeds))
    B, H, L, S = (draw(st.integers(1, n)) for n in (2, 3, 5, 7))
    masks = {"causal": draw(causal)}
    if draw(st.booleans()):
        masks["allow"] = rng.random((B, H, L, S)) < draw(st.sampled_from([0.3, 0.8]))
    if draw(st.booleans()):
        bias = rng.normal(size=(B, H, L, S))
        masks["score_bias"] = np.where(rng.random(bias.shape) < 0.2, -INF, bias)
    if heads and draw(st.booleans()):
        masks["key_allow"] = rng.random((B, S)) < 0.7
    if heads:
        d_model, kdim, vdim = 2 * H, *rng.integers(1, 6, 2).tolist()
        state = {
            name: rng.normal(size=x.shape)
            for name, x in oracle.parameters(d_model, kdim=kdim, vdim=vdim).items()
        }
        xs = [rng.normal(size=(B, n, w)) for n, w in ((L, d_model), (S, kdim), (S, vdim))]
        return state, H, xs, masks
    return [rng.normal(size=(B, H, n, w)) for n, w in ((L, 3), (S, 3), (S, 2))], masks


def allowed(masks, B, H, L, S):
    """Which key every query may see, by plain loops."""
    offset = {False: None, "upper_left": 0, "lower_right": S - L}[masks["causal"]]
    open_ = np.zeros((B, H, L, S), bool)
    for b, h in itertools.product(range(B), range(H)):
        own = {
            "allow": masks["allow"][b, h] if "allow" in masks else None,
            "key_allow": masks["key_allow"][b] if "key_allow" in masks else None,
            "bias": masks["score_bias"][b, h] if "score_bias" in masks else None,
        }
        open_[b, h] = np.array(table(L, S, **own, offset=offset)).reshape(L, S) != -INF
    return open_


@given(problems())
def test_attention_is_the_oracle_and_rows_sum_to_one_or_zero(problem):
    (q, k, v), masks = problem
    B, H, L, S = *q.shape[:3], k.shape[2]
    offset = {False: None, "upper_left": 0, "lower_right": S - L}[masks["causal"]]
    output, weights = np.zeros((B, H, L, 2)), np.zeros((B, H, L, S))
    for b, h in itertools.product(range(B), range(H)):
        mask = table(
            L,
            S,
            allow=masks["allow"][b, h] if "allow" in masks else None,
            bias=masks["score_bias"][b, h] if "score_bias" in masks else None,
            offset=offset,
        )
        output[b, h], weights[b, h] = oracle.attention(q[b, h], k[b, h], v[b, h], mask)
    open_ = allowed(masks, B, H, L, S)
    for out, w in check_attention(q, k, v, output=output, weights=weights, **masks):
        assert (np.asarray(out)[~open_.any(-1)] == 0).all()
        if w is not None:
            close(np.asarray(w).sum(-1), open_.any(-1).astype(float))
            assert (np.asarray(w)[~open_] == 0).all()


@given(problems(heads=True))
def test_several_heads_are_the_oracle(problem):
    state, H, xs, masks = problem
    B, L, S = *xs[0].shape[:2], xs[1].shape[1]
    offset = {False: None, "upper_left": 0, "lower_right": S - L}[masks["causal"]]
    found = []
    for b in range(B):
        per_head = [
            table(
                L,
                S,
                allow=masks["allow"][b, h] if "allow" in masks else None,
                key_allow=masks["key_allow"][b] if "key_allow" in masks else None,
                bias=masks["score_bias"][b, h] if "score_bias" in masks else None,
                offset=offset,
            )
            for h in range(H)
        ]
        found.append(oracle.multi_head(*(x[b] for x in xs), state, H, per_head=per_head))
    output, weights = (np.array([f[i] for f in found]) for i in (0, 1))
    check_layer(state, H, *xs, output=output, weights=weights, tol=1e-10, **masks)


@given(problems(), JUNK, seeds)
def test_what_is_written_in_a_blocked_key_never_matters(problem, junk, seed):
    """An unseen key may hold anything; one that is blocked for some rows, any finite number."""
    (q, k, v), masks = problem
    rng = np.random.default_rng(seed)
    B, H, L, S = *q.shape[:3], k.shape[2]
    open_ = allowed(masks, B, H, L, S)
    unseen = ~open_.any(-2)
    other_k, other_v = k.copy(), v.copy()
    other_k[unseen] = junk
    other_v[unseen] = junk
    clean = mha.attention(q, k, v, **masks)
    check_attention(q, other_k, other_v, output=clean[0], weights=clean[1], **masks)
    loss = tensors(rng.normal(size=(B, H, L, 2)))
    for need_weights in (True, False):
        grads = []
        for keys, values in ((k, v), (other_k, other_v)):
            leaves = [tensors(x).requires_grad_() for x in (q, keys, values)]
            out, _ = mha.torch_attention(*leaves, **tensors(masks), need_weights=need_weights)
            grads.append(torch.autograd.grad(out, leaves, loss))
        for one, other in zip(*grads, strict=True):
            assert torch.equal(one, other)
        for grad in grads[0][1:]:
            assert (grad[tensors(unseen)] == 0).all()
    j = int(rng.integers(S))
    k[:, :, j] += 3.0
    v[:, :, j] -= 7.0
    blind = ~open_[..., j]
    for out, _ in check_attention(q, k, v, **masks):
        close(np.asarray(out)[blind], clean[0][blind])


@given(problems(heads=True), JUNK)
def test_padding_never_matters_to_the_layer(problem, junk):
    state, H, xs, masks = problem
    B, L, S = *xs[0].shape[:2], xs[1].shape[1]
    unseen = ~allowed(masks, B, H, L, S).any(axis=(1, 2))
    other = [xs[0], *(np.where(unseen[..., None], junk, x) for x in xs[1:])]
    clean = mha.multi_head_attention(*xs, projections=projections_of(state), num_heads=H, **masks)
    check_layer(state, H, *other, output=clean[0], weights=clean[1], tol=1e-10, **masks)
    for need_weights in (True, False):
        layer, grads = layer_of(state, H), []
        for inputs in (xs, other):
            leaves = [tensors(x).requires_grad_() for x in inputs]
            out, _ = layer(*leaves, **tensors(masks), need_weights=need_weights)
            grads.append(torch.autograd.grad(out.sum(), (*leaves, *layer.parameters())))
        for one, two in zip(*grads, strict=True):
            assert torch.equal(one, two)


@given(problems(heads=True), seeds)
def test_permuting_the_tokens_permutes_the_rows(problem, seed):
    state, H, xs, masks = problem
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(xs[0].shape[1]), rng.permutation(xs[1].shape[1])
    masks = {**masks, "causal": False}
    turned = {
        name: m[:, columns] if name == "key_allow" else m[:, :, rows][..., columns]
        for name, m in masks.items()
        if name != "causal"
    }
    out, w = mha.multi_head_attention(*xs, projections=projections_of(state), num_heads=H, **masks)
    permuted = [xs[0][:, rows], xs[1][:, columns], xs[2][:, columns]]
    check_layer(
        state,
        H,
        *permuted,
        output=out[:, rows],
        weights=w[:, :, rows][..., columns],
        tol=1e-10,
        **turned,
    )


@given(problems(heads=True))
def test_a_batch_of_one_is_no_batch(problem):
    state, H, xs, masks = problem
    cut = {n: m[:1] if isinstance(m, np.ndarray) else m for n, m in masks.items()}
    bare = {n: m[0] if isinstance(m, np.ndarray) else m for n, m in cut.items()}
    out, w = mha.multi_head_attention(
        *(x[:1] for x in xs), projections=projections_of(state), num_heads=H, **cut
    )
    check_layer(state, H, *(x[0] for x in xs), output=out[0], weights=w[0], tol=1e-10, **bare)


def layouts(x):
    """The same numbers in other places: order of axes, strides, gaps, read-only."""
    x = np.array(x)
    yield np.asfortranarray(x)
    yield np.flip(np.flip(x, -1).copy(), -1)
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0)
    x.flags.writeable = False
    yield x


@given(problems(), st.integers(0, 4), st.integers(0, 4))
def test_memory_layout_does_not_matter(problem, i, j):
    (q, k, v), masks = problem
    expected = mha.attention(q, k, v, **masks)
    arrays = [list(layouts(x))[(i + n * j) % 5] for n, x in enumerate((q, k, v))]
    masks = {n: list(layouts(m))[i] if isinstance(m, np.ndarray) else m for n, m in masks.items()}
    out, w = mha.attention(*arrays, **masks)
    close(out, expected[0])
    close(w, expected[1])
    tricks = [
        lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
        lambda t: torch.stack([t, t], dim=-1)[..., 0],
        lambda t: t.to(memory_format=torch.channels_last),
        lambda t: t[None].expand(3, *t.shape)[1],
        lambda t: t.clone(),
    ]
    for need_weights in (True, False):
        moved = [tricks[(i + n * j) % 5](tensors(x)) for n, x in enumerate((q, k, v))]
        given_masks = {
            n: tricks[j](tensors(m)) if isinstance(m, np.ndarray) else m for n, m in masks.items()
        }
        out, _ = mha.torch_attention(*moved, **given_masks, need_weights=need_weights)
        close(out, expected[0])


@given(seeds, st.lists(st.integers(0, 5), min_size=0, max_size=3), st.integers(0, 5))
def test_split_and_merge_are_inverses(seed, lead, L):
    rng = np.random.default_rng(seed)
    H, d = (int(n) for n in rng.integers(1, 6, 2))
    x = rng.normal(size=(*lead, L, H * d))
    for one in (x, torch.from_numpy(x)):
        split = mha.split_heads(one, H)
        assert tuple(split.shape) == (*lead, H, L, d)
        assert mha.merge_heads(split).tolist() == x.tolist()
        assert mha.split_heads(mha.merge_heads(split), H).tolist() == split.tolist()


@given(seeds, st.booleans(), st.booleans())
def test_masks_to_the_form_of_torch_and_back(seed, as_bias, per_head):
    rng = np.random.default_rng(seed)
    B, H, L, S = (int(n) for n in rng.integers(1, 5, 4))
    shape = (B, H, L, S) if per_head else (L, S)
    allow, keep = (
        torch.from_numpy(rng.random(shape) < 0.5),
        torch.from_numpy(rng.random((B, S)) < 0.5),
    )
    bias = torch.from_numpy(rng.normal(size=shape)).masked_fill(~allow, -INF)
    attn_mask = bias if as_bias else ~allow
    attn_mask = attn_mask.flatten(0, 1) if per_head else attn_mask
    masks = mha.masks_from_torch(attn_mask, ~keep, num_heads=H if per_head else None)
    name, mask = ("score_bias", bias) if as_bias else ("allow", allow)
    assert set(masks) == {name, "key_allow"}
    assert torch.equal(masks[name], mask)
    assert torch.equal(masks["key_allow"], keep)


@given(seeds, st.booleans(), st.booleans())
def test_there_and_back_is_bit_equal(seed, bias, own_widths):
    rng = np.random.default_rng(seed)
    H, d_k = (int(n) for n in rng.integers(1, 5, 2))
    kdim, vdim = (int(n) for n in rng.integers(1, 7, 2)) if own_widths else (H * d_k, H * d_k)
    state = {
        name: rng.normal(size=x.shape) * 10.0 ** rng.integers(-300, 300)
        for name, x in oracle.parameters(H * d_k, kdim=kdim, vdim=vdim, bias=bias).items()
    }
    layer = layer_of(state, H)
    back = mha.MultiHeadAttention.from_torch(layer.to_torch())
    assert set(back.state_dict()) == set(state)
    for name, tensor in back.state_dict().items():
        assert tensor.numpy().tobytes() == state[name].tobytes()
    assert back.num_heads == H


@given(problems(heads=True))
@settings(max_examples=20)
def test_torch_agrees_where_every_row_has_a_key(problem):
    state, H, xs, masks = problem
    B, L, S = *xs[0].shape[:2], xs[1].shape[1]
    open_ = allowed(masks, B, H, L, S)
    open_[..., 0] |= ~open_.any(-1)
    bias = masks.get("score_bias", np.zeros(open_.shape))
    added = np.where(open_, np.where(np.isinf(bias), 0.0, bias), -INF)
    truth, weights = torch_of(state, H)(
        *map(tensors, xs), attn_mask=tensors(added).flatten(0, 1), average_attn_weights=False
    )
    truth, weights = truth.detach().numpy(), weights.detach().numpy()
    check_layer(state, H, *xs, output=truth, weights=weights, tol=1e-10, score_bias=added)


@given(seeds, st.sampled_from(["float16", "float32", "float64"]), st.integers(-3, 3))
def test_softmax_ignores_a_common_number(seed, dtype, shift):
    scores = np.round(np.random.default_rng(seed).normal(size=(3, 5)) * 8) / 8
    moved = (scores + shift).astype(dtype)
    close(mha.softmax(moved), mha.softmax(scores.astype(dtype)), 0)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_equal_scores_are_uniform(n):
    assert (mha.softmax(np.full((2, n), 3.0)) == 1 / n).all()
