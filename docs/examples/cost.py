# --8<-- [start:count]
import torch


def count(module):
    return sum(p.numel() for p in module.parameters())


torch.manual_seed(0)
reference = torch.nn.MultiheadAttention(6, 2)

for name, p in reference.named_parameters():
    print(f"{name:15}{tuple(p.shape)!s:>8}{p.numel():5}")
print(f"{count(reference):28}")
# --8<-- [end:count]


# --8<-- [start:parameters]
import mha

MAKERS = mha.MultiHeadAttention, torch.nn.MultiheadAttention
SIZES = (6, 1), (6, 2), (6, 3), (64, 4), (64, 16), (512, 8), (512, 64)
parameters = {}

print("d_model   H  bias=False  bias=True")
for d_model, H in SIZES:
    for bias in (False, True):
        formula = 4 * d_model**2 + 4 * d_model * bias
        counts = {count(make(d_model, H, bias=bias)) for make in MAKERS}
        assert counts == {formula}, (counts, formula)
        parameters[d_model, H, bias] = counts.pop()
    without, full = (parameters[d_model, H, b] for b in (False, True))
    print(f"{d_model:7}{H:4}{without:12}{full:11}")
# --8<-- [end:parameters]


# --8<-- [start:rank]
import numpy as np

x = torch.randn(1, 24, 6, dtype=torch.float64)  # (B, T, d_model)
patterns, widths, ranks, favourites = {}, {}, {}, {}

print("H  d_k  rank                argmax")
for H in (1, 2, 3, 6):
    layer = mha.MultiHeadAttention(6, H, dtype=torch.float64)
    q = mha.split_heads(layer.q_proj(x), H)  # (B, H, T, d_k)
    k = mha.split_heads(layer.k_proj(x), H)  # (B, H, T, d_k)
    scores = (q @ k.mT)[0].detach().numpy()  # (H, T, T)
    patterns[H], widths[H] = len(scores), q.shape[-1]
    ranks[H] = np.linalg.matrix_rank(scores).tolist()
    favourites[H] = [len(set(head)) for head in scores.argmax(-1).tolist()]
    assert max(ranks[H]) <= widths[H]
    print(f"{H}{widths[H]:5}  {ranks[H]!s:20}{favourites[H]}")
# --8<-- [end:rank]


# --8<-- [start:counter]
from torch.utils.flop_counter import FlopCounterMode


def multiply_adds(step):
    with FlopCounterMode(display=False) as counter:
        result = step()
    return counter.get_total_flops() // 2, result
# --8<-- [end:counter]


# --8<-- [start:steps]
def measure(layer, x):
    H, d_k = layer.num_heads, x.shape[-1] // layer.num_heads
    projections = layer.q_proj, layer.k_proj, layer.v_proj

    n1, qkv = multiply_adds(lambda: [p(x) for p in projections])
    q, k, v = (mha.split_heads(t, H) for t in qkv)  # (B, H, T, d_k)
    n2, scores = multiply_adds(lambda: q @ k.mT)  # (B, H, T, T)
    A = (scores / d_k**0.5).softmax(dim=-1)  # (B, H, T, T)
    n3, z = multiply_adds(lambda: A @ v)  # (B, H, T, d_k)
    z = mha.merge_heads(z)  # (B, T, d_model)
    n4, y = multiply_adds(lambda: layer.out_proj(z))  # (B, T, d_model)

    total, (output, _) = multiply_adds(lambda: layer(x))
    assert mha.compare(y, output)
    assert total == n1 + n2 + n3 + n4
    return n1, n2, n3, n4
# --8<-- [end:steps]


# --8<-- [start:growth]
B, d_model = 1, 64
LENGTHS = 32, 64, 128, 256, 512
totals, shares = {}, {}

print("  T    Q K V    Q K^T      A V      W_O")
for T in LENGTHS:
    x = torch.randn(B, T, d_model)
    linear, square = B * T * d_model**2, B * T**2 * d_model
    for H in (1, 4, 16):
        n = measure(mha.MultiHeadAttention(d_model, H), x)
        assert n == (3 * linear, square, square, linear)
    totals[T], shares[T] = sum(n), (n[1] + n[2]) / sum(n)
    print(f"{T:3}" + "".join(f"{step:9}" for step in n))
# --8<-- [end:growth]


# --8<-- [start:shares]
for T, share in shares.items():
    print(f"{T:3}  {share:.3f}  {'#' * round(30 * share)}")
# --8<-- [end:shares]


# --8<-- [start:overtakes]
def overtakes(d_model):
    T = 1
    while 2 * T**2 * d_model < 4 * T * d_model**2:
        T += 1
    return T


turning = {d_model: overtakes(d_model) for d_model in (64, 512, 4096)}
print(turning)
assert shares[turning[64]] == 0.5
# --8<-- [end:overtakes]


# --8<-- [start:memory]
B, d_model = 2, 64
kib = {}

print("  T   H = 1   H = 4  H = 16")
for T in LENGTHS:
    x = torch.randn(B, T, d_model)
    for H in (1, 4, 16):
        output, weights = mha.MultiHeadAttention(d_model, H)(x)
        assert weights.shape == (B, H, T, T)
        assert weights.nbytes == 4 * B * H * T**2  # float32
        kib[T, H] = weights.nbytes // 1024
    print(f"{T:3}" + "".join(f"{kib[T, H]:8}" for H in (1, 4, 16)))
# --8<-- [end:memory]


# --8<-- [start:large]
large = mha.MultiHeadAttention(512, 8)
layer_mib = sum(p.nbytes for p in large.parameters()) / 2**20
tokens = 4096
weights_mib = 4 * 8 * tokens**2 / 2**20  # float32, H = 8, B = 1

print(f"{layer_mib:.1f} MiB, {weights_mib:.1f} MiB")
# --8<-- [end:large]


# --8<-- [start:fused]
x = torch.randn(2, 128, 512)
with_weights, _ = large(x)
without_weights, nothing = large(x, need_weights=False)

print(nothing, mha.compare(without_weights, with_weights).ok)
# --8<-- [end:fused]
