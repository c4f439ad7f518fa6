"""What no reader needs stays out of the site: files, and parts of the theme's style sheets."""

import re
from pathlib import Path

import once
import tinycss2

# Every element is held against these rules, which are for what mkdocs.yml does not turn on: tabs,
# footnotes, lists of tasks, diagrams, a blog, versions, a repository, other admonitions, colours …
UNUSED = re.compile(
    r"(?:\.|\[data-md-color-(?:primary|accent)=)"
    r"((?:tabbed-|footnote|task-list|critic|keys|mermaid|arithmatex|linenodiv|highlighttable"
    r"|md-(?:annotation|author|banner|consent|feedback|pagination|pin|post|profile|progress|source"
    r"|status|tabs|tag|tooltip2?|version))[\w-]*"
    r"|(?:abstract|bug|danger|example|failure|info|note|question|quote|success|tip|warning)(?![\w-])"
    r"|(?<==)[\w-]+)"
)
# Between two colour schemes it keeps what fades from fading, and styles the whole page twice.
SWITCHING = "[data-md-color-switching]"
# With this rule, what is added to a page styles all that is beside it; tables have frames.
UNFRAMED = ".md-typeset table:not([class])+*"
WITHOUT_SCRIPTS = "@media (scripting:none){{{}}}"  # what the theme has a class for
VARIABLE = re.compile(r'(?<=[{;])(--[\w-]+):(?:"[^"]*"|[^;}"])*(?:;|(?=}))')

REFERENCE = "assets/_mkdocstrings.css"  # the one page with docstrings names it in its front matter


def on_config(config):
    """Take the style of docstrings off the other pages."""
    config.extra_css.remove(REFERENCE)


def on_files(files, config):
    """Leave source maps and the search's other languages where they are."""
    for file in list(files):
        if file.src_uri.endswith(".map") or "/lunr/" in file.src_uri:
            files.remove(file)
    return files


def on_post_build(config):
    """Slim the theme's style sheets."""
    site = Path(config.site_dir)
    used = names_of("".join(path.read_text("utf-8") for path in site.rglob("*.html")))
    theme = list(site.glob("assets/stylesheets/*.css"))
    for path in theme:
        path.write_text(slimmed(once.rules(path.read_text("utf-8")), used), "utf-8")
    variables = variables_of("".join(path.read_text("utf-8") for path in site.rglob("*.css")))
    for path in theme:
        path.write_text(without_variables(path.read_text("utf-8"), variables), "utf-8")


def names_of(html: str) -> set[str]:
    """All classes and colours that elements have."""
    values = re.findall(r'\s(?:class|data-md-color-\w+)="([^"]*)"', html)
    return {name for names in values for name in names.split()}


def variables_of(css: str) -> set[str]:
    """All variables that a value asks for."""
    return set(re.findall(r"var\(\s*(--[\w-]+)", css))


def without_variables(css: str, but: set[str]) -> str:
    """Leave out all variables but these; most hold the icon of something that is not used."""
    return VARIABLE.sub(lambda match: match[0] if match[1] in but else "", css)


def slimmed(rules: list, used: set[str]) -> str:
    """The rules of a style sheet, without those for classes that are not used."""
    return "".join(_slimmed(rule, used) for rule in rules)


def _slimmed(rule, used: set[str]) -> str:
    if rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
        content = slimmed(tinycss2.parse_rule_list(rule.content), used)
        head = f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}"
        return f"{head}{{{content}}}" if content else ""
    if rule.type != "qualified-rule":
        return rule.serialize()
    selectors = [s for s in _selectors(rule.prelude) if not _is_unused(s, used)]
    if not selectors:
        return ""
    text = f"{','.join(selectors)}{{{tinycss2.serialize(rule.content)}}}"
    return WITHOUT_SCRIPTS.format(text.replace(".no-js", ".js")) if ".no-js" in text else text


def _selectors(prelude: list) -> list[str]:
    """`a, b:is(c, d)` has two."""
    found: list[list] = [[]]
    for token in prelude:
        if token == ",":
            found.append([])
        else:
            found[-1].append(token)
    return [tinycss2.serialize(tokens).strip() for tokens in found]


def _is_unused(selector: str, used: set[str]) -> bool:
    needed = re.sub(r":not\([^)]*\)", "", selector)
    names = set(UNUSED.findall(needed))
    never = selector == UNFRAMED or SWITCHING in needed
    return never or (bool(names) and not names & used)
