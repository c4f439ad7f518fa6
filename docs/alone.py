"""Each example runs once by itself, as a reader runs it: its page shows the same.

For the pages all run in one process, in which one example could change another's numbers.
"""

import ast
import atexit
import json
import multiprocessing
import os
import random
import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

import live
import numpy as np
import sections
from places import html_of
from progress import SECONDS
from site_checks import Finished
from words import WORDS

PROCESSES = multiprocessing.get_context("fork")
WITH_NUMPY_ALONE = {"numpy", "mha", *sys.stdlib_module_names}
OF_A_READER = WITH_NUMPY_ALONE | {"torch", ""}  # "" can't be had: such a script fails by itself


def run_each(examples: Iterable[Path], scratch: Path) -> list[str]:
    """Lay what they print and their pages say into the scratch folder; return what went wrong.

    Of those that get on without torch, a file NAME.numpy says so.
    """
    problems = []
    for example in examples:
        imported = imports(example)
        if foreign := imported - OF_A_READER:
            problems.append(f"{example.name}: imports {min(foreign)}, which no reader has")
        printed = scratch / f"{example.stem}.txt"
        if imported <= WITH_NUMPY_ALONE and not _run(example, printed, without="torch"):
            (scratch / f"{example.stem}.numpy").touch()
        elif problem := _run(example, printed):
            problems.append(f"{example.name}, run by itself, {problem}")
    return problems


def said(example: Path, scratch: Path) -> dict[str, str]:
    """What its page says with what it has computed by itself."""
    return json.loads((scratch / f"{example.stem}.json").read_text("utf-8"))


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
    if process.exitcode or not printed.with_suffix(".json").exists():  # it may call sys.exit()
        return f"ends with exit code {process.exitcode}\n{errors}"
    return ""


def _run_quietly(example: Path, printed: Path, without: str) -> None:
    """Run it with its errors in a file, and where a package can't be imported."""
    sys.stderr = printed.with_suffix(".err").open("w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), 2)
    library = sys.modules.get(without)
    if without:
        sys.modules[without] = None
    else:
        import torch

        torch.seed()
    random.seed()  # to anything: an example whose numbers are to stay has a seed of its own
    np.random.seed()
    names = run(example, printed)
    if without:
        sys.modules[without] = library
    found = json.dumps(live.said_with(names, example))
    printed.with_suffix(".json").write_text(found, "utf-8")


def run(script: Path, printed: Path, *arguments: str) -> dict[str, object]:
    """Do here what `python` does, with its output in a file; return the names it binds."""
    sys.stdout = printed.open("w", encoding="utf-8")
    os.dup2(sys.stdout.fileno(), 1)  # for what does not go through Python's print
    os.chdir(printed.parent)
    sys.argv = [str(script), *arguments]
    sections.forget_mha()
    atexit._clear()  # what the parent has to do at its end is not for this process
    names = runpy.run_path(str(script), run_name="__main__")
    atexit._run_exitfuncs()
    return names
