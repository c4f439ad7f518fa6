"""What is pinned is pinned everywhere to the same version, with hashes."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, str]:
    """Version by project."""
    found = re.findall(r"^([\w.-]+)==([^ ;\\\n]+)", (ROOT / name).read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", project).lower(): version for project, version in found}


def test_both_files_have_the_same_versions():
    versions, hashed = pins("constraints.txt"), pins("requirements.txt")
    assert len(hashed) > 90
    assert set(versions) - set(hashed) == {"torch"}  # its hash depends on the index
    assert {name: hashed[name] for name in versions if name != "torch"} == {
        name: version for name, version in versions.items() if name != "torch"
    }


def test_sphinx_runs_beside_the_same_versions():
    versions, hashed = pins("constraints.txt"), pins("bench/requirements.txt")
    assert {"sphinx", "myst-nb"} <= set(hashed)
    both = set(versions) & set(hashed)
    assert len(both) > 40
    assert {name: hashed[name] for name in both} == {name: versions[name] for name in both}


@pytest.mark.parametrize("name", ["requirements.txt", "bench/requirements.txt"])
def test_every_requirement_has_a_hash(name):
    text = (ROOT / name).read_text("utf-8")
    entries = [part for part in re.split(r"\n(?=\S)", text) if not part.startswith("#")]
    assert {re.match(r"[\w.-]+", entry)[0].lower() for entry in entries} == set(pins(name))
    assert all("--hash=sha256:" in entry for entry in entries)


def test_what_the_project_asks_for_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"].values()
    asked = [*project["project"]["dependencies"], *(name for group in groups for name in group)]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", a)[0]).lower() for a in asked}
    assert names - set(pins("constraints.txt")) - set(pins("bench/requirements.txt")) == set()
