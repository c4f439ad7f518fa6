# --8<-- [start:writes]
import torch
from torch import nn

import mha

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
torch.set_printoptions(precision=3, sci_mode=False)


def writes(layer, x):
    H = layer.num_heads
    v = mha.split_heads(layer.v_proj(x), H)  # (B, H, T, d_k)
    _, A = layer(x)  # (B, H, T, T)
    W_O = torch.stack(layer.out_proj.weight.T.chunk(H))  # (H, d_k, d_model)
    return A @ v @ W_O  # (B, H, T, d_model)
# --8<-- [end:writes]


# --8<-- [start:sum]
torch.manual_seed(0)
B, T, d_model, H, d_k = 2, 5, 12, 3, 4
layer = mha.MultiHeadAttention(d_model, H, bias=False)
x = torch.randn(B, T, d_model)

output, A = layer(x)  # (B, T, d_model), (B, H, T, T)
check_sum = mha.compare(writes(layer, x).sum(dim=1), output)
assert check_sum, check_sum.reason
print(check_sum.ok)
# --8<-- [end:sum]


# --8<-- [start:columns]
from copy import deepcopy


def touched(layer):
    return (writes(layer, x) != 0).any(dim=0).any(dim=1)  # (H, d_model)


plain = deepcopy(layer)
nn.init.eye_(plain.out_proj.weight)

print(touched(plain).int().numpy())
print(touched(layer).int().numpy())
# --8<-- [end:columns]


# --8<-- [start:merge]
columns = layer.v_proj.weight.T.chunk(H, dim=1)
W_V = torch.stack(columns)  # (H, d_model, d_k)
W_O = torch.stack(layer.out_proj.weight.T.chunk(H))  # (H, d_k, d_model)
W_VO = W_V @ W_O  # (H, d_model, d_model)

merged = (A @ (x[:, None] @ W_VO)).sum(dim=1)  # (B, T, d_model)
check_merge = mha.compare(merged, output)
assert check_merge, check_merge.reason
print(check_merge.ok)

ranks = torch.linalg.matrix_rank(W_VO)
assert ranks.tolist() == [d_k] * H
print(ranks.tolist(), d_model)
# --8<-- [end:merge]


# --8<-- [start:bias]
biased = deepcopy(layer)
biased.v_proj.bias = nn.Parameter(torch.randn(d_model))

moved = biased(x)[0] - output  # (B, T, d_model)
constant = layer.out_proj(biased.v_proj.bias)  # (d_model,)
check_bias = mha.compare(moved, constant.expand(B, T, d_model))
assert check_bias, check_bias.reason
print(check_bias.ok)
# --8<-- [end:bias]


# --8<-- [start:separate]
class SeparateHeads(nn.Module):
    def __init__(self, d_model, d_k, H):
        super().__init__()

        def projections():
            some = (nn.Linear(d_model, d_k, bias=False) for _ in range(H))
            return nn.ModuleList(some)

        self.q, self.k, self.v = projections(), projections(), projections()
        self.out = nn.Linear(H * d_k, d_model, bias=False)

    def forward(self, x):
        Z = []
        for q, k, v in zip(self.q, self.k, self.v):
            output, _ = mha.torch_attention(q(x), k(x), v(x))
            Z.append(output)  # (B, T, d_k)
        return self.out(torch.cat(Z, dim=-1))  # (B, T, d_model)
# --8<-- [end:separate]


# --8<-- [start:copy]
def separate(layer, heads):
    d_k = layer.d_model // layer.num_heads
    model = SeparateHeads(layer.d_model, d_k, len(heads))
    columns = []
    with torch.no_grad():
        for i, h in enumerate(heads):
            rows = slice(h * d_k, (h + 1) * d_k)
            model.q[i].weight.copy_(layer.q_proj.weight[rows])
            model.k[i].weight.copy_(layer.k_proj.weight[rows])
            model.v[i].weight.copy_(layer.v_proj.weight[rows])
            columns.append(layer.out_proj.weight[:, rows])
        model.out.weight.copy_(torch.cat(columns, dim=1))
    return model
# --8<-- [end:copy]


# --8<-- [start:split]
many = separate(layer, heads=range(H))
checks = [mha.compare(many(x), output, name="output")]

direction = torch.randn(output.shape)
layer(x)[0].backward(direction)
many(x).backward(direction)

for ours, one in [
    (many.q, layer.q_proj), (many.k, layer.k_proj), (many.v, layer.v_proj)
]:
    gradients = torch.cat([linear.weight.grad for linear in ours])
    checks.append(mha.compare(gradients, one.weight.grad, name="gradient"))

for check in checks:
    assert check, check.reason
    print(check.name, check.ok)


def count(model):
    return sum(p.numel() for p in model.parameters())


print(count(many), count(layer))
# --8<-- [end:split]


# --8<-- [start:narrow]
def cut_first(linear):
    blocks = linear.weight.reshape(H, d_k, H, d_k)
    blocks = blocks[range(H), :, range(H)]  # (H, d_k, d_k)
    return mha.split_heads(x, H) @ blocks.mT  # (B, H, T, d_k)


q, k, v = (cut_first(p) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
Z, _ = mha.torch_attention(q, k, v)  # (B, H, T, d_k)
narrow = layer.out_proj(mha.merge_heads(Z))  # (B, T, d_model)

diagonal = deepcopy(layer)
with torch.no_grad():
    for p in (diagonal.q_proj, diagonal.k_proj, diagonal.v_proj):
        p.weight *= torch.block_diag(*[torch.ones(d_k, d_k)] * H)

check_narrow = mha.compare(narrow, diagonal(x)[0])
assert check_narrow, check_narrow.reason
narrow_error = (narrow - output).abs().max()
assert narrow_error > 0.1
print(check_narrow.ok, f"{narrow_error:.3f}")
# --8<-- [end:narrow]


# --8<-- [start:model]
class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(8, 16)
        self.place = nn.Embedding(6, 16)
        self.attention = mha.MultiHeadAttention(16, 2, bias=False)
        self.read = nn.Linear(16, 8)

    def embed(self, tokens):
        return self.token(tokens) + self.place.weight  # (B, T, d_model)

    def forward(self, tokens):
        x = self.embed(tokens)
        output, _ = self.attention(x, need_weights=False)
        return self.read(output)  # (B, T, 8)
# --8<-- [end:model]


# --8<-- [start:train]
def train(seed):
    torch.manual_seed(seed)
    model = Reverser()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(100):
        tokens = torch.randint(8, (64, 6))  # (B, T)
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits.mT, tokens.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.requires_grad_(False)


models = [train(seed) for seed in range(5)]
# --8<-- [end:train]


# --8<-- [start:test]
generator = torch.Generator().manual_seed(9)
tokens = torch.randint(8, (512, 6), generator=generator)  # (B, T)


def accuracy(model, output):
    right = model.read(output).argmax(dim=-1) == tokens.flip(1)
    return right.double().mean().item()


trained, weights = [], []
for model in models:
    result, A_model = model.attention(model.embed(tokens))
    trained.append(accuracy(model, result))
    weights.append(A_model)  # (B, H, T, T)

assert min(trained) > 0.99
print(trained)
# --8<-- [end:test]


# --8<-- [start:read]
mirrored = [A.flip(-1).diagonal(dim1=-2, dim2=-1) for A in weights]
mirror = torch.stack([m.mean(dim=(0, 2)) for m in mirrored])  # (5, H)

seed = mirror.amin(dim=1).argmax().item()
best = models[seed]
assert mirror[seed].min() > 0.8
print(mirror)
print(seed, tokens[0].tolist(), best(tokens[:1]).argmax(-1)[0].tolist())
# --8<-- [end:read]


# --8<-- [start:without]
def without(model, heads, mean=False):
    parts = writes(model.attention, model.embed(tokens))
    for h in heads:  # parts: (B, H, T, d_model)
        parts[:, h] = parts[:, h].mean(dim=(0, 1)) if mean else 0
    return accuracy(model, parts.sum(dim=1))


def each(mean):
    rows = [[without(m, [h], mean) for h in (0, 1)] for m in models]
    return torch.tensor(rows)  # (5, H)


zero, mean = each(mean=False), each(mean=True)
none = torch.tensor([without(m, [0, 1]) for m in models])  # (5,)

print(f"{'':9}{'zero':14}{'mean':14}both")
print(torch.column_stack([zero, mean, none]))
# --8<-- [end:without]


# --8<-- [start:claims]
assert zero.min() > 0.5
assert none.max() < 0.2

lost = torch.tensor(trained)[:, None] - zero  # (5, H)
lost_both = torch.tensor(trained) - none  # (5,)
assert (lost_both > 1.5 * lost.sum(dim=1)).all()

needed = lost.argmax(dim=1) + 1
assert set(needed.tolist()) == {1, 2}
assert (zero - mean).abs().max() > 0.01

spare = divmod(zero.argmax().item(), 2)  # seed, head
assert zero[spare] > 0.98
assert mirror[spare] > 0.6
print(needed.tolist())
print(spare, f"{mirror[spare]:.3f} {zero[spare]:.3f}")
# --8<-- [end:claims]


# --8<-- [start:prune]
embedded = best.embed(tokens)
masked = deepcopy(best.attention)
masked.out_proj.weight[:, :8] = 0  # head 1

alone = separate(best.attention, heads=[1])  # head 2
check_prune = mha.compare(alone(embedded), masked(embedded)[0])
assert check_prune, check_prune.reason
print(check_prune.ok, count(alone), count(masked))
# --8<-- [end:prune]


# --8<-- [start:unseen]
torch.manual_seed(19)
w_v = torch.randn(4, 2)  # (d_model, d_v)
X = torch.randn(3, 4)  # (T, d_model)
X[0] -= w_v @ torch.linalg.pinv(w_v) @ X[0]  # X[0] @ w_v = 0
X[0] *= 3

values = X @ w_v  # (T, d_v)
seen, A_seen = mha.torch_attention(X, X, values)
row = A_seen[0]  # (T,)
shares = row[:, None] * values  # (T, d_v)

assert row[0] > 0.8
assert shares[0].abs().max() < 1e-12
print(row)
print(shares.norm(dim=1))
# --8<-- [end:unseen]


# --8<-- [start:volume]
allow = torch.tensor([False, True, True])  # (S,)
hidden, _ = mha.torch_attention(X[:1], X, values, allow=allow[None])
check_volume = mha.compare(hidden[0] * (1 - row[0]), seen[0])
assert check_volume, check_volume.reason
print(seen[0])
print(hidden[0])
print(check_volume.ok)
# --8<-- [end:volume]


# --8<-- [start:twins]
torch.manual_seed(2)
V = torch.randn(6, 2)  # (S, d_v)
first = torch.randn(6).softmax(dim=0)  # (S,)

fixed = torch.hstack([V, torch.ones(6, 1)])  # (S, d_v + 1)
free = torch.linalg.svd(fixed.T).Vh[3:]  # (3, S): free @ fixed = 0
step = -free.T @ free[:, first.argmax()]  # (S,)
reach = (first / -step)[step < 0].min()
second = first + 0.95 * reach * step  # (S,)

check_twins = mha.compare(second @ V, first @ V)
assert check_twins, check_twins.reason
assert second.min() > 0
assert mha.compare(second.sum(), 1.0)
assert first.argmax() != second.argmax()
print(first)
print(second)
print(check_twins.ok)
# --8<-- [end:twins]
