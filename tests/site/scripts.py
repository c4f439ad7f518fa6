"""What a script prints, run by a Python that has imported the large libraries and nothing else."""

import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path

from places import DOCS, EXAMPLES, slug_of
from words import DEFAULT

SHOWN = [  # the examples that have a page
    path
    for path in sorted(EXAMPLES.glob("*.py"))
    if (DOCS / DEFAULT / f"{slug_of(path)}.md").exists()
]

LIBRARIES = ["torch._dynamo"]  # also numpy and torch; imported once, not for each script
HAS_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
PROCESSES = multiprocessing.get_context("forkserver" if HAS_SERVER else "spawn")


def printed_by(script: Path, folder: Path | None = None) -> str:
    """Run a script in its folder, or another one; what it prints. It has to end well."""
    if HAS_SERVER:
        PROCESSES.set_forkserver_preload(LIBRARIES)
    with tempfile.TemporaryDirectory() as scratch:
        process = PROCESSES.Process(target=_run, args=(script, folder or script.parent, scratch))
        process.start()
        process.join(timeout=120)
        process.kill()
        output, errors = ((Path(scratch) / name).read_text("utf-8") for name in ("1", "2"))
    assert (process.exitcode, errors) == (0, "")
    return output


def _run(script: Path, folder: Path, scratch: str) -> None:
    """Do what `python script.py` does, its output in files."""
    for number in (1, 2):
        file = os.open(f"{scratch}/{number}", os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
    os.chdir(folder)
    installed = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]
    sys.path[:] = [str(script.parent), *installed]  # not what pytest has added
    runpy.run_path(str(script), run_name="__main__")
