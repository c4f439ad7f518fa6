"""Every example is a script whose real output is what the pages show."""

import tempfile
from functools import cache
from pathlib import Path

import pytest
from places import EXAMPLES, html_of
from scripts import SHOWN, printed_by
from sections import sections

PREFIXES = {"id": "", "en": "en/"}


def address(example: Path, language: str) -> str:
    """Where the site shows it."""
    return PREFIXES[language] + html_of(example).removesuffix("index.html")


output_of = cache(printed_by)


@cache
def output_of_copied(code: str) -> str:
    """What this code prints in a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "copied.py"
        script.write_text(code, "utf-8")
        return printed_by(script)


def blocks(soup, language: str) -> list[str]:
    """The code of a page's blocks of one language, as a reader copies it."""
    return [code.get_text() for code in soup.select(f".language-{language} code")]


@pytest.mark.parametrize("language", PREFIXES)
@pytest.mark.parametrize("example", SHOWN, ids=lambda path: path.stem)
def test_page_shows_what_the_script_prints(example, language, soups):
    shown = "".join(blocks(soups[address(example, language)], "text"))
    assert shown == output_of(example)
    assert shown.strip()


@pytest.mark.parametrize("language", PREFIXES)
@pytest.mark.parametrize("example", SHOWN, ids=lambda path: path.stem)
def test_copied_blocks_run_in_order_and_print_what_the_page_shows(example, language, soups):
    soup = soups[address(example, language)]
    copied = "\n".join(blocks(soup, "python"))
    assert output_of_copied(copied) == "".join(blocks(soup, "text"))


@pytest.mark.parametrize("language", PREFIXES)
def test_listings_that_come_first_stand_by_themselves(language, soups):
    for page in ("one-head/", "two-heads/", "torch-module/"):
        first = blocks(soups[PREFIXES[language] + page], "python")[0]
        output_of_copied(first)
        assert "import mha" not in first


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_holds_no_machine_path(example):
    assert "/home" not in example.read_text("utf-8")


def test_the_class_is_the_same_on_both_of_its_pages():
    both = (sections(EXAMPLES / f"{name}.py") for name in ("torch_module", "parity"))
    assert len({parts["class"] for parts in both}) == 1
