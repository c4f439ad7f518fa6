"""The archives to read offline: whole, closed, small, and made of what pages link to."""

import io
import json
import posixpath
import re
import zipfile
from urllib.parse import urldefrag, urlsplit

import offline
import pytest
from bs4 import BeautifulSoup

LANGUAGES = {"id": "", "en": "en/"}
MOST = 5_000_000  # bytes


@pytest.fixture(scope="module")
def folders(site) -> dict[str, dict[str, bytes]]:
    """The files of each archive, by their path in its folder."""
    found = {}
    for language in LANGUAGES:
        with zipfile.ZipFile(site / f"mha-{language}.zip") as archive:
            names = archive.namelist()
            assert all(name.startswith(f"mha-{language}/") for name in names)
            found[language] = {name.partition("/")[2]: archive.read(name) for name in names}
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_small(language, site):
    assert 100_000 < (site / f"mha-{language}.zip").stat().st_size < MOST


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_of_its_language_and_no_other(language, folders, soups):
    pages = {
        f"{page.removeprefix(LANGUAGES[language])}index.html"
        for page in soups
        if page.startswith("en/") is (language == "en") and not page.endswith("404.html")
    }
    assert {name for name in folders[language] if name.endswith(".html")} == pages
    assert any(name.endswith("LICENSE.txt") for name in folders[language])  # of the font
    assert "lab/lab.zip" in folders[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_name_files_that_are_there(language, folders):
    folder, links = folders[language], 0
    for name, data in folder.items():
        if not name.endswith(".html"):
            continue
        soup = BeautifulSoup(data, "html.parser")
        online = soup.select_one("link[rel=canonical]")["href"]
        root = online.removesuffix(name.removesuffix("index.html"))
        for element in soup.select("[href], [src]"):
            address = element.get("href") or element["src"]
            if urlsplit(address).scheme:
                assert element.name == "a" or element["rel"] == ["canonical"], element
                continue
            path, _ = urldefrag(address)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            assert not path or target in folder, f"{name}: {address}"
            links += 1
        (other,) = soup.select("a.language")
        assert other["href"].startswith(root.removesuffix("en/"))
        assert other["href"] != online
    assert links > 500


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_style_sheets_need_is_there(language, folders):
    folder = folders[language]
    for name, data in folder.items():
        for needed in (
            re.findall(r"url\([\"']?([^\"')]+)", data.decode()) if name[-4:] == ".css" else ()
        ):
            if not needed.startswith(("data:", "#")):
                assert posixpath.join(posixpath.dirname(name), needed) in folder
    assert "assets/stix-two-math.woff2" in folder


@pytest.mark.parametrize("language", LANGUAGES)
def test_search_finds_what_it_finds_online(language, folders, site):
    script = folders[language]["search/search_index.js"].decode()
    index = json.loads(re.fullmatch(r"var __index = (.*);", script)[1])
    path = site / LANGUAGES[language] / "search/search_index.json"
    online = json.loads(path.read_text("utf-8"))
    for entry, its in zip(index["docs"], online["docs"], strict=True):
        page, _, anchor = entry["location"].partition("#")
        assert page in folders[language]
        assert its["location"] == page.removesuffix("index.html") + (f"#{anchor}" if anchor else "")
        assert entry["text"] == its["text"]


@pytest.mark.parametrize(("page", "archive"), [("", "mha-id.zip"), ("en/", "../mha-en.zip")])
def test_home_offers_the_archive_of_its_language(page, archive, soups, folders):
    (link,) = soups[page].select("a[download]:not(.take-along a)")
    assert link["href"] == archive
    language = "en" if page else "id"
    inside = BeautifulSoup(folders[language]["index.html"], "html.parser")
    (link,) = inside.select("a[download]:not(.take-along a)")  # it is not in itself
    assert re.fullmatch(rf"https?://.*/mha-{language}\.zip", link["href"])


def test_only_what_is_stated_differs_from_the_site(folders, soups, site):
    for page in ("one-head/", "lab/"):
        ours = BeautifulSoup(folders["id"][f"{page}index.html"], "html.parser")
        assert ours.article.get_text() == soups[page].article.get_text()
        assert len(ours.select("script")) == len(soups[page].select("script")) + 1
    policy = ours.select_one("meta[http-equiv]")["content"]
    assert policy.count("blob:") == 2
    theirs = soups["lab/"].select_one("meta[http-equiv]")["content"]
    assert policy.replace(" blob:", "") == theirs


HTML = """<html><head><link rel="canonical" href="https://host.example/x/">
<link rel="stylesheet" href="a.css?v=1"></head><body><a title="a > b" href="sub/#there">x</a>
<a href="../en/">EN</a> <a href="sub/?q=1">y</a> <a href="#here">z</a> <a href="mailto:a@b.c">m</a>
<pre>href="sub/" src="sub/"</pre><script src="site.js"></script>SCRIPT</body></html>"""


@pytest.fixture
def small(tmp_path):
    """A site of two pages, and how to read a file of its archive."""
    files = {
        "index.html": HTML.replace("SCRIPT", '<script type="module" src="x/page.js"></script>'),
        "sub/index.html": HTML.replace("SCRIPT", "").replace('href="sub/', 'href="../sub/'),
        "a.css": "a { background: url('b.svg') }",
        "b.svg": "<svg/>",
        "site.js": "1",
        "unused.js": "1",
        "x/page.js": 'import { y } from "../y.js";\n',
        "y.js": "export const y = 1;",
        "search/search_index.json": '{"docs": []}',
        "assets/javascripts/workers/search.1.min.js": "'{}' + \"'\"",
    }
    files["sub/index.html"] = files["sub/index.html"].replace("a.css", "../a.css")
    files["sub/index.html"] = files["sub/index.html"].replace("site.js", "../site.js")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def packed(site) -> dict[str, str]:
    """The files of an archive."""
    with zipfile.ZipFile(io.BytesIO(offline.pack(site, "folder"))) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_what_is_linked_comes_along(small):
    files = packed(small)
    assert set(files) == {
        "folder/a.css",
        "folder/b.svg",
        "folder/index.html",
        "folder/search/search_index.js",
        "folder/search/worker.js",
        "folder/site.js",
        "folder/sub/index.html",
        "folder/x/page.classic.js",
    }
    html = files["folder/index.html"]
    assert '<a title="a > b" href="sub/index.html#there">' in html
    assert '<a href="sub/index.html?q=1">' in html
    assert '<a href="https://host.example/en/">EN</a>' in html
    assert '<a href="#here">' in html
    assert '<a href="mailto:a@b.c">' in html
    assert 'href="a.css?v=1"' in html
    assert '<pre>href="sub/" src="sub/"</pre>' in html
    assert '<script src="search/worker.js"></script><script src="site.js"></script>' in html
    assert '<script defer src="x/page.classic.js"></script>' in html
    assert 'src="../search/worker.js"' in files["folder/sub/index.html"]


def test_same_site_same_archive(small, tmp_path_factory):
    again = tmp_path_factory.mktemp("elsewhere") / "site"
    small.rename(again)
    first = offline.pack(again, "folder")
    again.rename(small)
    assert offline.pack(small, "folder") == first


@pytest.mark.parametrize(
    "code", ["fetch('a')", "new Worker('b.js')", "new URL('b', import.meta.url)"]
)
def test_script_that_needs_a_server_is_left_out(small, code):
    (small / "y.js").write_text(f"export const y = () => {code};")
    assert packed(small)["folder/x/page.classic.js"].startswith("// What this script does needs")
