"""Behind each source on the page of sources: the pages that cite it, as found in them."""

from html import escape
from pathlib import Path

from mkdocs.utils import get_relative_url
from selectolax.lexbor import LexborHTMLParser
from source_checks import front_matter
from words import WORDS


def on_page_content(html, page, config, files):
    """Add to each entry of the list a line that leads to where it is cited."""
    if page.file.src_uri != "sources.md":
        return None
    documents = (file for file in files.documentation_pages() if file is not page.file)
    pages = sorted((f for f in documents if f.src_uri.endswith(".md")), key=lambda f: f.src_uri)
    texts = {file.src_uri: Path(file.abs_src_path).read_text("utf-8") for file in pages}
    tree = LexborHTMLParser(f"<body>{html}")
    for source, entry in zip(tree.css("dt:has(+ dd)"), tree.css("dt + dd"), strict=True):
        address = f"]({source.css_first('a').attrs['href']})"
        cited = [file for file in pages if address in texts[file.src_uri]]
        if cited:
            entry.inner_html += _line(cited, texts, page, WORDS[config.theme["language"]])
    return tree.body.inner_html


def _line(cited, texts, page, words) -> str:
    """`Cited on: One head, one pattern; Two heads, two patterns`."""
    links = (
        f'<a href="{get_relative_url(file.url, page.url)}">'
        f"{escape(front_matter(texts[file.src_uri])[0]['title'])}</a>"
        for file in cited
    )
    return f'<p class="cited">{words["cited_on"]}: {"; ".join(links)}</p>'
