"""Each rule for the finished site, broken once: a check that can't fail is worth nothing."""

from pathlib import Path

import pytest
import site_checks


def finished(path: Path, html: str) -> site_checks.Finished:
    """A page of a finished site."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(html)
    return site_checks.Finished(path)


@pytest.mark.parametrize(
    ("html", "message"),
    [
        ("<p>Traceback (most recent call last)</p>", "Traceback"),
        ("<p>#!live A</p>", "#!live"),
        ("<p>--8&lt;-- x</p>", "--8<--"),
        ("<p>{{ glossary }}</p>", "{{"),
        ('<a href="javascript:x()">x</a>', "would fetch javascript:x()"),
        ("<article><script>x()</script></article>", "has <script>, which no page needs"),
        ("<article><p>Bobotnya 0,390</p></article>", "shows '0,390', which was not computed"),
        ('<article><b title="0,390">x</b></article>', "shows '0,390', which was not computed"),
        ("<article><code>0.390</code></article>", "shows '0.390', which was not computed"),
        ("<article><code>1e-12</code></article>", "shows '1e-12', which was not computed"),
        ('<div class="language-py"><pre>0.390</pre></div>', "a py block, which is not executed"),
        ('<article><img alt="" src="here.png"></article>', "alternative text"),
        ('<img alt="x" srcset="https://cdn.example/x.png">', "would fetch https://cdn"),
        (
            '<svg><use xlink:href="https://cdn.example/x.svg"></use></svg>',
            "would fetch https://cdn",
        ),
        ("<pre><code>0.390</code></pre>", "block, which is not executed: '0.390'"),
        ('<p id="a"></p><p id="a"></p>', "2 times"),
        ('<img src="here.png">', "alternative text"),
        (
            '<script src="https://cdn.example/x.js"></script>',
            "would fetch https://cdn.example/x.js",
        ),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "would fetch"),
        ('<a href="gone/">x</a>', "not there"),
        ('<a href="#gone">x</a>', "no #gone"),
        ('<p style="color: red">x</p>', "inline style"),
        ('<p onclick="x()">x</p>', "handler"),
        ("<style>p { color: red }</style>", "inline style"),
    ],
)
def test_finished_page(tmp_path, html, message):
    (tmp_path / "here.png").touch()
    page = finished(tmp_path / "index.html", '<link rel="canonical" href="http://x/">' + html)
    problems = site_checks.check_html(page, {page.path: page})
    assert len(problems) == 1
    assert message in problems[0]


def test_empty_page(tmp_path):
    docs, site = tmp_path / "docs", tmp_path / "site"
    for language in ("id", "en"):
        (docs / language).mkdir(parents=True)
        (docs / language / "page.md").write_text("# Judul")
    (site / "page").mkdir(parents=True)
    (site / "page/index.html").write_text("<article>sedikit</article>")
    problems = site_checks.check_site(site, docs)
    assert [p.split(":")[0] for p in problems] == ["page/index.html", "en/page/index.html"]


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("x = 1", "x = 2", "'x = 1' / 'x = 2'"),
        ("0.390", "0.391", "'0390' / '0391'"),
        ("1.5", "2.5", "'15' / '25'"),
        ('<i class="live">0.390</i>', "", "'0390' / '15'"),
        ("yes 7", "yes 8", "'7' / '8'"),
    ],
)
def test_languages_show_the_same_values(tmp_path, old, new, difference):
    docs, site = tmp_path / "docs", tmp_path / "site"
    html = (
        f"<article>{'kata ' * 50}<div class='language-python'><pre>x = 1</pre></div>"
        '<i class="live">0.390</i><table class="weights"><td>1.5</td></table>'
        '<table class="facts"><td>yes 7</td></table></article>'
    )
    (docs / "id").mkdir(parents=True)
    (docs / "en").mkdir()
    first = html.replace("0.390", "0,390").replace("yes", "ya")
    for folder, text in ((site, first), (site / "en", html)):
        folder.mkdir()
        (folder / "index.html").write_text(text)
    assert site_checks.check_site(site, docs) == []
    (site / "en/index.html").write_text(html.replace(old, new))
    (problem,) = site_checks.check_site(site, docs)
    assert problem == f"en/index.html: shows other code or values: {difference}"


def test_finished_page_in_order(tmp_path):
    html = (
        '<link rel="canonical" href="https://host.example/page/"><article><h1 id="top">Head 1</h1>'
        '<p>Bobot <span class="live">0,390</span> dari <code>A[0]</code></p>'
        '<div class="language-python"><pre><code>x = 0.5</code></pre></div>'
        '<a href="#top">x</a><a href="../other/#there">x</a><a href="../other/">x</a>'
        '<a href="https://host.example/">x</a>'
        '<img alt="x" src="data:image/gif;base64,AA"></article>'
    )
    page = finished(tmp_path / "page/index.html", html)
    for anchor, problems in (
        ("there", []),
        ("elsewhere", ["links to ../other/#there, where no #there is"]),
    ):
        other = finished(tmp_path / "other/index.html", f'<p id="{anchor}">x</p>')
        pages = {page.path: page, other.path: other}
        assert site_checks.check_html(page, pages) == problems


@pytest.mark.parametrize(
    ("source", "problems"),
    [
        ("/assets/x.js", []),
        ("https://cdn.example/x.js", ["would fetch https://cdn.example/x.js"]),
    ],
)
def test_page_for_every_address_links_to_none_beside_it(source, problems, tmp_path):
    html = f'<a href="/en/">x</a><script src="{source}"></script>'
    page = finished(tmp_path / "404.html", html)
    assert site_checks.check_html(page, {page.path: page}) == problems
