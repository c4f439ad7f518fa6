"""The reference shows each call as it is written, and examples as code."""

import textwrap

import docstrings
import griffe
import pytest


def documented(code: str) -> griffe.Module:
    """A package with this code, read as mkdocstrings reads it."""
    files = {"__init__.py": textwrap.dedent(code)}
    extensions = griffe.load_extensions(docstrings.Docstrings, "dataclasses")
    with griffe.temporary_visited_package("package", files, extensions=extensions) as package:
        return package


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("def f(): ...", "f()"),
        ("def f(x, axis=-1): ...", "f(x, axis=-1)"),
        ("def f(x: int, *, name: str = 'a') -> int: ...", "f(x, *, name='a')"),
        ("def f(x, *, a, b): ...", "f(x, *, a, b)"),
        ("def f(*, a): ...", "f(*, a)"),
        (
            "def f(query, key, *, value, d_k=None, d_v=None): ...",
            "f(\n    query,\n    key,\n    *,\n    value,\n    d_k=None,\n    d_v=None,\n)",
        ),
        ("class f:\n    def __init__(self, x, y=2): ...", "f(x, y=2)"),
        ("class f:\n    pass", "f()"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass f:\n    x: int\n    y: int = 2",
            "f(x, y=2)",
        ),
    ],
)
def test_signature(definition, expected):
    assert docstrings.signature(documented(definition)["f"]) == expected


@pytest.mark.parametrize(
    ("decorator", "first", "expected"),
    [
        ("", "self", "make(x)"),
        ("@classmethod", "cls", "C.make(x)"),
        ("@staticmethod", "y", "make(y, x)"),
    ],
)
def test_signature_of_a_method(decorator, first, expected):
    package = documented(f"class C:\n    {decorator}\n    def make({first}, x): ...")
    assert docstrings.signature(package["C.make"]) == expected


def test_width_parts_long_calls_from_short_ones():
    fits = documented(f"def f({'x' * (docstrings.WIDTH - 3)}): ...")["f"]
    broad = documented(f"def f({'x' * (docstrings.WIDTH - 2)}): ...")["f"]
    assert docstrings.signature(fits).count("\n") == 0
    assert docstrings.signature(broad).count("\n") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Words.", "Words."),
        ("Words with >>> in them.", "Words with >>> in them."),
        (
            "Words.\n\n>>> f(1)\n2\n",
            "Words.\n\n```{ .pycon .no-copy }\n>>> f(1)\n2\n```\n",
        ),
        (
            ">>> f(1)\n2\n\nWords.\n\n>>> for x in y:\n...     f(x)\n3",
            "```{ .pycon .no-copy }\n>>> f(1)\n2\n```\n\nWords.\n\n"
            "```{ .pycon .no-copy }\n>>> for x in y:\n...     f(x)\n3\n```",
        ),
    ],
)
def test_examples_become_code(text, expected):
    assert docstrings.examples_as_code(text) == expected


def test_every_docstring_gets_its_signature():
    package = documented(
        '''
        """Package.

        >>> f(1)
        """
        from os import path

        LIMIT = 1
        """A constant."""

        def f(x):
            """Function.

            >>> f(1)
            """

        def bare(x): ...

        class C:
            """Class."""

            def __init__(self, y): ...

            def method(self, z):
                """Method."""

            @property
            def ok(self):
                """Property."""
        '''
    )
    call = "```{{ .py .no-copy }}\n{}\n```\n\n{}"
    example = "```{ .pycon .no-copy }\n>>> f(1)\n```"
    assert package["f"].docstring.value == call.format("f(x)", f"Function.\n\n{example}")
    assert package["C"].docstring.value == call.format("C(y)", "Class.")
    assert package["C.method"].docstring.value == call.format("method(z)", "Method.")
    assert package["C.ok"].docstring.value == "Property."
    assert package["LIMIT"].docstring.value == "A constant."
    assert package["bare"].docstring is None
