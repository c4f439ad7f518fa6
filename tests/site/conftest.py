"""The finished site, and small copies of the project to break."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]
MADE_OF = ("docs", "mha", "mkdocs.yml")


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
        header = "term_id,term_en,definition_id,definition_en,note\n"
        (root / "docs/glossary.csv").write_text(header)
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

    def build(self) -> subprocess.CompletedProcess:
        """Run the real build."""
        self.write()
        return subprocess.run(
            [sys.executable, "docs/build.py"], cwd=self.root, capture_output=True, text=True
        )


@pytest.fixture
def project(tmp_path) -> Project:
    """A small project of its own for each test."""
    return Project(tmp_path)
