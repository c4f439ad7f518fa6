"""The first use of a term on a page explains it, and the glossary lists them all.

In docs/glossary.csv a term may have a second name in brackets, as "concatenate (concat)". Only
terms with something in the column `mark` are marked on the pages: "row" would be noise.
"""

import csv
import re
from collections.abc import Iterator
from html import escape

from mkdocs.utils import get_relative_url
from places import DOCS
from selectolax.lexbor import LexborHTMLParser
from words import WORDS

GLOSSARY = DOCS / "glossary.csv"

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
    language, left = config.theme["language"], {anchor(term) for term in terms() if term["mark"]}
    pattern, found_by = _pattern(language)
    tree = LexborHTMLParser(f"<body>{html}")
    for node in _running_text(tree.body):
        text, end = node.text_content, 0
        for found in pattern.finditer(text):
            term = found_by[found.lastindex - 1]
            if anchor(term) in left:
                left.remove(anchor(term))
                link = tree.create_node("a")
                link.attrs["class"], link.attrs["title"] = "term", term[f"definition_{language}"]
                link.attrs["href"] = get_relative_url(f"glossary/#{anchor(term)}", page.url)
                link.insert_child(found[0])
                node.insert_before(text[end : found.start()])
                node.insert_before(link, move=True)
                end = found.end()
        if end:
            node.replace_with(text[end:])
    return tree.body.inner_html


def terms() -> list[dict]:
    """The rows of docs/glossary.csv."""
    with GLOSSARY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def anchor(term: dict) -> str:
    """The same in every language."""
    return re.sub(r"[^a-z0-9]+", "-", _names(term, "en")[0].lower()).strip("-")


def _running_text(node, running: bool = False) -> Iterator:
    """The pieces of text in which terms are marked, in order."""
    for child in node.iter(include_text=True):
        if child.tag == "-text":
            if running:
                yield child
        elif child.tag not in _LEAVE and "lang" not in child.attributes:
            yield from _running_text(child, running or child.tag in _RUNNING)


def _pattern(language: str) -> tuple[re.Pattern, list[dict]]:
    """What finds each name, and the term that each of its groups stands for."""
    names = [(name, term) for term in terms() for name in _names(term, language)]
    names.sort(key=lambda pair: -len(pair[0]))  # so that "multi-head attention" is no "attention"
    forms = "|".join(f"({_forms(name, language)})" for name, _ in names)
    pattern = re.compile(rf"(?<![\w-])(?:{forms})(?![\w-])", re.IGNORECASE)
    return pattern, [term for _, term in names]


def _names(term: dict, language: str) -> list[str]:
    """`concatenate (concat)` has two."""
    return re.findall(r"[^()]*[^() ]", term[f"term_{language}"])


def _forms(name: str, language: str) -> str:
    """A pattern for a name as it stands in a sentence: over a line's end, in the plural."""
    form = re.escape(name).replace(r"\ ", r"\s+")
    if language == "en":
        return re.sub("y$", "(?:y|ie)", re.sub("ix$", "i(?:x|ce)", form)) + "(?:s|es)?"
    return form + ("(?:nya)?" if language == "id" else "")


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
