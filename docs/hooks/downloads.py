"""Each page's code to take along: as a script, as a notebook, and the package that both import."""

import json
import re
from pathlib import Path

import source_checks
from mkdocs.utils import get_relative_url
from notebook import bundle, package
from places import example_of
from sections import sections
from words import DEFAULT, WORDS, prefix

INCLUDE = re.compile(r'--8<-- "[\w.]+:(?P<section>[\w-]+)"')
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
FORMAT = {"nbformat": 4, "nbformat_minor": 5}


def on_page_markdown(markdown, page, config, files):
    """Lay the two files beside the page."""
    example = example_of(page.file.src_uri)
    if example.exists():
        parts, target = sections(example), Path(page.file.abs_dest_path).parent
        target.mkdir(parents=True, exist_ok=True)
        (target / example.name).write_text(script(parts), "utf-8")
        about = page.meta.get("description", "")
        cells = notebook_cells(markdown, parts, about, page.canonical_url)
        notebook = {"cells": cells, "metadata": {"kernelspec": KERNEL}, **FORMAT}
        text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
        (target / f"{example.stem}.ipynb").write_text(text + "\n", "utf-8")


def on_page_content(html, page, config, files):
    """Link to them at the end."""
    example = example_of(page.file.src_uri)
    if not example.exists():
        return None
    language = config.theme["language"]
    addresses = {
        "script": example.name,
        "notebook": f"{example.stem}.ipynb",
        "package": get_relative_url("mha.zip", prefix(language) + page.url),
    }
    links = {
        key: f'<a href="{address}" download>{Path(address).name}</a>'
        for key, address in addresses.items()
    }
    sentence = WORDS[language]["take_along"].format(**links)
    return f'{html}\n<p class="take-along" data-search-exclude>{sentence}</p>'


def on_env(env, config, files):
    """Lay the package into the site, once for all languages; serve.py, too, comes by here."""
    if config.theme["language"] == DEFAULT:
        Path(config.site_dir).mkdir(exist_ok=True)
        Path(config.site_dir, "mha.zip").write_bytes(bundle(package()))


def script(parts: dict[str, str]) -> str:
    """An example without the marks of its sections."""
    return "\n\n".join(code.strip("\n") + "\n" for code in parts.values())


def notebook_cells(markdown: str, parts: dict[str, str], about: str, address: str) -> list:
    """The page's title, and each section under its heading, which links to the page."""
    cells = []
    for heading in source_checks.skeleton(markdown):
        found = (INCLUDE.match(line) for line in heading["code"])
        names = [match["section"] for match in found if match and match["section"] in parts]
        if heading["level"] == 1 or names:
            title = re.sub(r"^#+ | *\{ *#[\w-]+ *\}\s*$", "", heading["line"])
            text = f"{'#' * heading['level']} [{title}]({address}#{heading['id']})"
            text += f"\n\n{about}" if heading["level"] == 1 else ""
            cells.append(cell("markdown", f"about-{heading['id']}", text))
        for name in names:
            code = cell("code", name, parts[name].strip("\n"))
            cells.append({**code, "execution_count": None, "outputs": []})
    return cells


def cell(kind: str, name: str, text: str) -> dict:
    """What every cell of a notebook has."""
    source = text.splitlines(keepends=True)
    return {"cell_type": kind, "id": name, "metadata": {}, "source": source}
