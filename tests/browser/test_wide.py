"""What is wider than the screen fades out on the side where there is more to see."""

import pytest

UNFADE = "e => e.style.setProperty('mask', 'none', 'important')"
FADE = "e => e.style.removeProperty('mask')"
WIDTH = 8  # of the strip at either side that is looked at


def faded(element) -> tuple[bool, bool]:
    """Whether the left and the right end of an element look different from how they do unfaded."""
    page = element.page
    element.scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    box = element.bounding_box()
    right = box["x"] + box["width"] - WIDTH
    clips = [{**box, "width": WIDTH}, {**box, "width": WIDTH, "x": right}]
    seen = [page.screenshot(clip=clip) for clip in clips]
    element.evaluate(UNFADE)
    bare = [page.screenshot(clip=clip) for clip in clips]
    element.evaluate(FADE)
    return seen[0] != bare[0], seen[1] != bare[1]


def scrolled(element, way: str):
    """Scroll an element sideways; `way` is an expression of its own sizes."""
    element.evaluate(f"e => {{ e.scrollLeft = {way} }}")
    return element


@pytest.mark.parametrize(
    "options",
    [{}, {"scheme": "dark"}, {"java_script_enabled": False}, {"reduced_motion": "reduce"}],
    ids=["light", "dark", "without scripts", "reduced motion"],
)
def test_a_wide_table_fades_where_there_is_more(options, watch):
    opened = watch(width=360, **options).open("bugs/")
    table = opened.locator("table.facts").first
    assert faded(table) == (False, True)
    assert faded(scrolled(table, "e.scrollWidth / 4")) == (True, True)
    assert faded(scrolled(table, "e.scrollWidth")) == (True, False)


@pytest.mark.parametrize(
    ("page", "wide"),
    [
        ("bugs/", "pre > code"),
        ("bugs/", "table.weights"),
        ("scaling/", ".formula"),
        ("cheat-sheet/", ".md-typeset__scrollwrap"),
    ],
)
def test_all_that_scrolls_fades(page, wide, watch):
    opened = watch(width=360).open(page)
    beyond = "all => all.findIndex(e => e.scrollWidth > e.clientWidth)"
    found = opened.locator(wide).nth(opened.locator(wide).evaluate_all(beyond))
    assert faded(found) == (False, True)


def test_a_table_that_fits_does_not_fade(watch):
    opened = watch(width=360).open("")
    assert faded(opened.locator("table.weights").first) == (False, False)


def test_what_has_the_focus_keeps_its_outline(watch):
    opened = watch(width=360).open("bugs/")
    table = opened.locator("table.facts[tabindex]").first
    table.focus()
    opened.keyboard.press("ArrowRight")
    assert table.evaluate("e => getComputedStyle(e).maskImage") == "none"
    assert table.evaluate("e => getComputedStyle(e).outlineStyle") != "none"
