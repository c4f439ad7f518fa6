"""Draws whose row is whose: a packed weight that holds names (`q1`: query of head 1)."""

from html import escape
from itertools import groupby

import numpy as np

CELL = 10  # units of a picture for one number of the weight


class HeadGrid:
    """A weight of names as a small picture: a colour for each head, a name for each of its parts.

    `names` is what a converter made of an array of names: a matrix, or for "einsum" three arrays of
    matrices. Where `num_kv_heads` is given, a key and a value have the colours of all their heads.
    """

    def __init__(self, layout: str, names, num_heads: int, num_kv_heads: int | None = None) -> None:
        self.layout, self.group = layout, num_heads // (num_kv_heads or num_heads)
        self.matrices = [names] if isinstance(names, np.ndarray) else [m for x in names for m in x]
        self.shapes = [x.shape for x in ([names] if isinstance(names, np.ndarray) else names)]

    def to_html(self, write) -> str:
        """Return a figure; nothing in it depends on the language."""
        parts, left = [], 0
        for matrix in self.matrices:
            parts += [self._part(matrix, name, left) for name in dict.fromkeys(matrix.ravel())]
            left += matrix.shape[1] * CELL + CELL // 2
        size = f"{left - CELL // 2} {self.matrices[0].shape[0] * CELL}"
        shapes = " ".join(str(tuple(shape)) for shape in dict.fromkeys(self.shapes))
        order = " ".join(dict.fromkeys(str(name) for m in self.matrices for name in m.ravel()))
        return (
            f'<figure class="heads"><svg viewBox="0 0 {size}" width="{size.split()[0]}" '
            f'height="{size.split()[1]}" role="img" '
            f'aria-label="{escape(f"{self.layout} {shapes}: {order}")}">{"".join(parts)}</svg>'
            f'<figcaption class="live"><code>{escape(f"{self.layout} {shapes}")}</code>'
            "</figcaption></figure>"
        )

    def _part(self, matrix, name: str, left: int) -> str:
        """All cells that bear one name, and the name in their middle."""
        heads = self._heads(name)
        rects = []
        for y, row in enumerate(matrix == name):
            for run in (list(run) for there, run in groupby(range(len(row)), row.item) if there):
                width = len(run) * CELL / len(heads)
                rects += [
                    f'<rect class="h{head}" x="{left + run[0] * CELL + i * width:g}" '
                    f'y="{y * CELL}" width="{width:g}" height="{CELL}"/>'
                    for i, head in enumerate(heads)
                ]
        y, x = (np.argwhere(matrix == name).mean(axis=0) + 0.5) * CELL
        text = f'<text x="{left + x:g}" y="{y:g}">{escape(name)}</text>'
        owners = " ".join(map(str, heads))
        return f'<g class="{name[0]}" data-heads="{owners}">{"".join(rects)}{text}</g>'

    def _heads(self, name: str) -> list[int]:
        """Whose it is: a query is of one head, a key or value of all that share it."""
        number = int(name[1:])
        if name[0] == "q":
            return [number]
        return list(range((number - 1) * self.group + 1, number * self.group + 1))
