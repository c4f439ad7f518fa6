"""A small project with the real machinery and few pages, to break on purpose."""

import hashlib
import json
import multiprocessing
import os
import re
import resource
import runpy
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[2]
MADE_OF = ("docs", "mha", "mkdocs.yml")  # what a site is made of
SCRIPTS = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.py")]

INDEX = f"""---
title: Beranda
description: Halaman pertama.
---

# Beranda {{ #home }}

{"Kata demi kata. " * 20} [Halaman](page.md).
"""

PAGE = f"""---
title: Halaman
description: Halaman dengan satu contoh.
---

# Halaman {{ #page }}

{"Kata demi kata. " * 20} Nilainya `#!live value`, dan $d_k$. [Beranda](index.md#home).

```python exec="1" source="above" result="text" session="page" id="first"
--8<-- "page.py:first"
```
"""

EXAMPLE = """# --8<-- [start:first]
value = 0.5
print(value)
# --8<-- [end:first]
"""


def notebook(*code: str) -> str:
    """A notebook with some words and cells of code."""
    words = ['# <a id="lab"></a>Lab\n\n' + "Kata demi kata. " * 20]
    cells = [{"cell_type": "markdown", "id": "words", "metadata": {}, "source": words}]
    for number, source in enumerate(code):
        cell = {"cell_type": "code", "id": f"code-{number}", "metadata": {}, "source": [source]}
        cells.append({**cell, "execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "title": "Lab", "description": "Sebuah notebook."}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


class Project:
    """Its pages are in `files`; `build` writes them and runs the real docs/build.py."""

    def __init__(self, root: Path) -> None:
        self.root, self.site = root, root / "site"
        self.renew_stamps, self.largest_file = True, None
        for name in ("docs/hooks", "docs/theme", "mha"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in (*SCRIPTS, "docs/words.yml", "LICENSE"):
            shutil.copy(ROOT / name, root / name)
        header = (ROOT / "docs/glossary.csv").read_text("utf-8").splitlines()[0]
        unused_term = ",".join(f"xyz{column}" for column in header.split(","))
        self.files = {
            "docs/glossary.csv": f"{header}\n{unused_term}\n",
            "docs/examples/page.py": EXAMPLE,
        }
        for language in ("id", "en"):
            self.files[f"docs/{language}/index.md"] = INDEX
            self.files[f"docs/{language}/page.md"] = PAGE

    def edit(self, path: str, old: str, new: str) -> None:
        """Change one file."""
        assert old in self.files[path], f"{path} has no {old}"
        self.files[path] = self.files[path].replace(old, new)

    def edit_page(self, old: str, new: str) -> None:
        """Change a page in both languages."""
        for language in ("id", "en"):
            self.edit(f"docs/{language}/page.md", old, new)

    def add_notebook(self, *code: str) -> None:
        """Put a notebook into both languages."""
        for language in ("id", "en"):
            self.files[f"docs/{language}/lab.ipynb"] = notebook(*code)

    def add_python(self) -> Path:
        """Give it what the Run buttons need; return the folder."""
        (self.root / "docs/browser").mkdir(parents=True)
        for path in (ROOT / "docs/browser").iterdir():  # node_modules, too, which is large
            (self.root / "docs/browser" / path.name).symlink_to(path)
        return self.root / "docs/browser"

    def build(self) -> SimpleNamespace:
        """Run the project's own build.py."""
        return self.run("docs/build.py")

    def run(self, script: str, *arguments: str) -> SimpleNamespace:
        """Run a script of the project; in a fork, which has the large imports already."""
        process = self.start(script, *arguments)
        process.join()
        stdout, stderr = ((self.root / name).read_text() for name in ("stdout", "stderr"))
        return SimpleNamespace(returncode=process.exitcode, stdout=stdout, stderr=stderr)

    def start(self, script: str = "docs/build.py", *arguments: str) -> multiprocessing.Process:
        """Begin to run a script of the project."""
        self.write()
        process = multiprocessing.get_context("fork").Process(
            target=self._run, args=(self.root / script, arguments)
        )
        process.start()
        return process

    def write(self) -> None:
        """Bring the files on the disk up to date; the others are not touched."""
        config = (ROOT / "mkdocs.yml").read_text("utf-8")
        names = sorted(
            path.rpartition("/")[2] for path in self.files if path.startswith("docs/id/")
        )
        nav = "".join(f"  - {name}\n" for name in names)
        self.files["mkdocs.yml"] = re.sub(r"(?<=\nnav:\n)( +- .*\n)+", nav, config)
        for path, text in self.files.items():
            target, text = self.root / path, self._stamped(path, text)
            target.parent.mkdir(exist_ok=True)
            if not target.exists() or target.read_text("utf-8") != text:
                target.write_text(text, "utf-8")

    def _stamped(self, path: str, text: str) -> str:
        """A translation with the state of the page that it translates."""
        first = self.files.get(path.replace("docs/en/", "docs/id/"))
        if not path.startswith("docs/en/") or first is None or not self.renew_stamps:
            return text
        stamp = hashlib.sha256(first.encode()).hexdigest()[:12]
        if path.endswith(".ipynb"):
            return text.replace('"title"', f'"source": "{stamp}", "title"')
        return text.replace("---\n", f'---\nsource: "{stamp}"\n', 1)

    def _run(self, script: Path, arguments: tuple[str, ...]) -> None:
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(self.root / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)  # line by line
        signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest-xdist ignores Ctrl+C
        if self.largest_file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest_file,) * 2)
        _forget_own_modules()
        sys.argv = [str(script), *arguments]
        sys.path.insert(0, str(self.root / "docs"))
        runpy.run_path(str(script), run_name="__main__")


def _forget_own_modules() -> None:
    """What this process has imported from the real project is not that of the small one."""
    ours = tuple(f"{ROOT / name}/" for name in ("docs", "mha"))
    for name, module in list(sys.modules.items()):
        # What the theme's files mean is kept: it is the same.
        if str(getattr(module, "__file__", None)).startswith(ours) and name != "once":
            del sys.modules[name]
