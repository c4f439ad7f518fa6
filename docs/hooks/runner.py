"""Edit and Run: the reader's browser runs the NumPy examples itself, in real CPython and NumPy.

The site holds them once, for all languages (pyodide.py); a page loads nothing of them before the
first Run. Where npm is missing, the site goes without the buttons.
"""

from pathlib import Path

import pyodide
from mkdocs.utils import get_relative_url
from places import example_of
from words import DEFAULT, WORDS, localise, prefix


def on_page_content(html, page, config, files):
    """Mark the pages whose example the reader can run; the theme adds the buttons."""
    example = example_of(page.file.src_uri)
    runs_with_numpy_alone = Path(config.site_dir).with_name(f"{example.stem}.numpy").exists()
    if not (pyodide.installed() and runs_with_numpy_alone):  # docs/alone.py has tried it
        return
    language = config.theme["language"]
    here = prefix(language) + page.url
    what = pyodide.weight()
    page.meta["runner"] = {
        "words": said(what, WORDS[language]),
        "root": get_relative_url(".", here),
        "bytes": what["raw"],
    }
    page.meta["scripts"] = [*page.meta.get("scripts", []), "runner.js"]
    page.meta["styles"] = [*page.meta.get("styles", []), "runner.css"]


def said(what: dict, words: dict) -> dict[str, str]:
    """The texts of the buttons, with versions and MB."""
    facts = {
        name: localise(f"{value / 1e6:.1f}", words) if isinstance(value, int) else value
        for name, value in what.items()
    }
    return {key: text.format(**facts) for key, text in words["runner"].items()}


def on_post_build(config):
    """Lay Python into the site, once."""
    if config.theme["language"] == DEFAULT and pyodide.installed():
        for name, content in pyodide.files().items():
            target = Path(config.site_dir, "python", name)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)
