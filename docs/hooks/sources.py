"""Behind each source on the page of sources: the pages that cite it, as found in them."""

from pathlib import Path

from bs4 import BeautifulSoup
from mkdocs.utils import get_relative_url
from mkdocs.utils.meta import get_data
from words import WORDS


def on_page_content(html, page, config, files):
    """Add to each entry of the list a line that leads to where it is cited."""
    if page.file.src_uri != "sources.md":
        return None
    soup = BeautifulSoup(html, "html.parser")
    documents = (file for file in files.documentation_pages() if file is not page.file)
    pages = sorted((f for f in documents if f.src_uri.endswith(".md")), key=lambda f: f.src_uri)
    texts = {file.src_uri: Path(file.abs_src_path).read_text("utf-8") for file in pages}
    for entry in soup.select("dt + dd"):
        address = f"]({entry.find_previous_sibling('dt').a['href']})"
        cited = [file for file in pages if address in texts[file.src_uri]]
        if cited:
            entry.append(_line(cited, texts, page, WORDS[config.theme["language"]], soup))
    return str(soup)


def _line(cited, texts, page, words, soup):
    """`Cited on: One head, one pattern; Two heads, two patterns`."""
    line = soup.new_tag("p", attrs={"class": "cited"})
    line.append(f"{words['cited_on']}: ")
    for number, file in enumerate(cited):
        link = soup.new_tag("a", href=get_relative_url(file.url, page.url))
        link.string = get_data(texts[file.src_uri])[1]["title"]
        line.extend(["; ", link] if number else [link])
    return line
