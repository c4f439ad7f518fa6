"""Draws amounts against the length of a text, both axes logarithmic: a straight line is a power."""

import math
from collections.abc import Callable, Mapping
from html import escape

from words import amount, scale

WIDTH, HEIGHT = 340, 252
LEFT, RIGHT, TOP, BOTTOM = 62, 320, 48, 212  # where the axes end
NAME = 112  # room for a line's name
MARKS = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4 -4h8v8h-8z", "M0 -5l5 9h-10z"
MOST = 7  # ticks


class Curve:
    """Up to three lines through points {T: amount}, each with a name, in seconds or bytes.

    Whatever has a colour has a class; the label of the picture says every point. `ValueError` for
    more lines, for a single length, and for an amount that is not positive.
    """

    def __init__(self, lines: Mapping[str, Mapping[int, float]], unit: str, title: str) -> None:
        if len(lines) > len(MARKS):
            names = f"got {len(lines)}: {', '.join(lines)}"
            raise ValueError(f"expected at most {len(MARKS)} lines, {names}")
        self.lines, self.unit, self.title = lines, unit, title
        amounts = [amount for line in lines.values() for amount in line.values()]
        if min(amounts) <= 0:
            raise ValueError(f"{min(amounts)} has no place on a logarithmic axis")
        self.lengths = sorted({T for line in lines.values() for T in line})
        if len(self.lengths) < 2:
            raise ValueError(f"expected two lengths or more, got {self.lengths}")
        self.lowest, self.highest = min(amounts) / 1.3, max(amounts) * 1.3

    def to_html(self, write: Callable[[str], str]) -> str:
        """Return an SVG; `write` turns each number into the reader's language."""
        parts = [*self._axes(write), *map(self._line, range(len(self.lines)), self.lines)]
        return (
            f'<svg class="drawing curve" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            f'height="{HEIGHT}" role="img" aria-label="{escape(write(self.said()))}">'
            f"{''.join(parts)}</svg>"
        )

    def said(self) -> str:
        """Every point."""
        lines = [f"{self.title}, T"]
        for name, line in self.lines.items():
            points = (f"{T:,} → {amount(value, self.unit)}" for T, value in line.items())
            lines.append(f"{name}: {'; '.join(points)}")
        return ". ".join(lines)

    def x(self, T: float) -> float:
        """Where a length stands."""
        first, last = self.lengths[0], self.lengths[-1]
        return LEFT + (RIGHT - LEFT) * math.log(T / first) / math.log(last / first)

    def y(self, value: float) -> float:
        """Where an amount stands."""
        share = math.log(value / self.lowest) / math.log(self.highest / self.lowest)
        return BOTTOM - (BOTTOM - TOP) * share

    def ticks(self) -> list[float]:
        """1, 2 and 5 times powers of ten; only those of ten where that makes too many."""
        one = scale(self.unit, self.lowest)[0]
        powers = [10.0**power * one for power in range(9)]
        every = [digit * power for power in powers for digit in (1, 2, 5)]
        ticks = [tick for tick in every if self.lowest <= tick <= self.highest]
        return ticks if len(ticks) <= MOST else [tick for tick in ticks if tick in powers]

    def _axes(self, write: Callable[[str], str]):
        """The grid, its numbers, and what they are."""
        for tick in self.ticks():
            factor, unit = scale(self.unit, self.lowest if self.unit == "B" else tick)
            y, text = self.y(tick), write(f"{tick / factor:,g}\N{NO-BREAK SPACE}{unit}")
            yield f'<path d="M{LEFT} {y:.1f}H{RIGHT}"/>'
            yield f'<text x="{LEFT - 6}" y="{y:.1f}" class="amount">{text}</text>'
        for T in self.lengths:
            x, text = self.x(T), write(f"{T:,}")
            yield f'<path d="M{x:.1f} {TOP}V{BOTTOM}"/>'
            yield f'<text x="{x:.1f}" y="{BOTTOM + 14}" class="length">{text}</text>'
        yield f'<text x="{NAME // 10}" y="14">{escape(self.title)}</text>'
        yield f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 32}" class="length">T</text>'

    def _line(self, number: int, name: str) -> str:
        """A line, a mark at each of its points, and one beside its name."""
        points = [(self.x(T), self.y(value)) for T, value in sorted(self.lines[name].items())]
        way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        left, mark = NAME // 10 + 5 + NAME * number, MARKS[number]
        marks = "".join(
            f'<path class="mark" transform="translate({x:.1f} {y:.1f})" d="{mark}"/>'
            for x, y in [*points, (left, 30)]
        )
        text = f'<text x="{left + 11}" y="30">{escape(name)}</text>'
        return f'<g class="line{number}"><path d="{way}"/>{marks}{text}</g>'
