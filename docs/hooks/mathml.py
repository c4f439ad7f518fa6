"""Formulas become MathML while the site is built: no script, nothing to load."""

import re
from functools import cache
from html import unescape

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>'
    r"(?P<mark>[.,;:!?)]*)",
    re.DOTALL,
)


@cache
def to_math(latex: str, display: str) -> str:
    """Convert, where latex2mathml would guess or pass on what it does not know: raise."""
    braces = re.findall(r"(?<!\\)[{}]", latex)
    if braces.count("{") != braces.count("}"):
        raise ValueError("braces do not match")
    math = convert(latex, display=display)
    if "\\" in math:
        raise ValueError("a command was not understood")
    return math


def on_page_content(html, page, config, files):
    """Replace each formula that pymdownx.arithmatex marked."""

    def to_mathml(match: re.Match) -> str:
        latex = unescape(match["latex"]).strip()
        display = "block" if match["tag"] == "div" else "inline"
        try:
            math = to_math(latex, display)
        except Exception as error:
            raise PluginError(f"{page.file.src_uri}: formula {latex!r}: {error!r}") from error
        if display == "block":
            return f'<div class="formula" tabindex="0">{math}</div>{match["mark"]}'
        # no line break between a formula and the full stop behind it
        return f'<span class="unbroken">{math}{match["mark"]}</span>' if match["mark"] else math

    return _FORMULA.sub(to_mathml, html)
