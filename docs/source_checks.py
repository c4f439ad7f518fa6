"""What has to hold for the pages' sources before a site is built.

Each check returns what is wrong, as sentences that name the file. None of them repairs anything.
"""

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import yaml
from places import slug_of
from words import read_yaml

FENCE = re.compile(r"^\s*(?P<marks>`{3,})(?P<info>[^`]*)$")
HEADING = re.compile(r"^(?P<level>#{1,6}) .*?(?:\{ *#(?P<id>[a-z0-9-]+) *\})?\s*$")
FRONT_MATTER = re.compile(r"\A---\n(?P<yaml>.*?)\n---\n", re.DOTALL)

# A number next to one of these is a name ("head 1", "token 0"), not a figure.
NAMES = "heads?|tokens?|kolom|columns?|baris|rows?|Python|Llama"
IN_ITS_LANGUAGE = {"title", "description", "source"}  # of the front matter; the rest is for all


def check_source(docs: Path) -> list[str]:
    """Pages and notebooks: complete, in step, without figures typed by hand."""
    words = read_yaml(docs / "words.yml")
    languages = list(words)
    problems = [
        *_same_files(docs, languages),
        *_same_words(words, docs / "words.yml"),
        *_whole_terms(docs / "glossary.csv", languages),
    ]
    for page in sorted(docs.glob("*/*.md")):
        if page.parent.name in languages:
            problems += _reading(check_page, page)
    for other in languages[1:]:
        for page in sorted((docs / other).iterdir()):
            first = docs / languages[0] / page.name
            if first.exists() and page.suffix in (".md", ".ipynb"):
                problems += _reading(check_pair, first, page)
    return problems


def check_page(page: Path) -> list[str]:
    """One page by itself."""
    text = page.read_text("utf-8")
    meta, body = front_matter(text)
    problems = [
        f"{page}: the front matter has no {key}"
        for key in ("title", "description")
        if not meta.get(key)
    ]
    for part in skeleton(body):
        if part["id"] is None:
            problems.append(f"{page}: needs an English id like {{ #one-head }}: {part['line']}")
    for number, line in prose(text):
        for figure in figures(line):
            problems.append(
                f"{page}:{number}: the figure {figure!r} is typed by hand; "
                "compute it with `#!live …`"
            )
    for info in re.findall(r"^\s*```+python (.*exec.*)$", body, re.MULTILINE):
        if f'session="{page.stem}"' not in info:
            problems.append(f'{page}: an executed block needs session="{page.stem}": {info}')
    return problems


def check_pair(first: Path, other: Path) -> list[str]:
    """Two languages of one page: the same skeleton, and the second no older than the first."""
    if first.suffix == ".ipynb":
        return _check_notebooks(first, other)
    meta, body = front_matter(other.read_text("utf-8"))
    problems = []
    if str(meta.get("source")) != stamp_of(first):
        problems.append(
            f"{other}: {first.name} has changed since; carry the change over, "
            f'then put `source: "{stamp_of(first)}"` into the front matter'
        )
    first_meta, first_body = front_matter(first.read_text("utf-8"))
    for key in sorted((meta.keys() | first_meta.keys()) - IN_ITS_LANGUAGE):
        if meta.get(key) != first_meta.get(key):
            problems.append(f"{other}: {key} in the front matter differs from {first}")
    ours, theirs = skeleton(first_body), skeleton(body)
    ids = [[part["id"] for part in parts] for parts in (ours, theirs)]
    if ids[0] != ids[1]:
        return [*problems, f"{other}: headings differ from {first}: {difference(*ids)}"]
    for one, two in zip(ours, theirs, strict=True):
        problems += [
            f"{other}#{two['id']}: {part} differs from {first}: {difference(one[part], two[part])}"
            for part in one.keys() - {"line"}
            if one[part] != two[part]
        ]
    return problems


def stamp_of(page: Path) -> str:
    """What the translation of this page has to carry as `source`."""
    text = page.read_bytes().replace(b"\r\n", b"\n")  # as a checkout on Windows has it
    return hashlib.sha256(text).hexdigest()[:12]


def front_matter(text: str) -> tuple[dict, str]:
    """The settings at the top of a page, and the rest."""
    match = FRONT_MATTER.match(text)
    return (yaml.safe_load(match["yaml"]), text[match.end() :]) if match else ({}, text)


def skeleton(body: str) -> list[dict]:
    """A page without its sentences: for each heading what stands under it."""
    parts, above = [_part("", "", 0)], ""
    for kind, line in _lines(body):
        if kind == "code":
            parts[-1]["code"].append(line)
        elif heading := HEADING.match(line):
            parts.append(_part(heading["id"], line, len(heading["level"])))
        else:
            parts[-1]["layout"] += [] if above or not line.strip() else ["paragraph"]
            _note(line, parts[-1])
        above = line.strip() if kind == "text" else ""
    return parts


def _part(anchor: str | None, line: str, level: int) -> dict:
    counted = {kind: Counter() for kind in ("inline code", "math", "links")}
    return {"id": anchor, "line": line, "level": level, "code": [], "layout": [], **counted}


def _note(line: str, part: dict) -> None:
    """Take down what a line of text has besides words."""
    code, rest = _split_inline_code(line)
    part["layout"] += _layout(line)
    part["inline code"].update(span for span in code if span.startswith("#!"))
    part["math"].update(re.findall(r"\$[^$]+\$", rest))
    part["links"].update(re.findall(r"\]\(([^)]*)\)", rest))


def prose(text: str):
    """Number and text of the lines that are read as sentences: no code, formulas, addresses."""
    for number, (kind, line) in enumerate(_lines(text), 1):
        if kind == "text" and not line.startswith("source:"):
            _, rest = _split_inline_code(line)
            rest = re.sub(r"\$[^$]*\d[.,]\d[^$]*\$", lambda formula: formula[0].strip("$"), rest)
            rest = re.sub(r"\$[^$]+\$|\]\([^)]*\)|\{[^}]*\}|<[^>]*>|https?://\S+", " ", rest)
            yield number, re.sub(r"^\s*\d+\. ", "", rest)  # the number of a list's item


def figures(line: str) -> list[str]:
    """The figures in a sentence; `head 1` and `tokens 0 and 2` are names."""
    number = r"\d{1,2}(?![\d.,]*\d)"
    more = rf"(?:(?:\s*,\s*{number})*,?\s*(?:–|dan|and)\s*{number})?"  # 0, 1 and 2
    name = rf"\b(?:{NAMES})\s+{number}{more}(?!\s*%)"
    rest = re.sub(name, " ", line, flags=re.IGNORECASE)
    return re.findall(r"(?<!\w)(?<!\w-)(?:\d(?:[\d.,]*\d)?|[½⅓¼¾])(?:\s*%)?", rest)


def _same_files(docs: Path, languages: list[str]) -> list[str]:
    names = {
        language: {p.name for p in (docs / language).iterdir() if not p.name.startswith(".")}
        for language in languages
    }
    every = set().union(*names.values())
    other = [name for name in sorted(every) if not name.endswith((".md", ".ipynb"))]
    pages = {slug_of(name) for name in every}
    examples = {path for path in (docs / "examples").glob("*.py") if path.stem != "parity_matrix"}
    unseen = sorted(path.name for path in examples if slug_of(path) not in pages)
    return [
        *(f"docs/*/{name}: only pages (.md) and notebooks (.ipynb) belong here" for name in other),
        *(f"docs/examples/{name}: no page shows it" for name in unseen),
        *(
            f"docs/{language}/{name}: missing; each page exists in every language"
            for language in languages
            for name in sorted(every - names[language])
        ),
    ]


def _same_words(words: dict, path: Path) -> list[str]:
    keys = {language: set(_keys(its)) for language, its in words.items()}
    every = set().union(*keys.values())
    return [
        f"{path}: {language} has no {key}"
        for language in words
        for key in sorted(every - keys[language])
    ]


def _keys(words: dict, above: str = ""):
    """The names of all texts; one that says nothing has none."""
    for key, value in words.items():
        if value not in (None, ""):
            yield above + str(key)
        if isinstance(value, dict):
            yield from _keys(value, f"{above}{key}.")


def _whole_terms(path: Path, languages: list[str]) -> list[str]:
    columns = [f"{kind}_{language}" for kind in ("term", "definition") for language in languages]
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        f"{path}: term {number} ({row[columns[0]]}) has no {column}"
        for number, row in enumerate(rows, 1)
        for column in columns
        if not row.get(column)
    ] + [
        f"{path}: term {number} ({row[columns[0]]}) is explained in one language only"
        for number, row in enumerate(rows, 1)
        if len({row.get(f"definition_{language}") for language in languages}) < len(languages)
    ]


def _reading(check: Callable[..., list[str]], *paths: Path) -> list[str]:
    """What a check finds, or that a file is no page at all: an editor may have half saved it."""
    try:
        return check(*paths)
    except Exception as error:
        names = ", ".join(str(path) for path in paths)
        return [f"{names}: can't be read: {type(error).__name__}: {error}"]


def _check_notebooks(first: Path, other: Path) -> list[str]:
    ours, theirs = _notebook(first), _notebook(other)
    problems = []
    if theirs["source"] != stamp_of(first):
        problems.append(
            f"{other}: {first.name} has changed since; carry the change over, "
            f'then put "source": "{stamp_of(first)}" into its metadata'
        )
    for part in ("kinds of cells", "code", "anchors"):
        if ours[part] != theirs[part]:
            what = difference(ours[part], theirs[part])
            problems.append(f"{other}: {part} differ from {first}: {what}")
    for path, book in ((first, ours), (other, theirs)):
        if book["outputs"]:
            problems.append(f"{path}: holds outputs; they come from the build: clear them")
        if book["magic"]:
            problems.append(f"{path}: a cell of another kind than Python: {book['magic']}")
        if book["tags"]:
            problems.append(
                f"{path}: a cell has metadata, which can keep it from running: {book['tags']}"
            )
    return problems


def _notebook(path: Path) -> dict:
    """A notebook without its sentences."""
    book = json.loads(path.read_text("utf-8"))
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in book["cells"]]
    text = "\n".join(source for kind, source in cells if kind == "markdown")
    return {
        "source": book["metadata"].get("source"),
        "kinds of cells": [kind for kind, _ in cells],
        "code": [
            any_language(source, path.parent.name) for kind, source in cells if kind == "code"
        ],
        "magic": [source for kind, source in cells if kind == "code" and source.startswith("%%")],
        "anchors": re.findall(r'<a id="([^"]+)">', text),
        "tags": [cell["metadata"] for cell in book["cells"] if cell.get("metadata")],
        "outputs": [cell["outputs"] for cell in book["cells"] if cell.get("outputs")],
    }


def any_language(code: str, language: str) -> str:
    """The code without the language of its own page, the one thing in which code may differ."""
    return code.replace(f'use("{language}")', "use(…)")


def _lines(text: str):
    """Each line with its kind: "code" for fences and display formulas, "text" for the rest."""
    fence = None
    for line in text.splitlines():
        stripped = line.strip()
        opening = FENCE.match(line)
        if fence is None and opening:
            fence = opening["marks"]
        elif fence is None and stripped.startswith("$$"):
            fence = None if len(stripped) > 2 and stripped.endswith("$$") else "$$"
        elif fence is None:
            yield "text", line
            continue
        elif stripped.startswith(fence) and not stripped.strip("`$"):
            fence = None
        yield "code", stripped


def _split_inline_code(line: str) -> tuple[list[str], str]:
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", line)
    return spans, re.sub(r"(?<!`)`([^`]+)`(?!`)", " ", line)


def _layout(line: str) -> list[str]:
    """Marks of structure: admonitions, blocks, list items, rows of tables, HTML."""
    stripped = line.strip()
    if match := re.match(r"(!!!|\?\?\?\+?) \w+", stripped):
        return [match[0]]
    if match := re.match(r"/// ?[\w-]*", stripped):
        return [match[0]]
    if stripped.startswith("|"):
        code, rest = _split_inline_code(stripped)
        live = [span for span in code if span.startswith("#!")]  # in this order
        return [f"row of {len(rest.split('|')) - 2} {live}"]
    if re.match(r"(?:[-*]|\d+\.) |: ", stripped):
        return ["item"]
    return re.findall(r"</?[a-z][^>]*>", stripped)


def difference(one, two) -> str:
    """Where two counts, lists or texts first differ."""
    if isinstance(one, Counter):
        return (
            f"only there {list((one - two).elements())}, only here {list((two - one).elements())}"
        )
    if isinstance(one, list):
        for left, right in zip(one, two, strict=False):
            if left != right:
                return f"{left!r} / {right!r}"
        return f"only there {one[len(two) :]}, only here {two[len(one) :]}"
    return f"{one!r} / {two!r}"
