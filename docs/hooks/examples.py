"""Runs each page's example as a script and writes its values into the page.

A page `two-heads.md` belongs to `docs/examples/two_heads.py`. The code blocks of the page are
executed by markdown-exec; what they print has to equal what the script prints.

In the prose, `#!live A1[0, 0]` becomes the value, in the number format of the page's language;
`#!live max(errors):.1e` takes a format as in an f-string. A fence `live` becomes whatever its
expression knows to draw (`to_html`). `#!lines first … last` becomes the line numbers of that code
in the listing that the page's front matter names.
"""

import ast
import contextlib
import io
import logging
import random
import re
import runpy
import sys
import traceback
from html import escape
from pathlib import Path

import numpy as np
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException
from stamp import stamp
from words import WORDS, localise, writer

EXAMPLES = Path(__file__).parents[1] / "examples"
SECTION = re.compile(r"# --8<-- \[(?:start|end):(?P<name>.*)\]")


class Current:
    """The page that is being made: MkDocs makes one after the other."""

    name = ""
    words: dict = {}
    values: dict = {}
    output: str | None = None
    listing: list[str] = []
    explained: set[int] = set()


def on_config(config):
    """Teach Markdown the three forms; collect warnings, so that a page can stop at its own."""
    inline = config.mdx_configs.setdefault("pymdownx.inlinehilite", {}).setdefault(
        "custom_inline", []
    )
    inline += [
        {"name": "live", "class": "live", "format": live_inline},
        {"name": "lines", "class": "lines", "format": lines_inline},
    ]
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault(
        "custom_fences", []
    )
    fences.append({"name": "live", "class": "live", "format": live_fence})
    Current.words = WORDS[config.theme["language"]]
    logging.getLogger("mkdocs").addHandler(_warnings)


def on_page_markdown(markdown, page, config, files):
    """Start the page from a known state and run its example."""
    random.seed(0)
    np.random.seed(0)
    np.set_printoptions(**_PRINT_OPTIONS)
    _warnings.messages.clear()
    example = EXAMPLES / (Path(page.file.src_uri).stem.replace("-", "_") + ".py")
    Current.name = page.file.src_uri
    values, Current.output = run(example) if example.exists() else ({}, None)
    Current.values = {"built": stamp(), **_drawings(), **values}
    Current.listing = section(example, page.meta["listing"]) if "listing" in page.meta else []
    Current.explained = set()


def on_page_content(html, page, config, files):
    """Stop where the page says anything else than its example does."""
    if _warnings.messages:
        raise PluginError(f"{page.file.src_uri}: " + "\n".join(_warnings.messages))
    soup = BeautifulSoup(html, "html.parser")
    if Current.output is not None:
        shown = "".join(block.get_text() for block in soup.select(".language-text code"))
        if shown != Current.output:
            raise PluginError(
                f"{page.file.src_uri}: the page shows\n{shown}\nbut its example prints\n"
                f"{Current.output}"
            )
    for name, value in Current.values.items():
        if type(value).__name__ in ("Comparison", "ParityReport") and not value:
            raise PluginError(f"{page.file.src_uri}: {name} is not ok: {value}")
    silent = set(executable_lines(Current.listing)) - Current.explained
    if silent:
        raise PluginError(
            f"{page.file.src_uri}: no word about line(s) {sorted(silent)} of the listing"
        )
    number_lines(soup)
    return str(soup)


def run(example: Path) -> tuple[dict, str]:
    """The names that a script leaves and what it prints."""
    output = io.StringIO()
    sys.path.insert(0, str(EXAMPLES))  # as `python docs/examples/one_head.py` has it
    try:
        with contextlib.redirect_stdout(output):
            values = runpy.run_path(str(example))
    except BaseException as error:  # it may even call sys.exit()
        where = _place(example, error)
        raise PluginError(f"{Current.name}: {where}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(EXAMPLES))
    return values, output.getvalue()


def _place(example: Path, error: BaseException) -> str:
    """The line and the section of the example in which an error came up."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(example)]
    if not lines:
        return example.name
    above = example.read_text("utf-8").splitlines()[: lines[-1]]
    names = [match["name"] for line in above if (match := SECTION.search(line))]
    return f"{example.name}:{lines[-1]}, section {names[-1] if names else '–'}"


def _drawings() -> dict:
    """What a fence `live` draws with."""
    from mha.show import ShapeLedger, WeightTable

    return {"WeightTable": WeightTable, "ShapeLedger": ShapeLedger}


def section(example: Path, name: str) -> list[str]:
    """The lines of one named section, as pymdownx.snippets cuts it."""
    text = example.read_text("utf-8")
    start, end = (f"# --8<-- [{edge}:{name}]\n" for edge in ("start", "end"))
    lines = text.split(start)[1].split(end)[0].splitlines()
    return [line for line in lines if not SECTION.search(line)]


def executable_lines(listing: list[str]) -> list[int]:
    """Numbers of the lines that hold code: neither blank nor only a comment."""
    return [
        number
        for number, line in enumerate(listing, 1)
        if line.strip() and not line.strip().startswith("#")
    ]


def live_inline(source, language, class_name, md):
    """`#!live expression` or `#!live expression:format`, in prose."""
    try:
        return f'<span class="live">{written(source)}</span>'
    except Exception as error:
        raise InlineHiliteException(f"{Current.name}: `#!live {source}`: {error}") from error


def live_fence(source, language, class_name, options, md, **kwargs):
    """A fence `live`: a drawing."""
    try:
        return value_of(source).to_html(writer(Current.words))
    except Exception as error:
        raise SuperFencesException(f"{Current.name}: ```live {source}: {error}") from error


def lines_inline(source, language, class_name, md):
    """`#!lines first … last`, or `#!lines only`: where this code stands in the listing."""
    ends = [_line_with(part.strip()) for part in source.split("…")]
    first, last = ends[0], ends[-1]
    Current.explained.update(range(first, last + 1))
    one, several = Current.words["lines"]
    label = f"{one} {first}" if first == last else f"{several} {first}–{last}"
    return f'<a class="lines" href="#lines-{first}-{last}">{label}</a>'


def written(source: str) -> str:
    """The value of an expression as this language writes it."""
    expression, spec = split_format(source)
    value = value_of(expression)
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray | list | tuple):
        inside = Current.words["list_separator"].join(
            _number(item, spec) for item in np.asarray(value).tolist()
        )
        return f"[{inside}]"
    return _number(value, spec)


def value_of(expression: str):
    """Evaluate against the names of the page's example."""
    return eval(expression, Current.values)


def split_format(source: str) -> tuple[str, str]:
    """Cut `expression:format` where Python's f-strings would."""
    field = ast.parse(f"f'''{{{source}}}'''", mode="eval").body.values[0]
    if field.format_spec is None:
        return source, ""
    spec = field.format_spec.values[0].value
    return source.removesuffix(":" + spec), spec


def _number(value, spec: str) -> str:
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"is {value}, not a finite number")
    spec = spec or (".3f" if isinstance(value, float) else ",d" if type(value) is int else "")
    return localise(format(value, spec), Current.words)


def _line_with(fragment: str) -> int:
    """The only line of the listing that holds this code."""
    found = [number for number, line in enumerate(Current.listing, 1) if fragment in line]
    if len(found) != 1:
        raise InlineHiliteException(
            f"{Current.name}: `#!lines {fragment}`: expected on 1 line of the listing, "
            f"found on {found}"
        )
    return found[0]


def number_lines(soup) -> None:
    """Give each line of code an id of its own: each executed block starts to count anew."""
    for count, block in enumerate(soup.select(".highlight"), 1):
        lines = block.select("span[id^=__span-]")
        listing = [line.get_text().rstrip("\n") for line in lines] == Current.listing != []
        for number, line in enumerate(lines, 1):
            line["id"] = f"listing-{number}" if listing else f"code-{count}-{number}"
        if listing:
            block["class"].append("listing")
            _mark_ranges(soup, lines)


def _mark_ranges(soup, lines) -> None:
    """Wrap each range of lines that is linked to, so that the style sheet can light it up."""
    for address in dict.fromkeys(link["href"] for link in soup.select("a.lines")):
        name, first, last = address.removeprefix("#").split("-")
        wrap = soup.new_tag("span", attrs={"class": "range"})
        lines[int(first) - 1].insert_before(wrap)
        wrap.append(soup.new_tag("span", id=f"{name}-{first}-{last}"))
        wrap.extend(lines[int(first) - 1 : int(last)])


class _Warnings(logging.Handler):
    """Keeps what was warned of while a page is made: markdown-exec reports a failed block so."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


_warnings = _Warnings()
_PRINT_OPTIONS = np.get_printoptions()
