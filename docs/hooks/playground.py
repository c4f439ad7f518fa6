"""Where docs/theme/assets/playground/ works: what it starts from, and what stays without it.

A page draws it with a fence `live`: `Playground(presets, results)`. The script takes presets and
words from this element and shows its own tables in place of the build's.
"""

import json
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import current
import numpy as np

from mha.show import WeightTable


class Playground:
    """Named states of one layer, and what the build computed from them.

    A preset has `X` and `H`, and what differs from plain two-headed attention on blocks: `W_Q`,
    `W_K`, `W_V`, `W_O`, `allow`, `scaled`. A result is `(A, Z, Y)`: weights `(H, T, T)`, concat and
    output `(T, d_model)`. With `small`, the reader changes only X and sees only the weights.
    """

    def __init__(
        self,
        presets: Mapping[str, Mapping[str, Any]],
        results: Mapping[str, tuple[Any, ...]],
        *,
        small: bool = False,
    ) -> None:
        if presets.keys() != results.keys():
            raise ValueError(f"presets {[*presets]} and results {[*results]} are not the same")
        self.presets, self.results, self.small = presets, results, small

    def to_html(self, write: Callable[[str], str]) -> str:
        """The element with its data, and tables of the results inside."""
        words = current.page.words["playground"] | {"decimal": current.page.words["decimal"]}
        data = {"words": words, "presets": self.presets}
        given = "".join(
            f' data-{name}="{escape(json.dumps(value, default=_plain, ensure_ascii=False))}"'
            for name, value in data.items()
        )
        tables = "".join(self._tables(name, words, write) for name in self.presets)
        more = f'<p><a href="../playground/">{escape(words["more"])}</a></p>' if self.small else ""
        small = " data-small" if self.small else ""
        return f'<div class="playground"{small}{given}><div>{tables}</div>{more}</div>'

    def _tables(self, name: str, words: dict, write: Callable[[str], str]) -> str:
        """One preset's results; its name is an address on the page."""
        A, *wide = self.results[name]
        drawn = [_figure(f"head {h}", weights, write) for h, weights in enumerate(A, 1)]
        if self.small:
            return f'<div class="tables">{"".join(drawn)}</div>'
        for kind, rows in zip(("concat", "output"), wide, strict=True):
            columns = [str(column) for column in range(rows.shape[1])]
            drawn.append(_figure(words[kind], rows, write, columns))
        title = escape(words["presets"][name])
        tables = f'<div class="tables">{"".join(drawn)}</div>'
        return f'<div id="{name}"><strong>{title}</strong></div>{tables}'


def _figure(caption: str, rows: np.ndarray, write: Callable[[str], str], columns=None) -> str:
    queries = [f"token {i}" for i in range(len(rows))]
    table = WeightTable(rows, keys=columns, queries=queries).to_html(
        lambda text: "" if columns and "key" in text else write(text)  # its columns are no keys
    )
    return f"<figure>{table}<figcaption>{escape(caption)}</figcaption></figure>"


def _plain(value: Any) -> Any:
    """What JSON does not know: arrays and NumPy's numbers."""
    return np.asarray(value).tolist()
