"""A page comes as the theme's script would have made it, so that the browser styles it only once.

Each change to the theme is one that a phone feels: with all of them its longest task while a page
loads is half as long. They name what they expect in the theme, and stop the build where it is not.
"""

import re
from pathlib import Path

from mkdocs.exceptions import PluginError

# In the page from the start: classes, frames in which tables scroll, a class of blocks of code.
CLASSES = 'class="no-js"', 'class="js js-focus-visible"'
PLAIN_TABLE = re.compile("<table>.*?</table>", re.DOTALL)
FRAME = '<div class="md-typeset__scrollwrap"><div class="md-typeset__table">{}</div></div>'
PLAIN_CODE = re.compile("(<pre[^>]*>(?:<span></span>)?<code)>")
CODE = r'\1 class="md-code__content">'
# What is on the page shows before the theme's script has come.
BUNDLE = re.compile(r'<script (src="\S*/bundle\.\w+\.min\.js">)')

SCRIPT = {
    '...M("table:not([class])",e).map(i=>ti(i)),': "",  # the frames
    # Opened as a file, the theme reads the index of its search when the search is used; let it do
    # so everywhere, as the index weighs more than all the rest of a page.
    '$(location.protocol!=="file:")': "$(!1)",
    # It tells the browser its colours once more, after the page is styled; site.css says them.
    ";document.head.appendChild(o);let n=": ";let n=",
    "return o.content=a.colorScheme,": "return ",
    # For each block of code it lays the page out twice: to ask whether it is wide, where site.js
    # lets the keyboard scroll what is, and whether this browser can copy, which all of them can.
    "function es(e){return ": "function es(e){return tt;",  # never
    "if(Kn.default.isSupported()&&(": "if((",
}


def on_post_page(output, page, config):
    """Make a page ready."""
    return made_ready(output, page.file.src_uri)


def on_post_template(output_content, template_name, config):
    """Make the 404 page ready."""
    if template_name.endswith(".html"):
        return made_ready(output_content, template_name)


def made_ready(html: str, where: str) -> str:
    """A page as it will be."""
    html = PLAIN_TABLE.sub(lambda table: FRAME.format(table[0]), html)
    html, scripts = BUNDLE.subn(r"<script defer \1", PLAIN_CODE.sub(CODE, html))
    if scripts != 1:
        raise PluginError(f"{where}: the theme has changed; {BUNDLE.pattern} is not there once")
    return replaced(html, *CLASSES, where)


def on_post_build(config):
    """Let the theme's script leave alone what is ready."""
    (bundle,) = Path(config.site_dir).glob("assets/javascripts/bundle.*.js")
    script = bundle.read_text("utf-8")
    for old, new in SCRIPT.items():
        script = replaced(script, old, new, bundle.name)
    bundle.write_text(script, "utf-8")


def replaced(text: str, old: str, new: str, where: str) -> str:
    """Replace what has to be there exactly once."""
    if text.count(old) != 1:
        raise PluginError(f"{where}: the theme has changed; {old} is not there once")
    return text.replace(old, new)
