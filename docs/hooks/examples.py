"""Shows what each page's example has printed, and holds the page against it.

A page `two-heads.md` belongs to `docs/examples/two_heads.py`. It shows every section of that
script, in order, as blocks that markdown-exec runs. What they print has to equal what the script
prints when it is run by itself (docs/alone.py).
"""

from functools import partial

import current
import markdown_exec
from live import given
from mkdocs.exceptions import PluginError
from places import example_of
from pymdownx.superfences import SuperFencesException
from sections import Run, rebound, run, sections
from selectolax.lexbor import LexborHTMLParser
from words import DEFAULT, WORDS


def on_config(config):
    """Let markdown-exec take what a block prints from the run of the example."""
    markdown_exec.formatters["python"] = partial(
        markdown_exec.base_format, language="python", run=run_block
    )
    # It makes a new Markdown for each block, which here becomes code and output and no more.
    markdown_exec.markdown_config.save(
        ["pymdownx.highlight", "pymdownx.superfences"], config.mdx_configs
    )


def on_page_markdown(markdown, page, config, files):
    """Give the page its example's sections and values."""
    language = config.theme["language"]
    current.page.begin(name=page.file.src_uri, words=WORDS[language], given=given())
    example = example_of(page.file.src_uri)
    parts = sections(example) if example.exists() else {}
    done = run(example) if parts else Run()
    if done.error:
        raise PluginError(f"{page.file.src_uri}: {done.error}")
    current.page.sections, current.page.values = dict(parts), done.values
    current.page.rebound = rebound(parts)
    if parts and language == DEFAULT:  # the others show the same: docs/site_checks.py
        current.page.said = done.said
    for name in page.meta.get("listing", []):
        if name not in parts:
            raise PluginError(f"{page.file.src_uri}: {example.name} has no section {name}")
        current.page.listings[name] = parts[name].splitlines()


def on_page_content(html, page, config, files):
    """Stop where the page says anything else than its example does."""
    if page.file.src_uri.endswith(".ipynb"):
        return
    content, example = LexborHTMLParser(html), example_of(page.file.src_uri)
    code = [block.text() for block in content.css(".language-python code")]
    expected = list(sections(example).values()) if example.exists() else []
    if [block.rstrip() for block in code] != [section.rstrip() for section in expected]:
        raise PluginError(
            f"{page.file.src_uri}: its Python blocks are not the sections of {example.name}, "
            f"each of them once and in order: {list(sections(example)) if expected else []}"
        )
    if not example.exists() and (typed := content.css_first(".language-text code")):
        raise PluginError(f"{page.file.src_uri}: shows output, but runs nothing: {typed.text()}")
    for name, held in current.page.values.items():
        for value in _items(held):
            if type(value).__name__ in ("Comparison", "ParityReport") and not value:
                raise PluginError(f"{page.file.src_uri}: {name} is not ok: {value}")


def _items(value) -> list:
    """What a collection holds, or a value by itself."""
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]


def run_block(code: str, id: str = "", **options) -> str:
    """What the next section has printed."""
    example = example_of(current.page.name)
    name, section = next(iter(current.page.sections.items()), ("", ""))
    if (name, section.rstrip()) != (id, code.rstrip()):  # also a block that the page does not show
        raise SuperFencesException(
            f"{current.page.name}: executes {id or code!r}; expected the sections of "
            f"{example.name}, each of them once and in order, now {name or 'none'}"
        )
    del current.page.sections[name]
    return run(example).printed[name]
