"""What no reader needs stays out of the site, what few need is loaded late, and the rest is cheap.

Each change to the theme's own files is one that a phone feels: it styles a page about twice as
fast without them. They name what they expect in the theme, and stop the build where it is not.
"""

import re
from pathlib import Path

import tinycss2
from mkdocs.exceptions import PluginError

SCRIPT = {
    # Opened as a file, the theme reads the index of its search when the search is used; let it do
    # so everywhere, as the index weighs more than all the rest of a page.
    '$(location.protocol!=="file:")': "$(!1)",
    # The theme tells the browser its colours once more, after the page is styled, and the browser
    # then styles it anew, twice; site.css says it from the start.
    ";document.head.appendChild(o);let n=": ";let n=",
    "return o.content=a.colorScheme,": "return ",
    # site.js lets the keyboard scroll what is wide; the theme's own way to do so for code lays the
    # page out once for each block.
    "function es(e){return ": "function es(e){return tt;",  # never
}
# The theme's script gives the page these classes, which, too, makes the browser style it anew.
FROM_THE_START = 'class="no-js"', 'class="js js-focus-visible"'
WITHOUT_SCRIPTS = "@media (scripting:none){{{}}}"  # what the theme has in its stead

# Every element is held against these rules, which are for what mkdocs.yml does not turn on: tabs,
# footnotes, lists of tasks, marks of editors, keys, diagrams, a blog, versions, a banner.
UNUSED = re.compile(
    r"\.(?:tabbed-|footnote|task-list|critic|keys|mermaid|arithmatex"
    r"|md-(?:author|banner|consent|feedback|pagination|post|profile|tabs|tag|version))[\w-]*"
)
# Between two colour schemes it keeps what fades from fading, and styles the whole page twice.
SWITCHING = "[data-md-color-switching]"

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


def on_post_page(output, page, config):
    """Give a page its classes."""
    return replaced(output, *FROM_THE_START, page.file.src_uri)


def on_post_template(output_content, template_name, config):
    """Give the 404 page its classes."""
    if template_name.endswith(".html"):
        return replaced(output_content, *FROM_THE_START, template_name)


def on_post_build(config):
    """Slim the theme's own script and style sheets."""
    site = Path(config.site_dir)
    used = classes_of("".join(path.read_text("utf-8") for path in site.rglob("*.html")))
    (bundle,) = site.glob("assets/javascripts/bundle.*.js")
    script = bundle.read_text("utf-8")
    for old, new in SCRIPT.items():
        script = replaced(script, old, new, bundle.name)
    bundle.write_text(script, "utf-8")
    for path in site.glob("assets/stylesheets/*.css"):
        rules = tinycss2.parse_stylesheet(path.read_text("utf-8"), skip_comments=True)
        path.write_text(slimmed(rules, used), "utf-8")


def replaced(text: str, old: str, new: str, where: str) -> str:
    """Replace what has to be there exactly once."""
    if text.count(old) != 1:
        raise PluginError(f"{where}: the theme has changed; {old} is not there once")
    return text.replace(old, new)


def classes_of(html: str) -> set[str]:
    """All classes that elements have."""
    return {name for names in re.findall(r'\sclass="([^"]*)"', html) for name in names.split()}


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
    names = {name.removeprefix(".") for name in UNUSED.findall(needed)}
    return SWITCHING in needed or (bool(names) and not names & used)
