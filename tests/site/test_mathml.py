"""Formulas become MathML, and a formula that is not understood stops the build."""

from types import SimpleNamespace

import mathml
import pytest
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError

PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


def inline(latex: str) -> str:
    """A formula in a sentence, as pymdownx.arithmatex leaves it."""
    return rf'<span class="arithmatex">\({latex}\)</span>'


def block(latex: str) -> str:
    """A formula on lines of its own."""
    return f'<div class="arithmatex">\\[\n{latex}\n\\]</div>'


def content(html: str) -> str:
    """What the hook makes of it."""
    return mathml.on_page_content(html, PAGE, None, None)


def tree(latex: str) -> str:
    """The elements of a formula, in order, with what the leaves say."""
    math = BeautifulSoup(content(inline(latex)), "html.parser").math
    parts = (
        f"{element.name}:{element.text}" if not element.find() else element.name
        for element in math.find_all(True)
    )
    return " ".join(part for part in parts if part != "mrow")


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        ("d_k", "msub mi:d mi:k"),
        ("T^2", "msup mi:T mn:2"),
        (r"\sqrt{3}", "msqrt mn:3"),
        (r"\frac{a}{b}", "mfrac mi:a mi:b"),
        (r"K^\top", "msup mi:K mo:⊤"),
        (r"\{x\}", "mo:{ mi:x mo:}"),
        ("a &lt; b", "mi:a mo:< mi:b"),
        ("a &amp;lt; b", None),
        (r"\frac{d_k", "braces do not match"),
        ("d_k}", "braces do not match"),
        (r"\nono x", "a command was not understood"),
        (r"\text{a} \nono", "a command was not understood"),
        ("x_", "Error"),
        (r"\left( x", "Error"),
    ],
)
def test_formula(latex, expected):
    if expected and expected.startswith("m"):
        assert tree(latex) == expected
    elif expected:
        with pytest.raises(PluginError, match=rf"^page\.md: formula .*{expected}"):
            content(inline(latex))
    else:
        assert "mo:<" not in tree(latex)


def test_formula_in_a_sentence_keeps_the_mark_behind_it():
    html = content(f"<p>Lebar {inline('d_k')}, dan {inline('x')} saja.</p>")
    soup = BeautifulSoup(html, "html.parser")
    assert [math["display"] for math in soup.select("math")] == ["inline", "inline"]
    assert [span.text for span in soup.select(".unbroken")] == ["dk,"]
    assert soup.text == "Lebar dk, dan x saja."
    assert "arithmatex" not in html


def test_formula_on_lines_of_its_own_can_be_scrolled_by_keyboard():
    html = content(block(r"A = \mathrm{softmax}(Q K^\top)") + block("x"))
    soup = BeautifulSoup(html, "html.parser")
    assert [div["tabindex"] for div in soup.select("div.formula")] == ["0", "0"]
    assert [math["display"] for math in soup.select("div.formula > math")] == ["block", "block"]
    assert soup.select("div.formula")[1].text == "x"


def test_message_shows_the_formula_as_it_was_written():
    with pytest.raises(PluginError) as caught:
        content(block("a &lt; \\nono"))
    assert "page.md: formula 'a < \\\\nono'" in str(caught.value)


def test_what_is_no_formula_stays():
    html = r'<p>\(x\)</p><span class="other">\(x\)</span><code>$x$</code>'
    assert content(html) == html
