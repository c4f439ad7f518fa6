"""Where things are: what belongs to a page is found by its name alone.

The page `two-heads` has its sources docs/id/two-heads.md and docs/en/two-heads.md (or notebooks),
its code in docs/examples/two_heads.py, and lies at /two-heads/ and /en/two-heads/; `index` at /.
"""

from pathlib import Path

DOCS = Path(__file__).parents[1]
EXAMPLES = DOCS / "examples"


def example_of(source: Path | str) -> Path:
    """The script whose sections a page shows; it need not exist."""
    return EXAMPLES / (Path(source).stem.replace("-", "_") + ".py")


def slug_of(path: Path | str) -> str:
    """The name of the page that a source or an example belongs to."""
    return Path(path).stem.replace("_", "-")


def html_of(source: Path | str) -> str:
    """The file of a finished page, below the folder of its language."""
    slug = slug_of(source)
    return "index.html" if slug == "index" else f"{slug}/index.html"
