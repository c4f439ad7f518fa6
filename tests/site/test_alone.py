"""Each example runs by itself, and its page has to show what it prints."""

import alone
import live
import pytest


@pytest.fixture
def example(tmp_path, monkeypatch):
    """A script that says hello, beside which is its page."""
    monkeypatch.setattr(live, "DOCS", tmp_path)
    (tmp_path / "id").mkdir()
    (tmp_path / "id/some-page.md").touch()
    file = tmp_path / "some_page.py"
    file.write_text("print('hello')\n")
    return file


def printed(example) -> str:
    return example.with_suffix(".txt").read_text("utf-8")


def test_output_lies_in_a_file(example):
    example.write_text(
        "import atexit, os\natexit.register(print, 'end')\nprint('héllo')\n"
        "os.write(2, b'a warning')\nos.system('echo x')\n"
    )
    assert alone.run_each([example], example.parent) == []
    assert sorted(printed(example).split()) == ["end", "héllo", "x"]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("1 / 0", ["ends with exit code 1\n", "some_page.py", "ZeroDivisionError"]),
        ("raise SystemExit(3)", ["ends with exit code 3\n"]),
        ("import sys\nsys.exit()\nprint(1)", ["ends with exit code 0\n"]),
        ("import torch\nimport os\nos._exit(4)", ["ends with exit code 4\n"]),
        ("print(", ["ends with exit code 1\n", "SyntaxError"]),
        ("while True: pass", ["comes to no end after 0.5 s"]),
    ],
)
def test_what_goes_wrong_is_said(code, what, example, monkeypatch):
    monkeypatch.setattr(alone, "SECONDS", 0.5 if "while" in code else 60)
    example.write_text(code)
    (problem,) = alone.run_each([example], example.parent)
    assert problem.startswith("some_page.py, run by itself, ")
    for words in what:
        assert words in problem


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import numpy as np\nprint(np.eye(2))", True),
        ("import mha\nprint(mha.softmax([1.0, 1.0]))", True),
        ("import torch", False),
        ("from torch import nn", False),
        ("import mha\nmha.MultiHeadAttention", False),
        ("from mha.show import ShapeLedger\nShapeLedger(0, 0, {})", False),
        ("import yaml", False),  # is here, and not in the browser
        ("from . import x", False),
        ("try:\n    import torch\n    print(1)\nexcept ImportError:\n    print(2)", False),
    ],
)
def test_only_numpy_alone_is_known(code, expected, example):
    example.write_text(code)
    alone.run_each([example], example.parent)
    assert example.with_suffix(".numpy").exists() is expected


def test_example_imports_what_a_reader_has(example):
    example.write_text("import torch\nfrom helper import accuracy")
    problems = alone.run_each([example], example.parent)
    assert problems[0] == "some_page.py: imports helper, which no reader has"


def test_example_that_needs_torch_runs_with_it(example):
    example.write_text("import mha\nprint(mha.MultiHeadAttention(6, 2).num_heads)")
    assert alone.run_each([example], example.parent) == []
    assert printed(example) == "2\n"


@pytest.mark.parametrize(("shown", "equal"), [("hello\n", True), ("hell\n", False), ("", False)])
def test_page_shows_what_its_example_prints(shown, equal, example, monkeypatch):
    monkeypatch.setattr(alone, "WORDS", ["id"])
    folder = example.parent / "id/some-page"
    folder.mkdir(parents=True)
    html = f'<p>hello</p><div class="language-text"><code>{shown}</code></div>'
    (folder / "index.html").write_text(html)
    alone.run_each([example], example.parent)
    found = alone.differences({"some-page.md": example}, example.parent)
    message = (
        f"id: some-page.md: the page shows\n{shown}\nbut some_page.py, run by itself, prints\n"
    )
    assert found == ([] if equal else [f"{message}hello\n"])


def test_a_script_run_for_the_build_says_aloud_why_it_fails(example, capfd):
    example.write_text("1 / 0")
    process = alone.PROCESSES.Process(target=alone.run, args=(example, example.with_suffix(".csv")))
    process.start()
    process.join()
    assert process.exitcode == 1
    assert "ZeroDivisionError" in capfd.readouterr().err


CONSTANT = """# --8<-- [start:first]
import numpy as np
value = np.euler_gamma
print(1)
# --8<-- [end:first]
"""


@pytest.mark.parametrize("changed", [True, False])
def test_value_that_an_earlier_example_has_changed(changed, project):
    project.files["docs/examples/page.py"] = CONSTANT
    if changed:
        spoil = CONSTANT.replace("value =", "np.euler_gamma = 0.5;")
        project.files["docs/examples/index.py"] = spoil
        block = project.files["docs/id/page.md"].partition("```python")[2].replace("page", "index")
        for language in ("id", "en"):
            project.files[f"docs/{language}/index.md"] += f"\n```python{block}"
    done = project.build()
    message = "page.md: `#!live value`: is 0,500, but 0,577 when page.py runs by itself: no seed?"
    assert (done.returncode, message in done.stderr) == (changed, changed)
