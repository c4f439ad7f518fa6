"""Notebook pages look like the others, and can be taken along.

nbconvert brings JupyterLab's whole style sheet, scripts and addresses of CDNs. Only the cells are
kept, in the markup that every other page has.

A heading of level 4 folds what is under it, up to the next heading: the solution of an exercise. On
the page it can be opened without a script, in Jupyter with the triangle beside it.
"""

import io
import json
import os
import re
import zipfile
from html import escape
from itertools import groupby, takewhile
from pathlib import Path

from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from mkdocs.structure.toc import get_toc
from mkdocs.utils import get_relative_url
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from places import DOCS
from words import WORDS, writer

ROOT = DOCS.parent

KERNELS = {
    # Their sockets are files: a port may be taken by others between its choice and its use.
    "KernelManager": {"transport": "ipc"},
    # A kernel has nothing to put away; to wait until it has taken its leave takes seconds at times.
    "NotebookClient": {"shutdown_kernel": "immediate"},
}
# On a busy machine a kernel sends what a cell prints in pieces: a page shows them as one.
NotebookClient.coalesce_streams.default_value = True  # no setting of nbconvert's

_HEADINGS = ("h1", "h2", "h3", "h4")
_BOXES = {"right": "success", "wrong": "failure", "open": "quote"}  # Material's boxes
_LINK = re.compile(r"(?P<page>[\w-]+\.(?:md|ipynb))(?P<anchor>#[\w-]+)?")


def on_config(config):
    """Say to nbconvert how to run notebooks, as its users do."""
    sockets = Path(os.environ["JUPYTER_RUNTIME_DIR"], config.theme["language"])
    settings = {**KERNELS, "KernelManager": {**KERNELS["KernelManager"], "ip": str(sockets)}}
    file = Path(os.environ["JUPYTER_CONFIG_DIR"], "jupyter_nbconvert_config.json")
    file.write_text(json.dumps(settings), "utf-8")


def on_page_markdown(markdown, page, config, files):
    """Take title and description from the notebook's metadata; let a failing cell name its page."""
    if not page.file.src_uri.endswith(".ipynb"):
        return
    metadata, execute = json.loads(markdown)["metadata"], page.render
    for key in ("title", "description"):
        if key not in metadata:
            raise PluginError(f"{page.file.src_uri}: the metadata have no {key}")
        page.meta[key] = metadata[key]

    def render(config, files):
        try:
            execute(config, files)
        except CellExecutionError as error:
            message = re.sub(r"\x1b\[[\d;]*m", "", str(error))  # without colours
            raise PluginError(f"{page.file.src_uri}: {message}") from error

    page.render = render


def on_page_content(html, page, config, files):
    """Rebuild the page from its cells; lay an archive beside it that runs where it is unpacked."""
    if not page.file.src_uri.endswith(".ipynb"):
        return None
    words = WORDS[config.theme["language"]]
    cells = BeautifulSoup(html, "html.parser").select(".jp-Cell[id]")
    try:
        first, *others = (_cell(cell, words) for cell in cells)
        name = _lay_archive(page, config, files)
        button = f'<a class="md-button" href="{name}" download>{words["download_notebook"]}</a>'
        soup = BeautifulSoup(f"{first}<p>{button}</p>{''.join(others)}", "html.parser")
        for link in soup.select("a[href]"):
            if match := _LINK.fullmatch(link["href"]):
                link["href"] = get_relative_url(_url(match, files), page.url)
        page.title, page.toc = page.meta["title"], get_toc(_headings(soup, words))
        _fold(soup)
    except ValueError as error:
        raise PluginError(f"{page.file.src_uri}: {error}") from error
    return str(soup)


def _lay_archive(page, config, files) -> str:
    """Pack the notebook, its links leading to the site, and `mha`; return the archive's name."""
    source, target = Path(page.file.abs_src_path), Path(page.file.abs_dest_path)
    notebook = re.sub(
        rf"\]\({_LINK.pattern}\)",
        lambda match: f"]({config.site_url}{_url(match, files)})",
        source.read_text("utf-8"),
    )
    content = {source.name: _folded(notebook).encode(), **package()}
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_name(f"{source.stem}.zip").write_bytes(bundle(content))
    return f"{source.stem}.zip"


def _folded(notebook: str) -> str:
    """The notebook with its solutions folded, as Jupyter keeps it in a cell's metadata."""
    book = json.loads(notebook)
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown" and "".join(cell["source"]).startswith("#### "):
            cell["metadata"]["jp-MarkdownHeadingCollapsed"] = True
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def package() -> dict[str, bytes]:
    """The files of `mha`, by their path."""
    paths = (ROOT / "LICENSE", *(ROOT / "mha").glob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}


def bundle(files: dict[str, bytes]) -> bytes:
    """A zip of these files, the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name)  # dated 1980
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _url(link: re.Match, files) -> str:
    """Where a page that a notebook links to lies on the site."""
    file = files.get_file_from_path(link["page"])
    if file is None:
        raise ValueError(f"links to {link['page']}, which is not there")
    return file.url + (link["anchor"] or "")


def _cell(cell, words: dict) -> str:
    if "jp-MarkdownCell" in cell["class"]:
        return cell.select_one(".jp-RenderedMarkdown").decode_contents()
    code = cell.select_one(".highlight-ipynb pre").decode_contents()
    parts = [f'<div class="language-python highlight"><pre><code>{code}</code></pre></div>']
    outputs = (_output(output, words) for output in cell.select(".jp-OutputArea-output"))
    for kind, group in groupby(outputs, key=lambda output: output[0]):
        shown = "".join(html for _, html in group)
        parts.append(f'<div class="tables">{shown}</div>' if kind == "table" else shown)
    return "".join(parts)


def _output(output, words: dict) -> tuple[str, str]:
    """What a cell shows: a table or a verdict in the page's language, or text as in a terminal."""
    kind = output["data-mime-type"]
    if kind == "text/plain":
        text = escape(output.get_text().strip("\n"))
        code = f"<pre><code>{text}\n</code></pre>"
        return "text", f'<div class="language-text highlight">{code}</div>'
    shown = output.get_text().strip()
    verdict, table = output.select_one("p.verdict"), output.select_one("table[class]")
    if kind == "text/html" and verdict and verdict.get_text() == shown:
        box = _BOXES[verdict["class"][-1]]
        return "verdict", f'<div class="admonition {box}">{verdict}</div>'
    if kind != "text/html" or table is None or table.get_text().strip() != shown:
        raise ValueError(f"a cell puts out {kind}: {shown}")
    for cell in table.select("thead th, td"):
        cell.string = writer(words)(cell.get_text())
    return "table", str(table)


def _headings(soup, words: dict) -> list[dict]:
    """Headings take the id that stands before their words; the table of contents follows them."""
    tokens: list[dict] = []
    for heading in soup.select("h1, h2, h3"):
        heading.select_one(".anchor-link").decompose()
        anchor = heading.select_one("a[id]")
        if anchor is None:
            raise ValueError(f'a heading needs an English <a id="…"></a>: {heading.get_text()}')
        heading["id"] = anchor["id"]
        anchor.decompose()
        token = {
            "level": int(heading.name[1]),
            "id": heading["id"],
            "name": escape(heading.get_text().strip()),
            "children": [],
        }
        above = tokens
        while above and above[-1]["level"] < token["level"]:
            above = above[-1]["children"]
        above.append(token)
        sign = {"class": "headerlink", "href": f"#{heading['id']}", "title": words["permalink"]}
        heading.append(soup.new_tag("a", attrs=sign, string="¶"))
    return tokens


def _fold(soup) -> None:
    """Fold what is under the headings of level 4. A right answer is in there, and only there."""
    for heading in soup.select("h4"):
        under = list(takewhile(lambda tag: tag.name not in _HEADINGS, heading.next_siblings))
        details = soup.new_tag("details", attrs={"class": "success"})
        heading.insert_before(details)
        details.extend([heading, *under])
        heading.select_one(".anchor-link").decompose()
        heading.name, heading.attrs = "summary", {}
        if not details.find_all(recursive=False)[-1].select_one(".verdict"):
            raise ValueError("a solution does not end with its check; or it needs a heading below")
    for verdict in soup.select(".verdict"):
        folded = verdict.find_parent("details") is not None
        if folded != ("right" in verdict["class"]):
            code = verdict.find_previous(class_="language-python").get_text().strip()
            where = "in a solution" if folded else "before the reader has answered"
            raise ValueError(f"{where}, {code.splitlines()[-1]} says: {verdict.get_text()}")
