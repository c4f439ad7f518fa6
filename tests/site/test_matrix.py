"""The parity matrix on its page: computed in the build, whole, and within its limits."""

import csv
import io
import os
import re
from types import SimpleNamespace

import build
import matrix
import pytest
import serve
from mkdocs.exceptions import PluginError

HEADER = "against,dtype,mask,arrays,error,limit"
CELLS = f"""{HEADER}
nn.MultiheadAttention,float64,none,14,7.2e-16,1e-12
oracle,float64,causal,2,1.4e-15,1e-12
nn.MultiheadAttention,float32,none,14,3.8e-07,1e-05
oracle,float32,causal,2,9.0e-08,1e-05
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Lay cells into the scratch folder and make the page that shows them."""
    monkeypatch.setattr(matrix, "_scratch", tmp_path)
    target = tmp_path / "id/parity/index.html"
    file = SimpleNamespace(src_uri="parity.md", abs_dest_path=str(target))

    def make(text: str) -> str:
        (tmp_path / matrix.NAME).write_text(text, "utf-8")
        html = f'<a href="{matrix.NAME}" download></a>'
        matrix.on_page_content(html, SimpleNamespace(file=file), None, None)
        return target.with_name(matrix.NAME).read_text("utf-8")

    return make


def test_all_cells_lie_beside_the_page(page):
    assert page(CELLS) == CELLS


@pytest.mark.parametrize("error", ["1.1e-12", "nan", "inf"])
def test_a_cell_over_its_limit_stops_the_build(page, error):
    with pytest.raises(PluginError, match=r"^parity\.md: 1 of 4 cells .* over their limit.*oracle"):
        page(CELLS.replace("1.4e-15", error))


def test_a_matrix_that_failed_stops_the_build(page):
    with pytest.raises(ValueError, match="left no cells"):
        page("")


def test_summary():
    table = str(matrix.summary(list(csv.DictReader(io.StringIO(CELLS))), "against"))
    assert re.sub(" +", " ", table).splitlines() == [
        "against cells `float64` `float32`",
        "`nn.MultiheadAttention` 2 7.2e-16 3.8e-07",
        "oracle 2 1.4e-15 9.0e-08",
        "limit 1e-12 1e-05",
    ]


def test_a_script_that_fails_leaves_no_cells_and_nobody_waiting(tmp_path, monkeypatch):
    for code in ("raise ValueError", "print('half'); import os; raise SystemExit(1)"):
        script = tmp_path / "parity_matrix.py"
        script.write_text(code)
        monkeypatch.setattr(build, "MATRIX", script)
        with build.parity_matrix(tmp_path), pytest.raises(ValueError, match="left no cells"):
            matrix.read(tmp_path / matrix.NAME)
        (tmp_path / matrix.NAME).unlink()


@pytest.mark.parametrize(("age", "computed"), [(-1, True), (1, False), (None, True)])
def test_serve_computes_anew_only_after_a_change(age, computed, tmp_path, monkeypatch):
    out, scratch = tmp_path / "site", tmp_path / "scratch"
    cells = out / "parity" / matrix.NAME
    cells.parent.mkdir(parents=True)
    scratch.mkdir()
    if age is not None:
        sources = [build.MATRIX, *(build.ROOT / "mha").glob("*.py")]
        cells.write_text(CELLS)
        when = max(path.stat().st_mtime for path in sources) + age
        os.utime(cells, (when, when))
    monkeypatch.setattr(serve, "parity_matrix", lambda scratch: "computed")
    assert (serve.matrix_for({"parity.md"}, out, scratch) == "computed") == computed
    laid = scratch / matrix.NAME
    assert laid.exists() != computed
    assert computed or laid.stat().st_mtime == cells.stat().st_mtime
    assert serve.matrix_for({"order.md"}, out, scratch) != "computed"


def test_both_languages_offer_the_same_cells_and_show_their_summary(site, soups):
    files = [site / prefix / "parity" / matrix.NAME for prefix in ("", "en")]
    assert files[0].read_bytes() == files[1].read_bytes()
    cells = list(csv.DictReader(io.StringIO(files[0].read_text("utf-8"))))
    assert len(cells) > 2500
    assert all(float(cell["error"]) <= float(cell["limit"]) for cell in cells)
    assert len({(*cell.values(),)[:9] for cell in cells}) == len(cells)
    for prefix, decimal in (("", ","), ("en/", ".")):
        against, mask = soups[f"{prefix}parity/"].select("table.facts")
        assert len(against.select("tbody tr")) == 3 + 1
        assert len(mask.select("tbody tr")) == len({c["mask"] for c in cells}) + 1
        worst = max((c["error"] for c in cells if c["dtype"] == "float32"), key=float)
        mantissa, power = worst.replace(".", decimal).split("e")
        assert f"{mantissa} × 10−{abs(int(power))}" in against.get_text().replace("\xa0", " ")
