"""What the build of the site costs, beside a plain MkDocs build and Sphinx.

The floor is `mkdocs build` of both languages side by side, as the build has them, with the stock
theme, without our hooks and with nothing executed, and then one `import torch`.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
import venv
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import yaml
from mkdocs.utils.yaml import yaml_load
from timing import BYTES, ROOT, SECONDS, compare, cpu_and_wall, in_turns, peak_of_tree

sys.path.insert(0, str(ROOT / "docs"))

import source_checks
from places import example_of
from sections import sections
from words import DEFAULT, WORDS

COPIED = "two-heads"  # the page of which a large site has copies
NEEDED = ("index", "glossary", "playground")  # what that page cannot do without


@contextlib.contextmanager
def copy_of_the_project() -> Iterator[Path]:
    """The sources of the site in a folder that goes away again."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for name in ("docs", "mha"):
            shutil.copytree(ROOT / name, f"{folder}/{name}")
        for name in ("mkdocs.yml", "LICENSE"):
            shutil.copy(ROOT / name, folder)
        yield Path(folder)


def live(project: Path) -> list:
    """The command of the whole live build."""
    return [sys.executable, project / "docs/build.py", "--out", project / "site"]


def plain(project: Path) -> list[list]:
    """The commands of a plain MkDocs build, one for each language."""
    commands = []
    for language in WORDS:
        config = yaml_load((project / "mkdocs.yml").read_text("utf-8"))
        config["docs_dir"] = str(project / "docs" / language)
        config["site_dir"] = str(project / "plain" / language)
        del config["hooks"], config["extra_css"], config["extra_javascript"]
        stock = {"custom_dir", "logo", "favicon"}
        config["theme"] = {k: v for k, v in config["theme"].items() if k not in stock}
        config["theme"]["language"] = language
        config["plugins"]["mkdocs-jupyter"]["execute"] = False
        del config["plugins"]["markdown-exec"]
        reference = config["plugins"]["mkdocstrings"]["handlers"]["python"]
        reference["paths"], reference["options"]["extensions"] = [str(project)], ["dataclasses"]
        for extension in config["markdown_extensions"]:
            if isinstance(extension, dict) and "pymdownx.snippets" in extension:
                extension["pymdownx.snippets"]["base_path"] = [str(project / "docs/examples")]
        file = project / f"plain-{language}.yml"
        file.write_text(yaml.safe_dump(config, allow_unicode=True), "utf-8")
        commands.append([sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", file])
    return commands


def build():
    """Seconds of the whole live build, both languages, by the processor and by the clock."""
    with copy_of_the_project() as project:
        commands = plain(project)

        def floor() -> tuple[float, float]:
            parts = cpu_and_wall(*commands), cpu_and_wall([sys.executable, "-c", "import torch"])
            return tuple(map(sum, zip(*parts, strict=True)))

        ways = {"ours": lambda: cpu_and_wall(live(project)), "floor": floor}
        yield from by_both_clocks(in_turns(ways, most=3), {"floor": 1.8})


def by_both_clocks(pairs: dict, limits: dict):
    """Rows for the processor's seconds, and for those of the clock."""
    for index, clock in enumerate(("processor", "clock time")):
        amounts = {name: [pair[index] for pair in of_one] for name, of_one in pairs.items()}
        yield from compare(amounts, limits, clock=clock, **SECONDS)


def build_memory():
    """Bytes that the build and all its processes hold at their peak, against `import torch`."""
    with copy_of_the_project() as project:
        torch = [sys.executable, "-c", "import torch, time; time.sleep(1)"]
        amounts = {"ours": [peak_of_tree(live(project))], "import torch": [peak_of_tree(torch)]}
        yield from compare(amounts, {"import torch": 2.0}, **BYTES)


def pages():
    """Seconds of processor for sites of 1, 4 and 16 times the pages, and for each further page.

    The pages are copies of one, each with an example of its own, so that all cost the same.
    """
    numbers, found = (5, 20, 80), []
    for number, rounds in zip(numbers, (3, 2, 1), strict=True):
        with copy_of_the_project() as project:
            only_copies(project, number)
            commands = plain(project)
            ways = {
                "ours": lambda: cpu_and_wall(live(project))[0],
                "floor": lambda: cpu_and_wall(*commands)[0],
            }
            named = {"pages": number * len(WORDS), **SECONDS}
            found += compare(in_turns(ways, rounds), {"floor": None}, **named)
        yield found[-1]
    for less, more in pairwise(found):
        further = more["pages"] - less["pages"]
        ours, other = ((more[way] - less[way]) / further for way in ("ours", "other"))
        row = {"ours": ours, "other": other, "ratio": ours / other, "limit": 1.5, **SECONDS}
        yield {"against": "floor", "what": "each further page", "pages": more["pages"], **row}


def only_copies(project: Path, number: int) -> None:
    """Leave nothing in the project but copies of one page, and what it needs."""
    for folder in ("examples", *WORDS):
        shutil.rmtree(project / "docs" / folder)
        (project / "docs" / folder).mkdir()
    names = [*NEEDED, *(f"{COPIED}-{index}" for index in range(len(NEEDED), number))]
    for name in names:
        source = name if name in NEEDED else COPIED
        script, copied = example_of(source), project / "docs/examples" / example_of(name).name
        if script.exists():
            shutil.copy(script, copied)
        for language in WORDS:
            text = (ROOT / f"docs/{language}/{source}.md").read_text("utf-8")
            text = text.replace(f'"{script.name}:', f'"{copied.name}:')
            text = text.replace(f'session="{source}"', f'session="{name}"')
            text = re.sub(r"\]\([\w-]+\.(md|ipynb)(#[\w-]+)?\)", "](index.md)", text)
            if language != DEFAULT:
                stamp = source_checks.stamp_of(project / f"docs/{DEFAULT}/{name}.md")
                text = re.sub("(?m)^source: .*$", f'source: "{stamp}"', text)
            (project / f"docs/{language}/{name}.md").write_text(text, "utf-8")
    nav = "".join(f"  - {name}.md\n" for name in names)
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    config = re.sub(r"(?<=\nnav:\n)( +- .*\n)+", nav, config)
    (project / "mkdocs.yml").write_text(config, "utf-8")


def sphinx():
    """Seconds of the build against Sphinx with MyST-NB, for pages with the same executed code.

    Left out there: values in sentences, drawings, the reference, and every check.
    """
    python = sphinx_python()
    with copy_of_the_project() as project:
        commands = []
        for language in WORDS:
            source = project / f"sphinx-{language}"
            for_sphinx(project / "docs" / language, source)
            build = [python, "-m", "sphinx", "--quiet", "--fresh-env", "-b", "html", source]
            commands.append([*build, project / f"html-{language}"])
        paths = f"{project}{os.pathsep}{project / 'docs/examples'}"
        options = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}  # one thread, as the build has
        ways = {
            "ours": lambda: cpu_and_wall(live(project)),
            "MyST-NB": lambda: cpu_and_wall(*commands, **options),
        }
        yield from by_both_clocks(in_turns(ways, most=1), {"MyST-NB": 0.15})


def for_sphinx(pages: Path, target: Path) -> None:
    """Write a page for MyST-NB for each of these, and a configuration."""
    target.mkdir()
    names = [page.stem for page in pages.iterdir() if page.stem != "index"]
    for page in pages.iterdir():
        if page.suffix == ".ipynb":
            shutil.copy(page, target)
            continue
        _, text = source_checks.front_matter(page.read_text("utf-8"))
        parts = sections(example_of(page)) if example_of(page).exists() else {}
        cell = r'(?m)^ *```python exec.*\n *--8<-- "[\w.]+:([\w-]+)"\n *```$'
        text = re.sub(cell, lambda m: f"```{{code-cell}}\n{parts[m[1]]}\n```", text)
        if page.stem == "index":
            text += "\n```{toctree}\n" + "\n".join(sorted(names)) + "\n```\n"
        (target / page.name).write_text(MYST + text, "utf-8")
    (target / "conf.py").write_text(SPHINX)


MYST = "---\nfile_format: mystnb\nkernelspec: {name: python3}\n---\n"
SPHINX = """
project = "mha"
extensions = ["myst_nb"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode, nb_execution_raise_on_error, nb_execution_timeout = "force", True, -1
"""


def sphinx_python() -> Path:
    """A Python that has Sphinx and MyST-NB beside all that this one has: .nox/bench."""
    folder, pins = ROOT / ".nox/bench", ROOT / "bench/requirements.txt"
    python, installed = folder / "bin/python", folder / "installed"
    if not installed.exists() or installed.read_bytes() != pins.read_bytes():
        venv.create(folder, with_pip=True, clear=True)
        (packages,) = folder.glob("lib/*/site-packages")
        (packages / "env.pth").write_text(sysconfig.get_path("purelib"))
        pip = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", pins]
        subprocess.run(pip, check=True)
        installed.write_bytes(pins.read_bytes())
    return python


def serving():
    """Seconds by the clock from a change to the page in view, under `nox -s serve`."""
    with copy_of_the_project() as project, socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        free.close()
        command = [sys.executable, project / "docs/serve.py", "--port", str(port)]
        shown = project / f"site/{COPIED}/index.html"
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
            try:
                wait_for(shown.exists, most=900)  # for a whole build, however busy the machine
                time.sleep(2)  # until it follows changes
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{COPIED}/").close()
                for file, limit in ((f"docs/{DEFAULT}/{COPIED}.md", 1.0), ("mha/layer.py", 3.0)):
                    before, start = shown.stat().st_mtime_ns, time.perf_counter()
                    with (project / file).open("a") as changed:
                        changed.write("\n")
                    wait_for(lambda before=before: shown.stat().st_mtime_ns != before)
                    seconds = time.perf_counter() - start
                    yield {"what": Path(file).name, "ours": seconds, "limit": limit, **SECONDS}
            finally:
                server.send_signal(signal.SIGTERM)


def wait_for(happened: Callable[[], bool], most: float = 180) -> None:
    """Look until it has happened, for that many seconds at most."""
    end = time.monotonic() + most
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError("the server shows nothing new")
        time.sleep(0.01)


PARTS = build, build_memory, pages, sphinx, serving
