"""What every page needs is understood once, before the processes of the languages fork."""

from contextlib import suppress
from functools import cache
from pathlib import Path

import material
import tinycss2
from jinja2 import TemplateAssertionError
from jinja2.bccache import Bucket, BytecodeCache
from mkdocs.theme import Theme
from places import DOCS
from pygments.lexers import get_lexer_by_name

_TEMPLATES = ("404.html", "base.html", "main.html", "partials/")


class _InMemory(BytecodeCache):
    """Jinja's own means to compile a template once, for as long as its source stays the same."""

    def __init__(self) -> None:
        self.compiled: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.compiled:
            bucket.bytecode_from_string(self.compiled[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.compiled[bucket.key] = bucket.bytecode_to_string()


templates = _InMemory()


@cache
def rules(css: str) -> list:
    """The parsed rules of a style sheet; not to be changed."""
    return tinycss2.parse_stylesheet(css, skip_comments=True)


def preload() -> None:
    """Read the theme's style sheets and templates, and how Python is coloured."""
    get_lexer_by_name("python")
    for path in Path(material.__file__).parent.glob("templates/assets/stylesheets/*.css"):
        rules(path.read_text("utf-8"))
    env = Theme(name="material", custom_dir=str(DOCS / "theme")).get_env()
    env.bytecode_cache = templates
    for name in env.list_templates(filter_func=lambda name: name.startswith(_TEMPLATES)):
        with suppress(TemplateAssertionError):  # a blog's, which needs its plugin
            env.get_template(name)
