"""Exercises that answer back: is it right, and if not, which mistake was it?"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .answers import EXERCISES, Exercise
from .functions import as_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Text(NamedTuple):
    """What to say, in each language."""

    id: str
    en: str


TOLERANCE = 6e-4  # three decimals, written by hand, are enough; whole numbers have to be exact

STATES = {
    "open": Text(id="Belum dijawab.", en="Not answered yet."),
    "wrong": Text(id="Belum.", en="Not yet."),
    "right": Text(id="Benar.", en="Right."),
}
SHAPE = Text(
    id="Bentuk yang diharapkan {}, bentuk jawaban {}.",
    en="The expected shape is {}, that of the answer {}.",
)
VALUES = Text(
    id="Bentuknya benar, isinya keliru.",
    en="The shape is right, the values are not.",
)
TRUTH = Text(
    id="Yang diminta True dan False, bukan bilangan.",
    en="True and False are asked for, not numbers.",
)

_language = "en"


def use(language: str) -> None:
    """Choose the language in which `check` speaks from now on: "id" or "en".

    - `ValueError` for any other language.

    >>> use("en")
    """
    global _language
    _language = _one_of("language", language, Text._fields)


def check(name: str, answer: Any, *, language: str | None = None) -> Verdict:
    """Say whether an answer is right; if it is a common mistake, say which.

    - `name` is that of an exercise; `answer` what it asks for: a number, an array (also a list or a
      tensor), a function or a class. None and `...` are no answer yet.
    - Three decimals are enough; whole numbers and tables of bool have to be exact.
    - `language` is "id" or "en"; without it, what `use` has chosen.
    - `ValueError` for an unknown name or language, `TypeError` for an answer of another kind.

    >>> check("scale", 1 / 64, language="en")
    Not yet. The root is missing: scores are divided by the square root of d_k, not by d_k.
    >>> check("scale", 1 / 8, language="en")
    Right.
    """
    language = _one_of("language", language or _language, Text._fields)
    state, *details = _judge(EXERCISES[_one_of("name", name, EXERCISES)], answer)
    texts = (getattr(text, language) for text in (STATES[state], *details))
    return Verdict(state, " ".join(texts), language)


@dataclass(frozen=True, repr=False)
class Verdict:
    """What `check` found: "right", "wrong" or "open" (not answered yet), and in words.

    `bool(verdict)` is True for a right answer only.
    """

    state: str
    text: str
    language: str

    def __bool__(self) -> bool:
        return self.state == "right"

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        kind = f'class="verdict {self.state}" lang="{self.language}"'
        return f"<p {kind}>{escape(self.text)}</p>"


def _judge(exercise: Exercise, answer: Any) -> tuple[Any, ...]:
    """The state of the answer, and more to say about it."""
    right = np.asarray(exercise.right())
    if exercise.ask is not None and not _is_open(answer):
        if not callable(answer):
            raise TypeError(f"answer: expected a function or class, got {answer!r}")
        answer = exercise.ask(answer)
    if _is_open(answer):
        return ("open",)
    got = _array(answer, right)
    if right.dtype.kind == "b" != got.dtype.kind:
        return "wrong", TRUTH
    tolerance = TOLERANCE if right.dtype.kind == "f" else 0
    if _same(got, right, tolerance):
        return ("right",)
    for mistake in exercise.mistakes:
        if _same(got, np.asarray(mistake.compute()), tolerance):
            return "wrong", mistake
    if got.shape != right.shape:
        return "wrong", Text(*(words.format(right.shape, got.shape) for words in SHAPE))
    return "wrong", VALUES


def _is_open(answer: Any) -> bool:
    return answer is None or answer is ...


def _array(answer: Any, right: NDArray[Any]) -> NDArray[Any]:
    """The answer as an array of the right kind."""
    wanted = f"{'True and False' if right.dtype.kind == 'b' else 'numbers'} in shape {right.shape}"
    try:
        got = as_numpy(answer)
        got = got.astype(float) if got.dtype.kind == "O" else got  # fractions, for instance
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different lengths, words
        raise TypeError(f"answer: expected {wanted}, got {answer!r}") from error
    if got.dtype.kind not in ("biuf" if right.dtype.kind == "b" else "iuf"):
        raise TypeError(f"answer: expected {wanted}, got {got.dtype} in shape {got.shape}")
    return got


def _same(one: NDArray[Any], two: NDArray[Any], tolerance: float) -> bool:
    if one.shape != two.shape:
        return False
    return bool(np.allclose(one, two, rtol=0, atol=tolerance, equal_nan=True))


def _one_of(what: str, value: str, legal: Any) -> str:
    if value not in legal:
        raise ValueError(f"{what} must be one of {', '.join(legal)}, got {value!r}")
    return value
