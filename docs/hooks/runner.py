"""Edit and Run: the reader's browser runs the NumPy examples itself, in real CPython and NumPy.

Pyodide (CPython for browsers) comes from npm, NumPy's wheel for it lies in docs/browser/vendor. The
site holds them once, for all languages; a page loads nothing of them before the first Run. Where
npm is missing, the site goes without the buttons.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.utils import get_relative_url
from places import DOCS, example_of
from words import DEFAULT, WORDS, localise, prefix

BROWSER = DOCS / "browser"
PYODIDE = BROWSER / "node_modules/pyodide"
LOCK, INSTALLED = BROWSER / "package-lock.json", BROWSER / "node_modules/installed"
FROM_NPM = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")


def fetch() -> None:
    """Install Pyodide, unless it is; where that fails, say what the site will lack."""
    if installed():
        return
    npm = [shutil.which("npm") or "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        subprocess.run(npm, cwd=BROWSER, check=True, capture_output=True, text=True, timeout=300)
        shutil.copy(LOCK, INSTALLED)
    except (OSError, subprocess.SubprocessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[0]
        print(f"No Edit and Run buttons on this site, as npm can't install Pyodide: {why}")


def installed() -> bool:
    """Is Pyodide there, in the version that is asked for?"""
    return INSTALLED.exists() and INSTALLED.read_bytes() == LOCK.read_bytes()


def on_page_content(html, page, config, files):
    """Mark the pages whose example the reader can run; the theme adds the buttons."""
    example = example_of(page.file.src_uri)
    runs_with_numpy_alone = Path(config.site_dir).with_name(f"{example.stem}.numpy").exists()
    if not (installed() and runs_with_numpy_alone):  # docs/alone.py has tried it
        return
    language = config.theme["language"]
    here = prefix(language) + page.url
    what = loaded(language)
    words = {key: text.format(**what) for key, text in WORDS[language]["runner"].items()}
    root = get_relative_url(".", here)
    page.meta["runner"] = {"words": words, "root": root, "bytes": what["bytes"]}
    page.meta["scripts"] = [*page.meta.get("scripts", []), "runner.js"]
    page.meta["styles"] = [*page.meta.get("styles", []), "runner.css"]


def on_post_build(config):
    """Lay Python into the site, once."""
    if config.theme["language"] == DEFAULT and installed():
        for name, content in files().items():
            target = Path(config.site_dir, "python", name)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)


def files() -> dict[str, bytes]:
    """What a browser loads to run Python and NumPy, by name."""
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text("utf-8"))
    lock["packages"] = {"numpy": lock["packages"]["numpy"]}  # so that nothing else can load
    wheel = BROWSER / "vendor" / lock["packages"]["numpy"]["file_name"]
    expected, got = lock["packages"]["numpy"]["sha256"], hashlib.sha256(wheel.read_bytes())
    if got.hexdigest() != expected:
        raise PluginError(
            f"{wheel.name}: Pyodide expects SHA-256 {expected}, got {got.hexdigest()}"
        )
    paths = [*(PYODIDE / name for name in FROM_NPM), wheel]
    paths += [BROWSER / "session.py", BROWSER / "LICENSES.txt"]
    return {
        **{path.name: path.read_bytes() for path in paths},
        "pyodide-lock.json": json.dumps(lock).encode(),
    }


@cache
def loaded(language: str) -> dict:
    """What the first Run loads: versions, and MB with and without a server that compresses."""
    content = files()
    packed = sum(len(min(data, gzip.compress(data, 6), key=len)) for data in content.values())
    raw = sum(map(len, content.values()))
    lock = json.loads(content["pyodide-lock.json"])
    return {
        "bytes": raw,
        "packed": localise(f"{packed / 1e6:.1f}", WORDS[language]),
        "raw": localise(f"{raw / 1e6:.1f}", WORDS[language]),
        "python": lock["info"]["python"],
        "numpy": lock["packages"]["numpy"]["version"],
    }
