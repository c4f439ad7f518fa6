"""What can be done here: `nox -l` lists it. All sessions share one environment, .nox/env."""

import os
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["docs", "tests", "lint"]

PROJECT = nox.project.load_toml("pyproject.toml")
ENVIRONMENT = Path(".nox/env").absolute()
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def python(session: nox.Session, *command: str) -> None:
    """Install what is pinned (not with `nox -R`), then run one command."""
    if not PYTHON.exists():
        session.run(sys.executable, "-m", "venv", ENVIRONMENT, external=True)
    groups = nox.project.dependency_groups(PROJECT, "docs", "test", "browser", "dev")
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "-c", "constraints.txt"]
    session.run_install(*pip, *groups, "-e", ".", external=True)
    session.run(PYTHON, *command, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in both languages into site/."""
    python(session, "docs/build.py", *session.posargs)


@nox.session
def serve(session: nox.Session) -> None:
    """Build the site, serve it, and build it again on each change."""
    python(session, "docs/build.py", "--serve")


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test; those of the site read what `docs` built."""
    python(session, "-m", "pytest", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Open every page that `docs` built in a real Chromium, which has to be installed."""
    python(session, "-m", "pytest", "tests/browser", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and types."""
    python(session, "-m", "ruff", "check")
    session.run(PYTHON, "-m", "ruff", "format", "--check", external=True)
    session.run(PYTHON, "-m", "mypy", external=True)


@nox.session
def parity(session: nox.Session) -> None:
    """Print the parity matrix: mha against torch, cell by cell."""
    python(session, "docs/examples/parity_matrix.py")
