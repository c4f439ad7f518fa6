"""Weights as a coloured table, shapes as a ledger, facts: for pages, notebooks and terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from .functions import as_numpy

if TYPE_CHECKING:
    import torch

Write = Callable[[str], str]  # puts a piece of text into the reader's language

LEVELS = 20  # a cell's class says in which twentieth of 0 to 1 its weight lies

# A notebook has no style sheet of ours. The site has, and takes this element out.
_STYLE = "".join(
    f".weights .w{level}{{background:color-mix(in srgb,#0a9 {100 * level // LEVELS}%,transparent)}}"
    for level in range(LEVELS + 1)
)


class WeightTable:
    """Attention weights of one head `(L, S)`: a row per query, a column per key.

    `print` writes plain text; Jupyter shows a table in which the larger the weight, the stronger
    the colour of its cell. `queries` and `keys` name the rows and columns; `keys` alone names both.
    `ValueError` if `weights` is not a matrix or the number of names does not fit.

    >>> print(WeightTable([[1.0, 0.0], [0.25, 0.75]], keys=["ikan", "makan"]))
            ikan  makan
    ikan   1.000  0.000
    makan  0.250  0.750
    """

    def __init__(
        self,
        weights: Any,
        *,
        keys: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
    ) -> None:
        self.weights = as_numpy(weights)
        if self.weights.ndim != 2:
            raise ValueError(f"weights: expected shape (L, S), got {self.weights.shape}")
        length, sources = self.weights.shape
        self.keys = list(keys) if keys is not None else [f"token {j}" for j in range(sources)]
        rows = queries if queries is not None else keys
        self.queries = list(rows) if rows is not None else [f"token {i}" for i in range(length)]
        if (len(self.queries), len(self.keys)) != (length, sources):
            raise ValueError(
                f"names: expected {length} queries and {sources} keys, "
                f"got {len(self.queries)} and {len(self.keys)}"
            )

    def __str__(self) -> str:
        rows = [["", *self.keys]]
        for query, row in zip(self.queries, self.weights, strict=True):
            rows.append([query, *(f"{weight:.3f}" for weight in row)])
        return _columns(rows, right=range(1, len(rows[0])))

    def to_html(self, write: Write = str) -> str:
        """Return an HTML table; `write` turns each piece of text into the reader's language."""
        rows = []
        for query, row in zip(self.queries, self.weights, strict=True):
            cells = "".join(f'<td class="{_level(w)}">{write(f"{w:.3f}")}</td>' for w in row)
            rows.append(f'<tr><th scope="row">{escape(query)}</th>{cells}</tr>')
        return _table("weights", ["query ↓ key →", *self.keys], rows, write)

    def _repr_html_(self) -> str:
        return f"<style>{_STYLE}</style>{self.to_html()}"


class Table:
    """Facts in rows: text, numbers and truth values, with a name at the head of each row.

    A float shows three decimals, a bool `yes` or `no`. Text in backticks is code: it looks like
    code in HTML, and no language changes it. `ValueError` if a row does not fit the header.

    >>> print(Table(["path", "finite", "error"], [["`train`", True, 0.25], ["`eval`", False, 2]]))
    path     finite  error
    `train`  yes     0.250
    `eval`   no      2
    """

    def __init__(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        self.header, self.rows = list(header), [list(row) for row in rows]
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"rows: expected {len(self.header)} cells, got {len(row)}: {row}")

    def __str__(self) -> str:
        return _columns([self.header, *([_plain(cell) for cell in row] for row in self.rows)])

    def to_html(self, write: Write = str) -> str:
        """Return an HTML table; `write` turns each piece of text into the reader's language."""
        rows = []
        for name, *row in self.rows:
            cells = "".join(f"<td{_kind(cell)}>{_rich(_plain(cell), write)}</td>" for cell in row)
            head = f'<th scope="row"{_kind(name)}>{_rich(_plain(name), write)}</th>'
            rows.append(f"<tr>{head}{cells}</tr>")
        columns = zip(*self.rows, strict=True)
        numeric = [any("number" in _kind(cell) for cell in column) for column in columns]
        return _table("facts", self.header, rows, write, numeric)

    def _repr_html_(self) -> str:
        return self.to_html()


class ShapeLedger:
    """Every tensor that one call of a torch module creates, recorded during the call.

    A row has the operation (or the submodule, such as `q_proj`), the name that the module's own
    code gives the result, its axes and its shape; the first row is the input. Axes are recognised
    by their size, so `sizes` has to give each axis a different one:
    `{"B": 1, "T": 4, "H": 2, "d_k": 3, "d_model": 6}`; `ValueError` if it does not. `sources` has,
    for each row, the numbers of the rows from which its tensor was made.
    """

    def __init__(self, module: torch.nn.Module, x: torch.Tensor, sizes: Mapping[str, int]) -> None:
        axes = {size: axis for axis, size in sizes.items()}
        if len(axes) != len(sizes):
            raise ValueError(f"sizes: expected a different one for each axis, got {dict(sizes)}")
        results, names = _capture(module, x)
        self.rows = [
            (operation, names.get(id(result), ""), _axes(result.shape, axes), tuple(result.shape))
            for operation, result, _ in results
        ]
        self.sources = [sources for _, _, sources in results]

    def __str__(self) -> str:
        return _columns([[str(cell) for cell in row] for row in self.rows])

    def to_html(self, write: Write = str) -> str:
        """Return an HTML table; `write` turns each piece of text into the reader's language."""
        rows = []
        for row in self.rows:
            cells = (f"<code>{escape(str(cell))}</code>" if cell else "" for cell in row)
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        return _table("ledger", ["operation", "name", "axes", "shape"], rows, write)

    def _repr_html_(self) -> str:
        return self.to_html()


def _capture(
    module: torch.nn.Module, x: torch.Tensor
) -> tuple[list[tuple[str, torch.Tensor, list[int]]], dict[int, str]]:
    """Run the module; return (operation, result, sources) in order, and names by results' ids."""
    import torch
    from torch.overrides import TorchFunctionMode, resolve_name

    results: list[tuple[str, torch.Tensor, list[int]]] = [("", x, [])]  # held: no id comes twice
    owner = {id(p): name.rpartition(".")[0] for name, p in module.named_parameters() if "." in name}

    class Recorder(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                children = [owner[id(arg)] for arg in args if id(arg) in owner]
                operation = (children or [_operation(resolve_name(func))])[0]
                last = {id(made): i for i, (_, made, _) in enumerate(results)}
                # a step that returns what it was given, as in place, stands for it from then on
                sources = sorted({last[id(arg)] for arg in args if id(arg) in last})
                results.append((operation, result, sources))
            return result

    with torch.no_grad(), Recorder():
        return results, _names(module, x)


def _names(module: torch.nn.Module, x: torch.Tensor) -> dict[int, str]:
    """Run the module; return the names that its own code gives, by the ids of the tensors."""
    import torch

    names: dict[int, str] = {}
    own = {f.__code__ for f in vars(type(module)).values() if hasattr(f, "__code__")}

    def on_return(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code in own:
            found = frame.f_locals.items()
            names.update({id(x): name for name, x in found if isinstance(x, torch.Tensor)})

    before = sys.getprofile()
    sys.setprofile(on_return)
    try:
        module(x)
    finally:
        sys.setprofile(before)
    return names


def _operation(name: str) -> str:
    """`torch.Tensor.matmul` is `@`, `torch.Tensor.mT.__get__` is `mT` in the code that is run."""
    last = name.removesuffix(".__get__").rpartition(".")[2]
    return {"matmul": "@", "div": "/"}.get(last, last)


def _axes(shape: Iterable[int], axes: Mapping[int, str]) -> str:
    return f"({', '.join(axes.get(size, '?') for size in shape)})"


def _level(weight: float) -> str:
    return f"w{round(LEVELS * np.clip(weight, 0, 1))}" if np.isfinite(weight) else "wx"


def _plain(cell: Any) -> str:
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    if isinstance(cell, int | np.integer):
        return f"{cell:,}"
    return f"{cell:.3f}" if isinstance(cell, float | np.floating) else str(cell)


def _rich(text: str, write: Write) -> str:
    code = len(text) > 2 and text[0] == text[-1] == "`"
    return f"<code>{escape(text[1:-1])}</code>" if code else write(escape(text, quote=False))


def _kind(cell: Any) -> str:
    """The class of a cell: truth values are coloured, numbers stand at the right."""
    if isinstance(cell, bool | np.bool_):
        return f' class="{_plain(cell)}"'
    return ' class="number"' if isinstance(cell, int | float | np.number) else ""


def _table(
    kind: str,
    header: list[str],
    rows: list[str],
    write: Write,
    numeric: Sequence[bool] = (),
) -> str:
    """A table; the heading of a numeric column stands at the right, as its numbers do."""
    head = ""
    for cell, is_numeric in zip_longest(header, numeric):
        mark = ' class="number"' if is_numeric else ""
        head += f'<th scope="col"{mark}>{_rich(cell, write)}</th>'
    return (
        f'<table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _columns(rows: list[list[str]], right: Iterable[int] = ()) -> str:
    """Rows of cells as aligned plain text."""
    size = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [c.rjust(size[i]) if i in right else c.ljust(size[i]) for i, c in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
