"""The server shows what changes soon, builds no more than that, and survives every fault."""

import contextlib
import http.client
import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
import serve

SECONDS = 60  # a generous limit: on an idle machine each change shows within two

# Laying some pages into the site of a small project: patch.py PAGE…
PATCH = """
import sys
from serve import ROOT, attempt, patch
sys.exit(not attempt(patch, ROOT / "site", set(sys.argv[1:])))
"""

# In one process: build, change mha, patch.
CHANGED_MHA = """
from serve import ROOT, attempt, build, patch
out = ROOT / "site"
assert attempt(build, out)
assert "0,500" in (out / "page/index.html").read_text("utf-8")
(ROOT / "mha/__init__.py").write_text("def softmax(scores): return [0.25]")
assert attempt(patch, out, {"page.md"})
"""

# The same for words.yml.
CHANGED_WORDS = """
from serve import DOCS, ROOT, attempt, build
out, words = ROOT / "site", DOCS / "words.yml"
assert attempt(build, out)
text = words.read_text("utf-8")
words.write_text(text.replace('list_separator: "; "', 'list_separator: ".; "'), "utf-8")
assert attempt(build, out)
"""

WITH_MHA = """# --8<-- [start:first]
import mha
value = float(mha.softmax([0.0, 0.0])[0])
print(value)
# --8<-- [end:first]
"""

GLOSSARY_PAGE = f"""---
title: Glosarium
description: Daftar istilah.
---

# Glosarium {{ #glossary }}

{"Kata demi kata. " * 20}

{{{{ glossary }}}}
"""


EVERY = {path.name for path in (serve.DOCS / "id").iterdir()}


@pytest.mark.parametrize(
    ("paths", "pages"),
    [
        (["docs/id/order.md"], {"order.md"}),
        (["docs/en/order.md", "docs/id/order.md"], {"order.md"}),
        (["docs/id/lab.ipynb"], {"lab.ipynb"}),
        (["docs/examples/two_heads.py"], {"two-heads.md"}),
        (["docs/examples/two_heads.py", "docs/en/order.md"], {"two-heads.md", "order.md"}),
        (["docs/glossary.csv"], EVERY),
        (["mha/layer.py"], EVERY),
        (["docs/id/order.md", "mha/layer.py"], EVERY),
        (["docs/examples/parity_matrix.py"], None),  # no page's own
        (["docs/words.yml"], None),
        (["mkdocs.yml"], None),
        (["docs/hooks/live.py"], None),
        (["docs/theme/assets/site.css"], None),
        (["docs/id/order.md", "docs/words.yml"], None),
        (["docs/id/deeper/order.md"], None),
        (["docs/fr/order.md"], None),
        (["docs/id/no-page-yet.md"], None),
    ],
)
def test_pages_that_a_change_touches(paths, pages):
    assert serve.touched([serve.ROOT / path for path in paths]) == pages


def files(site: Path) -> dict[str, bytes]:
    """Every file of a site."""
    found = (path for path in site.rglob("*") if path.is_file())
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in found}


def built(project) -> dict[str, bytes]:
    """Build the project's site once."""
    project.files["patch.py"] = PATCH
    done = project.build()
    assert done.returncode == 0, done.stderr
    return files(project.site)


def differing(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    """The names of the files that differ."""
    return {name for name in before.keys() | after if before.get(name) != after.get(name)}


def test_changed_page_is_built_alone(project):
    project.add_notebook("print(1)")
    before = built(project)
    project.edit_page("Nilainya", "Sekarang nilainya")
    project.edit("docs/examples/page.py", "0.5", "0.25")
    for language in ("id", "en"):
        project.edit(f"docs/{language}/index.md", "Kata", "Huruf")
    done = project.run("patch.py", "page.md")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["en", "id", "page.md", "page.md"]
    after = files(project.site)
    names = ("index.html", "page.py", "page.ipynb")
    assert differing(before, after) == {f"{p}page/{n}" for p in ("", "en/") for n in names}
    for prefix, value in (("", "0,250"), ("en/", "0.250")):
        page = after[f"{prefix}page/index.html"].decode()
        assert "Sekarang nilainya" in page
        assert f'<span class="live">{value}</span>' in page
        assert 'href="../lab/"' in page  # the notebook was not run, but its title is there
        assert page.count("Lab") == before[f"{prefix}page/index.html"].decode().count("Lab") > 0


def test_changed_notebook_is_built_alone(project):
    project.add_notebook("print('old')")
    before = built(project)
    project.add_notebook("print('new')")
    done = project.run("patch.py", "lab.ipynb")
    assert done.returncode == 0, done.stderr
    after = files(project.site)
    names = {f"{prefix}lab/{name}" for prefix in ("", "en/") for name in ("index.html", "lab.zip")}
    assert differing(before, after) == names
    assert b"new\n" in after["en/lab/index.html"]
    assert b"old\n" not in after["en/lab/index.html"]


def test_unchanged_page_keeps_its_bytes(project):
    before = built(project)
    assert project.run("patch.py", "page.md", "index.md").returncode == 0
    assert files(project.site) == before


def test_older_translation_does_not_keep_a_page_from_view(project):
    built(project)
    for path in ("docs/en/index.md", "docs/en/page.md"):
        project.files[path] = (project.root / path).read_text("utf-8")
    project.renew_stamps = False
    project.edit("docs/id/page.md", "Nilainya", "Sekarang nilainya")
    done = project.run("patch.py", "page.md")
    assert done.returncode == 0, done.stderr
    assert "Sekarang nilainya" in (project.site / "page/index.html").read_text("utf-8")
    assert project.build().returncode == 1  # where it is a fault


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        ("docs/examples/page.py", "value = 0.5", "1 / 0", "page.md: page.py:2, section first"),
        ("docs/en/page.md", "#!live value", "#!live gone", "page.md: `#!live gone`"),
        ("docs/id/page.md", "page.py:first", "page.py:gone", "'gone' could not be located"),
    ],
)
def test_fault_leaves_the_site_as_it_was(path, old, new, message, project):
    before = built(project)
    project.edit_page("Nilainya", "Sekarang nilainya")
    project.edit(path, old, new)
    done = project.run("patch.py", "page.md")
    assert done.returncode == 1
    assert f"NOT BUILT, {project.site} is as it was" in done.stderr
    assert message in done.stderr
    assert files(project.site) == before
    assert not list(project.root.glob(".site-*"))


def test_mha_is_not_the_one_imported_earlier(project):
    project.files |= {"docs/examples/page.py": WITH_MHA, "twice.py": CHANGED_MHA}
    done = project.run("twice.py")
    assert done.returncode == 0, done.stderr
    assert "0,250" in (project.site / "page/index.html").read_text("utf-8")
    assert "0.250" in (project.site / "en/page/index.html").read_text("utf-8")


def test_words_are_not_those_read_earlier(project):
    project.edit_page("`#!live value`", "`#!live [value, value]`")
    project.files["twice.py"] = CHANGED_WORDS
    done = project.run("twice.py")
    assert done.returncode == 0, done.stderr
    assert "[0,500.; 0,500]" in (project.site / "page/index.html").read_text("utf-8")


def test_port_in_use_is_said_before_anything_is_built(monkeypatch, capsys):
    monkeypatch.setattr(serve, "attempt", lambda *_: pytest.fail("it begins to build"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["serve.py", "--port", str(port)])
        with pytest.raises(SystemExit):
            serve.main()
    assert f"port {port}: Address already in use" in capsys.readouterr().err


class Server:
    """A running docs/serve.py."""

    def __init__(self, project) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.project = project
        self.process = project.start("docs/serve.py", "--port", str(self.port))

    def output(self) -> str:
        """What it has said so far."""
        names = (self.project.root / name for name in ("stdout", "stderr"))
        return "".join(path.read_text() for path in names if path.exists())

    def get(self, path: str) -> str:
        """A page, or nothing."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection), contextlib.suppress(ConnectionError):
            connection.request("GET", path)
            response = connection.getresponse()
            return response.read().decode() if response.status == 200 else ""
        return ""

    def wait(self, condition) -> None:
        """Until something holds."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, self.output()
            assert self.process.is_alive(), self.output()
            time.sleep(0.05)

    def shows(self, path: str, *texts: str) -> None:
        """Wait until these texts are on a page."""
        self.wait(lambda: all(text in self.get(path) for text in texts))

    def says(self, *texts: str) -> None:
        """Wait until it has said this."""
        self.wait(lambda: all(text in self.output() for text in texts))

    def stop(self) -> None:
        """Press Ctrl+C."""
        os.kill(self.process.pid, signal.SIGINT)
        self.process.join(SECONDS)


@pytest.fixture
def server(project):
    """Starts the project's server; ends it after the test, whatever happens."""
    running = []

    def start() -> Server:
        running.append(Server(project))
        return running[0]

    yield start
    for one in running:
        if one.process.is_alive():
            one.stop()
        one.process.kill()


def test_every_change_shows(server, project):
    project.add_notebook("print('first')")
    project.files["docs/examples/page.py"] = WITH_MHA
    for language in ("id", "en"):
        project.files[f"docs/{language}/glossary.md"] = GLOSSARY_PAGE
    running = server()
    running.says("Serving http://127.0.0.1:", "Ctrl+C")
    running.shows("/page/", "0,500", 'lang="id"')
    running.shows("/en/page/", "0.500", 'lang="en"')
    assert "first\n" in running.get("/lab/")

    project.edit_page("Nilainya", "Sekarang nilainya")
    with (project.site / "page/index.html").open("rb") as being_read:
        before = (project.site / "page/index.html").read_bytes()
        project.write()
        running.shows("/page/", "Sekarang nilainya")
        running.shows("/en/page/", "Sekarang nilainya")
        assert being_read.read() == before  # a reader of that moment has it whole

    project.edit("docs/examples/page.py", "[0.0, 0.0]", "[0.0] * 8")
    project.write()
    running.shows("/page/", "0,125")
    running.shows("/en/page/", "0.125")

    project.edit("docs/examples/page.py", "print(value)", "print(value)\n1 / 0")
    project.write()
    running.says("ZeroDivisionError", "page.py:5, section first", "failed")
    assert "0,125" in running.get("/page/")
    project.edit("docs/examples/page.py", "\n1 / 0", "")
    project.edit("docs/examples/page.py", "* 8", "* 16")
    project.write()
    running.shows("/page/", "0,062")

    with (project.root / "mha/__init__.py").open("a") as file:
        file.write("\n\ndef softmax(scores):\n    return [0.75]\n")
    running.shows("/page/", "0,750")
    running.shows("/en/page/", "0.750")

    project.edit("docs/glossary.csv", "xyzterm_id,", "kata,")
    project.write()
    running.shows("/glossary/", '<dt id="xyzterm-en">kata')
    running.shows("/page/", 'class="term"', 'title="xyzdefinition_id"')

    project.add_notebook("print('second')")
    project.write()
    running.shows("/lab/", "second\n")
    running.shows("/en/lab/", "second\n")

    for path in ("docs/en/index.md", "docs/en/page.md"):
        project.files[path] = (project.root / path).read_text("utf-8")
    project.renew_stamps = False
    project.edit("docs/id/page.md", "Sekarang nilainya", "Kini nilainya")
    project.write()
    running.shows("/page/", "Kini nilainya")
    running.says("to do: ", "docs/en/page.md: page.md has changed since")

    running.stop()
    assert running.process.exitcode == 0
    assert running.get("/") == ""  # nothing is left behind
    assert "KeyboardInterrupt" not in running.output()


def test_server_that_begins_with_a_fault(server, project):
    project.edit("docs/examples/page.py", "0.5", "gone")
    running = server()
    running.says("NameError", "Serving")
    assert running.get("/page/") == ""
    project.edit("docs/examples/page.py", "gone", "0.25")
    project.write()
    running.shows("/page/", "0,250")
    assert "Kata demi kata" in running.get("/")  # and all that this page does not touch
    assert running.get("/assets/site.css")

    front_matter = project.files["docs/en/page.md"].partition("\n\n")[0]
    project.edit("docs/en/page.md", front_matter, front_matter.replace("title:", "title: a:"))
    project.write()
    running.says("docs/en/page.md: can't be read: ScannerError")

    words = project.root / "docs/words.yml"
    text = words.read_text("utf-8")
    words.write_text("id: {", "utf-8")
    running.says("ParserError")
    project.edit("docs/en/page.md", "title: a:", "title:")
    project.write()
    words.write_text(text.replace("Tautan ke bagian ini", "Tautan baru"), "utf-8")
    running.shows("/", "Tautan baru")

    config, new = project.root / "mkdocs.yml", project.root / "mkdocs.yml.new"
    for colour in ("red", "pink"):  # an editor may put a new file into the old one's place
        new.write_text(config.read_text("utf-8").replace("primary: teal", f"primary: {colour}"))
        new.replace(config)
        running.shows("/", f'data-md-color-primary="{colour}"')
        config.write_text(config.read_text("utf-8").replace(f"primary: {colour}", "primary: teal"))
        running.shows("/", 'data-md-color-primary="teal"')


@pytest.mark.parametrize(
    ("asked", "page"),
    [
        ([], "index"),
        (["/"], "index"),
        (["/en/"], "index"),
        (["/one-head/", "/assets/site.css", "/en/search/search_index.json"], "one-head"),
        (["/one-head/", "/en/two-heads/"], "two-heads"),
    ],
)
def test_page_in_view_is_the_one_asked_for_last(asked, page, tmp_path):
    log = tmp_path / "log"
    log.write_text("".join(f'127.0.0.1 - - [now] "GET {path} HTTP/1.1" 200 -\n' for path in asked))
    assert serve.last_asked_for(log) == page


def test_page_in_view_is_built_before_the_others():
    assert serve.next_of(EVERY, "two-heads") == {"two-heads.md"}
    assert serve.next_of(EVERY, "lab") == {"lab.ipynb"}
    others = EVERY - {"two-heads.md"}
    group = serve.next_of(others, "two-heads")
    assert group < others
    assert len(group) == serve.AT_A_TIME
    assert serve.next_of({"order.md"}, "two-heads") == {"order.md"}
