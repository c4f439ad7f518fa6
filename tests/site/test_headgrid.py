"""Pictures of whose row is whose: what is drawn is what the array says."""

import re

import numpy as np
import pytest
from bs4 import BeautifulSoup
from headgrid import CELL, HeadGrid

from mha.layouts import pack

HEADS, D_K, WIDTH = 3, 2, 5


def names(part, heads=HEADS):
    return np.array([[f"{part}{h + 1}"] * WIDTH for h in range(heads) for _ in range(D_K)])


def drawn(layout, kv_heads=HEADS):
    parts = names("q"), names("k", kv_heads), names("v", kv_heads)
    packed = pack(*parts, layout=layout, num_heads=HEADS, num_kv_heads=kv_heads)
    html = HeadGrid(layout, packed, HEADS, kv_heads).to_html(str)
    return packed, BeautifulSoup(html, "html.parser")


def owners(soup, width, height):
    """Which names and heads lie at the middle of each cell, read from the rectangles."""
    cells = np.full((height, width), None, object)
    for group in soup.select("g"):
        for rect in group.select("rect"):
            x, y, w = (float(rect[a]) / CELL for a in ("x", "y", "width"))
            for column in range(width):
                if x <= column + 0.5 < x + w:
                    assert cells[int(y), column] is None
                    cells[int(y), column] = group.text
                    assert rect["class"][0][1:] in group["data-heads"].split()
    return cells.tolist()


@pytest.mark.parametrize("layout", ["block", "transposed", "interleaved", "grouped"])
def test_each_cell_is_where_the_converter_put_it(layout):
    packed, soup = drawn(layout)
    assert owners(soup, *packed.shape[::-1]) == packed.tolist()
    assert len(soup.select("g")) == 3 * HEADS
    for group in soup.select("g"):
        assert group["data-heads"] == group.text[1:]
        assert group["class"] == [group.text[0]]
    assert soup.select_one("svg")["aria-label"].startswith(f"{layout} {packed.shape}: q1 ")


def test_matrices_of_heads_stand_side_by_side():
    packed, soup = drawn("einsum")
    width, height = (int(soup.select_one("svg")[a]) for a in ("width", "height"))
    assert height == WIDTH * CELL
    assert width == 3 * HEADS * D_K * CELL + (3 * HEADS - 1) * CELL // 2
    lefts = [float(group.rect["x"]) for group in soup.select("g")]
    assert lefts == [i * (D_K + 0.5) * CELL for i in range(3 * HEADS)]
    assert [group.text for group in soup.select("g")] == [m[0, 0] for x in packed for m in x]


def test_a_shared_key_has_the_colours_of_all_its_heads():
    _, soup = drawn("grouped", kv_heads=1)
    heads = {group.text: group["data-heads"] for group in soup.select("g")}
    assert heads == {"q1": "1", "q2": "2", "q3": "3", "k1": "1 2 3", "v1": "1 2 3"}
    row = [rect for rect in soup.select("g.k rect") if rect["y"] == str(HEADS * D_K * CELL)]
    assert [rect["class"] for rect in row] == [["h1"], ["h2"], ["h3"]]
    assert sum(float(rect["width"]) for rect in row) == pytest.approx(WIDTH * CELL, abs=1e-3)


def test_nothing_is_styled_or_handled_inline():
    _, soup = drawn("block")
    assert not re.search(r"style|on\w+=", str(soup))
