"""What a reader points at, focuses or taps lights up what belongs to it; one sheet is one page."""

import re

import pytest
from accessible import violations

TOUCH = {"width": 360, "has_touch": True, "is_mobile": True}


def lit(opened) -> tuple[list[str], list[str]]:
    """The numbers of the lines that are lit, and the labels of what is said about them."""
    lines = opened.locator(".line.lit > a.number")
    words = opened.locator("dt.lit")
    assert opened.locator("dd.lit").count() == words.count()
    return (
        [link.get_attribute("href").rpartition("-")[2] for link in lines.all()],
        words.all_text_contents(),
    )


Q_K_V = (["17", "18", "19"], ["Lines 17–19"])


def test_pointing_at_a_line_lights_its_explanation_and_back(watch):
    watched = watch()
    opened = watched.open("en/torch-module/")
    assert lit(opened) == ([], [])
    opened.locator(".line", has_text="k = self.k_proj").hover()
    assert lit(opened) == Q_K_V
    opened.locator("dd", has_text="A softmax over the last axis").hover()
    assert lit(opened) == (["21"], ["Line 21"])
    opened.locator("h1").hover()
    assert lit(opened) == ([], [])
    assert watched.errors == []


def test_focus_lights_both(watch):
    opened = watch().open("en/torch-module/")
    opened.locator("a.number[href='#class-18']").focus()
    assert lit(opened) == Q_K_V
    opened.locator("a.lines", has_text="Line 20").focus()
    assert lit(opened) == (["20"], ["Line 20"])
    opened.keyboard.press("Enter")
    assert opened.url.endswith("#class-20")


def test_a_tap_on_a_line_lights_its_explanation_and_shows_it(watch):
    opened = watch(**TOUCH).open("en/torch-module/")
    explanation = opened.locator("dd", has_text="First the projection")
    opened.locator(".line", has_text="q = self.q_proj").tap(position={"x": 90, "y": 5})
    assert lit(opened) == Q_K_V
    box = explanation.bounding_box()
    assert 0 <= box["y"] <= 800 - box["height"]
    assert opened.locator("dt.lit").bounding_box()["y"] >= 48  # not under the header
    opened.locator("dt.lit a").tap()
    assert opened.url.endswith("#class-17-19")
    assert opened.locator(".line.lit").first.bounding_box()["y"] >= 48


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize(
    ("fragment", "lines"),
    [("#class-18", ["18"]), ("#class-17-19", ["17", "18", "19"]), ("#class-20", ["20"])],
)
def test_an_address_lights_its_lines(fragment, lines, scripts, watch):
    opened = watch(java_script_enabled=scripts).open(f"en/torch-module/{fragment}")
    marked = opened.locator(".line:has(> [id]:target), .range:has(> [id]:target) > .line")
    assert [
        link.get_attribute("href").rpartition("-")[2] for link in marked.locator("> a.number").all()
    ] == lines
    for box in (marked.first.bounding_box(), marked.last.bounding_box()):
        assert 0 <= box["y"] <= 800
    if scripts:
        assert set(lines) <= set(lit(opened)[0])


def test_several_walkthroughs_on_a_page_do_not_mix(watch):
    opened = watch().open("en/two-heads/")
    opened.locator(".line", has_text="Z_2, A_2 =").hover()
    assert lit(opened) == (["2"], ["Line 2"])
    opened.locator(".line", has_text="W_O = np.eye").hover()
    assert lit(opened) == (["2"], ["Line 2"])
    assert opened.locator(".walkthrough:has(.lit)").count() == 1


@pytest.mark.parametrize("scripts", [True, False])
def test_a_query_stands_out_with_its_weights(scripts, watch):
    opened = watch(java_script_enabled=scripts).open("en/two-heads/")
    head = opened.locator(".head-view").first
    first, second = head.locator(".query").nth(0), head.locator(".query").nth(1)
    assert first.locator(".weight").first.is_hidden()

    second.focus()
    assert second.locator(".weight").all_text_contents() == ["0.264", "0.471", "0.264"]
    assert second.locator(".weight").first.is_visible()
    assert (
        second.get_attribute("aria-label")
        == "token 1 → token 0 0.264; token 1 0.471; token 2 0.264"
    )
    opacity = "line => +getComputedStyle(line).opacity"
    assert second.locator("line").first.evaluate(opacity) == 1
    assert first.locator("line").first.evaluate(opacity) < 0.3

    first.locator("rect").hover()
    assert first.locator(".weight").first.is_visible()
    assert second.locator(".weight").first.is_hidden()
    assert first.locator("line").first.evaluate(opacity) == 1
    assert second.locator("line").first.evaluate(opacity) < 0.3


def test_a_query_stands_out_at_a_tap(watch):
    opened = watch(**TOUCH).open("two-heads/")
    query = opened.locator(".head-view").nth(1).locator(".query").first
    query.locator("rect").tap()
    assert query.locator(".weight").first.is_visible()
    assert query.locator(".weight").all_text_contents() == ["0,390", "0,390", "0,219"]


@pytest.mark.parametrize("page", ["one-head/", "two-heads/", "torch-module/"])
def test_drawings_fit_a_phone(page, watch):
    opened = watch(width=360).open(page)
    for drawing in opened.locator(".drawing").all():
        box = drawing.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        sizes = drawing.locator("text").evaluate_all(
            "t => t.map(e => e.getBoundingClientRect().height)"
        )
        assert min(size for size in sizes if size) >= 11


BACKGROUNDS = """element => {
  const found = [];
  for (let e = element; e; e = e.parentElement) found.push(getComputedStyle(e).backgroundColor);
  const behind = found.find(colour => !/, 0\\)$|transparent/.test(colour));
  return [getComputedStyle(element).color, behind ?? "rgb(255, 255, 255)"];
}"""


def luminance(colour: str) -> float:
    """As WCAG defines it."""
    channels = [float(c) / 255 for c in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["one-head/", "two-heads/", "torch-module/", "cheat-sheet/"])
def test_each_role_has_one_readable_colour(page, scheme, watch):
    opened = watch(scheme=scheme).open(page)
    colours = {}
    for role in ("role-q", "role-k", "role-v"):
        marked = opened.locator(f"article .{role}")
        assert marked.count() >= 2
        for text, background in marked.evaluate_all(f"all => all.map({BACKGROUNDS})"):
            low, high = sorted((luminance(text), luminance(background)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (role, text, background)
            colours.setdefault(role, set()).add(text)
    assert all(len(found) == 1 for found in colours.values()), colours
    assert len(set.union(*colours.values())) == 3


def test_a_term_shows_its_definition_at_a_tap(watch):
    watched = watch(**TOUCH)
    opened = watched.open("en/two-heads/")
    start, card = opened.url, opened.locator(".definition")
    term = opened.locator("a.term").first
    term.tap()
    assert card.is_visible()
    assert opened.url == start
    assert card.locator("p").text_content() == term.get_attribute("aria-description")
    box = card.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    assert violations(opened) == ""
    opened.locator("h1").tap()
    card.wait_for(state="hidden")
    term.tap()
    card.locator("a").tap()
    opened.wait_for_url(re.compile(r"/en/glossary/#[a-z-]+$"))
    assert watched.errors == []


def test_a_term_shows_its_definition_in_focus_and_under_the_mouse(watch):
    opened = watch().open("one-head/")
    card, (first, second) = opened.locator(".definition"), opened.locator("a.term").all()[:2]
    first.focus()
    assert card.is_visible()
    assert opened.locator("a.term[title]").count() == 0  # or there would be two of them
    opened.keyboard.press("Escape")
    card.wait_for(state="hidden")
    assert first.evaluate("term => term === document.activeElement")
    second.hover()
    assert card.locator("p").text_content() == second.get_attribute("aria-description")
    card.hover()  # it can be reached with the mouse, and read
    opened.wait_for_timeout(400)
    assert card.is_visible()
    opened.locator("h1").hover()
    card.wait_for(state="hidden")
    first.focus()
    opened.keyboard.press("Enter")
    opened.wait_for_url("**/glossary/#*")


def test_without_scripts_a_term_is_a_link_with_a_title(watch):
    opened = watch(java_script_enabled=False).open("one-head/")
    assert opened.locator(".definition").is_hidden()
    assert len(opened.locator("a.term").first.get_attribute("title")) > 20


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["cheat-sheet/", "en/cheat-sheet/"])
def test_the_cheat_sheet_prints_on_one_page(page, scheme, watch):
    opened = watch(scheme=scheme).open(page)
    printed = opened.pdf(prefer_css_page_size=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == 1
    assert b"/MediaBox [0 0 594.95996 841.91998]" in printed  # A4
    opened.emulate_media(media="print")
    for part in ("#formula", "#shapes", "#masks", "#code", ".sheet table", ".sheet pre"):
        assert opened.locator(part).first.is_visible()
    for part in ("#print", "#questions", ".screen", ".md-code__nav"):
        assert opened.locator(part).first.is_hidden()
    sizes = opened.locator(".sheet :is(p, td, th, code, pre span, h2)").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize) * 0.75)"
    )
    assert min(sizes) >= 8 - 1e-6
    assert (
        luminance(opened.locator(".sheet p").first.evaluate("e => getComputedStyle(e).color")) < 0.1
    )


def test_two_pages_would_be_noticed(watch):
    opened = watch().open("cheat-sheet/")
    opened.evaluate(
        "for (const block of document.querySelectorAll('.sheet pre')) "
        "document.querySelector('.sheet').append(block.cloneNode(true))"
    )
    printed = opened.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == 2


@pytest.mark.parametrize("scripts", [True, False])
def test_the_button_to_print_needs_a_script(scripts, watch):
    opened = watch(java_script_enabled=scripts).open("cheat-sheet/")
    assert opened.locator("#print").is_visible() is scripts
    if scripts:
        opened.evaluate("window.print = () => { document.title = 'printed'; }")
        opened.locator("#print").click()
        assert opened.title() == "printed"
