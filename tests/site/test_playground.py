"""The element that the playground's script takes over: its data, and the tables inside."""

import json

import current
import numpy as np
import pytest
from bs4 import BeautifulSoup
from playground import Playground
from words import WORDS, writer

X, A, Y = np.array([[1.0, 0.0]]), np.array([[[1.0]], [[0.5]]]), np.array([[0.25, -1.5]])


def drawn(presets, results, language="id", **options):
    """What a page shows, parsed."""
    current.page.begin(words=WORDS[language])
    html = Playground(presets, results, **options).to_html(writer(WORDS[language]))
    return BeautifulSoup(html, "html.parser").div


@pytest.mark.parametrize("language", WORDS)
def test_script_gets_data_and_words(language):
    preset = {"X": X, "H": np.int64(2), "allow": np.array([[True]]), "scaled": False}
    root = drawn({"tie": preset}, {"tie": (A, Y, Y)}, language)
    given = json.loads(root["data-presets"])
    assert given == {"tie": {"X": [[1.0, 0.0]], "H": 2, "allow": [[True]], "scaled": False}}
    words = json.loads(root["data-words"])
    assert words["decimal"] == WORDS[language]["decimal"]
    assert words["presets"]["tie"] == WORDS[language]["playground"]["presets"]["tie"]


def test_results_stay_without_the_script():
    root = drawn({"tie": {"X": X, "H": 2}}, {"tie": (A, Y, Y)})
    assert root.select_one("#tie").get_text() == WORDS["id"]["playground"]["presets"]["tie"]
    cells = [[td.get_text() for td in table.select("td")] for table in root.select("table")]
    assert cells == [["1,000"], ["0,500"], ["0,250", "−1,500"], ["0,250", "−1,500"]]


def test_small_copy_shows_weights_and_the_way_to_the_page():
    root = drawn({"here": {"X": X, "H": 2}}, {"here": [A]}, small=True)
    assert "data-small" in root.attrs
    assert len(root.select("table")) == 2
    assert root.a["href"] == "../playground/"


def test_every_preset_has_its_result():
    with pytest.raises(ValueError, match=r"presets \['a'\] and results \['b'\]"):
        Playground({"a": {}}, {"b": ()})


def test_results_are_finite():
    with pytest.raises(ValueError, match="not a finite number"):
        drawn({"tie": {"X": X, "H": 1}}, {"tie": (np.array([[[np.nan]]]), Y, Y)})
