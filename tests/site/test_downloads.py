"""Each page's code to take along: it runs in a folder with nothing but the package beside it."""

import os
import re
import shutil
import zipfile
from pathlib import Path

import nbclient
import nbformat
import pytest
import site_checks
from bs4 import BeautifulSoup
from places import html_of
from scripts import SHOWN, printed_by
from sections import sections
from small_project import ROOT

NAMES = [path.stem for path in SHOWN]


def folder_of(site: Path, name: str, prefix: str = "") -> Path:
    """Where the page of an example lies."""
    return (site / prefix / html_of(name)).parent


@pytest.fixture
def reader(site, tmp_path, monkeypatch) -> Path:
    """A folder with what `mha.zip` holds."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with zipfile.ZipFile(site / "mha.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_script_prints_what_the_page_shows(name, site, reader):
    ours, theirs = (folder_of(site, name, prefix) / f"{name}.py" for prefix in ("", "en"))
    assert ours.read_bytes() == theirs.read_bytes()
    assert "--8<--" not in ours.read_text("utf-8")
    shutil.copy(ours, reader)
    shown = site_checks.Finished(ours.with_name("index.html")).output()
    assert printed_by(reader / ours.name) == shown


@pytest.mark.parametrize("name", NAMES)
def test_notebook_has_the_code_of_the_script(name, site):
    ours, theirs = (read(folder_of(site, name, prefix), name) for prefix in ("", "en"))
    codes = [code_of(notebook) for notebook in (ours, theirs)]
    expected = sections(ROOT / f"docs/examples/{name}.py")
    assert codes[0] == codes[1] == {key: code.strip() for key, code in expected.items()}


@pytest.mark.parametrize("name", ["two_heads", "scaling"])  # the latter starts processes
def test_notebook_prints_what_the_page_shows(name, site, reader):
    ours = read(folder_of(site, name), name)
    nbclient.NotebookClient(ours, resources={"metadata": {"path": str(reader)}}).execute()
    outputs = [output for cell in ours.cells for output in cell.get("outputs", ())]
    printed = [output.text for output in outputs if output.get("name") == "stdout"]
    assert "".join(printed) == site_checks.Finished(folder_of(site, name) / "index.html").output()


@pytest.mark.parametrize("prefix", ["", "en"])
@pytest.mark.parametrize("name", NAMES)
def test_notebook_has_the_headings_of_its_page(name, prefix, site):
    folder = folder_of(site, name, prefix)
    soup = BeautifulSoup((folder / "index.html").read_text("utf-8"), "html.parser")
    address = soup.select_one("link[rel=canonical]")["href"]
    description = soup.select_one("meta[name=description]")["content"]
    texts = [cell.source for cell in read(folder, name).cells if cell.cell_type == "markdown"]
    found = [re.match(r"(#+) \[(.+)\]\((.+)#(.+)\)(?:\n\n(.+))?$", text) for text in texts]
    for level, title, page, anchor, about in (match.groups() for match in found):
        heading = soup.select_one(f"h{len(level)}#{anchor}")
        assert page == address
        assert heading.get_text().startswith(title[:5])
        assert about == (description if level == "#" else None)
    above = (block.find_previous(["h1", "h2", "h3"]) for block in soup.select(".language-python"))
    ids = dict.fromkeys([soup.h1["id"], *(heading["id"] for heading in above)])
    assert [match[4] for match in found] == list(ids)


@pytest.mark.parametrize("prefix", ["", "en"])
@pytest.mark.parametrize("name", NAMES)
def test_page_offers_them(name, prefix, site):
    folder = folder_of(site, name, prefix)
    soup = BeautifulSoup((folder / "index.html").read_text("utf-8"), "html.parser")
    links = [link["href"] for link in soup.select(".take-along a[download]")]
    assert [os.path.basename(link) for link in links] == [f"{name}.py", f"{name}.ipynb", "mha.zip"]
    assert (folder / links[2]).resolve() == (site / "mha.zip").resolve()


def read(folder: Path, name: str):
    """A notebook, after a check of its form."""
    notebook = nbformat.read(folder / f"{name}.ipynb", as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return notebook


def code_of(notebook) -> dict[str, str]:
    """Its code, by the name of the section."""
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type == "code"}
