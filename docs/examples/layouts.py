# --8<-- [start:truth]
import numpy as np
import torch

import mha

H, d_k = 4, 5
d_model = H * d_k
layer = mha.MultiHeadAttention(d_model, H, dtype=torch.float64)
generator = torch.Generator().manual_seed(0)
with torch.no_grad():
    for p in layer.parameters():
        p.normal_(std=d_model**-0.5, generator=generator)

names = "q_proj", "k_proj", "v_proj"
weights = [layer.get_parameter(f"{n}.weight").detach() for n in names]
biases = [layer.get_parameter(f"{n}.bias").detach() for n in names]
X = torch.randn(2, 7, d_model, generator=generator, dtype=torch.float64)
output, _ = layer(X)  # (B, T, d_model)
print([tuple(w.shape) for w in weights])
# --8<-- [end:truth]


# --8<-- [start:error]
from copy import deepcopy


def error(weights, biases, w_o=layer.out_proj.weight):
    trial = deepcopy(layer)
    state = {f"{n}.weight": w for n, w in zip(names, weights)}
    state |= {f"{n}.bias": b for n, b in zip(names, biases)}
    trial.load_state_dict({**state, "out_proj.weight": w_o}, strict=False)
    return (trial(X)[0] - output).abs().max().item()


assert error(weights, biases) == 0
# --8<-- [end:error]


# --8<-- [start:interleaved]
from mha.layouts import pack, unpack

heads = {"num_heads": H}
stored = pack(*weights, layout="interleaved", **heads)
stored_bias = pack(*biases, layout="interleaved", **heads)
print(tuple(stored.shape), tuple(stored_bias.shape))

naive = error(stored.chunk(3), stored_bias.chunk(3))
print(f"{naive:.3f}")
# --8<-- [end:interleaved]


# --8<-- [start:right]
right = error(
    unpack(stored, layout="interleaved", **heads),
    unpack(stored_bias, layout="interleaved", **heads),
)
assert right == 0, right

half = error(
    unpack(stored, layout="interleaved", **heads),
    stored_bias.chunk(3),
)
print(right, f"{half:.3f}")
# --8<-- [end:right]


# --8<-- [start:rows]
def marks(part, heads, width=2):
    rows = [f"{part}{h}" for h in range(1, heads + 1) for _ in range(2)]
    return np.array([rows] * width).T  # (heads * 2, width)


q, k, v = (marks(part, H) for part in "qkv")
for layout in ("block", "interleaved"):
    print(*pack(q, k, v, layout=layout, **heads)[::2, 0])
# --8<-- [end:rows]


# --8<-- [start:drawn]
q8, k8, v8 = (marks(part, H, width=8) for part in "qkv")
drawn = {
    layout: pack(q8, k8, v8, layout=layout, num_heads=H)
    for layout in ("block", "transposed", "interleaved", "einsum")
}
# --8<-- [end:drawn]


# --8<-- [start:transposed]
c_attn = pack(*weights, layout="transposed", **heads)
print(tuple(c_attn.shape))

reshaped = c_attn.reshape(3 * d_model, d_model)
forced = error(reshaped.chunk(3), biases)
turned = error(unpack(c_attn, layout="transposed", **heads), biases)
assert turned == 0, turned
print(f"{forced:.3f}", turned)
# --8<-- [end:transposed]


# --8<-- [start:square]
c_proj = layer.out_proj.weight.T  # (in, out)
silent = error(weights, biases, w_o=c_proj)
print(tuple(c_proj.shape), f"{silent:.3f}")
# --8<-- [end:square]


# --8<-- [start:einsum]
W_Q, W_K, W_V = pack(*weights, layout="einsum", **heads)
bias_heads = pack(*biases, layout="einsum", **heads)
print(tuple(W_Q.shape), tuple(bias_heads[0].shape))

q_heads = torch.einsum("btm,hmk->bhtk", X, W_Q)
q_heads += bias_heads[0][:, None]
split = mha.split_heads(layer.q_proj(X), H)  # (B, H, T, d_k)
check = mha.compare(q_heads, split)
assert check, check.reason
print(check.ok)
# --8<-- [end:einsum]


# --8<-- [start:keras]
kernel = W_Q.swapaxes(0, 1)  # (d_model, H, d_k)
print(tuple(kernel.shape))

flat = [w.reshape(d_model, d_model) for w in (W_Q, W_K, W_V)]
flattened = error(flat, biases)
joined = unpack((W_Q, W_K, W_V), layout="einsum", **heads)
assert error(joined, biases) == 0
print(f"{flattened:.3f}", error(joined, biases))
# --8<-- [end:keras]


# --8<-- [start:grouped]
H_kv = 2
shared = {"num_heads": H, "num_kv_heads": H_kv}
k2, v2 = marks("k", H_kv), marks("v", H_kv)
for layout in ("block", "grouped"):
    print(*pack(q, k2, v2, layout=layout, **shared)[::2, 0])

small = [marks("q", H, 8), marks("k", H_kv, 8), marks("v", H_kv, 8)]
drawn_shared = {
    layout: pack(*small, layout=layout, **shared)
    for layout in ("block", "grouped")
}
# --8<-- [end:grouped]


# --8<-- [start:ends]
one_each, one = {"num_kv_heads": H}, {"num_kv_heads": 1}
k1, v1 = marks("k", 1), marks("v", 1)
same = [
    pack(q, k, v, layout="grouped", **heads, **one_each)
    == pack(q, k, v, layout="interleaved", **heads),
    pack(q, k1, v1, layout="grouped", **heads, **one)
    == pack(q, k1, v1, layout="block", **heads, **one),
]
assert all(pair.all() for pair in same)
print([bool(pair.all()) for pair in same])
# --8<-- [end:ends]


# --8<-- [start:grouped-error]
G = mha.MultiHeadAttention(
    d_model, H, num_kv_heads=H_kv, bias=False, dtype=torch.float64
)
with torch.no_grad():
    for p in G.parameters():
        p.normal_(std=d_model**-0.5, generator=generator)
G_weights = [getattr(G, n).weight.detach() for n in names]
packed = pack(*G_weights, layout="grouped", **shared)
print(tuple(packed.shape))


def grouped_error(layout):
    trial = deepcopy(G)
    parts = unpack(packed, layout=layout, **shared)
    state = {f"{n}.weight": w for n, w in zip(names, parts)}
    trial.load_state_dict(state, strict=False)
    return (trial(X)[0] - G(X)[0]).abs().max().item()


as_block, as_grouped = grouped_error("block"), grouped_error("grouped")
assert as_grouped == 0, as_grouped
print(f"{as_block:.3f}", as_grouped)
# --8<-- [end:grouped-error]


# --8<-- [start:matrix]
LAYOUTS = "block", "transposed", "interleaved", "einsum"


def read_as(stored_as, layout):
    flat = pack(*weights, layout=stored_as, **heads)
    if stored_as == "einsum":
        flat = torch.stack(flat)
    shape = {
        "transposed": (d_model, 3 * d_model),
        "einsum": (3, H, d_model, d_k),
    }.get(layout, (3 * d_model, d_model))
    return error(unpack(flat.reshape(shape), layout=layout, **heads), biases)


matrix = np.array([[read_as(a, b) for b in LAYOUTS] for a in LAYOUTS])
wrong = matrix[~np.eye(4, dtype=bool)]
assert (matrix.diagonal() == 0).all()
assert wrong.min() > 0.1
rows = [[f"`{a}`", *line] for a, line in zip(LAYOUTS, matrix)]
# --8<-- [end:matrix]


# --8<-- [start:bits]
def bits(parts):
    return [p.numpy().tobytes() for p in parts]


trips = 0
for dtype in (torch.float64, torch.float32, torch.float16):
    for layout in (*LAYOUTS, "grouped"):
        for three in (weights, biases):
            parts = [p.to(dtype) for p in three]
            there = pack(*parts, layout=layout, **heads)
            back = unpack(there, layout=layout, **heads)
            assert bits(back) == bits(parts), (dtype, layout)
            trips += 1
print(trips)
# --8<-- [end:bits]


# --8<-- [start:rotary]
order = torch.arange(d_model).view(H, d_k).flip(1).flatten()
w_q, w_k, w_v = weights
b_q, b_k, b_v = biases
both = error([w_q[order], w_k[order], w_v], [b_q[order], b_k[order], b_v])
alone = error([w_q[order], w_k, w_v], [b_q[order], b_k, b_v])
assert both < 1e-12 < alone
print(both < 1e-12, f"{alone:.3f}")
# --8<-- [end:rotary]
