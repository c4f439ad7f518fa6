"""A page is held against its example: every section, its output, and where it failed."""

import re
from types import SimpleNamespace

import current
import examples
import numpy as np
import places
import pytest
import sections
import torch
from mkdocs.exceptions import PluginError

import mha

OUTPUT = '<div class="language-text"><code>0.390</code></div>'
CONFIG = SimpleNamespace(theme={"language": "id"})
EXAMPLE = """# --8<-- [start:first]
x = 0.5
# --8<-- [end:first]


# --8<-- [start:second-part]
print(x)
# --8<-- [end:second-part]
"""


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The file of the example that belongs to the page."""
    monkeypatch.setattr(places, "EXAMPLES", tmp_path)
    file = tmp_path / "some_page.py"
    file.write_text(EXAMPLE)
    yield file
    current.page.begin()


def begun(**meta):
    """The page some-page.md, of which no block has run."""
    page = SimpleNamespace(file=SimpleNamespace(src_uri="some-page.md"), meta=meta)
    examples.on_page_markdown("", page, CONFIG, None)
    return page


def run_all(example) -> str:
    """Run the example anew, and show its blocks on its page; what they print."""
    sections.run.cache_clear()
    begun()
    parts = sections.sections(example)
    return "".join(examples.run_block(code, id=name) for name, code in parts.items())


def content(*code: str) -> str:
    """A page that shows these blocks of code."""
    return "".join(f'<div class="language-python"><code>{text}\n</code></div>' for text in code)


def test_sections_are_read_in_order(example):
    assert sections.sections(example) == {"first": "x = 0.5\n", "second-part": "print(x)\n"}
    assert list(sections.sections(example)) == ["first", "second-part"]


def test_code_outside_of_sections_stops_the_build(example):
    example.write_text(EXAMPLE.replace("\n\n\n", "\n\ny = 1\n"))
    with pytest.raises(PluginError, match=r"^some_page\.py:5: stands in no section: y = 1$"):
        sections.sections(example)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["x = 1", "y = x"], set()),
        (["x = 1", "x = 2"], {"x"}),
        (["x = 1\nx = 2", "y = 1"], set()),
        (["def f(): pass", "class f: pass"], {"f"}),
        (["x = [1]\nx[0] = 2", "y = x[0]"], set()),
        (["x = [[1]]", "x[0][0] = 2"], {"x"}),
        (["for x in y: pass", "(x, z) = 1, 2", "z += 1"], {"x", "z"}),
    ],
)
def test_names_with_two_values(parts, expected):
    assert sections.rebound(dict(enumerate(parts))) == expected


def test_blocks_run_one_after_the_other(example):
    assert run_all(example) == "0.5\n"
    assert current.page.values["x"] == 0.5


def test_page_knows_what_it_may_show(example):
    begun(listing=["second-part"])
    assert current.page.name == "some-page.md"
    assert current.page.given["WeightTable"].__name__ == "WeightTable"
    assert current.page.given["built"].numpy == np.__version__
    assert current.page.listings == {"second-part": ["print(x)"]}


def test_block_sees_nothing_of_the_site(example):
    example.write_text(EXAMPLE.replace("print(x)", "print(*sorted(set(globals()) - {'x'}))"))
    assert run_all(example) == "__builtins__ __name__\n"


def test_what_a_library_prints_is_shown_too(example):
    example.write_text(EXAMPLE.replace("print(x)", "import sys; sys.stdout.write('a\\n')"))
    assert run_all(example) == "a\n"


def test_listing_is_a_section(example):
    with pytest.raises(PluginError, match=r"^some-page\.md: some_page\.py has no section third$"):
        begun(listing=["first", "third"])


def test_page_without_example_has_no_values(example):
    example.unlink()
    page = begun()
    drawings = {
        *("HeadGrid", "HeadView", "Playground"),
        *("ShapeFlow", "ShapeLedger", "Table", "WeightTable"),
    }
    assert set(current.page.given) == {"built", *drawings}
    assert examples.on_page_content("<p>Kata.</p>", page, CONFIG, None) is None
    with pytest.raises(PluginError, match="its Python blocks are not the sections of some_page"):
        examples.on_page_content(content("x = 1"), page, CONFIG, None)


@pytest.mark.parametrize(
    ("html", "message"),
    [
        (content("x = 0.5", "print(x)"), None),
        (content("print(x)", "x = 0.5"), r"once and in order: \['first', 'second-part'\]"),
        (content("x = 0.5"), "once and in order"),
        (content("x = 0.5", "print(x)", "print(x)"), "once and in order"),
        (content("x = 0.4", "print(x)"), "once and in order"),
        ("<p>Kata.</p>", "once and in order"),
    ],
)
def test_page_shows_its_example(html, message, example):
    page = begun()
    if message is None:
        assert examples.on_page_content(html, page, CONFIG, None) is None
    else:
        with pytest.raises(PluginError, match=rf"^some-page\.md: .*(?s:.*){message}"):
            examples.on_page_content(html, page, CONFIG, None)


@pytest.mark.parametrize(
    "hold", [lambda check: check, lambda check: [check], lambda check: {1: check}]
)
@pytest.mark.parametrize(("actual", "message"), [([1.0], None), ([1.5], "check is not ok: .*5.0")])
def test_comparison_that_fails_stops_the_build(actual, message, hold, example):
    page = begun()
    current.page.values["check"] = hold(mha.compare(actual, [1.0]))
    html = content("x = 0.5", "print(x)")
    if message is None:
        examples.on_page_content(html, page, CONFIG, None)
    else:
        with pytest.raises(PluginError, match=rf"^some-page\.md: {message}"):
            examples.on_page_content(html, page, CONFIG, None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x = 0.5", "x = gone", "some_page.py:2, section first: NameError"),
        ("print(x)", "x / 0", "some_page.py:7, section second-part: ZeroDivisionError"),
        ("print(x)", "exit()", "some_page.py:7, section second-part: SystemExit"),
        ("print(x)", "x\nprint(x", "some_page.py:8, section second-part: SyntaxError"),
        ("print(x)", "import json; json.loads('')", "some_page.py:7, section second-part: JSOND"),
    ],
)
def test_failing_example_is_named_with_its_line(old, new, message, example):
    example.write_text(EXAMPLE.replace(old, new))
    with pytest.raises(PluginError, match=rf"^some-page\.md: {re.escape(message)}"):
        begun()


def test_what_has_failed_keeps_what_came_before(example):
    example.write_text(EXAMPLE.replace("print(x)", "print(x)\nx / 0"))
    done = sections.run(example)
    assert (done.printed, done.values["x"]) == ({"first": ""}, 0.5)


def test_example_runs_once_for_all_languages(example):
    example.write_text(EXAMPLE.replace("x = 0.5", "import random\nx = random.random()"))
    begun()
    first = current.page.values
    begun()
    assert current.page.values is first


def test_no_example_changes_mha_for_another(example):
    other = example.with_name("other.py")
    call = "import mha\nx = float(mha.softmax([0.0, 0.0])[0])"
    example.write_text(EXAMPLE.replace("x = 0.5", f"{call}\nmha.softmax = lambda _: [0.39]"))
    other.write_text(EXAMPLE.replace("x = 0.5", call))
    assert [sections.run(script).values["x"] for script in (example, other)] == [0.5, 0.5]


def test_example_starts_from_a_known_state(example):
    np.set_printoptions(precision=1)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    draws = "import numpy as np, random, torch\n"
    draws += "print(np.random.rand(), random.random(), torch.rand(1), np.array([1 / 3]))"
    example.write_text(EXAMPLE.replace("print(x)", draws))
    first = run_all(example)
    assert "[0.33333333]" in first
    assert "float64" not in first
    assert run_all(example) == first
    assert torch.get_default_dtype() is torch.float32
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("html", "fails"), [("<p>x</p>", False), (OUTPUT, True)])
def test_page_without_an_example_shows_no_output(html, fails):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="no-example.md"), meta={})
    examples.on_page_markdown("", page, CONFIG, None)
    if not fails:
        examples.on_page_content(html, page, CONFIG, None)
        return
    with pytest.raises(
        PluginError, match=r"no-example\.md: shows output, but runs nothing: 0\.390"
    ):
        examples.on_page_content(html, page, CONFIG, None)
