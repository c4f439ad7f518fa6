"""Search finds Indonesian words by their stem: menyorot, sorotan and disorot find one another.

The search in the browser has no stemmer for Indonesian, but it matches the beginning of a word. So
each entry of the index also gets, where no reader sees them, the usual forms of its words.
"""

import json
import re
from functools import cache
from html import unescape
from pathlib import Path

from mkdocs.plugins import CombinedEvent, event_priority
from Sastrawi.Stemmer.StemmerFactory import StemmerFactory

_NASAL = {  # what meN- and peN- become before a first letter; "-" where it gives way
    **dict.fromkeys("bfv", "m"), "p": "m-",
    **dict.fromkeys("cdjz", "n"), "t": "n-",
    **dict.fromkeys("gh", "ng"), "k": "ng-", "s": "ny-",
    **dict.fromkeys("lmnrwy", ""),
}  # fmt: skip
# What the search plugin skips, slowly: drawings, and the colours of code.
_SKIPPED = re.compile(r"<svg\b.*?</svg>|</?span\b[^>]*>", re.DOTALL)

_whole = ""  # the content of the page which the plugin reads without them


@event_priority(100)
def _shorten(context, page, config, nav):
    global _whole
    _whole, page.content = page.content, _SKIPPED.sub("", page.content)


@event_priority(-100)
def _restore(context, page, config, nav):
    page.content = _whole


on_page_context = CombinedEvent(_shorten, _restore)


def on_post_build(config):
    """Add the forms to the index that the search plugin has written."""
    if config.theme["language"] != "id":
        return
    path = Path(config.site_dir) / "search/search_index.json"
    index = json.loads(path.read_text("utf-8"))
    for entry in index["docs"]:
        words = f"{entry['title']} {entry['text']}"
        entry["text"] += f"<p hidden>{' '.join(related(words))}</p>"
    path.write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")), "utf-8")


def related(text: str) -> list[str]:
    """Forms of the words in a piece of HTML that are no beginning of one another."""
    plain = unescape(re.sub(r"<pre>.*?</pre>|<[^>]+>", " ", text, flags=re.DOTALL))
    words = set(re.findall(r"[a-z]{4,}", plain.lower()))
    beginnings = {word[:length] for word in words for length in range(4, len(word) + 1)}
    found = {form for word in words if (root := stem(word)) != word for form in forms(root)}
    return sorted(found - beginnings)


@cache
def stem(word: str) -> str:
    """The stem of an Indonesian word."""
    return _stemmer().stem(word)


@cache
def _stemmer():
    return StemmerFactory().create_stemmer()


def forms(root: str) -> set[str]:
    """The longest usual derivations; their beginnings are found with them."""
    nasal = _NASAL.get(root[0], "ng")
    rest = root[1:] if nasal.endswith("-") else root
    nasal = nasal.rstrip("-")
    return {
        f"{root}annya",
        f"di{root}kan",
        f"me{nasal}{rest}kan",
        f"pe{nasal}{rest}annya",
    }
