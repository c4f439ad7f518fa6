"""The same sources give the same bytes, in whatever order and state the pages are made."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from small_project import MADE_OF, ROOT

SHUFFLE = """
import random
from mkdocs.structure.files import Files

def on_files(files, config):
    files = list(files)
    random.Random(7).shuffle(files)
    return Files(files)
"""


def files(site: Path) -> Iterator[tuple[str, bytes]]:
    """The name and content of every file; the folders to read offline are unpacked."""
    for path in site.rglob("*"):
        name = path.relative_to(site).as_posix()
        if name.startswith("mha-"):
            with zipfile.ZipFile(path) as archive:
                yield from ((inside, archive.read(inside)) for inside in archive.namelist())
        elif path.is_file():
            yield name, path.read_bytes()


def content(site: Path) -> dict[str, bytes]:
    """Every file but what lists pages in the order in which they were made, and the commit."""
    commit = re.compile(rb"(commit )\S+?(?=\s*<)|(commit</td>\s*<td><span class=.live.>)[^<]+")
    found = {}
    for name, data in files(site):
        if "search/search_index.js" in name:
            index = data.decode().removeprefix("var __index = ").removesuffix(";")
            entries = {entry.pop("location"): entry for entry in json.loads(index)["docs"]}
            built = [location for location in entries if location.endswith("#built-with")]
            del entries[built[0]]  # names the commit
            data = json.dumps(entries, sort_keys=True).encode()
        if not name.startswith("sitemap.xml") and "/sitemap.xml" not in name:
            found[name] = commit.sub(rb"\1\2", data)
    return found


def edit(file: Path, old: str, new: str) -> None:
    """Change the one place that has this text."""
    before, after = file.read_text("utf-8").split(old)
    file.write_text(before + new + after, "utf-8")


def test_order_of_pages_and_examples_makes_no_difference(site, tmp_path):
    for name in (*MADE_OF, "LICENSE"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    (tmp_path / "docs/hooks/shuffle.py").write_text(SHUFFLE)
    hooks = "hooks:  # in this order"
    edit(tmp_path / "mkdocs.yml", hooks, f"{hooks}\n  - docs/hooks/shuffle.py")
    edit(tmp_path / "docs/build.py", "in sorted(pages)", "in sorted(pages, reverse=True)")
    subprocess.run([sys.executable, "docs/build.py"], cwd=tmp_path, check=True)
    shuffled, usual = content(tmp_path / "site"), content(site)
    assert shuffled.keys() == usual.keys()
    assert [name for name in usual if shuffled[name] != usual[name]] == []


def test_a_page_leaves_nothing_behind(project):
    prints = "import numpy as np, random, torch\nprint(np.array([1 / 3]), torch.tensor([1 / 3]))\n"
    for language in ("id", "en"):
        page = project.files[f"docs/{language}/page.md"]
        for name, title in (("a", "Awal"), ("z", "Akhir")):
            text = page.replace("page", name).replace("title: Halaman", f"title: {title}")
            text = text.replace(f"index.md#{name}", "index.md#home")
            project.files[f"docs/{language}/{name}.md"] = text
    quiet = project.files["docs/examples/page.py"].replace("print(value)\n", prints)
    spoil = (
        "np.set_printoptions(precision=1); torch.set_printoptions(precision=1)\n"
        "torch.set_default_dtype(torch.float64); np.random.seed(1); random.seed(1)\n"
    )
    project.files["docs/examples/a.py"] = quiet.replace(prints, prints + spoil)
    project.files["docs/examples/z.py"] = quiet
    done = project.build()
    assert done.returncode == 0, done.stderr
    first, last = (
        re.search(r"\[0\.33.*\)", (project.site / name / "index.html").read_text())[0]
        for name in ("a", "z")
    )
    assert first == last
