"""What has to hold before a site is shown: for the pages' sources, and for the finished site.

Each check returns what is wrong, as sentences that name the file. None of them repairs anything.
"""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import yaml
from bs4 import BeautifulSoup

FENCE = re.compile(r"^\s*(?P<marks>`{3,})(?P<info>[^`]*)$")
HEADING = re.compile(r"^(?P<level>#{1,6}) .*?(?:\{ *#(?P<id>[a-z0-9-]+) *\})?\s*$")
FRONT_MATTER = re.compile(r"\A---\n(?P<yaml>.*?)\n---\n", re.DOTALL)

# A number next to one of these is a name ("head 1", "token 0"), not a figure.
NAMES = "heads?|tokens?|kolom|columns?|baris|rows?|Python"


def check_source(docs: Path) -> list[str]:
    """Pages and notebooks: complete, in step, without figures typed by hand."""
    languages = list(yaml.safe_load((docs / "words.yml").read_text("utf-8")))
    problems = [
        *_same_files(docs, languages),
        *_same_words(docs / "words.yml"),
    ]
    for page in sorted(docs.glob("*/*.md")):
        if page.parent.name in languages:
            problems += check_page(page)
    for other in languages[1:]:
        for page in sorted((docs / other).iterdir()):
            first = docs / languages[0] / page.name
            if first.exists() and page.suffix in (".md", ".ipynb"):
                problems += check_pair(first, page)
    return problems


def check_page(page: Path) -> list[str]:
    """One page by itself."""
    meta, body = front_matter(page.read_text("utf-8"))
    problems = [
        f"{page}: the front matter has no {key}"
        for key in ("title", "description")
        if not meta.get(key)
    ]
    for heading in skeleton(body):
        if heading["id"] is None:
            problems.append(
                f"{page}: a heading needs an English id like {{ #one-head }}: {heading['line']}"
            )
    for number, line in prose(page.read_text("utf-8")):
        for figure in figures(line):
            problems.append(
                f"{page}:{number}: the figure {figure!r} is typed by hand; compute it with `#!live …`"
            )
    session = page.stem
    for info in re.findall(r"^\s*```+python (.*exec.*)$", body, re.MULTILINE):
        if f'session="{session}"' not in info:
            problems.append(f'{page}: an executed block needs session="{session}": {info}')
    return problems


def check_pair(first: Path, other: Path) -> list[str]:
    """Two languages of one page: the same skeleton, and the second no older than the first."""
    if first.suffix == ".ipynb":
        return _check_notebooks(first, other)
    meta, body = front_matter(other.read_text("utf-8"))
    problems = []
    stamp = stamp_of(first)
    if meta.get("source") != stamp:
        problems.append(
            f"{other}: {first.name} has changed since; carry the change over, "
            f"then put `source: {stamp}` into the front matter"
        )
    ours, theirs = skeleton(front_matter(first.read_text("utf-8"))[1]), skeleton(body)
    if [h["id"] for h in ours] != [h["id"] for h in theirs]:
        problems.append(
            f"{other}: headings differ from {first}: {[h['id'] for h in ours]} / {[h['id'] for h in theirs]}"
        )
        return problems
    for one, two in zip(ours, theirs, strict=True):
        for part in one.keys() - {"line"}:
            if one[part] != two[part]:
                problems.append(
                    f"{other}#{two['id']}: {part} differs from {first}: {_difference(one[part], two[part])}"
                )
    return problems


def stamp_of(page: Path) -> str:
    """What the translation of this page has to carry as `source`."""
    return hashlib.sha256(page.read_bytes()).hexdigest()[:12]


def front_matter(text: str) -> tuple[dict, str]:
    """The settings at the top of a page, and the rest."""
    match = FRONT_MATTER.match(text)
    return (yaml.safe_load(match["yaml"]), text[match.end() :]) if match else ({}, text)


def skeleton(body: str) -> list[dict]:
    """A page without its sentences: for each heading what stands under it."""
    sections = []
    for kind, line in _lines(body):
        heading = HEADING.match(line) if kind == "text" else None
        if heading or not sections:
            sections.append(
                {
                    "id": heading["id"] if heading else "",
                    "line": line,
                    "level": len(heading["level"]) if heading else 0,
                    "code": [],
                    "layout": [],
                    "inline code": Counter(),
                    "math": Counter(),
                    "links": Counter(),
                }
            )
        here = sections[-1]
        if kind == "code":
            here["code"].append(line)
            continue
        here["layout"] += _layout(line)
        code, rest = _split_inline_code(line)
        here["inline code"].update(span for span in code if span.startswith("#!"))
        math = re.findall(r"\$[^$]+\$", rest)
        here["math"].update(math)
        here["links"].update(re.findall(r"\]\(([^)]*)\)", rest))
    return sections


def prose(text: str):
    """Numbers and text of the lines that a reader reads as sentences: no code, math or addresses."""
    text = FRONT_MATTER.sub(lambda m: re.sub(r"(?m)^(?!title:|description:).*$", "", m[0]), text)
    for number, (kind, line) in enumerate(_lines(text), 1):
        if kind == "text":
            _, rest = _split_inline_code(line)
            rest = re.sub(r"\$[^$]+\$|\]\([^)]*\)|\{[^}]*\}|<[^>]*>|https?://\S+", " ", rest)
            yield number, re.sub(r"^\s*\d+\. ", "", rest)


def figures(line: str) -> list[str]:
    """The figures in a sentence; `head 1` and `token 0` are names."""
    rest = re.sub(
        rf"\b(?:{NAMES})\s+\d+(?:(?:[–,]| dan | and |–)\s*\d+)*", " ", line, flags=re.IGNORECASE
    )
    return re.findall(r"(?<![\w-])\d[\d.,]*(?:\s*%)?|\d+[.,]\d+", rest)


def check_site(site: Path, docs: Path) -> list[str]:
    """The finished site: every page there, nothing broken, nothing from elsewhere."""
    languages = list(yaml.safe_load((docs / "words.yml").read_text("utf-8")))
    pages = {
        path: BeautifulSoup(path.read_text("utf-8"), "html.parser")
        for path in sorted(site.rglob("*.html"))
    }
    problems = []
    for language in languages:
        root = site if language == languages[0] else site / language
        for source in sorted((docs / language).iterdir()):
            if source.suffix in (".md", ".ipynb"):
                target = root / (
                    "index.html" if source.stem == "index" else f"{source.stem}/index.html"
                )
                if (
                    target not in pages
                    or len(pages[target].select_one("article").get_text().split()) < 50
                ):
                    problems.append(
                        f"{target.relative_to(site)}: {source.name} was not built, or is empty"
                    )
    for path, soup in pages.items():
        name = path.relative_to(site)
        problems += [f"{name}: {problem}" for problem in check_html(path, soup, site, pages)]
    return problems


def check_html(path: Path, soup, site: Path, pages: dict) -> list[str]:
    """One finished page."""
    text = soup.get_text()
    problems = [
        f"shows {trace!r}"
        for trace in ("Traceback (most recent call last)", "#!live", "--8<--", "{{")
        if trace in text
    ]
    problems += [
        f"has the id {i!r} {n} times"
        for i, n in Counter(tag["id"] for tag in soup.select("[id]")).items()
        if n > 1
    ]
    problems += [
        f"has an image without alternative text: {image}" for image in soup.select("img:not([alt])")
    ]
    canonical = soup.select_one("link[rel=canonical]")
    base = canonical["href"] if canonical else None
    for tag, attribute in (("a", "href"), ("link", "href"), ("script", "src"), ("img", "src")):
        for element in soup.select(f"{tag}[{attribute}]"):
            problems += _check_address(element, element[attribute], path, site, pages, base)
    return problems


def _check_address(element, address: str, path: Path, site: Path, pages: dict, base) -> list[str]:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        harmless = element.name == "a" or element.get("rel") == ["canonical"]
        return [] if harmless else [f"would fetch {address}"]
    if base is None:  # the 404 page, whose addresses begin at the root of the host
        return []
    where, anchor = urldefrag(unquote(address))
    target = (path.parent / where).resolve() if where else path.resolve()
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return [f"links to {address}, which is not there"]
    if anchor and target.suffix == ".html":
        soup = pages.get(site / target.relative_to(site.resolve()))
        if soup is None or not soup.find(id=anchor):
            return [f"links to {address}, where no #{anchor} is"]
    return []


def _same_files(docs: Path, languages: list[str]) -> list[str]:
    names = {
        language: {p.name for p in (docs / language).iterdir() if not p.name.startswith(".")}
        for language in languages
    }
    every = set().union(*names.values())
    return [
        f"docs/{language}/{name}: missing; each page exists in every language"
        for language in languages
        for name in sorted(every - names[language])
    ]


def _same_words(path: Path) -> list[str]:
    words = yaml.safe_load(path.read_text("utf-8"))
    every = set().union(*(its.keys() for its in words.values()))
    return [
        f"{path}: {language} has no {key}"
        for language, its in words.items()
        for key in sorted(every - its.keys())
    ]


def _check_notebooks(first: Path, other: Path) -> list[str]:
    ours, theirs = (json.loads(path.read_text("utf-8")) for path in (first, other))
    problems = []
    stamp = stamp_of(first)
    if theirs["metadata"].get("source") != stamp:
        problems.append(
            f'{other}: {first.name} has changed since; carry the change over, then put "source": "{stamp}" into its metadata'
        )
    kinds = [[cell["cell_type"] for cell in book["cells"]] for book in (ours, theirs)]
    code = [
        ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
        for book in (ours, theirs)
    ]
    anchors = [
        re.findall(r'<a id="([^"]+)">', "".join(sum((c["source"] for c in book["cells"]), [])))
        for book in (ours, theirs)
    ]
    for what, (one, two) in (("kinds of cells", kinds), ("code", code), ("anchors", anchors)):
        if one != two:
            problems.append(f"{other}: {what} differ from {first}: {_difference(one, two)}")
    for path, book in ((first, ours), (other, theirs)):
        if any(cell.get("outputs") for cell in book["cells"]):
            problems.append(f"{path}: holds outputs; they come from the build: clear them")
    return problems


def _lines(text: str):
    """Each line with its kind: "code" for a fence and what it holds, "text" for the rest."""
    fence = None
    for line in text.splitlines():
        match = FENCE.match(line)
        if fence is None and match:
            fence = match["marks"]
            yield "code", line.strip()
        elif fence is not None:
            yield "code", line.strip()
            if match and match["marks"].startswith(fence) and not match["info"].strip():
                fence = None
        else:
            yield "text", line


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
        return f"{len(one)} / {len(two)} parts"
    return f"{one!r} / {two!r}"
