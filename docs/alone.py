"""Each example runs once by itself, as a reader runs it: what it prints is what its page shows.

The blocks of the pages share a process, in which one example could change another's numbers.
"""

import ast
import atexit
import multiprocessing
import os
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

from places import html_of
from progress import SECONDS
from sections import forget_mha
from site_checks import Finished
from words import WORDS

PROCESSES = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
WITH_NUMPY_ALONE = {"numpy", "mha", *sys.stdlib_module_names}


def run_examples(examples: Iterable[Path], scratch: Path) -> list[str]:
    """Lay what they print into the scratch folder; return what went wrong.

    Of those that get on without torch, a file NAME.numpy says so.
    """
    problems = []
    for example in examples:
        printed = scratch / f"{example.stem}.txt"
        if imports(example) <= WITH_NUMPY_ALONE and not _run(example, printed, without="torch"):
            (scratch / f"{example.stem}.numpy").touch()
        elif problem := _run(example, printed):
            problems.append(f"{example.name}, run by itself, {problem}")
    return problems


def differences(examples: dict[str, Path], scratch: Path) -> list[str]:
    """Where a finished page shows anything else than its example has printed."""
    problems = []
    for page, example in examples.items():
        printed = (scratch / f"{example.stem}.txt").read_text("utf-8")
        for language in WORDS:
            shown = Finished(scratch / language / html_of(page)).output()
            if shown != printed:
                problems.append(
                    f"{language}: {page}: the page shows\n{shown}\n"
                    f"but {example.name}, run by itself, prints\n{printed}"
                )
    return problems


def imports(example: Path) -> set[str]:
    """The packages that a script names; a broken one names none that could be had."""
    try:
        nodes = list(ast.walk(ast.parse(example.read_text("utf-8"))))
    except SyntaxError:
        return {""}
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


def _run(example: Path, printed: Path, without: str = "") -> str:
    """Run a script in a process of its own; return what went wrong, or nothing."""
    process = PROCESSES.Process(target=_run_quietly, args=(example, printed, without))
    process.start()
    try:
        process.join(SECONDS)
        ended = not process.is_alive()
    finally:
        process.kill()  # also where the build itself is told to end
        process.join()
    if not ended:
        return f"comes to no end after {SECONDS:g} s"
    errors = printed.with_suffix(".err").read_text("utf-8", errors="replace")
    return f"ends with exit code {process.exitcode}\n{errors}" if process.exitcode else ""


def _run_quietly(example: Path, printed: Path, without: str) -> None:
    """Run it with its errors in a file, and where a package can't be imported."""
    sys.stderr = printed.with_suffix(".err").open("w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), 2)
    if without:
        sys.modules[without] = None
    run(example, printed)


def run(script: Path, printed: Path, *arguments: str) -> None:
    """Do in this process what `python` does, with its output in a file."""
    sys.stdout = printed.open("w", encoding="utf-8")
    os.dup2(sys.stdout.fileno(), 1)  # for what does not go through Python's print
    os.chdir(printed.parent)
    sys.argv = [str(script), *arguments]
    forget_mha()
    atexit._clear()  # what the parent has to do at its end is not for this process
    runpy.run_path(str(script), run_name="__main__")
    atexit._run_exitfuncs()
