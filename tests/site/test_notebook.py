"""Notebook pages show what their cells put out, and can be taken along and run."""

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import notebook
import pytest
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from nbclient.exceptions import CellExecutionError
from words import WORDS

from mha.answers import EXERCISES

ROOT = Path(__file__).parents[2]
SITE = "https://host.example/site/"
SLUGS = [path.name for path in (ROOT / "docs/id").iterdir() if path.stem != "index"]
PAGES = {"index.md": "", **{name: f"{name.partition('.')[0]}/" for name in SLUGS}}
HEADING = '<h1 id="X"><a id="lab"></a>Lab &amp; co<a class="anchor-link" href="#X">¶</a></h1>'
TABLE = (
    '<style>td { color: red }</style><table class="weights"><thead><tr><th>shape</th></tr></thead>'
    '<tbody><tr><th scope="row">0.5</th><td>0.250</td></tr></tbody></table>'
)


def words_cell(html: str) -> str:
    """A cell of words as nbconvert writes it."""
    return (
        '<div class="jp-Cell jp-MarkdownCell" id="cell-id=words">'
        f'<div class="jp-RenderedMarkdown" data-mime-type="text/markdown">{html}</div></div>'
    )


def code_cell(code: str, *outputs: tuple[str, str]) -> str:
    """A cell of code with (kind, HTML) of what it puts out."""
    shown = "".join(
        f'<div class="jp-OutputArea-output" data-mime-type="{kind}">\n{html}\n</div>'
        for kind, html in outputs
    )
    return (
        '<div class="jp-Cell jp-CodeCell" id="cell-id=code">'
        f'<clipboard-copy>Copied!</clipboard-copy><div class="highlight-ipynb"><pre>{code}</pre>'
        f'</div><div class="clipboard-copy-txt">{code}</div>{shown}</div>'
    )


class Files:
    """The pages of a site."""

    def get_file_from_path(self, path: str) -> SimpleNamespace | None:
        """As MkDocs has it."""
        return SimpleNamespace(url=PAGES[path]) if path in PAGES else None


@pytest.fixture
def page(tmp_path):
    """The Indonesian lab, on its way into a site."""
    file = SimpleNamespace(
        src_uri="lab.ipynb",
        abs_src_path=ROOT / "docs/id/lab.ipynb",
        abs_dest_path=tmp_path / "site/lab/index.html",
    )
    return SimpleNamespace(file=file, url="lab/", meta={"title": "Judul"}, title=None, toc=None)


def content(page, *cells: str, language: str = "id") -> BeautifulSoup:
    """The page as the hook makes it of these cells, after one with a heading."""
    config = SimpleNamespace(theme={"language": language}, site_url=SITE)
    html = "<style>x</style>" + "".join([words_cell(HEADING), *cells])
    return BeautifulSoup(notebook.on_page_content(html, page, config, Files()), "html.parser")


def test_code_and_text_look_as_on_other_pages(page):
    soup = content(page, code_cell("<b>print</b>(1 &lt; 2)", ("text/plain", "<pre>[1 2]\n</pre>")))
    assert [code.text for code in soup.select(".language-python.highlight > pre > code")] == [
        "print(1 < 2)"
    ]
    assert [code.text for code in soup.select(".language-text.highlight > pre > code")] == [
        "[1 2]\n"
    ]
    assert not soup.select("[class^=jp-], style, clipboard-copy")
    assert soup.text.count("print") == 1


@pytest.mark.parametrize(
    ("language", "cell", "head"), [("id", "0,250", "bentuk"), ("en", "0.250", "shape")]
)
def test_tables_speak_the_language_and_stand_side_by_side(page, language, cell, head):
    outputs = [("text/html", TABLE)] * 2 + [("text/plain", "<pre>x</pre>"), ("text/html", TABLE)]
    soup = content(page, code_cell("x", *outputs), language=language)
    assert [len(group.select("table")) for group in soup.select("div.tables")] == [2, 1]
    assert {td.text for td in soup.select("td")} == {cell}
    assert {th.text for th in soup.select("thead th")} == {head}
    assert {th.text for th in soup.select("tbody th")} == {"0.5"}  # a name


def verdict(state: str, words: str = "Kata.") -> tuple[str, str]:
    """What `mha.exercises.check` puts out."""
    return "text/html", f'<p class="verdict {state}" lang="id">{words}</p>'


SOLUTION = words_cell('<h4 id="S">Penyelesaian<a class="anchor-link" href="#S">¶</a></h4>')


def test_solutions_fold(page):
    again = words_cell('<h3 id="Y"><a id="own"></a>Sendiri<a class="anchor-link">¶</a></h3>')
    soup = content(
        page,
        code_cell("answer = None", verdict("open", "Belum dijawab.")),
        SOLUTION,
        words_cell("<p>Sebab.</p>"),
        code_cell("answer = 1", ("text/plain", "<pre>1\n</pre>"), verdict("right", "Benar.")),
        again,
        SOLUTION,
        code_cell("answer = 2", verdict("right")),
    )
    first, second = soup.select("details.success")
    assert first.summary.text == second.summary.text == "Penyelesaian"
    assert not first.summary.find(True)
    assert not soup.select("h4, details[open], .anchor-link")
    assert first.get_text(" ", strip=True) == "Penyelesaian Sebab. answer = 1 1 Benar."
    assert second.find_previous(["h1", "h2", "h3"]).text == "Sendiri¶"
    assert [box["class"] for box in soup.select(".admonition")] == [
        ["admonition", "quote"],
        ["admonition", "success"],
        ["admonition", "success"],
    ]
    assert soup.select_one(".admonition.quote > p.verdict.open").text == "Belum dijawab."
    assert page.toc.items[0].children[0].id == "own"


@pytest.mark.parametrize("state", ["open", "wrong"])
def test_solution_that_is_none_stops_the_build(page, state):
    message = r'^lab\.ipynb: in a solution, check\("a", 1\) says: Belum'
    with pytest.raises(PluginError, match=message):
        content(page, SOLUTION, code_cell('x\ncheck("a", 1)', verdict(state, "Belum")))


def test_what_follows_a_solution_needs_a_heading(page):
    cells = [SOLUTION, code_cell("x", verdict("right"))]
    content(page, *cells)
    with pytest.raises(PluginError, match=r"^lab\.ipynb: a solution does not end with its check"):
        content(page, *cells, words_cell("<p>Lanjut.</p>"))


def test_exercise_that_is_solved_already_stops_the_build(page):
    with pytest.raises(PluginError, match=r"before the reader has answered, x says: Benar"):
        content(page, code_cell("x", verdict("right", "Benar")))


@pytest.mark.parametrize(
    ("kind", "html", "message"),
    [
        ("text/html", f"{verdict('open')[1]}<p>lost</p>", "puts out text/html: .*lost"),
        ("application/vnd.jupyter.stderr", "<pre>careful</pre>", "vnd.jupyter.stderr: careful"),
        ("image/png", '<img src="data:image/png;base64,">', "puts out image/png"),
        ("text/html", "<b>bold</b>", "puts out text/html: bold"),
        ("text/html", "<table><tr><td>1</td></tr></table>", "puts out text/html: 1"),
        ("text/html", f"{TABLE}<p>lost</p>", "puts out text/html: .*lost"),
        ("text/html", f"{TABLE}{TABLE}", "puts out text/html: "),
        ("text/html", TABLE.replace("0.250", "nan"), "is nan, not a finite number"),
    ],
)
def test_other_output_stops_the_build(page, kind, html, message):
    with pytest.raises(PluginError, match=rf"(?s)^lab\.ipynb: .*{message}"):
        content(page, code_cell("x", (kind, html)))


def test_output_to_stderr_stops_a_whole_build(project):
    project.add_notebook("import sys\nprint('careful', file=sys.stderr)")
    done = project.build()
    assert done.returncode == 1
    assert "lab.ipynb: a cell puts out application/vnd.jupyter.stderr: careful" in done.stderr
    assert not project.site.exists()


def test_what_is_printed_slowly_is_one_block(project):
    project.add_notebook("import time\nprint('a', end='')\ntime.sleep(0.5)\nprint('b')")
    done = project.build()
    assert done.returncode == 0, done.stderr
    soup = BeautifulSoup((project.site / "lab/index.html").read_text("utf-8"), "html.parser")
    assert [block.text for block in soup.select(".language-text code")] == ["ab\n"]


ASKS_FOR_ITS_SOCKETS = """
import json, os, ipykernel
connection = json.load(open(ipykernel.get_connection_file()))
print(connection["transport"], os.path.exists(f"{connection['ip']}-{connection['shell_port']}"))
"""


def test_kernels_take_no_ports(project):
    """A port that was free may be taken by the other language's kernel a moment later."""
    project.add_notebook(ASKS_FOR_ITS_SOCKETS)
    assert project.build().returncode == 0
    for prefix in ("", "en/"):
        assert "ipc True\n" in (project.site / prefix / "lab/index.html").read_text("utf-8")


def test_headings_take_their_id_and_make_the_contents(page):
    rest = '<h2 id="Y"><a id="own"></a>Sendiri<a class="anchor-link">¶</a></h2>'
    deep = '<h3 id="Z"><a id="deep"></a>Dalam<a class="anchor-link">¶</a></h3>'
    soup = content(page, words_cell(rest + deep + rest.replace("own", "more")))
    headings = soup.select("h1, h2, h3")
    assert [heading["id"] for heading in headings] == ["lab", "own", "deep", "more"]
    assert [heading.text for heading in headings] == ["Lab & co¶", "Sendiri¶", "Dalam¶", "Sendiri¶"]
    for heading in headings:
        (link,) = heading.select("a")
        assert link["href"] == f"#{heading['id']}"
        assert link["title"] == WORDS["id"]["permalink"]
    assert page.title == "Judul"
    (top,) = page.toc.items
    assert (top.id, top.title, [item.id for item in top.children]) == (
        "lab",
        "Lab &amp; co",
        ["own", "more"],
    )
    assert [item.id for item in top.children[0].children] == ["deep"]


def test_heading_without_id_stops_the_build(page):
    with pytest.raises(PluginError, match=r"^lab\.ipynb: a heading needs an English .*: Lagi"):
        content(page, words_cell('<h2 id="X">Lagi<a class="anchor-link">¶</a></h2>'))


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("two-heads.md", "../two-heads/"),
        ("order.md#mean", "../order/#mean"),
        ("index.md", ".."),
        ("lab.ipynb#lab", "#lab"),
        ("#lab", "#lab"),
        ("https://host.example/a.md", "https://host.example/a.md"),
    ],
)
def test_links_lead_to_pages(page, href, expected):
    soup = content(page, words_cell(f'<p><a href="{href}">x</a></p>'))
    assert soup.select_one("p > a:not(.md-button)")["href"] == expected


def test_link_to_a_page_that_is_not_there_stops_the_build(page):
    with pytest.raises(PluginError, match=r"^lab\.ipynb: links to gone\.md, which is not there"):
        content(page, words_cell('<p><a href="gone.md">x</a></p>'))


def test_other_pages_are_left_alone(page):
    page.file.src_uri = "page.md"
    assert notebook.on_page_content(words_cell(HEADING), page, None, None) is None
    assert notebook.on_page_markdown("# Words", page, None, None) is None
    assert not page.file.abs_dest_path.parent.exists()


@pytest.mark.parametrize("missing", ["title", "description"])
def test_metadata_have_title_and_description(page, missing):
    metadata = {"title": "Judul", "description": "Satu kalimat."}
    page.meta, page.render = {}, None
    notebook.on_page_markdown(json.dumps({"metadata": metadata}), page, None, None)
    assert page.meta == metadata
    del metadata[missing]
    with pytest.raises(PluginError, match=rf"^lab\.ipynb: the metadata have no {missing}$"):
        notebook.on_page_markdown(json.dumps({"metadata": metadata}), page, None, None)


def test_failing_cell_names_its_page(page):
    def execute(config, files):
        raise CellExecutionError("\x1b[0;31mZeroDivisionError\x1b[0m", "1", "2")

    page.render = execute
    metadata = {"title": "Judul", "description": "Satu kalimat."}
    notebook.on_page_markdown(json.dumps({"metadata": metadata}), page, None, None)
    with pytest.raises(PluginError) as caught:
        page.render(None, None)
    assert str(caught.value).startswith("lab.ipynb: ZeroDivisionError")


def test_archive_is_offered_at_the_top(page):
    soup = content(page, words_cell("<p>Kata.</p>"))
    (button,) = soup.select("h1 + p > a.md-button[download]")
    assert button.text == WORDS["id"]["download_notebook"]
    archive = page.file.abs_dest_path.parent / button["href"]
    assert archive.name == "lab.zip"
    with zipfile.ZipFile(archive) as unpacked:
        book = unpacked.read("lab.ipynb").decode()
    assert f"]({SITE}two-heads/)" in book
    assert not re.search(r"\]\([\w-]+\.md", book)
    source = (ROOT / "docs/id/lab.ipynb").read_text("utf-8")
    assert json.loads(book)["cells"][1] == json.loads(source)["cells"][1]


def test_link_out_of_the_archive_to_no_page_stops_the_build(page, tmp_path):
    source = (ROOT / "docs/id/lab.ipynb").read_text("utf-8")
    page.file.abs_src_path = tmp_path / "lab.ipynb"
    page.file.abs_src_path.write_text(source.replace("(two-heads.md)", "(gone.md)"), "utf-8")
    with pytest.raises(PluginError, match=r"^lab\.ipynb: links to gone\.md"):
        content(page)


def test_same_files_same_archive():
    files = {"b.py": b"x = 1\n" * 100, "a/c.py": b"", "LICENSE": b"free"}
    archive = notebook.bundle(files)
    assert archive == notebook.bundle(dict(reversed(files.items())))
    assert archive != notebook.bundle({**files, "LICENSE": b"other"})
    with zipfile.ZipFile(io.BytesIO(archive)) as unpacked:
        entries = unpacked.infolist()
        assert {entry.filename: unpacked.read(entry) for entry in entries} == files
    assert [entry.filename for entry in entries] == sorted(files)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}  # not: now
    assert {entry.external_attr >> 16 for entry in entries} == {0o644}


def test_solutions_fold_in_the_archive(page):
    page.file.abs_src_path = ROOT / "docs/id/exercises.ipynb"
    content(page)
    with zipfile.ZipFile(page.file.abs_dest_path.with_name("exercises.zip")) as archive:
        cells = json.loads(archive.read("exercises.ipynb"))["cells"]
    folded = [c["source"] for c in cells if c["metadata"].get("jp-MarkdownHeadingCollapsed")]
    assert len(folded) >= 20
    assert {tuple(source) for source in folded} == {("#### Penyelesaian",)}


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize(
    ("name", "last"), [("lab", ["True"] * 4), ("exercises", ["True", "False"])]
)
def test_archive_runs_where_it_is_unpacked(name, last, language, page, tmp_path):
    page.file.abs_src_path = ROOT / f"docs/{language}/{name}.ipynb"
    content(page, language=language)
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(page.file.abs_dest_path.with_name(f"{name}.zip")) as archive:
        archive.extractall(folder)
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    code = """
import json, sys
display = print
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]))
print(mha.__file__, "torch" in sys.modules)
"""
    elsewhere = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code, f"{name}.ipynb"],
        cwd=folder,
        env=elsewhere,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == f"{folder.resolve() / 'mha/__init__.py'} False"
    assert lines[-1 - len(last) : -1] == last  # what the notebook itself checks


@pytest.mark.parametrize("prefix", ["", "en/"])
@pytest.mark.parametrize("name", ["lab", "exercises"])
def test_notebook_of_the_site_offers_its_archive(name, prefix, site, soups):
    (button,) = soups[f"{prefix}{name}/"].select("a[download]")
    with zipfile.ZipFile(site / prefix / name / button["href"]) as archive:
        names = archive.namelist()
        book = json.loads(archive.read(f"{name}.ipynb"))
    assert {"LICENSE", f"{name}.ipynb", "mha/__init__.py", "mha/show.py"} <= set(names)
    assert book["metadata"]["title"] in soups[f"{prefix}{name}/"].title.text


@pytest.mark.parametrize(("prefix", "language"), [("", "id"), ("en/", "en")])
def test_exercises_of_the_site(prefix, language, soups):
    soup = soups[f"{prefix}exercises/"]
    solutions = soup.select("details.success")
    assert len(solutions) == len(EXERCISES)
    for solution, (name, exercise) in zip(solutions, EXERCISES.items(), strict=True):
        assert f'check("{name}", ' in solution.get_text()
        assert solution.select(".verdict.right")
        given = solution.find_previous_sibling(class_="language-python")
        assert f'check("{name}", ' in given.get_text()
        said = given.find_next(class_="verdict")
        assert said.find_parent("details") is None
        if name.startswith("bug"):
            assert getattr(exercise.mistakes[0], language) in said.get_text()
        else:
            assert "open" in said["class"]
    verdicts = soup.select(".verdict")
    assert {said["lang"] for said in verdicts} == {language}
    assert len(verdicts) == 2 * len(EXERCISES) + 1  # and one mistake, to show what is said
