"""A listing that its page explains line by line.

The page's front matter names a section of its example: `listing: class`. In the explanation
`#!lines first … last` or `#!lines only` becomes the numbers of the lines with this code, and a link
that lights them up. Every line of code has to be explained.
"""

import current
from bs4 import BeautifulSoup
from mkdocs.exceptions import PluginError
from pymdownx.inlinehilite import InlineHiliteException


def on_config(config):
    """Teach Markdown the form."""
    current.inline_form(config, "lines", lines_inline)


def on_page_content(html, page, config, files):
    """Give each line of code an address; stop if a line of the listing goes unexplained."""
    silent = set(lines_of_code(current.page.listing)) - current.page.explained
    if silent:
        lines = ", ".join(map(str, sorted(silent)))
        raise PluginError(f"{page.file.src_uri}: no word about line(s) {lines} of the listing")
    soup = BeautifulSoup(html, "html.parser")
    for count, block in enumerate(soup.select(".highlight"), 1):
        # Pygments' own ids begin anew in every executed block
        lines = block.select("span[id^=__span-]")
        explained = [line.get_text().rstrip("\n") for line in lines] == current.page.listing != []
        for number, line in enumerate(lines, 1):
            line["id"] = f"listing-{number}" if explained else f"code-{count}-{number}"
        if explained:
            block["class"].append("listing")
            _mark_ranges(soup, lines)
    return str(soup)


def lines_inline(source, language, class_name, md):
    """Where this code stands in the listing."""
    ends = [_line_with(part.strip()) for part in source.split("…")]
    first, last = ends[0], ends[-1]
    if first > last:
        raise InlineHiliteException(
            f"{current.page.name}: `#!lines {source}`: begins on line {first}, ends on line {last}"
        )
    current.page.explained.update(range(first, last + 1))
    one, several = current.page.words["lines"]
    label = f"{one} {first}" if first == last else f"{several} {first}–{last}"
    return f'<a class="lines" href="#lines-{first}-{last}">{label}</a>'


def lines_of_code(listing: list[str]) -> list[int]:
    """Numbers of the lines that are neither blank nor only a comment."""
    return [
        number
        for number, line in enumerate(listing, 1)
        if line.strip() and not line.strip().startswith("#")
    ]


def _line_with(fragment: str) -> int:
    """The only line of the listing that holds this code."""
    found = [n for n, line in enumerate(current.page.listing, 1) if fragment in line]
    if len(found) != 1:
        raise InlineHiliteException(
            f"{current.page.name}: `#!lines {fragment}`: expected on 1 line of the listing, "
            f"found on {found}"
        )
    return found[0]


def _mark_ranges(soup, lines) -> None:
    """Wrap each range of lines that is linked to, so that the style sheet can light it up."""
    for address in dict.fromkeys(link["href"] for link in soup.select("a.lines")):
        name, first, last = address.removeprefix("#").split("-")
        wrap = soup.new_tag("span", attrs={"class": "range"})
        lines[int(first) - 1].insert_before(wrap)
        wrap.append(soup.new_tag("span", id=f"{name}-{first}-{last}"))
        wrap.extend(lines[int(first) - 1 : int(last)])
