"""What a first visit costs a reader: bytes, and what a slow phone sees of them."""

import atexit
import contextlib
import functools
import gzip
import http.server
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from playwright.sync_api import sync_playwright
from timing import ROOT, SECONDS, cpu_and_wall

sys.path.insert(0, str(ROOT / "tests/browser"))

from served import CHROMIUM, FLAGS, serving

PAGES = {"": 120_000, "two-heads/": 120_000, "lab/": 150_000}  # and their most bytes

# A slow phone, as Lighthouse has it where the browser itself is slowed down.
SLOW = {"latency": 562.5, "downloadThroughput": 1474.56 * 128, "uploadThroughput": 675 * 128}
SLOW_CPU = 4

WATCH = """
window.shift = 0; window.painted = 0;
new PerformanceObserver(list => list.getEntries().forEach(e => window.shift += e.value))
  .observe({type: "layout-shift", buffered: true});
new PerformanceObserver(list => list.getEntries().forEach(e => window.painted = e.startTime))
  .observe({type: "largest-contentful-paint", buffered: true});
"""


class Compressing(http.server.SimpleHTTPRequestHandler):
    """A server as the web has them: text is compressed. It counts what it sends."""

    sent: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.exists():
            self.send_error(404)
            return
        body, kind = path.read_bytes(), self.guess_type(path)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        if kind.startswith("text/") or kind.endswith(("javascript", "json", "xml")):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        Compressing.sent.append(len(body))

    def log_message(self, *_) -> None:
        """Say nothing."""


@contextlib.contextmanager
def visitor(site: Path):
    """A function that opens a page as one who was never there, in Chromium."""
    with serving(site, Compressing) as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def visit(path: str, slow: bool = False) -> dict:
            Compressing.sent.clear()
            phone = {"width": 360, "height": 640}
            page = chromium.new_context(viewport=phone).new_page()
            page.add_init_script(WATCH)
            if slow:
                devtools = page.context.new_cdp_session(page)
                devtools.send("Network.enable")
                devtools.send("Network.emulateNetworkConditions", {"offline": False, **SLOW})
                devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOW_CPU})
            page.goto(address + path, wait_until="networkidle")
            page.wait_for_timeout(1000)
            seen = page.evaluate("({shift: window.shift, painted: window.painted})")
            page.context.close()
            return {**seen, "sent": sum(Compressing.sent)}

        yield visit
        chromium.close()


@functools.cache
def site() -> Path:
    """The site, built once for all parts."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    atexit.register(shutil.rmtree, folder)
    cpu_and_wall([sys.executable, "docs/build.py", "--out", folder])
    return folder


def weight():
    """Bytes that a first visit transfers, compressed, all in."""
    with visitor(site()) as visit:
        for path, limit in PAGES.items():
            named = {"page": path.strip("/") or "index", "unit": "B"}
            yield {**named, "ours": visit(path)["sent"], "limit": limit}


def folder():
    """Bytes of the whole site, both languages, and files in it that no reader needs."""
    files = [file for file in site().rglob("*") if file.is_file()]
    spare = [f for f in files if f.suffix == ".map" or re.match(r"lunr\.[a-z]{2}\.", f.name)]
    yield {"what": "all", "ours": sum(f.stat().st_size for f in files), "unit": "B"}
    yield {"what": "spare", "ours": sum(f.stat().st_size for f in spare), "limit": 0, "unit": "B"}


def painting():
    """Seconds until the largest part of a page shows on a slow phone."""
    with visitor(site()) as visit:
        for path in PAGES:
            named = {"page": path.strip("/") or "index", **SECONDS}
            painted = [visit(path, slow=True)["painted"] / 1000 for _ in range(3)]
            yield {**named, "ours": statistics.median(painted), "limit": 1.5}


def shift():
    """How far a page moves while it loads on a slow phone: the sum of its layout shifts."""
    with visitor(site()) as visit:
        for path in PAGES:
            named = {"page": path.strip("/") or "index", "unit": ""}
            yield {**named, "ours": float(visit(path, slow=True)["shift"]), "limit": 0.0}


PARTS = weight, folder, painting, shift
