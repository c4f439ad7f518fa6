"""The site of one language as a folder to read without a server: mha-id.zip and mha-en.zip.

Opened with a double click, a page is at file://, where browsers show a folder rather than its
index.html, and load no module, no worker and no search index. So in the copy every link names a
file, and what would be loaded stands in ordinary scripts. It holds what its pages link to; what
else they link to, as the other language, is linked where the site is published.
"""

import json
import os
import re
from graphlib import TopologicalSorter
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from mkdocs.utils import get_relative_url
from notebook import bundle

_TAG = re.compile(r'<[a-z](?:[^<>"]|"[^"]*")*>')
_ADDRESS = re.compile(r'(?<= )(?P<name>href|src)="(?P<address>[^"]+)"')
_CANONICAL = re.compile(r'<link rel="canonical" href="([^"]+)">')
_MODULE = '<script type="module"'
_IN_STYLE = re.compile(r"url\([\"']?(?!data:|#)([^\"')]+)[\"']?\)")
_IMPORT = re.compile(r"(\b(?:from|import)\s*\(?\s*)[\"'](\.{1,2}/[^\"']+)[\"']")
_ASKS_FOR_MORE = re.compile(r"\bfetch\(|\bimport\.meta\b|\bnew Worker\(")

_CLASSIC = ".classic.js"  # what becomes of a module

_WORKER = """\
const source = {};
Worker = class extends Worker {{
  constructor() {{ super(URL.createObjectURL(new Blob([source]))); }}
}};
"""


_MODULES = """\
(() => {{
  const urls = {{}};
  for (const [name, source] of {}) {{
    const text = source.replace(/"module:(.*?)"/g, (_, other) => JSON.stringify(urls[other]));
    urls[name] = URL.createObjectURL(new Blob([text], {{ type: "text/javascript" }}));
  }}
  import(urls[{}]);
}})();
"""


def on_page_markdown(markdown, page, config, files):
    """Lead to the archive of the page's language where the page says {{ offline }}."""
    here = config.site_url.removeprefix(config.extra["site_root"]) + page.url
    archive = f"{_name(config.theme['language'])}.zip"
    return markdown.replace("{{ offline }}", get_relative_url(archive, here))


def on_post_build(config):
    """Lay the archive beside the folder of its language; build.py moves it into the site."""
    site, name = Path(config.site_dir), _name(config.theme["language"])
    site.with_name(f"{name}.zip").write_bytes(pack(site, name))


def _name(language: str) -> str:
    return f"mha-{language}"


def pack(site: Path, name: str) -> bytes:
    """An archive of what the pages of a language link to, in one folder of this name."""
    site = site.resolve()
    content, waiting = {}, [site / "index.html", *site.glob("assets/*.LICENSE.txt")]
    while waiting:
        path = waiting.pop()
        inside = path.relative_to(site).as_posix()
        if inside not in content:
            content[inside], found = _copy(path, site)
            waiting += found
    content |= _search(site)
    return bundle({f"{name}/{inside}": data for inside, data in content.items()})


def _copy(path: Path, site: Path) -> tuple[bytes, list[Path]]:
    """What a file is in the folder, and the files that it needs beside it."""
    if path.suffix == ".html":
        return _page(path, site)
    if path.name.endswith(_CLASSIC):
        return _classic(path.with_name(path.name.removesuffix(_CLASSIC) + ".js")), []
    if path.suffix == ".css":
        found = _IN_STYLE.findall(path.read_text("utf-8"))
        return path.read_bytes(), [(path.parent / urlsplit(name).path).resolve() for name in found]
    return path.read_bytes(), []


def _page(path: Path, site: Path) -> tuple[bytes, list[Path]]:
    """A page whose links name files; they lead online where the folder has no such file."""
    html, found = path.read_text("utf-8"), []
    (online,) = _CANONICAL.findall(html)

    def lead(match: re.Match) -> str:
        parts = urlsplit(match["address"])
        if parts.scheme or not parts.path:
            return match[0]
        target = Path(os.path.normpath(path.parent / parts.path))  # resolve() is slow
        target = target / "index.html" if target.is_dir() else target
        if not (target.is_relative_to(site) and target.exists()):
            return f'{match["name"]}="{urljoin(online, match["address"])}"'
        if match.string.startswith(_MODULE):
            target = target.with_suffix(_CLASSIC)
        found.append(target)
        return f'{match["name"]}="{parts._replace(path=_way(path, target)).geturl()}"'

    html = _TAG.sub(lambda tag: _ADDRESS.sub(lead, tag[0]).replace(_MODULE, "<script defer"), html)
    for directive in ("script-src", "worker-src"):
        html = html.replace(f"{directive} 'self'", f"{directive} 'self' blob:", 1)
    worker = f'<script src="{_way(path, site / "search/worker.js")}"></script>'
    return html.replace("<script src=", f"{worker}<script src=", 1).encode(), found


def _way(page: Path, target: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def _classic(entry: Path) -> bytes:
    """A module with all that it imports, as one script; none if it asks for more than that."""
    sources, imports, waiting = {}, {}, [entry]
    while waiting:
        path = waiting.pop()
        if path not in sources:
            sources[path] = path.read_text("utf-8")
            names = [name for _, name in _IMPORT.findall(sources[path])]
            imports[path] = [(path.parent / name).resolve() for name in names]
            waiting += imports[path]
    if any(_ASKS_FOR_MORE.search(source) for source in sources.values()):
        return b"// What this script does needs a server.\n"

    def named(path: Path) -> list[str]:
        def mark(match: re.Match) -> str:
            return f'{match[1]}"module:{_way(entry, (path.parent / match[2]).resolve())}"'

        return [_way(entry, path), _IMPORT.sub(mark, sources[path])]

    modules = [named(path) for path in TopologicalSorter(imports).static_order()]
    return _MODULES.format(json.dumps(modules), json.dumps(entry.name)).encode()


def _search(site: Path) -> dict[str, bytes]:
    """What the search would fetch, as scripts: its index, and the program that searches it."""
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    for entry in index["docs"]:
        entry["location"] = re.sub(r"^([^#]*/)?(?=#|$)", r"\1index.html", entry["location"])
    (worker,) = site.glob("assets/javascripts/workers/search.*.js")
    index_script = f"var __index = {json.dumps(index, ensure_ascii=False, separators=(',', ':'))};"
    worker_script = _WORKER.format(json.dumps(worker.read_text("utf-8"), ensure_ascii=False))
    return {
        "search/search_index.js": index_script.encode(),  # the theme looks for it there
        "search/worker.js": worker_script.encode(),
    }
