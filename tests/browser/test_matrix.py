"""All cells of the parity matrix, filtered by keyboard."""

import csv
import io
from pathlib import Path

import pytest
from accessible import violations

FILE = Path(__file__).parents[2] / "site/parity/parity-matrix.csv"


@pytest.fixture(scope="module")
def cells():
    """What the build has laid beside the page."""
    return list(csv.DictReader(io.StringIO(FILE.read_text("utf-8"))))


@pytest.mark.parametrize(("page", "of"), [("parity/", "dari"), ("en/parity/", "of")])
@pytest.mark.parametrize("width", [1280, 360])
def test_cells_can_be_filtered_by_keyboard(page, of, width, watch, cells):
    watched = watch(width)
    opened = watched.open(page)
    status, rows = opened.locator(".cells [role=status]"), opened.locator(".cells tbody tr")
    opened.locator(".cells button").focus()
    opened.keyboard.press("Enter")
    rows.first.wait_for()
    assert status.inner_text().startswith(f"{len(cells)} {of} {len(cells)} ")
    assert opened.evaluate("document.activeElement.name") == "against"  # the first filter
    opened.locator("select[name=against]").select_option("oracle")
    opened.locator("select[name=mask]").focus()
    opened.keyboard.type("lower")
    chosen = [c for c in cells if c["against"] == "oracle" and c["mask"] == "lower_right"]
    assert status.inner_text().startswith(f"{len(chosen)} {of} {len(cells)} ")
    first = max(chosen, key=lambda c: float(c["error"]) / float(c["limit"]))
    mantissa, power = first["error"].split("e")
    shown = f"{mantissa.replace('.', ',' if of == 'dari' else '.')} × 10−{-int(power)}"
    assert rows.first.locator("td").nth(10).inner_text() == shown
    more = opened.locator(".cells button")
    while more.is_visible():
        more.press("Enter")
    assert rows.count() == len(chosen)
    opened.locator("select[name=inputs]").select_option("self")
    opened.locator("select[name=H]").select_option("17")
    assert 0 < rows.count() < len(chosen)
    assert violations(opened) == ""
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert (watched.errors, watched.foreign) == ([], [])


def test_cells_that_can_not_be_loaded_are_said_to_be_missing(watch):
    opened = watch().open("en/parity/")
    opened.route("**/*.csv", lambda route: route.abort())
    opened.locator(".cells button").click()
    opened.locator(".cells [role=status]", has_text="could not be loaded").wait_for()
    assert opened.locator(".cells button").is_enabled()
