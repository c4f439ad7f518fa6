"""The first use of a term on a page explains it, and the glossary lists them all."""

import csv
import re
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup
from mkdocs.utils import get_relative_url

GLOSSARY = Path(__file__).parents[1] / "glossary.csv"
_LEAVE = ("a", "code", "pre", "math", "h1", "h2", "h3", "h4", "table", "abbr", "summary", "figcaption")


def on_page_markdown(markdown, page, config, files):
    """Write the list itself where its page asks for it."""
    return markdown.replace("{{ glossary }}", _list(config.theme["language"]))


def on_page_content(html, page, config, files):
    """Mark the first use of each term in running text."""
    if page.file.src_uri == "glossary.md":
        return None
    soup = BeautifulSoup(html, "html.parser")
    glossary = get_relative_url("glossary/", page.url)
    for term in sorted(terms(), key=lambda row: -len(row["term_id"])):
        _mark(soup, term, config.theme["language"], glossary)
    return str(soup)


def terms() -> list[dict]:
    """The rows of docs/glossary.csv."""
    with GLOSSARY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def anchor(term: dict) -> str:
    """The same in every language."""
    return re.sub(r"[^a-z0-9]+", "-", term["term_en"].lower()).strip("-")


def _list(language: str) -> str:
    rows = sorted(terms(), key=lambda row: row[f"term_{language}"].lower())
    return "\n\n".join(
        f"[{row[f'term_{language}']}](){{ #{anchor(row)} }}\n:   {row[f'definition_{language}']}"
        for row in rows
    )


def _mark(soup, term: dict, language: str, glossary: str) -> None:
    name = term[f"term_{language}"]
    pattern = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
    for text in soup.find_all(string=pattern):
        if text.find_parent(_LEAVE) or not text.find_parent(["p", "li", "dd"]):
            continue
        before, after = text[: (found := pattern.search(text)).start()], text[found.end() :]
        title = escape(term[f"definition_{language}"], quote=True)
        link = f'<a class="term" href="{glossary}#{anchor(term)}" title="{title}">{found[0]}</a>'
        text.replace_with(before, BeautifulSoup(link, "html.parser").a, after)
        return
