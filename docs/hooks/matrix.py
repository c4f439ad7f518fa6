"""The parity matrix on its page: tables of the largest errors, and all cells in a file beside it.

docs/build.py computes the cells once, for all languages. A fence `matrix` names the column whose
values make the rows of a table; a fence `cells` offers all cells, which assets/matrix.js lets the
reader filter.
"""

import csv
import json
import shutil
import time
from html import escape
from pathlib import Path

import current
from mkdocs.exceptions import PluginError
from pymdownx.superfences import SuperFencesException
from words import writer

from mha.show import Table

NAME = "parity-matrix.csv"

_scratch = Path()


def on_config(config):
    """Teach Markdown both forms."""
    global _scratch
    _scratch = Path(config.site_dir).parent
    current.fence_form(config, "matrix", matrix_fence)
    current.fence_form(config, "cells", cells_fence)


def on_page_content(html, page, config, files):
    """Lay the cells beside the page that shows them; stop at one that is over its limit."""
    if f'href="{NAME}"' in html:
        cells = read(_scratch / NAME)
        if wrong := [c for c in cells if not float(c["error"]) <= float(c["limit"])]:
            raise PluginError(
                f"{page.file.src_uri}: {len(wrong)} of {len(cells)} cells of the parity matrix "
                f"are over their limit, among them {wrong[0]}"
            )
        target = Path(page.file.abs_dest_path).with_name(NAME)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(_scratch / NAME, target)  # its time says what it has seen


def matrix_fence(source, language, class_name, options, md, **kwargs):
    """The largest errors, by the values of the column named."""
    try:
        return summary(read(_scratch / NAME), source.strip()).to_html(writer(current.page.words))
    except (KeyError, ValueError) as error:
        raise SuperFencesException(f"{current.page.name}: ```matrix {source}: {error!r}") from error


def cells_fence(source, language, class_name, options, md, **kwargs):
    """A link to all cells, and the words in which they can be filtered."""
    words = current.page.words
    labels = words["matrix"] | {"columns": words["drawn"], "decimal": words["decimal"]}
    data = escape(json.dumps(labels, ensure_ascii=False))
    link = f'<a class="md-button" href="{NAME}" download>{words["matrix"]["download"]}</a>'
    return f'<div class="cells" data-words="{data}"><p>{link}</p></div>'


def read(path: Path) -> list[dict]:
    """All cells, as soon as they are there."""
    while not path.exists():  # the page's time limit ends this
        time.sleep(0.05)
    with path.open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    if not cells:
        raise ValueError("parity_matrix.py has failed and left no cells")
    return cells


def summary(cells: list[dict], name: str) -> Table:
    """For each value of a column: cells, and the largest error in each dtype; then the limits."""
    dtypes = list(dict.fromkeys(cell["dtype"] for cell in cells))
    rows = []
    for value in dict.fromkeys(cell[name] for cell in cells):
        group = [cell for cell in cells if cell[name] == value]
        label = value if value == "oracle" else f"`{value}`"
        rows.append([label, len(group), *(_largest(group, dtype, "error") for dtype in dtypes)])
    rows.append(["limit", "", *(_largest(cells, dtype, "limit") for dtype in dtypes)])
    return Table([name, "cells", *(f"`{dtype}`" for dtype in dtypes)], rows)


def _largest(cells: list[dict], dtype: str, column: str) -> str:
    return max((cell[column] for cell in cells if cell["dtype"] == dtype), key=float)
