"""The page of sources says where each is cited, and misses no paper that a page cites."""

import re
from types import SimpleNamespace

import pytest
import sources
from bs4 import BeautifulSoup
from small_project import ROOT
from words import WORDS

LISTED = """<dl><dt><a href="https://x.org/a">A</a>, N.</dt><dd><p>Good for a.</p></dd>
<dt><a href="https://x.org/b">B</a>, N.</dt><dd><p>Good for b.</p></dd></dl>"""


def file(folder, uri: str, text: str) -> SimpleNamespace:
    path = folder / uri
    path.write_text(text, "utf-8")
    return SimpleNamespace(src_uri=uri, url=f"{path.stem}/", abs_src_path=str(path))


def made(folder, texts: dict[str, str], html: str = LISTED) -> BeautifulSoup:
    """The list as the hook leaves it, on a site with these pages."""
    files = [file(folder, f"{name}.md", text) for name, text in texts.items()]
    files.append(file(folder, "lab.ipynb", "](https://x.org/b)"))
    files.append(file(folder, "sources.md", "[A](https://x.org/a) [B](https://x.org/b)"))
    page = SimpleNamespace(file=files[-1], url=files[-1].url)
    config = SimpleNamespace(theme={"language": "en"})
    every = SimpleNamespace(documentation_pages=lambda: files)
    return BeautifulSoup(sources.on_page_content(html, page, config, every), "html.parser")


def test_each_source_names_the_pages_that_cite_it(tmp_path):
    one = "---\ntitle: One & all\n---\n[A](https://x.org/a)"
    two = "---\ntitle: Two\n---\nSee [this](https://x.org/a), not [that](https://x.org/b/c)."
    first, second = made(tmp_path, {"one": one, "two": two}).select("dd")
    assert first.select_one(".cited").get_text() == "Cited on: One & all; Two"
    assert [link["href"] for link in first.select("a")] == ["../one/", "../two/"]
    assert second.get_text() == "Good for b."


def test_other_pages_are_left_alone():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="order.md"))
    assert sources.on_page_content(LISTED, page, None, None) is None


@pytest.mark.parametrize("language", WORDS)
def test_every_paper_that_a_page_cites_is_listed(language):
    pages = {path.name: path.read_text("utf-8") for path in (ROOT / "docs" / language).iterdir()}
    listed = pages.pop("sources.md")
    papers = {url for text in pages.values() for url in re.findall(r"https://arxiv[^)\s\"]+", text)}
    assert papers
    assert {url for url in papers if f"({url})" not in listed} == set()


@pytest.mark.parametrize("prefix", ["", "en/"])
def test_the_list_of_the_site(prefix, soups):
    entries = soups[f"{prefix}sources/"].select("article dt")
    assert len(entries) >= 30
    for entry in entries:
        assert entry.a["href"].startswith("https://")
        assert len(entry.find_next_sibling("dd").get_text().split()) > 5
    (paper,) = (e for e in entries if e.a["href"].endswith("1706.03762"))
    cited = [link["href"] for link in paper.find_next_sibling("dd").select(".cited a")]
    assert {"../two-heads/", "../order/"} <= set(cited)
