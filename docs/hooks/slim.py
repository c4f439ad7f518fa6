"""What no reader needs stays out of the site, and what few need is loaded late."""

from pathlib import Path

from mkdocs.exceptions import PluginError

# Opened as a file, the theme reads the index of its search when the search is used; let it do so
# everywhere, as the index weighs more than all the rest of a page.
AT_ONCE, WHEN_USED = '$(location.protocol!=="file:")', "$(!1)"

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
    """Let the search load its index when it is used."""
    (bundle,) = Path(config.site_dir).glob("assets/javascripts/bundle.*.js")
    script = bundle.read_text("utf-8")
    if script.count(AT_ONCE) != 1:
        raise PluginError(f"{bundle.name}: the theme has changed; {AT_ONCE} is not there once")
    bundle.write_text(script.replace(AT_ONCE, WHEN_USED), "utf-8")
