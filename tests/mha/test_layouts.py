"""Packed weights: every layout spelled out row by row, there and back bit for bit, and refused."""

import doctest
import itertools
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import mha
from mha import layouts

H, H_KV, D_K, WIDTH = 6, 2, 5, 7
KINDS = [np.asarray, torch.as_tensor]


def parts(heads=H, kv_heads=H, d_k=D_K, rest=(WIDTH,)):
    """q, k and v in which every number is another one."""
    sizes = [n * d_k for n in (heads, kv_heads, kv_heads)]
    cut = np.cumsum([0, *sizes])
    numbers = np.arange(cut[-1] * int(np.prod(rest)), dtype=np.float64).reshape(cut[-1], *rest)
    return [numbers[a:b] for a, b in itertools.pairwise(cut)]


def head(x, h, d_k=D_K):
    return x[h * d_k : (h + 1) * d_k]


def expected(layout, q, k, v, kv_heads):
    """The layouts once more, by loops over heads."""
    group = H // kv_heads
    if layout in ("block", "transposed"):
        rows = [q, k, v]
    else:
        rows = []
        for g in range(kv_heads):
            rows += [head(q, g * group + i) for i in range(group)] + [head(k, g), head(v, g)]
    packed = np.concatenate(rows)
    return packed.T if layout == "transposed" else packed


CASES = [
    (layout, kv_heads)
    for layout in ("block", "transposed", "interleaved", "grouped")
    for kv_heads in ((H,) if layout == "interleaved" else (H, H_KV, 1))
]


@pytest.mark.parametrize("rest", [(WIDTH,), ()], ids=["weight", "bias"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("layout", "kv_heads"), CASES)
def test_one_array_for_all_three(layout, kv_heads, kind, rest):
    q, k, v = parts(kv_heads=kv_heads, rest=rest)
    options = {"layout": layout, "num_heads": H, "num_kv_heads": kv_heads}
    packed = layouts.pack(kind(q), kind(k), kind(v), **options)
    assert type(packed) is type(kind(q))
    assert packed.tolist() == expected(layout, q, k, v, kv_heads).tolist()
    back = layouts.unpack(packed, **options)
    assert type(back) is tuple
    assert [type(x) for x in back] == [type(packed)] * 3
    assert [x.tolist() for x in back] == [q.tolist(), k.tolist(), v.tolist()]
    if kv_heads == H:  # as it is by default
        del options["num_kv_heads"]
        assert layouts.unpack(packed, **options)[1].tolist() == k.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kv_heads", [H, H_KV, 1])
def test_a_matrix_for_each_head(kv_heads, kind):
    q, _, _ = parts(kv_heads=kv_heads)
    _, k, _ = parts(kv_heads=kv_heads, rest=(11,))  # widths of their own, as kdim and vdim
    _, _, v = parts(kv_heads=kv_heads, rest=(13,))
    options = {"layout": "einsum", "num_heads": H, "num_kv_heads": kv_heads}
    packed = layouts.pack(kind(q), kind(k), kind(v), **options)
    sizes = ((H, WIDTH), (kv_heads, 11), (kv_heads, 13))
    for x, whole, (heads, width) in zip(packed, (q, k, v), sizes, strict=True):
        assert tuple(x.shape) == (heads, width, D_K)
        for h in range(heads):
            assert x[h].tolist() == head(whole, h).T.tolist()
    back = layouts.unpack(packed, **options)
    assert [x.tolist() for x in back] == [q.tolist(), k.tolist(), v.tolist()]
    biases = [kind(x[:, 0]) for x in (q, k, v)]
    packed = layouts.pack(*biases, **options)
    assert [tuple(x.shape) for x in packed] == [(heads, D_K) for heads, _ in sizes]
    assert packed[1][0].tolist() == head(k, 0)[:, 0].tolist()
    back = layouts.unpack(packed, **options)
    assert [x.tolist() for x in back] == [x.tolist() for x in biases]


@pytest.mark.parametrize("layout", ["block", "interleaved"])
def test_it_is_the_layout_of_unpack_qkv(layout):
    packed = layouts.pack(*parts(), layout=layout, num_heads=H)
    for one, other in zip(
        layouts.unpack(packed, layout=layout, num_heads=H),
        mha.unpack_qkv(packed, layout=layout, num_heads=H),
        strict=True,
    ):
        assert one.tolist() == other.tolist()


def test_it_is_the_layout_of_torch():
    module = torch.nn.MultiheadAttention(H * D_K, H)
    layer = mha.MultiHeadAttention.from_torch(module)
    names = ("q_proj", "k_proj", "v_proj")
    for kind, packed in (("weight", module.in_proj_weight), ("bias", module.in_proj_bias)):
        three = [layer.get_parameter(f"{name}.{kind}") for name in names]
        assert torch.equal(layouts.pack(*three, layout="block", num_heads=H), packed)


def test_grouped_lies_between_interleaved_and_block():
    q, k, v = parts()
    one = layouts.pack(q, k, v, layout="grouped", num_heads=H)
    assert one.tolist() == layouts.pack(q, k, v, layout="interleaved", num_heads=H).tolist()
    q, k, v = parts(kv_heads=1)
    options = {"num_heads": H, "num_kv_heads": 1}
    one = layouts.pack(q, k, v, layout="grouped", **options)
    assert one.tolist() == layouts.pack(q, k, v, layout="block", **options).tolist()


@pytest.mark.parametrize("layout", layouts.LAYOUTS)
def test_gradients_and_views(layout):
    three = [torch.as_tensor(x).requires_grad_() for x in parts()]
    packed = layouts.pack(*three, layout=layout, num_heads=H)
    _, k, _ = layouts.unpack(packed, layout=layout, num_heads=H)
    k.sum().backward()
    grads = [0.0 if x.grad is None else x.grad.sum().item() for x in three]
    assert grads == [0.0, three[1].numel(), 0.0]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(layouts.LAYOUTS),
    st.sampled_from([np.float16, np.float32, np.float64, np.int64, "<U3"]),
    st.booleans(),
)
def test_there_and_back_is_bit_equal(seed, layout, dtype, bias):
    rng = np.random.default_rng(seed)
    kv_heads, group, d_k, width = (int(n) for n in rng.integers(1, 6, 4))
    kv_heads, heads = (kv_heads * group if layout == "interleaved" else kv_heads), kv_heads * group
    q, k, v = parts(heads, kv_heads, d_k, () if bias else (width,))
    q, k, v = (rng.permuted(x * 10.0 ** rng.integers(-3, 3)).astype(dtype) for x in (q, k, v))
    options = {"layout": layout, "num_heads": heads, "num_kv_heads": kv_heads}
    there = layouts.pack(q, k, v, **options)
    for one, other in zip(layouts.unpack(there, **options), (q, k, v), strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    back = layouts.pack(*layouts.unpack(there, **options), **options)
    if layout != "einsum":
        there, back = [there], [back]
    assert [x.tobytes() for x in back] == [x.tobytes() for x in there]


def test_only_the_right_layout_gives_the_right_numbers():
    """Read as any other layout of the same shape, the weights are there, but not in their place."""
    q, k, v = parts()
    for stored, read in itertools.permutations(("block", "interleaved"), 2):
        packed = layouts.pack(q, k, v, layout=stored, num_heads=H)
        wrong = layouts.unpack(packed, layout=read, num_heads=H)
        assert [x.shape for x in wrong] == [q.shape] * 3
        assert not np.array_equal(wrong[0], q)


BAD = []


def bad(call, error, message, *args, **options):
    BAD.append(pytest.param(call, error, message, args, options, id=f"{len(BAD)}-{message}"))


Q, K, V = parts()
ROWS = np.zeros((3 * H * D_K, WIDTH))
for layout in ("blocks", "BLOCK", None, 1, ["block"]):
    message = f"layout must be one of {layouts.LAYOUTS}, got {layout!r}"
    bad(layouts.pack, ValueError, message, Q, K, V, layout=layout, num_heads=H)
    bad(layouts.unpack, ValueError, message, ROWS, layout=layout, num_heads=H)
for call, given_ in ((layouts.pack, (Q, K, V)), (layouts.unpack, (ROWS,))):
    for number in (0, -1):
        message = f"num_heads must be at least 1, got {number}"
        bad(call, ValueError, message, *given_, layout="block", num_heads=number)
        message = f"num_kv_heads must be at least 1, got {number}"
        bad(call, ValueError, message, *given_, layout="block", num_heads=H, num_kv_heads=number)
    for number in (2.0, True, "2"):
        message = f"num_kv_heads must be an integer, got {number!r} ({type(number).__name__})"
        bad(call, TypeError, message, *given_, layout="block", num_heads=H, num_kv_heads=number)
    message = "num_heads must be an integer, got None (NoneType)"
    bad(call, TypeError, message, *given_, layout="block", num_heads=None)
    message = "num_heads=6 is not divisible by num_kv_heads=4"
    bad(call, ValueError, message, *given_, layout="grouped", num_heads=H, num_kv_heads=4)
    message = '"interleaved" has a key for every head; num_kv_heads=2 needs "grouped"'
    bad(call, ValueError, message, *given_, layout="interleaved", num_heads=H, num_kv_heads=2)

wanted = "q must have shape (out, in) or (out,)"
multiple = f"{wanted}, out a multiple of num_heads=6, got "
for shape in ((31, 7), (0, 7), (30, 7, 2)):
    message = multiple + str(shape)
    bad(layouts.pack, ValueError, message, np.zeros(shape), K, V, layout="block", num_heads=H)
bad(layouts.pack, ValueError, f"{wanted}, got ()", 1.0, K, V, layout="block", num_heads=H)
for i, name in enumerate("kv", 1):
    for shape in ((25, 7), (30, 8), (30,), (30, 7, 1)):
        changed = [Q, K, V]
        changed[i] = np.zeros(shape)
        message = f"{name} must have shape (30, 7), got {shape}"
        bad(layouts.pack, ValueError, message, *changed, layout="block", num_heads=H)
    changed[i] = np.zeros((30, 7))
    message = f"{name} must have shape (10, 7), got (30, 7)"
    small = [Q, K[:10], V[:10]]
    small[i] = changed[i]
    bad(layouts.pack, ValueError, message, *small, layout="grouped", num_heads=H, num_kv_heads=2)
    changed[i] = np.zeros((30, 7), np.float32)
    message = f"{name} must be float64, as q is, got float32"
    bad(layouts.pack, TypeError, message, *changed, layout="block", num_heads=H)
    changed[i] = torch.zeros(30, 7, dtype=torch.float64)
    message = f"{name} must be float64, as q is, got torch.float64"
    bad(layouts.pack, TypeError, message, *changed, layout="block", num_heads=H)
    changed[i] = np.zeros((25, 8))
    message = f"{name} must have shape (30, 8), got (25, 8)"
    bad(layouts.pack, ValueError, message, *changed, layout="einsum", num_heads=H)
    changed[i] = np.zeros(30)
    message = f"{name} must have shape (30, 7), got (30,)"
    bad(layouts.pack, ValueError, message, *changed, layout="einsum", num_heads=H)

for layout, axes in (("block", "(out, in)"), ("transposed", "(in, out)"), ("grouped", "(out, in)")):
    for shape in ((7, 31), (31, 7), (0,), (90, 90, 1)):
        message = f"packed must have shape {axes} or (out,), out a multiple of 6 + 2 * 6, got "
        message += str(shape)
        bad(layouts.unpack, ValueError, message, np.zeros(shape), layout=layout, num_heads=H)
message = "packed must have shape (out, in) or (out,), got ()"
bad(layouts.unpack, ValueError, message, 1.0, layout="block", num_heads=H)
CUBE = np.zeros((H, WIDTH, D_K))
message = "packed must be three arrays (H, in, d_k), got 2"
bad(layouts.unpack, ValueError, message, (CUBE, CUBE), layout="einsum", num_heads=H)
for i, name in enumerate("qkv"):
    for shape in ((WIDTH, H, D_K), (H,), (H, WIDTH, D_K, 1)):
        three = [CUBE, CUBE, CUBE]
        three[i] = np.zeros(shape)
        message = f"{name} must have shape (6, in, d_k) or (6, d_k), got {shape}"
        bad(layouts.unpack, ValueError, message, three, layout="einsum", num_heads=H)
message = "k must have shape (30, 7), got (24, 7)"
three = (CUBE, CUBE[..., :4], CUBE)
bad(layouts.unpack, ValueError, message, three, layout="einsum", num_heads=H)


@pytest.mark.parametrize(("call", "error", "message", "args", "options"), BAD)
def test_bad_input(call, error, message, args, options):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        call(*args, **options)


def test_the_docstrings_have_examples():
    for function in (layouts.pack, layouts.unpack):
        assert "Source: " in function.__doc__
        assert "Error`" in function.__doc__
        assert doctest.DocTestParser().get_examples(function.__doc__)
