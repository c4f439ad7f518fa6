# --8<-- [start:case]
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

import mha


class Case:
    def __init__(self, B=3, H=2, L=5, S=7):
        torch.manual_seed(0)
        self.sizes = B, H, L, S
        self.module = torch.nn.MultiheadAttention(
            2 * H, H, batch_first=True, dtype=torch.float64
        )
        torch.nn.init.normal_(self.module.out_proj.bias)
        self.layer = mha.MultiHeadAttention.from_torch(self.module)
        query = torch.randn(B, L, 2 * H, dtype=torch.float64)
        key = torch.randn(B, S, 2 * H, dtype=torch.float64)
        self.inputs = query, key, key

    def heads(self):
        names = "q_proj", "k_proj", "v_proj"
        for name, x in zip(names, self.inputs):
            x = self.layer.get_submodule(name)(x)
            yield mha.split_heads(x, self.sizes[1])  # (B, H, L or S, d_k)

    def join(self, z):
        return self.layer.out_proj(mha.merge_heads(z))  # (B, L, d_model)
# --8<-- [end:case]


# --8<-- [start:ways]
def with_module(case, **masks):
    return case.module(*case.inputs, **masks)[0]


def with_sdpa(case, **masks):
    return case.join(sdpa(*case.heads(), **masks))


def with_layer(case, **masks):
    return case.layer(*case.inputs, **masks)[0]
# --8<-- [end:ways]


# --8<-- [start:meaning]
def expected(case, bias):
    q, k, v = (x.detach().numpy() for x in case.heads())
    bias = bias.double().expand(case.sizes).numpy()  # (B, H, L, S)
    output, _ = mha.attention(q, k, v, score_bias=bias)
    return case.join(torch.from_numpy(output))


def bias_of(table):
    return torch.zeros(table.shape).masked_fill(~table, -torch.inf)


def meaning(case, way, readings, **masks):
    try:
        output = way(case, **masks)
    except Exception as error:
        return f"`{type(error).__name__}`"
    for name, bias in readings.items():
        if mha.compare(output, expected(case, bias)):
            return name
    raise ValueError(masks)
# --8<-- [end:meaning]


# --8<-- [start:values]
def values(kind, mask):
    case = Case()
    number = torch.as_tensor(mask)  # (L, S)
    readings = {
        "added": number,
        "attends": bias_of(number == 1),
        "blocks": bias_of(number != 1),
    }
    return [
        kind,
        meaning(case, with_module, readings, attn_mask=mask),
        meaning(case, with_sdpa, readings, attn_mask=mask),
        meaning(case, with_layer, readings, allow=mask),
        meaning(case, with_layer, readings, score_bias=mask),
    ]


keep = torch.rand(5, 7, generator=torch.Generator().manual_seed(0)) > 0.5
keep[:, 0], keep[:, 1] = True, False
value_rows = [
    values("`bool`", keep),
    values("`float64: 0, -inf`", bias_of(keep).double()),
    values("`float64: 0, 1`", keep.double()),
    values("`float32: 0, 1`", keep.float()),
    values("`int64: 0, 1`", keep.long()),
    values("`uint8: 0, 1`", keep.to(torch.uint8)),
    values("`numpy.bool`", keep.numpy()),
]
# --8<-- [end:values]


# --8<-- [start:shapes]
def shapes(name, shape, **sizes):
    case = Case(**sizes)
    B, H, L, S = case.sizes
    random = torch.Generator().manual_seed(0)
    mask = torch.rand(shape, generator=random) > 0.4
    mask[..., 0] = True
    readings = {}
    for axes in [
        (1, 1, 1, S), (1, 1, L, S), (B, 1, 1, S), (B, 1, L, S),
        (1, H, L, S), (B, H, L, S),
    ]:
        if mask.numel() == torch.Size(axes).numel():
            names = (n if a > 1 else "1" for n, a in zip("BHLS", axes))
            readings[f"`({', '.join(names)})`"] = bias_of(mask.view(axes))
    return [
        name,
        meaning(case, with_module, readings, attn_mask=~mask),
        meaning(case, with_module, readings, key_padding_mask=~mask),
        meaning(case, with_sdpa, readings, attn_mask=mask),
        meaning(case, with_layer, readings, allow=mask),
        meaning(case, with_layer, readings, key_allow=mask),
    ]


shape_rows = [
    shapes("`(S,)`", (7,)),
    shapes("`(L, S)`", (5, 7)),
    shapes("`(B, S)`", (3, 7)),
    shapes("`(B, 1, 1, S)`", (3, 1, 1, 7)),
    shapes("`(B, L, S)`", (3, 5, 7)),
    shapes("`(H, L, S)`", (2, 5, 7)),
    shapes("`(B * H, L, S)`", (6, 5, 7)),
    shapes("`(B, H, L, S)`", (3, 2, 5, 7)),
    shapes("`(B, S), B = L`", (5, 7), B=5),
    shapes("`(B, L, S), B = H`", (2, 5, 7), B=2),
]
# --8<-- [end:shapes]


# --8<-- [start:flags]
def flags(name, S, masked):
    case = Case(S=S)
    full = torch.ones(5, S, dtype=torch.bool)  # (L, S)
    readings = {"causal": bias_of(full.tril()), "open": bias_of(full)}
    blocked = {"attn_mask": ~full} if masked else {}
    allowed = {"attn_mask": full} if masked else {}
    ours = {"allow": full} if masked else {}
    return [
        name,
        meaning(case, with_module, readings, is_causal=True, **blocked),
        meaning(
            case, with_module, readings,
            is_causal=True, need_weights=False, **blocked,
        ),
        meaning(case, with_sdpa, readings, is_causal=True, **allowed),
        meaning(case, with_layer, readings, causal=True, **ours),
    ]


flag_rows = [
    flags("flag, L = S", 5, masked=False),
    flags("flag and mask, L = S", 5, masked=True),
    flags("flag, L ≠ S", 7, masked=False),
    flags("flag and mask, L ≠ S", 7, masked=True),
]
# --8<-- [end:flags]


# --8<-- [start:alignment]
def even(L, S, causal):
    query, key = torch.zeros(L, 1), torch.zeros(S, 1)
    return mha.torch_attention(query, key, torch.eye(S), causal=causal)[1]


upper = even(2, 4, "upper_left")
lower = even(2, 4, "lower_right")
tall = even(4, 2, "lower_right")

q, k, v = torch.zeros(2, 1), torch.zeros(4, 1), torch.eye(4)
flagged = sdpa(q, k, v, is_causal=True)  # (L, S)
shifted = sdpa(q, k, v, torch.ones(2, 4, dtype=torch.bool).tril(2))
print(mha.compare(flagged, upper).ok, mha.compare(shifted, lower).ok)
# --8<-- [end:alignment]


# --8<-- [start:empty]
import itertools

case = Case(B=2, L=4, S=4)
x = case.inputs[0]
block = torch.zeros(4, 4, dtype=torch.bool)  # (L, S)
block[1] = True
bias = case.module.out_proj.bias


def row(output, weights):
    if output.isnan().any():
        assert weights is None or weights.isnan().any()
        return "NaN"
    assert weights is None or not weights.isnan().any()
    assert torch.equal(output[:, 1], bias.expand_as(output[:, 1]))
    return "output_bias"


empty_rows = []
for train, grad, wanted in itertools.product([True, False], repeat=3):
    case.module.train(train), case.layer.train(train)
    with torch.set_grad_enabled(grad):
        theirs = case.module(x, x, x, attn_mask=block, need_weights=wanted)
        ours = case.layer(x, allow=~block, need_weights=wanted)
    mode = "`train()`" if train else "`eval()`"
    cells = [f"`{grad}`", f"`{wanted}`", row(*theirs), row(*ours)]
    empty_rows.append([mode, *cells])
# --8<-- [end:empty]


# --8<-- [start:gradient]
def gradient_is_finite(module, output):
    loss = output[:, 0].sum()  # (B, d_model)
    grads = torch.autograd.grad(loss, list(module.parameters()))
    return all(g.isfinite().all().item() for g in grads)


theirs = case.module.train()(x, x, x, attn_mask=block)[0]
ours = case.layer.train()(x, allow=~block)[0]
finite = [
    gradient_is_finite(case.module, theirs),
    gradient_is_finite(case.layer, ours),
]
print(finite)
# --8<-- [end:gradient]


# --8<-- [start:from-torch]
attn_mask = torch.ones(4, 4).triu(1).bool()  # (L, S)
padding = torch.tensor([[False] * 4, [False, False, True, True]])  # (B, S)

given = mha.masks_from_torch(attn_mask, padding)
print({name: tuple(mask.shape) for name, mask in given.items()})

theirs = case.module(x, x, x, attn_mask=attn_mask, key_padding_mask=padding)
print(mha.compare(case.layer(x, **given)[0], theirs[0]).ok)
# --8<-- [end:from-torch]


# --8<-- [start:to-torch]
def masks_to_torch(
    B, H, L, S, *, allow=None, key_allow=None, score_bias=None, causal=False
):
    table = torch.ones(B, H, L, S, dtype=torch.bool)
    if causal:
        table = table.tril()
    if key_allow is not None:
        table = table & key_allow[:, None, None]
    if allow is not None:
        table = table & (allow[:, None] if allow.ndim == 3 else allow)
    added = torch.zeros(B, H, L, S, dtype=torch.float64)
    if score_bias is not None:
        three = score_bias.ndim == 3
        added = added + (score_bias[:, None] if three else score_bias)
    added = added.masked_fill(~table, -torch.inf)
    return added.flatten(0, 1)  # (B * H, L, S)
# --8<-- [end:to-torch]


# --8<-- [start:there-and-back]
sizes = 2, 2, 4, 4  # B, H, L, S
some = torch.rand(sizes, generator=torch.Generator().manual_seed(0)) > 0.4
some[..., 0] = True
added = torch.linspace(-1, 1, 16, dtype=torch.float64).view(4, 4)

for masks in [
    {"allow": some[0, 0]},
    {"allow": some[:, 0]},
    {"allow": some, "score_bias": added},
    {"key_allow": ~padding, "causal": True},
]:
    there = masks_to_torch(*sizes, **masks)
    back = mha.masks_from_torch(there, num_heads=2)
    wanted_output = case.layer(x, **masks)[0]
    for output in [
        case.module(x, x, x, attn_mask=there)[0],
        case.layer(x, **back)[0],
    ]:
        check = mha.compare(output, wanted_output)
        assert check, check.reason
    print(list(masks), list(back), check.ok)
# --8<-- [end:there-and-back]


# --8<-- [start:task]
V, T, noise = 8, 6, 0.25


def follow(token):
    return (3 * token + 1) % V


def sentences(n, seed):
    random = torch.Generator().manual_seed(seed)
    columns = [torch.randint(V, (n,), generator=random)]
    while len(columns) < T:
        other = torch.randint(V, (n,), generator=random)
        noisy = torch.rand(n, generator=random) < noise
        columns.append(torch.where(noisy, other, follow(columns[-1])))
    return torch.stack(columns, dim=1)  # (n, T)


print(sentences(3, seed=0))
# --8<-- [end:task]


# --8<-- [start:model]
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(V, 16), nn.Embedding(T, 16)
        self.attention = mha.MultiHeadAttention(16, 1)
        self.head = nn.Linear(16, V)

    def forward(self, tokens, allow):
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        z, weights = self.attention(x, allow=allow)
        return self.head(z), weights  # (B, T, V), (B, H, T, T)


def loss_of(model, tokens, allow):
    logits, _ = model(tokens, allow)
    next_tokens = tokens[:, 1:].flatten()
    return nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), next_tokens
    )
# --8<-- [end:model]


# --8<-- [start:train]
def trained(allow):
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.04)
    for batch in sentences(64 * 80, seed=1).split(64):
        loss = loss_of(model, batch, allow)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


past = torch.ones(T, T, dtype=torch.bool).tril()
models = {"past": (trained(past), past), "future": (trained(~past), ~past)}
# --8<-- [end:train]


# --8<-- [start:loss]
import math

new = sentences(2000, seed=2)
right = 1 - noise + noise / V
wrong = noise / V
floor = -right * math.log(right) - (V - 1) * wrong * math.log(wrong)

loss = {}
for name, (model, allow) in models.items():
    with torch.no_grad():
        loss[name] = loss_of(model, new, allow).item()
    print(f"{name:6}  loss {loss[name]:.2f}")
print(f"floor   loss {floor:.2f}")
assert loss["future"] < floor < 1.1 * loss["past"]
# --8<-- [end:loss]


# --8<-- [start:generate]
def generate(model, allow):
    tokens = torch.arange(V)[:, None]  # (V, 1)
    while tokens.shape[1] < T:
        t = tokens.shape[1]
        logits, _ = model(tokens, allow[:t, :t])
        best = logits[:, -1].argmax(dim=-1, keepdim=True)
        tokens = torch.cat([tokens, best], dim=1)
    return tokens  # (V, T)


obeyed = {}
for name, (model, allow) in models.items():
    made = generate(model, allow)
    legal = made[:, 1:] == follow(made[:, :-1])  # (V, T - 1)
    obeyed[name] = legal.double().mean().item()
    print(f"{name:6}  {made[0].tolist()}  {obeyed[name]:.1%}")
assert obeyed["future"] < 0.5 < 0.9 < obeyed["past"]
# --8<-- [end:generate]


# --8<-- [start:weights]
sentence = new[:1]  # (1, T)
with torch.no_grad():
    A_past, A_future = (
        model(sentence, allow)[1][0, 0] for model, allow in models.values()
    )  # (T, T), (T, T)
# --8<-- [end:weights]


# --8<-- [start:detect]
changed = sentence.clone()
changed[0, -1] = (changed[0, -1] + 1) % V
moved = {}
for name, (model, allow) in models.items():
    with torch.no_grad():
        before, after = (model(s, allow)[0] for s in (sentence, changed))
    moved[name] = (before - after)[0, :-1].abs().max().item()
    print(f"{name:6}  {moved[name] == 0}")
assert moved["past"] == 0 < moved["future"]
# --8<-- [end:detect]
