# --8<-- [start:steps]
import torch
from torch.nn.functional import dropout

import mha


class Steps(mha.MultiHeadAttention):
    def project(self, linear, x):
        return linear(x)

    def split(self, x):
        return mha.split_heads(x, self.num_heads)  # (B, H, L, d_k)

    def score(self, q, k):
        return q @ k.mT / q.shape[-1] ** 0.5  # (B, H, L, S)

    def causal(self, table):
        return table.tril()

    def padding(self, key_allow):
        return key_allow[:, None, None, :]  # (B, 1, 1, S)

    def heads(self, allow):
        return allow[:, None]  # (B, 1, L, S)

    def weigh(self, scores, table):
        scores = scores.masked_fill(~table, -torch.inf)
        some = table.any(dim=-1, keepdim=True)  # (B, H, L, 1)
        return scores.softmax(dim=-1).where(some, 0.0)

    def drop(self, weights):
        return dropout(weights, self.dropout, self.training)

    def merge(self, z):
        return mha.merge_heads(z)  # (B, L, d_model)

    def mix(self, z):
        return self.out_proj(z)

    def shown(self, weights, dropped):
        return weights
# --8<-- [end:steps]


# --8<-- [start:layer]
class Layer(Steps):
    def forward(
        self, query, key, value, *, causal=False, key_allow=None,
        allow=None, score_bias=None, need_weights=True,
    ):
        assert score_bias is None
        q = self.split(self.project(self.q_proj, query))
        k = self.split(self.project(self.k_proj, key))
        v = self.split(self.project(self.v_proj, value))
        scores = self.score(q, k)
        table = torch.ones_like(scores, dtype=torch.bool)
        if causal:
            table = self.causal(table)
        if key_allow is not None:
            table = table & self.padding(key_allow)
        if allow is not None:
            table = table & self.heads(allow)
        weights = self.weigh(scores, table)
        dropped = self.drop(weights)
        output = self.mix(self.merge(dropped @ v))
        shown = self.shown(weights, dropped) if need_weights else None
        return output, shown  # (B, L, d_model), (B, H, L, S)
# --8<-- [end:layer]


# --8<-- [start:run]
def run(
    kind, *, S=5, H=3, ones=False, biases=True, small=False,
    train=False, dropout=0.0, dtype=torch.float64, **masks,
):
    torch.manual_seed(0)
    layer = kind(12, H, dropout=dropout, dtype=dtype).train(train)
    query = torch.randn(2, 5, 12, dtype=dtype)  # (B, L, d_model)
    other = torch.randn(2, S, 12, dtype=dtype)  # (B, S, d_model)
    key = query if S == 5 else other
    if ones:
        query, key = torch.ones_like(query), torch.ones_like(key)
    with torch.no_grad():
        for name, p in layer.named_parameters():
            if biases and name.endswith("bias"):
                p.normal_()
            if small:
                p.normal_(std=0.02)
        return layer(query, key, key, **masks)


error = {}


def exhibit(kind, **situation):
    pairs = list(zip(run(kind, **situation), run(Layer, **situation)))
    shapes = all(a.shape == b.shape for a, b in pairs)
    error[kind] = [(a - b).abs().max().item() for a, b in pairs]
    output, weights = error[kind]
    assert max(error[kind]) > 0.01, error[kind]
    print(f"shapes {shapes} output {output:.3f} weights {weights:.3f}")
# --8<-- [end:run]


# --8<-- [start:right]
keep = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()  # (B, S)
random = torch.Generator().manual_seed(0)
table = torch.rand(2, 5, 5, generator=random) > 0.4  # (B, L, S)
table[..., 0] = True
masks = {"causal": True, "key_allow": keep, "allow": table}

torch.manual_seed(0)
reference = torch.nn.MultiheadAttention(12, 3, dtype=torch.float64)
with torch.no_grad():
    reference.in_proj_bias.normal_(generator=random)
    reference.out_proj.bias.normal_(generator=random)
report = mha.parity(Layer.from_torch(reference).eval(), reference, **masks)
print(report.ok, len(report.rows))
# --8<-- [end:right]


# --8<-- [start:split-by-view]
class SplitByView(Layer):
    def split(self, x):
        B, L, _ = x.shape
        return x.view(B, self.num_heads, L, -1)


exhibit(SplitByView)
# --8<-- [end:split-by-view]


# --8<-- [start:merge-by-view]
class MergeByView(Layer):
    def merge(self, z):
        B, _, L, _ = z.shape
        return z.reshape(B, L, -1)


exhibit(MergeByView)
# --8<-- [end:merge-by-view]


# --8<-- [start:output-left-out]
class OutputLeftOut(Layer):
    def mix(self, z):
        return z


exhibit(OutputLeftOut)
# --8<-- [end:output-left-out]


# --8<-- [start:bias-left-out]
class BiasLeftOut(Layer):
    def project(self, linear, x):
        return x @ linear.weight.T


exhibit(BiasLeftOut)
# --8<-- [end:bias-left-out]


# --8<-- [start:scale-by-model]
class ScaleByModel(Layer):
    def score(self, q, k):
        return q @ k.mT / self.d_model**0.5


exhibit(ScaleByModel)
# --8<-- [end:scale-by-model]


# --8<-- [start:query-key-swapped]
class QueryKeySwapped(Layer):
    def score(self, q, k):
        return k @ q.mT / q.shape[-1] ** 0.5


exhibit(QueryKeySwapped)
# --8<-- [end:query-key-swapped]


# --8<-- [start:softmax-over-queries]
class SoftmaxOverQueries(Layer):
    def weigh(self, scores, table):
        return super().weigh(scores.mT, table.mT).mT


exhibit(SoftmaxOverQueries)
# --8<-- [end:softmax-over-queries]


# --8<-- [start:mask-upside-down]
class MaskUpsideDown(Layer):
    def heads(self, allow):
        return ~allow[:, None]


past = torch.ones(2, 5, 5).bool().tril()  # (B, L, S)
exhibit(MaskUpsideDown, allow=past)
# --8<-- [end:mask-upside-down]


# --8<-- [start:mask-after-softmax]
class MaskAfterSoftmax(Layer):
    def weigh(self, scores, table):
        return scores.softmax(dim=-1) * table


exhibit(MaskAfterSoftmax, causal=True)
# --8<-- [end:mask-after-softmax]


# --8<-- [start:mask-tiled]
class MaskTiled(Layer):
    def heads(self, allow):
        B, L, S = allow.shape
        tiled = allow.repeat(self.num_heads, 1, 1)  # (H * B, L, S)
        return tiled.view(B, self.num_heads, L, S)


exhibit(MaskTiled, allow=table)
# --8<-- [end:mask-tiled]


# --8<-- [start:padding-over-rows]
class PaddingOverRows(Layer):
    def padding(self, key_allow):
        return key_allow[:, None, :, None]


exhibit(PaddingOverRows, key_allow=keep)
# --8<-- [end:padding-over-rows]


# --8<-- [start:causal-in-training]
class CausalInTraining(Layer):
    def causal(self, table):
        return table.tril() if self.training else table


exhibit(CausalInTraining, causal=True)
# --8<-- [end:causal-in-training]


# --8<-- [start:dropout-always]
class DropoutAlways(Layer):
    def drop(self, weights):
        return dropout(weights, self.dropout)


exhibit(DropoutAlways, dropout=0.5)
# --8<-- [end:dropout-always]


# --8<-- [start:weights-after-dropout]
class WeightsAfterDropout(Layer):
    def shown(self, weights, dropped):
        return dropped


exhibit(WeightsAfterDropout, causal=True, dropout=0.1, train=True)
# --8<-- [end:weights-after-dropout]


# --8<-- [start:axes-swapped]
class AxesSwapped(Layer):
    def shown(self, weights, dropped):
        return weights.mT


exhibit(AxesSwapped)
# --8<-- [end:axes-swapped]


# --8<-- [start:looks]
def shape(actual, expected):
    return actual[0].shape == expected[0].shape


def sums(actual, expected):
    weights = actual[1]  # (B, H, L, S)
    return mha.compare(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))


def loose(actual, expected):
    return torch.allclose(actual[0], expected[0], atol=1e-3)


def output(actual, expected):
    return mha.compare(actual[0], expected[0])


def both(actual, expected):
    return all(map(mha.compare, actual, expected))
# --8<-- [end:looks]


# --8<-- [start:checks]
CHEAP = {
    "shape": (shape, {}),
    "sums": (sums, {}),
    "ones": (output, {"ones": True}),
    "one_head": (output, {"H": 1}),
    "zero_bias": (output, {"biases": False}),
    "loose": (loose, {"dtype": torch.float32, "small": True}),
}
THOROUGH = [
    (both, {"S": 7}),
    (both, masks),
    (both, {"dropout": 0.5}),
    (both, {"dropout": 0.5, "train": True}),
]


def found(kind, look, situation):
    try:
        return not look(run(kind, **situation), run(Layer, **situation))
    except RuntimeError:
        return True
# --8<-- [end:checks]


# --8<-- [start:table]
bugs = Layer.__subclasses__()
thorough = {
    kind: [found(kind, *check) for check in THOROUGH]
    for kind in (Layer, *bugs)
}


def row(kind):
    cheap = [found(kind, *check) for check in CHEAP.values()]
    layer = kind.from_torch(reference).eval()
    parity = not mha.parity(layer, reference, **masks)
    return [*cheap, parity, any(thorough[kind])]


rows = {bug: row(bug) for bug in bugs}
assert not any(row(Layer))
assert all(r[-1] for r in rows.values())
unseen = [bug for bug, r in rows.items() if not any(r[: len(CHEAP)])]

print(len(rows), len(unseen))
# --8<-- [end:table]
