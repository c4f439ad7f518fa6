"""Values of the page's example in its prose, written as the page's language writes them.

`#!live A1[0, 0]` in inline code becomes the value; `#!live max(errors):.1e` takes a format as in an
f-string. A fence `live` becomes what its expression draws (it has a method `to_html`).
"""

import ast
import re
from html import escape
from pathlib import Path

import current
import numpy as np
from places import DOCS, example_of, slug_of
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException
from stamp import stamp
from words import DEFAULT, WORDS, localise, writer

FORMS = re.compile(r"`#!live (?P<inline>[^`]+)`|^ *```live\n(?P<fence>.*?)^ *```$", re.M | re.S)


def on_config(config):
    """Teach Markdown both forms."""
    current.inline_form(config, "live", live_inline)
    current.fence_form(config, "live", live_fence)


def on_page_content(html, page, config, files):
    """Let links lead into drawings: MkDocs has seen only what Markdown made."""
    if page.present_anchor_ids is not None:  # a notebook has none
        page.present_anchor_ids.update(re.findall(r'\sid="([^"]+)"', html))


def live_inline(source, language, class_name, md):
    """A value in a sentence."""
    try:
        return f'<span class="live">{_as_by_itself(source, written(source))}</span>'
    except Exception as error:
        raise InlineHiliteException(f"{current.page.name}: `#!live {source}`: {error}") from error


def live_fence(source, language, class_name, options, md, **kwargs):
    """A drawing."""
    if "svg" not in md.block_level_elements:  # it stands by itself, and in no paragraph
        md.block_level_elements.append("svg")
    try:
        return _as_by_itself(source, drawn(source))
    except Exception as error:
        raise SuperFencesException(f"{current.page.name}: ```live {source}: {error}") from error


def said_with(names: dict, example: Path) -> dict[str, str]:
    """What the page of an example says with the names that another run of it has bound."""
    name, said = f"{slug_of(example)}.md", {}
    current.page.begin(name=name, words=WORDS[DEFAULT], values=names, given=given())
    for form in FORMS.finditer((DOCS / DEFAULT / name).read_text("utf-8")):
        try:
            text = written(form["inline"]) if form["inline"] else drawn(form["fence"])
        except Exception as error:  # when the page is made, this stops the build
            text = f"{type(error).__name__}: {error}"
        said[_in_one_line(form["inline"] or form["fence"])] = text
    return said


def given() -> dict:
    """What every page has besides the names of its example: it draws with most of them."""
    from headgrid import HeadGrid
    from playground import Playground

    from mha.draw import HeadView, ShapeFlow
    from mha.show import ShapeLedger, Table, WeightTable

    drawings = HeadGrid, HeadView, Playground, ShapeFlow, ShapeLedger, Table, WeightTable
    return {"built": stamp()} | {drawing.__name__: drawing for drawing in drawings}


def _as_by_itself(source: str, text: str) -> str:
    """The text, if the example run by itself (docs/alone.py) gives the same."""
    if current.page.said is None or (other := current.page.said.get(_in_one_line(source))) == text:
        return text
    shown = "differs" if "<" in text else f"is {text}, but {other}"
    raise ValueError(f"{shown} when {example_of(current.page.name).name} runs by itself: no seed?")


def _in_one_line(source: str) -> str:
    return " ".join(source.split())


def drawn(source: str) -> str:
    """What an expression draws in this language."""
    if figures := [typed for typed in _typed(source) if isinstance(typed, float)]:
        raise ValueError(f"{figures[0]!r} stands in it")
    return value_of(source).to_html(writer(current.page.words))


def written(source: str) -> str:
    """The value of an expression as this language writes it."""
    expression, spec = split_format(source)
    value = value_of(expression)
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray | np.generic | list | tuple):
        value = np.asarray(value).tolist()  # numbers of Python, and lists of them
    _refuse_typed(value, _typed(expression))
    return _text(value, spec)


def value_of(expression: str):
    """Evaluate against the names of the page's example; a value typed in is no value of it."""
    tree = ast.parse(expression.strip(), mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    values = current.page.given | current.page.values
    if not names & values.keys():
        raise ValueError("uses no name of the example")
    if unclear := names & current.page.rebound:
        raise ValueError(f"bound in more than one section: {', '.join(sorted(unclear))}")
    if any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree)):
        raise ValueError("assigns a value")
    return eval(compile(tree, "<live>", "eval"), values)


def _typed(expression: str) -> list[float | str]:
    """The figures and texts that stand in an expression; a figure also as its negative."""
    nodes = ast.walk(ast.parse(expression.strip(), mode="eval"))
    found = [node.value for node in nodes if isinstance(node, ast.Constant)]
    figures = [value for value in found if isinstance(value, float)]
    return [*figures, *(-x for x in figures), *(value for value in found if isinstance(value, str))]


def _refuse_typed(value, typed: list[float | str]) -> None:
    for part in value if isinstance(value, list) else ():
        _refuse_typed(part, typed)
    if isinstance(value, float | str) and value in typed:
        raise ValueError(f"is {value!r}, which stands in it")


def split_format(source: str) -> tuple[str, str]:
    """Cut `expression:format` where Python's f-strings would."""
    field = ast.parse(f"f'''{{{source}}}'''", mode="eval").body.values[0]
    if field.format_spec is None:
        return source, ""
    spec = field.format_spec.values[0].value
    return source.removesuffix(":" + spec), spec


def _text(value, spec: str) -> str:
    if isinstance(value, list):
        items = (_text(item, spec) for item in value)
        return f"[{current.page.words['list_separator'].join(items)}]"
    if isinstance(value, str):
        return escape(value)
    if not isinstance(value, bool | int | float):
        raise ValueError(f"is {value!r}, no number or text")
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"is {value}, not a finite number")
    spec = spec or (".3f" if isinstance(value, float) else ",d" if type(value) is int else "")
    return localise(format(value, spec), current.page.words)
