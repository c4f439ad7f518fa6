"""`compare` passes nothing it cannot judge; `parity` finds what differs, and touches nothing."""

import copy
import dataclasses
import itertools
import math
import random

import numpy as np
import pytest
import torch
from mha_oracle import INF, lattice, parameters
from mha_ways import layer_of, tensors, torch_of

import mha

NAN = math.nan
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def as_dtype(x, name):
    return torch.tensor(x, dtype=getattr(torch, name))


# compare


@pytest.mark.parametrize("one", TOLERANCE)
@pytest.mark.parametrize("other", TOLERANCE)
def test_tolerance_of_the_coarser_dtype(one, other):
    rtol = max(TOLERANCE[one], TOLERANCE[other])
    found = mha.compare(as_dtype([0.5, -2.0], one), as_dtype([0.5, -2.0], other))
    assert found.ok is True
    assert found.max_error == 0
    assert found.tolerance == rtol * 2
    if "bfloat16" not in (one, other):
        found = mha.compare(np.array([0.5, -2], one), np.array([0.5, -2], other))
        assert found.tolerance == rtol * 2


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
def test_integers_count_as_float64(dtype):
    for x in (np.array([0, 1], dtype), torch.from_numpy(np.array([0, 1], dtype))):
        found = mha.compare(x, x)
        assert found.ok
        assert found.tolerance == 1e-12
    assert not mha.compare(np.array([255], np.uint8), np.array([0], np.uint8))
    assert mha.compare(np.array([255], np.uint8), np.array([0], np.uint8)).max_error == 255
    assert mha.compare(np.array([1], np.longdouble), [1.0]).tolerance == 1e-12


def test_on_the_border():
    assert mha.compare([1.25], [1.0], rtol=0.25)
    assert not mha.compare([1.25], [1.0], rtol=0.2499)
    assert mha.compare([0.75], [1.0], rtol=0.25)
    assert mha.compare([5.0, 1.5], [4.0, 1.0], rtol=0.25)
    assert not mha.compare([5.0, 1.5], [4.0, 1.0], rtol=0.25, scale=1)
    assert mha.compare([1.25], [1.0], rtol=1, scale=0.25).tolerance == 0.25
    assert mha.compare([0.0], [0.0])
    assert not mha.compare([1e-300], [0.0])
    assert mha.compare([1.0], [1.0], rtol=0)
    assert mha.compare([1.0], [2.0], scale=0).ok is False
    assert mha.compare([1.0], [2.0], rtol=np.float32(1), scale=np.int64(1)).ok is True


def test_scale_is_the_largest_expected_number():
    assert mha.compare([1.0, 1e6], [1.0, 1e6]).tolerance == 1e-6
    assert mha.compare([1e6], [1.0]).tolerance == 1e-12
    assert mha.compare([-8.0], [-8.0]).tolerance == 8e-12
    assert mha.compare([1.0, 1.0], [2.0, INF]).tolerance == 2e-12


def test_a_comparison():
    found = mha.compare([1.0, 2.5], [1.0, 2.0], name="output")
    assert [f.name for f in dataclasses.fields(found)] == [
        "name",
        "ok",
        "reason",
        "max_error",
        "tolerance",
    ]
    assert (found.name, found.ok, found.max_error, found.tolerance) == ("output", False, 0.5, 2e-12)
    assert "5.000e-01" in found.reason
    assert "2.000e-12" in found.reason
    assert not found
    assert bool(mha.compare([1.0], [1.0])) is True
    assert mha.compare([1.0], [1.0]).name == "values"
    assert type(found.ok) is bool
    assert type(found.max_error) is float
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.ok = True


@pytest.mark.parametrize(
    ("actual", "expected", "reason"),
    [
        ([1.0], [1.0, 2.0], r"(1,), expected (2,)"),
        ([[1.0]], [1.0], "(1, 1)"),
        ([], [], "(0,)"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "(0, 3)"),
        (None, [1.0], "object"),
        ([1.0], None, "object"),
        (None, None, "object"),
        (["a"], ["a"], "str"),
        ([1j], [1j], "complex128"),
        ([[1.0], [1.0, 2.0]], [1.0], "inhomogeneous"),
        (torch.zeros(2, device="meta"), torch.zeros(2), "meta"),
        (torch.ones(2, dtype=torch.complex64), torch.ones(2), "complex64"),
        (torch.ones(2).to(torch.float8_e5m2), torch.ones(2), "float8"),
        (object(), object(), "object"),
    ],
)
def test_what_cannot_be_judged_is_no_pass(actual, expected, reason):
    found = mha.compare(actual, expected)
    assert found.ok is False
    assert reason in found.reason
    assert "judged" in found.reason
    assert math.isnan(found.max_error)
    assert math.isnan(found.tolerance)


@pytest.mark.parametrize(
    ("actual", "expected", "reason"),
    [
        ([1.0, 2.5], [1.0, 2.0], "largest error 5.000e-01, tolerance 2.000e-12"),
        ([1.0], [1.0, 2.0], "cannot be judged: shape (1,), expected (2,)"),
        ([1.0], [], "cannot be judged: shape (1,), expected numbers"),
        ([], [], "cannot be judged: shape (0,), expected numbers"),
        ([1j], [1.0], "cannot be judged: complex128 is no kind of number with a known precision"),
        ([NAN], [1.0], "largest error nan, tolerance 1.000e-12; actual is not finite"),
        ([2.0], [INF], "largest error inf, tolerance 0.000e+00; the reference is not finite"),
        (
            torch.tensor([NAN, 1.0]),
            torch.tensor([INF, 2.0]),
            "largest error nan, tolerance 2.000e-05; actual is not finite; "
            "the reference is not finite",
        ),
    ],
)
def test_reasons_word_for_word(actual, expected, reason):
    assert mha.compare(actual, expected).reason == reason


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_numbers_that_are_not_finite(bad, kind):
    found = mha.compare(kind([1.0, bad]), kind([1.0, 2.0]))
    assert not found
    assert "actual is not finite" in found.reason
    assert "reference" not in found.reason
    found = mha.compare(kind([1.0, 2.0]), kind([1.0, bad]))
    assert not found
    assert "reference is not finite" in found.reason
    assert "actual is" not in found.reason
    assert not mha.compare(kind([bad]), kind([bad]))
    assert not mha.compare(kind([1.0, bad]), kind([1.0, bad]), rtol=1e308, scale=1e308)
    assert not mha.compare([1e308], [-1e308], rtol=1.0)


def test_compare_takes_what_has_a_gradient_or_no_memory_of_its_own():
    x = torch.ones(3, requires_grad=True)
    assert mha.compare(x * 2, x * 2)
    assert mha.compare(torch.ones(1).expand(5), np.ones(5))
    assert mha.compare(1.0, 1.0)
    assert mha.compare(torch.nn.Parameter(torch.ones(2)), [1, 1])


# parity


def random_reference(d_model=6, num_heads=3, dtype=torch.float64, **options):
    reference = torch.nn.MultiheadAttention(d_model, num_heads, dtype=dtype, **options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in reference.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) / 2)
    return reference


def normal(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2)).to(dtype)


PROJECTED = [f"{n}_proj.{k}" for n in ("q", "k", "v", "out") for k in ("weight", "bias")]


def rows_of(names=PROJECTED):
    gradients = [f"gradient of {name}" for name in ("query", "key", "value", *names)]
    return {"output", "output without weights", "weights", *gradients}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"kdim": 11}, {"vdim": 13}, {"batch_first": True}], ids=str
)
def test_a_copy_agrees(options, dtype):
    reference = random_reference(dtype=dtype, **options)
    report = mha.parity(mha.MultiHeadAttention.from_torch(reference), reference)
    assert report, str(report)
    assert report.ok is True
    names = [n for n in PROJECTED if options.get("bias", True) or "weight" in n]
    assert {row.name for row in report.rows} == rows_of(names)
    assert len(report.rows) == len(rows_of(names))
    rtol = TOLERANCE[str(dtype).removeprefix("torch.")]
    assert report.rows[2].tolerance == pytest.approx(rtol, rel=1)
    assert str(report).count("\n") == len(report.rows) - 1
    for line, row in zip(str(report).splitlines(), report.rows, strict=True):
        assert line == f"ok   {row.name}: {row.reason}"


def test_a_report():
    good, wrong = mha.compare([1.0], [1.0], name="a"), mha.compare([1.0], [2.0], name="b")
    assert mha.ParityReport((good,)).ok is True
    assert mha.ParityReport((good, wrong)).ok is False
    assert not mha.ParityReport((good, wrong))
    assert not mha.ParityReport(())
    assert str(mha.ParityReport((good, wrong))).splitlines()[1].startswith("FAIL b: ")
    assert [f.name for f in dataclasses.fields(mha.ParityReport)] == ["rows"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        mha.ParityReport(()).rows = (good,)


@pytest.mark.parametrize("name", PROJECTED)
def test_every_parameter_counts(name):
    """Two differences of 1e-6: each shows, except in the key bias, which cancels."""
    reference = random_reference()
    layer = mha.MultiHeadAttention.from_torch(reference)
    with torch.no_grad():
        layer.get_parameter(name).view(-1)[3:5].add_(1e-6)
    report = mha.parity(layer, reference)
    assert bool(report) == (name == "k_proj.bias")
    wrong = {row.name for row in report.rows if not row}
    if name == "out_proj.weight":
        assert {"output", "output without weights", "gradient of query"} <= wrong
        assert "weights" not in wrong
    if name.startswith("q"):
        assert {"weights", "gradient of k_proj.weight"} <= wrong


class Wrong(mha.MultiHeadAttention):
    """A layer that is wrong on one path only."""

    wrong_path = True

    def forward(self, *args, need_weights=True, **kwargs):
        out, w = super().forward(*args, need_weights=need_weights, **kwargs)
        if need_weights == self.wrong_path:
            out = out * (1 + 1e-9)
        return out, w


def test_each_path_counts():
    reference = random_reference()
    for path, row in ((True, "output"), (False, "output without weights")):
        layer = Wrong.from_torch(reference)
        layer.wrong_path = path
        report = mha.parity(layer, reference)
        assert {r.name for r in report.rows if not r} >= {row}
        assert {r.name for r in report.rows if not r} & {"output", "output without weights"} == {
            row
        }
        assert not report


class Forgetful(mha.MultiHeadAttention):
    """Without weights it forgets the mask."""

    def forward(self, *args, need_weights=True, causal=False, **kwargs):
        return super().forward(*args, need_weights=need_weights, causal=causal and need_weights)


class Deaf(mha.MultiHeadAttention):
    """The key is never used."""

    def forward(self, query, key=None, value=None, **kwargs):
        return super().forward(query, value, value, **kwargs)


def test_what_is_not_used_has_a_gradient_of_zero():
    reference = random_reference()
    report = mha.parity(Deaf.from_torch(reference), reference)
    wrong = {row.name for row in report.rows if not row}
    assert "gradient of key" in wrong
    assert "output" not in wrong


def test_masks_count_on_each_path():
    reference = random_reference()
    layer = Forgetful.from_torch(reference)
    assert mha.parity(layer, reference)
    report = mha.parity(layer, reference, causal=True)
    assert not next(row for row in report.rows if row.name == "output without weights")
    assert next(row for row in report.rows if row.name == "output")


class WrongGradient(mha.MultiHeadAttention):
    """Right numbers, but half the gradient reaches the query."""

    def forward(self, query, *args, **kwargs):
        return super().forward((query + query.detach()) / 2, *args, **kwargs)


def test_gradients_count():
    reference = random_reference(kdim=11)
    report = mha.parity(WrongGradient.from_torch(reference), reference)
    assert [row.name for row in report.rows if not row] == ["gradient of query"]


def test_gradients_share_one_scale():
    reference = random_reference()
    report = mha.parity(mha.MultiHeadAttention.from_torch(reference), reference)
    tolerances = {r.tolerance for r in report.rows if r.name.startswith("gradient")}
    assert len(tolerances) == 1
    rows = {row.name: row for row in report.rows}
    assert rows["gradient of k_proj.bias"].max_error > 0


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_inputs_are_batch_first(batch_first, batched):
    reference = random_reference(batch_first=batch_first)
    layer = mha.MultiHeadAttention.from_torch(reference)
    x, memory = normal(5, 5, 6), normal(5, 7, 6)
    inputs = [x, memory, memory + 1] if batched else [x[0], memory[0], memory[0] + 1]
    for given in (inputs[:1], inputs):
        report = mha.parity(layer, reference, *given)
        assert report, str(report)
        assert {row.name for row in report.rows} == rows_of()


def test_masks():
    reference = random_reference()
    layer = mha.MultiHeadAttention.from_torch(reference)
    x, memory = normal(2, 5, 6), normal(2, 7, 6)
    allow = normal(2, 3, 5, 7) > -0.5
    allow[..., 0] = True
    keep = torch.ones(2, 7, dtype=torch.bool)
    keep[0, 3:] = False
    bias = normal(3, 5, 7)[None].masked_fill(~allow[:1], -INF)
    cross = [x, memory, memory]
    for given, masks in (
        ([x], {"causal": True}),
        (cross, {"causal": "upper_left"}),
        (cross, {"causal": "lower_right"}),
        (cross, {"allow": allow}),
        (cross, {"allow": allow[:, 0]}),
        (cross, {"allow": allow[0, 0]}),
        (cross, {"key_allow": keep}),
        (cross, {"score_bias": bias}),
        (cross, {"allow": allow, "key_allow": keep, "score_bias": bias, "causal": "lower_right"}),
        ([z[0] for z in cross], {"allow": allow[0], "key_allow": keep[0]}),
    ):
        report = mha.parity(layer, reference, *given, **masks)
        assert report, str(report)
        assert not mha.parity(Wrong.from_torch(reference), reference, *given, **masks)


def test_masks_are_those_of_torch():
    """The report's own translation of masks, against masks in torch's form."""
    state, x = parameters(6), tensors(lattice(2, 5, 6))
    keep = torch.tensor([[True, True, False, True, True], [True, False, True, True, True]])
    truth, weights = torch_of(state, 3)(
        x,
        x,
        x,
        ~keep,
        attn_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        average_attn_weights=False,
    )
    out, w = layer_of(state, 3)(x, key_allow=keep, causal=True)
    assert mha.compare(out, truth)
    assert mha.compare(w, weights)
    assert mha.parity(layer_of(state, 3), torch_of(state, 3), x, key_allow=keep, causal=True)


def test_rows_without_keys_are_not_the_layers_fault():
    reference = random_reference()
    layer = mha.MultiHeadAttention.from_torch(reference)
    keep = torch.zeros(2, 5, dtype=torch.bool)
    report = mha.parity(layer, reference, key_allow=keep)
    assert not report
    assert "reference is not finite" in str(report)
    assert "actual is not finite" not in str(report)


@pytest.mark.parametrize("train", [True, False])
def test_nothing_is_touched(train):
    reference = random_reference(dropout=0.5).train(train)
    layer = mha.MultiHeadAttention.from_torch(reference).train(not train)
    x = normal(2, 5, 6)
    layer.eval()(x)[0].sum().backward()
    layer.train(not train).k_proj.weight.requires_grad_(False)
    reference.in_proj_weight.requires_grad_(False)

    def state():
        parameters_and_grads = [
            (n, p.clone(), p.requires_grad, None if p.grad is None else p.grad.clone())
            for m in (layer, reference)
            for n, p in m.named_parameters()
        ]
        return [
            parameters_and_grads,
            [(m.training, m.dropout, sorted(vars(m))) for m in (layer, reference)],
            [reference.batch_first, x.clone(), x.requires_grad, torch.is_grad_enabled()],
            [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()],
        ]

    def same(a, b):
        if isinstance(a, list | tuple):
            return len(a) == len(b) and all(map(same, a, b))
        return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b

    before = state()
    for context in (torch.enable_grad, torch.no_grad, torch.inference_mode):
        with context():
            assert mha.parity(layer, reference, x)
            assert mha.parity(layer, reference)
            inside = normal(2, 5, 6)
            assert mha.parity(layer, reference, inside)
    assert same(before, state())


def test_same_seed_same_report():
    reference = random_reference(kdim=11)
    layer = mha.MultiHeadAttention.from_torch(reference)
    assert mha.parity(layer, reference) == mha.parity(layer, reference, seed=0)
    errors = [
        [row.tolerance for row in mha.parity(layer, reference, seed=seed).rows] for seed in (0, 1)
    ]
    assert errors[0] != errors[1]
    torch.manual_seed(123)
    assert mha.parity(layer, reference, seed=7) == mha.parity(layer, reference, seed=7)


def test_rtol():
    reference = random_reference(dtype=torch.float32)
    layer = mha.MultiHeadAttention.from_torch(reference)
    assert mha.parity(layer, reference)
    assert not mha.parity(layer, reference, rtol=1e-12)
    assert not mha.parity(layer, reference, rtol=0)
    with pytest.raises(ValueError, match=r"rtol.*-1"):
        mha.parity(layer, reference, rtol=-1)


def test_reference_is_the_truth_in_float64():
    """A float32 layer is held against float64: the errors are those of float32, not doubled."""
    reference = random_reference(dtype=torch.float32)
    report = mha.parity(mha.MultiHeadAttention.from_torch(reference), reference)
    assert 1e-9 < report.rows[0].max_error < 1e-6
    half = mha.MultiHeadAttention.from_torch(reference).half()
    report = mha.parity(half, random_reference(dtype=torch.float16))
    assert report


def test_differences_in_kind():
    """Another number of heads, or a bias that only one has, is no exception and no pass."""
    layer = layer_of(parameters(6), 3)
    for causal in (False, True):
        report = mha.parity(layer, torch_of(parameters(6), 2), causal=causal)
        assert not report
        assert "(2, 3, 5, 5), expected (2, 2, 5, 5)" in str(report)
    bare = parameters(6, bias=False)
    zeros = {**parameters(6), **bare} | {n: np.zeros(6) for n in PROJECTED if "bias" in n}
    for one, other in itertools.permutations((bare, zeros)):
        report = mha.parity(layer_of(one, 3), torch_of(other, 3))
        wrong = [row.name for row in report.rows if not row]
        assert wrong == [f"gradient of {n}" for n in PROJECTED if "bias" in n]


def test_autocast_outside_does_not_matter():
    reference = random_reference(dtype=torch.float32)
    layer = mha.MultiHeadAttention.from_torch(reference)
    with torch.autocast("cpu", torch.bfloat16):
        assert mha.parity(layer, reference)


def test_wrong_dtype_of_the_input_is_refused():
    reference = random_reference(dtype=torch.float32)
    layer = mha.MultiHeadAttention.from_torch(reference)
    with pytest.raises(TypeError, match=r"float32.*float64"):
        mha.parity(layer, reference, normal(2, 5, 6))


def test_inputs_with_a_history():
    reference = random_reference()
    layer = mha.MultiHeadAttention.from_torch(reference)
    x = normal(2, 5, 6).requires_grad_()
    assert mha.parity(layer, reference, x * 2)
    assert x.grad is None
    assert mha.parity(copy.deepcopy(layer), reference, x.expand(2, 5, 6))
