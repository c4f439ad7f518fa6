"""Runs the code of a page from its top, in the reader's browser: Pyodide imports this file."""

import io
import linecache
import logging
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from types import ModuleType

import numpy as np

LIMIT = 100_000  # characters

_PRINT_OPTIONS, _ERRORS = np.get_printoptions(), np.geterr()


class Output(io.StringIO):
    """What a block prints; a loop that prints without end must not fill the memory."""

    def write(self, text: str) -> int:
        """Keep it, up to the limit."""
        if self.tell() + len(text) > LIMIT:
            raise RuntimeError(f"more than {LIMIT} characters of output")
        return super().write(text)


def run(blocks: list[str], show: Callable[[int, str, bool], None]) -> None:
    """Run blocks as one script, up to the first that fails; show what each prints.

    Each run begins anew: what an earlier one has left does not count.
    """
    np.set_printoptions(**_PRINT_OPTIONS)
    np.seterr(**_ERRORS)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mha"]:
        del sys.modules[name]
    logging.root.handlers.clear()
    before, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    with warnings.catch_warnings():
        try:
            run_all(blocks, show)
        finally:
            sys.modules["__main__"] = before


def run_all(blocks: list[str], show: Callable[[int, str, bool], None]) -> None:
    """Run one block after the other."""
    for number, code in enumerate(blocks):
        output = Output()
        with redirect_stdout(output), redirect_stderr(output):
            error = execute(code, f"<code {number + 1}>")
        show(number, output.getvalue() + error, bool(error))
        if error:
            break


def execute(code: str, name: str) -> str:
    """Run one block; return the error as Python prints it, or nothing."""
    linecache.cache[name] = (len(code), None, f"{code}\n".splitlines(keepends=True), name)
    try:
        exec(compile(code, name, "exec", dont_inherit=True), sys.modules["__main__"].__dict__)
    except BaseException as error:  # sys.exit(), too
        below = error.__traceback__.tb_next  # the frame of this function is not the reader's
        return "".join(traceback.format_exception(type(error), error, below))
    return ""
