"""What made this build: versions, processor, commit."""

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

from places import DOCS


@cache  # asks git, and every page has it
def stamp() -> SimpleNamespace:
    """The versions and the machine that this build runs on."""
    return SimpleNamespace(
        python=platform.python_version(),
        numpy=version("numpy"),
        torch=version("torch"),
        processor=_processor(),
        commit=_commit(),
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """The short commit, with + where files differ from it; – where there is no git."""
    try:
        commit = _git("rev-parse", "--short=9", "HEAD")
        return commit + ("+" if _git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "–"


def _git(*words: str) -> str:
    return subprocess.check_output(
        ["git", *words], cwd=DOCS, text=True, stderr=subprocess.DEVNULL
    ).strip()
