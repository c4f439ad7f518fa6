"""Edit and Run in a real Chromium: the build's own results, and what a reader sees of failures."""

import json
import math
import os
import re
import shutil
import threading
import time
from pathlib import Path

import pytest
import session
from accessible import violations
from bs4 import BeautifulSoup
from served import SITE, Quiet, serving

# A loaded machine takes its time to start Python; a page that waits for ever has none to end at.
SECONDS = 60
PAGES = sorted(
    f"{path.parent.relative_to(SITE).as_posix()}/"
    for path in SITE.rglob("index.html")
    if 'id="runner"' in path.read_text("utf-8")
)

# Every number that an example leaves, in full: run by both Pythons after the example.
NUMBERS = """
import json, numpy
_found = {}
for _name, _value in list(globals().items()):
    try:
        _array = numpy.asarray(_value)
    except ValueError:
        continue
    if not _name.startswith("_") and _array.dtype.kind in "biuf":
        _found[_name] = _array.astype(float).ravel().tolist()
print("NUMBERS" + json.dumps(_found))
"""


class Runner:
    """A page with buttons, as a reader uses it."""

    def __init__(self, watched, path: str) -> None:
        self.page = watched.open(path)
        self.requests: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        text = (SITE / path / "index.html").read_text("utf-8")
        self.words = json.loads(BeautifulSoup(text, "html.parser").find(id="runner")["data-words"])
        self.bars = self.page.locator(".runner")

    def button(self, number: int, name: str):
        """One of the buttons under the code of this number."""
        return self.bars.nth(number).get_by_role("button", name=self.words[name], exact=True)

    def status(self, number: int) -> str:
        return self.bars.nth(number).get_by_role("status").inner_text()

    def start(self, number: int) -> None:
        run = self.button(number, "first").or_(self.button(number, "run"))
        run.click()

    def run(self, number: int) -> str:
        """Run, wait for the end; return what the page then says about it."""
        self.start(number)
        return self.wait(number)

    def wait(self, number: int) -> str:
        """Wait for the end of a run."""
        self.button(number, "stop").wait_for(state="detached", timeout=SECONDS * 1000)
        return self.status(number)

    def edit(self, number: int, code: str) -> None:
        """Put other code in the place of this one."""
        self.button(number, "edit").click()
        self.page.locator("textarea").last.wait_for()
        self.area(number).fill(code)

    def area(self, number: int):
        """The editor of this code."""
        return self.page.get_by_role(
            "textbox", name=f"{self.words['code']} {number + 1}", exact=True
        )

    def codes(self) -> list[str]:
        """The code on the page."""
        return self.page.locator(".language-python > pre > code").all_text_contents()

    def outputs(self) -> str:
        """The output that is to be seen, of all blocks."""
        seen = self.page.locator(".language-text.highlight:visible code").all_text_contents()
        return "".join(seen)

    def notes(self) -> list[str]:
        """What the page says about each output that is to be seen."""
        seen = self.page.locator(".language-text.highlight:visible")
        return seen.evaluate_all("outputs => outputs.map(o => o.dataset.note ?? '')")


@pytest.fixture
def runner(watch):
    """A page with buttons: `runner("order/")`."""
    return lambda path, **options: Runner(watch(**options), path)


def test_there_is_something_to_run():
    assert PAGES, "the site was built without npm: no page has the buttons"
    assert {page.removeprefix("en/") for page in PAGES} == {p for p in PAGES if "en/" not in p}


# The other English pages hold the same code and output, or there is no site.
@pytest.mark.parametrize("path", [*(p for p in PAGES if "en/" not in p), "en/two-heads/"])
def test_browser_computes_what_the_build_computed(path, watch):
    watched = watch()
    page = Runner(watched, path)
    built, codes, last = page.outputs(), page.codes(), page.bars.count() - 1
    assert last == len(codes) - 1
    page.page.wait_for_timeout(500)
    before = [url for url in page.requests if "/python/" in url or url.endswith((".zip", ".whl"))]
    assert before == []
    assert page.run(last) == page.words["done"]
    assert "".join(page.page.locator(".runner .language-text code").all_text_contents()) == built
    assert page.outputs() == built
    assert any("/python/pyodide.asm.wasm" in url for url in page.requests)
    page.edit(last, codes[last] + NUMBERS)
    assert page.run(last) == page.words["done"]
    shown: list[tuple] = []
    session.run([*codes[:-1], codes[-1] + NUMBERS], lambda *what: shown.append(what))
    here, there = (
        json.loads(text.partition("NUMBERS")[2]) for text in (page.outputs(), shown[-1][1])
    )
    assert here.keys() == there.keys()
    assert sum(map(len, here.values())) > 20
    for name in here:
        scale = max([1.0, *(abs(x) for x in there[name] if math.isfinite(x))])
        assert here[name] == pytest.approx(there[name], rel=0, abs=1e-12 * scale, nan_ok=True), name
    assert watched.errors == []
    assert watched.foreign == []


def test_edits_count_from_the_top_down(runner):
    page = runner("en/one-head/")
    codes, built = page.codes(), page.outputs()
    stale, here = page.words["stale"], page.words["here"]
    assert set(page.notes()) == {""}
    page.edit(0, codes[0] + "\nprint('edited')\nsoftmax = lambda scores: scores\n")
    assert set(page.notes()) == {stale}  # of every block: none is run with the change
    assert page.run(1) == page.words["done"]
    first, second = page.page.locator(".runner .language-text code").all_text_contents()[:2]
    assert first == "edited\n"
    assert second.endswith("[1001. 1002. 1003.]]\n")
    assert page.notes()[:3] == [here, here, stale]
    page.button(1, "reset").click()
    page.button(0, "reset").click()
    assert page.codes() == codes
    assert page.outputs() == built
    assert page.area(0).count() == 0
    assert set(page.notes()) == {""}


def test_error_as_python_prints_it_and_none_of_the_rest_runs(runner):
    page = runner("two-heads/")
    page.edit(1, "import numpy as np\nprint('so far')\nnp.ones((2, 3)) @ np.ones((2, 3))\n")
    assert page.run(1) == page.words["failed"]
    text = page.bars.nth(1).locator("code").text_content()
    assert text.startswith(
        "so far\nTraceback (most recent call last):\n"
        '  File "<code 2>", line 3, in <module>\n'
        "    np.ones((2, 3)) @ np.ones((2, 3))\n    ~~~"
    )
    assert re.search(r"\nValueError: matmul: .*size 2 is different from 3\)\n$", text)
    assert page.run(2) == page.words["failed_above"]


def test_stop_and_run_again(runner):
    page = runner("en/two-heads/")
    page.edit(0, "while True:\n    pass\n")
    page.start(0)
    page.bars.nth(0).get_by_text(page.words["running"]).wait_for(timeout=SECONDS * 1000)
    assert page.button(1, "run").is_disabled()
    began = time.monotonic()
    page.button(0, "stop").click()
    assert page.status(0) == page.words["stopped"]
    assert time.monotonic() - began < 5  # the page was not busy itself
    page.button(0, "reset").click()
    assert page.run(1) == page.words["done"]
    began = time.monotonic()
    assert page.run(2) == page.words["done"]
    assert time.monotonic() - began < 5  # Python stays


def test_stop_while_it_loads(runner):
    page = runner("two-heads/")
    page.start(3)
    page.button(3, "stop").click()
    assert page.status(3) == page.words["stopped"]
    assert page.run(3) == page.words["done"]


def test_keyboard_alone(runner):
    page = runner("order/", width=360)
    keys = page.page.keyboard
    page.page.locator("article a").first.focus()
    focused = "document.activeElement.textContent"
    for _ in range(200):
        keys.press("Tab")
        if page.page.evaluate(focused) == page.words["first"]:
            break
    assert page.page.evaluate(focused) == page.words["first"]
    keys.press("Tab")
    assert page.page.evaluate(focused) == page.words["edit"]
    keys.press("Enter")
    assert page.page.evaluate("document.activeElement.selectionStart") == 0
    keys.type("print('typed')\n")
    keys.press("Tab")  # leaves the editor
    assert page.page.evaluate(focused) == page.words["first"]
    keys.press("Space")
    assert page.page.evaluate(focused) == page.words["stop"]  # the same button, still in focus
    assert page.wait(0) == page.words["done"]
    assert page.page.evaluate(focused) == page.words["run"]
    assert page.bars.nth(0).locator("code").text_content() == "typed\n"
    keys.press("Tab")
    assert page.page.evaluate(focused) == page.words["reset"]
    keys.press("Enter")
    assert page.page.evaluate(focused) == page.words["edit"]
    assert "typed" not in page.outputs()


def check(page: Runner, width: int) -> None:
    """Accessible, and no wider than the screen."""
    assert violations(page.page) == ""
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(  # all words where there is least room for them
    ("path", "width", "scheme"),
    [("two-heads/", 1280, "light"), ("two-heads/", 360, "dark"), ("en/two-heads/", 360, "light")],
)
def test_accessible_and_narrow_in_every_state(path, width, scheme, runner):
    page = runner(path, width=width, scheme=scheme)
    page.edit(0, "x = " + "1 + " * 60 + "1\nprint(x, 'x' * 200)\n")
    check(page, width)
    page.start(0)
    check(page, width)
    page.wait(0)
    check(page, width)
    assert page.run(3) == page.words["failed_above"]
    check(page, width)


def test_paper_has_no_buttons(runner):
    page = runner("two-heads/")
    page.page.emulate_media(media="print")
    assert page.button(0, "first").is_hidden()
    assert page.page.locator(".runner-hint").is_hidden()


def test_without_scripts_nothing_is_promised(watch):
    page = watch(java_script_enabled=False).open("two-heads/")
    assert page.locator(".runner:visible").count() == 0
    assert page.get_by_role("button").filter(has_text=re.compile(r"\d MB")).count() == 0


WHEEL = "python/numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
NEEDED = [
    "assets/runner-worker.js",
    "mha.zip",
    "python/pyodide-lock.json",
    "python/pyodide.asm.js",
    "python/pyodide.asm.wasm",
    "python/pyodide.mjs",
    "python/python_stdlib.zip",
    "python/session.py",
    WHEEL,
]


@pytest.fixture
def broken_site(tmp_path):
    """A copy of the site, to break."""
    shutil.copytree(SITE, tmp_path / "site", copy_function=os.link)
    return tmp_path / "site"


def message_of(site: Path, watch) -> str:
    """What a reader of this site is told after Run."""
    with serving(site) as address:
        page = Runner(watch(at=address), "two-heads/")
        page.start(0)
        page.button(0, "stop").wait_for(state="detached", timeout=SECONDS * 1000 - 5000)
        assert page.button(0, "first").is_enabled()
        return page.status(0).partition(page.words["broken"])[2]


@pytest.mark.parametrize("name", NEEDED)
def test_missing_file_is_said(name, broken_site, watch):
    (broken_site / name).unlink()
    assert message_of(broken_site, watch).strip().startswith("(")


@pytest.mark.parametrize("name", [name for name in NEEDED if name.startswith("python/")])
def test_corrupted_file_is_said(name, broken_site, watch):
    data = bytearray((broken_site / name).read_bytes())
    middle = len(data) // 2
    data[middle : middle + 8] = bytes(byte ^ 0x55 for byte in data[middle : middle + 8])
    (broken_site / name).unlink()
    (broken_site / name).write_bytes(data)
    assert message_of(broken_site, watch).strip().startswith("(")


def test_download_that_stalls_is_given_up(watch, broken_site):
    go_on = threading.Event()

    class Stalling(Quiet):
        def copyfile(self, source, outputfile):
            outputfile.write(source.read(100_000))
            if self.path.endswith(".whl"):
                go_on.wait(SECONDS)
            shutil.copyfileobj(source, outputfile)

    with serving(broken_site, Stalling) as address:
        watched = watch(at=address)
        watched.page.clock.install()
        page = Runner(watched, "en/two-heads/")
        with page.page.expect_request(re.compile(r"\.whl$")):
            page.start(0)
        page.page.wait_for_timeout(SECONDS * 250)  # Python is there, the wheel is not
        assert page.status(0) == page.words["loading"]
        page.page.clock.fast_forward(61_000)
        assert page.status(0) == page.words["stalled"]
        go_on.set()
        assert page.run(0) == page.words["done"]
