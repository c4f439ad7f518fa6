"""What can be done here: `nox -l` lists it. All sessions share one environment, .nox/env."""

import nox

nox.needs_version = ">=2025.2"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["docs", "tests", "lint"]

PROJECT = nox.project.load_toml("pyproject.toml")


def python(session: nox.Session, *command: str) -> None:
    """Install what is pinned, then run one command."""
    groups = nox.project.dependency_groups(PROJECT, "docs", "test", "browser", "dev")
    session.install("-c", "constraints.txt", "-e", ".", *groups)
    session.run("python", *command, *session.posargs)


@nox.session(venv_location=".nox/env")
def docs(session: nox.Session) -> None:
    """Build the site in both languages into site/."""
    python(session, "docs/build.py")


@nox.session(venv_location=".nox/env")
def serve(session: nox.Session) -> None:
    """Build the site, serve it, and build it again on each change."""
    python(session, "docs/build.py", "--serve")


@nox.session(venv_location=".nox/env")
def tests(session: nox.Session) -> None:
    """Run every test; those of the site read what `docs` built."""
    python(session, "-m", "pytest")


@nox.session(venv_location=".nox/env")
def browser(session: nox.Session) -> None:
    """Open every page that `docs` built in a real Chromium, which has to be installed."""
    python(session, "-m", "pytest", "tests/browser")


@nox.session(venv_location=".nox/env")
def lint(session: nox.Session) -> None:
    """Check style and types."""
    python(session, "-m", "ruff", "check")
    session.run("python", "-m", "ruff", "format", "--check")
    session.run("python", "-m", "mypy")


@nox.session(venv_location=".nox/env")
def parity(session: nox.Session) -> None:
    """Print the parity matrix: mha against torch, cell by cell."""
    python(session, "docs/examples/parity_matrix.py")
