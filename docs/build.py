"""Build the site in every language: python docs/build.py [--out site].

The examples run in a process that then forks for each language: one MkDocs build with the values of
the examples, into a scratch folder beside the site; docs/alone.py runs them a second time.
Only when all of them succeed and the result passes every check does it take the site's place.
"""

import argparse
import gc
import importlib
import logging
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import Process
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "http://127.0.0.1:8000/"
sys.path[:0] = [str(ROOT), str(ROOT / "docs"), str(ROOT / "docs/hooks")]  # this mha, these hooks

import alone  # noqa: E402
import once  # noqa: E402
import pyodide  # noqa: E402
import sections  # noqa: E402
import site_checks  # noqa: E402
import source_checks  # noqa: E402
import words  # noqa: E402
from alone import PROCESSES  # noqa: E402
from mkdocs.exceptions import Abort, PluginError  # noqa: E402
from places import DOCS, example_of  # noqa: E402
from pymdownx.inlinehilite import InlineHiliteException  # noqa: E402
from pymdownx.superfences import SuperFencesException  # noqa: E402
from stamp import stamp  # noqa: E402
from words import DEFAULT, WORDS, prefix  # noqa: E402

MATRIX = DOCS / "examples/parity_matrix.py"
AT = "at.txt"  # in the scratch folder: the page whose example is running


class BuildError(Exception):
    """The promise can't be kept; the message says where."""


def main() -> int:
    """Build once; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="where the site goes")
    out = parser.parse_args().out.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the scratch folder goes, too
    if not attempt(build, out):
        return 1
    print(f"\nThe site is in {out}\nTo read it: python3 -m http.server --directory {out} 8000")
    print(f"and open {ADDRESS}")
    return 0


def attempt(build_it: Callable[..., None], out: Path, *arguments) -> bool:
    """Build; on a fault say what it is, and leave the site as it was."""
    try:
        build_it(out, *arguments)
    except Exception as error:
        expected = isinstance(error, BuildError | OSError | PluginError)
        why = error if expected else traceback.format_exc(limit=-3)
        print(f"\nNOT BUILT, {out} is as it was:\n{why}", file=sys.stderr)
        return False
    return True


def build(out: Path, on_unfinished: Callable[[list[str]], None] | None = None) -> None:
    """Build all languages side by side, check them, put them in place."""
    refuse(unfit(out))
    (on_unfinished or refuse)(source_checks.check_source(DOCS))
    out.parent.mkdir(parents=True, exist_ok=True)
    pyodide.fetch()
    with scratch_folder(out) as scratch, parity_matrix(scratch):
        make_pages(scratch, (path.name for path in (DOCS / DEFAULT).iterdir()), build_language)
        new = scratch / DEFAULT
        for language in set(WORDS) - {DEFAULT}:
            (scratch / language).rename(new / language)
        for archive in scratch.glob("*.zip"):  # hooks/offline.py has made them
            archive.rename(new / archive.name)
        refuse(site_checks.check_site(new, DOCS))
        put_in_place(new, out)


def make_pages(scratch: Path, pages: Iterable[str], job: Callable[..., None], *arguments) -> None:
    """Run the examples, make their pages in each language, hold one against the other."""
    shown = {page: example_of(page) for page in sorted(pages) if example_of(page).exists()}
    import_torch()
    problem = outcome(*start(run_and_make, shown, scratch, job, *arguments))
    if (at := scratch / AT).exists():  # its example has taken the process along
        problem = f"{at.read_text('utf-8')}: {problem}"
    refuse([problem] if problem else [])
    refuse(alone.differences(shown, scratch))


def run_and_make(shown: dict[str, Path], scratch: Path, job, *arguments) -> list[str]:
    """Run the examples, then make the pages of each language in a fork, which has their values."""
    os.chdir(ROOT)
    stamp()  # asks git once for all
    by_itself = start(alone.run_each, shown.values(), scratch)
    failed = run_examples(shown, scratch)
    if not failed:
        preload()  # here, so that the examples do not wait for it
    problem = outcome(*by_itself)
    if failed or problem:
        return failed or [problem]  # where a section fails, its line is enough
    for example in shown.values():
        sections.run(example).said = alone.said(example, scratch)
    with tempfile.TemporaryDirectory() as sockets:  # of the notebooks' kernels
        os.environ["JUPYTER_RUNTIME_DIR"] = sockets
        jobs = {name: start(make_language, name, scratch, job, *arguments) for name in WORDS}
        problems = {name: outcome(*process) for name, process in jobs.items()}
    return [f"{name}: {problem}" for name, problem in problems.items() if problem]


def run_examples(shown: dict[str, Path], scratch: Path) -> list[str]:
    """Run the examples of these pages in this process, up to one that fails."""
    for page, example in shown.items():
        (scratch / AT).write_text(page, "utf-8")
        error = sections.run(example).error
        (scratch / AT).unlink()
        if error:
            return [f"{page}: {error}"]
    return []


def unfit(out: Path) -> list[str]:
    """Why this folder can't become the site, or why this Python can't build it."""
    if sys.flags.optimize:
        return ["python -O leaves out the examples' assertions: build without it"]
    inside = any(out.is_relative_to(ROOT / name) for name in ("docs", "mha", "tests", ".git"))
    if ROOT.is_relative_to(out) or inside:
        return [f"{out}: holds the project's own files, which the site would replace"]
    if out != ROOT / "site" and out.exists() and not _is_empty_or_a_site(out):
        return [f"{out}: exists, and is no site"]
    return []


def _is_empty_or_a_site(out: Path) -> bool:
    return out.is_dir() and (not any(out.iterdir()) or (out / "sitemap.xml").exists())


@contextmanager
def scratch_folder(out: Path) -> Iterator[Path]:
    """A folder beside the site, on the same disk, gone afterwards."""
    scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def refuse(problems: list[str]) -> None:
    """Stop at problems."""
    if problems:
        raise BuildError("\n".join(problems))


@contextmanager
def parity_matrix(scratch: Path) -> Iterator[None]:
    """Compute the parity matrix once, beside the languages; their pages wait for it."""
    import_torch()
    process = PROCESSES.Process(target=run_matrix, args=(scratch,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def run_matrix(scratch: Path) -> None:
    """Lay its cells into the scratch folder; none of them, if it fails."""
    began, unfinished = time.time(), scratch / "unfinished.csv"
    unfinished.touch()
    try:
        if MATRIX.exists():
            alone.run(MATRIX, unfinished, "--csv")
    finally:
        os.utime(unfinished, (began, began))  # what changes from here on is newer
        unfinished.rename(scratch / "parity-matrix.csv")


def start(job: Callable[..., list[str] | None], *arguments) -> tuple[Process, Connection]:
    """Begin a job in a process of its own; it returns what goes wrong."""
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=report, args=(theirs, job, *arguments), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def report(pipe: Connection, job: Callable[..., list[str] | None], *arguments) -> None:
    """Do the job; send what went wrong, or nothing, to the parent."""
    messages = Messages(logging.WARNING)
    logging.getLogger("mkdocs").addHandler(messages)
    multiprocessing.current_process().daemon = False  # an example may start processes, too
    try:
        words.read_again()  # serve.py has read them before they changed
        messages.texts += job(*arguments) or []
    except (InlineHiliteException, PluginError, SuperFencesException) as error:  # they say where
        messages.texts = [str(error)]
    except Abort as error:  # MkDocs has said why
        messages.texts = messages.texts or [f"MkDocs: {error}"]
    except BaseException as error:  # a block may even call sys.exit()
        messages.texts += [f"{type(error).__name__}: {error}", traceback.format_exc(limit=-3)]
    pipe.send("\n".join(messages.texts))


def outcome(process: Process, pipe: Connection) -> str:
    """Wait until the job is done; return what went wrong, or nothing."""
    try:
        problem = pipe.recv()
    except EOFError:
        problem = "the process ended before its work was done"
    process.join(timeout=10)  # a block may have left a thread without end
    process.kill()
    return problem


@cache
def import_torch() -> None:
    """Import once what the examples need: a forked process has it already."""
    import torch._dynamo

    torch.set_num_threads(1)  # the same sums on every machine; and the languages share its cores
    gc.freeze()  # forks share this memory until something writes to it, as the collector would


@cache
def preload() -> None:
    """Import once what every language needs."""
    import_torch()
    for name in (
        "ipykernel.kernelspec",
        "material.plugins.search.plugin",
        "markdown_exec",
        "mkdocs.commands.build",
        "mkdocs_jupyter.plugin",
        "mkdocstrings_handlers.python",
        "nbconvert.preprocessors",
        "pymdownx.blocks.caption",
    ):
        importlib.import_module(name)
    once.preload()
    gc.freeze()


def make_language(language: str, scratch: Path, job: Callable[..., None], *arguments) -> None:
    """Do a job with the configuration of one language."""
    job(load_config(language, scratch), *arguments)


def load_config(language: str, scratch: Path):
    """The configuration of one language, which writes into the scratch folder."""
    from mkdocs.config import load_config

    jupyter = scratch / f"jupyter-{language}"
    jupyter.mkdir()
    os.environ.update(
        SITE_LANGUAGE=language,
        DOCS_DIR=str(DOCS / language),
        SITE_DIR=str(scratch / language),
        SITE_URL=(os.environ.get("SITE_URL") or ADDRESS).rstrip("/") + f"/{prefix(language)}",
        NO_MKDOCS_2_WARNING="1",
        OMP_NUM_THREADS="1",
        # The notebook's kernel: this project's mha, nobody's settings.
        PYTHONPATH=str(ROOT),
        JUPYTER_CONFIG_DIR=str(jupyter),
        JUPYTER_PLATFORM_DIRS="1",
        IPYTHONDIR=str(jupyter),
    )
    os.chdir(ROOT)
    return load_config(str(ROOT / "mkdocs.yml"), strict=True)


def build_language(config) -> None:
    """One strict MkDocs build."""
    from mkdocs.commands.build import build

    build(config)


class Messages(logging.Handler):
    """Keeps warnings and errors."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one, but not the announcement of one."""
        text = record.getMessage()
        if not text.endswith("':"):  # Error reading page 'one-head.md':
            self.texts.append(text)


def put_in_place(new: Path, out: Path) -> None:
    """Swap the finished site in; at no moment is a half-written one there."""
    old = new.with_name("old")
    if out.exists():
        out.rename(old)
    try:
        new.rename(out)
    except OSError:
        old.rename(out)
        raise


if __name__ == "__main__":
    sys.exit(main())
