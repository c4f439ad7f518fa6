"""The finished site in a real Chromium, served under a sub-path as a project page is."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
SUB_PATH = "a/sub-path"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Where the site is served."""
    if not (ROOT / "site/index.html").exists():
        pytest.fail("no site: run `nox -s docs` first")
    root = tmp_path_factory.mktemp("host")
    shutil.copytree(ROOT / "site", root / SUB_PATH)
    handler = functools.partial(Quiet, directory=root)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{SUB_PATH}/"
    server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests."""
    if CHROMIUM is None:
        pytest.fail("no Chromium: install it, or put its path into the variable CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Watched:
    """A page that remembers what it should not have done."""

    def __init__(self, context, address: str) -> None:
        self.page = context.new_page()
        self.address = address
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._on_request)

    def _on_console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _on_request(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, path: str):
        """Go to a page of the site."""
        self.page.goto(self.address + path)
        return self.page


@pytest.fixture
def watch(chromium, address):
    """Open pages: `watch(width=360, scheme="dark")`."""
    contexts = []

    def open_one(width: int = 1280, scheme: str = "light", **options) -> Watched:
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, **options
        )
        contexts.append(context)
        return Watched(context, address)

    yield open_one
    for context in contexts:
        context.close()
