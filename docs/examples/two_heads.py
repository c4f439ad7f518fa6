# --8<-- [start:attention]
import numpy as np

np.set_printoptions(precision=3, suppress=True)


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(Q, K, V):
    scores = Q @ np.swapaxes(K, -2, -1) / Q.shape[-1] ** 0.5  # (L, S)
    A = softmax(scores)  # (L, S)
    return A @ V, A  # (L, d_v), (L, S)
# --8<-- [end:attention]


# --8<-- [start:tokens]
word_class = np.eye(3)[[0, 1, 0]]  # (T, 3)
topic = np.eye(3)[[1, 1, 0]]  # (T, 3)
assert (word_class[0] == word_class[2]).all()
assert (topic[0] == topic[1]).all()
X = np.hstack([word_class, topic])  # (T, d_model)
print(X)
# --8<-- [end:tokens]


# --8<-- [start:projections]
eye, zero = np.eye(3), np.zeros((3, 3))
W_1 = np.vstack([eye, zero])  # (d_model, d_k)
W_2 = np.vstack([zero, eye])  # (d_model, d_k)
print(X @ W_1)
print(X @ W_2)
# --8<-- [end:projections]


# --8<-- [start:weights]
Z_1, A_1 = attention(X @ W_1, X @ W_1, X @ W_1)  # (T, d_k), (T, T)
Z_2, A_2 = attention(X @ W_2, X @ W_2, X @ W_2)
print(A_1)
print(A_2)
# --8<-- [end:weights]


# --8<-- [start:closed-forms]
s = np.exp(1 / np.sqrt(3))
a, b = s / (2 * s + 1), 1 / (2 * s + 1)
c, d = s / (s + 2), 1 / (s + 2)

exact_1 = np.array([[a, b, a], [d, c, d], [a, b, a]])
exact_2 = np.array([[a, a, b], [a, a, b], [d, d, c]])

for A, exact in [(A_1, exact_1), (A_2, exact_2)]:
    max_error = np.abs(A - exact).max()
    assert max_error <= 1e-15, max_error
    print(max_error <= 1e-15)
# --8<-- [end:closed-forms]


# --8<-- [start:concat]
Z = np.hstack([Z_1, Z_2])  # (T, d_model)
W_O = np.eye(6)
output = Z @ W_O  # (T, d_model)
print(output)
# --8<-- [end:concat]


# --8<-- [start:mean]
mean = (A_1 + A_2) / 2
print(mean)
print(np.isclose(mean[0, 1], mean[0, 2], rtol=0, atol=1e-15))
# --8<-- [end:mean]


# --8<-- [start:four]
import mha

W = np.hstack([W_1, W_2])  # (d_model, d_model)
p = mha.Projections(W, W, W, W_O)
Y, A_two = mha.multi_head_attention(X, projections=p, num_heads=2)

A_both = np.stack([A_1, A_2])  # (H, T, T)
for ours, theirs in [(output, Y), (A_both, A_two)]:
    check = mha.compare(ours, theirs)
    assert check, check.reason
    print(theirs.shape, check.ok)
# --8<-- [end:four]


# --8<-- [start:one]
_, A_one = mha.multi_head_attention(X, projections=p, num_heads=1)
print(A_one)
# --8<-- [end:one]


# --8<-- [start:mix]
W_mix = np.block([[eye, eye], [eye, -eye]]) / 2  # (d_model, d_model)
mixed = Z @ W_mix  # (T, d_model)
print(mixed)
# --8<-- [end:mix]


# --8<-- [start:sum]
part_1 = Z_1 @ W_mix[:3]  # (T, d_k) @ (d_k, d_model)
part_2 = Z_2 @ W_mix[3:]
print(part_1)
print(part_2)

check = mha.compare(part_1 + part_2, mixed)
assert check, check.reason
print(check.ok)
# --8<-- [end:sum]
