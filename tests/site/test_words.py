"""Numbers as each language writes them, and both languages with the same words."""

import pytest
from words import WORDS, localise, writer


@pytest.mark.parametrize(
    ("python", "indonesian", "english"),
    [
        ("0.390", "0,390", "0.390"),
        ("-2.5", "−2,5", "−2.5"),
        ("1,234,567", "1.234.567", "1,234,567"),
        ("1,000.5", "1.000,5", "1,000.5"),
        ("1.110e-16", "1,110 × 10<sup>−16</sup>", "1.110 × 10<sup>−16</sup>"),
        ("2e+20", "2 × 10<sup>20</sup>", "2 × 10<sup>20</sup>"),
        ("0.0e+00", "0", "0"),
        ("(1, 2, 4, 3)", "(1, 2, 4, 3)", "(1, 2, 4, 3)"),
        ("(18, 6)", "(18, 6)", "(18, 6)"),
        ("168", "168", "168"),
        ("True", "True", "True"),
    ],
)
def test_numbers(python, indonesian, english):
    assert localise(python, WORDS["id"]) == indonesian
    assert localise(python, WORDS["en"]) == english


def test_a_drawing_writes_words_and_numbers():
    write = writer(WORDS["id"])
    assert write("shape") == "bentuk"
    assert write("0.390") == "0,390"
    assert write("query") == "query"


@pytest.mark.parametrize("text", [f"{float(name):.3f}" for name in ("nan", "inf", "-inf")])
def test_a_drawing_has_finite_numbers_only(text):
    with pytest.raises(ValueError, match=f"is {text}, not a finite number"):
        writer(WORDS["id"])(text)
