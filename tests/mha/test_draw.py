"""Drawings, word for word: lines between tokens, and tensors as they are cut, turned and joined."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import mha
from mha.draw import HeadView, ShapeFlow
from mha.show import ShapeLedger, WeightTable

SIZES = {"B": 1, "T": 4, "H": 2, "d_k": 3, "d_model": 6}


class Layer(nn.Module):
    """Two heads: cut, turned, joined."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(6, 6) for _ in range(3))
        self.out_proj = nn.Linear(6, 6)

    def forward(self, x):
        q = self.q_proj(x).view(1, 4, 2, 3).transpose(1, 2)
        k = self.k_proj(x).view(1, 4, 2, 3).transpose(1, 2)
        v = self.v_proj(x).view(1, 4, 2, 3).transpose(1, 2)
        scores = q @ k.mT
        z = (scores @ v).transpose(1, 2).flatten(2)
        return self.out_proj(z)


@pytest.fixture(scope="module")
def flow() -> ShapeFlow:
    """The drawing of this layer."""
    return ShapeFlow(ShapeLedger(Layer(), torch.ones(1, 4, 6), SIZES))


def parsed(drawing, **options) -> ElementTree.Element:
    """A drawing is well-formed, without style attributes and identifiers."""
    svg = ElementTree.fromstring(drawing.to_html(**options))
    for element in svg.iter():
        assert not {"style", "id"} & set(element.keys())
    return svg


def test_a_head_as_lines():
    view = HeadView([[1.0, 0.0], [np.nan, 0.26]], queries=["a<b", "c"], keys=["x", "yy"])
    assert view.to_html() == (
        '<svg class="drawing head-view" role="group" font-size="14" dominant-baseline="central" '
        'width="244" height="80" viewBox="0 0 244 80" fill="currentColor" stroke="currentColor" '
        'stroke-width="0">'
        '<text x="180" y="20" class="role-k">x</text><text x="180" y="60" class="role-k">yy</text>'
        '<g class="query" tabindex="0" role="img" aria-label="a&lt;b → x 1.000; yy 0.000">'
        '<text x="24" y="20" class="role-q" text-anchor="end">a&lt;b</text>'
        '<rect y="0" width="32" height="40" fill="none"/>'
        '<line x1="32" y1="20" x2="172" y2="20" stroke-width="12.00"/>'
        '<text x="244" y="20" class="weight" text-anchor="end" visibility="hidden">1.000</text>'
        '<text x="244" y="60" class="weight" text-anchor="end" visibility="hidden">0.000</text></g>'
        '<g class="query" tabindex="0" role="img" aria-label="c → x nan; yy 0.260">'
        '<text x="24" y="60" class="role-q" text-anchor="end">c</text>'
        '<rect y="40" width="32" height="40" fill="none"/>'
        '<line x1="32" y1="60" x2="172" y2="60" stroke-width="3.12"/>'
        '<text x="244" y="20" class="weight" text-anchor="end" visibility="hidden">nan</text>'
        '<text x="244" y="60" class="weight" text-anchor="end" visibility="hidden">0.260</text></g>'
        "</svg>"
    )
    assert view._repr_html_() == view.to_html()
    assert str(view) == str(WeightTable(view.weights, queries=["a<b", "c"], keys=["x", "yy"]))


def test_a_line_is_as_thick_as_its_weight():
    weights = np.random.default_rng(0).dirichlet(np.ones(5), size=3)
    weights[1, 2] = 0
    lines = parsed(HeadView(weights, keys=list("abcde"), queries=list("xyz"))).findall("g/line")
    assert len(lines) == 3 * 5 - 1
    drawn = np.zeros((3, 5))
    for line in lines:
        row, column = (int(line.get(end)) // 40 for end in ("y1", "y2"))
        drawn[row, column] = float(line.get("stroke-width"))
    assert np.abs(drawn - 12 * weights).max() <= 0.005
    too_large = parsed(HeadView([[2.0, -1.0]], queries=["q"])).findall("g/line")
    assert [line.get("stroke-width") for line in too_large] == ["12.00"]


def test_a_head_in_another_language():
    svg = parsed(HeadView([[0.5]]), write=lambda text: text.replace(".", ","))
    assert svg.find("g").get("aria-label") == "token 0 → token 0 0,500"
    assert svg.find("g/text[@class='weight']").text == "0,500"
    assert svg.get("height") == "40"
    assert parsed(HeadView(np.ones((0, 2)), queries=[])).findall("g") == []
    assert parsed(HeadView(np.ones((2, 0)), keys=[], queries=["a", "b"])).findall("g/line") == []


def test_what_is_no_head_is_refused():
    with pytest.raises(ValueError, match=r"weights: expected shape \(L, S\), got \(3,\)"):
        HeadView(np.ones(3))


STEPS = [  # operation, name, role, depth, sources, change
    ("", "x", "", 0, [], ""),
    ("q_proj", "", "q", 1, [0], ""),
    ("view", "", "q", 2, [1], "cut"),
    ("transpose", "q", "q", 3, [2], "turned"),
    ("k_proj", "", "k", 1, [0], ""),
    ("view", "", "k", 2, [4], "cut"),
    ("transpose", "k", "k", 3, [5], "turned"),
    ("v_proj", "", "v", 1, [0], ""),
    ("view", "", "v", 2, [7], "cut"),
    ("transpose", "v", "v", 3, [8], "turned"),
    ("mT", "", "k", 4, [6], "turned"),
    ("@", "scores", "", 5, [3, 10], ""),
    ("@", "", "", 6, [9, 11], ""),
    ("transpose", "", "", 7, [12], "turned"),
    ("flatten", "z", "", 8, [13], "joined"),
    ("out_proj", "", "", 9, [14], ""),
]


def test_steps_follow_the_data(flow):
    found = [
        (operation, name, flow.role[i], flow.depth[i], flow.sources[i], flow.change(i))
        for i, (operation, name, *_) in enumerate(flow.rows)
    ]
    assert found == STEPS


def test_each_number_is_in_its_head(flow):
    split = np.zeros((1, 4, 6))
    split[..., 3:] = 1
    expected = {0: None, 1: split, 2: split.reshape(1, 4, 2, 3), 14: split, 15: None}
    expected[3] = expected[2].transpose(0, 2, 1, 3)
    expected[10] = expected[2].transpose(0, 2, 3, 1)
    for i, heads in expected.items():
        if heads is None:
            assert flow.heads(i) is None
        else:
            np.testing.assert_array_equal(flow.heads(i), heads)


def squares(group) -> dict[str, list[tuple[int, int]]]:
    """Upper left corners by filling, in units of a number, from the first one on."""
    found = {
        path.get("fill-opacity"): [
            tuple(map(int, part.split("h")[0].split())) for part in path.get("d").split("M")[1:]
        ]
        for path in group.findall("path[@class='cells']")
    }
    left, top = (min(corner[axis] for f in found.values() for corner in f) for axis in (0, 1))
    return {fill: [(x - left, y - top) for x, y in f] for fill, f in found.items()}


def test_a_tensor_is_drawn_as_it_is_nested(flow):
    groups = parsed(flow).findall("g")
    assert [len(group.findall("path")) for group in groups] == [1, *[2] * 14, 1]
    assert squares(groups[0]) == {"0.40": [(7 * c, 7 * r) for r in range(4) for c in range(6)]}
    assert squares(groups[1]) == {
        "1.00": [(7 * c, 7 * r) for r in range(4) for c in range(3)],
        "0.00": [(7 * c, 7 * r) for r in range(4) for c in range(3, 6)],
    }
    assert squares(groups[2]) == {  # a block of two rows for each token
        "1.00": [(25 * token + 7 * c, 0) for token in range(4) for c in range(3)],
        "0.00": [(25 * token + 7 * c, 7) for token in range(4) for c in range(3)],
    }
    assert squares(groups[11]) == {  # a block of tokens by tokens for each head
        "1.00": [(7 * c, 7 * r) for r in range(4) for c in range(4)],
        "0.00": [(32 + 7 * c, 7 * r) for r in range(4) for c in range(4)],
    }
    for group in groups:  # within its lane, in the middle
        corners = [
            int(part.split()[0])
            for path in group.findall("path")
            for part in path.get("d").split("M")[1:]
        ]
        middle = int(group.find("text").get("x"))
        assert min(corners) >= middle - 54
        assert abs((min(corners) + max(corners) + 5) / 2 - middle) <= 1.5


def test_lanes_and_ways(flow):
    svg = parsed(flow)
    assert (svg.get("width"), svg.get("height")) == ("324", "1026")
    roles = [group.get("class") for group in svg.findall("g")]
    assert roles == [f"role-{role}" if role else None for _, _, role, *_ in STEPS]
    xs = {"q": "54", "k": "162", "v": "270", "": "162"}
    titles = [group.find("text") for group in svg.findall("g")]
    assert [t.get("x") for t in titles] == [xs[role] for _, _, role, *_ in STEPS]
    heights = [  # a second line of words pushes the title up
        28 - 14 * bool(change) + 104 * depth for *_, depth, _, change in STEPS
    ]
    assert [int(title.get("y")) for title in titles] == heights
    ways = [path.get("d") for path in svg.findall("path")]
    assert len(ways) == sum(len(sources) for *_, sources, _ in STEPS)
    assert ways[0] == "M162 92V98H54V118"  # x to q_proj
    assert ways[-7] == "M54 404V514H162V534"  # q down its lane to the scores


def test_words_of_the_drawing(flow):
    words = {"cut": "dipotong", "turned": "ditukar", "joined": "dirangkai"}
    svg = parsed(flow, write=lambda text: words[text])
    said = svg.get("aria-label").split("; ")
    assert said[0] == "x (B, T, d_model)"
    assert said[2:4] == ["view dipotong (B, T, H, d_k)", "transpose q ditukar (B, H, T, d_k)"]
    assert said[14] == "flatten z dirangkai (B, T, d_model)"
    texts = [[text.text for text in group.findall("text")] for group in svg.findall("g")]
    assert texts[0] == ["x", "(B, T, d_model)"]
    assert texts[3] == ["transpose → q", "ditukar", "(B, H, T, d_k)"]
    assert texts[11] == ["@ → scores", "(B, H, T, T)"]
    assert flow._repr_html_() == flow.to_html()


def test_without_a_batch_and_with_too_many_axes():
    plain = ShapeLedger(nn.Linear(3, 5), torch.ones(2, 3), {"T": 2, "a": 3, "b": 5})
    assert squares(parsed(ShapeFlow(plain)).findall("g")[0]) == {
        "0.40": [(0, 0), (7, 0), (14, 0), (0, 7), (7, 7), (14, 7)]
    }
    sizes = {"B": 1, "T": 4, "H": 2, "d": 3}
    for shape in [(1, 4, 2, 3, 3), (4, 4, 2, 3)]:
        flow = ShapeFlow(ShapeLedger(nn.Identity(), torch.ones(shape), sizes))
        with pytest.raises(ValueError, match=r"at most 3 axes besides B, got \(.*T, H, d.*\)"):
            flow.to_html()


def test_a_step_that_moves_half_an_axis_is_refused():
    layer = mha.MultiHeadAttention(12, 4, num_kv_heads=2)
    sizes = {"B": 1, "T": 5, "H": 4, "H_kv": 2, "d_k": 3, "d_model": 12}
    flow = ShapeFlow(ShapeLedger(layer, torch.ones(1, 5, 12), sizes))
    wanted = r"cuts, turns or joins whole axes, got reshape from \(1, 4, 5, 3\) to \(1, 2, 10, 3\)"
    with pytest.raises(ValueError, match=wanted):
        flow.to_html()

    class Moved(nn.Module):
        def forward(self, x):
            return x.view(4, 3)  # no transposed matrix, though of the same shape

    flow = ShapeFlow(ShapeLedger(Moved(), torch.ones(3, 4), {"T": 3, "d": 4}))
    with pytest.raises(ValueError, match=r"got view from \(3, 4\) to \(4, 3\)"):
        flow.to_html()


def test_a_tensor_without_numbers_is_refused():
    ledger = ShapeLedger(Layer(), torch.ones(1, 4, 6), SIZES)
    ledger.rows[3] = ("transpose", "q", "(B, H, T, d_k)", (0, 2, 4, 3))
    with pytest.raises(ValueError, match=r"at least 1 .* of \(B, H, T, d_k\), got \(0, 2, 4, 3\)"):
        ShapeFlow(ledger)


def test_the_layer_of_the_package(flow):
    layer = ShapeFlow(ShapeLedger(mha.MultiHeadAttention(6, 2), torch.ones(1, 4, 6), SIZES))
    changes = [layer.change(i) for i in range(len(layer.rows))]
    assert [c for c in changes if c] == [*["cut", "turned"] * 3, "turned", "turned", "joined"]
    assert len(parsed(layer).findall("path")) == sum(map(len, layer.sources))
