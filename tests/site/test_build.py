"""A build that can't keep the promise fails, says where, and leaves the old site standing."""

import pytest

BLOCK_ENDS = "# --8<-- [end:first]"


def insert(line: str):
    """Add a line to the example's only section."""

    def change(project):
        project.example = project.example.replace(BLOCK_ENDS, f"{line}\n{BLOCK_ENDS}")

    return change


def replace(old: str, new: str):
    """Change the page, in both languages."""

    def change(project):
        assert old in project.page
        project.page = project.page.replace(old, new)

    return change


FAULTS = {
    "exception": (insert("1 / 0"), ["page.py", "ZeroDivisionError"]),
    "exit": (insert("import sys; sys.exit(0)"), ["page.py", "SystemExit"]),
    "endless loop": (insert("while True: pass"), ["page.md", "no end after 3 s"]),
    "other output": (insert("print(__name__)"), ["page.md", "its example prints"]),
    "lost output": (insert("import sys; sys.stdout.write('lost')"), ["page.md", "lost"]),
    "missing section": (replace("page.py:first", "page.py:second"), ["second"]),
    "missing name": (replace("live value", "live gone"), ["page.md", "#!live gone", "gone"]),
    "not a number": (
        replace("live value", "live value * float('nan')"),
        ["page.md", "not a finite number"],
    ),
    "formula": (replace("$d_k$", "$\\frac{d_k$"), ["page.md", "formula"]),
    "unknown command": (replace("$d_k$", "$\\unheardof$"), ["page.md", "unheardof"]),
    "dead link": (replace("index.md#home", "gone.md"), ["page.md", "gone.md"]),
    "dead anchor": (replace("#home", "#gone"), ["page.md", "#gone"]),
    "typed figure": (replace("Nilainya", "Nilainya 0,5 atau"), ["page.md", "0,5", "by hand"]),
    "other session": (
        replace('session="page"', 'session="index"'),
        ["page.md", 'session="page"'],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_stops_the_build(fault, project, monkeypatch):
    monkeypatch.setenv("PAGE_SECONDS", "3")
    project.site.mkdir()
    (project.site / "index.html").write_text("the old site")
    change, messages = FAULTS[fault]
    change(project)
    done = project.build()
    assert done.returncode == 1
    for message in messages:
        assert message in done.stderr
    assert [path.name for path in project.site.iterdir()] == ["index.html"]
    assert (project.site / "index.html").read_text() == "the old site"
    assert not list(project.root.glob(".site-*"))


def test_sound_project_is_built_and_replaces_the_old_site(project):
    project.site.mkdir()
    (project.site / "old.html").touch()
    done = project.build()
    assert done.returncode == 0, done.stderr
    assert not (project.site / "old.html").exists()
    page = (project.site / "page/index.html").read_text()
    assert "Nilainya" in page
    assert "0,500" in page
    assert "0.500" in (project.site / "en/page/index.html").read_text()
    for language in ("id", "en"):
        for name in ("index.md", "page.md"):
            assert f"{language}  {name}" in done.stdout
    assert str(project.site) in done.stdout


def test_same_commit_same_bytes(project):
    assert project.build().returncode == 0
    first = {
        p.relative_to(project.site): p.read_bytes() for p in project.site.rglob("*") if p.is_file()
    }
    assert project.build().returncode == 0
    again = {
        p.relative_to(project.site): p.read_bytes() for p in project.site.rglob("*") if p.is_file()
    }
    assert first.keys() == again.keys()
    assert [name for name in first if first[name] != again[name]] == []
