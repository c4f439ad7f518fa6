# --8<-- [start:masks]
import torch
from torch import nn

import mha

x = torch.ones(1, 2, 2)  # (B, L, d_model)
mask = torch.tensor([[True, False]] * 2)  # (L, S)
padding = mask[:1]  # (B, S)

_, A_allow = mha.torch_attention(x, x, x, allow=mask)
layer = mha.MultiHeadAttention(2, 1)
_, A_key = layer(x, key_allow=padding)

other = nn.MultiheadAttention(2, 1, batch_first=True)
_, A_attn = other(x, x, x, attn_mask=mask)
_, A_pad = other(x, x, x, key_padding_mask=padding)

sdpa = nn.functional.scaled_dot_product_attention
eye = torch.eye(2)[None]  # (B, S, S)
A_sdpa = sdpa(x, x, eye, attn_mask=mask)

for seen in (A_allow, A_key, A_attn, A_pad, A_sdpa):
    print(seen.flatten()[:2].tolist())
# --8<-- [end:masks]


# --8<-- [start:code]
import numpy as np


def split(x, H):  # (B, T, d_model)
    B, T, d_model = x.shape
    x = x.reshape(B, T, H, d_model // H)
    return x.swapaxes(1, 2)  # (B, H, T, d_k)


def merge(z):  # (B, H, T, d_k)
    B, H, T, d_k = z.shape
    return z.swapaxes(1, 2).reshape(B, T, H * d_k)


def attention(Q, K, V, allow=True):
    scores = Q @ K.swapaxes(-2, -1)
    scores = scores / Q.shape[-1] ** 0.5
    scores = np.where(allow, scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    e = np.exp(scores - highest)
    A = e / e.sum(-1, keepdims=True)
    return A @ V, A


def multi_head(X, W_Q, W_K, W_V, W_O, H, allow=True):
    Q = split(X @ W_Q, H)
    K = split(X @ W_K, H)
    V = split(X @ W_V, H)
    Z, A = attention(Q, K, V, allow)
    return merge(Z) @ W_O, A
# --8<-- [end:code]


# --8<-- [start:check]
B, T, H, d_model = 2, 5, 3, 6
rng = np.random.default_rng(0)
X = rng.normal(size=(B, T, d_model))
W = rng.normal(size=(4, d_model, d_model))
Q = split(X @ W[0], H)
Z, A = attention(Q, Q, Q)

allow = np.tri(T, dtype=bool)
ours = multi_head(X, *W, H, allow)
p = mha.Projections(*W)
theirs = mha.multi_head_attention(
    X, projections=p, num_heads=H, causal=True
)
for one, two in zip(ours, theirs):
    check = mha.compare(one, two)
    assert check, check.reason
    print(one.shape, check.ok)
# --8<-- [end:check]
