"""Every page in Chromium: accessible, closed, quiet, and no wider than the screen."""

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest
from accessible import OF_COLOURS, violations
from served import SITE

ROOT = Path(__file__).parents[2]
SLUGS = sorted(
    "" if page.stem == "index" else f"{page.stem}/" for page in (ROOT / "docs/id").iterdir()
)
PAGES = [prefix + slug for prefix in ("", "en/") for slug in SLUGS]
VIEWS = {"screen": 1280, "phone": 360}


def check(watched, page, width):
    """Accessible, no wider than the screen, quiet, closed."""
    opened = watched.open(page)
    assert violations(opened) == ""
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.errors == []
    assert watched.foreign == []


def check_in_the_dark(watched):
    """What is open can be read in the dark as well."""
    watched.page.locator("#__palette_1").dispatch_event("click")  # nothing is then in focus
    watched.page.locator("body[data-md-color-scheme=slate]").wait_for()
    assert violations(watched.page, OF_COLOURS) == ""
    assert watched.errors == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("page", PAGES)
def test_page(page, view, watch):
    watched = watch(VIEWS[view])
    check(watched, page, VIEWS[view])
    if view == "screen" and page in SLUGS:  # the other language has the same elements and styles
        check_in_the_dark(watched)


def test_languages_have_the_same_styles_and_scripts():
    """So that what depends on no words can be looked at in one of them."""
    ours, theirs = (
        {path.name: path.read_bytes() for path in (SITE / assets).glob("**/*.[cj]s*")}
        for assets in ("assets", "en/assets")
    )
    assert len(ours) > 10
    assert ours == theirs


@pytest.mark.parametrize("view", VIEWS)
def test_not_found(view, watch, root_address):
    watched = watch(VIEWS[view], at=root_address)
    check(watched, "404.html", VIEWS[view])
    check_in_the_dark(watched)


@pytest.mark.parametrize("slug", SLUGS)
def test_language_link_leads_to_the_same_page_and_back(slug, watch):
    opened = watch().open(slug)
    start = opened.url
    opened.locator("a.language").click()
    assert opened.url.endswith(f"/en/{slug}")
    assert opened.locator("html").get_attribute("lang") == "en"
    opened.locator("a.language").click()
    assert opened.url == start


@pytest.mark.parametrize(
    ("page", "words", "found"),
    [
        ("", "menyorot", "one-head/"),
        ("", "sorotan", "one-head/"),
        ("", "disorot", "one-head/"),
        ("", "pembagian", "one-head/"),
        ("", "concat", "two-heads/"),  # only ever in brackets
        ("en/", "highlighter", "one-head/"),
        ("en/", "equivariant", "order/"),
        ("en/", "fish", "order/"),  # in quotes: "the fish eats"
    ],
)
def test_search(page, words, found, watch):
    watched = watch()
    opened = watched.open(page)
    field = opened.locator(".md-search__input")
    field.fill(words)
    field.press("End")  # the search listens to keys
    opened.locator(f".md-search-result__link[href*='{found}']").first.wait_for(state="attached")
    assert watched.errors == []


COPY = "button[data-md-type=copy]"


@pytest.mark.parametrize("slug", SLUGS)
def test_copied_code_runs_as_it_is(slug, watch):
    """Without prompts, numbers of lines or marks: the blocks of a page, one after the other."""
    is_notebook = not (ROOT / f"docs/id/{slug.strip('/') or 'index'}.md").exists()
    for page in (slug, f"en/{slug}"):
        code, shown = copied(page, watch)
        printed = printed_by(code, is_notebook)
        if not is_notebook:  # there, a cell also shows the value of its last line
            assert printed == shown, page


def copied(page, watch) -> tuple[str, str]:
    """What the buttons of a page copy, and the output that it shows."""
    opened = watch(permissions=["clipboard-read", "clipboard-write"]).open(page)
    opened.evaluate(
        "for (const details of document.querySelectorAll('details')) details.open = true"
    )
    copies = []
    for block in opened.locator(".language-python.highlight > pre").all():
        block.locator(COPY).press("Enter")  # faster than the mouse, which has a test of its own
        copies.append(opened.evaluate("navigator.clipboard.readText()"))
        assert lines(copies[-1]) == lines(block.locator("code").text_content()), page
    shown = opened.locator(".language-text.highlight:visible code").all_text_contents()
    return "\n".join(copies), "".join(shown)


def test_copy_button_is_there_for_the_mouse(watch):
    opened = watch(permissions=["clipboard-read", "clipboard-write"]).open("one-head/")
    block = opened.locator(".language-python.highlight > pre").last
    block.hover()
    block.locator(COPY).click()
    opened.locator(".md-dialog--active, .md-dialog[data-md-state=open]").wait_for()
    copy = opened.evaluate("navigator.clipboard.readText()")
    assert lines(copy) == lines(block.locator("code").text_content())


def lines(code: str) -> list[str]:
    """The lines of some code, without blank ones: a walkthrough's marks may add such to a copy."""
    return [line for line in code.splitlines() if line.strip()]


@cache  # both languages have the same code
def printed_by(code: str, is_notebook: bool) -> str:
    """What a Python of its own prints, in a folder without files; a notebook's code has IPython."""
    python = [sys.executable, "-m", "IPython"] if is_notebook else [sys.executable]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*python, "-c", code],
            capture_output=True,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", ["", "en/"])
def test_keyboard_reaches_everything(page, watch):
    opened = watch().open(page)
    reached = set()
    for _ in range(80):
        opened.keyboard.press("Tab")
        reached.add(opened.evaluate("document.activeElement.className + ''").split(" ")[0])
    assert {"md-skip", "md-search__input", "md-nav__link"} <= reached
    assert opened.locator("a.language").evaluate(
        "link => (link.focus(), link === document.activeElement)"
    )


def test_menu_of_a_phone_opens_for_the_keyboard(watch):
    opened = watch(width=360).open("one-head/")
    drawer = opened.locator("#__drawer")
    for _ in range(8):
        opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.closest('.md-sidebar--primary') !== null")
    assert drawer.is_checked()
    opened.keyboard.press("Escape")
    assert not drawer.is_checked()


def test_colours_change_by_keyboard(watch):
    opened = watch().open("one-head/")
    opened.locator("#__palette_0").focus()
    opened.keyboard.press("ArrowRight")
    assert opened.locator("body").get_attribute("data-md-color-scheme") == "slate"


def test_scheme_stays_on_the_way_to_the_other_language(watch):
    opened = watch().open("one-head/")
    opened.locator("label[for=__palette_1]").click()
    assert opened.locator("body").get_attribute("data-md-color-scheme") == "slate"
    opened.locator("a.language").click()
    assert opened.locator("body").get_attribute("data-md-color-scheme") == "slate"


def test_reduced_motion(watch):
    opened = watch(reduced_motion="reduce").open("one-head/")
    moving = opened.evaluate(
        "[...document.querySelectorAll('*')].filter(e => "
        "parseFloat(getComputedStyle(e).transitionDuration) > 0.01).length"
    )
    assert moving == 0


def test_print_hides_what_paper_can_not_use(watch):
    opened = watch().open("two-heads/")
    opened.locator(COPY).first.wait_for(state="attached")
    opened.emulate_media(media="print")
    for part in (".md-header", ".md-sidebar--primary", COPY):
        assert opened.locator(part).first.is_hidden()
    assert opened.locator("table.weights").first.is_visible()


def test_search_loads_its_index_when_it_is_used(watch):
    watched = watch()
    asked = []
    watched.page.on("request", lambda request: asked.append(request.url))
    opened = watched.open("one-head/")
    opened.wait_for_load_state("networkidle")
    assert not [url for url in asked if "search_index" in url]
    opened.keyboard.press("s")
    opened.keyboard.type("luapan")
    opened.locator(".md-search-result__link").first.wait_for()
    assert [url for url in asked if "search_index" in url]
