"""What must be refused, with what the message must hold; under `python -O` just the same."""

import math
import re

import numpy as np
import pytest
import torch
from mha_ways import run_python

import mha

B, H, L, S, d_model, kdim, vdim, d_k, d_v = 2, 3, 5, 7, 6, 11, 13, 2, 17


def array(*shape):
    return np.zeros(shape)


def tensor(*shape):
    return torch.zeros(shape, dtype=torch.float64)


def bools(*shape):
    return torch.ones(shape, dtype=torch.bool)


def projections(**changes):
    widths = {"w_q": d_model, "w_k": kdim, "w_v": vdim, "w_o": d_model}
    given = {name: array(n, d_model) for name, n in widths.items()}
    return mha.Projections(**{**given, **{f"b_{n}": array(d_model) for n in "qkvo"}, **changes})


def function(q=(B, L, d_model), k=(B, S, kdim), v=(B, S, vdim), **kwargs):
    given = {"projections": projections(), "num_heads": H, **kwargs}
    return mha.multi_head_attention(array(*q), array(*k), array(*v), **given)


def layer(q=(B, L, d_model), k=(B, S, kdim), v=(B, S, vdim), **kwargs):
    module = mha.MultiHeadAttention(d_model, H, kdim=kdim, vdim=vdim, dtype=torch.float64)
    return module(tensor(*q), tensor(*k), tensor(*v), **kwargs)


def numpy_attention(q=(B, L, d_k), k=(B, S, d_k), v=(B, S, d_v), **kwargs):
    return mha.attention(array(*q), array(*k), array(*v), **kwargs)


def torch_attention(q=(B, L, d_k), k=(B, S, d_k), v=(B, S, d_v), **kwargs):
    return mha.torch_attention(tensor(*q), tensor(*k), tensor(*v), **kwargs)


def as_arrays(kwargs):
    return {n: x.detach().numpy() if isinstance(x, torch.Tensor) else x for n, x in kwargs.items()}


BAD = []


def bad(call, error, message, *args, **kwargs):
    BAD.append((call, error, message, args, kwargs))


def bad_attention(error, message, *args, **kwargs):
    """On the NumPy half and on both paths of the torch half."""
    bad(numpy_attention, error, message, *args, **as_arrays(kwargs))
    bad(torch_attention, error, message, *args, **kwargs)
    bad(torch_attention, error, message, *args, need_weights=False, **kwargs)


def bad_heads(error, message, *args, **kwargs):
    bad(function, error, message, *args, **as_arrays(kwargs))
    bad(layer, error, message, *args, **kwargs)
    bad(layer, error, message, *args, need_weights=False, **kwargs)


# Sizes that must agree and do not
bad_attention(ValueError, r"query.*key.*2.*3", (B, L, 2), (B, S, 3))
bad_attention(ValueError, r"key.*value.*7.*11", (B, L, d_k), (B, S, d_k), (B, 11, d_v))
bad_attention(ValueError, r"query.*key.*\(1,\).*\(2,\)", (1, L, d_k))
bad_attention(ValueError, r"query.*key.*\(2,\).*\(1,\)", (B, L, d_k), (1, S, d_k), (1, S, d_v))
bad_attention(ValueError, r"value.*\(2,\).*\(1,\)", (B, L, d_k), (B, S, d_k), (1, S, d_v))
bad_attention(ValueError, r"query.*key.*\(2, 1\).*\(2,\)", (B, 1, L, d_k))
bad_attention(ValueError, r"query.*key.*\(\).*\(2,\)", (L, d_k))
bad_attention(ValueError, r"d_k.*0", (B, L, 0), (B, S, 0))
bad_heads(ValueError, r"query.*key.*\(2,\).*\(3,\)", (2, L, d_model), (3, S, kdim), (3, S, vdim))
bad_heads(ValueError, r"query.*key.*\(1,\).*\(2,\)", (1, L, d_model))
bad_heads(ValueError, r"value.*\(2,\).*\(1,\)", v=(1, S, vdim))
bad_heads(ValueError, r"query.*key.*\(\).*\(2,\)", (L, d_model))
bad_heads(ValueError, r"key.*value.*7.*5", v=(B, 5, vdim))

# Ranks and widths
bad_attention(ValueError, r"query.*\(5,\)", (5,))
bad_attention(ValueError, r"key.*\(5,\)", k=(5,))
bad_attention(ValueError, r"value.*\(5,\)", v=(5,))
bad_attention(ValueError, r"query.*\(\)", ())
for axes in ((6,), (2, 2, L, 6), ()):
    bad_heads(ValueError, r"query.*B.*L.*6.*got " + re.escape(str(axes)), axes)
bad_heads(ValueError, r"key.*B.*S.*11.*got \(2, 7, 6\)", k=(B, S, d_model))
bad_heads(ValueError, r"value.*B.*S.*13.*got \(2, 7, 6\)", v=(B, S, d_model))
bad_heads(ValueError, r"query.*B.*L.*6.*got \(2, 5, 7\)", (B, L, 7))
bad(mha.split_heads, ValueError, r"L.*\(6,\)", array(6), 3)
bad(mha.split_heads, ValueError, r"L.*\(6,\)", tensor(6), 3)
bad(mha.merge_heads, ValueError, r"H.*\(5, 2\)", array(5, 2))
bad(mha.merge_heads, ValueError, r"H.*\(5, 2\)", tensor(5, 2))
for name, shape in (
    ("w_q", (d_model, 5)),
    ("w_k", (kdim, 5)),
    ("w_v", (vdim, 5)),
    ("w_o", (5, d_model)),
    ("w_o", (d_model, 5)),
    ("w_k", (kdim,)),
    ("b_q", (1, d_model)),
    ("b_k", (1,)),
    ("b_v", ()),
    ("b_o", (7,)),
):
    message = f"{name}.*6.*got {re.escape(str(shape))}"
    bad(function, ValueError, message, projections=projections(**{name: array(*shape)}))
bad(function, ValueError, "w_q", projections=projections(w_q=array(5, 6)))
for name, width in (("w_q", "d_model"), ("w_k", "kdim"), ("w_v", "vdim")):
    bad(function, ValueError, f"{width}.*0", projections=projections(**{name: array(0, 6)}))
bad(function, TypeError, "w_q.*object", projections=projections(w_q=None))

# Masks: shapes
for shape in ((S, L), (1, L, 5), (3, L, S), (1, B, L, S), (S,), (), (L, S, 1)):
    got = r"\(5, 7\).*\(2, 5, 7\).*got " + re.escape(str(shape))
    bad_attention(ValueError, "allow.*" + got, allow=bools(*shape))
    bad_attention(ValueError, "score_bias.*" + got, score_bias=tensor(*shape))
for shape in ((S, L), (3, L, S), (B, L, L), (B, B, L, S), (1, B, H, L, S), (S,), (), (B, S)):
    got = r"\(5, 7\).*\(2, 5, 7\).*\(2, 3, 5, 7\).*got " + re.escape(str(shape))
    bad_heads(ValueError, "allow.*" + got, allow=bools(*shape))
    bad_heads(ValueError, "score_bias.*" + got, score_bias=tensor(*shape))
for shape in ((S,), (B, L), (3, S), (B, 1, S), ()):
    got = r"\(2, 7\).*got " + re.escape(str(shape))
    bad_heads(ValueError, "key_allow.*" + got, key_allow=bools(*shape))
one = {"q": (L, d_model), "k": (S, kdim), "v": (S, vdim)}
for shape in ((B, L, S), (1, H, L, S), (S,)):
    got = r"\(5, 7\).*\(3, 5, 7\).*got " + re.escape(str(shape))
    bad_heads(ValueError, "allow.*" + got, **one, allow=bools(*shape))
bad_heads(ValueError, r"key_allow.*\(7,\).*got \(1, 7\)", **one, key_allow=bools(1, S))

# Masks: dtypes
for dtype in (torch.int64, torch.uint8, torch.float64, torch.float32, torch.complex64):
    got = ".*bool.*" + str(dtype).removeprefix("torch.")
    bad_attention(TypeError, "allow" + got, allow=torch.ones(L, S, dtype=dtype))
    bad_heads(TypeError, "allow" + got, allow=torch.ones(L, S, dtype=dtype))
    bad_heads(TypeError, "key_allow" + got, key_allow=torch.ones(B, S, dtype=dtype))
for dtype in (torch.int64, torch.uint8, torch.bool, torch.complex64):
    got = "score_bias.*float.*" + str(dtype).removeprefix("torch.")
    bad_attention(TypeError, got, score_bias=torch.ones(L, S, dtype=dtype))
    bad_heads(TypeError, got, score_bias=torch.ones(L, S, dtype=dtype))
for name in ("allow", "key_allow", "score_bias"):
    bad(layer, TypeError, f"{name}.*ndarray", **{name: np.ones((L, S))})
bad(torch_attention, TypeError, "allow.*list", allow=[[True]])

# Heads and sizes
for call in (
    lambda: mha.MultiHeadAttention(6, 4),
    lambda: mha.split_heads(array(5, 6), 4),
    lambda: mha.split_heads(tensor(5, 6), 4),
    lambda: function(num_heads=4),
    lambda: mha.unpack_qkv(array(18), layout="interleaved", num_heads=4),
):
    bad(call, ValueError, "6.*4")
for number in (0, -1):
    for call in (
        lambda n=number: mha.MultiHeadAttention(6, n),
        lambda n=number: mha.split_heads(array(5, 6), n),
        lambda n=number: function(num_heads=n),
        lambda n=number: mha.unpack_qkv(array(18), layout="interleaved", num_heads=n),
        lambda n=number: mha.masks_from_torch(bools(6, L, S), num_heads=n),
    ):
        bad(call, ValueError, f"num_heads.*{number}")
    for name in ("d_model", "kdim", "vdim"):
        sizes = {"d_model": 6, "num_heads": 1, name: number}
        bad(mha.MultiHeadAttention, ValueError, f"{name}.*{number}", **sizes)
for number in (2.0, True, None, "2", np.float64(2)):
    for call in (
        lambda n=number: mha.MultiHeadAttention(6, n),
        lambda n=number: mha.split_heads(array(5, 6), n),
        lambda n=number: function(num_heads=n),
        lambda n=number: mha.unpack_qkv(array(18), layout="interleaved", num_heads=n),
        lambda n=number: mha.masks_from_torch(bools(6, L, S), num_heads=n),
    ):
        bad(call, TypeError, "num_heads")
    for name in ("d_model", "kdim", "vdim"):
        sizes = {"d_model": 6, "num_heads": 1, name: number}
        if number is not None or name == "d_model":
            bad(mha.MultiHeadAttention, TypeError, name, **sizes)
for p in (-0.1, 1.0, 1.5, math.nan, math.inf):
    bad(mha.MultiHeadAttention, ValueError, f"dropout.*{p}", 6, 2, dropout=p)
    bad(torch_attention, ValueError, f"dropout.*{p}", dropout_p=p)

for scale in (np.array(0.5), "1", 1j, [1.0]):
    bad_attention(TypeError, f"scale.*{type(scale).__name__}", scale=scale)

bad(torch_attention, TypeError, "scale.*Tensor", scale=torch.tensor(0.5, requires_grad=True))

# Key and value
x, y = tensor(B, L, 6), array(B, L, 6)
square = mha.Projections(*[array(6, 6)] * 4)
module = mha.MultiHeadAttention(6, 2, dtype=torch.float64)
bad(module, TypeError, "key without value", x, x)
bad(module, TypeError, "value without key", x, value=x)
for kwargs, message in (({"key": y}, "key without value"), ({"value": y}, "value without key")):
    bad(
        mha.multi_head_attention,
        TypeError,
        message,
        y,
        projections=square,
        num_heads=2,
        **kwargs,
    )
bad(mha.parity, TypeError, "key without value", module, module.to_torch(), x, x)

# Dtypes of the input
ids = torch.zeros(B, L, 6, dtype=torch.int64)
for wrong in (ids, ids.bool(), ids.to(torch.uint8), ids.to(torch.complex64)):
    got = "floating point.*6.*" + str(wrong.dtype).removeprefix("torch.")
    bad(module, TypeError, "query.*" + got, wrong)
    bad(module, TypeError, "key.*" + got, x, wrong, x)
    bad(module, TypeError, "value.*" + got, x, x, wrong)
    got = str(wrong.dtype).removeprefix("torch.")
    bad(mha.torch_attention, TypeError, "query.*floating point.*d_k.*" + got, wrong, wrong, wrong)
    bad(mha.torch_attention, TypeError, "key.*floating point.*d_k.*" + got, x, wrong, x)
    bad(mha.torch_attention, TypeError, "value.*floating point.*d_v.*" + got, x, x, wrong)
for name, qkv in (
    ("query", (x.float(), x, x)),
    ("key", (x, x.float(), x)),
    ("value", (x, x, x.float())),
):
    bad(module, TypeError, f"{name}.*float64.*float32", *qkv)
    if name != "query":
        bad(mha.torch_attention, TypeError, f"{name}.*float64.*float32", *qkv)
bad(module, TypeError, "query.*float64.*float16", x.half())
bad(module, TypeError, "query.*ndarray", y)
bad(mha.torch_attention, TypeError, "query.*ndarray", y, y, y)
bad(mha.torch_attention, TypeError, "key.*list", x, [[1.0]], x)
for wrong in (y.astype(complex), y.astype(object), y.astype(str)):
    got = str(wrong.dtype)
    bad(mha.softmax, TypeError, "scores.*" + got, wrong)
    for i, name in enumerate(("query", "key", "value")):
        qkv = [wrong if i == j else y for j in range(3)]
        bad(mha.attention, TypeError, f"{name}.*{got}", *qkv)
        bad(
            mha.multi_head_attention,
            TypeError,
            f"{name}.*{got}",
            *qkv,
            projections=square,
            num_heads=2,
        )
bad(function, TypeError, "w_k.*complex128", projections=projections(w_k=array(kdim, 6) * 1j))

# Devices
meta = x.to("meta")
bad(module, ValueError, "query.*cpu.*meta", meta)
bad(module, ValueError, "value.*cpu.*meta", x, x, meta)
bad(mha.torch_attention, ValueError, "key.*cpu.*meta", x, meta, x)
bad(module, ValueError, "allow.*cpu.*meta", x, allow=bools(L, L).to("meta"))

# Words
array_of_names = np.array(["upper_left", "lower_right"])
wrong = ["upper", "True", 1, 0, None, 1.0, "lower_left", ["upper_left"], np.bool_(True)]
for causal in (*wrong, array_of_names):
    bad_attention(ValueError, "causal.*upper_left.*lower_right", causal=causal)
    bad_heads(ValueError, "causal.*upper_left.*lower_right", causal=causal)
for size in ((B, L, d_k), (B, S + 2, d_k)):
    numbers = rf"causal.*{size[1]}.*7.*upper_left.*lower_right"
    bad_attention(ValueError, numbers, size, causal=True)
bad_heads(ValueError, r"causal.*5.*7.*upper_left.*lower_right", causal=True)
bad(layer, ValueError, r"causal.*5.*7", causal=True, key_allow=bools(B, S))
for layout in ("blocks", None, "BLOCK", 1):
    bad(mha.unpack_qkv, ValueError, "block.*interleaved", array(18), layout=layout, num_heads=2)
bad(mha.unpack_qkv, ValueError, r"3.*\(7, 6\)", array(7, 6))
bad(mha.unpack_qkv, ValueError, r"3.*\(\)", array())
bad(mha.unpack_qkv, ValueError, "6.*4", array(18), num_heads=4)

# Masks of torch
bad(mha.masks_from_torch, ValueError, "6.*4", bools(6, L, S), num_heads=4)
bad(mha.masks_from_torch, TypeError, "num_heads", bools(6, L, S))
for rank in ((S,), (1, B, L, S)):
    bad(mha.masks_from_torch, ValueError, "attn_mask.*" + re.escape(str(rank)), bools(*rank))
for rank in ((), (1, B, S)):
    message = "key_padding_mask.*" + re.escape(str(rank))
    bad(mha.masks_from_torch, ValueError, message, None, bools(*rank))
for dtype in (torch.int64, torch.uint8, torch.complex64):
    got = "attn_mask.*" + str(dtype).removeprefix("torch.")
    bad(mha.masks_from_torch, TypeError, got, torch.ones(L, S, dtype=dtype))
    got = got.replace("attn", "key_padding")
    bad(mha.masks_from_torch, TypeError, got, None, torch.ones(B, S, dtype=dtype))
bad(mha.masks_from_torch, TypeError, "attn_mask.*ndarray", np.ones((L, S), bool))
bad(mha.masks_from_torch, ValueError, r"\(5, 7\).*\(2, 5\)", tensor(L, S), tensor(B, L))
bad(
    mha.masks_from_torch,
    ValueError,
    r"\(3, 2, 5, 7\).*\(2, 7\)",
    tensor(6, L, S),
    tensor(B, S),
    num_heads=2,
)

# Modules
for wrong in (torch.nn.Linear(6, 6), module, None):
    message = f"MultiheadAttention.*{type(wrong).__name__}"
    bad(mha.MultiHeadAttention.from_torch, TypeError, message, wrong)
    bad(mha.parity, TypeError, message, module, wrong)
bad(mha.parity, TypeError, "MultiHeadAttention.*MultiheadAttention", module.to_torch(), module)
for sizes in ((8, 2), (6, 2, kdim), (6, 2, None, kdim)):
    other = mha.MultiHeadAttention(
        *sizes[:2], **dict(zip(("kdim", "vdim"), sizes[2:], strict=False))
    )
    message = re.escape(f"{module.widths} and {other.widths}")
    bad(mha.parity, ValueError, message, module, other.to_torch())
full = torch.nn.MultiheadAttention(6, 2, dropout=1.0)
bad(mha.MultiHeadAttention.from_torch, ValueError, "dropout.*1.0", full)

# Comparing
for number in (-1e-9, math.nan, math.inf, "1", True, None.__class__, 1j):
    for name in ("rtol", "scale"):
        bad(mha.compare, ValueError, f"{name}.*{re.escape(repr(number))}", y, y, **{name: number})


# Each message once, word for word


def exact(call, error, message, *args, **kwargs):
    bad(call, error, f"^{re.escape(message)}$", *args, **kwargs)


def masked(*shape, **kwargs):
    return mha.masks_from_torch(bools(*shape), **kwargs)


FIT = "must be equal, in shapes"
exact(numpy_attention, ValueError, "query must have shape (..., L, d), got (5,)", (5,))
exact(numpy_attention, ValueError, "key must have shape (..., S, d), got (5,)", k=(5,))
exact(numpy_attention, ValueError, "value must have shape (..., S, d), got (5,)", v=(5,))
exact(function, ValueError, "query must have shape (B, L, 6) or (L, 6), got (5,)", (5,))
exact(layer, ValueError, "key must have shape (B, S, 11) or (S, 11), got (5,)", k=(5,))
exact(layer, ValueError, "value must have shape (B, S, 13) or (S, 13), got (5,)", v=(5,))
exact(
    torch_attention,
    ValueError,
    f"leading axes of query, key and value: (1,), (2,) and (2,) {FIT} (1, 5, 2), (2, 7, 2) and "
    "(2, 7, 17)",
    (1, L, d_k),
)
exact(
    torch_attention,
    ValueError,
    f"width d_k (at least 1) of query and key: 3 and 2 {FIT} (2, 5, 3), (2, 7, 2) and (2, 7, 17)",
    (B, L, 3),
)
exact(
    torch_attention,
    ValueError,
    f"length S of key and value: 7 and 5 {FIT} (2, 5, 2), (2, 7, 2) and (2, 5, 17)",
    v=(B, 5, d_v),
)
exact(
    function,
    ValueError,
    "w_k must have shape (11, 6), got (11, 5)",
    projections=projections(w_k=array(11, 5)),
)
exact(
    function,
    ValueError,
    "b_o must have shape (6,), got (7,)",
    projections=projections(b_o=array(7)),
)
exact(
    numpy_attention,
    ValueError,
    "allow must have shape (5, 7) or (2, 5, 7) (1 stands for any size), got (7, 5)",
    allow=np.ones((S, L), bool),
)
exact(
    numpy_attention,
    ValueError,
    "allow must have shape (5, 7) (1 stands for any size), got (7,)",
    (L, d_k),
    (S, d_k),
    (S, d_v),
    allow=np.ones(S, bool),
)
exact(
    function,
    ValueError,
    "score_bias must have shape (5, 7) or (2, 5, 7) or (2, 3, 5, 7) (1 stands for any size), "
    "got (7, 5)",
    score_bias=array(S, L),
)
exact(
    layer,
    ValueError,
    "key_allow must have shape (2, 7) (1 stands for any size), got (7,)",
    key_allow=bools(S),
)
exact(function, TypeError, "allow must be bool, got dtype float64", allow=array(L, S))
exact(function, TypeError, "key_allow must be bool, got dtype float64", key_allow=array(B, S))
exact(function, TypeError, "score_bias must be float, got dtype bool", score_bias=array(L, S) > 0)
exact(layer, TypeError, "allow must be torch.bool, got torch.float64", allow=tensor(L, S))
exact(layer, TypeError, "score_bias must be floating point, got torch.bool", score_bias=bools(L, S))
exact(layer, TypeError, "allow must be a tensor, got ndarray", allow=array(L, S))
exact(layer, ValueError, "allow must be on cpu, got meta", allow=bools(L, S).to("meta"))
exact(mha.split_heads, ValueError, "x must have shape (..., L, H*d), got (6,)", array(6), 3)
exact(mha.merge_heads, ValueError, "x must have shape (..., H, L, d), got (5, 2)", tensor(5, 2))
exact(mha.split_heads, ValueError, "d_model=6 is not divisible by num_heads=4", array(5, 6), 4)
exact(mha.split_heads, ValueError, "num_heads must be at least 1, got 0", array(5, 6), 0)
exact(mha.split_heads, TypeError, "num_heads must be an integer, got 2.0 (float)", array(5, 6), 2.0)
exact(masked, TypeError, "num_heads must be an integer, got None (NoneType)", 6, L, S)
for name in ("d_model", "kdim", "vdim"):
    sizes = {"d_model": 6, "num_heads": 1, name: 0}
    exact(mha.MultiHeadAttention, ValueError, f"{name} must be at least 1, got 0", **sizes)
for name, width in (("w_q", "d_model"), ("w_k", "kdim"), ("w_v", "vdim")):
    message = f"{width} must be at least 1, got 0"
    for shape in ((0, 6), ()):
        exact(function, ValueError, message, projections=projections(**{name: array(*shape)}))
message = "dropout must be at least 0 and below 1, got 1.0"
exact(mha.MultiHeadAttention, ValueError, message, 6, 2, dropout=1.0)
exact(torch_attention, ValueError, message.replace("dropout", "dropout_p"), dropout_p=1.0)
exact(torch_attention, TypeError, "scale must be a number or None, got str", scale="1")
message = "key and value come together or not at all, got "
exact(module, TypeError, message + "key without value", x, x)
exact(module, TypeError, message + "value without key", x, value=x)
message = "query must be floating point, of width 6, got torch.int64 in shape (2, 5, 6)"
exact(module, TypeError, message, ids)
exact(mha.torch_attention, TypeError, message.replace("6, got", "d_k, got"), ids, x, x)
for i, (name, width) in enumerate((("query", "d_k"), ("key", "d_k"), ("value", "d_v"))):
    qkv = [x] * i + [ids] + [x] * (2 - i)
    message = f"{name} must be floating point, of width {width}, got torch.int64 in shape (2, 5, 6)"
    exact(mha.torch_attention, TypeError, message, *qkv)
    exact(module, TypeError, message.replace(width, "6"), *qkv)
exact(module, TypeError, "key must be torch.float64, got torch.float32", x, x.float(), x)
exact(module, TypeError, "query must be a tensor, got ndarray", y)
exact(module, ValueError, "value must be on cpu, got meta", x, x, meta)
message = "scores must hold real numbers, got dtype complex128"
exact(mha.softmax, TypeError, message, y * 1j)
exact(mha.attention, TypeError, message.replace("scores", "key"), y, y * 1j, y)
exact(
    numpy_attention,
    ValueError,
    'causal=True needs L == S, got L=5 and S=7: say "upper_left" (query i sees keys 0 to i) or '
    '"lower_right" (the last query sees every key)',
    causal=True,
)
message = 'causal must be False, True, "upper_left" or "lower_right", got \'upper\''
exact(torch_attention, ValueError, message, causal="upper")
message = 'layout must be "block" or "interleaved", got \'blocks\''
exact(mha.unpack_qkv, ValueError, message, array(18), layout="blocks")
message = "packed must have shape (3*d_model, ...), got "
exact(mha.unpack_qkv, ValueError, message + "(7, 6)", tensor(7, 6))
exact(mha.unpack_qkv, ValueError, message + "()", array())
exact(masked, ValueError, "attn_mask has 6 slices, not B * num_heads=4", 6, L, S, num_heads=4)
exact(masked, ValueError, "attn_mask must have 2 or 3 axes, got (7,)", S)
message = "key_padding_mask must have 1 or 2 axes, got ()"
exact(mha.masks_from_torch, ValueError, message, None, bools())
message = "_mask must be a bool or floating point tensor, got "
exact(mha.masks_from_torch, TypeError, "attn" + message + "torch.int64", ids)
exact(mha.masks_from_torch, TypeError, "key_padding" + message + "ndarray", None, y)
message = "attn_mask and key_padding_mask do not fit: got (5, 7) and (2, 5)"
exact(mha.masks_from_torch, ValueError, message, tensor(L, S), tensor(B, L))
message = "expected a torch.nn.MultiheadAttention, got Linear"
exact(mha.MultiHeadAttention.from_torch, TypeError, message, torch.nn.Linear(6, 6))
for option in ("add_bias_kv", "add_zero_attn"):
    message = f"this layer has no {option}, but the source has"
    source = torch.nn.MultiheadAttention(6, 2, **{option: True})
    exact(mha.MultiHeadAttention.from_torch, ValueError, message, source)
source = torch.nn.MultiheadAttention(6, 2)
source.gate, source.alpha = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
message = "this layer has no ['alpha', 'gate'], but the source has"
exact(mha.MultiHeadAttention.from_torch, ValueError, message, source)
message = "layer must be a MultiHeadAttention, got Linear"
exact(mha.parity, TypeError, message, torch.nn.Linear(6, 6), source)
message = "(d_model, kdim, vdim) of layer and reference: (6, 6, 6) and (8, 8, 8)"
exact(mha.parity, ValueError, message, module, torch.nn.MultiheadAttention(8, 2))
message = "key and value need a query, got none"
for given in ({"key": x, "value": x}, {"key": x}, {"value": x}):
    exact(mha.parity, TypeError, message, module, module.to_torch(), **given)
for name in ("rtol", "scale"):
    message = f"{name} must be a finite number >= 0, got -1.0"
    exact(mha.compare, ValueError, message, y, y, **{name: -1.0})


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{i}-{row[2]}") for i, row in enumerate(BAD)]
)
def test_bad_input(row):
    call, error, message, args, kwargs = row
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is error
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)
    assert "torch.Size" not in str(caught.value)


def refused():
    """How many rows are refused as they should, without any assert."""
    right = 0
    for call, error, message, args, kwargs in BAD:
        try:
            call(*args, **kwargs)
        except Exception as caught:
            right += type(caught) is error and bool(re.search(message, str(caught), re.DOTALL))
    return right


def test_bad_input_without_asserts():
    program = "import test_bad_input as t; print(__debug__, t.refused(), len(t.BAD))"
    assert run_python("-O", "-c", program).split() == ["False", *[str(len(BAD))] * 2]


def test_unknown_names():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mha.nothing


@pytest.mark.parametrize("projections", [(1, 2, 3, 4), {"w_q": 1}, None])
def test_projections_of_another_kind(projections):
    name = type(projections).__name__
    with pytest.raises(TypeError, match=f"^projections must be a Projections, got {name}$"):
        mha.multi_head_attention(np.ones((3, 2)), projections=projections, num_heads=2)
