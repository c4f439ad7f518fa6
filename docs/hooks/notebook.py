"""Notebook pages look like the others, and can be taken along.

nbconvert brings JupyterLab's whole style sheet, scripts and addresses of CDNs. Only the cells are
kept, in the markup that every other page has.
"""

import io
import zipfile
from pathlib import Path

from bs4 import BeautifulSoup
from mkdocs.structure.toc import get_toc
from words import WORDS, localise

ROOT = Path(__file__).parents[2]


def on_page_content(html, page, config, files):
    """Rebuild the page from its cells."""
    if not page.file.src_uri.endswith(".ipynb"):
        return None
    words = WORDS[config.theme["language"]]
    soup = BeautifulSoup(html, "html.parser")
    cells = "".join(_cell(cell, words) for cell in soup.select(".jp-Cell"))
    clean = BeautifulSoup(cells, "html.parser")
    page.toc = get_toc(_anchors(clean, words))
    download = f'<a class="md-button" href="{_bundle_name(page)}">{words["download_notebook"]}</a>'
    return str(clean) + f"<p>{download}</p>"


def on_post_page(output, page, config):
    """Lay the notebook and `mha` beside the page, as one archive that runs where it is unpacked."""
    if page.file.src_uri.endswith(".ipynb"):
        source = Path(page.file.abs_src_path)
        target = Path(page.file.abs_dest_path).with_name(_bundle_name(page))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(bundle([source, *sorted((ROOT / "mha").glob("*.py"))]))


def bundle(files: list[Path]) -> bytes:
    """A zip of these files, the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            name = file.relative_to(ROOT) if file.suffix == ".py" else file.name
            archive.writestr(zipfile.ZipInfo(str(name)), file.read_bytes())
    return buffer.getvalue()


def _bundle_name(page) -> str:
    return Path(page.file.src_uri).stem + ".zip"


def _cell(cell, words: dict) -> str:
    if "jp-MarkdownCell" in cell["class"]:
        return cell.select_one(".jp-RenderedMarkdown").decode_contents()
    code = cell.select_one(".highlight-ipynb pre, .highlight pre").decode_contents()
    shown = f'<div class="language-python highlight"><pre><code>{code}</code></pre></div>'
    return shown + "".join(_output(output, words) for output in cell.select(".jp-OutputArea-output"))


def _output(output, words: dict) -> str:
    for style in output.select("style"):
        style.decompose()
    table = output.select_one(".weights")
    if table is None:
        text = output.get_text()
        return f'<div class="language-text highlight no-copy"><pre><code>{text}</code></pre></div>'
    for number in table.select("td"):
        number.string = localise(number.get_text(), words)
    return str(table)


def _anchors(soup, words: dict) -> list[dict]:
    """Headings take the id that stands before their words; the table of contents follows them."""
    tokens: list[dict] = []
    for heading in soup.select("h1, h2, h3"):
        for sign in heading.select(".anchor-link"):
            sign.decompose()
        anchor = heading.select_one("a[id]")
        if anchor:
            heading["id"] = anchor["id"]
            anchor.decompose()
        name = heading.get_text().strip()
        level = int(heading.name[1])
        token = {"level": level, "id": heading["id"], "name": name, "children": []}
        (tokens[0]["children"] if tokens and level > 1 else tokens).append(token)
        sign = soup.new_tag("a", attrs={"class": "headerlink", "href": f"#{heading['id']}"})
        sign["title"], sign.string = words["permalink"], "¶"
        heading.append(sign)
    return tokens
