"""Everything around a page in the page's language, and the way to its other languages."""

from html import escape
from urllib.parse import urlsplit

import once
from mkdocs.utils import get_relative_url
from stamp import stamp
from words import WORDS, prefix


def on_config(config):
    """Fill in what mkdocs.yml leaves to the language."""
    language = config.theme["language"]
    words = WORDS[language]
    config.site_name = words["site_name"]
    config.site_description = words["description"]
    for scheme, label in zip(config.theme["palette"], ("to_dark", "to_light"), strict=True):
        scheme["toggle"]["name"] = words[label]
    config.mdx_configs["toc"]["permalink_title"] = words["permalink"]
    built = stamp()
    config.copyright = escape(
        f"{words['built_with']} Python {built.python} · NumPy {built.numpy} · "
        f"PyTorch {built.torch} · {built.processor} · {words['commit']} {built.commit}"
    )
    root = config.site_url.removesuffix(prefix(language))
    config.extra.update(
        words=words,
        alternate=True,  # Material then shows partials/alternate.html
        site_root=root,
        scope=urlsplit(root).path,
    )


def on_nav(nav, config, files):
    """Give the sections of the navigation their titles."""
    for item in nav.items:
        if item.is_section:
            item.title = WORDS[config.theme["language"]]["sections"][item.title]


def on_env(env, config, files):
    """Let templates, compiled once, ask for the same page in another language."""
    language = config.theme["language"]

    def below_root(other: str, page) -> str:
        """The page's path in a language, below the root of all languages."""
        return prefix(other) + (page.url if page else "")

    def to_language(other: str, page) -> str:
        """The way from a page to itself in another language; from no page (404), to its home."""
        if page is None:
            return urlsplit(config.extra["site_root"]).path + prefix(other)
        return get_relative_url(below_root(other, page), below_root(language, page))

    env.bytecode_cache = once.templates
    env.globals.update(below_root=below_root, to_language=to_language, languages=WORDS)
    return env


def on_page_context(context, page, config, nav):
    """Keep one choice of colours for all languages: Material stores it under this address."""
    here = prefix(config.theme["language"]) + page.url
    config.extra["scope"] = get_relative_url(".", here)
