"""Weights as lines between tokens, shapes as tensors that are cut, turned and joined: SVG.

Whatever has a colour has a class (`role-q`, `role-k`, `role-v`); without a style sheet it is drawn
in the colour of the text.
"""

from __future__ import annotations

from html import escape

import numpy as np

from .show import ShapeLedger, WeightTable, Write

THICKEST = 12  # of a line, for a weight of 1
ROW, GAP, LETTER = 40, 140, 8  # height of a token, way between queries and keys, width of a letter


class HeadView(WeightTable):
    """Attention weights of one head `(L, S)` as lines, the thicker the larger.

    Queries stand on the left, keys on the right. A query that has the focus, or that is pointed at,
    can be shown alone and with its weights by a style sheet; its label says them in any case.
    Arguments and errors are those of `WeightTable`; `print` writes the same plain text.

    >>> HeadView([[1.0, 0.0], [0.25, 0.75]], keys=["ikan", "makan"]).to_html().count("<line")
    3
    """

    def to_html(self, write: Write = str) -> str:
        """Return an SVG; `write` turns each piece of text into the reader's language."""
        left = LETTER * (1 + max(map(len, self.queries), default=0))
        right = left + GAP
        edge = right + LETTER * (7 + max(map(len, self.keys), default=0))
        parts = [
            _text(right + LETTER, _middle(j), escape(key), 'class="role-k"')
            for j, key in enumerate(self.keys)
        ]
        parts += [
            self._query(i, [write(f"{w:.3f}") for w in row], left, right, edge)
            for i, row in enumerate(self.weights)
        ]
        text = 'role="group" font-size="14" dominant-baseline="central"'
        return _svg("head-view", (edge, ROW * max(self.weights.shape)), "".join(parts), text)

    def _query(self, i: int, weights: list[str], left: int, right: int, edge: int) -> str:
        """One query: its name, its lines, and its weights beside the keys."""
        name, y = escape(self.queries[i]), _middle(i)
        said = "; ".join(f"{key} {w}" for key, w in zip(self.keys, weights, strict=True))
        lines = "".join(
            f'<line x1="{left}" y1="{y}" x2="{right}" y2="{_middle(j)}" '
            f'stroke-width="{THICKEST * w:.2f}"/>'
            for j, w in enumerate(np.clip(self.weights[i], 0, 1))
            if w > 0
        )
        shown = "".join(
            _text(edge, _middle(j), w, 'class="weight" text-anchor="end" visibility="hidden"')
            for j, w in enumerate(weights)
        )
        label = f'tabindex="0" role="img" aria-label="{name} → {escape(said)}"'
        area = f'<rect y="{i * ROW}" width="{left}" height="{ROW}" fill="none"/>'
        query = _text(left - LETTER, y, name, 'class="role-q" text-anchor="end"')
        return f'<g class="query" {label}>{query}{area}{lines}{shown}</g>'

    def _repr_html_(self) -> str:
        return self.to_html()


CELL, LANE, STEP = 7, 108, 104  # pitch of numbers, width of a lane, height of a step
TOP, LINE = 40, 14  # of the numbers in a step, of words above them


class ShapeFlow:
    """The tensors of a `ShapeLedger` from top to bottom, each drawn as it is nested.

    The last axis runs to the right, the one before it downwards, and along the one before that
    stand blocks side by side; of the batch axis `B` the first sample is drawn. What comes from
    `q_proj`, `k_proj` and `v_proj` has a lane and a class each, until it meets something else. The
    first head is filled, the last one hollow. `ValueError` for a tensor with more axes or without
    numbers, and for a step that moves half an axis, as in a layer whose heads share keys.
    """

    def __init__(self, ledger: ShapeLedger) -> None:
        self.rows, self.sources = ledger.rows, ledger.sources
        self.depth: list[int] = []
        self.role: list[str] = []
        for (operation, _, axes, shape), sources in zip(self.rows, self.sources, strict=True):
            if 0 in shape:
                raise ValueError(f"expected at least 1 along each axis of {axes}, got {shape}")
            self.depth.append(max((self.depth[s] + 1 for s in sources), default=0))
            own = operation[0] if operation in ("q_proj", "k_proj", "v_proj") else ""
            inherited = self.role[sources[0]] if len(sources) == 1 else ""
            self.role.append(own or inherited)

    def to_html(self, write: Write = str) -> str:
        """Return an SVG; `write` turns each piece of text into the reader's language."""
        parts, said = [], []
        for i, (operation, name, axes, _) in enumerate(self.rows):
            words = [operation, name, write(self.change(i)) if self.change(i) else ""]
            said.append(" ".join(filter(None, [*words, axes])))
            parts += [self._way(source, i) for source in self.sources[i]]
            parts.append(self._tensor(i, words))
        label = f'role="img" font-size="11" aria-label="{escape("; ".join(said))}"'
        size = (3 * LANE, STEP * (1 + max(self.depth)) - LINE)
        return _svg("shape-flow", size, "".join(parts), label)

    def change(self, i: int) -> str:
        """What the step did to the axes: `cut`, `turned`, `joined`, or nothing."""
        if len(self.sources[i]) != 1:
            return ""
        before, after = self.rows[self.sources[i][0]][3], self.rows[i][3]
        if np.prod(before) != np.prod(after) or before == after:
            return ""
        if len(before) == len(after):
            return self._turned(i)
        return "cut" if len(before) < len(after) else "joined"

    def _turned(self, i: int) -> str:
        """Only a step that leaves every axis whole turns; heads that share a key cut one in two."""
        (operation, *_, after), before = self.rows[i], self.rows[self.sources[i][0]][3]
        if operation in ("reshape", "view") or sorted(before) != sorted(after):
            got = f"{operation} from {before} to {after}"
            raise ValueError(f"expected a step that cuts, turns or joins whole axes, got {got}")
        return "turned"

    def heads(self, i: int) -> np.ndarray | None:
        """For each number of the tensor its head, from 0 to 1; `None` if it belongs to no head.

        A tensor about to be cut, or just joined, has its heads side by side in the last axis.
        """
        near = [i, *self.sources[i], *(j for j, s in enumerate(self.sources) if i in s)]
        count = next((n for j in near if (n := self._heads_of(j, i))), 0)
        if not count:
            return None
        axes, shape = self._axes(i), self.rows[i][3]
        axis = axes.index("H") if "H" in axes else len(shape) - 1
        head: np.ndarray = np.indices(shape)[axis] // (shape[axis] // count)
        return head / max(1, count - 1)

    def _heads_of(self, j: int, i: int) -> int:
        """How many heads tensor j has, if it holds the same numbers as tensor i."""
        axes, shape = self._axes(j), self.rows[j][3]
        same = np.prod(shape) == np.prod(self.rows[i][3])
        return shape[axes.index("H")] if "H" in axes and same else 0

    def _axes(self, i: int) -> list[str]:
        return self.rows[i][2].strip("()").split(", ")

    def _place(self, i: int) -> tuple[int, int]:
        """Where the numbers of a step stand: the middle of its lane, and their upper edge."""
        lane = {"q": 0, "k": 1, "v": 2}.get(self.role[i], 1)
        return LANE * lane + LANE // 2, STEP * self.depth[i] + TOP

    def _way(self, source: int, i: int) -> str:
        """From below one tensor to above the next one: down its own lane, across, and down."""
        (x, y), (to_x, to_y) = self._place(source), self._place(i)
        words = 2 if self.change(i) else 1
        line = f"M{x} {y + 52}V{to_y - 46}H{to_x}V{to_y - 12 - LINE * words}"
        return f'<path class="way" fill="none" stroke-width="1" d="{line}"/>'

    def _tensor(self, i: int, words: list[str]) -> str:
        x, y = self._place(i)
        operation, name, change = words
        title = escape(" → ".join(filter(None, [operation, name])))
        above = y - 12  # the last line of words
        parts = [
            _text(x, above - LINE * bool(change), title, 'class="code" text-anchor="middle"'),
            _text(x, above, escape(change), 'text-anchor="middle"'),
            self._cells(i, x, y),
            _text(x, y + 44, escape(self.rows[i][2]), 'class="code" text-anchor="middle"'),
        ]
        role = f' class="role-{self.role[i]}"' if self.role[i] else ""
        return f"<g{role}>{''.join(parts)}</g>"

    def _cells(self, i: int, middle: int, top: int) -> str:
        """The numbers of the first sample, as squares."""
        heads, shape = self.heads(i), self.rows[i][3]
        fill = np.full(shape, 0.4) if heads is None else 1 - heads
        fill = fill[0] if self._axes(i)[0] == "B" else fill
        if fill.ndim > 3:
            raise ValueError(f"expected at most 3 axes besides B, got {self.rows[i][2]}")
        blocks: np.ndarray = fill[(None,) * (3 - fill.ndim)]
        width = CELL * blocks.shape[-1] + 4
        left = middle - (width * len(blocks) - 4) // 2
        squares: dict[str, str] = {}
        for (block, row, column), shade in np.ndenumerate(blocks):
            x, y = left + width * block + CELL * column, top + CELL * row
            opacity = f'fill-opacity="{shade:.2f}"'
            squares[opacity] = squares.get(opacity, "") + f"M{x} {y}h5v5h-5z"
        return "".join(
            f'<path class="cells" stroke-width="1" {opacity} d="{line}"/>'
            for opacity, line in squares.items()
        )

    def _repr_html_(self) -> str:
        return self.to_html()


def _middle(row: int) -> int:
    return ROW * row + ROW // 2


def _text(x: int, y: int, text: str, attributes: str) -> str:
    return f'<text x="{x}" y="{y}" {attributes}>{text}</text>' if text else ""


def _svg(kind: str, size: tuple[int, int], content: str, attributes: str) -> str:
    width, height = size
    return (
        f'<svg class="drawing {kind}" {attributes} width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" fill="currentColor" stroke="currentColor" '
        f'stroke-width="0">{content}</svg>'
    )
