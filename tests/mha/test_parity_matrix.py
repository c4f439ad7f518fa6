"""The parity matrix that the site shows: here with one size and float64, cell by cell."""

import importlib.util
import math
from pathlib import Path

import pytest
import torch

import mha

PATH = Path(__file__).parents[2] / "docs" / "examples" / "parity_matrix.py"


@pytest.fixture
def matrix(monkeypatch):
    spec = importlib.util.spec_from_file_location("parity_matrix", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (len(module.SIZES), list(module.LIMITS.values())) == (3, [1e-12, 1e-5])
    monkeypatch.setattr(module, "SIZES", ((6, 2),))
    monkeypatch.setattr(module, "LIMITS", {torch.float64: 1e-12})
    return module


def test_every_cell_is_within_its_limit(matrix, capsys):
    cells = matrix.cells()
    assert len(cells) * 3 * 2 >= 500
    assert all(c.error <= c.limit == 1e-12 and c.arrays for c in cells)
    assert {c.against for c in cells} == {
        "nn.MultiheadAttention",
        "scaled_dot_product_attention",
        "oracle",
    }
    assert {c.mask for c in cells} == {*matrix.MASKS, *matrix.NO_KEYS}
    assert {c.inputs for c in cells} == {"self", "cross", "kdim/vdim"}
    assert {c.mode for c in cells} == {"train", "eval", "inference"}
    assert {c.batch for c in cells} == {True, False}
    matrix.cells = lambda: cells
    assert matrix.main() == 0
    assert len(capsys.readouterr().out.splitlines()) > 30
    for error in (1.1e-12, math.nan, math.inf):
        matrix.cells = lambda error=error: [*cells, cells[0]._replace(error=error)]
        assert matrix.main() == 1


def test_a_wrong_layer_shows(matrix, monkeypatch):
    forward = mha.MultiHeadAttention.forward

    def wrong(self, *args, **kwargs):
        out, w = forward(self, *args, **kwargs)
        return out * (1 + 1e-9), w

    monkeypatch.setattr(mha.MultiHeadAttention, "forward", wrong)
    setting = torch.float64, 6, 2, "self", "causal", True
    for against in (matrix.against_module, matrix.against_kernel):
        assert all(c.error > c.limit for c in against(*setting))
    setting = torch.float64, 6, 2, "cross", "lower_right", True
    assert all(c.error > c.limit for c in matrix.against_oracle(*setting))
