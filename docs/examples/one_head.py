# --8<-- [start:softmax]
import numpy as np

np.set_printoptions(precision=3, suppress=True)


def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
# --8<-- [end:softmax]


# --8<-- [start:overflow]
scores = np.array([[1.0, 2.0, 3.0], [1001.0, 1002.0, 1003.0]])

with np.errstate(over="ignore", invalid="ignore"):
    naive = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)

print(naive)
print(softmax(scores))
# --8<-- [end:overflow]


# --8<-- [start:attention]
def attention(Q, K, V):
    scores = Q @ np.swapaxes(K, -2, -1) / Q.shape[-1] ** 0.5  # (L, S)
    A = softmax(scores)  # (L, S), each row sums to 1
    return A @ V, A  # (L, d_v), (L, S)
# --8<-- [end:attention]


# --8<-- [start:same]
import mha

rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 7, 3)), rng.normal(size=(2, 7, 11))

for ours, theirs in zip(attention(Q, K, V), mha.attention(Q, K, V)):
    check = mha.compare(ours, theirs)
    assert check, check.reason
    print(ours.shape, check.ok)
# --8<-- [end:same]


# --8<-- [start:tie]
X = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    ]
)

Z, A = attention(X, X, X)
print(A)
print(A[0, 1] == A[0, 2])
# --8<-- [end:tie]
