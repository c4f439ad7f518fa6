"""Query, key and value have one class each in formulas, code and words; nothing else has it."""

import pytest
import roles
from bs4 import BeautifulSoup
from mathml import to_math


def content(html: str) -> str:
    """What the hook makes of it."""
    return roles.on_page_content(html, None, None, None)


@pytest.mark.parametrize(
    ("latex", "marked"),
    [
        (r"Q K^\top V", ["mi Q role-q", "mi K role-k", "mi V role-v"]),
        ("W_Q", ["msub WQ role-q", "mi Q role-q"]),
        ("W_K^{(i)}", ["msubsup WK(i) role-k", "mi K role-k"]),
        (r"d_k, d_v, q, \mathrm{query}, A, W_O, X", []),
        ("Q_i", ["mi Q role-q"]),
    ],
)
def test_symbols_of_a_formula(latex, marked):
    soup = BeautifulSoup(content(to_math(latex, "inline")), "html.parser")
    found = [f"{e.name} {e.get_text()} {e['class'][0]}" for e in soup.select("[class]")]
    assert found == marked


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, "role-q") for name in ("Q", "q", "W_Q", "w_q", "q_proj", "query")),
        *((name, "role-k") for name in ("K", "k", "W_K", "w_k", "k_proj", "key")),
        *((name, "role-v") for name in ("V", "v", "W_V", "w_v", "v_proj", "value")),
        *((name, None) for name in ("d_k", "W_O", "out_proj", "keys", "qkv", "o_proj", "x", "Key")),
    ],
)
def test_names_in_prose(name, expected):
    for element in ("code", "strong"):
        mark = f' class="{expected}"' if expected else ""
        assert content(f"<p><{element}>{name}</{element}></p>") == (
            f"<p><{element}{mark}>{name}</{element}></p>"
        )
    assert content(f"<p><em>{name}</em> {name}</p>") == f"<p><em>{name}</em> {name}</p>"


def test_a_block_is_coloured_where_the_three_stand_together():
    def block(*names):
        spans = "".join(f'<span class="n">{name}</span>' for name in names)
        return f"<pre><code>{spans}</code></pre>"

    together, apart = block("q", "k_proj", "V", "x", "q"), block("k", "v", "d_k", "v_proj")
    soup = BeautifulSoup(content(together + apart), "html.parser")
    classes = [" ".join(span["class"]) for span in soup.select("span")]
    assert classes == ["n role-q", "n role-k", "n role-v", "n", "n role-q", *["n"] * 4]
    assert soup.get_text() == BeautifulSoup(together + apart, "html.parser").get_text()


@pytest.mark.parametrize("page", ["one-head/", "two-heads/", "torch-module/"])
def test_the_roles_are_marked_alike_in_both_languages(page, soups):
    def marked(soup):
        kinds = soup.select("math .role-q, math .role-k, math .role-v, pre [class*=role-]")
        return [(e.name, e.get_text(), e["class"][-1]) for e in kinds]

    assert marked(soups[page]) == marked(soups["en/" + page])
    assert {role for _, _, role in marked(soups[page])} == {"role-q", "role-k", "role-v"}


def test_the_words_that_are_defined_have_their_colours(soups):
    for prefix in ("", "en/"):
        words = soups[f"{prefix}one-head/"].select("strong[class]")
        assert {(e.get_text(), e["class"][0]) for e in words} >= {
            ("query", "role-q"),
            ("key", "role-k"),
            ("value", "role-v"),
        }
