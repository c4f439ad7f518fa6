"""The pages about weights: heads light up in every layout, and the calculator calculates."""

import pytest

LANGUAGES = ["", "en/"]


def states(opened, kind):
    """The names of the parts that are lit, or dimmed."""
    return set(opened.locator(f".heads g.{kind} text").all_text_contents())


@pytest.mark.parametrize("language", LANGUAGES)
def test_pointing_at_a_head_lights_it_in_every_layout(language, watch):
    watched = watch()
    opened = watched.open(f"{language}layouts/")
    opened.locator(".heads g", has_text="k3").first.hover()
    assert states(opened, "on") == {"q3", "k3", "v3", "k2", "v2"}  # the last two in groups of two
    assert opened.locator(".heads g.on text", has_text="q3").count() == 6
    assert "q1" in states(opened, "off")
    opened.mouse.move(0, 0)
    assert states(opened, "off") == set()
    assert watched.errors == []


def test_buttons_light_heads_for_the_keyboard_and_the_finger(watch):
    opened = watch(width=360, has_touch=True).open("layouts/")
    button = opened.locator(".head-buttons button").nth(1)
    button.focus()
    assert states(opened, "on") == {"q2", "k2", "v2", "k1", "v1"}  # the last two are shared
    opened.keyboard.press("Enter")
    opened.locator("a.language").focus()
    assert "q2" in states(opened, "on")  # stays
    pressed = opened.locator(".head-buttons button[aria-pressed=true]")
    assert pressed.all_text_contents() == ["head 2"] * 2
    pressed.first.tap()
    assert pressed.count() == 0


def test_without_scripts_the_colours_tell(watch):
    opened = watch(java_script_enabled=False).open("layouts/")
    assert opened.locator(".head-buttons").first.is_hidden()
    assert opened.locator(".heads rect").first.is_visible()
    opened.goto(opened.url.replace("layouts", "variants"))
    assert opened.locator(".calculator").is_hidden()
    assert opened.locator(".models table").is_visible()


@pytest.mark.parametrize(("language", "written"), [("", "4.608"), ("en/", "4,608")])
def test_the_calculator_repeats_the_table(language, written, watch):
    watched = watch()
    opened = watched.open(f"{language}variants/")
    rows = opened.locator(".models tbody tr")
    for i in range(rows.count()):
        opened.locator("[name=model]").select_option(str(i))
        cells = rows.nth(i).locator("td").all_text_contents()
        token = opened.locator("output[name=token]").text_content()
        assert token.replace(".", "").replace(",", "") == cells[4].replace(".", "").replace(",", "")
        total = float(opened.locator("output[name=total]").text_content().replace(",", "."))
        assert total == pytest.approx(float(cells[5].replace(",", ".")), abs=6e-4)
    opened.locator("[name=model]").select_option("2")
    assert opened.locator("output[name=token]").text_content() == written
    assert watched.errors == []


def test_the_calculator_takes_sizes_of_ones_own_and_refuses_what_does_not_divide(watch):
    opened = watch().open("variants/")
    token, full = (opened.locator(f"output[name={name}]") for name in ("token", "full"))
    sizes = {"layers": "1", "d_model": "1024", "H": "8", "H_kv": "2", "tokens": str(2**20)}
    for name, value in sizes.items():
        opened.locator(f"[name={name}]").fill(value)
    opened.locator("[name=size]").select_option("float32")
    assert token.text_content() == "2"  # 2 * 2 heads * 128 * 4 bytes
    assert full.text_content() == "8"
    for name, value in (("H_kv", "3"), ("H", "7"), ("tokens", ""), ("layers", "0")):
        field = opened.locator(f"[name={name}]")
        field.fill(value)
        assert field.get_attribute("aria-invalid") == "true"
        assert token.text_content() == full.text_content() == "–"
        field.fill(sizes[name])
        assert token.text_content() == "2"
