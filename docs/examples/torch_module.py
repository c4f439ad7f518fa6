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


# --8<-- [start:refuse]
try:
    MultiHeadAttention(7, 2)
except ValueError as error:
    print(error)
# --8<-- [end:refuse]


# --8<-- [start:same]
import torch

import mha

torch.manual_seed(0)
layer = MultiHeadAttention(6, 2, torch.float64)
x = torch.randn(1, 4, 6, dtype=torch.float64)  # (B, T, d_model)

package = mha.MultiHeadAttention(6, 2, dtype=torch.float64)
package.load_state_dict(layer.state_dict())

for ours, theirs in zip(layer(x), package(x)):
    check = mha.compare(ours, theirs)
    assert check, check.reason
    print(tuple(ours.shape), check.ok)
# --8<-- [end:same]


# --8<-- [start:ledger]
from mha.show import ShapeLedger

sizes = {"B": 1, "T": 4, "H": 2, "d_k": 3, "d_model": 6}
ledger = ShapeLedger(layer, x, sizes)
# --8<-- [end:ledger]


# --8<-- [start:views]
token = torch.arange(4).view(1, 4, 1)  # (B, T, 1)
y = 10 * token + torch.arange(6)  # (B, T, d_model)

right = y.view(1, 4, 2, 3).transpose(1, 2)  # (B, H, T, d_k)
wrong = y.view(1, 2, 4, 3)  # (B, H, T, d_k)

print(right.shape == wrong.shape)
print(right[0, 0].numpy())
print(wrong[0, 0].numpy())
# --8<-- [end:views]


# --8<-- [start:splits]
def right_view(y, H):
    B, T, d_model = y.shape
    return y.view(B, T, H, d_model // H).transpose(1, 2)


def wrong_view(y, H):
    B, T, d_model = y.shape
    return y.view(B, H, T, d_model // H)


def output(split, H):
    projections = layer.q_proj, layer.k_proj, layer.v_proj
    q, k, v = (split(project(x), H) for project in projections)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return layer.out_proj((weights @ v).transpose(1, 2).flatten(2))
# --8<-- [end:splits]


# --8<-- [start:error]
errors = {}
for H in (1, 2, 3, 6):
    difference = output(wrong_view, H) - output(right_view, H)
    errors[H] = difference.abs().max().item()
    print(f"{H=}", tuple(difference.shape), f"{errors[H]:.3f}")
# --8<-- [end:error]


# --8<-- [start:rows]
q = right_view(layer.q_proj(x), 2)  # (B, H, T, d_k)
W, b = layer.q_proj.weight, layer.q_proj.bias  # (out, in), (out,)

for head in range(2):
    rows = slice(3 * head, 3 * head + 3)
    alone = x @ W[rows].T + b[rows]  # (B, T, d_k)
    check = mha.compare(alone, q[:, head])
    assert check, check.reason
    print(f"head {head + 1}", tuple(alone.shape), check.ok)
# --8<-- [end:rows]
