"""Each example runs by itself, and its page has to show what it prints."""

import warnings
from pathlib import Path

import alone
import numpy as np
import pytest
import torch

import mha


@pytest.fixture
def example(tmp_path):
    """A script that says hello, and the folder for what it prints."""
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
    assert alone.run_examples([example], example.parent) == []
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
    (problem,) = alone.run_examples([example], example.parent)
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
    alone.run_examples([example], example.parent)
    assert example.with_suffix(".numpy").exists() is expected


def test_example_that_needs_torch_runs_with_it(example):
    example.write_text("import mha\nprint(mha.MultiHeadAttention(6, 2).num_heads)")
    assert alone.run_examples([example], example.parent) == []
    assert printed(example) == "2\n"


@pytest.mark.parametrize(("shown", "equal"), [("hello\n", True), ("hell\n", False), ("", False)])
def test_page_shows_what_its_example_prints(shown, equal, example, monkeypatch):
    monkeypatch.setattr(alone, "WORDS", ["id"])
    folder = example.parent / "id/some-page"
    folder.mkdir(parents=True)
    html = f'<p>hello</p><div class="language-text"><code>{shown}</code></div>'
    (folder / "index.html").write_text(html)
    alone.run_examples([example], example.parent)
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


VALUE = """# --8<-- [start:first]
import numpy as np
value = np.euler_gamma
# --8<-- [end:first]
"""


@pytest.mark.parametrize(("changed", "problems"), [(np.euler_gamma, 0), (0.5, 1)])
def test_value_that_an_earlier_example_has_changed(changed, problems, example, monkeypatch):
    example.write_text(VALUE)
    assert alone.run_examples([example], example.parent) == []
    monkeypatch.setattr(np, "euler_gamma", changed)
    found = alone.other_values({"some-page.md": example}, example.parent)
    message = "some-page.md: value has another value when some_page.py runs by itself: no seed?"
    assert found == [message] * problems


def layer(bias: float) -> torch.nn.Linear:
    """One with equal numbers."""
    made = torch.nn.Linear(2, 2)
    for parameter in made.parameters():
        torch.nn.init.constant_(parameter, bias)
    return made


SINGLE = np.float32([0.25, 0.75])


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (0.5, 0.5, np.nextafter(0.5, 1).item()),
        (1, 1, 1.0),
        ("a", "a", "b"),
        (None, None, 0),
        (SINGLE, SINGLE.copy(), SINGLE.astype(float)),
        (SINGLE, SINGLE.copy(), SINGLE[None]),
        (SINGLE, SINGLE.copy(), np.nextafter(SINGLE, np.float32(1))),
        (np.float32(0.5), np.float32(0.5), np.float64(0.5)),
        (torch.ones(2), torch.ones(2, requires_grad=True), torch.zeros(2)),
        (torch.ones(2).bfloat16(), torch.ones(2).bfloat16(), torch.zeros(2).bfloat16()),
        (torch.tensor([True]), torch.tensor([True]), torch.tensor([False])),
        ([1, (2, {"a": SINGLE})], [1, (2, {"a": SINGLE.copy()})], [1, (2, {"a": -SINGLE})]),
        (layer(0.5), layer(0.5), layer(0.25)),
        (mha.compare([1.0], [1.0]), mha.compare([1.0], [1.0]), mha.compare([2.0], [1.0])),
        ({1, "a"}, {"a", 1}, {1, "b"}),
    ],
)
def test_values_are_told_apart(one, same, other):
    told = [alone.values({"x": value}) for value in (one, same, other)]
    assert told[0] == told[1] != told[2]


def holding_itself() -> list:
    """A list without end."""
    holder = [0.5]
    holder.append(holder)
    return holder


@pytest.mark.parametrize(
    "make",
    [
        holding_itself,
        lambda: torch.eye(2).to_sparse(),
        lambda: torch.nn.LazyLinear(2),
        lambda: torch.ones(2, device="meta"),
        lambda: np.array([object()]),
        lambda: open(__file__, "rb"),  # noqa: SIM115
        lambda: (number for number in range(3)),
        lambda: torch.nn,
        lambda: Path,
        lambda: test_names_that_are_thrown_away_may_differ,
    ],
)
def test_what_is_made_anew_in_each_run_is_no_other_value(make):
    with warnings.catch_warnings(action="ignore"):
        assert alone.values({"x": make()}) == alone.values({"x": make()})


def test_names_that_are_thrown_away_may_differ():
    assert alone.values({"_": 0.5, "__name__": "x"}) == {}
