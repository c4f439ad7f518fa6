"""A page is what the theme's script would make of it, or the theme has changed."""

from types import SimpleNamespace

import pytest
import ready
from mkdocs.exceptions import PluginError

PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
HTML = '<html class="no-js">'


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<table>\n<td>1</td></table>", ready.FRAME.format("<table>\n<td>1</td></table>")),
        ('<table class="weights"><td>1</td></table>', None),
        ("<pre><span></span><code>x", '<pre><span></span><code class="md-code__content">x'),
        ('<pre id="a"><code>x', '<pre id="a"><code class="md-code__content">x'),
        ("<p><code>x", None),
        ('<pre><code class="a">x', None),
    ],
)
def test_page_has_what_the_script_would_add(html, expected):
    made = ready.on_post_page(HTML + html, PAGE, None)
    assert made == '<html class="js js-focus-visible">' + (expected or html)


def test_a_new_theme_stops_the_build():
    with pytest.raises(PluginError, match=r"^page\.md: the theme has changed; class=\"no-js\" is"):
        ready.on_post_page('<html class="other">', PAGE, None)
    for text in ("a", "b b"):
        with pytest.raises(PluginError, match=r"^bundle\.js: the theme has changed; b is not"):
            ready.replaced(text, "b", "c", "bundle.js")


def test_every_page_is_ready(soups):
    framed, blocks = 0, 0
    for address, soup in soups.items():
        assert soup.html["class"] == ["js", "js-focus-visible"], address
        for table in soup.select(".md-typeset table:not([class])"):
            assert table.parent["class"] == ["md-typeset__table"], address
            framed += 1
        for code in soup.select(".md-typeset pre > code"):
            assert code.get("class"), address
            blocks += 1
    assert framed > 10
    assert blocks > 100


def test_font_of_formulas_comes_with_the_pages_that_have_formulas(soups, site):
    for address, soup in soups.items():
        links = soup.select("link[rel=preload]")
        assert len(links) == bool(soup.select_one("article math")), address
        for link in links:
            assert (site / address / link["href"]).name == "stix-two-math.woff2"
            assert (site / address / link["href"]).exists()
