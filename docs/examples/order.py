# --8<-- [start:setup]
import numpy as np

import mha

np.set_printoptions(precision=3, suppress=True)

rng = np.random.default_rng(0)
d_model, H = 6, 2
matrices = rng.normal(size=(4, d_model, d_model)) / d_model**0.5
P = mha.Projections(*matrices)


def attend(X, **masks):
    return mha.multi_head_attention(X, projections=P, num_heads=H, **masks)
# --8<-- [end:setup]


# --8<-- [start:words]
E = {word: rng.normal(size=d_model) for word in ("ikan", "makan")}


def rows(*words):
    return np.array([E[word] for word in words])  # (T, d_model)


Y1, A1 = attend(rows("ikan", "makan"))  # (T, d_model), (H, T, T)
Y2, A2 = attend(rows("makan", "ikan"))

print(Y1)
print(Y2)
# --8<-- [end:words]


# --8<-- [start:compare]
ikan = abs(Y1[0] - Y2[1]).max()
makan = abs(Y1[1] - Y2[0]).max()
different = abs(Y1 - Y2).max()

assert max(ikan, makan) < 1e-12, (ikan, makan)
print(ikan < 1e-12, makan < 1e-12)
print(f"{different:.3f}")
# --8<-- [end:compare]


# --8<-- [start:permutations]
from itertools import permutations

X = rng.normal(size=(4, d_model))
Y, A = attend(X)
orders = [list(order) for order in permutations(range(4))]
permuted, unmoved = [], []

for order in orders:
    Y_order, A_order = attend(X[order])
    permuted.append(abs(Y_order - Y[order]).max())
    permuted.append(abs(A_order - A[:, order][:, :, order]).max())
    unmoved.append(abs(Y_order - Y).max())

assert max(permuted) < 1e-12 < min(unmoved[1:])
print(len(orders), max(permuted) < 1e-12)
print(f"{min(unmoved[1:]):.3f} {max(unmoved):.3f}")
# --8<-- [end:permutations]


# --8<-- [start:twice]
Y3, _ = attend(rows("ikan", "makan", "ikan"))

twins = abs(Y3[0] - Y3[2]).max()
assert twins < 1e-12, twins
print(Y3)
print(twins < 1e-12)
# --8<-- [end:twice]


# --8<-- [start:mean]
means = [attend(X[order])[0].mean(axis=0) for order in orders]
mean_error = abs(np.array(means) - Y.mean(axis=0)).max()

assert mean_error < 1e-12, mean_error
print(means[0])
print(means[-1])
print(mean_error < 1e-12)
# --8<-- [end:mean]


# --8<-- [start:causal]
C1, M1 = attend(rows("ikan", "makan"), causal=True)
C2, M2 = attend(rows("makan", "ikan"), causal=True)
causal_ikan = abs(C1[0] - C2[1]).max()

print(C1[0])
print(C2[1])
print(f"{causal_ikan:.3f}")
# --8<-- [end:causal]


# --8<-- [start:causal-orders]
C, _ = attend(X, causal=True)
broken = []

for order in orders[1:]:
    C_order, _ = attend(X[order], causal=True)
    broken.append(abs(C_order - C[order]).max())

print(f"{min(broken):.3f} {max(broken):.3f}")
# --8<-- [end:causal-orders]


# --8<-- [start:last]
last = [
    abs(attend(X[order], causal=True)[0][-1] - C[-1]).max()
    for order in orders
    if order[-1] == 3
]

assert max(last) < 1e-12, last
print(len(last), max(last) < 1e-12)
# --8<-- [end:last]


# --8<-- [start:positions]
positions = rng.normal(size=(2, d_model))

N1, _ = attend(rows("ikan", "makan") + positions)
N2, _ = attend(rows("makan", "ikan") + positions)
placed_ikan = abs(N1[0] - N2[1]).max()
placed_mean = abs(N1.mean(axis=0) - N2.mean(axis=0)).max()

print(N1[0])
print(N2[1])
print(f"{placed_ikan:.3f} {placed_mean:.3f}")
# --8<-- [end:positions]


# --8<-- [start:sinusoids]
def sinusoids(T, d_model):
    turns = 10_000.0 ** -(np.arange(0, d_model, 2) / d_model)
    angles = np.arange(T)[:, None] * turns  # (T, d_model / 2)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return waves.reshape(T, d_model)


P_4 = sinusoids(4, d_model)
print(P_4)
print(P_4 @ P_4.T)
# --8<-- [end:sinusoids]


# --8<-- [start:restored]
Y_P, _ = attend(X + P_4)
stays, travels = [], []

for order in orders[1:]:
    Y_stays, _ = attend(X[order] + P_4)
    Y_travels, _ = attend(X[order] + P_4[order])
    stays.append(abs(Y_stays - Y_P[order]).max())
    travels.append(abs(Y_travels - Y_P[order]).max())

assert max(travels) < 1e-12 < 0.01 < min(stays)
print(f"{min(stays):.3f} {max(stays):.3f}")
print(max(travels) < 1e-12)
# --8<-- [end:restored]


# --8<-- [start:rotary]
def rotate(x, positions):
    T, d = x.shape
    turns = 10_000.0 ** -(np.arange(0, d, 2) / d)
    angles = positions[:, None] * turns  # (T, d / 2)
    pairs = x[:, 0::2] + 1j * x[:, 1::2]  # (T, d / 2)
    turned = pairs * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(T, d)


here = np.arange(4)
q, k = rng.normal(size=(2, 1, d_model))
same = rotate(q.repeat(4, 0), here) @ rotate(k.repeat(4, 0), here).T
print(same)
# --8<-- [end:rotary]


# --8<-- [start:relative]
Q, K = X @ matrices[0], X @ matrices[1]  # (T, d_model)
V = X @ matrices[2]
scores = rotate(Q, here) @ rotate(K, here).T  # (T, T)
shifted = rotate(Q, here + 100) @ rotate(K, here + 100).T

shift_error = abs(shifted - scores).max()
diagonals = max(
    np.ptp(np.diagonal(table, d))
    for table in (P_4 @ P_4.T, same)
    for d in range(-3, 4)
)
assert max(shift_error, diagonals) < 1e-12
print(shift_error < 1e-12, diagonals < 1e-12)
# --8<-- [end:relative]


# --8<-- [start:rotary-orders]
def attend_rotary(order, positions):
    q, k = (rotate(M[order], positions) for M in (Q, K))
    return mha.attention(q, k, V[order])[0]


R = attend_rotary(orders[0], here)
R_stays = [abs(attend_rotary(o, here) - R[o]).max() for o in orders[1:]]
R_travels = [abs(attend_rotary(o, here[o]) - R[o]).max() for o in orders]

assert max(R_travels) < 1e-12 < 0.01 < min(R_stays)
print(f"{min(R_stays):.3f} {max(R_stays):.3f}")
print(max(R_travels) < 1e-12)
# --8<-- [end:rotary-orders]
