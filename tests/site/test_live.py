"""Computed values in sentences: written as the language writes them, or the build stops."""

import re
from types import SimpleNamespace

import current
import live
import numpy as np
import pytest
import torch
from markdown import Markdown, markdown
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException
from words import WORDS

from mha.show import WeightTable

VALUES = {
    "half": 0.5,
    "tiny": 2.0**-50,
    "count": 1234567,
    "numpy_count": np.int64(1234567),
    "single": np.float32(0.25),
    "flag": np.bool_(True),
    "nothing": None,
    "twice": 0.5,
    "text": "<b> & 1.5",
    "shape": (2, 3),
    "row": np.array([0.25, 0.75]),
    "table": np.array([[0.25, 0.75], [1.0, 0.0]]),
    "tensor": torch.tensor([0.25, 0.75], requires_grad=True),
    "scalar": torch.tensor(0.25),
    "nan": float("nan"),
    "single_nan": np.float32("nan"),
    "row_with_nan": [0.5, float("nan")],
    "table_with_inf": np.array([[0.5, np.inf]]),
    "tensor_with_nan": torch.tensor([0.5, torch.nan]),
    "scalar_nan": torch.tensor(torch.nan),
    "errors": {"output": 0.5},
    "drawing": WeightTable([[0.25, 0.75]]),
    "lines": SimpleNamespace(to_html=lambda write: "<svg></svg>"),
    "drawing_with_nan": WeightTable([[0.25, np.nan]]),
}


@pytest.fixture(autouse=True)
def page_with_values():
    """The page that is being made has an example that leaves these names."""
    values = dict(VALUES)
    current.page.begin(name="page.md", words=WORDS["id"], values=values, rebound={"twice"})
    yield
    current.page.begin()


@pytest.mark.parametrize(
    ("source", "indonesian", "english"),
    [
        ("half", "0,500", "0.500"),
        ("-half", "−0,500", "−0.500"),
        ("half:.1f", "0,5", "0.5"),
        ("half:.0%", "50%", "50%"),
        ("tiny:.1e", "8,9 × 10<sup>−16</sup>", "8.9 × 10<sup>−16</sup>"),
        ("count", "1.234.567", "1,234,567"),
        ("count:d", "1234567", "1234567"),
        ("count / 2", "617283,500", "617283.500"),
        ("count / 2:,.1f", "617.283,5", "617,283.5"),
        ("numpy_count", "1.234.567", "1,234,567"),
        ("single", "0,250", "0.250"),
        ("flag", "True", "True"),
        ("half < 1", "True", "True"),
        ("text", "&lt;b&gt; &amp; 1.5", "&lt;b&gt; &amp; 1.5"),
        ("shape", "[2; 3]", "[2, 3]"),
        ("row", "[0,250; 0,750]", "[0.250, 0.750]"),
        ("row:.1f", "[0,2; 0,8]", "[0.2, 0.8]"),
        ("table", "[[0,250; 0,750]; [1,000; 0,000]]", "[[0.250, 0.750], [1.000, 0.000]]"),
        ("row[0]", "0,250", "0.250"),
        ("sorted([row[1] / row[1]], reverse=True)[0]", "1,000", "1.000"),
        ("row[0:1]", "[0,250]", "[0.250]"),
        ("tensor", "[0,250; 0,750]", "[0.250, 0.750]"),
        ("tensor[0]", "0,250", "0.250"),
        ("scalar", "0,250", "0.250"),
        ('errors["output"]:.1f', "0,5", "0.5"),
        ("[half for _ in shape]", "[0,500; 0,500]", "[0.500, 0.500]"),
    ],
)
def test_value_as_each_language_writes_it(source, indonesian, english):
    for language, expected in (("id", indonesian), ("en", english)):
        current.page.words = WORDS[language]
        html = live.live_inline(source, "", "live", None)
        assert html == f'<span class="live">{expected}</span>'


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("0.39", "uses no name of the example"),
        ("'a' + 'b'", "uses no name of the example"),
        ("gone", "uses no name of the example"),
        ("half + gone", "'gone' is not defined"),
        ("len('0.39')", "uses no name of the example"),
        ("[half := 0.39]", "assigns a value"),
        ("(half, 0.39)[1]", "is 0.39, which stands in it"),
        ("half * 0 + 0.39", "is 0.39, which stands in it"),
        ("(half, '0.39')[1]", "is '0.39', which stands in it"),
        ("[half, 0.39]", "is 0.39, which stands in it"),
        ("[[half, 0.39]]", "is 0.39, which stands in it"),
        ("row * 0 + 0.39", "is 0.39, which stands in it"),
        ("(half, -0.39)[1]", "is -0.39, which stands in it"),
        ("[half, 0.39][1:]", "is 0.39, which stands in it"),
        ("lines", "is namespace.*, no number or text"),
        ("nothing", "is None, no number or text"),
        ("errors", "is {'output': 0.5}, no number or text"),
        ("twice", "bound in more than one section: twice"),
        ("half +", "invalid syntax|f-string"),
        ("x = half", "f-string|invalid|format"),
        ("half:q", "Unknown format code"),
        ("nan", "is nan, not a finite number"),
        ("half / 0", "division"),
        ("single_nan", "is nan, not a finite number"),
        ("single_nan:.1f", "is nan, not a finite number"),
        ("row_with_nan", "is nan, not a finite number"),
        ("table_with_inf", "is inf, not a finite number"),
        ("tensor_with_nan", "is nan, not a finite number"),
        ("scalar_nan", "is nan, not a finite number"),
    ],
)
def test_what_is_no_value_stops_the_build(source, message):
    with pytest.raises(InlineHiliteException, match=rf"^page\.md: `#!live .*`: .*(?:{message})"):
        live.live_inline(source, "", "live", None)


def drawn(source: str) -> str:
    """What a fence becomes."""
    return live.live_fence(source, "live", "live", {}, Markdown())


def test_drawing_speaks_the_language():
    for language, cell in (("id", "0,250"), ("en", "0.250")):
        current.page.words = WORDS[language]
        html = drawn("drawing")
        assert html.startswith('<table class="weights">')
        assert f">{cell}</td>" in html


def test_drawing_stands_in_no_paragraph():
    fence = {"name": "live", "class": "live", "format": live.live_fence}
    config = {"pymdownx.superfences": {"custom_fences": [fence]}}
    text = "One.\n\n```live\nlines\n```\n\nTwo.\n\n```live\nlines\n```\n"
    html = markdown(text, extensions=list(config), extension_configs=config)
    assert html == "<p>One.</p>\n<svg></svg>\n<p>Two.</p>\n<svg></svg>"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gone", "uses no name of the example"),
        ("half", "to_html"),
        ("1", "uses no name"),
        ("type(drawing)([[half, 0.39]])", "0.39 stands in it"),
        ("drawing_with_nan", "is nan, not a finite number"),
    ],
)
def test_what_is_no_drawing_stops_the_build(source, message):
    with pytest.raises(
        SuperFencesException, match=rf"^page\.md: ```live {re.escape(source)}: .*{message}"
    ):
        drawn(source)


@pytest.mark.parametrize(("said", "fails"), [("0,500", False), ("0,250", True), (None, True)])
@pytest.mark.parametrize("source", ["half + 0", "half  +  0"])
def test_another_run_says_the_same(source, said, fails):
    current.page.said = {"half + 0": said}
    if not fails:
        assert "0,500" in live.live_inline(source, "", "live", None)
        return
    with pytest.raises(InlineHiliteException, match=f"is 0,500, but {said} when page.py runs by"):
        live.live_inline(source, "", "live", None)


def test_another_run_draws_the_same():
    drawing = live.drawn("lines")
    current.page.said = {"lines": drawing, "drawing": drawing}
    assert live.live_fence("lines", "", "live", {}, Markdown()) == drawing
    with pytest.raises(SuperFencesException, match=r"differs when page\.py runs by itself"):
        live.live_fence("drawing", "", "live", {}, Markdown())


PAGE = """
In a sentence `#!live half + 0` and `#!live half + 1`.

!!! note
    ```live
    (
        drawing
    )
    ```
"""


def test_what_a_page_says_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "DOCS", tmp_path)
    (tmp_path / "id").mkdir()
    (tmp_path / "id/some-page.md").write_text(PAGE)
    said = live.said_with(VALUES, tmp_path / "some_page.py")
    assert list(said) == ["half + 0", "half + 1", "( drawing )"]
    assert said["half + 1"] == "1,500"
    assert "0,750" in said["( drawing )"]


def test_the_forms_are_known_to_markdown():
    config = SimpleNamespace(mdx_configs={})
    live.on_config(config)
    (inline,) = config.mdx_configs["pymdownx.inlinehilite"]["custom_inline"]
    (fence,) = config.mdx_configs["pymdownx.superfences"]["custom_fences"]
    assert (inline["name"], inline["format"]) == ("live", live.live_inline)
    assert (fence["name"], fence["format"]) == ("live", live.live_fence)


def test_links_may_lead_into_drawings():
    page = SimpleNamespace(present_anchor_ids={"heading"})
    live.on_page_content('<p id="tie">x</p><p data-id="no">', page=page, config=None, files=None)
    assert page.present_anchor_ids == {"heading", "tie"}
    notebook = SimpleNamespace(present_anchor_ids=None)
    live.on_page_content('<p id="tie">', page=notebook, config=None, files=None)
    assert notebook.present_anchor_ids is None
