"""Each example runs once by itself, as a reader runs it: its page shows the same.

For the pages all run in one process, in which one example could change another's numbers.
"""

import ast
import atexit
import hashlib
import json
import multiprocessing
import os
import random
import runpy
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path

import numpy as np
import sections
from places import html_of
from progress import SECONDS
from site_checks import Finished
from words import WORDS

PROCESSES = multiprocessing.get_context("fork")
WITH_NUMPY_ALONE = {"numpy", "mha", *sys.stdlib_module_names}


def run_examples(examples: Iterable[Path], scratch: Path) -> list[str]:
    """Lay what they print and compute into the scratch folder; return what went wrong.

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


def other_values(examples: dict[str, Path], scratch: Path) -> list[str]:
    """Where an example has computed anything else for its page than by itself."""
    problems = []
    for page, example in examples.items():
        found = values(sections.run(example).values)
        by_itself = json.loads((scratch / f"{example.stem}.json").read_text("utf-8"))
        problems += [
            f"{page}: {name} has another value when {example.name} runs by itself: no seed?"
            for name, value in by_itself.items()
            if value != found.get(name)
        ]
    return problems


def values(names: dict[str, object]) -> dict[str, str]:
    """What the names of a script stand for, short enough to be compared."""
    return {name: _short(value) for name, value in names.items() if not name.startswith("_")}


def _short(value, depth: int = 6) -> str:
    """The same text for the same numbers and texts, and for what holds them.

    Of other kinds only the type is told: what cannot be read as numbers makes no build fail.
    """
    if (torch := sys.modules.get("torch")) and isinstance(value, torch.nn.Module):
        value = value.state_dict()  # a layer is its parameters
    elif torch and isinstance(value, torch.Tensor):
        with suppress(Exception):  # sparse, without memory …
            wide = value.detach() if value.itemsize > 2 else value.detach().float()  # bfloat16
            value = wide.cpu().numpy()
    elif is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest = hashlib.sha256(value.tobytes()).hexdigest()[:9]
        return f"{value.dtype} {value.shape} {digest}"
    if depth and isinstance(value, dict):  # a list may hold itself
        return str([_short(item, depth - 1) for pair in value.items() for item in pair])
    if depth and isinstance(value, list | tuple | set | frozenset):
        items = [_short(item, depth - 1) for item in value]
        return str(items if isinstance(value, list | tuple) else sorted(items))
    plain = value is None or isinstance(value, int | float | complex | str | bytes | np.generic)
    return repr(value) if plain else type(value).__name__


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
    if without:
        sys.modules[without] = None
    else:
        import torch

        torch.seed()
    random.seed()  # to anything: an example whose numbers are to stay has a seed of its own
    np.random.seed()
    found = values(run(example, printed))
    printed.with_suffix(".json").write_text(json.dumps(found), "utf-8")


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
