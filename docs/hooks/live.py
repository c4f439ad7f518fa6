"""Values of the page's example in its prose, written as the page's language writes them.

`#!live A1[0, 0]` in inline code becomes the value; `#!live max(errors):.1e` takes a format as in an
f-string. A fence `live` becomes what its expression draws (it has a method `to_html`).
"""

import ast
import re
from html import escape

import current
import numpy as np
from pymdownx.inlinehilite import InlineHiliteException
from pymdownx.superfences import SuperFencesException
from words import localise, writer


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
        return f'<span class="live">{written(source)}</span>'
    except Exception as error:
        raise InlineHiliteException(f"{current.page.name}: `#!live {source}`: {error}") from error


def live_fence(source, language, class_name, options, md, **kwargs):
    """A drawing."""
    if "svg" not in md.block_level_elements:  # it stands by itself, and in no paragraph
        md.block_level_elements.append("svg")
    try:
        return value_of(source).to_html(writer(current.page.words))
    except Exception as error:
        raise SuperFencesException(f"{current.page.name}: ```live {source}: {error}") from error


def written(source: str) -> str:
    """The value of an expression as this language writes it."""
    expression, spec = split_format(source)
    value = value_of(expression)
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray | np.generic | list | tuple):
        value = np.asarray(value).tolist()  # numbers of Python, and lists of them
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
    value = eval(compile(tree, "<live>", "eval"), values)
    typed = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    if isinstance(value, float | str) and value in [c for c in typed if type(c) in (float, str)]:
        raise ValueError(f"is {value!r}, which stands in it")
    return value


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
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"is {value}, not a finite number")
    spec = spec or (".3f" if isinstance(value, float) else ",d" if type(value) is int else "")
    return localise(format(value, spec), current.page.words)
