"""Edit and Run: who gets the buttons, what they load, and how the code of a page is run."""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile

import pyodide
import pytest
import session
from bs4 import BeautifulSoup
from places import slug_of
from small_project import ROOT

BROWSER = ROOT / "docs/browser"
needs_pyodide = pytest.mark.skipif(not pyodide.installed(), reason="npm has not installed Pyodide")


def runnable(site) -> set[str]:
    """The pages with buttons."""
    pages = {path.parent for path in site.rglob("index.html") if 'id="runner"' in path.read_text()}
    return {page.relative_to(site).as_posix() for page in pages}


def test_where_npm_is_the_site_has_the_buttons(site):
    if shutil.which("npm"):
        assert {"one-head", "two-heads", "order"} <= runnable(site)
    assert runnable(site) == {
        f"{prefix}{slug_of(page)}"
        for page in (ROOT / "docs/examples").glob("*.py")
        for prefix in ("", "en/")
        if runnable(site) and not re.search("torch|MultiHeadAttention|parity", page.read_text())
    }


@needs_pyodide
def test_python_is_there_once_and_whole(site):
    content = pyodide.files()
    found = {path.name: path.read_bytes() for path in (site / "python").iterdir()}
    assert found == content
    assert not (site / "en/python").exists()
    assert list(json.loads(content["pyodide-lock.json"])["packages"]) == ["numpy"]


@needs_pyodide
def test_button_says_how_much_it_loads(site):
    content = [path.read_bytes() for path in (site / "python").iterdir()]
    raw = sum(map(len, content)) / 1e6
    packed = sum(min(len(data), len(gzip.compress(data, 6))) for data in content) / 1e6
    assert 5 < packed < raw < 30
    for page, mark in (("two-heads", ","), ("en/two-heads", ".")):
        soup = BeautifulSoup((site / page / "index.html").read_text("utf-8"), "html.parser")
        label = soup.find(id="runner").find("button").string
        assert f"({packed:.1f}–{raw:.1f} MB)".replace(".", mark) in label


@needs_pyodide
def test_wheel_is_the_one_that_pyodide_expects():
    lock = json.loads((BROWSER / "node_modules/pyodide/pyodide-lock.json").read_text("utf-8"))
    (wheel,) = (BROWSER / "vendor").glob("*.whl")
    assert wheel.name == lock["packages"]["numpy"]["file_name"]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert digest == lock["packages"]["numpy"]["sha256"]
    notice = (BROWSER / "LICENSES.txt").read_text("utf-8")
    for version in (
        f"Pyodide {lock['info']['version']},",
        f"cpython/tree/v{lock['info']['python']}",
    ):
        assert version in notice
    named = set(re.findall(r"[\w.-]+", notice))
    assert pyodide.files().keys() - named == {"session.py", "LICENSES.txt"}


def test_npm_gets_exact_versions_from_wherever_the_reader_gets_them():
    asked = json.loads((BROWSER / "package.json").read_text())["dependencies"]
    text = (BROWSER / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    assert asked == {name: packages[f"node_modules/{name}"]["version"] for name in asked}
    assert all("integrity" in package for name, package in packages.items() if name)
    assert "http" not in text
    assert "resolved" not in text


@needs_pyodide
def test_buttons_come_by_themselves_and_leave_with_torch(project):
    project.add_python()
    done = project.build()
    assert done.returncode == 0, done.stderr
    assert "npm" not in done.stdout
    page, home = (project.site / name for name in ("en/page/index.html", "en/index.html"))
    assert 'data-root="../.."' in page.read_text()
    assert "'self' 'wasm-unsafe-eval' 'sha256-" in page.read_text()
    for html in (page.read_text(), home.read_text()):
        assert "'unsafe-eval'" not in html
        assert ("wasm-unsafe-eval" in html) is ("runner.js" in html) is ('id="runner"' in html)
    assert "runner" not in home.read_text()
    project.edit("docs/examples/page.py", "value = 0.5", "import torch\nvalue = 0.5")
    assert project.build().returncode == 0
    assert "runner" not in page.read_text()


def test_without_node_there_are_no_buttons_and_the_log_says_so(project, monkeypatch, tmp_path):
    (project.add_python() / "node_modules").unlink(missing_ok=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = project.build()
    assert done.returncode == 0, done.stderr
    assert "No Edit and Run buttons on this site, as npm can't install Pyodide: " in done.stdout
    assert "runner" not in (project.site / "page/index.html").read_text()
    assert not (project.site / "python").exists()


def test_npm_that_fails_is_quoted(project, monkeypatch, tmp_path):
    (project.add_python() / "node_modules").unlink(missing_ok=True)
    (tmp_path / "npm").write_text("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    done = project.build()
    assert done.returncode == 0, done.stderr
    assert "npm can't install Pyodide: npm error code ENOTFOUND" in done.stdout


@needs_pyodide
def test_other_wheel_stops_the_build(project):
    vendor = project.add_python() / "vendor"
    (wheel,) = vendor.glob("*.whl")
    data = wheel.read_bytes()
    vendor.unlink()
    vendor.mkdir()
    (vendor / wheel.name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    done = project.build()
    assert done.returncode == 1
    assert f"{wheel.name}: Pyodide expects SHA-256" in done.stderr


def test_package_in_the_site_is_this_one(site):
    with zipfile.ZipFile(site / "mha.zip") as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    expected = {f"mha/{path.name}": path.read_bytes() for path in (ROOT / "mha").glob("*.py")}
    assert found == {**expected, "LICENSE": (ROOT / "LICENSE").read_bytes()}
    assert not (site / "en/mha.zip").exists()


def shown_by(*blocks: str) -> list[tuple[int, str, bool]]:
    """What a run shows, block by block."""
    shown = []
    session.run(list(blocks), lambda *what: shown.append(what))
    return shown


def test_blocks_are_one_script():
    shown = shown_by("x = 1\n", "print(x, __name__)\n", "import sys\nprint('e', file=sys.stderr)")
    assert shown == [(0, "", False), (1, "1 __main__\n", False), (2, "e\n", False)]
    assert shown_by("print('x' in globals())") == [(0, "False\n", False)]


def test_each_run_begins_anew():
    change = "import numpy as np\nnp.set_printoptions(precision=1)\nnp.seterr(divide='raise')\n"
    look = "import numpy as np\nprint(np.array([1 / 3]), np.geterr()['divide'])"
    assert shown_by(change, look)[1][1] == "[0.3] raise\n"
    assert shown_by(look)[0][1] == "[0.33333333] warn\n"


def test_main_comes_back():
    before = sys.modules["__main__"]
    shown_by("1 / 0")
    assert sys.modules["__main__"] is before


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\n\nnp.ones((2, 3)) @ np.ones((2, 3))\n",
        "def f(n):\n    return 1 / n\n\nf(0)\n",
        "x = [1, 2\n",
        "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
        "import mha\nmha.softmax(['a'])\n",
        "print(undefined_name)",
    ],
)
def test_error_is_what_python_prints(code, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(code)
    alone = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    (shown,) = shown_by(code)
    assert "Error" in shown[1]
    assert shown == (0, alone.stderr.replace(str(script), "<code 1>"), True)


def test_nothing_runs_after_an_error():
    shown = shown_by("print(1)", "print(2)\n1 / 0", "print(3)")
    assert [what[0] for what in shown] == [0, 1]
    assert shown[1][1].startswith("2\nTraceback (most recent call last):\n")
    assert shown[1][1].endswith("\nZeroDivisionError: division by zero\n")


def test_error_in_a_function_of_an_earlier_block_shows_its_line():
    text = shown_by("def f():\n    return 1 / 0\n", "f()\n")[1][1]
    assert '  File "<code 1>", line 2, in f\n    return 1 / 0\n' in text


def test_output_without_end_ends():
    ((_, text, failed),) = shown_by("while True:\n    print('x' * 999)")
    assert failed
    assert len(text) < session.LIMIT + 1000
    assert text.endswith("RuntimeError: more than 100000 characters of output\n")
