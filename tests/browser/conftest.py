"""The finished site in a real Chromium, served under a sub-path as a project page is."""

import shutil

import pytest
from playwright.sync_api import sync_playwright
from served import CHROMIUM, FLAGS, SITE, serving

SUB_PATH = "a/sub-path"


@pytest.fixture(scope="session", autouse=True)
def built():
    """There is something to look at."""
    if not (SITE / "index.html").exists():
        pytest.fail("no site: run `nox -s docs` first")


@pytest.fixture(scope="session")
def root_address():
    """Where the site is served at the root of a host: its 404 page is made for one place."""
    with serving(SITE) as host:
        yield host


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Where the site is served: below a sub-path."""
    root = tmp_path_factory.mktemp("host")
    shutil.copytree(SITE, root / SUB_PATH)
    with serving(root) as host:
        yield f"{host}{SUB_PATH}/"


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

    def open_one(width: int = 1280, scheme: str = "light", at: str = address, **options) -> Watched:
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, **options
        )
        contexts.append(context)
        return Watched(context, at)

    yield open_one
    for context in contexts:
        context.close()
