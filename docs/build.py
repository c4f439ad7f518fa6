"""Build the site in every language: python docs/build.py [--out site] [--serve].

Each language is one MkDocs build in a process of its own, into a scratch folder beside the site.
Only when all of them succeed and the result passes every check does it take the site's place.
"""

import argparse
import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
ADDRESS = "http://127.0.0.1:8000/"
sys.path[:0] = [str(ROOT), str(DOCS), str(DOCS / "hooks")]  # this mha, these hooks

import checks  # noqa: E402
from pymdownx.inlinehilite import InlineHiliteException  # noqa: E402
from pymdownx.superfences import SuperFencesException  # noqa: E402
from words import DEFAULT, WORDS  # noqa: E402


class BuildFailed(Exception):
    """The promise can't be kept; the message says where."""


def main() -> int:
    """Build once, or build and serve; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="where the site goes")
    parser.add_argument("--serve", action="store_true", help="serve it, rebuild on each change")
    options = parser.parse_args()
    out = options.out.resolve()
    if options.serve:
        return serve(out)
    if not attempt(out):
        return 1
    print(f"\nThe site is in {out}\nTo read it: python3 -m http.server --directory {out} 8000")
    print(f"and open {ADDRESS}")
    return 0


def attempt(out: Path) -> bool:
    """Build; on a fault say what it is, and leave the site as it was."""
    try:
        build(out)
    except BuildFailed as error:
        print(f"\nNOT BUILT, {out} is as it was:\n{error}", file=sys.stderr)
        return False
    return True


def build(out: Path) -> None:
    """Build all languages side by side, check them, put them in place."""
    refuse(checks.check_source(DOCS))
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        refuse(run_languages(scratch))
        new = scratch / DEFAULT
        for language in set(WORDS) - {DEFAULT}:
            (scratch / language).rename(new / language)
        refuse(checks.check_site(new, DOCS))
        put_in_place(new, out)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def refuse(problems: list[str]) -> None:
    """Stop at problems."""
    if problems:
        raise BuildFailed("\n".join(problems))


def run_languages(scratch: Path) -> list[str]:
    """One process for each language; return what went wrong."""
    preload()
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    receivers, processes = {}, {}
    for language in WORDS:
        receivers[language], sender = context.Pipe(duplex=False)
        processes[language] = context.Process(target=run_language, args=(language, scratch, sender))
        processes[language].start()
        sender.close()
    problems = []
    for language, process in processes.items():
        try:
            problem = receivers[language].recv()
        except EOFError:
            problem = "the build ended before its end"
        process.join()
        if problem:
            problems.append(f"{language}: {problem}")
    return problems


def preload() -> None:
    """Import once what every language needs: a forked process has it already."""
    import markdown_exec  # noqa: F401
    import material  # noqa: F401
    import mkdocstrings  # noqa: F401
    import torch  # noqa: F401


def run_language(language: str, scratch: Path, sender) -> None:
    """Build one language; send the problem, or nothing, to the parent."""
    try:
        sender.send(build_language(language, scratch))
    except (InlineHiliteException, SuperFencesException) as error:  # they name the page
        sender.send(str(error))
    except BaseException as error:  # a block may even call sys.exit()
        sender.send(f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}")


def build_language(language: str, scratch: Path) -> str:
    """One strict MkDocs build; return its errors and warnings."""
    prefix = "" if language == DEFAULT else f"{language}/"
    settings = {
        "SITE_LANGUAGE": language,
        "DOCS_DIR": str(DOCS / language),
        "SITE_DIR": str(scratch / language),
        "SITE_URL": (os.environ.get("SITE_URL") or ADDRESS).rstrip("/") + f"/{prefix}",
        "NO_MKDOCS_2_WARNING": "1",
        # The notebook's kernel: this project's mha, nobody's settings.
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_DIR": str(scratch / "no-jupyter-config"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": str(scratch / f"ipython-{language}"),
    }
    profile = scratch / f"ipython-{language}/profile_default"
    profile.mkdir(parents=True)
    quiet = '{"IPKernelApp": {"log_level": 40}}'  # it warns of its port, which only this machine sees
    (profile / "ipython_kernel_config.json").write_text(quiet)
    os.environ.update(settings)
    os.chdir(ROOT)
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config

    messages = Messages(logging.WARNING)
    logging.getLogger("mkdocs").addHandler(messages)
    try:
        mkdocs_build(load_config(str(ROOT / "mkdocs.yml"), strict=True))
    except SystemExit as error:  # MkDocs' Abort, too
        messages.texts.append(f"ended by {type(error).__name__}: {error}")
    return "\n".join(messages.texts)


class Messages(logging.Handler):
    """Keeps warnings and errors."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self.texts.append(record.getMessage())


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


def serve(out: Path) -> int:
    """Serve the site and build it again whenever something that it is made of changes."""
    import watchfiles

    attempt(out)
    out.mkdir(exist_ok=True)
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory", out]
    )
    print(f"Serving {ADDRESS}; Ctrl+C ends it.", flush=True)
    try:
        for changes in watchfiles.watch(DOCS, ROOT / "mha", ROOT / "mkdocs.yml"):
            print(
                "changed:", *sorted(os.path.relpath(path, ROOT) for _, path in changes), flush=True
            )
            attempt(out)
    finally:
        server.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
