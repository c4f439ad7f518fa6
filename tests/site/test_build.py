"""A build that can't keep the promise fails, says where, and leaves the old site standing."""

import os
import re
import signal
import subprocess
import sys
import time

import build
import pytest
from faults import FAULTS, LIST, in_block


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_stops_the_build(fault, project, monkeypatch):
    if "no end after" in fault.names:
        monkeypatch.setenv("PAGE_SECONDS", "5")  # a page without end is not worth a minute
    project.site.mkdir()
    (project.site / "index.html").write_text("the old site")
    fault.inject(project)
    done = project.build()
    assert done.returncode == 1
    for name in fault.names:
        assert name in done.stderr
    assert [path.name for path in project.site.iterdir()] == ["index.html"]
    assert (project.site / "index.html").read_text() == "the old site"
    assert not list(project.root.glob(".site-*"))


def test_build_killed_half_way(project):
    project.site.mkdir()
    (project.site / "index.html").write_text("the old site")
    process = project.start()
    progress, deadline = project.root / "stdout", time.monotonic() + 60
    while not progress.exists() or "page.md" not in progress.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert (project.site / "index.html").read_text() == "the old site"
    assert project.build().returncode == 0
    assert "Kata demi kata" in (project.site / "index.html").read_text()


NEVER_ENDS = """
import os
with open("{}", "a") as file:
    print(os.getpid(), file=file, flush=True)
while True: pass"""


def test_build_told_to_end_leaves_no_process(project):
    notes = project.root / "running"
    in_block(NEVER_ENDS.format(notes))(project)
    process, deadline = project.start(), time.monotonic() + 60
    while not notes.exists() or len(notes.read_text().split()) < 2:  # for the page, and by itself
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGTERM)
    process.join(20)
    assert process.exitcode == 143
    for number in map(int, notes.read_text().split()):
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
    assert not list(project.root.glob(".site-*"))


def test_sound_project_is_built_and_replaces_the_old_site(project):
    project.site.mkdir()
    (project.site / "old.html").touch()
    done = project.build()
    assert done.returncode == 0, done.stderr
    assert not (project.site / "old.html").exists()
    assert "0,500" in (project.site / "page/index.html").read_text()
    assert "0.500" in (project.site / "en/page/index.html").read_text()
    for language in ("id", "en"):
        for name in ("index.md", "page.md"):
            assert f"{language}  {name}\n" in done.stdout
    assert str(project.site) in done.stdout
    assert done.stderr == ""


STARTS_A_PROCESS = """# --8<-- [start:first]
import multiprocessing

context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=queue.put, args=(0.5,))
process.start()
value = queue.get()
process.join()
print(value)
# --8<-- [end:first]
"""


def test_a_page_may_start_processes(project):
    project.files["docs/examples/page.py"] = STARTS_A_PROCESS
    done = project.build()
    assert (done.returncode, done.stderr) == (0, "")


def test_same_sources_same_bytes(project):
    project.add_notebook("print(1)")
    builds = []
    for _ in range(2):
        assert project.build().returncode == 0
        files = (path for path in project.site.rglob("*") if path.is_file())
        builds.append({path.relative_to(project.site): path.read_bytes() for path in files})
    assert builds[0].keys() == builds[1].keys()
    assert [name for name in builds[0] if builds[0][name] != builds[1][name]] == []


def test_list_for_contributors_has_every_fault():
    titles = re.findall(r"(?m)^## (.*)$", LIST.read_text("utf-8"))
    assert titles == [fault.name[0].upper() + fault.name[1:] for fault in FAULTS]


@pytest.mark.parametrize("out", [".", "docs", "mha/x", "keep", "file"])
def test_what_is_no_site_is_never_replaced(out, project):
    (project.root / "keep").mkdir()
    (project.root / "keep/thesis.txt").write_text("mine")
    (project.root / "file").write_text("mine")
    done = project.run("docs/build.py", "--out", str(project.root / out))
    assert done.returncode == 1
    assert "NOT BUILT" in done.stderr
    assert (project.root / "keep/thesis.txt").read_text() == "mine"
    assert (project.root / "file").read_text() == "mine"
    assert (project.root / "docs/build.py").exists()


def test_without_assertions_nothing_is_built(project):
    done = subprocess.run(
        [sys.executable, "-O", "docs/build.py"], cwd=project.root, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "python -O" in done.stderr


def test_language_that_ends_half_way_is_no_success(project):
    hook = project.root / "docs/hooks/csp.py"
    hook.write_text("import os\ndef on_post_build(config):\n    os._exit(0)\n")
    done = project.build()
    assert done.returncode == 1
    for language in ("id", "en"):
        assert f"{language}: the process ended before its work was done" in done.stderr
    assert not project.site.exists()


def test_old_site_comes_back_if_the_new_one_cannot_be_put_there(tmp_path):
    out, new = tmp_path / "site", tmp_path / "scratch/id"
    out.mkdir()
    (out / "index.html").write_text("the old site")
    new.parent.mkdir()
    with pytest.raises(FileNotFoundError):
        build.put_in_place(new, out)
    assert (out / "index.html").read_text() == "the old site"
    new.mkdir()
    (new / "index.html").write_text("the new site")
    build.put_in_place(new, out)
    assert (out / "index.html").read_text() == "the new site"


@pytest.mark.parametrize(
    ("error", "traced"),
    [(build.BuildError("page.md: no title"), False), (OSError("full"), False), (KeyError(1), True)],
)
def test_every_fault_is_said(error, traced, tmp_path, capsys):
    def fail(out):
        raise error

    assert build.attempt(fail, tmp_path) is False
    message = capsys.readouterr().err
    assert f"NOT BUILT, {tmp_path} is as it was:\n" in message
    assert str(error) in message
    assert ("Traceback" in message) is traced  # where nobody has thought of it
    assert build.attempt(lambda out: None, tmp_path) is True
    assert capsys.readouterr().err == ""


def test_example_that_fails_by_itself_after_printing_all(project):
    fail = 'if "__file__" in globals():\n    raise ValueError("late")\n'
    project.edit("docs/examples/page.py", "print(value)\n", f"print(value)\n{fail}")
    done = project.build()
    assert done.returncode == 1
    assert "\npage.py, run by itself, ends with exit code 1\n" in done.stderr
