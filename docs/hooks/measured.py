"""What `nox -s bench` has measured, on its page: tables, curves, and values in sentences.

No build measures: where a site is built, much else runs. The numbers are those that
docs/measured.json holds. Forms of Markdown, in YAML:

- A fence `measured` is a table of a part of it: its rows, or `only` those with these values, told
  apart `by` these columns.
- A fence `curve` draws the amounts of such rows against their T.
- A fence `where`, empty, says when and on what all of it was measured.
- In `#!live`, `measured(part, column, **only)` is the list of a column's values.
"""

import json
import math
from collections.abc import Callable, Mapping
from html import escape

import current
import yaml
from curve import Curve
from places import DOCS
from pymdownx.superfences import SuperFencesException
from words import localise, scale, three_digits, writer

from mha.show import Table

RESULTS = DOCS / "measured.json"
PAGE = "bench.md"
RATIOS = "ratio", "limit", "met", "ours", "other"  # columns of a table, what counts first
AMOUNTS = "ours", "limit", "met", "share"


def on_config(config):
    """Teach Markdown the three fences."""
    for name, draw in (("measured", table), ("curve", curve), ("where", where)):
        current.fence_form(config, name, fence(name, draw))


def on_page_markdown(markdown, page, config, files):
    """Let the sentences of the one page that says where they come from ask for values."""
    if page.file.src_uri == PAGE:
        current.page.given["measured"] = measured


def fence(name: str, draw: Callable[..., str]) -> Callable[..., str]:
    """A fence that passes what it holds on to a function, and names the page if that fails."""

    def write(source, language, class_name, options, md, **kwargs):
        try:
            if current.page.name != PAGE:
                raise ValueError(f"only {PAGE} says that its numbers are older than the build")
            return draw(**(yaml.safe_load(source) or {}))
        except Exception as error:
            message = f"{current.page.name}: ```{name} {source}: {error}"
            raise SuperFencesException(message) from error

    return write


def parts() -> dict[str, dict]:
    """All that was measured."""
    return json.loads(RESULTS.read_text("utf-8"))


def rows_of(part: str, only: Mapping[str, object]) -> list[dict]:
    """The rows that have these values (None: no such column), each with whether it met its limit.

    `ValueError` if there are none, or if a number is not finite.
    """
    results = parts()
    if part not in results:
        raise ValueError(f"{RESULTS.name} has no part {part!r}; measure it: nox -s bench -- {part}")
    found = results[part]["rows"]
    found = [row for row in found if all(row.get(name) == only[name] for name in only)]
    if not found:
        raise ValueError(f"no row of {part} has {dict(only)}")
    for row in found:
        for name, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} is {value}, not a finite number, in {row}")
        if row.get("limit") is not None:
            row["met"] = row.get("ratio", row["ours"]) <= row["limit"]
    return found


def measured(part: str, column: str, **only: object) -> list:
    """The values of a column, in the rows that have one."""
    found = [row[column] for row in rows_of(part, only) if row.get(column) is not None]
    if not found:
        raise ValueError(f"no row of {part} with {only} has {column}")
    return found


def table(part: str, by: list[str], only: Mapping[str, object] | None = None) -> str:
    """Rows of a part, with what tells them apart first."""
    rows = rows_of(part, only or {})
    values = RATIOS if any("ratio" in row for row in rows) else AMOUNTS
    values = [name for name in values if any(row.get(name) is not None for row in rows)]
    cells = [
        [label(row[name]) for name in by] + [cell(row, name) for name in values] for row in rows
    ]
    drawn = Table([label(name) for name in [*by, *values]], cells)
    return figure(drawn.to_html(writer(current.page.words)), part)


def figure(drawn: str, part: str) -> str:
    """A table or a curve, with the command that repeats it, its date and the load."""
    place = parts()[part]["where"]
    facts = {"date": live(place["date"]), "load": live(written(f"{place['load']:.1f}"))}
    said = current.page.words["measured"]["caption"].format(**facts)
    command = f"<code>nox -s bench -- {escape(part)}</code>"
    return f"<figure>{drawn}<figcaption>{command}: {said}</figcaption></figure>"


def live(text: object) -> str:
    """A value in a sentence."""
    return f'<span class="live">{text}</span>'


def label(value: object) -> object:
    """A name as the reader sees it: a word of the page's language, or code; a number stays."""
    names = current.page.words["measured"]["names"]
    if isinstance(value, list):
        return f"`{', '.join(map(str, value))}`"
    if not isinstance(value, str) or value in names:
        return names.get(value, value)
    return f"`{value}`"


class Amount(float):
    """A number that is written in one way only, which has a unit or more digits."""

    text: str

    def __new__(cls, value: float, text: str) -> "Amount":
        amount = super().__new__(cls, value)
        amount.text = text
        return amount

    def __format__(self, _: str) -> str:
        return self.text


def cell(row: Mapping, name: str) -> object:
    """A value of a row: times and bytes in the unit that suits ours, a ratio without one."""
    value = row.get(name)
    if name == "met":
        return "–" if value is None else bool(value)
    if value is None:
        return Amount(0, "–")
    if name == "share":
        return Amount(value, f"{value:.1%}")
    judged = "ratio" if "ratio" in row else "ours"  # this is what the limit is for
    bare = judged == "ratio" and name in ("ratio", "limit")
    factor, unit = (1, "") if bare else scale(row["unit"], row["ours"])
    limit = row.get("limit") if name in (judged, "limit") else None
    number = (value if limit is None else row[judged]) / factor
    few = 2 if bare else 0 if unit == "B" else three_digits(number)
    places = few if limit is None else decimals(few, number, limit / factor)
    return Amount(value, f"{value / factor:,.{places}f}\N{NO-BREAK SPACE}{unit}".rstrip())


def decimals(few: int, number: float, limit: float) -> int:
    """So few decimals, or more where rounding hides on which side of the limit a number is."""
    met = number <= limit
    return next(n for n in range(few, 20) if (round(number, n) <= round(limit, n)) == met)


def where() -> str:
    """When and on what it was measured: one line, or several if it was not all one setting."""
    results, settings = parts(), {}
    for name, part in results.items():
        fixed = {key: value for key, value in part["where"].items() if key != "load"}
        settings.setdefault(json.dumps(fixed), []).append(name)
    lines = []
    for setting, names in settings.items():
        loads = [results[name]["where"]["load"] for name in names]
        between = (live(written(f"{load:.1f}")) for load in sorted({min(loads), max(loads)}))
        facts = {key: live(escape(str(value))) for key, value in json.loads(setting).items()}
        line = current.page.words["measured"]["where"].format(**facts, load="–".join(between))
        whose = ", ".join(f"<code>{escape(name)}</code>" for name in names)
        lines.append(f"{whose}: {line}" if len(settings) > 1 else line)
    return "".join(f"<p>{line}</p>" for line in lines)


def written(text: str) -> str:
    """Its numbers as the page's language has them."""
    return localise(text, current.page.words)


def curve(part: str, only: Mapping[str, object] | None = None) -> str:
    """Amounts against T, ours and what they are held against, on logarithmic axes."""
    rows = rows_of(part, only or {})
    lines: dict[str, dict[int, float]] = {"mha": {}}
    for row in rows:
        lines["mha"][row["T"]] = row["ours"]
        lines.setdefault(str(label(row["against"])).strip("`"), {})[row["T"]] = row["other"]
    drawn = Curve(lines, rows[0]["unit"], label(rows[0]["unit"]))
    return figure(drawn.to_html(writer(current.page.words)), part)
