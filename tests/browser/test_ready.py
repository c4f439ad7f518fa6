"""Pages come ready, so the browser works once; and the theme still does what it should."""

import json

import pytest
from accessible import violations

PATHS = ["", "two-heads/", "en/parity/"]


@pytest.mark.parametrize("path", PATHS)
def test_scripts_do_not_make_the_browser_style_the_page_anew(path, watch, chromium):
    opened = watch(width=360)
    kinds = ["devtools.timeline"]
    chromium.start_tracing(page=opened.page, categories=kinds, screenshots=False)
    opened.page.goto(opened.address + path, wait_until="networkidle")
    events = json.loads(chromium.stop_tracing())["traceEvents"]
    styled = [e["args"]["elementCount"] for e in events if e["name"] == "UpdateLayoutTree"]
    elements = opened.page.locator("*").count()
    # Once, and what scripts add; not of one count, as a page is styled in pieces while it arrives.
    assert 0.8 * elements < sum(styled) < 1.5 * elements
    assert opened.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_scroll_bars_have_the_colours_of_the_page(scheme, watch):
    page = watch(scheme=scheme).open("")
    of_root = "getComputedStyle(document.documentElement).colorScheme"
    assert page.evaluate(of_root) == ("dark" if scheme == "dark" else "normal")
    page.locator("label[for^=__palette]:visible").click()
    page.wait_for_function(f"{of_root} === '{'normal' if scheme == 'dark' else 'dark'}'")


def test_without_scripts_nothing_waits_for_one(watch):
    page = watch(java_script_enabled=False).open("two-heads/")
    assert page.locator(".md-search").is_hidden()
    assert page.locator(".md-sidebar--primary").is_visible()


def test_colours_on_their_way_are_not_judged(watch):
    page = watch(width=360).open("")
    assert violations(page) == ""  # from here on nothing moves by itself
    page.evaluate("""() => {
      const title = document.querySelector("h1"), { style } = title;
      Object.assign(style, { color: "#000", backgroundColor: "#fff" });
      getComputedStyle(title).color; // now it has them
      style.transition = "all 99s linear -49s"; // at once half-way, and for long
      setTimeout(() => Object.assign(style, { color: "#fff", backgroundColor: "#000" }), 20);
    }""")
    assert violations(page) == ""
