"""What is left out of the theme's own files, and what is not."""

import re

import pytest
import slim
import tinycss2


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
        (".md-typeset .bug>p,.md-typeset .bugs>p{margin:0}", ".md-typeset .bugs>p{margin:0}"),
        (
            "[data-md-color-accent=red]{margin:0}[data-md-color-scheme=slate]{margin:0}",
            "[data-md-color-scheme=slate]{margin:0}",
        ),
        (
            ".md-typeset table:not([class])+*{margin:0}.md-typeset table:not([class]){margin:0}",
            ".md-typeset table:not([class]){margin:0}",
        ),
        ("a[href$=.pdf]{margin:0}", "a[href$=.pdf]{margin:0}"),
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
    css = ".tabbed-set .tabbed-labels--linked{margin:0}.footnote{margin:0}.note{margin:0}"
    css += "[data-md-color-primary=teal]{margin:0}[data-md-color-primary=red]{margin:0}"
    html = '<body data-md-color-primary="teal"><div class="x tabbed-set"><p class="note">'
    kept = slimmed(css, *slim.names_of(html))
    assert kept == (
        ".tabbed-set .tabbed-labels--linked{margin:0}.note{margin:0}"
        "[data-md-color-primary=teal]{margin:0}"
    )


def test_variables_that_no_value_asks_for_are_left_out():
    css = ':root{--a:1px;--b:url("data:;x}");--c:2px}.x--b:hover{margin:var(--a, 1px) var( --c )}'
    assert slim.variables_of(css) == {"--a", "--c"}
    kept = slim.without_variables(css, {"--a", "--c"})
    assert kept == ":root{--a:1px;--c:2px}.x--b:hover{margin:var(--a, 1px) var( --c )}"


def test_site_has_only_what_it_uses(site):
    for root in (site, site / "en"):
        (css,) = root.glob("assets/stylesheets/main.*.css")
        text = css.read_text("utf-8")
        gone = (
            ".tabbed-",
            ".footnote",
            ".md-source",
            "data-md-color-switching",
            "no-js",
            "-version-icon",
        )
        assert [name for name in gone if name in text] == []
        (palette,) = root.glob("assets/stylesheets/palette.*.css")
        colours = set(re.findall(r"color-primary=([\w-]+)", palette.read_text("utf-8")))
        assert colours == {"teal"}
        for kept in (
            ".md-search__",
            ".admonition",
            ".highlight",
            "scripting:none",
        ):
            assert kept in text
