"""Serve the site, and build what changes: python docs/serve.py. The browser has to reload.

A changed page, example or notebook is built alone, in both languages, and laid into the site. A
change of `mha` or the glossary can show anywhere: every page is built, the one in view (asked for
last) first, then a few at a time. After any other change the whole site is built. A fault is shown,
and the pages stay as they were; what is only unfinished, as a page whose translation is older, is
shown too, but does not keep a page from view.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import watchfiles
from build import (
    MATRIX,
    ROOT,
    attempt,
    build,
    make_pages,
    parity_matrix,
    preload,
    scratch_folder,
    source_checks,
)
from places import DOCS, example_of, slug_of
from words import DEFAULT, WORDS, prefix

AT_A_TIME = 4  # pages; between two groups of them the server looks for new changes
ASKED_FOR = re.compile(r'"GET (?P<path>/\S*) HTTP')


def main() -> int:
    """Build, serve, and build again on each change, until Ctrl+C."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--port", type=int, default=8000, help="where the site is served")
    port = parser.parse_args().port
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        parser.error(f"port {port}: {error.strerror}; choose another one with --port")
    address, out = f"http://127.0.0.1:{port}/", ROOT / "site"
    os.environ.setdefault("SITE_URL", address)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the files' server ends, too
    changed = changes()
    next(changed)  # from here on no change is missed
    preload()  # here, and not in each build
    whole = attempt(build, out, remind)
    out.mkdir(exist_ok=True)
    server = [sys.executable, "-m", "http.server", f"{port}", "--bind", "127.0.0.1", "-d", f"{out}"]
    with tempfile.NamedTemporaryFile("w") as log, subprocess.Popen(server, stderr=log) as running:
        print(f"Serving {address}; Ctrl+C ends it.", flush=True)
        try:
            follow(changed, out, whole, Path(log.name))
        except KeyboardInterrupt:
            pass
        finally:
            running.terminate()
    return 0


def follow(changed: Iterator[list[Path]], out: Path, whole: bool, log: Path) -> None:
    """Build what changes; everything, as long as the last attempt at everything has failed."""
    stale: set[str] = set()
    failed = False
    for paths in changed:
        if paths:
            print("changed:", *sorted(os.path.relpath(path, ROOT) for path in paths), flush=True)
            pages = touched(paths)
            if pages is None or not whole:
                whole = attempt(build, out, remind)
                stale, failed = set(), not whole
            else:
                stale, failed = stale | pages, False
        elif failed or not stale:
            continue
        if stale:
            group = next_of(stale, last_asked_for(log))
            failed = not attempt(patch, out, group)
            stale = stale if failed else stale - group
            if not failed and not stale:
                remind(source_checks.check_source(DOCS))
        if failed or not stale:
            print("failed" if failed else "done", flush=True)


def changes() -> Iterator[list[Path]]:
    """Files of the project that have changed, or none for a while.

    Folders are watched, as editors replace files.
    """
    inside = (path for path in DOCS.rglob("*") if "node_modules" not in path.parts)
    folders = [ROOT, ROOT / "mha", DOCS, *(path for path in inside if path.is_dir())]
    options = {"debounce": 100, "rust_timeout": 100, "yield_on_timeout": True, "recursive": False}
    for found in watchfiles.watch(*folders, **options):
        paths = [Path(path) for _, path in found]
        paths = [path for path in paths if path.parent != ROOT or path.name == "mkdocs.yml"]
        if paths or not found:
            yield paths


def remind(unfinished: list[str]) -> None:
    """Say what a build would not accept."""
    for problem in unfinished:
        print(f"to do: {problem}")


def touched(paths: list[Path]) -> set[str] | None:
    """The names of the pages on which these files can show; None for more than pages."""
    every = {path.name for path in (DOCS / DEFAULT).iterdir()}
    pages = set()
    for path in paths:
        if path.parent in [DOCS / language for language in WORDS] and path.name in every:
            pages.add(path.name)
        elif shown := {name for name in every if example_of(name) == path}:
            pages |= shown
        elif path.parent == ROOT / "mha" or path == DOCS / "glossary.csv":
            pages |= every
        else:
            return None
    return pages


def last_asked_for(log: Path) -> str:
    """The name of the page that was read last, as the log of the server has it."""
    asked = [match["path"] for match in ASKED_FOR.finditer(log.read_text("utf-8"))]
    pages = [path.strip("/").rpartition("/")[2] for path in asked if path.endswith("/")]
    return "index" if not pages or pages[-1] in ("", *WORDS) else pages[-1]


def next_of(stale: set[str], in_view: str) -> set[str]:
    """The page in view alone, if it is stale, or else a few pages."""
    return {name for name in stale if slug_of(name) == in_view} or set(sorted(stale)[:AT_A_TIME])


def patch(out: Path, pages: set[str]) -> None:
    """Build some pages and lay them into the site; the search index stays as it is."""
    with scratch_folder(out) as scratch, matrix_for(pages, out, scratch):
        make_pages(scratch, pages, build_pages, pages)
        for language in WORDS:
            target = out / prefix(language)
            # Moved, not written over: whoever reads a page at this moment gets a whole one.
            shutil.copytree(
                scratch / language, target, dirs_exist_ok=True, copy_function=os.replace
            )


def matrix_for(pages: set[str], out: Path, scratch: Path) -> AbstractContextManager:
    """The parity matrix, computed if its page is among these and what it depends on has changed."""
    cells, sources = out / "parity/parity-matrix.csv", [MATRIX, *(ROOT / "mha").glob("*.py")]
    if "parity.md" in pages:
        if not cells.exists() or cells.stat().st_mtime <= max(p.stat().st_mtime for p in sources):
            return parity_matrix(scratch)
        shutil.copy2(cells, scratch)
    return nullcontext()


def build_pages(config, pages: set[str]) -> None:
    """Do what MkDocs' own build does, for a few pages; the others only give their titles."""
    from mkdocs.commands.build import _build_page, _populate_page, get_files, get_navigation

    config = config.plugins.on_config(config)
    config.plugins.on_pre_build(config=config)
    env = config.theme.get_env()
    files = get_files(config)
    files.add_files_from_theme(env, config)
    files = config.plugins.on_files(files, config=config)
    nav = config.plugins.on_nav(get_navigation(files, config), config=config, files=files)
    documents = files.documentation_pages()
    for file in documents:
        if file.src_uri in pages:
            _populate_page(file.page, config, files)
        else:
            file.page.read_source(config)
            if file.src_uri.endswith(".ipynb"):
                file.page.meta.update(json.loads(file.page.markdown)["metadata"])
    env = config.plugins.on_env(env, config=config, files=files)
    for file in documents:
        if file.src_uri in pages:
            _build_page(file.page, config, documents, nav, env)


if __name__ == "__main__":
    sys.exit(main())
