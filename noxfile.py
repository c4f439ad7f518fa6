"""What can be done here: `nox -l` lists it. All sessions share one environment, .nox/env."""

import sys
from pathlib import Path

import nox

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["docs", "tests", "lint"]

GROUPS = ("docs", "test", "browser", "dev")
ENVIRONMENT = Path(".nox/env").absolute()
PYTHON = ENVIRONMENT / "bin/python"


def python(session: nox.Session, *command: str) -> None:
    """Run one command in the environment, after installing what is pinned if that has changed."""
    files = ("requirements.txt", "constraints.txt", "pyproject.toml")
    pinned = b"".join(Path(name).read_bytes() for name in files)
    installed = ENVIRONMENT / "installed"
    if not installed.exists() or installed.read_bytes() != pinned:
        pip = [PYTHON, "-m", "pip", "install", "--quiet"]
        session.run(sys.executable, "-m", "venv", ENVIRONMENT, external=True)
        session.run(*pip, "--require-hashes", "-r", "requirements.txt", external=True)
        session.run(*pip, "-c", "constraints.txt", "-e", ".", external=True)
        installed.write_bytes(pinned)
    session.run(PYTHON, *command, external=True)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in both languages into site/."""
    python(session, "docs/build.py", *session.posargs)


@nox.session
def serve(session: nox.Session) -> None:
    """Build the site, serve it, and build again what changes."""
    python(session, "docs/serve.py", *session.posargs)


SIDE_BY_SIDE = ("--numprocesses=auto", "--maxprocesses=4")


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test; those of the site read what `docs` built."""
    # A file stays in one process: what its tests share is made once.
    python(session, "-m", "pytest", *SIDE_BY_SIDE, "--dist=loadfile", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Open every page that `docs` built in a real Chromium, which has to be installed."""
    # A process that has nothing left to do takes over tests of another: some files take minutes.
    command = ("-m", "pytest", *SIDE_BY_SIDE, "--dist=worksteal", "tests/browser")
    python(session, *command, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and types."""
    python(session, "-m", "ruff", "check")
    python(session, "-m", "ruff", "format", "--check")
    python(session, "-m", "mypy")


@nox.session
def faults(session: nox.Session) -> None:
    """Write docs/FAULTS.md: what stops a build, and the words in which it does."""
    python(session, "tests/site/faults.py")


@nox.session
def parity(session: nox.Session) -> None:
    """Print the parity matrix: mha against torch, cell by cell."""
    python(session, "docs/examples/parity_matrix.py")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure how fast all this is, and write docs/measured.json."""
    python(session, "bench/run.py", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Make one small change to mha after another: does a test notice each? Prints the score."""
    python(session, "tests/mha/mutants.py")


@nox.session
def audit(session: nox.Session) -> None:
    """Ask whether a known vulnerability is in what is installed; needs the internet."""
    python(session, "-m", "pip_audit", "--strict", "--disable-pip", "-r", "requirements.txt")


@nox.session
def pin(session: nox.Session) -> None:
    """Write both requirements.txt, with hashes, from the versions in constraints.txt."""
    groups = [word for name in GROUPS for word in ("--group", name)]
    # What Sphinx needs besides stays as bench/requirements.txt has it.
    sphinx = ["--group", "bench", "-o", "bench/requirements.txt", "-c"]
    pins = Path(session.create_tmp()) / "pins.txt"
    lines = Path("constraints.txt").read_text().splitlines(keepends=True)
    pins.write_text("".join(line for line in lines if not line.startswith("torch==")))
    options = ["--universal", "--generate-hashes", "--python-version", "3.11.5", "--no-annotate"]
    options += ["--custom-compile-command", "nox -s pin", "--no-emit-index-url", "--quiet"]
    for what in ([*groups, "-o", "requirements.txt"], sphinx):
        python(session, "-m", "uv", "pip", "compile", *options, *what, pins)
