"""What is left out of the theme's own files, and what is not."""

from types import SimpleNamespace

import pytest
import slim
import tinycss2
from mkdocs.exceptions import PluginError


def slimmed(css: str, *used: str) -> str:
    return slim.slimmed(tinycss2.parse_stylesheet(css), set(used))


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        ("a{color:red}", "a{color:red}"),
        (".md-typeset .tabbed-set>input{margin:0}", ""),
        (".md-typeset .tabbed-set,.md-nav{margin:0}", ".md-nav{margin:0}"),
        (".md-nav:is(.a,.b),.footnote{margin:0}", ".md-nav:is(.a,.b){margin:0}"),
        (".md-nav:not(.md-tabs){margin:0}", ".md-nav:not(.md-tabs){margin:0}"),
        (".md-tabs-like{margin:0}.md-tab{margin:0}", ".md-tab{margin:0}"),
        ("@media print{.tabbed-set{margin:0}}", ""),
        ("@media print{.tabbed-set{margin:0}a{margin:0}}", "@media print{a{margin:0}}"),
        ("@supports (a:b){@media print{.mermaid{margin:0}}}", ""),
        ("[data-md-color-switching] *{transition:none}", ""),
        ("@font-face{font-family:x}", "@font-face{font-family:x}"),
        (
            ".no-js .md-search{display:none}",
            "@media (scripting:none){.js .md-search{display:none}}",
        ),
    ],
)
def test_rules_for_what_no_page_has_are_left_out(css, expected):
    assert slimmed(css) == expected


def test_rules_for_what_a_page_has_stay():
    css = ".tabbed-set .tabbed-labels--linked{margin:0}.footnote{margin:0}"
    kept = slimmed(css, *slim.classes_of('<div class="x tabbed-set"><p class="y">'))
    assert kept == ".tabbed-set .tabbed-labels--linked{margin:0}"


def test_a_new_theme_stops_the_build():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
    with pytest.raises(PluginError, match=r"^page\.md: the theme has changed; class=\"no-js\" is"):
        slim.on_post_page('<html class="other">', page, None)
    for text in ("a", "b b"):
        with pytest.raises(PluginError, match=r"^bundle\.js: the theme has changed; b is not"):
            slim.replaced(text, "b", "c", "bundle.js")


def test_site_has_only_what_it_uses(site):
    for root in (site, site / "en"):
        (css,) = root.glob("assets/stylesheets/main.*.css")
        text = css.read_text("utf-8")
        for gone in (".tabbed-", ".footnote", "data-md-color-switching", "no-js"):
            assert gone not in text
        for kept in (
            ".md-search__",
            ".admonition",
            ".md-clipboard",
            ".highlight",
            "scripting:none",
        ):
            assert kept in text
        assert not list(root.rglob("*.map"))
        for page in root.rglob("*.html"):
            assert 'class="js js-focus-visible"' in page.read_text("utf-8")
