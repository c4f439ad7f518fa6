"""What must stop a build, one by one, and the words in which it does.

`python tests/site/faults.py` writes the list for contributors, docs/FAULTS.md, from real builds.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from small_project import EXAMPLE, Project

LIST = Path(__file__).parents[2] / "docs/FAULTS.md"
END = "# --8<-- [end:first]"
HIDDEN = '\n\n```python exec="1" session="page"\nvalue = 0.39\n```\n'
HEADER = """# What stops a build

Each of these faults was put into a small project, in turn, and the project was built. The build
failed with this message and left the site as it was. `nox -s faults` writes this list.

"""


@dataclass(frozen=True)
class Fault:
    """A fault, how it gets into a project, and what the message has to name."""

    name: str
    inject: Callable[[Project], None]
    names: tuple[str, ...]


def in_block(code: str) -> Callable[[Project], None]:
    """Add code to the page's only block."""
    return lambda project: project.edit("docs/examples/page.py", END, f"{code}\n{END}")


def on_page(old: str, new: str) -> Callable[[Project], None]:
    """Change the page in both languages."""
    return lambda project: project.edit_page(old, new)


def both(*changes: Callable[[Project], None]) -> Callable[[Project], None]:
    """Make changes one after the other."""

    def inject(project: Project) -> None:
        for change in changes:
            change(project)

    return inject


def in_one(addition: str) -> Callable[[Project], None]:
    """Add something to the Indonesian page only."""
    return lambda project: project.edit("docs/id/page.md", "dan $d_k$", f"dan $d_k$ {addition}")


def in_notebook(code: str) -> Callable[[Project], None]:
    """Add a notebook with this cell."""
    return lambda project: project.add_notebook("x = 1", code)


def _only_in_one_language(path: str) -> Callable[[Project], None]:
    def inject(project: Project) -> None:
        project.add_notebook("x = 1")
        del project.files[path]

    return inject


def _older(project: Project) -> None:
    project.renew_stamps = False
    for name in ("index.md", "page.md"):
        project.edit(f"docs/en/{name}", "---\n", '---\nsource: "000000000000"\n')


def _example_alone(project: Project) -> None:
    project.files["docs/examples/other.py"] = EXAMPLE


def _full_disk(project: Project) -> None:
    project.largest_file = 100_000  # bytes, less than the theme's style sheet


PARITY = """import mha
check = mha.compare([1.0], [1.0 + 1e-9], name="output")"""
LINE = "Nilainya `#!live value`"
FAULTS = [
    Fault("an exception in a block", in_block("1 / 0"), ("page.py", "ZeroDivisionError", "first")),
    Fault(
        "`sys.exit(0)` in a block", in_block("import sys; sys.exit(0)"), ("page.py", "SystemExit")
    ),
    Fault(
        "a block without end",
        in_block("import time; time.sleep(9999)"),
        ("page.md", "no end after", "first"),
    ),
    Fault("a missing section", on_page("page.py:first", "page.py:gone"), ("page.md", "gone")),
    Fault(
        "a section renamed in the example only",
        lambda project: project.files.update(
            {"docs/examples/page.py": EXAMPLE.replace("first", "new")}
        ),
        ("page.md", "first"),
    ),
    Fault(
        "output that differs from the script's",
        in_block("import os; print(os.path.exists('mkdocs.yml'))"),
        ("page.md", "prints"),
    ),
    Fault(
        "output that the page loses",
        in_block("import os; n = os.write(1, b'lost')"),
        ("page.md", "prints", "lost"),
    ),
    Fault(
        "random numbers without a seed",
        in_block("import numpy as np; print(np.random.rand())"),
        ("page.md", "prints"),
    ),
    Fault(
        "a random number in a sentence, without a seed",
        in_block("import numpy as np; value = np.random.rand()"),
        ("page.md", "value", "page.py", "no seed?"),
    ),
    Fault(
        "a random drawing without a seed",
        both(
            in_block("import numpy as np; weights = np.random.rand(2, 2)"),
            on_page(LINE, f"{LINE}\n\n```live\nWeightTable(weights)\n```\n\nx"),
        ),
        ("page.md", "weights", "page.py", "no seed?"),
    ),
    Fault(
        "a sentence that draws a random number",
        both(
            in_block("import numpy as np; draw = np.random.rand"),
            on_page(LINE, f"{LINE} dan `#!live draw()`"),
        ),
        ("page.md", "draw()", "page.py", "no seed?"),
    ),
    Fault(
        "a Python block that is not executed",
        on_page("```python exec", "```python\nx = 1\n```\n\n```python exec"),
        ("page.md", "Python blocks are not the sections of page.py"),
    ),
    Fault(
        "output typed by hand",
        on_page("```python exec", "```text\n0.390\n```\n\n```python exec"),
        ("page.md", "0.390", "prints"),
    ),
    Fault(
        "a figure typed into the form for computed ones",
        on_page("live value", "live 0.39"),
        ("page.md", "#!live 0.39", "no name of the example"),
    ),
    Fault(
        "a figure typed beside a name",
        on_page("live value", "live (value, 0.39)[1]"),
        ("page.md", "(value, 0.39)[1]", "stands in it"),
    ),
    Fault(
        "a comparison that fails", in_block(PARITY), ("page.md", "check is not ok", "largest error")
    ),
    Fault("a failing cell", in_notebook("1 / 0"), ("lab.ipynb", "ZeroDivisionError", "1 / 0")),
    Fault("a kernel that dies", in_notebook("import os; os._exit(1)"), ("lab.ipynb", "died")),
    Fault(
        "a cell without end",
        in_notebook("import time; time.sleep(9999)"),
        ("lab.ipynb", "no end after"),
    ),
    Fault(
        "an exercise that is solved already",
        in_notebook('from mha.exercises import check\ncheck("scale", 1 / 8)'),
        ("lab.ipynb", "before the reader has answered", "Right."),
    ),
    Fault(
        "a page in one language only",
        _only_in_one_language("docs/en/page.md"),
        ("docs/en/page.md", "missing"),
    ),
    Fault(
        "a notebook in one language only",
        _only_in_one_language("docs/en/lab.ipynb"),
        ("docs/en/lab.ipynb", "missing"),
    ),
    Fault(
        "a heading in one language only", in_one("\n\n## Lagi { #more }\n"), ("page.md", "'more'")
    ),
    Fault("a block in one language only", in_one("\n\n```\nx\n```\n"), ("page.md#page", "code")),
    Fault("a link in one language only", in_one("[lagi](index.md)"), ("page.md#page", "links")),
    Fault(
        "a figure in one language only", in_one("`#!live 2 * value`"), ("page.md#page", "2 * value")
    ),
    Fault("a formula in one language only", in_one("$d_v$"), ("page.md#page", "$d_v$")),
    Fault("a translation older than its page", _older, ("docs/en/page.md", "has changed since")),
    Fault("a dead link", on_page("index.md#home", "gone.md"), ("page.md", "gone.md")),
    Fault("a dead anchor", on_page("#home", "#gone"), ("page.md", "#gone")),
    Fault(
        "a dead anchor in the other language",
        on_page(LINE, '<a href="../en/page/#gone">x</a>'),
        ("page/index.html", "#gone"),
    ),
    Fault(
        "a dead anchor in a notebook",
        lambda project: (
            project.add_notebook("x = 1"),
            project.edit_page("index.md#home", "lab.ipynb#gone"),
        ),
        ("page/index.html", "#gone"),
    ),
    Fault("a broken formula", on_page("$d_k$", "$\\frac{d_k$"), ("page.md", "formula", "braces")),
    Fault("an unknown command in a formula", on_page("$d_k$", "$\\nono$"), ("page.md", "\\nono")),
    Fault(
        "a figure typed by hand", on_page(LINE, "Nilainya 0,5"), ("page.md:", "'0,5'", "by hand")
    ),
    Fault("a figure that fails", on_page("live value", "live gone"), ("page.md", "#!live gone")),
    Fault(
        "a value changed by a block that the page does not show",
        on_page("[Beranda](index.md#home)", HIDDEN),
        ("page.md", "executes 'value = 0.39'", "each of them once and in order"),
    ),
    Fault(
        "a figure that is not a number",
        on_page("live value", "live value * float('nan')"),
        ("page.md", "not a finite number"),
    ),
    Fault("a page without title", on_page("title: Halaman\n", ""), ("page.md", "no title")),
    Fault(
        "a page without description",
        on_page("description: Halaman dengan satu contoh.\n", ""),
        ("page.md", "no description"),
    ),
    Fault(
        "an image without alternative text",
        on_page(LINE, '<img src="data:,">'),
        ("page/index.html", "alternative text"),
    ),
    Fault(
        "variables of another page",
        on_page('session="page"', 'session="index"'),
        ("page.md", 'session="page"'),
    ),
    Fault(
        "a request to another host",
        on_page(LINE, '<img alt="x" src="https://host.example/x.png">'),
        ("page/index.html", "https://host.example/x.png"),
    ),
    Fault(
        "an inline style",
        on_page(LINE, '<b style="color: red">x</b>'),
        ("page/index.html", "style"),
    ),
    Fault(
        "a figure typed into a title",
        on_page(LINE, '<b title="0,390">x</b>'),
        ("page/index.html", "'0,390', which was not computed"),
    ),
    Fault(
        "a figure typed as code",
        on_page(LINE, "`0.390`"),
        ("page/index.html", "'0.390', which was not computed"),
    ),
    Fault(
        "a figure typed in a notebook",
        lambda project: (
            project.add_notebook("x = 1"),
            project.edit("docs/id/lab.ipynb", "Kata demi kata.", "Bobotnya 0,390."),
        ),
        ("lab/index.html", "'0,390', which was not computed"),
    ),
    Fault(
        "a cell that is not run",
        lambda project: (
            project.add_notebook("x = 1"),
            project.edit("docs/id/lab.ipynb", '"metadata": {}', '"metadata": {"tags": ["x"]}'),
        ),
        ("lab.ipynb", "can keep it from running"),
    ),
    Fault(
        "an example that knows that it is built",
        in_block("print('__file__' in globals())"),
        ("page.md", "run by itself, prints"),
    ),
    Fault(
        "a block that ends Python", in_block("import os; os._exit(0)"), ("page.md", "process ended")
    ),
    Fault(
        "a script on a page", on_page(LINE, "<script>x()</script>"), ("page/index.html", "<script>")
    ),
    Fault(
        "an example without a page", _example_alone, ("docs/examples/other.py", "no page shows it")
    ),
    Fault("a full disk", _full_disk, ("File too large",)),
]


def entry(fault: Fault, stderr: str, root: Path) -> str:
    """A paragraph of the list: the message's first lines, without what differs each time."""
    text = stderr.replace(f"{root}/", "").partition("is as it was:\n")[2]
    text = re.sub(r"'/\S+?/(?=site-packages)", "'…/", text)
    text = re.sub(r"(?<=\.site-)\w+", "…", text)
    text = re.sub(r"(?<=, but )\S+(?= when)", "…", text)  # a random number
    start = re.search(r"(?m)^(id: |docs/|page/|page\.md|lab/|en/)", text).start()
    first = re.split(r"\nen: |\nTraceback|\n\n", text[start:])[0]
    lines = list(dict.fromkeys(first.splitlines()))[:3]
    title = fault.name[0].upper() + fault.name[1:]
    return "\n".join([f"## {title}\n\n```text", *lines, "```\n"])


def main() -> int:
    """Write the list."""
    os.environ["PAGE_SECONDS"] = "5"  # a page without end is not worth a minute
    entries = []
    for fault in FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            project = Project(Path(folder).resolve())
            fault.inject(project)
            entries.append(entry(fault, project.build().stderr, project.root))
        print(fault.name, flush=True)
    LIST.write_text(HEADER + "\n".join(entries), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
