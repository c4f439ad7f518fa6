"""Runs each page's example, section by section, and holds the page against it.

A page `two-heads.md` belongs to `docs/examples/two_heads.py`. It shows every section of that
script, in order, as blocks that markdown-exec runs. What they print has to equal what the script
prints when it is run by itself (docs/alone.py).
"""

import ast
import contextlib
import io
import random
import re
import sys
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import current
import markdown_exec
import numpy as np
from mkdocs.exceptions import PluginError
from places import EXAMPLES, example_of
from pymdownx.superfences import SuperFencesException
from selectolax.lexbor import LexborHTMLParser
from stamp import stamp
from words import WORDS

SECTION = re.compile(r"^# --8<-- \[(?P<edge>start|end):(?P<name>[\w-]+)\]$")

_KEEP_THEIR_NAMES = (
    ast.FunctionDef, ast.ClassDef, ast.Lambda,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
_PRINT_OPTIONS = np.get_printoptions()


def on_config(config):
    """Let markdown-exec run a block as Python runs a script, and keep what it leaves."""
    markdown_exec.formatters["python"] = partial(
        markdown_exec.base_format, language="python", run=run_block
    )


def on_page_markdown(markdown, page, config, files):
    """Start the page from a known state."""
    current.page.begin(name=page.file.src_uri, words=WORDS[config.theme["language"]])
    example = example_of(page.file.src_uri)
    current.page.sections = located(example) if example.exists() else {}
    parts = {name: code for name, (_, code) in current.page.sections.items()}
    _reset_global_state()
    current.page.values["__name__"] = "__main__"
    current.page.given = {"built": stamp(), **_drawings()}
    with contextlib.suppress(SyntaxError):  # its block will say so, and where
        current.page.rebound = rebound(parts)
    for name in page.meta.get("listing", []):
        if name not in parts:
            raise PluginError(f"{page.file.src_uri}: {example.name} has no section {name}")
        current.page.listings[name] = parts[name].splitlines()


def on_page_content(html, page, config, files):
    """Stop where the page says anything else than its example does."""
    if page.file.src_uri.endswith(".ipynb"):
        return
    content, example = LexborHTMLParser(html), example_of(page.file.src_uri)
    code = [block.text() for block in content.css(".language-python code")]
    expected = list(sections(example).values()) if example.exists() else []
    if [block.rstrip() for block in code] != [section.rstrip() for section in expected]:
        raise PluginError(
            f"{page.file.src_uri}: its Python blocks are not the sections of {example.name}, "
            f"each of them once and in order: {list(sections(example)) if expected else []}"
        )
    for name, value in current.page.values.items():
        if type(value).__name__ in ("Comparison", "ParityReport") and not value:
            raise PluginError(f"{page.file.src_uri}: {name} is not ok: {value}")


def run_block(code: str, id: str = "", **options) -> str:
    """Run the next section, after those above it; return what it prints."""
    example, output = example_of(current.page.name), io.StringIO()
    name, (first, section) = next(iter(current.page.sections.items()), ("", (1, "")))
    if (name, section.rstrip()) != (id, code.rstrip()):  # also a block that the page does not show
        raise SuperFencesException(
            f"{current.page.name}: executes {id or code!r}; expected the sections of "
            f"{example.name}, each of them once and in order, now {name or 'none'}"
        )
    del current.page.sections[name]
    sys.path.insert(0, str(EXAMPLES))  # as `python docs/examples/one_head.py` has it
    try:
        above = "\n" * (first - 1)  # so that a traceback has the lines of the script
        with contextlib.redirect_stdout(output):
            exec(compile(above + code, str(example), "exec"), current.page.values)
    except BaseException as error:  # it may even call sys.exit()
        where = f"{current.page.name}: {_place(example, error, id)}"
        raise SuperFencesException(f"{where}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(EXAMPLES))
    return output.getvalue()


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
    if not isinstance(node, _KEEP_THEIR_NAMES):
        for child in ast.iter_child_nodes(node):
            yield from _bound_by(child)


def _reset_global_state() -> None:
    """No page depends on what another has left behind."""
    import torch

    random.seed(1)
    np.random.seed(1)
    np.set_printoptions(**_PRINT_OPTIONS)
    torch.manual_seed(1)  # not the 0 that an example may have forgotten to give
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)  # for small tensors more are slower, and two builds share the cores
    torch.set_printoptions(profile="default")


def _drawings() -> dict:
    """What a fence `live` draws with."""
    from headgrid import HeadGrid
    from playground import Playground

    from mha.draw import HeadView, ShapeFlow
    from mha.show import ShapeLedger, Table, WeightTable

    drawings = HeadGrid, HeadView, Playground, ShapeFlow, ShapeLedger, Table, WeightTable
    return {drawing.__name__: drawing for drawing in drawings}


def _place(example: Path, error: BaseException, name: str) -> str:
    """The line and the section of the example in which an error came up."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(example)]
    if isinstance(error, SyntaxError):
        lines.append(error.lineno)
    line = f":{lines[-1]}" if lines else ""
    return f"{example.name}{line}, section {name or '–'}"
