# --8<-- [start:row]
import numpy as np

np.set_printoptions(precision=3, suppress=True)

tolerance = 1e-12
rng = np.random.default_rng(0)
scores = rng.normal(size=8)
top, total = -np.inf, 0.0

for block in scores.reshape(4, 2):
    new = max(top, block.max())
    total = total * np.exp(top - new) + np.exp(block - new).sum()
    top = new
    print(block, f"{top:6.3f} {total:6.3f}")

whole = np.exp(scores - scores.max()).sum()
assert abs(total - whole) < tolerance, total - whole
print(f"{scores.max():.3f} {whole:.3f}")
# --8<-- [end:row]


# --8<-- [start:blockwise]
def blockwise(query, key, value, allow=None, size=64):
    L, S, d_k = len(query), *key.shape
    top = np.full((L, 1), np.finfo(float).min)
    total, output = np.zeros((L, 1)), np.zeros((L, value.shape[1]))
    for start in range(0, S, size):
        j = np.arange(start, min(start + size, S))
        scores = query @ key[j].T / d_k**0.5  # (L, size)
        if allow:
            blocked = ~allow(np.arange(L)[:, None], j)
            np.copyto(scores, -np.inf, where=blocked)
        new = np.maximum(top, scores.max(axis=1, keepdims=True))
        shrink, weights = np.exp(top - new), np.exp(scores - new)
        total = shrink * total + weights.sum(axis=1, keepdims=True)
        output = shrink * output + weights @ value[j]
        top = new
    return output / np.maximum(total, 1)  # (L, d_v)
# --8<-- [end:blockwise]


# --8<-- [start:equal]
import mha

T, d_k = 200, 16
query, key, value = rng.normal(size=(3, T, d_k))
expected, _ = mha.attention(query, key, value)  # (T, d_k), (T, T)
sizes = {}

for size in (1, 7, 64, 200, 1000):
    found = blockwise(query, key, value, size=size)
    sizes[size] = abs(found - expected).max()
    print(f"{size:4} {sizes[size] < tolerance}")

assert max(sizes.values()) < tolerance, sizes
# --8<-- [end:equal]


# --8<-- [start:masks]
real = np.arange(T) >= 5  # (S,)
masks = {
    "causal": lambda i, j: j <= i,
    "padding": lambda i, j: real[j],
    "causal+padding": lambda i, j: (j <= i) & real[j],
    "window": lambda i, j: abs(i - j) <= 3,
}
rows, columns = np.arange(T)[:, None], np.arange(T)
errors, empty = {}, {}

print(f"{'mask':15}{'empty':>5}")
for name, allow in masks.items():
    table = np.broadcast_to(allow(rows, columns), (T, T))
    expected, weights = mha.attention(query, key, value, allow=table)
    found = blockwise(query, key, value, allow)
    errors[name] = abs(found - expected).max()
    empty[name] = (~weights.any(axis=1)).sum()
    print(f"{name:15}{empty[name]:5} {errors[name] < tolerance}")

assert max(errors.values()) < tolerance, errors
# --8<-- [end:masks]


# --8<-- [start:peak]
import tracemalloc


def peak(attend, T):
    arrays = rng.normal(size=(3, T, 16))
    tracemalloc.start()
    attend(*arrays)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found
# --8<-- [end:peak]


# --8<-- [start:memory]
LENGTHS = 128, 256, 512, 1024
peaks, growth = {}, {}

for attend in (mha.attention, blockwise):
    peak(attend, 64)
    found = [peak(attend, T) for T in LENGTHS]
    peaks[attend] = dict(zip(LENGTHS, found))
    growth[attend] = np.log2(found[-1] / found[-2])

print("   T attention blockwise")
for T in LENGTHS:
    mib = [found[T] / 2**20 for found in peaks.values()]
    print(f"{T:4} {mib[0]:5.1f} MiB {mib[1]:5.1f} MiB")
print("     T^{:.1f}     T^{:.1f}".format(*growth.values()))

assert 1.9 < growth[mha.attention] < 2.1, growth
assert 0.9 < growth[blockwise] < 1.1, growth
# --8<-- [end:memory]


# --8<-- [start:kernel]
import torch

lean = mha.torch_attention(
    *(torch.from_numpy(x) for x in (query, key, value)),
    causal=True,
    need_weights=False,
)
check = mha.compare(blockwise(query, key, value, masks["causal"]), lean[0])
assert check, check.reason
print(check.ok, lean[1])
# --8<-- [end:kernel]


# --8<-- [start:plan]
import torch.distributed as dist
from torch.distributed.tensor import parallel


def spread(layer, n):
    plan = {
        "q_proj": parallel.ColwiseParallel(),
        "k_proj": parallel.ColwiseParallel(),
        "v_proj": parallel.ColwiseParallel(),
        "out_proj": parallel.RowwiseParallel(),
    }
    mesh = dist.init_device_mesh("cpu", (n,))
    return parallel.parallelize_module(layer, mesh, plan)
# --8<-- [end:plan]


# --8<-- [start:layer]
B, T, d_model, H = 2, 5, 12, 4
generator = torch.Generator().manual_seed(0)


def normal(*shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


layer = mha.MultiHeadAttention(d_model, H, dtype=torch.float64)
with torch.no_grad():
    for p in layer.parameters():
        p.copy_(normal(*p.shape) / d_model**0.5)
x = normal(B, T, d_model).requires_grad_()
allow = normal(B, H, T, T) > -0.5
goal = normal(B, T, d_model)
# --8<-- [end:layer]


# --8<-- [start:traffic]
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode


class Traffic(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.sent = {}

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if DTensor in types:
            return NotImplemented
        package, name = op.name().split("::")
        inside = "wait_tensor", "_wrap_tensor_autograd"
        if package == "_c10d_functional" and name not in inside:
            self.sent.setdefault(name, []).append(args[0].nbytes)
        return op(*args, **kwargs or {})
# --8<-- [end:traffic]


# --8<-- [start:step]
def step(layer, allow):
    with Traffic() as forward:
        output, weights = layer(x, causal=True, allow=allow)
    loss = ((output - goal) ** 2).sum()
    inputs = x, *layer.parameters()
    with Traffic() as backward:
        gradients = torch.autograd.grad(loss, inputs)
    results = [output, weights, *gradients]
    return results, forward.sent, backward.sent
# --8<-- [end:step]


# --8<-- [start:compare]
def compare(rank, n):
    own = slice(rank * H // n, (rank + 1) * H // n)
    expected, _, _ = step(layer, allow)
    expected[1] = expected[1][:, own]  # (B, H / n, T, T)

    shard = spread(layer, n)
    found, forward, backward = step(shard, allow[:, own])
    whole = [
        a.full_tensor() if isinstance(a, DTensor) else a for a in found
    ]
    pairs = zip(whole, expected)
    return {
        "heads": found[1].shape[1],
        "q_proj": tuple(shard.q_proj.weight.to_local().shape),
        "out_proj": tuple(shard.out_proj.weight.to_local().shape),
        "error": max(abs(a - b).max().item() for a, b in pairs),
        "forward": forward,
        "backward": backward,
        "refused": refusal(shard),
    }


def refusal(shard):
    try:
        shard(x, allow=allow)
    except ValueError as error:
        return str(error)
# --8<-- [end:compare]


# --8<-- [start:work]
import os
import socket


def work(rank, n, folder):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = socket.if_nameindex()[0][1]
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", meeting, rank=rank, world_size=n)
    torch.save(compare(rank, n), f"{folder}/{rank}")
    dist.destroy_process_group()
# --8<-- [end:work]


# --8<-- [start:run]
import tempfile

import torch._dynamo  # here, not in each process
import torch.multiprocessing as mp


def run(n):
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(work, (n, folder), n, start_method="fork")
        return [torch.load(f"{folder}/{rank}") for rank in range(n)]


reports = {n: run(n) for n in (1, 2, 4)}

for n, (first, *_) in reports.items():
    worst = max(found["error"] for found in reports[n])
    assert worst < tolerance, worst
    print(f"n = {n}, H / n = {first['heads']}, {worst < tolerance}")
    print("  q_proj  ", first["q_proj"])
    print("  out_proj", first["out_proj"])
# --8<-- [end:run]


# --8<-- [start:sent]
payload = B * T * d_model * x.itemsize
print(f"{payload=}")
for n, (first, *_) in reports.items():
    for way, times in (("forward", 1), ("backward", 3)):
        sums = {"all_reduce": times * [payload]} if n > 1 else {}
        assert all(found[way] == sums for found in reports[n])
        print(n, f"{way:8}", first[way])
# --8<-- [end:sent]


# --8<-- [start:refused]
print(reports[2][0]["refused"])
assert reports[2][0]["refused"]
assert not reports[1][0]["refused"]
# --8<-- [end:refused]
