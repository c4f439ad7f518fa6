"""A page is what the theme's script would make of it, or the theme has changed."""

from types import SimpleNamespace

import pytest
import ready
from mkdocs.exceptions import PluginError

PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
HTML = '<html class="no-js"><script src="a/bundle.0a.min.js"></script>'
READY = '<html class="js js-focus-visible"><script defer src="a/bundle.0a.min.js"></script>'


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
    assert made == READY + (expected or html)


def test_a_new_theme_stops_the_build():
    with pytest.raises(PluginError, match=r"^page\.md: the theme has changed; class=\"no-js\" is"):
        ready.on_post_page(HTML.replace("no-js", "other"), PAGE, None)
    with pytest.raises(PluginError, match=r"^404\.html: the theme has changed; <script .* is not"):
        ready.on_post_template('<html class="no-js">', "404.html", None)
    for text in ("a", "b b"):
        with pytest.raises(PluginError, match=r"^bundle\.js: the theme has changed; b is not"):
            ready.replaced(text, "b", "c", "bundle.js")


def test_every_page_is_ready(soups):
    framed, blocks = 0, 0
    for address, soup in soups.items():
        assert soup.html["class"] == ["js", "js-focus-visible"], address
        (bundle,) = (s for s in soup.select("script[src]") if "/bundle." in s["src"])
        assert bundle.has_attr("defer"), address
        for table in soup.select(".md-typeset table:not([class])"):
            assert table.parent["class"] == ["md-typeset__table"], address
            framed += 1
        for code in soup.select(".md-typeset pre > code"):
            assert code.get("class"), address
            blocks += 1
    assert framed > 10
    assert blocks > 100
