"""The playground in Chromium: whatever a reader does, its numbers are those of mha."""

import gzip
import io
import re
from contextlib import redirect_stdout
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
import yaml
from accessible import violations

import mha

DOCS = Path(__file__).parents[2] / "docs"
WORDS = yaml.safe_load((DOCS / "words.yml").read_text("utf-8"))
PAGES = {"id": "playground/", "en": "en/playground/"}
SMALL = {"one-head/": 1, "en/one-head/": 1, "two-heads/": 2, "en/two-heads/": 2}
PRESETS = ["two-heads", "tie", "random", "causal", "output-projection"]
MATRICES = ("W_Q", "W_K", "W_V", "W_O")
CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}

# Every number on display in full: {"weights-0": [[0.39...]], "concat": ..., "output": ...}
SHOWN = """() => Object.fromEntries(
  [...document.querySelectorAll(".playground .results figure")].map(figure => [figure.dataset.of,
    [...figure.querySelectorAll("tbody tr")].map(row =>
      [...row.querySelectorAll("td")].map(cell => Number(cell.dataset.value)))]))"""
GO = """address => new Promise(done => {
  addEventListener("hashchange", () => done(), {once: true});
  location.hash = address;
})"""


def start(page):
    """Wait until the script has taken over."""
    page.locator(".playground .results").wait_for()
    return page


@pytest.fixture
def playground(watch):
    """Open the page: `playground("en", "#tie", width=360)`; errors and requests are watched."""
    watched = []

    def open_one(language="en", address="", **options):
        watched.append(watch(**options))
        return start(watched[-1].open(PAGES[language] + address))

    yield open_one
    for one in watched:
        assert one.errors == []
        assert one.foreign == []


def shown(page) -> dict[str, np.ndarray]:
    return {name: np.array(rows) for name, rows in page.evaluate(SHOWN).items()}


def preset(name: str) -> dict:
    """What docs/examples/playground.py hands to the page."""
    import runpy

    with redirect_stdout(io.StringIO()):
        return runpy.run_path(str(DOCS / "examples/playground.py"))["presets"][name]


def random_state(rng) -> dict:
    T, d = int(rng.integers(1, 7)), int(rng.integers(1, 9))
    H = int(rng.choice([h for h in range(1, d + 1) if d % h == 0]))
    free, size = rng.random(), float(rng.choice([0.3, 1, 3]))
    masks = [np.ones((T, T), bool), np.tri(T, dtype=bool), rng.random((T, T)) < 0.6]
    state = {"X": rng.normal(size=(T, d)), "H": H, "allow": masks[rng.integers(3)]}
    for name in MATRICES:
        state[name] = rng.normal(scale=size, size=(d, d)) if free < 0.7 else np.eye(d)
    return state | {"scaled": bool(rng.integers(2))}


def computed(state: dict) -> dict[str, np.ndarray]:
    """The same by mha."""
    X, H, allow = state["X"], state["H"], state["allow"]
    Q, K, V = (mha.split_heads(X @ state[name], H) for name in MATRICES[:3])
    scale = None if state["scaled"] else 1.0
    Z, A = mha.attention(Q, K, V, allow=allow, scale=scale)
    Z = mha.merge_heads(Z)
    Y = Z @ state["W_O"]
    if state["scaled"]:
        projections = mha.Projections(*(state[name] for name in MATRICES))
        Y, A = mha.multi_head_attention(X, projections=projections, num_heads=H, allow=allow)
    return {f"weights-{h}": weights for h, weights in enumerate(A)} | {"concat": Z, "output": Y}


def address_of(state: dict) -> str:
    def rows(matrix):
        return ";".join(",".join(repr(x) for x in row) for row in np.asarray(matrix).tolist())

    parts = [f"{name}={rows(state[name])}" for name in ("X", *MATRICES)]
    return "&".join(
        [
            *parts,
            f"H={state['H']}",
            f"scaled={int(state['scaled'])}",
            f"allow={rows(state['allow'].astype(int))}",
        ]
    )


def agree(page, expected: dict[str, np.ndarray]) -> None:
    """The tables show this, or do so soon: what a click leads to counts a moment later."""
    for _ in range(500):
        wrong = difference(shown(page), expected)
        if not wrong:
            return
        page.wait_for_timeout(10)
    raise AssertionError(wrong)


def difference(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> str:
    """What is wrong with what was found; nothing, if it agrees."""
    shapes = [{name: np.shape(values) for name, values in of.items()} for of in (found, expected)]
    if shapes[0] != shapes[1]:
        return f"expected {shapes[1]}, got {shapes[0]}"
    checks = [mha.compare(found[n], expected[n], rtol=1e-12, name=n) for n in expected]
    return "; ".join(check.reason for check in checks if not check)


def message(page) -> str:
    return page.locator(".playground .status.wrong").text_content()


def test_200_states_from_their_address(playground):
    page, rng = playground(), np.random.default_rng(0)
    for _ in range(200):
        state = random_state(rng)
        page.evaluate(GO, address_of(state))
        agree(page, computed(state))
        assert page.locator(".playground .status.wrong").count() == 0


@pytest.mark.parametrize(("language", "seed"), [("id", 0), ("en", 1), ("id", 2)])
def test_states_typed_into_the_fields(language, seed, playground):
    page, rng = playground(language), np.random.default_rng(seed)
    state = random_state(rng)
    while not 2 <= state["X"].shape[1] <= 4:
        state = random_state(rng)
    T, d = state["X"].shape
    page.locator("[data-key=d_model]").select_option(str(d))
    for _ in range(abs(T - 3)):
        page.locator(f"[data-key={'add' if T > 3 else 'remove'}_token]").click()
    page.locator("[data-key=heads]").select_option(str(state["H"]))
    page.locator("[data-key=scaled]").set_checked(state["scaled"])
    for details in page.locator(".playground details").all():
        details.evaluate("details => details.open = true")
    for (i, j), allowed in np.ndenumerate(state["allow"]):
        page.locator(f"[data-key=allow-{i}-{j}]").set_checked(bool(allowed))
    for name in ("X", *MATRICES):
        for (i, j), value in np.ndenumerate(state[name]):
            text = repr(float(value)).replace(".", WORDS[language]["decimal"])
            page.locator(f"[aria-label='{name}[{i}, {j}]']").fill(text)
    page.keyboard.press("Enter")
    agree(page, computed(state))


@pytest.mark.parametrize("language", PAGES)
def test_presets_show_what_the_build_computed(language, playground, watch):
    built = watch(java_script_enabled=False).open(PAGES[language])
    page, recomputed = playground(language), WORDS[language]["playground"]["recomputed"]
    for name in PRESETS:
        page.locator(f".playground #{name}").click()
        agree(page, computed(preset(name)))
        cells = page.locator(".playground .results tbody td").all_text_contents()
        assert cells == built.locator(f"#{name} + .tables td").all_text_contents(), name
        assert page.url.endswith(f"#{name}")
        assert page.locator(".recomputed").text_content() == recomputed, name


@pytest.mark.parametrize("name", PRESETS)
def test_preset_has_an_address(name, playground):
    agree(playground("en", f"#{name}"), computed(preset(name)))


@pytest.mark.parametrize("language", PAGES)
def test_guided_links_lead_to_presets(language, playground):
    page = playground(language)
    links = page.locator("article p:not(.playground *) a[href^='#']").all()
    names = {link.get_attribute("href")[1:] for link in links}
    assert names == set(PRESETS)
    page.locator("article p:not(.playground *) a[href='#tie']").first.click()
    agree(page, computed(preset("tie")))
    page.go_back()
    page.go_forward()
    agree(page, computed(preset("tie")))


BAD = {  # no two in a row with one message
    "": "blank",
    "abc": "not_a_number",
    "   ": "blank",
    "NaN": "not_a_number",
    "Infinity": "not_a_number",
    "-inf": "not_a_number",
    "0x10": "not_a_number",
    "1.000,5": "not_a_number",
    "--1": "not_a_number",
    "1 2": "not_a_number",
    "<img src=x onerror=alert(1)>": "not_a_number",
    "1e309": "too_large",
    "1e308": "overflow",
}


@pytest.mark.parametrize("language", PAGES)
def test_bad_number_is_refused(language, playground):
    page = playground(language)
    field, before = page.locator("[aria-label='X[0, 0]']"), shown(page)
    for text, word in BAD.items():
        field.fill(text)
        field.press("Enter")
        gap = {"text": text.strip()[:30]}
        assert message(page) == WORDS[language]["playground"][word].format(**gap), text
        assert field.input_value() == "1", text
        assert str(before) == str(shown(page)), text
        assert page.locator("[data-key=undo]").is_disabled(), text
        assert page.locator(".playground img").count() == 0, text


def test_half_typed_number_leaves_no_trace(playground):
    page = playground()
    field, before = page.locator("[aria-label='X[0, 0]']"), shown(page)
    field.focus()
    field.press("End")
    page.keyboard.type("e309")  # 1e3 and 1e30 are numbers on the way
    assert str(before) != str(shown(page))
    page.keyboard.press("Tab")
    assert field.input_value() == "1"
    assert str(before) == str(shown(page))


@pytest.mark.parametrize("language", PAGES)
def test_number_in_either_style(language, playground):
    page, state = playground(language), preset("two-heads")
    field = page.locator("[aria-label='X[0, 0]']")
    state["X"][0, 0] = 0.5
    for text in ("0,5", "0.5", ".5", "+0.5", "5e-1", "50E-2", " 0,50 "):
        field.fill(text)
        field.press("Enter")
        assert field.input_value() == f"0{WORDS[language]['decimal']}5", text
        agree(page, computed(state))
        page.locator("[data-key=undo]").click()
        assert field.input_value() == "1", text


@pytest.mark.parametrize("value", ["−1e150", "-1e-300", "12345678"])
def test_large_and_small_numbers(value, playground):
    page = playground()
    field = page.locator("[aria-label='X[0, 0]']")
    field.fill(value)
    field.press("Enter")
    state = preset("two-heads")
    state["X"][0, 0] = float(value.replace("−", "-"))
    agree(page, computed(state))


@pytest.mark.parametrize(
    ("language", "text"), [("id", ""), ("en", " "), ("id", "x" * 21), ("en", "a\u202eb")]
)
def test_bad_name_is_refused(language, text, playground):
    page = playground(language)
    field = page.locator("[aria-label='names[0]']")
    field.fill(text)
    field.press("Enter")
    assert message(page) == WORDS[language]["playground"]["bad_name"].format(n=20)
    assert field.input_value() == "token 0"


def test_names_are_text(playground):
    page = playground()
    name = "<b>&, ;=ikan"
    page.locator("[aria-label='names[0]']").fill(name)
    page.keyboard.press("Enter")
    assert page.locator(".results tbody th").first.text_content() == name
    assert page.locator("[data-of=mask] thead th").nth(1).text_content() == name
    assert page.locator(".playground b").count() == 0
    again = playground("id", "#" + page.url.partition("#")[2])
    assert again.locator("[aria-label='names[0]']").input_value() == name


X = "X=1,0;0,1"
BROKEN = [
    f"{X}", "H=2", f"{X}&H=3", f"{X}&H=0", f"{X}&H=x", f"{X}&H=2&H=2", f"{X}&H=2&more=1",
    "X=1,0;0&H=1", "X=&H=1", "X=1,a&H=1", "X=1,NaN&H=1", "X=1e309&H=1", "X=1e308&H=1",
    f"{X}&H=2&allow=1,0", f"{X}&H=2&allow=2,0;0,1", f"{X}&H=2&W_Q=1", f"{X}&H=2&names=a",
    f"{X}&H=2&names=%E0%A4%A,b", f"{X}&H=2&scaled=yes", f"{X}&H=2&view=head-3",
    f"{X}&H=2&cell=constructor-0", f"{X}&H=2&cell=weights-2-0-0", f"{X}&H=2&cell=output-0-9",
    "__proto__=1", "constructor=1", "=", "x=1", "X=" + ";".join(["1"] * 7) + "&H=1",
    "X=" + ",".join(["1"] * 9) + "&H=1", "X=" + "1," * 20000 + "1&H=1",
    "X=<img src=x onerror=alert(1)>&H=1", "</script><script>alert(1)</script>=",
]  # fmt: skip


@pytest.mark.parametrize("language", PAGES)
def test_broken_address_falls_back(language, playground):
    page, chapter = playground(language), computed(preset("two-heads"))
    for address in BROKEN:
        page.evaluate(GO, address)
        said = WORDS[language]["playground"]["overflow" if "1e308" in address else "address"]
        assert message(page) == said, address
        agree(page, chapter)
        assert page.locator(".playground img, .playground script").count() == 0
        assert "=" not in page.url, address
    fresh = playground(language, "#" + BROKEN[0])
    assert message(fresh) == WORDS[language]["playground"]["address"]
    agree(fresh, chapter)


@pytest.mark.parametrize("anchor", ["#questions", "#%", "#nowhere"])
def test_other_anchors_are_left_alone(anchor, playground):
    page = playground("en", anchor)
    assert page.url.endswith(anchor)
    assert page.locator(".playground .status").text_content() == ""
    agree(page, computed(preset("two-heads")))


def test_undo_redo_and_reset(playground):
    page = playground()
    undo, redo = page.locator("[data-key=undo]"), page.locator("[data-key=redo]")
    seen = [shown(page)]
    page.locator("[aria-label='X[0, 0]']").fill("2")
    page.keyboard.press("Enter")
    seen.append(shown(page))
    page.locator("[data-key=add_token]").click()
    seen.append(shown(page))
    page.locator("[data-key=heads]").select_option("3")
    seen.append(shown(page))
    page.locator("[data-key=weights-0-0-1]").click()  # to look is nothing to undo
    for before in reversed(seen[:-1]):
        undo.click()
        assert str(shown(page)) == str(before)
    assert undo.is_disabled()
    assert page.locator("[aria-label='X[0, 0]']").input_value() == "1"
    for after in seen[1:]:
        redo.click()
        assert str(shown(page)) == str(after)
    assert redo.is_disabled()
    page.locator("[data-key=reset]").click()
    assert str(shown(page)) == str(seen[0])
    undo.click()
    assert str(shown(page)) == str(seen[-1])


def test_link_carries_the_state(playground):
    page = playground("id", "#random", **CLIPBOARD)
    page.locator("[aria-label='names[1]']").fill("makan, ikan")
    page.locator("[data-of=mask]").evaluate("details => details.open = true")
    page.locator("[data-key=allow-2-1]").uncheck()
    page.locator("[data-key=scaled]").uncheck()
    page.locator("[data-key=view]").select_option("mean")
    page.locator("[data-key=mean-2-0]").click()
    page.locator("[data-key=copy_link]").click()
    link = page.evaluate("navigator.clipboard.readText()")
    again = playground("en", "#" + link.partition("#")[2])
    assert str(shown(again)) == str(shown(page))
    assert again.locator(".results tbody th").nth(1).text_content() == "makan, ikan"
    assert again.locator("[data-key=mean-2-0]").get_attribute("aria-pressed") == "true"
    assert again.locator(".trace .title").count() == 1


@pytest.mark.parametrize("language", PAGES)
def test_copied_code_runs_and_gives_the_numbers(language, playground):
    page, rng = playground(language, **CLIPBOARD), np.random.default_rng(7)
    random = [address_of(random_state(rng)) for _ in range(8)]
    for address in PRESETS[1:] + random:
        page.evaluate(GO, address)
        page.locator("[data-key=copy_code]").click()
        page.locator(".status", has_text=WORDS[language]["playground"]["copied"]).wait_for()
        code = page.evaluate("navigator.clipboard.readText()")
        names, printed = {}, io.StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        A = {f"weights-{h}": weights for h, weights in enumerate(names["A"])}
        agree(page, A | {"concat": names["Z"], "output": names["Y"]})
        assert printed.getvalue() == f"{names['A']}\n{names['Z']}\n{names['Y']}\n"
    np.set_printoptions(precision=8, suppress=False)


def test_views(playground):
    page = playground("en", "#random")
    A = [shown(page)[f"weights-{h}"] for h in range(2)]
    page.locator("[data-key=view]").focus()
    page.locator("[data-key=view]").select_option("head-2")
    assert str(shown(page)["weights-1"]) == str(A[1])
    assert "weights-0" not in shown(page)
    page.locator("[data-key=view]").select_option("mean")
    assert mha.compare(shown(page)["mean"], (A[0] + A[1]) / 2)
    page.locator("[data-key=view]").select_option("differences")
    assert mha.compare(shown(page)["differences-1"], A[1] - A[0])
    assert page.evaluate("document.activeElement.dataset.key") == "view"
    page.locator("[data-key=heads]").select_option("1")  # nothing left to compare with
    assert list(shown(page)) == ["weights-0", "concat", "output"]


POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def evaluated(text: str, decimal: str) -> float:
    """The value of "2 · (−0,5) + 1 / √3", by Python."""
    text = re.sub(r" × 10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda m: "e" + m[1].translate(POWERS), text)
    text = text.replace(decimal, ".").replace("·", "*").replace("−", "-")
    return eval(re.sub(r"√(\d+)", r"sqrt(\1)", text), {"sqrt": sqrt})


def checked(line: str, decimal: str) -> tuple[str, float]:
    """Name and value of "q[0] = 2 · 0,5 = 1", after redoing it; the numbers in it are rounded."""
    name, *how = line.split(" = ")
    results = [evaluated(text, decimal) for text in how]
    size = sum(evaluated(n, decimal) for n in re.findall(rf"[\d{decimal}]+", how[0]))
    assert results[0] == pytest.approx(results[-1], abs=1e-4 * (1 + size), rel=1e-3), line
    return name, results[-1]


@pytest.mark.parametrize("language", PAGES)
@pytest.mark.parametrize("seed", range(4))
def test_traced_computation_is_right(language, seed, playground):
    rng = np.random.default_rng(seed)
    state, decimal = random_state(rng), WORDS[language]["decimal"]
    while state["X"].shape[0] < 2 or state["H"] < 2:
        state = random_state(rng)
    page = playground(language, "#" + address_of(state))
    for view, kinds in {
        "all": ("weights-1-1-0", "concat-1-1", "output-1-0"),
        "mean": ("mean-1-0",),
        "differences": ("differences-1-1-0",),
    }.items():
        page.locator("[data-key=view]").select_option(view)
        for cell in kinds:
            page.locator(f"[data-key={cell}]").click()
            of, *at = re.fullmatch(r"(.+?)-(\d)-(\d)", cell).groups()
            i, j = map(int, at)
            values = dict(
                checked(line, decimal) for line in page.locator(".line").all_text_contents()
            )
            words = WORDS[language]["playground"]["trace"]
            last = {"concat": f"z[{j}]", "output": f"y[{j}]", "differences-1": words["difference"]}
            value = values[last.get(of, words["weight"])]
            assert value == pytest.approx(shown(page)[of][i, j], abs=1e-4, rel=1e-3)


@pytest.mark.parametrize("language", PAGES)
def test_query_without_keys(language, playground):
    page = playground(language)
    page.locator("[data-of=mask] summary").click()
    for j in range(3):
        page.locator(f"[data-key=allow-1-{j}]").uncheck()
    state = preset("two-heads")
    state["allow"][1] = False
    agree(page, computed(state))
    assert (shown(page)["weights-0"][1] == 0).all()
    page.locator("[data-key=weights-0-1-2]").click()
    trace = WORDS[language]["playground"]["trace"]
    assert trace["no_keys"].format(query="token 1") in page.locator(".trace").text_content()
    assert page.locator(".trace td", has_text=trace["blocked"]).count() == 3
    page.locator("[data-key=mask_causal]").click()
    agree(page, computed(preset("causal")))
    page.locator("[data-key=add_token]").click()
    assert (np.triu(shown(page)["weights-0"], 1) == 0).all()
    page.locator("[data-key=mask_all]").click()
    assert (shown(page)["weights-0"] > 0).all()


def test_limits(playground):
    page = playground()
    add, remove = page.locator("[data-key=add_token]"), page.locator("[data-key=remove_token]")
    for _ in range(3):
        add.click()
    assert add.is_disabled()
    assert shown(page)["weights-0"].shape == (6, 6)
    for _ in range(5):
        remove.click()
    assert remove.is_disabled()
    assert shown(page)["weights-0"].shape == (1, 1)
    page.locator("[data-key=d_model]").select_option("7")
    assert list(shown(page)) == ["weights-0", "concat", "output"]  # one head: 2 does not divide 7


def tab_to(page, key: str, limit: int = 200) -> None:
    for _ in range(limit):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.key") == key:
            return
    raise AssertionError(f"Tab never reaches {key}")


def test_by_keyboard_alone(playground):
    page = playground()
    tab_to(page, "X[0, 0]")
    page.keyboard.type("2")  # Tab has selected what was there
    tab_to(page, "add_token")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.key") == "add_token"
    tab_to(page, "scaled")
    page.keyboard.press("Space")
    tab_to(page, "mask")
    page.keyboard.press("Enter")
    tab_to(page, "allow-0-1")
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.dataset.key") == "allow-0-1"
    state = preset("two-heads")
    allow = np.ones((4, 4), bool)
    allow[0, 1] = False
    X = np.vstack([state["X"], np.zeros(6)])
    X[0, 0] = 2
    agree(page, computed(state | {"X": X, "allow": allow, "scaled": False}))
    tab_to(page, "weights-0-0-0")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.key") == "weights-0-0-1"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.key") == "weights-0-0-1"
    title = page.locator(".trace .title").text_content()
    assert title == page.locator(".playground [role=status]").text_content()
    tab_to(page, "weights-1-0-0")  # one stop for each table
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.dataset.key") == "weights-0-0-1"
    for _ in range(4):
        page.locator("[data-key=undo]").focus()
        page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.key") == "redo"
    agree(page, computed(preset("two-heads")))


def test_click_on_a_cell_ends_an_edit(playground):
    page = playground()
    page.locator("[aria-label='X[0, 0]']").fill("3")
    page.locator("[data-key=weights-0-0-1]").click()
    assert page.locator(".trace .title").count() == 1
    assert page.locator("[data-key=undo]").is_enabled()


@pytest.mark.parametrize("language", PAGES)
def test_without_scripts(language, watch):
    page = watch(java_script_enabled=False).open(PAGES[language])
    tables = page.locator(".playground table.weights")
    assert tables.count() == 19  # two or one of heads, concat and output, for five presets
    values = page.locator("#two-heads + .tables table").first.locator("td").all_text_contents()
    assert [float(v.replace(",", ".")) for v in values] == [
        float(f"{w:.3f}") for w in computed(preset("two-heads"))["weights-0"].flat
    ]
    assert page.locator(".playground input, .playground button").count() == 0


@pytest.mark.parametrize(  # each two of these meet
    ("width", "language", "scheme"),
    [(1280, "id", "light"), (1280, "en", "dark"), (360, "id", "dark"), (360, "en", "light")],
)
def test_accessible_and_no_wider_than_the_screen(width, language, scheme, playground):
    page = playground(language, "#random", width=width, scheme=scheme)
    page.locator("[data-key=add_token]").click()
    page.locator("[aria-label='names[4]']").fill("kata yang panjang be")
    page.locator("[data-key=d_model]").select_option("8")
    for summary in page.locator(".playground summary").all():
        summary.click()
    page.locator("[data-key=allow-0-1]").uncheck()
    for view, cell in {"differences": "output-1-2", "all": "weights-1-0-1"}.items():
        page.locator("[data-key=view]").select_option(view)
        page.locator(f"[data-key={cell}]").click()
        page.locator("[aria-label='X[0, 0]']").fill("x")
        page.keyboard.press("Enter")
        assert page.locator(".status.wrong").count() == 1
        assert violations(page) == ""
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("path", SMALL)
def test_small_copy(path, watch):
    watched = watch()
    asked = []
    watched.page.on("request", lambda request: asked.append(request.url))
    page = watched.open(path)
    page.wait_for_load_state("networkidle")
    assert not any("playground/playground.js" in url for url in asked)  # nobody has unfolded it
    page.locator("details:has(.playground) > summary").click()
    start(page)
    page.locator("[aria-label='X[1, 3]']").fill("-2,5")
    page.keyboard.press("Enter")
    state = preset("two-heads") | {"H": SMALL[path]}
    state["X"][1, 3] = -2.5
    expected = {k: v for k, v in computed(state).items() if k.startswith("weights")}
    agree(page, expected)
    page.locator("[data-key=weights-0-0-1]").click()
    assert page.locator(".trace .title").count() == 1
    assert violations(page) == ""
    assert "#" not in page.url
    page.locator(".playground a").click()
    start(page)
    agree(page, computed(state))
    assert page.locator("html").get_attribute("lang") == ("en" if "en/" in path else "id")
    assert watched.errors == []


def test_is_small():
    files = (DOCS / "theme/assets/playground").iterdir()
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 16_000
