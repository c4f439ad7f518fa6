"""One colour for query, one for key and one for value, in formulas, code and words.

Drawings have the same classes (mha/draw.py); the colours are in the style sheet. A block of code is
coloured only where all three stand together: elsewhere a `k` may be anything.
"""

import re

_NAME = re.compile(r"(?:[Ww]_)?([QKVqkv])|([qkv])_proj|(q)uery|(k)ey|(v)alue")
_MATRIX = re.compile(r"<(msub|msubsup)>(?=<mi>W</mi><mi>([QKV])</mi>)")
_WORD = re.compile(r"<(mi|code|strong)>(\w+)</\1>")
_BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)
_TOKEN = re.compile(r'<span class="n">(\w+)</span>')


def on_page_content(html, page, config, files):
    """Mark what stands for one of the three."""
    html = _MATRIX.sub(lambda match: f'<{match[1]} class="{role(match[2])}">', html)
    html = _WORD.sub(_word, html)
    return _BLOCK.sub(_block, html)


def role(name: str) -> str | None:
    """The class of a name that stands for query, key or value: `role-q` for q_proj, W_Q, Q."""
    match = _NAME.fullmatch(name)
    return f"role-{match[match.lastindex].lower()}" if match else None


def _word(match: re.Match) -> str:
    element, name = match.groups()
    small = element == "mi" and name.islower()  # the k of d_k counts features, it is no key
    if small or not role(name):
        return match[0]
    return f'<{element} class="{role(name)}">{name}</{element}>'


def _block(match: re.Match) -> str:
    block, names = match[0], set(_TOKEN.findall(match[0]))
    if len({role(name) for name in names} - {None}) == 3:
        for name in filter(role, names):
            block = block.replace(f'"n">{name}<', f'"n {role(name)}">{name}<')
    return block
