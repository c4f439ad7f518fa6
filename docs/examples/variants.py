# --8<-- [start:cross]
import torch

import mha

torch.manual_seed(0)
reference = torch.nn.MultiheadAttention(
    6, 2, kdim=5, vdim=7, batch_first=True, dtype=torch.float64
)
layer = mha.MultiHeadAttention.from_torch(reference)
query = torch.randn(1, 3, 6, dtype=torch.float64)  # (B, L, d_model)
key = torch.randn(1, 4, 5, dtype=torch.float64)  # (B, S, kdim)
value = torch.randn(1, 4, 7, dtype=torch.float64)  # (B, S, vdim)

crossed, A = layer(query, key, value)
print(tuple(crossed.shape), tuple(A.shape))

report = mha.parity(layer, reference, query, key, value)
assert report, report
print(report.ok, len(report.rows))
# --8<-- [end:cross]


# --8<-- [start:grouped]
from torch.nn.functional import scaled_dot_product_attention

d_model, H, H_kv, T = 24, 6, 2, 7
grouped = mha.MultiHeadAttention(
    d_model, H, num_kv_heads=H_kv, dtype=torch.float64
)
X = torch.randn(2, T, d_model, dtype=torch.float64)
q = mha.split_heads(grouped.q_proj(X), H)  # (B, H, T, d_k)
k = mha.split_heads(grouped.k_proj(X), H_kv)  # (B, H_kv, T, d_k)
v = mha.split_heads(grouped.v_proj(X), H_kv)  # (B, H_kv, T, d_k)
print(tuple(q.shape), tuple(k.shape), tuple(v.shape))

z = scaled_dot_product_attention(q, k, v, enable_gqa=True)
theirs = grouped.out_proj(mha.merge_heads(z))
for need_weights in (True, False):
    ours, weights = grouped(X, need_weights=need_weights)
    check = mha.compare(ours, theirs)
    assert check, check.reason
    print(check.ok, weights is None or tuple(weights.shape))
# --8<-- [end:grouped]


# --8<-- [start:tile]
G = H // H_kv
print(torch.arange(H_kv).repeat_interleave(G).tolist())
print(torch.arange(H_kv).tile(G).tolist())


def attend_repeated(repeat):
    z, _ = mha.torch_attention(q, repeat(k), repeat(v))
    return z  # (B, H, T, d_k)


interleaved = attend_repeated(lambda x: x.repeat_interleave(G, dim=1))
tiled = attend_repeated(lambda x: x.tile(1, G, 1, 1))
right = (interleaved - z).abs().max().item()
wrong = (tiled - z).abs().max().item()
assert right < 1e-12 < wrong
print(tuple(tiled.shape) == tuple(z.shape), right < 1e-12, f"{wrong:.3f}")
# --8<-- [end:tile]


# --8<-- [start:average]
def averaged(full, H_kv):
    H = full.num_heads
    shared = mha.MultiHeadAttention(
        full.d_model, H, num_kv_heads=H_kv, dtype=torch.float64
    )
    state = full.state_dict()
    for name, x in state.items():
        if name[0] in "kv":
            groups = x.unflatten(0, (H_kv, H // H_kv, -1))
            state[name] = groups.mean(dim=1).flatten(0, 1)
    shared.load_state_dict(state)
    return shared


full = mha.MultiHeadAttention(d_model, H, dtype=torch.float64)
lost = {}
for n in (6, 3, 2, 1):
    lost[n] = (averaged(full, n)(X)[0] - full(X)[0]).abs().max().item()
    print(n, f"{lost[n]:.3f}")
# --8<-- [end:average]


# --8<-- [start:written-out]
def written_out(shared):
    H, H_kv = shared.num_heads, shared.num_kv_heads
    full = mha.MultiHeadAttention(shared.d_model, H, dtype=torch.float64)
    state = shared.state_dict()
    for name, x in state.items():
        if name[0] in "kv":
            rows = x.unflatten(0, (H_kv, -1))
            rows = rows.repeat_interleave(H // H_kv, dim=0)
            state[name] = rows.flatten(0, 1)
    full.load_state_dict(state)
    return full


back = averaged(written_out(grouped), H_kv)
exact = (written_out(grouped)(X)[0] - ours).abs().max().item()
there = (back(X)[0] - ours).abs().max().item()
assert max(exact, there) < 1e-12
print(exact < 1e-12, there < 1e-12)
# --8<-- [end:written-out]


# --8<-- [start:cache]
def step(layer, x, cache=None, causal="lower_right"):
    q = mha.split_heads(layer.q_proj(x), layer.num_heads)
    k = mha.split_heads(layer.k_proj(x), layer.num_kv_heads)
    v = mha.split_heads(layer.v_proj(x), layer.num_kv_heads)
    if cache is not None:
        k, v = (torch.cat(pair, dim=-2) for pair in zip(cache, (k, v)))
    G = layer.num_heads // layer.num_kv_heads
    repeated = (x.repeat_interleave(G, dim=1) for x in (k, v))
    z, _ = mha.torch_attention(q, *repeated, causal=causal)
    return layer.out_proj(mha.merge_heads(z)), (k, v)


def run(lengths, causal="lower_right"):
    outputs, cache = [], None
    for x in X.split(lengths, dim=1):
        y, cache = step(grouped, x, cache, causal)
        outputs.append(y)
    return torch.cat(outputs, dim=1), cache


tolerance = 1e-12
whole, _ = grouped(X, causal=True)  # (B, T, d_model)
for lengths in ([1] * T, [4, 1, 2]):
    stepped, cache = run(lengths)
    errors = (stepped - whole).abs().amax(dim=(0, 2))
    assert errors.max() < tolerance, errors
    print((errors < tolerance).tolist())
print([tuple(x.shape) for x in cache])
# --8<-- [end:cache]


# --8<-- [start:upper-left]
trapped, _ = run([4, 1, 1, 1], causal="upper_left")
misses = (trapped - whole).abs().amax(dim=(0, 2)).tolist()
print([round(miss, 3) for miss in misses])

last = q[:, :, -1:]  # (B, H, 1, d_k)
keys, values = (x.repeat_interleave(G, dim=1) for x in (k, v))
seen = scaled_dot_product_attention(last, keys, values, is_causal=True)
first_only = (seen - values[:, :, :1]).abs().max().item()
assert first_only < 1e-12
print(first_only < 1e-12)
# --8<-- [end:upper-left]


# --8<-- [start:predicted]
def predicted(d_model, H, H_kv, B, T):
    kv = d_model // H * H_kv
    n = d_model + kv
    return [
        2 * d_model * n + 2 * n,
        2 * B * T * d_model * n + 2 * B * T**2 * d_model,
        4 * B * (T * (3 * d_model + 2 * kv) + H * T**2),
        4 * B * 2 * T * kv,
    ]
# --8<-- [end:predicted]


# --8<-- [start:measured]
from torch.utils.flop_counter import FlopCounterMode


def stored(tensors):
    storages = [x.untyped_storage() for x in tensors]
    return sum({s.data_ptr(): s.nbytes() for s in storages}.values())


def measured(layer, x):
    kept = []
    for module in layer.children():
        module.register_forward_hook(lambda m, inp, out: kept.append(out))
    layer.out_proj.register_forward_pre_hook(lambda m, inp: kept.extend(inp))
    with FlopCounterMode(display=False) as counter:
        kept.append(layer(x)[1])
    activations = stored(kept)
    _, cache = step(layer, x)
    return [
        sum(p.numel() for p in layer.parameters()),
        counter.get_total_flops() // 2,
        activations,
        stored(cache),
    ]
# --8<-- [end:measured]


# --8<-- [start:ledger]
big = {"d_model": 192, "H": 12}
x = torch.randn(2, 64, 192)  # (B, T, d_model)
ledger = {}
for n in (12, 4, 1):
    shared = mha.MultiHeadAttention(192, 12, num_kv_heads=n)
    ledger[n] = measured(shared, x)
    assert ledger[n] == predicted(**big, H_kv=n, B=2, T=64), n
facts = [[n, *row] for n, row in ledger.items()]
# --8<-- [end:ledger]


# --8<-- [start:saved]
def multiply_adds(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops() // 2


_, old = step(shared, x[:, :63])
again = multiply_adds(lambda: step(shared, x))
cached = multiply_adds(lambda: step(shared, x[:, 63:], old))
print(again, cached)
# --8<-- [end:saved]


# --8<-- [start:models]
MODELS = {  # layers, d_model, H, H_kv
    "GPT-2": (12, 768, 12, 12),
    "GPT-2 XL": (48, 1600, 25, 25),
    "GPT-3 175B": (96, 12288, 96, 96),
    "Llama 2 7B": (32, 4096, 32, 32),
    "Falcon 7B": (32, 4544, 71, 1),
    "Llama 3 8B": (32, 4096, 32, 8),
    "Llama 3 70B": (80, 8192, 64, 8),
    "Llama 3 405B": (126, 16384, 128, 8),
}


def cache_bytes(layers, d_model, H, H_kv, T, size=2):
    return 2 * layers * d_model // H * H_kv * T * size


def counted(layers, d_model, H, H_kv, T):
    options = {"device": "meta", "dtype": torch.float16}
    layer = mha.MultiHeadAttention(
        d_model, H, num_kv_heads=H_kv, bias=False, **options
    )
    _, cache = step(layer, torch.empty(1, T, d_model, **options))
    return layers * sum(x.nbytes for x in cache)


LENGTHS = 8192, 131072
kib, rows = {}, []
for name, sizes in MODELS.items():
    assert cache_bytes(*sizes, T=8192) == counted(*sizes, T=8192), name
    kib[name] = cache_bytes(*sizes, T=1) // 2**10
    gib = [cache_bytes(*sizes, T=T) / 2**30 for T in LENGTHS]
    rows.append([f"`{name}`", *sizes, kib[name], *gib])
# --8<-- [end:models]
