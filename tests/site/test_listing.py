"""Listings are explained line by line: links name the right lines, and no line is left out."""

import ast
from types import SimpleNamespace

import current
import listing
import pytest
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from places import example_of
from pymdownx.inlinehilite import InlineHiliteException
from sections import sections
from words import WORDS

CODE = ["import math", "", "# a comment", "def area(r):", "    return math.pi * r**2"]
MORE = ["total = area(2)"]
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


@pytest.fixture(autouse=True)
def page_with_listing():
    """The page that is being made explains this code."""
    current.page.begin(name="page.md", words=WORDS["en"], listings={"area": CODE})
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
        ("import math", "en", "Line 1", "#area-1"),
        ("import math", "id", "Baris 1", "#area-1"),
        ("def … return", "en", "Lines 4–5", "#area-4-5"),
        (" import … return math.pi * r**2 ", "id", "Baris 1–5", "#area-1-5"),
    ],
)
def test_link_names_the_lines(source, language, label, href):
    current.page.words = WORDS[language]
    link = BeautifulSoup(listing.lines_inline(source, "", "lines", None), "html.parser").a
    assert (link.get_text(), link["href"]) == (label, href)
    numbers = [int(number) for number in href.split("-")[1:]]
    expected = range(numbers[0], numbers[-1] + 1)
    assert current.page.explained == {("area", number) for number in expected}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("math", r"`#!lines math`: expected on 1 line .* on 2: area 1, area 5$"),
        ("area(", r"`#!lines area\(`: expected on 1 line .* on 2: area 4, more 1$"),
        ("gone", r"`#!lines gone`: expected on 1 line .* on 0: $"),
        ("def … gone", r"`#!lines gone`: expected on 1 line .* on 0: $"),
        ("return … def", r"`#!lines return … def`: begins on line 5 of area, ends on line 4 of"),
        ("import … total", r"`#!lines .*`: begins on line 1 of area, ends on line 1 of more"),
    ],
)
def test_fragment_has_to_name_one_line(source, found):
    current.page.listings["more"] = MORE
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


def test_each_listing_has_to_be_explained():
    current.page.listings["more"] = MORE
    html = block(CODE) + block(MORE) + explain("import … return")
    with pytest.raises(PluginError, match=r"^page\.md: no word about line\(s\) 1 of .* more$"):
        content(html)


def test_each_link_has_its_range_and_the_order_of_the_code_stays():
    current.page.listings["more"] = MORE
    words = explain("def … return", "import", "import", "total")
    soup = content(block(["x = 1"]) + block(CODE) + block(MORE) + words)
    listed = soup.select(".listing")
    assert [block.get_text() for block in listed] == [
        "".join(f"{line}\n" for line in code) for code in (CODE, MORE)
    ]
    assert [link["href"] for link in soup.select("a.lines")] == [
        "#area-4-5", "#area-1", "#area-1", "#more-1",
    ]  # fmt: skip
    (wrapped,) = soup.select(".range")
    assert wrapped.get_text() == "".join(f"{line}\n" for line in CODE[3:])
    assert wrapped.contents[0]["id"] == "area-4-5"
    assert soup.select_one("#more-1").parent.get_text() == MORE[0]


def test_each_line_of_a_listing_has_an_address_and_a_link_to_it():
    soup = content(block(["x = 1"]) + block(CODE) + explain("import … return"))
    lines = soup.select(".listing .line")
    assert [line.get_text() for line in lines] == CODE
    assert str(lines.pop(1)) == '<span class="line"><span class="number"></span></span>'  # blank
    for number, line in zip((1, 3, 4, 5), lines, strict=True):
        address, link = line.contents[:2]
        assert (address["id"], address.get_text()) == (f"area-{number}", "")
        assert (link["href"], link["aria-label"]) == (f"#area-{number}", f"Line {number}")
        assert link.get_text() == ""  # so that copied code has no numbers
    assert [e["id"] for e in soup.select(".highlight:not(.listing) [id]")] == ["code-1-1"]


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


LISTINGS = {
    "one-head": ["softmax", "attention"],
    "two-heads": ["attention", "weights", "concat"],
    "torch-module": ["class"],
}


@pytest.mark.parametrize("prefix", ["", "en/"])
@pytest.mark.parametrize("page", LISTINGS)
def test_walkthroughs_explain_every_line(page, prefix, soups):
    soup = soups[f"{prefix}{page}/"]
    example = sections(example_of(page))
    walkthroughs = soup.select(".walkthrough")
    for name, walkthrough in zip(LISTINGS[page], walkthroughs, strict=True):
        assert walkthrough.select_one(".listing").get_text().strip() == example[name].strip()
        explained = set()
        for link in walkthrough.select("dt > a.lines"):
            assert soup.select_one(link["href"]).find_parent(class_="listing")
            assert len(link.parent.find_next_sibling("dd").get_text().split()) >= 4
            numbers = [int(n) for n in link["href"].removeprefix(f"#{name}-").split("-")]
            explained |= set(range(numbers[0], numbers[-1] + 1))
        nodes = ast.walk(ast.parse(example[name]))
        executable = {node.lineno for node in nodes if isinstance(node, ast.stmt)}
        assert len(executable) >= 4
        assert executable <= explained
