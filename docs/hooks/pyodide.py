"""What a browser needs to run Python and NumPy itself.

Pyodide (CPython for browsers) comes from npm, NumPy's wheel for it lies in docs/browser/vendor.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
from functools import cache

from mkdocs.exceptions import PluginError
from places import DOCS

BROWSER = DOCS / "browser"
PYODIDE = BROWSER / "node_modules/pyodide"
LOCK, INSTALLED = BROWSER / "package-lock.json", BROWSER / "node_modules/installed"
FROM_NPM = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")


def fetch() -> None:
    """Install Pyodide, unless it is; where that fails, say what the site will lack."""
    npm = [shutil.which("npm") or "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        if not installed():
            subprocess.run(
                npm, cwd=BROWSER, check=True, capture_output=True, text=True, timeout=300
            )
            shutil.copy(LOCK, INSTALLED)
    except (OSError, subprocess.SubprocessError) as error:
        why = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[0]
        print(f"No Edit and Run buttons on this site, as npm can't install Pyodide: {why}")
    else:
        weight()  # here, and not again in each language


def installed() -> bool:
    """Is Pyodide there, in the version that is asked for?"""
    return INSTALLED.exists() and INSTALLED.read_bytes() == LOCK.read_bytes()


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
def weight() -> dict:
    """Versions of Python and NumPy, and bytes with and without a server that compresses."""
    content = files()
    lock = json.loads(content["pyodide-lock.json"])
    return {
        "python": lock["info"]["python"],
        "numpy": lock["packages"]["numpy"]["version"],
        "raw": sum(map(len, content.values())),
        "packed": sum(len(min(data, gzip.compress(data, 6), key=len)) for data in content.values()),
    }
