"""Search finds Indonesian words by their stem, and words in brackets and quotes."""

import json
import re

import pytest
import search


@pytest.mark.parametrize(
    ("query", "on_the_page"),
    [
        ("menyorot", "sorotan"),
        ("sorot", "sorotan"),
        ("disorot", "menyorot"),
        ("sorotannya", "disorot"),
        ("menuliskan", "ditulis"),
        ("pengukuran", "diukur"),
        ("mengukur", "pengukuran"),
        ("dibandingkan", "membandingkan"),
        ("pembagian", "membagi"),
    ],
)
def test_one_form_finds_the_others(query, on_the_page):
    terms = [on_the_page, *search.related(f"<p>Kata {on_the_page} saja.</p>")]
    assert any(term.startswith(query) for term in terms)


def test_plain_words_and_code_bring_nothing():
    assert search.related("<p>head token matriks</p><pre>disorot = 1</pre>") == []


def test_the_index_of_the_site_has_them(site):
    for prefix, expected in (("", True), ("en/", False)):
        text = (site / prefix / "search/search_index.json").read_text("utf-8")
        hidden = [entry for entry in json.loads(text)["docs"] if "<p hidden>" in entry["text"]]
        assert bool(hidden) is expected


@pytest.mark.parametrize("word", ["(concat)", "“scaled”", "'kelas", "[0.5,"])
def test_separator_parts_brackets_and_quotes_from_words(word, site):
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    parts = re.split(index["config"]["separator"], word)
    assert any(part and part.isalnum() for part in parts)
    assert not any(set(part) & set("()[]“”'\"") for part in parts)


def test_index_holds_no_marks_of_drawings(site):
    """The numbers beside an axis are none that a reader would look for."""
    for prefix in ("", "en/"):
        page = (site / prefix / "bench/index.html").read_text("utf-8")
        ticks = re.findall(r"<text[^>]*>(\d+)&nbsp;ms</text>", page)
        assert len(ticks) > 2
        text = (site / prefix / "search/search_index.json").read_text("utf-8")
        assert f"{ticks[0]}\xa0ms{ticks[1]}\xa0ms" not in text
        assert "nox -s bench" in text
