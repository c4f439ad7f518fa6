"""The stamp names what really made the build."""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import numpy
import pytest
import stamp
import torch


@pytest.fixture(autouse=True)
def asked_anew():
    """What an earlier test has found is not what this one finds."""
    stamp.stamp.cache_clear()
    yield
    stamp.stamp.cache_clear()


def test_versions_are_those_in_use():
    built = stamp.stamp()
    assert built.python == platform.python_version()
    assert built.numpy == version("numpy") == numpy.__version__
    assert built.torch == version("torch")
    assert torch.__version__.startswith(built.torch.partition("+")[0])
    assert built.processor
    assert built.commit


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nmodel name\t: A: fast one\nmodel name\t: B\n", "A: fast one"),
        ("processor\t: 0\n", "machine"),
        (None, "machine"),
    ],
)
def test_processor(cpuinfo, expected, tmp_path, monkeypatch):
    file = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        file.write_text(cpuinfo)
    monkeypatch.setattr(stamp, "Path", lambda path: file if path == "/proc/cpuinfo" else Path(path))
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "machine")
    assert stamp.stamp().processor == expected


@pytest.mark.parametrize(
    ("status", "expected"), [("", "0123456ab"), (" M docs/build.py\n?? new.py", "0123456ab+")]
)
def test_commit_says_whether_files_differ_from_it(status, expected, monkeypatch):
    answers = {"rev-parse": "0123456ab", "status": status}
    monkeypatch.setattr(stamp, "_git", lambda command, *_: answers[command])
    assert stamp.stamp().commit == expected


def test_no_repository_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(stamp, "DOCS", tmp_path)
    assert stamp.stamp().commit == "–"


def test_no_git_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert stamp.stamp().commit == "–"


def test_commit_is_the_one_that_git_names(monkeypatch):
    asked = []

    def answer(command, **options):
        asked.append((command, options["cwd"]))
        return f"{command[1]}\n"

    monkeypatch.setattr(subprocess, "check_output", answer)
    assert stamp.stamp().commit == "rev-parse+"
    assert asked[0] == (["git", "rev-parse", "--short=9", "HEAD"], stamp.DOCS)
    assert asked[1] == (["git", "status", "--porcelain"], stamp.DOCS)
    assert (stamp.DOCS.parent / "mkdocs.yml").exists()
