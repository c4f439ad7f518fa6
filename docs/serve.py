"""Serve the site, and build what changes: python docs/serve.py. The browser has to reload.

A changed page, example or notebook is built alone, in both languages, and laid into the site; after
any other change everything is built. A fault is shown, and the site stays as it was; what is only
unfinished, as a page whose translation is older, is shown too, but does not keep a page from view.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import checks
import watchfiles
from build import DOCS, ROOT, attempt, build, refuse, run_languages, scratch_folder
from words import DEFAULT, WORDS


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
    whole = attempt(build, out, remind)
    out.mkdir(exist_ok=True)
    server = [sys.executable, "-m", "http.server", f"{port}", "--bind", "127.0.0.1", "-d", f"{out}"]
    with subprocess.Popen(server, stderr=subprocess.DEVNULL) as running:
        print(f"Serving {address}; Ctrl+C ends it.", flush=True)
        try:
            follow(out, whole)
        except KeyboardInterrupt:
            pass
        finally:
            running.terminate()
    return 0


def follow(out: Path, whole: bool) -> None:
    """Build what changes; everything, as long as the last attempt at everything has failed."""
    for paths in changes():
        print("changed:", *sorted(os.path.relpath(path, ROOT) for path in paths), flush=True)
        pages = touched(paths) if whole else set()
        if pages:
            done = attempt(patch, out, pages)
        else:
            if whole and (first := at_once(paths)):
                attempt(patch, out, first)
            done = whole = attempt(build, out, remind)
        print("done" if done else "failed", flush=True)


def changes() -> Iterator[list[Path]]:
    """Files of the project that have changed; folders are watched, as editors replace files."""
    folders = [ROOT, ROOT / "mha", DOCS, *(path for path in DOCS.rglob("*") if path.is_dir())]
    for found in watchfiles.watch(*folders, debounce=100, recursive=False):
        paths = [Path(path) for _, path in found]
        paths = [path for path in paths if path.parent != ROOT or path.name == "mkdocs.yml"]
        if paths:
            yield paths


def remind(unfinished: list[str]) -> None:
    """Say what a build would not accept."""
    for problem in unfinished:
        print(f"to do: {problem}")


def touched(paths: list[Path]) -> set[str]:
    """The pages that these files belong to; none if one of them belongs to all."""
    pages = set()
    for path in paths:
        if path.parent in [DOCS / language for language in WORDS]:
            pages.add(path.name)
        elif path.parent == DOCS / "examples":
            pages.add(path.stem.replace("_", "-") + ".md")
        else:
            return set()
    return pages


def at_once(paths: list[Path]) -> set[str]:
    """The pages on which a change of everything shows most; they do not wait for the rest."""
    pages = set()
    for path in paths:
        if path.parent == ROOT / "mha":
            examples = (DOCS / "examples").glob("*.py")
            pages |= {example.stem.replace("_", "-") + ".md" for example in examples}
        elif path == DOCS / "glossary.csv":
            pages.add("glossary.md")
    return pages


def patch(out: Path, pages: set[str]) -> None:
    """Build some pages and lay them into the site; the search index stays as it is."""
    remind(checks.check_source(DOCS))
    with scratch_folder(out) as scratch:
        refuse(run_languages(scratch, build_pages, pages))
        for language in WORDS:
            target = out if language == DEFAULT else out / language
            shutil.copytree(scratch / language, target, dirs_exist_ok=True)


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
