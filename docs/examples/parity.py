# --8<-- [start:class]
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dtype=None):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"expected {num_heads} * d_k, got {d_model=}")
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model, dtype=dtype)
        self.k_proj = nn.Linear(d_model, d_model, dtype=dtype)
        self.v_proj = nn.Linear(d_model, d_model, dtype=dtype)
        self.out_proj = nn.Linear(d_model, d_model, dtype=dtype)

    def forward(self, x):
        split = *x.shape[:2], self.num_heads, self.d_k  # (B, T, H, d_k)
        q = self.q_proj(x).view(split).transpose(1, 2)  # (B, H, T, d_k)
        k = self.k_proj(x).view(split).transpose(1, 2)  # (B, H, T, d_k)
        v = self.v_proj(x).view(split).transpose(1, 2)  # (B, H, T, d_k)
        scores = q @ k.transpose(-2, -1) / self.d_k**0.5  # (B, H, T, T)
        weights = scores.softmax(dim=-1)  # (B, H, T, T)
        z = (weights @ v).transpose(1, 2).flatten(2)  # (B, T, d_model)
        return self.out_proj(z), weights  # (B, T, d_model), (B, H, T, T)
# --8<-- [end:class]


# --8<-- [start:start]
import numpy as np
import torch

np.set_printoptions(precision=3, suppress=True)

torch.manual_seed(0)
reference = nn.MultiheadAttention(
    6, 2, batch_first=True, dtype=torch.float64
)
layer = MultiHeadAttention(6, 2, torch.float64)
x = torch.randn(1, 4, 6, dtype=torch.float64)  # (B, T, d_model)
# --8<-- [end:start]


# --8<-- [start:packed]
import mha

W = reference.in_proj_weight  # (3 * d_model, d_model)
print(tuple(W.shape))

by_hand = W[:6], W[6:12], W[12:]  # three of (d_model, d_model)
for ours, theirs in zip(by_hand, mha.unpack_qkv(W)):
    print(tuple(ours.shape), torch.equal(ours, theirs))
# --8<-- [end:packed]


# --8<-- [start:copies]
def transfer(source, target, without=None):
    W, b = source.in_proj_weight, source.in_proj_bias
    copies = {
        "q_proj.weight": W[:6],
        "q_proj.bias": b[:6],
        "k_proj.weight": W[6:12],
        "k_proj.bias": b[6:12],
        "v_proj.weight": W[12:],
        "v_proj.bias": b[12:],
        "out_proj.weight": source.out_proj.weight,
        "out_proj.bias": source.out_proj.bias,
    }
    with torch.no_grad():
        for name, values in copies.items():
            if name != without:
                target.get_parameter(name).copy_(values)
    return target
# --8<-- [end:copies]


# --8<-- [start:heads]
transfer(reference, layer)
output, weights = layer(x)  # (B, T, d_model), (B, H, T, T)
print(tuple(x.shape), tuple(output.shape), tuple(weights.shape))

A1, A2 = weights[0].detach().numpy()  # (T, T), (T, T)
print(A1)
print(A2)
# --8<-- [end:heads]


# --8<-- [start:verdict]
def errors(layer, reference, x):
    ours = layer(x)
    theirs = reference(x, x, x, average_attn_weights=False)
    return [(a - b).abs().max().item() for a, b in zip(ours, theirs)]


tolerance = 1e-12
first = errors(layer, reference, x)
assert max(first) < tolerance, first
print(f"output {first[0]:.3e}  weights {first[1]:.3e}")
print(max(first) < tolerance)
# --8<-- [end:verdict]


# --8<-- [start:blind]
from copy import deepcopy

emptied = deepcopy(layer)
with torch.no_grad():
    for projection in emptied.children():
        projection.bias.zero_()

second = errors(emptied, reference, x)
print(f"output {second[0]:.3e}  weights {second[1]:.3e}")
print(max(second) < tolerance)
# --8<-- [end:blind]


# --8<-- [start:zeros]
for bias in (reference.in_proj_bias, reference.out_proj.bias):
    print(tuple(bias.shape), bias.count_nonzero().item())
# --8<-- [end:zeros]


# --8<-- [start:biases]
biased = deepcopy(reference)
generator = torch.Generator().manual_seed(1)
with torch.no_grad():
    biased.in_proj_bias.normal_(generator=generator)
    biased.out_proj.bias.normal_(generator=generator)

exact = transfer(biased, deepcopy(layer))
for candidate in (emptied, exact):
    third = errors(candidate, biased, x)
    print(f"output {third[0]:.3e}  weights {third[1]:.3e}")
    print(max(third) < tolerance)
assert max(third) < tolerance, third
# --8<-- [end:biases]


# --8<-- [start:each]
torch.manual_seed(1)
start = MultiHeadAttention(6, 2, torch.float64)
missing = {}

print(f"{'without':17}{'output':>9}{'weights':>9}")
for name in start.state_dict():
    trial = transfer(biased, deepcopy(start), without=name)
    missing[name] = errors(trial, biased, x)
    output_error, weights_error = missing[name]
    passed = max(missing[name]) < tolerance
    assert passed == (name == "k_proj.bias"), name
    print(f"{name:17}{output_error:9.1e}{weights_error:9.1e} {passed}")
# --8<-- [end:each]


# --8<-- [start:key-bias]
def heads(y):
    return y.view(1, 4, 2, 3).transpose(1, 2)  # (B, H, T, d_k)


with torch.no_grad():
    q, k = heads(exact.q_proj(x)), heads(exact.k_proj(x))
    k_unbiased = heads(x @ exact.k_proj.weight.T)
    shift = (q @ k.mT - q @ k_unbiased.mT) / 3**0.5  # (B, H, T, T)

print(shift[0, 0].numpy())
# --8<-- [end:key-bias]


# --8<-- [start:seed]
def draw(with_layer):
    torch.manual_seed(0)
    nn.MultiheadAttention(6, 2, dtype=torch.float64)
    if with_layer:
        MultiHeadAttention(6, 2, torch.float64)
    return torch.randn(1, 4, 6, dtype=torch.float64)  # (B, T, d_model)


print(draw(True)[0, 0].numpy())
print(draw(False)[0, 0].numpy())
print(torch.equal(draw(True), x), torch.equal(draw(False), x))
# --8<-- [end:seed]


# --8<-- [start:mean]
default = reference(x, x, x)[1]  # (B, T, T)
check = mha.compare(weights.mean(dim=1), default)
assert check, check.reason

mean = default[0].detach().numpy()  # (T, T)
print(tuple(weights.shape), tuple(default.shape))
# --8<-- [end:mean]


# --8<-- [start:report]
report = mha.parity(mha.MultiHeadAttention.from_torch(biased), biased)
print(report)
print(report.ok)
# --8<-- [end:report]
