"""What has to hold for the finished site before it takes its place.

Each check returns what is wrong, as sentences that name the file. None of them repairs anything.
"""

import os
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from places import html_of
from selectolax.lexbor import LexborHTMLParser, LexborNode
from source_checks import any_language, difference, figures
from words import WORDS, prefix

SHOWN = {"python", "text", "sh"}
DOCSTRINGS = ".doc-contents pre"  # of the reference; tests run what they show
VALUES = ".live, .weights td, .ledger td, .drawing .code, .drawing .weight"
COMPUTED = ".live, .lines, [lang]"  # what is in the other language is the reference's docstrings
ADDRESSES = {"href", "src", "poster", "data", "action", "srcset", "xlink:href"}
READ_OUT = ("title", "alt", "value")  # attributes that a reader sees or hears


def check_site(site: Path, docs: Path) -> list[str]:
    """The finished site: every page there, nothing broken, nothing from elsewhere."""
    languages = list(WORDS)
    pages = {path: Finished(path) for path in sorted(site.rglob("*.html"))}
    problems = []
    for language in languages:
        root = site / prefix(language)
        for source in sorted((docs / language).iterdir()):
            if source.suffix in (".md", ".ipynb"):
                target = root / html_of(source)
                if target not in pages or len(pages[target].article.text().split()) < 50:
                    name = target.relative_to(site)
                    problems.append(f"{name}: {source.name} was not built, or is empty")
    for path, page in pages.items():
        name = path.relative_to(site)
        problems += [f"{name}: {problem}" for problem in check_html(page, pages)]
        for language in languages[1:]:
            twin = pages.get(site / language / name)
            if twin and page.shown_values() != twin.shown_values():
                what = difference(page.shown_values(), twin.shown_values())
                problems.append(f"{language}/{name}: shows other code or values: {what}")
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
        code = [any_language(text, language) if text in cells else text for text in code]
        drawn = self.tree.css(VALUES)
        values = [re.sub(r"[.,;]", "", value.text()) for value in drawn]
        values += [re.sub(r"\D", "", cell.text()) for cell in self.tree.css(".facts td")]
        verdicts = (verdict.attributes["class"] for verdict in self.tree.css(".verdict"))
        return [*code, *sorted(values), *verdicts]


def check_html(page: Finished, pages: dict[Path, Finished]) -> list[str]:
    """One finished page."""
    text, docstrings = page.tree.body.text(), {e.mem_id for e in page.tree.css(DOCSTRINGS)}
    problems = [
        f"shows {trace!r}"
        for trace in ("Traceback (most recent call last)", "#!live", "--8<--", "{{")
        if trace in text
    ]
    problems += [f"has the id {i!r} {n} times" for i, n in page.ids.items() if n > 1]
    problems += [
        f"has a {kind} block, which is not executed: {block.text()[:40]!r}"
        for block in page.tree.css("pre")
        if (kind := _kind_of(block)) not in SHOWN and block.mem_id not in docstrings
    ]
    for element in page.elements:
        for attribute in ADDRESSES & element.attributes.keys():
            problems += _check_address(element, element.attributes[attribute], page, pages)
    return [*problems, *_forbidden(page), *_typed_figures(page.article)]


def _forbidden(page: Finished) -> list[str]:
    """Elements and attributes that no page may have."""
    problems = [
        f"has an inline style or handler, which its policy forbids: {element.html[:80]}"
        for element in page.elements
        if element.tag == "style" or any(a == "style" or a[:2] == "on" for a in element.attributes)
    ]
    problems += [
        f"has an image without alternative text: {image.html}"
        for image in [*page.tree.css("img:not([alt])"), *page.article.css('img[alt=""]')]
    ]
    return problems + [
        f"has <{element.tag}>, which no page needs: {element.html[:80]}"
        for element in page.article.css("script, iframe, object, embed, meta, link, base, form")
    ]


def _typed_figures(article: LexborNode) -> list[str]:
    """Figures that a reader sees and that nothing has computed, wherever they were typed."""
    article = LexborHTMLParser(article.html).body
    for element in article.css(f"pre, math, .weights, .ledger, .facts, .drawing, {COMPUTED}"):
        element.decompose()
    decimals = [code.text() for code in article.css("code")]
    number = r"\d+[.,]\d+|\b\d+e[-+]?\d+"
    texts = [re.findall(number, text)[:1] for text in decimals if ">=" not in text]
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


def _check_address(element, address: str | None, page: Finished, pages) -> list[str]:
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
    target = Path(os.path.normpath(page.path.parent / where)) if where else page.path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return [f"links to {address}, which is not there"]
    if anchor and target.suffix == ".html":
        there = pages.get(target)
        if there is None or anchor not in there.ids:
            return [f"links to {address}, where no #{anchor} is"]
    return []
