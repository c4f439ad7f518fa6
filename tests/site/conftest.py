"""The finished site, and small copies of the project to break."""

import hashlib
import multiprocessing
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
MADE_OF = ("docs", "mha", "mkdocs.yml")
OWN_MODULES = ("build", "checks", "words", "stamp", "mha")


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


INDEX = """---
title: Beranda
description: Halaman pertama.
SOURCE---

# Beranda { #home }

FILL [Halaman](page.md).
"""

PAGE = """---
title: Halaman
description: Halaman dengan satu contoh.
SOURCE---

# Halaman { #page }

FILL Nilainya `#!live value`, dan $d_k$. [Beranda](index.md#home).

```python exec="1" source="above" result="text" session="page" id="first"
--8<-- "page.py:first"
```
"""

EXAMPLE = """# --8<-- [start:first]
value = 0.5
print(value)
# --8<-- [end:first]
"""


class Project:
    """A small project with the real machinery, to break."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("docs/hooks", "docs/theme", "mha"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("docs/build.py", "docs/checks.py", "docs/words.yml", "mkdocs.yml"):
            shutil.copy(ROOT / name, root / name)
        config = (root / "mkdocs.yml").read_text()
        nav = re.compile(r"(?<=\nnav:\n)(  - .*\n)+")
        (root / "mkdocs.yml").write_text(nav.sub("  - index.md\n  - page.md\n", config))
        header = (ROOT / "docs/glossary.csv").read_text("utf-8").splitlines()[0]
        unused_term = ",".join(f"xyz{column}" for column in header.split(","))
        (root / "docs/glossary.csv").write_text(f"{header}\n{unused_term}\n")
        self.example = EXAMPLE
        self.page = PAGE
        self.site = root / "site"

    def write(self) -> None:
        """Put pages and example where the build looks for them."""
        (self.root / "docs/examples").mkdir(exist_ok=True)
        (self.root / "docs/examples/page.py").write_text(self.example)
        for name, text in (("index.md", INDEX), ("page.md", self.page)):
            text = text.replace("FILL", "Kata demi kata. " * 20)
            first = text.replace("SOURCE", "")
            stamp = hashlib.sha256(first.encode()).hexdigest()[:12]
            for language, source in (("id", ""), ("en", f'source: "{stamp}"\n')):
                (self.root / "docs" / language).mkdir(exist_ok=True)
                (self.root / "docs" / language / name).write_text(text.replace("SOURCE", source))

    def build(self) -> SimpleNamespace:
        """Run the project's own build.py; in a fork, which has the large imports already."""
        self.write()
        process = multiprocessing.get_context("fork").Process(target=self._run)
        process.start()
        process.join()
        stdout, stderr = ((self.root / name).read_text() for name in ("stdout", "stderr"))
        return SimpleNamespace(returncode=process.exitcode, stdout=stdout, stderr=stderr)

    def _run(self) -> None:
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(self.root / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        own = [name for name in sys.modules if name.partition(".")[0] in OWN_MODULES]
        for name in own:
            del sys.modules[name]
        sys.argv = ["build.py"]
        code = 1
        try:
            runpy.run_path(str(self.root / "docs/build.py"), run_name="__main__")
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


@pytest.fixture(scope="session", autouse=True)
def large_imports():
    """Import once what each build needs."""
    import build

    build.preload()


@pytest.fixture
def project(tmp_path) -> Project:
    """A small project of its own for each test."""
    return Project(tmp_path)
