"""What is right: attention in pure Python (lists, `math.exp`, `math.fsum`), and numbers for it.

Nothing here knows NumPy's broadcasting or a torch kernel. A mask is one table of numbers that are
added to the scores, in which -inf blocks; a key that is blocked is never even read.
"""

import math

import numpy as np

INF = math.inf


def lattice(*shape, step=7, start=3, div=4.0):
    """Irregular multiples of 1/4 between -5/4 and 5/4, exact in every float dtype."""
    n = math.prod(shape)
    flat = [((step * i + start) % 11 - 5) / div for i in range(n)]
    return np.array(flat, dtype=np.float64).reshape(shape)


def parameters(d_model, *, kdim=None, vdim=None, bias=True):
    """The state of a layer: asymmetric matrices (out, in), and biases that are not zero."""
    state = {
        "q_proj.weight": lattice(d_model, d_model, start=1),
        "k_proj.weight": lattice(d_model, kdim or d_model, start=5, step=3),
        "v_proj.weight": lattice(d_model, vdim or d_model, start=2, step=5),
        "out_proj.weight": lattice(d_model, d_model, start=8, step=9),
    }
    if bias:
        state["q_proj.bias"] = lattice(d_model, start=4)
        state["k_proj.bias"] = lattice(d_model, start=9, step=2)
        state["v_proj.bias"] = lattice(d_model, start=6, step=4)
        state["out_proj.bias"] = lattice(d_model, start=7, step=6)
    return state


def table(L, S, *, allow=None, key_allow=None, bias=None, offset=None):
    """All masks as one table: what is blocked wins over any number."""
    rows = [[0.0 if bias is None else float(bias[i][j]) for j in range(S)] for i in range(L)]
    for i in range(L):
        for j in range(S):
            if (
                (allow is not None and not allow[i][j])
                or (key_allow is not None and not key_allow[j])
                or (offset is not None and j > i + offset)
            ):
                rows[i][j] = -INF
    return rows


def softmax(row):
    """-inf weighs 0, a row of nothing else gives zeros, NaN and +inf give NaN."""
    row = [float(x) for x in row]
    top = max(row, default=-INF)
    if any(math.isnan(x) for x in row) or top == INF:
        return [math.nan] * len(row)
    if top == -INF:
        return [0.0] * len(row)
    exps = [math.exp(x - top) for x in row]
    total = math.fsum(exps)
    return [e / total for e in exps]


def attention(query, key, value, mask=None, scale=None):
    """Output (L, d_v) and weights (L, S) of one head of one sample."""
    query, key, value = (np.asarray(x, dtype=np.float64) for x in (query, key, value))
    S, d_v = value.shape
    scale = 1 / math.sqrt(query.shape[1]) if scale is None else scale
    weights, output = [], []
    for i, q in enumerate(query.tolist()):
        added = [0.0] * S if mask is None else mask[i]
        row = [
            -INF if a == -INF else scale * math.fsum(map(float.__mul__, q, k)) + a
            for a, k in zip(added, key.tolist(), strict=True)
        ]
        w = softmax(row)
        seen = [j for j in range(S) if row[j] != -INF]
        weights.append(w)
        output.append([math.fsum(w[j] * float(value[j, c]) for j in seen) for c in range(d_v)])
    L = len(query)
    return np.array(output).reshape(L, d_v), np.array(weights).reshape(L, S)


def linear(x, state, name):
    """A linear layer: x @ weight.T, plus the bias where there is one."""
    weight, bias = state[f"{name}.weight"].tolist(), state.get(f"{name}.bias")
    bias = [0.0] * len(weight) if bias is None else bias.tolist()
    rows = [
        [math.fsum(map(float.__mul__, row, w)) + b for w, b in zip(weight, bias, strict=True)]
        for row in np.asarray(x, dtype=np.float64).tolist()
    ]
    return np.array(rows).reshape(-1, len(weight))


def multi_head(query, key, value, state, num_heads, mask=None, *, per_head=None):
    """Output (L, d_model) and weights (H, L, S) of one sample; `per_head` holds a mask each."""
    q, k, v = (linear(x, state, f"{n}_proj") for x, n in ((query, "q"), (key, "k"), (value, "v")))
    d_k = q.shape[1] // num_heads
    heads = []
    for h in range(num_heads):
        cut = slice(h * d_k, (h + 1) * d_k)
        own = mask if per_head is None else per_head[h]
        heads.append(attention(q[:, cut], k[:, cut], v[:, cut], own))
    merged = np.concatenate([output for output, _ in heads], axis=1)
    return linear(merged, state, "out_proj"), np.array([weights for _, weights in heads])


def batch(query, key, value, state, num_heads, masks=None):
    """`multi_head` for every sample, each with its own mask."""
    masks = [None] * len(query) if masks is None else masks
    found = [
        multi_head(*xs, state, num_heads, mask)
        for *xs, mask in zip(query, key, value, masks, strict=True)
    ]
    return np.array([f[0] for f in found]), np.array([f[1] for f in found])
