"""Each right answer passes, and each mistake is called by its name, in both languages."""

import inspect
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import torch
from mha_ways import run_python

import mha
from mha import answers, exercises
from mha.answers import EXERCISES
from mha.exercises import Text, check

LANGUAGES = Text._fields
MISTAKES = [
    pytest.param(name, number, id=f"{name}-{number}")
    for name, exercise in EXERCISES.items()
    for number in range(len(exercise.mistakes))
]


def as_answer(name, value):
    """What a reader would hand in to give this value: itself, or a function or class that does."""
    asked = EXERCISES[name].ask
    if asked is None:
        return value
    if not name.startswith("bug"):
        return lambda *_: value
    return lambda projections, num_heads: lambda *_: value


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", EXERCISES)
def test_right_answer(name, language):
    verdict = check(name, as_answer(name, EXERCISES[name].right()), language=language)
    assert verdict
    assert verdict.state == "right"
    assert verdict.text == {"id": "Benar.", "en": "Right."}[language]


@pytest.mark.parametrize(("name", "number"), MISTAKES)
def test_each_mistake_gets_its_own_message(name, number):
    mistake = EXERCISES[name].mistakes[number]
    answer = as_answer(name, mistake.compute())
    verdicts = {language: check(name, answer, language=language) for language in LANGUAGES}
    assert verdicts["id"].text == f"Belum. {mistake.id}"
    assert verdicts["en"].text == f"Not yet. {mistake.en}"
    assert not verdicts["id"]
    assert verdicts["id"].state == verdicts["en"].state == "wrong"


@pytest.mark.parametrize("name", EXERCISES)
def test_no_two_answers_of_an_exercise_collide(name):
    exercise = EXERCISES[name]
    values = [np.asarray(exercise.right())]
    values += [np.asarray(mistake.compute()) for mistake in exercise.mistakes]
    for one, two in combinations(values, 2):
        if one.shape == two.shape:
            one, two = one.astype(float), two.astype(float)
            difference = np.abs(np.where(np.isnan(one), 99, one) - np.where(np.isnan(two), 99, two))
            assert difference.max() > 10 * exercises.TOLERANCE
    for language in LANGUAGES:
        texts = [getattr(mistake, language) for mistake in exercise.mistakes]
        assert len(set(texts)) == len(texts) >= 3
        assert all(text.endswith(".") and "{" not in text for text in texts)


def test_languages_say_different_things():
    for exercise in EXERCISES.values():
        for mistake in exercise.mistakes:
            assert mistake.id != mistake.en
            assert mistake.id.count("d_k") == mistake.en.count("d_k")


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize(
    ("language", "open_", "values"),
    [
        ("id", "Belum dijawab.", "Belum. Bentuknya benar, isinya keliru."),
        ("en", "Not answered yet.", "Not yet. The shape is right, the values are not."),
    ],
)
def test_unanswered_and_unforeseen(name, language, open_, values):
    right = np.asarray(EXERCISES[name].right())
    for nothing in (None, ..., as_answer(name, None), as_answer(name, ...)):
        verdict = check(name, nothing, language=language)
        assert (verdict.state, verdict.text, bool(verdict)) == ("open", open_, False)
    other = ~right if right.dtype == bool else right * 1.01 + 77
    if right.dtype == bool:
        other = right ^ (np.arange(right.size).reshape(right.shape) == 1)
    assert check(name, as_answer(name, other), language=language).text == values
    longer = np.concatenate([np.atleast_1d(right)] * 2)
    verdict = check(name, as_answer(name, longer), language=language)
    assert f"{right.shape}" in verdict.text
    assert f"{longer.shape}" in verdict.text
    assert "{" not in verdict.text


def closed_forms():
    """What a reader computes by hand, without mha."""
    full, one = np.exp(2 / 6**0.5), np.exp(1 / 6**0.5)
    s = np.exp(1 / 3**0.5)
    a, b = s / (2 * s + 1), 1 / (2 * s + 1)
    layer = torch.nn.MultiheadAttention(512, 8)
    e = np.exp([-3, -2, 0])
    return {
        "width": 64,
        "scale": 0.125,
        "score": 6**-0.5,
        "tie": np.array([full, one, one]) / (full + 2 * one),
        "shift": e / e.sum(),
        "one_key": [0, 1, 0],
        "no_key": [0, 0, 0],
        "head_columns": [4, 5, 6, 7],
        "second_head": [a, a, b],
        "mean": [a, (a + b) / 2, (a + b) / 2],
        "causal": np.tril(np.ones((4, 4), bool)),
        "padding": [[False, False, False], [False, True, True]],
        "shapes": (2, 4, 5, 7),
        "parameters": sum(p.numel() for p in layer.parameters()),
        "cost": 600,
    }


def test_right_answers_are_those_by_hand_and_by_torch():
    for name, answer in closed_forms().items():
        assert check(name, answer), name
    assert {name for name, e in EXERCISES.items() if e.ask} == EXERCISES.keys() - closed_forms()
    assert len(EXERCISES) >= 20


def test_shift_is_what_torch_gives():
    expected = torch.softmax(torch.tensor([1.0, 2.0, 4.0]), 0)
    assert check("shift", expected)


class Layer:
    """A whole class as a reader would repair it."""

    def __init__(self, projections, num_heads):
        self.projections, self.num_heads = projections, num_heads

    def __call__(self, x, allow=None):
        p = self.projections
        q, k, v = (
            (x @ w).reshape(len(x), self.num_heads, -1).swapaxes(0, 1)
            for w in (p.w_q, p.w_k, p.w_v)
        )
        scores = q @ k.swapaxes(-2, -1) / q.shape[-1] ** 0.5
        if allow is not None:
            scores = np.where(allow, scores, -np.inf)
        e = np.exp(scores)
        z = e / e.sum(axis=-1, keepdims=True) @ v
        return z.swapaxes(0, 1).reshape(x.shape) @ p.w_o


def test_functions_and_classes():
    def split(x, num_heads):
        x = x.reshape(len(x), num_heads, -1).swapaxes(0, 1)
        x += 0  # in place
        return x

    assert check("split", split)
    assert check("split", mha.split_heads)
    assert check("merge", lambda z: np.hstack(list(z)))
    assert check("output_projection", lambda a, b, w: a @ w[:3] + b @ w[3:])
    assert check("permutation", lambda A, order: A[:, order[:, None], order])
    for name in ("bug_heads", "bug_sums", "bug_mask"):
        assert check(name, Layer)


def columns(x, first):
    return x[:, [first, first + 2, first + 4]]


def softmax_by(axis):
    def weigh(scores):
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    return weigh


def wrong_layer(split=mha.split_heads, weigh=mha.softmax):
    """A class with one part done wrongly, as a reader writes it."""

    def make(p, num_heads):
        def call(x, allow=None):
            q, k, v = (split(x @ w, num_heads) for w in (p.w_q, p.w_k, p.w_v))
            scores = q @ k.swapaxes(-2, -1) / q.shape[-1] ** 0.5
            A = weigh(scores) if allow is None else weigh(scores, allow)
            return mha.merge_heads(A @ v) @ p.w_o

        return call

    return make


@pytest.mark.parametrize(
    ("name", "answer", "number"),
    [
        ("tie", np.exp([2, 1, 1]) / np.exp([2, 1, 1]).sum(), 0),
        ("tie", [0.5, 0.25, 0.25], 2),
        ("shift", [0, 0, 1], 0),
        ("shift", [np.nan] * 3, 2),
        ("head_columns", [1, 4, 7, 10], 1),
        ("split", lambda x, num_heads: x.reshape(num_heads, 4, -1), 0),
        ("split", lambda x, num_heads: np.stack([columns(x, 0), columns(x, 1)]), 1),
        ("merge", lambda z: z.reshape(4, 6), 0),
        ("causal", np.triu(np.ones((4, 4), bool)), 0),
        ("causal", np.triu(np.ones((4, 4), bool), 1), 1),
        ("causal", np.tril(np.ones((4, 4), bool), -1), 2),
        ("padding", [[True, True, True], [True, False, False]], 0),
        ("permutation", lambda A, order: A, 0),
        ("permutation", lambda A, order: A[:, order], 1),
        ("permutation", lambda A, order: A[:, :, order], 2),
        ("shapes", (2, 4, 7, 5), 0),
        ("shapes", (2, 5, 7), 1),
        ("bug_heads", wrong_layer(split=lambda x, n: x.reshape(n, len(x), -1)), 0),
        ("bug_heads", wrong_layer(lambda x, n: np.stack([columns(x, 0), columns(x, 1)])), 1),
        ("bug_sums", wrong_layer(weigh=softmax_by(-2)), 0),
        ("bug_sums", wrong_layer(weigh=softmax_by(0)), 1),
        ("bug_sums", wrong_layer(weigh=softmax_by((1, 2))), 2),
        ("bug_mask", wrong_layer(weigh=lambda scores, allow: mha.softmax(scores) * allow), 0),
        ("bug_mask", wrong_layer(weigh=lambda scores, _: mha.softmax(scores)), 1),
        (
            "bug_mask",
            wrong_layer(weigh=lambda s, allow: mha.softmax(np.where(allow, -np.inf, s))),
            2,
        ),
        ("bug_mask", wrong_layer(weigh=lambda scores, allow: mha.softmax(scores * allow)), 3),
        (
            "bug_mask",
            wrong_layer(weigh=lambda s, allow: mha.softmax(np.where(allow.T, s, -np.inf))),
            4,
        ),
    ],
)
def test_mistakes_are_those_that_readers_make(name, answer, number):
    assert check(name, answer).text == f"Not yet. {EXERCISES[name].mistakes[number].en}"


def test_an_answer_that_spoils_its_input_spoils_nothing():
    def spoil(*arrays):
        for array in arrays:
            if isinstance(array, np.ndarray):
                array[...] = 0

    for name in ("split", "merge", "output_projection", "permutation"):
        assert check(name, spoil).state == "open"
    for name in ("bug_heads", "bug_sums", "bug_mask"):
        assert check(name, lambda *_: spoil).state == "open"
    test_functions_and_classes()


def test_tolerance():
    assert check("second_head", [0.39, 0.39, 0.219])  # as a page shows it
    assert check("second_head", np.float32([0.39, 0.39, 0.219]))
    assert not check("second_head", [0.39, 0.39, 0.22])
    assert check("parameters", 1050624.0)
    assert not check("parameters", 1050624.0001)
    assert not check("scale", float("nan"))
    assert not check("scale", float("inf"))


def test_tensors_and_lists():
    assert check("scale", torch.tensor(0.125, requires_grad=True))
    assert check("one_key", [0, 1, 0])
    assert check("one_key", (0.0, 1.0, 0.0))
    assert check("causal", torch.ones(4, 4).tril().bool())
    assert check("scale", Fraction(1, 8))
    assert check("scale", torch.tensor(0.125, dtype=torch.bfloat16))


@pytest.mark.parametrize("answer", [np.tril(np.ones((4, 4))), [[0, 1]]])
def test_numbers_where_truth_is_asked_for(answer):
    assert check("causal", answer).text == "Not yet. True and False are asked for, not numbers."
    assert "True dan False" in check("causal", answer, language="id").text


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("scale", "0.125", r"answer: expected numbers in shape \(\), got <U5 in shape \(\)"),
        ("scale", True, r"answer: expected numbers in shape \(\), got bool"),
        ("tie", [[1.0], [1.0, 2.0]], r"answer: expected numbers in shape \(3,\), got \[\[1"),
        ("causal", "True", r"answer: expected True and False in shape \(4, 4\), got <U4"),
        ("split", 3, r"answer: expected a function or class, got 3"),
        ("tie", {}, r"answer: expected numbers in shape \(3,\), got {}"),
    ],
)
def test_bad_answers(name, answer, message):
    with pytest.raises(TypeError, match=message):
        check(name, answer)


def test_errors_of_the_readers_own_code_are_theirs():
    with pytest.raises(ZeroDivisionError):
        check("split", lambda x, num_heads: 1 / 0)


def test_unknown_names_and_languages():
    with pytest.raises(ValueError, match=r"name must be one of width, scale, .*, got 'scael'"):
        check("scael", 1)
    with pytest.raises(ValueError, match=r"language must be one of id, en, got 'fr'"):
        check("scale", 1, language="fr")
    with pytest.raises(ValueError, match=r"language must be one of id, en, got 'fr'"):
        exercises.use("fr")


def test_use_chooses_the_language():
    assert check("scale", 1 / 8).text == "Right."
    exercises.use("id")
    try:
        assert check("scale", 1 / 8).text == "Benar."
        assert check("scale", 1 / 8, language="en").text == "Right."
    finally:
        exercises.use("en")


def test_shown_in_a_terminal_and_in_a_notebook():
    verdict = check("no_key", [0, 0])
    assert repr(verdict) == str(verdict) == verdict.text
    html = f'<p class="verdict wrong" lang="en">{verdict.text}</p>'
    assert verdict._repr_html_() == html
    assert "a &lt; b" in exercises.Verdict("wrong", "a < b", "en")._repr_html_()


def test_nothing_is_a_stored_number():
    source = inspect.getsource(answers)
    assert "0.39" not in source
    assert "0.125" not in source
    assert "1050624" not in source


def test_exercises_do_not_load_torch():
    program = (
        "import sys, mha\n"
        "print('mha.exercises' in sys.modules)\n"
        "from mha.exercises import check\n"
        "print(bool(check('scale', 1 / 8)), 'torch' in sys.modules)\n"
    )
    assert run_python("-c", program).split() == ["False", "True", "False"]
    assert not {"check", "exercises"} & set(mha.__all__)
