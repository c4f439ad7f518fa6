# --8<-- [start:layer]
import numpy as np

np.set_printoptions(precision=3, suppress=True)


def softmax(scores):
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def layer(X, W_Q, W_K, W_V, W_O, H, allow, scaled):
    T, d_model = X.shape
    Q, K, V = (
        (X @ W).reshape(T, H, -1).swapaxes(0, 1)  # (H, T, d_k)
        for W in (W_Q, W_K, W_V)
    )
    scores = Q @ K.swapaxes(1, 2)  # (H, T, T)
    if scaled:
        scores = scores / Q.shape[-1] ** 0.5
    A = softmax(np.where(allow, scores, -np.inf))  # (H, T, T)
    Z = (A @ V).swapaxes(0, 1).reshape(T, d_model)  # concat
    return A, Z, Z @ W_O
# --8<-- [end:layer]


# --8<-- [start:presets]
word_class = np.eye(3)[[0, 1, 0]]
topic = np.eye(3)[[1, 1, 0]]
eye, half = np.eye(6), np.eye(3) / 2

start = {
    "X": np.hstack([word_class, topic]),  # (T, d_model)
    "W_Q": eye,
    "W_K": eye,
    "W_V": eye,
    "W_O": eye,
    "H": 2,
    "allow": np.ones((3, 3), bool),
    "scaled": True,
}
draw = np.random.default_rng(0).normal
names = ("X", "W_Q", "W_K", "W_V", "W_O")
shapes = [(4, 6)] + 4 * [(6, 6)]
drawn = {
    name: draw(scale=1 if name == "X" else 6**-0.5, size=shape).round(2)
    for name, shape in zip(names, shapes)
}

presets = {
    "two-heads": start,
    "tie": start | {"H": 1},
    "random": start | drawn | {"allow": np.ones((4, 4), bool)},
    "causal": start | {"allow": np.tri(3, dtype=bool)},
    "output-projection": start
    | {"W_O": np.block([[half, half], [half, -half]])},
}
results = {name: layer(**preset) for name, preset in presets.items()}
for name, (A, _, Y) in results.items():
    print(name, A.shape, Y.shape)
# --8<-- [end:presets]


# --8<-- [start:same]
import mha

for name, preset in presets.items():
    W = mha.Projections(*(preset[w] for w in names[1:]))
    Y_mha, A_mha = mha.multi_head_attention(
        preset["X"],
        projections=W,
        num_heads=preset["H"],
        allow=preset["allow"],
    )
    for ours, theirs in [(results[name][0], A_mha), (results[name][2], Y_mha)]:
        check = mha.compare(ours, theirs)
        assert check, check.reason
    print(name, check.ok)
# --8<-- [end:same]


# --8<-- [start:experiments]
A_start, _, Y_start = results["two-heads"]
A_tie = results["tie"][0]
A_causal = results["causal"][0]
A_mixed, _, Y_mixed = results["output-projection"]
A_random = results["random"][0]
mean_random = A_random.mean(axis=0)
A_unscaled = layer(**start | {"scaled": False})[0]
A_tie_unscaled = layer(**start | {"H": 1, "scaled": False})[0]

X_word = start["X"].copy()
X_word[1, :2] = [1, 0]
A_word = layer(**start | {"X": X_word})[0]

nothing = start["allow"].copy()
nothing[1] = False
A_nothing, _, Y_nothing = layer(**start | {"allow": nothing})

X_zero = np.vstack([start["X"], np.zeros(6)])
A_zero = layer(**start | {"X": X_zero, "allow": np.ones((4, 4), bool)})[0]
A_narrow = layer(**start | {"H": 6})[0]
Y_double = layer(**start | {"W_V": 2 * eye})[2]

assert A_tie[0, 0, 1] == A_tie[0, 0, 2]
assert (A_start == A_mixed).all()
assert (A_word[1] == A_start[1]).all()
assert np.allclose(A_causal[:, 2], A_start[:, 2], rtol=0, atol=1e-15)
print(A_word[0])
print(A_nothing[0])
print(Y_nothing[1])
# --8<-- [end:experiments]
