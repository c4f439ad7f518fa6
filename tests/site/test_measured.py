"""What was measured, on its page: whole, in the page's language, and honest about its limits."""

import json
import math
import re
from types import SimpleNamespace

import current
import measured
import pytest
import yaml
from bs4 import BeautifulSoup
from curve import Curve
from pymdownx.superfences import SuperFencesException
from small_project import ROOT
from words import WORDS, amount

WHERE = {
    "python": "3.11.7", "numpy": "2.4.6", "torch": "2.13.0", "processor": "Some <CPU>",
    "commit": "abc", "date": "2026-11-30", "system": "Linux", "cores": 2, "threads": 2,
    "rounds": 7, "blas": "NumPy: some", "load": 0.25,
}  # fmt: skip
ROW = {"against": "floor", "mask": "none", "T": 512, "size": [1, 512, 512, 8], "unit": "s"}
ROWS = [
    {**ROW, "ours": 0.05, "other": 0.1, "ratio": 0.5, "limit": 1.05},
    {**ROW, "mask": "causal", "T": 2048, "ours": 0.2, "other": 0.1, "ratio": 2.0, "limit": 1.05},
    {**ROW, "T": 2048, "against": "torch, eval", "ours": 0.2, "other": 1.6, "ratio": 1 / 8},
    {"what": "exponent", "ours": 1.0521, "limit": 1.05, "unit": ""},
]


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write results, and begin a page in a language."""
    file = tmp_path / "measured.json"
    monkeypatch.setattr(measured, "RESULTS", file)

    def begin(language: str = "id", rows=ROWS, **places) -> None:
        found = {"some": {"where": WHERE, "rows": rows}}
        found |= {name: {"where": WHERE | place, "rows": rows} for name, place in places.items()}
        file.write_text(json.dumps(found), "utf-8")
        current.page.begin(name="bench.md", words=WORDS[language])
        measured.on_page_markdown("", on("bench.md"), None, None)

    begin()
    yield begin
    current.page.begin()


def on(name: str) -> SimpleNamespace:
    """A page of this name."""
    return SimpleNamespace(file=SimpleNamespace(src_uri=name))


def drawn(name: str, source: str) -> BeautifulSoup:
    """What a fence becomes."""
    config = SimpleNamespace(mdx_configs={})
    measured.on_config(config)
    fences = config.mdx_configs["pymdownx.superfences"]["custom_fences"]
    (write,) = (fence["format"] for fence in fences if fence["name"] == name)
    return BeautifulSoup(write(source, name, name, {}, None), "html.parser")


def texts(soup, selector: str) -> list[str]:
    """The text of each element, with plain spaces."""
    return [
        element.get_text().replace("\N{NO-BREAK SPACE}", " ") for element in soup.select(selector)
    ]


def digits(soup) -> str:
    """What has to be the same in every language."""
    return re.sub(r"\D", "", soup.get_text() + str(soup.select_one("[aria-label]")))


TABLE = "{part: some, only: {what: null}, by: [size, mask, against]}"
CURVE = "{part: some, only: {what: null}}"


def test_a_table_is_in_the_language_of_its_page(page):
    soup = drawn("measured", TABLE)
    columns = ["mask", "terhadap", "rasio", "batas", "tercapai", "kita", "pembanding"]
    assert texts(soup, "thead th") == ["B, T, d_model, H", *columns]
    first, second, third = (texts(row, "td") for row in soup.select("tbody tr"))
    assert first == ["tanpa", "versi polos", "0,50", "1,05", "ya", "50,0 ms", "100 ms"]
    assert second[2:5] == ["2,00", "1,05", "tidak"]
    assert third[1:] == ["torch (eval)", "0,12", "–", "–", "200 ms", "1.600 ms"]
    assert texts(soup, "tbody th") == ["1, 512, 512, 8"] * 3
    page("en")
    english = drawn("measured", TABLE)
    first = texts(english.select_one("tbody tr"), "td")
    assert first == ["none", "floor", "0.50", "1.05", "yes", "50.0 ms", "100 ms"]
    assert digits(english) == digits(soup)


def test_a_table_says_how_it_was_measured(page):
    caption = drawn("measured", TABLE).figcaption
    assert caption.get_text() == "nox -s bench -- some: diukur 2026-11-30, beban mesin 0,2"
    assert texts(caption, ".live") == ["2026-11-30", "0,2"]


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        (
            {"ours": 1.0, "other": 1.0, "ratio": 1.0501, "limit": 1.05},
            ["1,0501", "1,0500", "tidak"],
        ),
        ({"ours": 1.0, "other": 1.0, "ratio": 1.0499, "limit": 1.05}, ["1,05", "1,05", "ya"]),
        ({"ours": 1.0, "other": 1.0, "ratio": 1.05, "limit": 1.05}, ["1,05", "1,05", "ya"]),
        ({"ours": 1.0004, "limit": 1.0}, ["1,0004", "1,0000", "tidak"]),
        ({"ours": 0.0, "limit": 0.0}, ["0", "0", "ya"]),
        ({"ours": 118_000, "limit": 120_000, "unit": "B"}, ["115 KiB", "117 KiB", "ya"]),
        ({"ours": 120_100, "limit": 120_000, "unit": "B"}, ["117,3 KiB", "117,2 KiB", "tidak"]),
        ({"share": 0.7254}, ["72,5%"]),
    ],
)
def test_no_rounding_hides_whether_a_limit_was_met(row, shown, page):
    page(rows=[{"page": "lab", "unit": "", **row}])
    cells = texts(drawn("measured", "{part: some, by: [page]}"), "tbody td")
    assert cells[: len(shown)] == shown


def test_what_is_no_word_is_code_and_comes_from_nobody_else(page):
    page(rows=[{"operation": "aten::<mm>", "calls": 1234, "share": 0.5}])
    soup = drawn("measured", "{part: some, by: [operation, calls]}")
    assert texts(soup, "th code") == ["aten::<mm>"]
    assert texts(soup, "td.number") == ["1.234", "50,0%"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.234, "s", "1.23 s"),
        (0.0123, "s", "12.3 ms"),
        (4.5e-6, "s", "4.50 µs"),
        (4.5e-9, "s", "0.00450 µs"),
        (0, "s", "0 µs"),
        (1234.5, "s", "1,234 s"),
        (1536, "B", "1.50 KiB"),
        (5 * 2**30, "B", "5.00 GiB"),
    ],
)
def test_amounts(value, unit, text):
    assert amount(value, unit).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("measured", "{part: other, by: [T]}", "has no part 'other'; .* nox -s bench -- other"),
        ("measured", "{part: some, only: {T: 513}, by: [T]}", "no row of some has {'T': 513}"),
        ("measured", "{part: some, by: [T]}", "'T'"),  # the exponent has none
        ("measured", "{part: some, by: [size], limit: 1}", "unexpected .* 'limit'"),
        ("measured", "{part: some}", "missing .* 'by'"),
        ("measured", "part: some: by", "mapping values"),
        ("curve", "{part: some}", "'T'"),
        ("curve", "{part: some, only: {what: exponent}}", "'T'"),
        ("curve", "{part: some, only: {T: 512}}", r"two lengths or more, got \[512\]"),
        ("where", "{part: some}", "unexpected .* 'part'"),
    ],
)
def test_a_fence_that_can_not_be_drawn_stops_the_build(name, source, why, page):
    message = rf"^bench\.md: ```{name} {re.escape(source)}: .*{why}"
    with pytest.raises(SuperFencesException, match=f"(?s){message}"):
        drawn(name, source)


@pytest.mark.parametrize("name", ["measured", "curve"])
@pytest.mark.parametrize("column", ["ours", "ratio"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_finite_number_stops_the_build(name, column, value, page):
    page(rows=[{**ROWS[0], column: value}])
    source = TABLE if name == "measured" else CURVE
    with pytest.raises(SuperFencesException, match=f"{column} is {value}, not a finite number"):
        drawn(name, source)


def test_without_results_the_build_stops(page):
    measured.RESULTS.unlink()
    for name, source in (("measured", TABLE), ("curve", CURVE), ("where", "")):
        with pytest.raises(SuperFencesException, match=rf"^bench\.md: ```{name} .*No such file"):
            drawn(name, source)


def test_sentences_have_the_values_of_a_column(page):
    values = current.page.given["measured"]
    assert values("some", "ratio") == [0.5, 2.0, 1 / 8]
    assert values("some", "ratio", against="floor", mask="none") == [0.5]
    assert values("some", "met") == [True, False, False]
    for part, column, only in (
        ("some", "share", {}),
        ("some", "ratio", {"mask": "odd"}),
        ("other", "ratio", {}),
    ):
        with pytest.raises(ValueError, match=r"no (row|part)"):
            values(part, column, **only)


def test_no_other_page_shows_what_its_build_has_not_computed(page):
    current.page.begin(name="cost.md", words=WORDS["id"])
    measured.on_page_markdown("", on("cost.md"), None, None)
    assert "measured" not in current.page.given
    for name, source in (("measured", TABLE), ("curve", CURVE), ("where", "")):
        with pytest.raises(SuperFencesException, match=rf"^cost\.md: ```{name} .*only bench\.md"):
            drawn(name, source)


def test_one_line_says_where_as_long_as_all_was_measured_there(page):
    page(other={"load": 3.5})
    (line,) = texts(drawn("where", ""), "p")
    assert "Some <CPU> (Linux, 2 core), 2 thread" in line
    assert "beban mesin 0,2–3,5" in line
    assert not drawn("where", "").select("code")
    page("en", other={"load": 3.5, "commit": "def"})
    first, second = texts(drawn("where", ""), "p")
    assert re.match("some: Measured .* load 0.2; .* commit abc", first)
    assert re.match("other: Measured .* load 3.5; .* commit def", second)


def test_a_curve_draws_and_says_every_point(page):
    soup = drawn("curve", CURVE)
    assert soup.svg["aria-label"].replace("\N{NO-BREAK SPACE}", " ") == (
        "waktu, T. mha: 512 → 50,0 ms; 2.048 → 200 ms. "
        "versi polos: 512 → 100 ms; 2.048 → 100 ms. torch (eval): 2.048 → 1,60 s"
    )
    groups = soup.select("g")
    assert [group["class"] for group in groups] == [["line0"], ["line1"], ["line2"]]
    assert [len(group.select(".mark")) for group in groups] == [3, 3, 2]  # with that of the name
    page("en")
    assert digits(drawn("curve", CURVE)) == digits(soup)


def test_equal_steps_of_an_axis_are_equal_factors():
    curve = Curve({"a": {1: 0.001, 2: 0.004, 8: 0.016}}, "s", "time")
    assert curve.x(2) - curve.x(1) == pytest.approx(curve.x(4) - curve.x(2))
    assert curve.y(0.001) - curve.y(0.004) == pytest.approx(curve.y(0.004) - curve.y(0.016))
    assert curve.y(0.001) > curve.y(0.004)  # downwards


@pytest.mark.parametrize(
    ("lowest", "highest", "unit", "ticks"),
    [
        (0.05, 0.4, "s", [0.05, 0.1, 0.2, 0.5]),
        (0.001, 5, "s", [0.001, 0.01, 0.1, 1.0]),
        (3 * 2**20, 700 * 2**20, "B", [n * 2**20 for n in (5, 10, 20, 50, 100, 200, 500)]),
    ],
)
def test_ticks_are_round_and_few(lowest, highest, unit, ticks):
    assert Curve({"a": {1: lowest, 2: highest}}, unit, "").ticks() == pytest.approx(ticks)


def test_an_amount_of_nothing_has_no_place_on_a_logarithmic_axis(page):
    page(rows=[{**ROWS[0], "ours": 0.0}, ROWS[1]])
    with pytest.raises(SuperFencesException, match=r"0\.0 has no place on a logarithmic axis"):
        drawn("curve", CURVE)


def test_a_fourth_line_would_have_no_look_of_its_own():
    lines = {name: {1: 1.0, 2: 2.0} for name in "abcd"}
    with pytest.raises(ValueError, match="at most 3 lines, got 4: a, b, c, d"):
        Curve(lines, "s", "")


def test_nothing_is_styled_or_handled_inline(page):
    assert not re.search(r"\sstyle|\son\w+=", str(drawn("curve", CURVE)))


def test_names_that_contain_html_are_text(page):
    page(rows=[{**ROWS[0], "against": 'a"<b'}, {**ROWS[0], "T": 1024}])
    assert 'a"<b' in drawn("curve", CURVE).svg["aria-label"]
    assert texts(drawn("curve", CURVE), "g text") == ["mha", 'a"<b', "versi polos"]


def fences(language: str) -> list[dict]:
    """What the page `bench` shows."""
    text = (ROOT / f"docs/{language}/bench.md").read_text("utf-8")
    found = re.findall(r"^ *```(?:measured|curve)\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(source) for source in found]


def test_the_page_shows_each_row_that_was_measured():
    for name, part in measured.parts().items():
        shown = [f.get("only", {}) for f in fences("id") if f["part"] == name and "by" in f]
        for row in part["rows"]:
            assert any(all(row.get(k) == v for k, v in only.items()) for only in shown), (name, row)


def test_rows_of_a_table_can_be_told_apart():
    for fence in fences("id"):
        if "by" in fence:
            rows = measured.rows_of(fence["part"], fence.get("only", {}))
            names = [tuple(str(row[name]) for name in fence["by"]) for row in rows]
            assert len(set(names)) == len(names), fence


@pytest.mark.parametrize("prefix", ["", "en/"])
def test_the_finished_page_says_what_was_missed(prefix, soups):
    soup = soups[f"{prefix}bench/"]
    tables = [fence for fence in fences("id") if "by" in fence]
    assert len(soup.select("article figure > table.facts")) == len(tables)
    assert len(soup.select("article svg.curve")) == len(fences("id")) - len(tables)
    missed = [row for f in tables for row in measured.rows_of(f["part"], f.get("only", {}))]
    missed = [row for row in missed if row.get("met") is False]
    no = {"": "tidak", "en/": "no"}[prefix]
    assert [td.text for td in soup.select("td.no")] == [no] * len(missed)
    date = next(iter(measured.parts().values()))["where"]["date"]
    assert soup.select(".live", string=date)
