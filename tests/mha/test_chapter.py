"""The chapter's worked example: closed forms to the last digit, and the figures as printed."""

import math

import numpy as np
import torch
from mha_ways import close

import mha

X = np.array([[1.0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0]])
I3, ZERO = np.eye(3), np.zeros((3, 3))
W1, W2 = np.vstack([I3, ZERO]), np.vstack([ZERO, I3])  # (6, 3)
BLOCKS = mha.Projections(*[np.hstack([W1, W2])] * 3, np.eye(6))

s = math.exp(1 / math.sqrt(3))
a, b, c, d = s / (2 * s + 1), 1 / (2 * s + 1), s / (s + 2), 1 / (s + 2)
A1 = [[a, b, a], [d, c, d], [a, b, a]]
A2 = [[a, a, b], [a, a, b], [d, d, c]]
Z = [[2 * a, b, 0, b, 2 * a, 0], [2 * d, c, 0, b, 2 * a, 0], [2 * a, b, 0, c, 2 * d, 0]]


def printed(x):
    return np.array2string(np.round(np.asarray(x), 3)).replace("\n", "")


def test_one_head_at_a_time():
    for w, expected in ((W1, A1), (W2, A2)):
        output, weights = mha.attention(X @ w, X @ w, X @ w)
        close(weights, expected, 1e-15)
        close(output, np.array(expected) @ (X @ w), 1e-15)


def test_both_heads_together():
    output, weights = mha.multi_head_attention(X, projections=BLOCKS, num_heads=2)
    close(weights, [A1, A2], 1e-15)
    close(output, Z, 1e-15)
    batch_output, batch_weights = mha.multi_head_attention(X[None], projections=BLOCKS, num_heads=2)
    close(batch_output, [Z], 1e-15)
    close(batch_weights, [[A1, A2]], 1e-15)


def test_figures_as_printed():
    output, (first, second) = mha.multi_head_attention(X, projections=BLOCKS, num_heads=2)
    assert printed(first) == "[[0.39  0.219 0.39 ] [0.264 0.471 0.264] [0.39  0.219 0.39 ]]"
    assert printed(second) == "[[0.39  0.39  0.219] [0.39  0.39  0.219] [0.264 0.264 0.471]]"
    assert printed(output) == (
        "[[0.781 0.219 0.    0.219 0.781 0.   ] [0.529 0.471 0.    0.219 0.781 0.   ]"
        " [0.781 0.219 0.    0.471 0.529 0.   ]]"
    )


def test_one_full_width_head_ties_class_and_topic():
    eye = np.eye(6)
    _, weights = mha.multi_head_attention(
        X, projections=mha.Projections(eye, eye, eye, eye), num_heads=1
    )
    assert printed(weights[0, 0]) == "[0.429 0.285 0.285]"
    assert weights[0, 0, 1] == weights[0, 0, 2]


def test_output_projection_acts_on_each_head():
    w_o = np.arange(36.0).reshape(6, 6) % 7
    mixed = mha.Projections(BLOCKS.w_q, BLOCKS.w_k, BLOCKS.w_v, w_o)
    output, (first, second) = mha.multi_head_attention(X, projections=mixed, num_heads=2)
    close(output, first @ (X @ W1) @ w_o[:3] + second @ (X @ W2) @ w_o[3:], 1e-14)


def test_part_b():
    """Reference first, then the layer, then x: the order in which the random numbers are drawn."""
    torch.manual_seed(0)
    reference = torch.nn.MultiheadAttention(6, 2, batch_first=True, dtype=torch.float64)
    drawn = mha.MultiHeadAttention(6, 2, dtype=torch.float64)
    x = torch.randn(1, 4, 6, dtype=torch.float64)
    layer = mha.MultiHeadAttention.from_torch(reference)
    output, weights = layer(x)
    assert output.shape == (1, 4, 6)
    assert weights.shape == (1, 2, 4, 4)
    assert reference.in_proj_weight.shape == (18, 6)
    assert printed(weights[0, 0].detach()) == (
        "[[0.345 0.12  0.38  0.155] [0.176 0.31  0.147 0.367]"
        " [0.278 0.216 0.29  0.216] [0.208 0.322 0.205 0.265]]"
    )
    assert printed(weights[0, 1].detach()) == (
        "[[0.541 0.171 0.222 0.066] [0.029 0.535 0.031 0.405]"
        " [0.685 0.109 0.178 0.028] [0.17  0.486 0.105 0.239]]"
    )
    truth, truth_weights = reference(x, x, x, average_attn_weights=False)
    close(output, truth.detach())
    close(weights, truth_weights.detach())
    assert sum(p.numel() for p in drawn.parameters()) == 168


def test_four_linear_layers_draw_the_same_numbers():
    torch.manual_seed(0)
    layer = mha.MultiHeadAttention(6, 2)
    after = torch.get_rng_state()
    torch.manual_seed(0)
    linears = [torch.nn.Linear(6, 6) for _ in range(4)]
    assert torch.equal(after, torch.get_rng_state())
    for linear, name in zip(linears, ("q", "k", "v", "out"), strict=True):
        own = getattr(layer, f"{name}_proj").weight
        close(own, linear.weight.detach() * math.sqrt(3), 1e-6)
