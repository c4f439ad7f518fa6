"""The sections of an example, and what they print and leave behind.

An example is run once for all languages: docs/build.py does it before it forks a process for each,
which then finds what `run` has kept. With it, the values are the same in every language.
"""

import ast
import contextlib
import io
import random
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import progress
from mkdocs.exceptions import PluginError

SECTION = re.compile(r"^# --8<-- \[(?P<edge>start|end):(?P<name>[\w-]+)\]$")

_KEEP_THEIR_NAMES = (
    ast.FunctionDef, ast.ClassDef, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_PRINT_OPTIONS = np.get_printoptions()


@dataclass
class Run:
    """What an example has printed, section by section, and the names that it has bound."""

    printed: dict[str, str] = field(default_factory=dict)
    values: dict = field(default_factory=lambda: {"__name__": "__main__"})
    error: str = ""  # what has ended it, and where
    said: dict[str, str] = field(default_factory=dict)  # by its page, when it ran by itself


@cache
def run(example: Path) -> Run:
    """Run an example as Python runs a script, one section after the other."""
    done, parts = Run(), located(example)
    _reset_global_state()
    forget_mha()
    for name, (first, code) in parts.items():
        output = io.StringIO()
        above = "\n" * (first - 1)  # so that a traceback has the lines of the script
        try:
            with progress.limit(example.name), contextlib.redirect_stdout(output):
                exec(compile(above + code, str(example), "exec"), done.values)
        except BaseException as error:  # it may even call sys.exit()
            done.error = f"{_place(example, error, name)}: {type(error).__name__}: {error}"
            break
        done.printed[name] = output.getvalue()
    return done


def forget_mha() -> None:
    """Import `mha` anew: it may have changed since, on the disk or by what an example did to it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "mha"]:
        del sys.modules[name]


def sections(example: Path) -> dict[str, str]:
    """The named sections of a script, in order."""
    return {name: code for name, (_, code) in located(example).items()}


def located(example: Path) -> dict[str, tuple[int, str]]:
    """The sections, each with its first line's number; code outside of them would stay unseen."""
    found: dict[str, tuple[int, str]] = {}
    name = None
    for number, line in enumerate(example.read_text("utf-8").splitlines(keepends=True), 1):
        marker = SECTION.match(line)
        if marker:
            name = marker["name"] if marker["edge"] == "start" else None
        elif name is not None:
            first, code = found.get(name, (number, ""))
            found[name] = first, code + line
        elif line.strip():
            raise PluginError(f"{example.name}:{number}: stands in no section: {line.strip()}")
    return found


def rebound(parts: dict[str, str]) -> set[str]:
    """Names that more than one section binds: their last value is not what an earlier one shows."""
    bound = [set(_bound_by(ast.parse(code))) for code in parts.values()]
    return {name for names in bound for name in names if sum(name in n for n in bound) > 1}


def _bound_by(node: ast.AST) -> Iterator[str]:
    """The names that code binds, outside of functions and comprehensions, which keep theirs."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield from (inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name))
    if not isinstance(node, _KEEP_THEIR_NAMES):
        for child in ast.iter_child_nodes(node):
            yield from _bound_by(child)


def _reset_global_state() -> None:
    """No example depends on what another has left behind."""
    import torch

    random.seed(1)
    np.random.seed(1)
    np.set_printoptions(**_PRINT_OPTIONS)
    torch.manual_seed(1)  # not the 0 that an example may have forgotten to give
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)  # for small tensors more are slower, and others use the cores, too
    torch.set_printoptions(profile="default")


def _place(example: Path, error: BaseException, name: str) -> str:
    """The line and the section of the example in which an error came up."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(example)]
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    line = f":{lines[-1]}" if lines else ""
    return f"{example.name}{line}, section {name}"
