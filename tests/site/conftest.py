"""The finished site, and a small project to break."""

import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from small_project import MADE_OF, ROOT, Project


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The site as `nox -s docs` left it; built anew if it is missing or older than its sources."""
    built = ROOT / "site"
    if (
        not (built / "index.html").exists()
        or _newest_source() > (built / "index.html").stat().st_mtime
    ):
        built = tmp_path_factory.mktemp("site") / "site"
        subprocess.run([sys.executable, "docs/build.py", "--out", built], cwd=ROOT, check=True)
    return built


def _newest_source() -> float:
    files = [file for name in MADE_OF for file in [ROOT / name, *(ROOT / name).rglob("*")]]
    return max(f.stat().st_mtime for f in files if f.is_file() and "__pycache__" not in f.parts)


@pytest.fixture(scope="session")
def soups(site) -> dict[str, BeautifulSoup]:
    """Each page of the site by its address, parsed."""
    return {
        path.relative_to(site).as_posix().removesuffix("index.html"): BeautifulSoup(
            path.read_text("utf-8"), "html.parser"
        )
        for path in site.rglob("*.html")
    }


@pytest.fixture(scope="session", autouse=True)
def large_imports():
    """Import once what each build needs."""
    import build

    build.preload()


@pytest.fixture(autouse=True)
def same_mha(monkeypatch):
    """What runs an example imports `mha` anew; the next test has the one that it imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "mha"]:
        monkeypatch.setitem(sys.modules, name, sys.modules[name])


@pytest.fixture
def project(tmp_path) -> Project:
    """A small project of its own for each test."""
    return Project(tmp_path)
