"""The archives to read offline, opened from a folder in a real Chromium."""

import zipfile
from pathlib import Path

import offline
import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    f"mha-{language}/{'' if page.stem == 'index' else page.stem + '/'}index.html"
    for language in ("id", "en")
    for page in (ROOT / "docs" / language).iterdir()
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where both archives are unpacked."""
    root = tmp_path_factory.mktemp("unpacked")
    for language in ("id", "en"):
        with zipfile.ZipFile(ROOT / f"site/mha-{language}.zip") as archive:
            archive.extractall(root)
    return root


@pytest.fixture
def watched(watch, folder):
    """A page at file://."""
    return watch(at=f"{folder.as_uri()}/")


@pytest.mark.parametrize("page", PAGES)
def test_page(page, watched):
    opened = watched.open(page)
    assert opened.locator("html.js").count() == 1  # the theme's script runs
    colour = "getComputedStyle(document.querySelector('.md-header')).backgroundColor"
    assert opened.evaluate(colour) == "rgb(0, 121, 107)"
    opened.locator(".md-search-result__meta").wait_for(state="attached")
    assert watched.errors == []
    assert watched.foreign == []


@pytest.mark.parametrize(
    ("page", "words", "found"),
    [
        ("mha-id/index.html", "sorotan", "one-head/index.html"),
        ("mha-id/lab/index.html", "concat", "two-heads/index.html"),
        ("mha-en/index.html", "highlighter", "one-head/index.html"),
        ("mha-en/two-heads/index.html", "equivariant", "order/index.html"),
    ],
)
def test_search(page, words, found, watched):
    opened = watched.open(page)
    field = opened.locator(".md-search__input")
    field.fill(words)
    field.press("End")
    result = opened.locator(f".md-search-result__link[href*='{found}']").first
    result.wait_for(state="attached")
    opened.goto(result.get_attribute("href"))
    assert opened.locator("h1").is_visible()
    assert watched.errors == []
    assert watched.foreign == []


def test_navigation(watched):
    opened = watched.open("mha-id/index.html")
    for name in ("one-head", "two-heads"):
        opened.locator(f".md-nav__link[href$='{name}/index.html']").first.click()
        assert opened.url.endswith(f"mha-id/{name}/index.html")
    opened.locator(".md-header .md-logo").click()
    assert opened.url.endswith("mha-id/index.html")
    assert watched.errors == []


def test_modules_run(watch, tmp_path):
    files = {
        "index.html": """<html><head><meta http-equiv="Content-Security-Policy"
            content="default-src 'none'; script-src 'self'; worker-src 'self'">
            <link rel="canonical" href="https://host.example/"></head><body>
            <script src="classic.js"></script><script type="module" src="a/page.js"></script>""",
        "classic.js": "",
        "a/page.js": """import { double } from "./math.js";
            addEventListener("click", async () => {
              const { triple } = await import("../more/late.js");
              document.title += triple(14);
            });
            document.title = `${double(21)}`;""",
        "a/math.js": 'import { two } from "../two.js";\nexport const double = n => two * n;',
        "more/late.js": 'import { two } from "../two.js";\nexport const triple = n => 3 * n + two;',
        "two.js": "export const two = 2;",
        "search/search_index.json": '{"docs": []}',
        "assets/javascripts/workers/search.1.min.js": "",
    }
    for name, text in files.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)
    (tmp_path / "site.zip").write_bytes(offline.pack(tmp_path / "site", "folder"))
    with zipfile.ZipFile(tmp_path / "site.zip") as archive:
        archive.extractall(tmp_path)
    watched = watch(at=f"{tmp_path.as_uri()}/folder/")
    opened = watched.open("index.html")
    for seen in ("42", "4244"):
        for _ in range(50):
            if opened.title() == seen:
                break
            opened.wait_for_timeout(100)
        assert opened.title() == seen
        opened.mouse.click(10, 10)
    assert watched.errors == []
