"""The site's own words, and numbers as a language writes them."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import yaml
from places import DOCS


def read_yaml(path: Path) -> dict:
    """What a file holds; by libyaml where PyYAML has it, which takes a tenth of the time."""
    return yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


FILE = DOCS / "words.yml"
WORDS = read_yaml(FILE)
DEFAULT = next(iter(WORDS))  # lives at /, the others below it

_UNITS = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "": ((1, ""),),
}
_NUMBER = re.compile(
    r"(?P<sign>-?)(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
    r"(?P<fraction>\.\d+)?(?:e(?P<power>[+-]\d+))?"
)


def read_again() -> None:
    """Take over what the file says now, for all that have imported WORDS."""
    now = read_yaml(FILE)
    WORDS.clear()
    WORDS.update(now)


def prefix(language: str) -> str:
    """Where a language lives, below the root of the site."""
    return "" if language == DEFAULT else f"{language}/"


def localise(text: str, words: dict) -> str:
    """Rewrite each number that Python's format() made: 1,234.5 and 1.1e-16, in this language."""

    def one(match: re.Match) -> str:
        if match["power"] and float(match[0].replace(",", "")) == 0:
            return "0"  # rather than 0.0 × 10 to the 0
        sign = "−" if match["sign"] else ""
        whole = match["whole"].replace(",", words["thousands"])
        fraction = (match["fraction"] or "").replace(".", words["decimal"])
        power = f" × 10<sup>{int(match['power'])}</sup>".replace("-", "−") if match["power"] else ""
        return sign + whole + fraction + power

    return _NUMBER.sub(one, text)


def writer(words: dict) -> Callable[[str], str]:
    """How a drawing writes a piece of text in this language; a cell without a number is none."""

    def write(text: str) -> str:
        if text in ("nan", "inf", "-inf"):
            raise ValueError(f"is {text}, not a finite number")
        return words["drawn"].get(text) or localise(text, words)

    return write


def scale(unit: str, like: float) -> tuple[float, str]:
    """The unit in which an amount has at least one digit before the sign: its size and name."""
    units = _UNITS[unit]
    return next((pair for pair in units if abs(like) >= pair[0]), units[-1])


def three_digits(number: float) -> int:
    """How many decimals make three digits."""
    return max(0, 2 - math.floor(math.log10(abs(number)))) if number else 0


def amount(value: float, unit: str) -> str:
    """A value in the unit that suits it, with three digits, as Python writes numbers."""
    factor, name = scale(unit, value)
    return f"{value / factor:,.{three_digits(value / factor)}f}\N{NO-BREAK SPACE}{name}"
