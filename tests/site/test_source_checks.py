"""Each rule for the sources, broken once: a check that can't fail is worth nothing."""

import hashlib
import json
from pathlib import Path

import pytest
import source_checks

DOCS = Path(__file__).parents[2] / "docs"

PAGE = """---
title: Judul
description: Satu kalimat.
---

# Judul { #title }

Bobotnya `#!live A[0]`, head 1 dan token 0; $d_k$; [lain](other.md).

```python exec="1" session="page"
x = 1
```

Sebuah kalimat.

!!! note "Catatan"

    Isi.

| a | b |
|---|---|
| `#!live x` | dua |
| `#!live y` | `#!live z` |
"""


def pair(tmp_path: Path, first: str, other: str) -> list[str]:
    """What is wrong between two languages of a page."""
    one, two = tmp_path / "id/page.md", tmp_path / "en/page.md"
    for path, text in ((one, first), (two, other)):
        path.parent.mkdir()
        path.write_text(text)
    return source_checks.check_pair(one, two)


def translated(text: str = PAGE) -> str:
    """The page with the stamp that its translation carries."""
    stamp = hashlib.sha256(PAGE.encode()).hexdigest()[:12]
    return text.replace("description:", f'source: "{stamp}"\ndescription:', 1)


def test_pages_in_the_project_are_in_order():
    assert source_checks.check_source(DOCS) == []
    assert len(list(DOCS.glob("*/*.md"))) >= 18


def test_pair_in_step(tmp_path):
    assert pair(tmp_path, PAGE, translated(PAGE.replace("Bobotnya", "The weights"))) == []


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("#title", "#other", "headings"),
        ("# Judul", "## Judul", "level"),
        ("x = 1", "x = 2", "code"),
        ("A[0]", "A[1]", "inline code"),
        ("$d_k$", "$d_v$", "math"),
        ("other.md", "index.md", "links"),
        ("!!! note", "!!! tip", "layout"),
        ("| dua |", "| dua | tiga |", "layout"),
        ("| `#!live y` | `#!live z` |", "| `#!live z` | `#!live y` |", "layout"),
        ("Sebuah kalimat.\n\n", "", "layout"),
    ],
)
def test_pair_out_of_step(tmp_path, old, new, part):
    (problem,) = pair(tmp_path, PAGE, translated(PAGE.replace(old, new)))
    assert "en/page.md" in problem
    assert part in problem


def test_older_translation(tmp_path):
    stamp = hashlib.sha256(b"\n" + PAGE.encode()).hexdigest()[:12]
    problems = pair(tmp_path, "\n" + PAGE, translated())
    assert any(stamp in problem for problem in problems)


@pytest.mark.parametrize(
    "typed",
    [
        "Bobotnya 0,390.",
        "weights of 0.390",
        "sekitar 20 menit",
        "naik 5 %",
        "| a | 12 |",
        "168 parameter",
        "head 1, 61% bobotnya",
        "token 0, 3 kali lipat",
        "head 1 dan 61% bobotnya",
        "turun menjadi -5",
        "½ bagian",
        "$A_1 = 0.39$",
    ],
)
def test_typed_figure(tmp_path, typed):
    page = tmp_path / "page.md"
    page.write_text(PAGE + "\n" + typed + "\n")
    (problem,) = source_checks.check_page(page)
    assert "typed by hand" in problem
    assert f"page.md:{len(PAGE.splitlines()) + 2}" in problem


def test_display_formula_is_compared_but_not_prose(tmp_path):
    formula = "\n$$\n\\frac{1}{2.5}\n$$\n"
    page = tmp_path / "page.md"
    page.write_text(PAGE + formula)
    assert source_checks.check_page(page) == []
    problems = pair(tmp_path, PAGE + formula, translated() + formula.replace("2.5", "3.5"))
    assert any("code differs" in problem for problem in problems)


def test_typed_figure_in_the_description(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("Satu kalimat.", "Bobot 0,390."))
    assert "typed by hand" in source_checks.check_page(page)[0]


@pytest.mark.parametrize(
    "name",
    [
        "head 1",
        "token 0 dan 2",
        "tokens 0 and 1",
        "kolom 0–2",
        "baris 0, 1, dan 2",
        "`x[0]`",
        "GPT-2",
        "$W_1$",
    ],
)
def test_names_are_no_figures(tmp_path, name):
    page = tmp_path / "page.md"
    page.write_text(PAGE + "\n" + name + "\n")
    assert source_checks.check_page(page) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title: Judul\n", "", "no title"),
        ("description: Satu kalimat.\n", "", "no description"),
        (" { #title }", "", "English id"),
        ('session="page"', 'session="other"', 'session="page"'),
    ],
)
def test_page_by_itself(tmp_path, old, new, message):
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(old, new))
    (problem,) = source_checks.check_page(page)
    assert "page.md" in problem
    assert message in problem


def notebook(*cells, **metadata) -> str:
    """A notebook of (type, source) cells."""
    return json.dumps(
        {
            "cells": [{"cell_type": kind, "source": [text]} for kind, text in cells],
            "metadata": metadata,
        }
    )


CELLS = (("markdown", '# <a id="lab"></a>Lab'), ("code", "x = 1"))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (CELLS, None),
        ((CELLS[0], ("code", "x = 2")), "code"),
        ((("markdown", '# <a id="other"></a>Lab'), CELLS[1]), "anchors"),
        (CELLS[:1], "kinds of cells"),
        ((CELLS[0], ("code", "%%script true\nx = 1")), "a cell of another kind than Python"),
    ],
)
def test_notebooks(tmp_path, cells, message):
    first, other = tmp_path / "id.ipynb", tmp_path / "en.ipynb"
    first.write_text(notebook(*CELLS))
    other.write_text(notebook(*cells, source=source_checks.stamp_of(first)))
    problems = source_checks.check_pair(first, other)
    assert (problems == []) if message is None else any(message in p for p in problems)


@pytest.mark.parametrize(
    ("ours", "theirs", "fine"),
    [("id", "en", True), ("id", "id", False), ("en", "en", False), ("en", "id", False)],
)
def test_notebooks_differ_in_nothing_but_their_own_language(tmp_path, ours, theirs, fine):
    first, other = tmp_path / "id/lab.ipynb", tmp_path / "en/lab.ipynb"
    for path, language in ((first, ours), (other, theirs)):
        path.parent.mkdir()
        source = {"source": source_checks.stamp_of(first)} if path is other else {}
        path.write_text(notebook(CELLS[0], ("code", f'use("{language}")\nx = 1'), **source))
    assert (source_checks.check_pair(first, other) == []) is fine


def test_scripts_are_the_same_in_every_language(tmp_path):
    first = PAGE.replace("---\n", "---\nscripts: [a.js]\n", 1)
    stamp = hashlib.sha256(first.encode()).hexdigest()[:12]
    other = first.replace("description:", f'source: "{stamp}"\ndescription:', 1)
    (problem,) = pair(tmp_path, first, other.replace("[a.js]", "[b.js]"))
    assert "scripts in the front matter differs" in problem


def test_older_notebook(tmp_path):
    first, other = tmp_path / "id.ipynb", tmp_path / "en.ipynb"
    first.write_text(notebook(*CELLS))
    other.write_text(notebook(*CELLS, source="000000000000"))
    assert source_checks.stamp_of(first) in source_checks.check_pair(first, other)[0]


TERM = "term_id,term_en,definition_id,definition_en,mark,note\nbobot,weight,Angka.,A number.,,\n"


@pytest.fixture
def sources(tmp_path):
    """Sources in order: one page and one notebook, each in both languages."""
    book = notebook(*CELLS, title="Lab")
    stamp = hashlib.sha256(book.encode()).hexdigest()[:12]
    files = {
        "words.yml": "id: {a: b, c: {d: e}}\nen: {a: b, c: {d: e}}\n",
        "glossary.csv": TERM,
        "examples/page.py": "x = 1\n",
        "id/page.md": PAGE,
        "en/page.md": translated(),
        "id/lab.ipynb": book,
        "en/lab.ipynb": notebook(*CELLS, title="Lab", source=stamp),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_sources_in_order(sources):
    assert source_checks.check_source(sources) == []


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        ("words.yml", "en: {a: b, ", "en: {", "words.yml: en has no a"),
        ("words.yml", "en: {a: b, ", 'en: {a: "", ', "words.yml: en has no a"),
        ("words.yml", "en: {a: b, ", "en: {a: , ", "words.yml: en has no a"),
        ("glossary.csv", "A number.", "Angka.", "term 1 (bobot) is explained in one language only"),
        ("words.yml", "id: {a: b, c: {d: e}}", "id: {a: b, c: {}}", "words.yml: id has no c.d"),
        ("words.yml", "en: {a: b", "en: {a: b, f: g", "words.yml: id has no f"),
        ("glossary.csv", "A number.", "", "glossary.csv: term 1 (bobot) has no definition_en"),
        ("glossary.csv", ",weight,", ",,", "glossary.csv: term 1 (bobot) has no term_en"),
        ("glossary.csv", "bobot,", ",", "glossary.csv: term 1 () has no term_id"),
        (
            "glossary.csv",
            ",Angka.,A number.,,",
            "",
            "glossary.csv: term 1 (bobot) has no definition",
        ),
        ("id/page.md", "title: Judul", "title: a: b", "id/page.md: can't be read: ScannerError"),
        ("en/page.md", "title: Judul", "title: a: b", "en/page.md: can't be read: ScannerError"),
        ("id/page.md", "---\ntitle", "---\nwords\n---\ntitle", "id/page.md: can't be read: "),
        ("en/lab.ipynb", '"cells"', '"cells', "en/lab.ipynb: can't be read: JSONDecodeError"),
        ("id/lab.ipynb", '"cells"', '"other"', "en/lab.ipynb: can't be read: KeyError: 'cells'"),
        ("en/lab.ipynb", '"code"', '"code", "outputs": [1]', "en/lab.ipynb: holds outputs"),
    ],
)
def test_sources_out_of_order(sources, path, old, new, message):
    text = (sources / path).read_text("utf-8")
    assert old in text
    (sources / path).write_text(text.replace(old, new, 1), "utf-8")
    assert any(message in problem for problem in source_checks.check_source(sources))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("id/other.md", "docs/en/other.md: missing; each page exists in every language"),
        ("en/other.ipynb", "docs/id/other.ipynb: missing; each page exists in every language"),
        ("id/picture.png", "docs/*/picture.png: only pages (.md) and notebooks (.ipynb)"),
        ("examples/other.py", "docs/examples/other.py: no page shows it"),
    ],
)
def test_file_without_its_counterpart(sources, path, message):
    (sources / path).write_text("{}")
    assert any(problem.startswith(message) for problem in source_checks.check_source(sources))
