"""Listings that their page explains line by line.

The page's front matter names sections of its example: `listing: [softmax, attention]`. In the
explanation `#!lines first … last` or `#!lines only` becomes the numbers of the lines with this
code, and a link that lights them up. Every line of code has an address, and has to be explained.
"""

import current
from mkdocs.exceptions import PluginError
from pymdownx.inlinehilite import InlineHiliteException
from selectolax.lexbor import LexborHTMLParser


def on_config(config):
    """Teach Markdown the form."""
    current.inline_form(config, "lines", lines_inline)


def on_page_content(html, page, config, files):
    """Number the lines, give those of code an address; stop if one goes unexplained."""
    for name, listing in current.page.listings.items():
        silent = {(name, number) for number in lines_of_code(listing)} - current.page.explained
        if silent:
            lines = ", ".join(str(number) for _, number in sorted(silent))
            raise PluginError(
                f"{page.file.src_uri}: no word about line(s) {lines} of the listing {name}"
            )
    tree = LexborHTMLParser(f"<body>{html}")
    for count, block in enumerate(tree.css(".highlight"), 1):
        lines = block.css("span[id^=__span-]")
        name = _name_of([line.text().rstrip("\n") for line in lines])
        for number, line in enumerate(lines, 1):
            if name:
                _with_address(line, name, number)
            else:  # Pygments' own ids begin anew in every executed block
                line.attrs["id"] = f"code-{count}-{number}"
        if name:
            block.attrs["class"] += " listing"
            _mark_ranges(tree, name, lines)
    return tree.body.inner_html


def lines_inline(source, language, class_name, md):
    """Where this code stands in a listing."""
    ends = [_line_with(part.strip()) for part in source.split("…")]
    (name, first), (other, last) = ends[0], ends[-1]
    if name != other or first > last:
        raise InlineHiliteException(
            f"{current.page.name}: `#!lines {source}`: "
            f"begins on line {first} of {name}, ends on line {last} of {other}"
        )
    current.page.explained.update((name, number) for number in range(first, last + 1))
    address = f"{name}-{first}" if first == last else f"{name}-{first}-{last}"
    return f'<a class="lines" href="#{address}">{_label(first, last)}</a>'


def lines_of_code(listing: list[str]) -> list[int]:
    """Numbers of the lines that are neither blank nor only a comment."""
    return [
        number
        for number, line in enumerate(listing, 1)
        if line.strip() and not line.strip().startswith("#")
    ]


def _line_with(fragment: str) -> tuple[str, int]:
    """The only line of the listings that holds this code."""
    found = [
        (name, number)
        for name, listing in current.page.listings.items()
        for number, line in enumerate(listing, 1)
        if fragment in line
    ]
    if len(found) != 1:
        where = ", ".join(f"{name} {number}" for name, number in found)
        raise InlineHiliteException(
            f"{current.page.name}: `#!lines {fragment}`: expected on 1 line of the listings, "
            f"found on {len(found)}: {where}"
        )
    return found[0]


def _label(first: int, last: int) -> str:
    one, several = current.page.words["lines"]
    return f"{one} {first}" if first == last else f"{several} {first}–{last}"


def _name_of(code: list[str]) -> str | None:
    """The listing that has this code."""
    return next((n for n, listing in current.page.listings.items() if listing == code), None)


def _with_address(line, name: str, number: int) -> None:
    """Begin a line with its number and, if it holds code, with its address and a link there.

    All are without text, so that the copied code has none of them; the style sheet counts. The
    line's end goes behind it: copied from within a box of its own, it would count twice.
    """
    code, address = line.inner_html.replace("\n", ""), f"{name}-{number}"
    del line.attrs["id"]
    line.attrs["class"] = "line"
    line.insert_after("\n")
    if line.text().strip():
        line.inner_html = (
            f'<span id="{address}"></span><a class="number" href="#{address}"'
            f' aria-label="{_label(number, number)}"></a>{code}'
        )
    else:
        line.inner_html = f'<span class="number"></span>{code}'


def _mark_ranges(tree, name: str, lines) -> None:
    """Wrap each range of lines that is linked to, so that the style sheet can light it up."""
    for address in dict.fromkeys(link.attrs["href"] for link in tree.css("a.lines")):
        of, _, numbers = address.removeprefix("#").partition(f"{name}-")
        first, _, last = numbers.partition("-")
        if of or not last.isdecimal():  # of another listing, or one line, which has its address
            continue
        wrap = tree.create_node("span")
        wrap.attrs["class"] = "range"
        wrap.inner_html = f'<span id="{name}-{first}-{last}"></span>'
        wrapped = lines[int(first) - 1 : int(last)]
        wrapped[0].insert_before(wrap, move=True)
        for line in wrapped:
            end = line.next
            wrap.insert_child(line, move=True)
            wrap.insert_child(end, move=True)
