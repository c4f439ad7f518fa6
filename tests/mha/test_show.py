"""Weights, facts and ledgers, word for word: as plain text and as HTML."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

from mha.show import LEVELS, ShapeLedger, Table, WeightTable

NAN = float("nan")
NAMED = {"queries": ["a<b", "long"], "keys": ["x", "yy", "z&"]}


def test_a_table_as_text():
    table = WeightTable([[1.0, 0.0, 2.0], [NAN, 0.26, -1]], **NAMED)
    assert str(table).splitlines() == [
        "          x     yy      z&",
        "a<b   1.000  0.000   2.000",
        "long    nan  0.260  -1.000",
    ]
    for weights in (torch.ones(1, 1, requires_grad=True), torch.ones(1, 1).bfloat16()):
        assert str(WeightTable(weights)).splitlines() == [
            "         token 0",
            "token 0    1.000",
        ]
    assert WeightTable(np.ones((2, 3))).queries == ["token 0", "token 1"]
    assert WeightTable(np.ones((2, 3))).keys == ["token 0", "token 1", "token 2"]
    assert WeightTable(np.eye(2), keys=["a", "b"]).queries == ["a", "b"]
    named = WeightTable(np.ones((1, 2)), queries=["a"])
    assert (named.queries, named.keys) == (["a"], ["token 0", "token 1"])
    assert str(WeightTable(np.ones((0, 2)), queries=[], keys=["a", "b"])) == "  a  b"


def test_a_table_as_html():
    table = WeightTable([[1.0, 0.0, 2.0], [NAN, 0.26, -1]], **NAMED)
    html = (
        '<table class="weights"><thead><tr><th scope="col">query ↓ key →</th>'
        '<th scope="col">x</th><th scope="col">yy</th><th scope="col">z&amp;</th></tr></thead>'
        '<tbody><tr><th scope="row">a&lt;b</th><td class="w20">1.000</td><td class="w0">0.000</td>'
        '<td class="w20">2.000</td></tr><tr><th scope="row">long</th><td class="wx">nan</td>'
        '<td class="w5">0.260</td><td class="w0">-1.000</td></tr></tbody></table>'
    )
    assert table.to_html() == html
    read = table.to_html(lambda text: text.replace(".", ",").replace("query", "kueri"))
    assert read == html.replace(".", ",").replace("query", "kueri")
    assert table._repr_html_().endswith("</style>" + html)


def test_the_style_has_every_level():
    style = WeightTable([[1.0]])._repr_html_().partition("</style>")[0]
    assert style.startswith(
        "<style>.weights .w0{background:color-mix(in srgb,#0a9 0%,transparent)}"
    )
    assert style.endswith(".weights .w20{background:color-mix(in srgb,#0a9 100%,transparent)}")
    assert style.count("{") == LEVELS + 1


@pytest.mark.parametrize(
    ("weights", "names", "message"),
    [
        ([1.0], {}, r"weights: expected shape (L, S), got (1,)"),
        (np.ones((2, 3, 3)), {}, r"weights: expected shape (L, S), got (2, 3, 3)"),
        (np.ones((2, 3)), {"keys": ["a"]}, "expected 2 queries and 3 keys, got 1 and 1"),
        (np.ones((2, 3)), {"queries": ["a"]}, "expected 2 queries and 3 keys, got 1 and 3"),
        (np.ones((2, 3)), {"keys": []}, "expected 2 queries and 3 keys, got 0 and 0"),
    ],
)
def test_a_table_of_wrong_sizes(weights, names, message):
    with pytest.raises(ValueError, match="expected") as caught:
        WeightTable(weights, **names)
    assert message in str(caught.value)


FACTS = [
    ["`a<b`", True, np.bool_(False), 0.25, 1234, np.int64(5)],
    ["c&`d`", False, np.True_, np.float64(2), "`", "``"],
]


def test_facts_as_text():
    assert str(Table(["x", "y", "`z`", "", "n", "m"], FACTS)).splitlines() == [
        "x      y    `z`         n      m",
        "`a<b`  yes  no   0.250  1,234  5",
        "c&`d`  no   yes  2.000  `      ``",
    ]
    single = Table(["x", "y"], [["a", np.float32(1 / 3)]])
    assert str(single).splitlines() == ["x  y", "a  0.333"]
    assert '<td class="number">0.333</td>' in single.to_html()
    assert str(Table(["x"], iter([("a",), ("b",)]))).splitlines() == ["x", "a", "b"]


def test_facts_as_html():
    table = Table(["x", "y", "`z`", "", "n", "m"], FACTS)
    html = (
        '<table class="facts"><thead><tr><th scope="col">x</th><th scope="col">y</th>'
        '<th scope="col"><code>z</code></th><th scope="col" class="number"></th>'
        '<th scope="col" class="number">n</th><th scope="col" class="number">m</th></tr>'
        "</thead><tbody>"
        '<tr><th scope="row"><code>a&lt;b</code></th><td class="yes">yes</td>'
        '<td class="no">no</td><td class="number">0.250</td><td class="number">1,234</td>'
        '<td class="number">5</td></tr>'
        '<tr><th scope="row">c&amp;`d`</th><td class="no">no</td><td class="yes">yes</td>'
        '<td class="number">2.000</td><td>`</td><td>``</td></tr></tbody></table>'
    )
    assert table.to_html() == table._repr_html_() == html
    read = table.to_html(lambda text: text.replace("yes", "ya").replace(".", ";").replace("z", "Z"))
    expected = html.replace(">yes<", ">ya<").replace("0.250", "0;250").replace("2.000", "2;000")
    assert read == expected


def test_a_number_that_names_a_row_stands_at_the_right_as_its_heading_does():
    html = Table(["heads", "x"], [[12, "a"]]).to_html()
    assert '<th scope="col" class="number">heads</th>' in html
    assert '<th scope="row" class="number">12</th>' in html


def test_facts_of_a_wrong_number():
    message = r"^rows: expected 2 cells, got 1: \['b'\]$"
    with pytest.raises(ValueError, match=message):
        Table(["x", "y"], [["a", 1], ["b"]])


class Toy(nn.Module):
    """A call of every kind: submodule, parameter of its own, keyword, operator, attribute."""

    unknown = 7

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(6, 3))
        self.gain = nn.Parameter(torch.ones(3))

    def halve(self, scores):
        half = scores / 2
        return half

    def forward(self, x):
        q = self.block(x)
        total = q.sum(dim=-1, keepdim=True)
        scores = q @ q.mT
        last = torch.matmul(self.halve(scores), q * self.gain)
        zeros = torch.zeros(self.unknown)
        return total, torch.add(zeros, 1), last


ROWS = [
    ("", "x", "(B, T, d)", (1, 4, 6)),
    ("block.0", "q", "(B, T, k)", (1, 4, 3)),
    ("sum", "total", "(B, T, B)", (1, 4, 1)),
    ("mT", "", "(B, k, T)", (1, 3, 4)),
    ("@", "scores", "(B, T, T)", (1, 4, 4)),
    ("/", "half", "(B, T, T)", (1, 4, 4)),
    ("mul", "", "(B, T, k)", (1, 4, 3)),
    ("@", "last", "(B, T, k)", (1, 4, 3)),
    ("zeros", "zeros", "(?)", (7,)),
    ("add", "", "(?)", (7,)),
]
SIZES = {"B": 1, "T": 4, "d": 6, "k": 3}


def test_a_ledger_holds_every_result():
    assert ShapeLedger(Toy(), torch.ones(1, 4, 6), SIZES).rows == ROWS


def test_a_step_in_place_stands_for_what_it_was_given():
    class InPlace(nn.Module):
        def forward(self, x):
            y = x * 2
            y.add_(1)
            return y.exp()

    ledger = ShapeLedger(InPlace(), torch.ones(1, 4, 6), SIZES)
    assert [operation for operation, *_ in ledger.rows] == ["", "mul", "add_", "exp"]
    assert ledger.sources == [[], [0], [1], [2]]


def test_a_ledger_as_text_and_html():
    ledger = ShapeLedger(nn.Linear(6, 3), torch.ones(1, 4, 6), SIZES)
    assert str(ledger).splitlines() == [
        "        input  (B, T, d)  (1, 4, 6)",
        "linear         (B, T, k)  (1, 4, 3)",
    ]
    ledger.rows[1] = ("a<b", "", *ledger.rows[1][2:])
    html = (
        '<table class="ledger"><thead><tr><th scope="col">operation</th><th scope="col">name</th>'
        '<th scope="col">axes</th><th scope="col">shape</th></tr></thead><tbody>'
        "<tr><td></td><td><code>input</code></td>"
        "<td><code>(B, T, d)</code></td><td><code>(1, 4, 6)</code></td></tr>"
        "<tr><td><code>a&lt;b</code></td><td></td>"
        "<td><code>(B, T, k)</code></td><td><code>(1, 4, 3)</code></td></tr></tbody></table>"
    )
    assert ledger.to_html() == ledger._repr_html_() == html
    assert ledger.to_html(lambda text: text.replace("name", "nama")) == html.replace("name", "nama")


def test_a_ledger_leaves_the_interpreter_as_it_was():
    def profile(*_):
        pass

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        with pytest.raises(RuntimeError):
            ShapeLedger(Toy(), torch.ones(1, 4, 5), SIZES)
        found = sys.getprofile()
    finally:
        sys.setprofile(before)
    assert found is profile


def test_sizes_of_a_ledger_have_to_differ():
    with pytest.raises(ValueError, match=r"sizes: expected .* different .* got {'T': 4, 'd': 4}"):
        ShapeLedger(Toy(), torch.ones(1, 4, 4), {"T": 4, "d": 4})
