"""What has to hold before a site is shown: for the pages' sources, and for the finished site.

Each check returns what is wrong, as sentences that name the file. None of them repairs anything.
"""

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import yaml
from places import html_of, slug_of
from selectolax.lexbor import LexborHTMLParser, LexborNode

FENCE = re.compile(r"^\s*(?P<marks>`{3,})(?P<info>[^`]*)$")
HEADING = re.compile(r"^(?P<level>#{1,6}) .*?(?:\{ *#(?P<id>[a-z0-9-]+) *\})?\s*$")
FRONT_MATTER = re.compile(r"\A---\n(?P<yaml>.*?)\n---\n", re.DOTALL)

# A number next to one of these is a name ("head 1", "token 0"), not a figure.
SHOWN = {"python", "text", "sh", "py", "pycon"}  # the last two are the reference's docstrings
VALUES = ".live, .weights td, .ledger td, .drawing .code, .drawing .weight"
COMPUTED = ".live, .lines, [lang]"  # what is in the other language is the reference's docstrings
IN_ITS_LANGUAGE = {"title", "description", "source"}  # of the front matter; the rest is for all
ADDRESSES = {"href", "src", "poster", "data", "action"}
READ_OUT = ("title", "alt", "value")  # attributes that a reader sees or hears
NAMES = "heads?|tokens?|kolom|columns?|baris|rows?|Python|Llama"


def check_source(docs: Path) -> list[str]:
    """Pages and notebooks: complete, in step, without figures typed by hand."""
    languages = list(yaml.safe_load((docs / "words.yml").read_text("utf-8")))
    problems = [
        *_same_files(docs, languages),
        *_same_words(docs / "words.yml"),
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
        return [*problems, f"{other}: headings differ from {first}: {_difference(*ids)}"]
    for one, two in zip(ours, theirs, strict=True):
        problems += [
            f"{other}#{two['id']}: {part} differs from {first}: {_difference(one[part], two[part])}"
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
    parts = [_part("", "", 0)]
    for kind, line in _lines(body):
        if kind == "code":
            parts[-1]["code"].append(line)
        elif heading := HEADING.match(line):
            parts.append(_part(heading["id"], line, len(heading["level"])))
        else:
            _note(line, parts[-1])
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
            rest = re.sub(r"\$[^$]+\$|\]\([^)]*\)|\{[^}]*\}|<[^>]*>|https?://\S+", " ", rest)
            yield number, re.sub(r"^\s*\d+\. ", "", rest)  # the number of a list's item


def figures(line: str) -> list[str]:
    """The figures in a sentence; `head 1` and `tokens 0 and 2` are names."""
    number = r"\d{1,2}(?![\d.,]*\d)"
    name = rf"\b(?:{NAMES})\s+{number}(?:\s*(?:[–,]|dan|and)\s*{number})*"
    rest = re.sub(name, " ", line, flags=re.IGNORECASE)
    return re.findall(r"(?<![\w-])\d(?:[\d.,]*\d)?(?:\s*%)?", rest)


def check_site(site: Path, docs: Path) -> list[str]:
    """The finished site: every page there, nothing broken, nothing from elsewhere."""
    languages = list(yaml.safe_load((docs / "words.yml").read_text("utf-8")))
    pages = {path: Finished(path) for path in sorted(site.rglob("*.html"))}
    problems = []
    for language in languages:
        root = site if language == languages[0] else site / language
        for source in sorted((docs / language).iterdir()):
            if source.suffix in (".md", ".ipynb"):
                target = root / html_of(source)
                if target not in pages or len(pages[target].article.text().split()) < 50:
                    name = target.relative_to(site)
                    problems.append(f"{name}: {source.name} was not built, or is empty")
    for path, page in pages.items():
        name = path.relative_to(site)
        problems += [f"{name}: {problem}" for problem in check_html(page, site, pages)]
        for language in languages[1:]:
            twin = pages.get(site / language / name)
            if twin and page.shown_values() != twin.shown_values():
                difference = _difference(page.shown_values(), twin.shown_values())
                problems.append(f"{language}/{name}: shows other code or values: {difference}")
    return problems


class Finished:
    """A page as a browser has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = LexborHTMLParser(path.read_text("utf-8"))
        self.elements = self.tree.css("*")
        self.ids = Counter(e.attributes["id"] for e in self.elements if "id" in e.attributes)

    @property
    def article(self) -> LexborNode:
        """What the page itself says, without what surrounds it."""
        return self.tree.css_first("article") or LexborHTMLParser("").body

    def output(self) -> str:
        """What the page's blocks print, joined."""
        return "".join(block.text() for block in self.tree.css(".language-text code"))

    def shown_values(self) -> list[str]:
        """Code, output and the digits of computed values: the same in every language."""
        language = self.tree.root.attributes.get("lang")
        cells = {block.text() for block in self.tree.css(".language-python pre")}
        code = [block.text() for block in self.tree.css("pre")]
        code = [_any_language(text, language) if text in cells else text for text in code]
        drawn = self.tree.css(VALUES)
        values = [re.sub(r"[.,;]", "", value.text()) for value in drawn]
        values += [re.sub(r"\D", "", cell.text()) for cell in self.tree.css(".facts td")]
        verdicts = (verdict.attributes["class"] for verdict in self.tree.css(".verdict"))
        return [*code, *sorted(values), *verdicts]


def check_html(page: Finished, site: Path, pages: dict[Path, Finished]) -> list[str]:
    """One finished page."""
    text = page.tree.body.text()
    problems = [
        f"shows {trace!r}"
        for trace in ("Traceback (most recent call last)", "#!live", "--8<--", "{{")
        if trace in text
    ]
    problems += [f"has the id {i!r} {n} times" for i, n in page.ids.items() if n > 1]
    problems += [
        f"has an inline style or handler, which its policy forbids: {element.html[:80]}"
        for element in page.elements
        if element.tag == "style" or any(a == "style" or a[:2] == "on" for a in element.attributes)
    ]
    problems += [
        f"has an image without alternative text: {image.html}"
        for image in page.tree.css("img:not([alt])")
    ]
    problems += [
        f"has <{element.tag}>, which no page needs: {element.html[:80]}"
        for element in page.article.css("script, iframe, object, embed, meta, link, base, form")
    ]
    problems += [
        f"has a {kind} block, which is not executed: {block.text()[:40]!r}"
        for block in page.tree.css("pre")
        if (kind := _kind_of(block)) not in SHOWN
    ]
    for element in page.elements:
        for attribute in ADDRESSES & element.attributes.keys():
            problems += _check_address(element, element.attributes[attribute], page, site, pages)
    return [*problems, *_typed_figures(page.article)]


def _typed_figures(article: LexborNode) -> list[str]:
    """Figures that a reader sees and that nothing has computed, wherever they were typed."""
    article = LexborHTMLParser(article.html).body
    for element in article.css(f"pre, math, .weights, .ledger, .facts, .drawing, {COMPUTED}"):
        element.decompose()
    decimals = [code.text() for code in article.css("code")]
    texts = [re.findall(r"\d+[.,]\d+", text)[:1] for text in decimals if ">=" not in text]
    for code in article.css("code"):
        code.decompose()
    words = [article.text(separator=" ")]
    words += [e.attributes[a] or "" for a in READ_OUT for e in article.css(f"[{a}]")]
    texts += [figures(re.sub(r"\s+", " ", text)) for text in words]
    return [f"shows {figure!r}, which was not computed" for found in texts for figure in found]


def _kind_of(block: LexborNode) -> str:
    """What a block of code is: the language of its highlighting."""
    above = block.parent
    while above is not None:
        for name in (above.attributes.get("class") or "").split():
            if name.startswith("language-"):
                return name.removeprefix("language-")
        above = above.parent
    return ""


def _check_address(element, address: str | None, page: Finished, site: Path, pages) -> list[str]:
    address = address or ""
    parts = urlsplit(address)
    if parts.scheme == "data":
        return []
    canonical = page.tree.css_first("link[rel=canonical]")
    if parts.scheme or parts.netloc:
        link = element.tag == "a" and parts.scheme in ("http", "https")
        return [] if link or element == canonical else [f"would fetch {address}"]
    if canonical is None:  # the 404 page, whose addresses begin at the root of the host
        return []
    where, anchor = urldefrag(unquote(address))
    target = (page.path.parent / where).resolve() if where else page.path.resolve()
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return [f"links to {address}, which is not there"]
    if anchor and target.suffix == ".html":
        there = pages.get(site / target.relative_to(site.resolve()))
        if there is None or anchor not in there.ids:
            return [f"links to {address}, where no #{anchor} is"]
    return []


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


def _same_words(path: Path) -> list[str]:
    words = yaml.safe_load(path.read_text("utf-8"))
    keys = {language: set(_keys(its)) for language, its in words.items()}
    every = set().union(*keys.values())
    return [
        f"{path}: {language} has no {key}"
        for language in words
        for key in sorted(every - keys[language])
    ]


def _keys(words: dict, above: str = ""):
    for key, value in words.items():
        yield above + key
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
            difference = _difference(ours[part], theirs[part])
            problems.append(f"{other}: {part} differ from {first}: {difference}")
    for path, book in ((first, ours), (other, theirs)):
        if book["outputs"]:
            problems.append(f"{path}: holds outputs; they come from the build: clear them")
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
            _any_language(source, path.parent.name) for kind, source in cells if kind == "code"
        ],
        "anchors": re.findall(r'<a id="([^"]+)">', text),
        "tags": [cell["metadata"] for cell in book["cells"] if cell.get("metadata")],
        "outputs": [cell["outputs"] for cell in book["cells"] if cell.get("outputs")],
    }


def _any_language(code: str, language: str) -> str:
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
        return [f"row of {len(_split_inline_code(stripped)[1].split('|')) - 2}"]
    if match := re.match(r"(?:[-*]|\d+\.) |: ", stripped):
        return ["item"]
    return re.findall(r"</?[a-z][^>]*>", stripped)


def _difference(one, two) -> str:
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
