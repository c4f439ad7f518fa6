"""A listing is explained line by line: the links name the right lines, and no line is left out."""

from types import SimpleNamespace

import current
import listing
import pytest
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from pymdownx.inlinehilite import InlineHiliteException
from words import WORDS

CODE = ["import math", "", "# a comment", "def area(r):", "    return math.pi * r**2"]
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


@pytest.fixture(autouse=True)
def page_with_listing():
    """The page that is being made explains this code."""
    current.page.begin(name="page.md", words=WORDS["en"], listing=CODE)
    yield
    current.page.begin()


def block(lines: list[str]) -> str:
    """A block of code as Pygments writes it: its ids begin anew in every block."""
    spans = (f'<span id="__span-0-{n}">{line}\n</span>' for n, line in enumerate(lines, 1))
    return f'<div class="language-python highlight"><pre><code>{"".join(spans)}</code></pre></div>'


def explain(*fragments: str) -> str:
    """What a page says about these ranges."""
    return "".join(
        f"<p>{listing.lines_inline(fragment, '', 'lines', None)}</p>" for fragment in fragments
    )


def content(html: str) -> BeautifulSoup:
    """The page as the hook leaves it."""
    return BeautifulSoup(listing.on_page_content(html, PAGE, None, None), "html.parser")


@pytest.mark.parametrize(
    ("source", "language", "label", "href"),
    [
        ("import math", "en", "Line 1", "#lines-1-1"),
        ("import math", "id", "Baris 1", "#lines-1-1"),
        ("def … return", "en", "Lines 4–5", "#lines-4-5"),
        (" import … return math.pi * r**2 ", "id", "Baris 1–5", "#lines-1-5"),
    ],
)
def test_link_names_the_lines(source, language, label, href):
    current.page.words = WORDS[language]
    link = BeautifulSoup(listing.lines_inline(source, "", "lines", None), "html.parser").a
    assert (link.get_text(), link["href"]) == (label, href)
    first, last = map(int, href.split("-")[1:])
    assert current.page.explained == set(range(first, last + 1))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("math", r"`#!lines math`: expected on 1 line .* \[1, 5\]"),
        ("gone", r"`#!lines gone`: expected on 1 line .* \[\]"),
        ("def … gone", r"`#!lines gone`: expected on 1 line .* \[\]"),
        ("return … def", r"`#!lines return … def`: begins on line 5, ends on line 4"),
    ],
)
def test_fragment_has_to_name_one_line(source, found):
    with pytest.raises(InlineHiliteException, match=rf"^page\.md: {found}"):
        listing.lines_inline(source, "", "lines", None)


@pytest.mark.parametrize(
    ("fragments", "silent"),
    [
        (("import", "def … return"), None),
        (("import … return",), None),
        (("import", "def"), "5"),
        (("def … return",), "1"),
        ((), "1, 4, 5"),
    ],
)
def test_every_line_of_code_needs_a_word(fragments, silent):
    html = block(CODE) + explain(*fragments)
    if silent is None:
        assert content(html).select("a.lines")
    else:
        with pytest.raises(PluginError, match=rf"^page\.md: no word about line\(s\) {silent} of"):
            content(html)


def test_each_link_has_its_range_and_the_order_of_the_code_stays():
    soup = content(block(["x = 1"]) + block(CODE) + explain("def … return", "import", "import"))
    listed = soup.select_one(".listing")
    assert listed.get_text() == "".join(f"{line}\n" for line in CODE)
    assert len(soup.select(".listing")) == 1
    for href, text in (("#lines-4-5", CODE[3:]), ("#lines-1-1", CODE[:1])):
        (target,) = soup.select(href)
        assert soup.select(f'a.lines[href="{href}"]')
        assert target.parent["class"] == ["range"]
        assert target.parent.get_text() == "".join(f"{line}\n" for line in text)
    assert len(soup.select(".range")) == 2
    assert [line["id"] for line in soup.select(".highlight span[id]:not(.range > :empty)")] == [
        "code-1-1",
        *(f"listing-{number}" for number in range(1, 6)),
    ]


def test_addresses_of_lines_are_unique_on_a_page_without_listing():
    current.page.begin(name="page.md")
    output = '<div class="language-text highlight"><pre><code>1</code></pre></div>'
    soup = content(block(["x = 1", "y = 2"]) + output + block(["x = 1"]))
    ids = [line["id"] for line in soup.select("span[id]")]
    assert ids == ["code-1-1", "code-1-2", "code-3-1"]
    assert not soup.select(".listing")


def test_the_form_is_known_to_markdown():
    config = SimpleNamespace(mdx_configs={})
    listing.on_config(config)
    (form,) = config.mdx_configs["pymdownx.inlinehilite"]["custom_inline"]
    assert (form["name"], form["format"]) == ("lines", listing.lines_inline)


@pytest.mark.parametrize("prefix", ["", "en/"])
def test_the_page_about_the_class_explains_all_of_it(prefix, soups):
    soup = soups[f"{prefix}torch-module/"]
    (listed,) = soup.select(".listing")
    explained = set()
    for link in soup.select("a.lines"):
        assert soup.select_one(link["href"]).parent["class"] == ["range"]
        first, last = map(int, link["href"].split("-")[1:])
        explained |= set(range(first, last + 1))
    code = listed.get_text().splitlines()
    assert len(code) > 20
    assert set(listing.lines_of_code(code)) <= explained
