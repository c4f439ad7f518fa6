"""The first use of a term on a page explains it, and the glossary lists them all.

In docs/glossary.csv a term may have a second name in brackets, as "concatenate (concat)". Only
terms with something in the column `mark` are marked on the pages: "row" would be noise.
"""

import csv
import re
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, NavigableString
from mkdocs.utils import get_relative_url
from words import WORDS

GLOSSARY = Path(__file__).parents[1] / "glossary.csv"

# Running text is a paragraph, an item or an answer. Not in it: links, code, what has a language of
# its own, and the summaries of questions, which are buttons.
_RUNNING = ["p", "li", "dd"]
_LEAVE = ["a", "code", "pre", "math", "table", "abbr", "summary", "figcaption"]


def on_page_markdown(markdown, page, config, files):
    """Write the list itself where its page asks for it."""
    if page.file.src_uri == "glossary.md":
        return markdown.replace("{{ glossary }}", _list(config.theme["language"]))


def on_page_content(html, page, config, files):
    """Mark the first use of each term in running text."""
    if page.file.src_uri == "glossary.md":
        return None
    language = config.theme["language"]
    names = sorted(
        ((name, term) for term in terms() for name in _names(term, language)),
        key=lambda pair: -len(pair[0]),  # so that "multi-head attention" is never "attention"
    )
    pattern = re.compile(
        "|".join(f"({_forms(name, language)})" for name, _ in names), re.IGNORECASE
    )
    glossary = get_relative_url("glossary/", page.url)
    soup = BeautifulSoup(html, "html.parser")
    left = {anchor(term) for term in terms() if term["mark"]}
    for text in soup.find_all(string=pattern):
        if type(text) is not NavigableString or not text.find_parent(_RUNNING):
            continue
        if text.find_parent(_LEAVE) or text.find_parent(lang=True):
            continue
        parts, end = [], 0
        for found in pattern.finditer(text):
            term = names[found.lastindex - 1][1]
            if anchor(term) in left:
                left.remove(anchor(term))
                link = soup.new_tag(
                    "a", attrs={"class": "term", "href": f"{glossary}#{anchor(term)}"}
                )
                link["title"], link.string = term[f"definition_{language}"], found[0]
                parts += [text[end : found.start()], link]
                end = found.end()
        if parts:
            text.replace_with(*parts, text[end:])
    return str(soup)


def terms() -> list[dict]:
    """The rows of docs/glossary.csv."""
    with GLOSSARY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def anchor(term: dict) -> str:
    """The same in every language."""
    return re.sub(r"[^a-z0-9]+", "-", _names(term, "en")[0].lower()).strip("-")


def _names(term: dict, language: str) -> list[str]:
    """`concatenate (concat)` has two."""
    return re.findall(r"[^()]*[^() ]", term[f"term_{language}"])


def _forms(name: str, language: str) -> str:
    """A pattern for a name as it stands in a sentence: over a line's end, in the plural."""
    form = re.escape(name).replace(r"\ ", r"\s+")
    if language == "en":
        form = re.sub("y$", "(?:y|ie)", re.sub("ix$", "i(?:x|ce)", form)) + "(?:s|es)?"
    else:
        form += "(?:nya)?"
    return rf"(?<![\w-]){form}(?![\w-])"


def _list(language: str) -> str:
    """Every term, with what it is called in the other languages."""
    parts = []
    for term in sorted(terms(), key=lambda row: row[f"term_{language}"].lower()):
        parts.append(f'<dt id="{anchor(term)}">{escape(term[f"term_{language}"])}')
        for other in WORDS:
            if other != language:
                name = f"{other.upper()}: {escape(term[f'term_{other}'])}"
                parts.append(f' <span class="translation" lang="{other}">{name}</span>')
        parts.append(f"</dt><dd>{escape(term[f'definition_{language}'])}</dd>")
    return f'<dl class="glossary">{"".join(parts)}</dl>'
