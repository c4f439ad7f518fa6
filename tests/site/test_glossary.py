"""Terms are explained at their first use in running text, and the list of them is complete."""

import csv
from types import SimpleNamespace
from urllib.parse import urljoin

import glossary
import pytest
from bs4 import BeautifulSoup

ROWS = """term_id,term_en,definition_id,definition_en,mark,note
attention,attention,Rata-rata <berbobot>.,"An ""average"" & more.",yes,
multi-head attention,multi-head attention,Beberapa head.,Several heads.,yes,
bobot,weight,Bilangan.,A number.,yes,
matriks,matrix,Tabel.,A table.,yes,
matriks bobot,weight matrix,Tabel bobot.,A table of weights.,yes,
kali & tambah,multiply & add,Operasi.,Operations.,,
memori,memory,Tempat.,Space.,yes,
rangkai (concat),concatenate (concat),Menjajarkan.,Side by side.,yes,
baris,row,Deret.,A line.,,
"""

# These stand in headings, tables and links, or in other chapters, but in no running text.
LISTED_ONLY = {
    "parity",
    "pattern-of-relations",
}


@pytest.fixture
def few_terms(tmp_path, monkeypatch):
    """A short list in the place of the site's own."""
    monkeypatch.setattr(glossary, "GLOSSARY", tmp_path / "glossary.csv")
    glossary.GLOSSARY.write_text(ROWS, "utf-8")


def marked(html: str, language: str = "en", url: str = "page/") -> BeautifulSoup:
    """A page's content as the hook leaves it."""
    page = SimpleNamespace(url=url, file=SimpleNamespace(src_uri="page.md"))
    config = SimpleNamespace(theme={"language": language})
    html = glossary.on_page_content(html, page=page, config=config, files=None)
    return BeautifulSoup(html, "html.parser")


def links(soup) -> list[str]:
    """The marked words."""
    return [link.get_text() for link in soup.select("a.term")]


@pytest.mark.usefixtures("few_terms")
@pytest.mark.parametrize(
    ("language", "html", "expected"),
    [
        ("en", "<p>An attention.</p>", ["attention"]),
        ("en", "<li>An attention.</li><p>Attention</p>", ["attention"]),
        ("en", "<dl><dd><b>Attention</b>, attention</dd></dl>", ["Attention"]),
        ("en", "<p>Multi-head attention, attention</p>", ["Multi-head attention", "attention"]),
        ("en", "<p>multi-head attention, multi-head attention</p>", ["multi-head attention"]),
        ("en", "<p>multi-head\nattention</p>", ["multi-head\nattention"]),
        ("en", "<p>weights, matrices, memories</p>", ["weights", "matrices", "memories"]),
        ("en", "<p>weighted, overweight, self-attention, attention-like</p>", []),
        ("en", "<p>concat, concatenate</p>", ["concat"]),
        ("en", "<p>concatenate, concat</p>", ["concatenate"]),
        ("en", "<p>a row, the rows</p>", []),
        ("en", "<p>bobot</p>", []),
        ("id", "<p>Bobotnya, bobot</p>", ["Bobotnya"]),
        ("id", "<p>bobots, pembobot, berbobot</p>", []),
        ("id", "<p>matriks bobot, matriks, bobot</p>", ["matriks bobot", "matriks", "bobot"]),
        ("en", "<p>the weight matrices of a matrix</p>", ["weight matrices", "matrix"]),
        ("id", "<p>weight</p>", []),
    ],
)
def test_first_use_is_marked(language, html, expected):
    soup = marked(html, language)
    assert links(soup) == expected
    assert soup.get_text() == BeautifulSoup(html, "html.parser").get_text()


@pytest.mark.usefixtures("few_terms")
@pytest.mark.parametrize(
    "html",
    [
        "<p><code>attention</code></p>",
        '<p><a href="x">attention</a></p>',
        '<p><a href="x"><em>attention</em></a></p>',
        "<ul><li><pre>attention</pre></li></ul>",
        "<p><math><mi>attention</mi></math></p>",
        "<ul><li><table><tbody><tr><td>attention</td></tr></tbody></table></li></ul>",
        "<p><abbr>attention</abbr></p>",
        '<p lang="en">attention</p>',
        '<div lang="en"><p><em>attention</em></p></div>',
        "<details><summary><p>attention</p></summary></details>",
        "<figure><figcaption><p>attention</p></figcaption></figure>",
        "<h2>attention</h2>",
        "<div>attention</div>",
        "<p><!-- attention --></p>",
        "<!-- attention -->",
        "<style>p { color: red }</style>",  # has to stay in front of the text
    ],
)
def test_other_text_is_not_marked(html):
    soup = marked(f"{html}<p>attention</p>")
    (link,) = soup.select("a.term")  # the word is known, and still free for the paragraph
    assert soup.contents[-1] == link.parent
    assert str(soup).startswith(str(BeautifulSoup(html, "html.parser")))


@pytest.mark.usefixtures("few_terms")
@pytest.mark.parametrize(
    ("language", "url", "href", "title"),
    [
        ("en", "page/", "../glossary/#attention", 'An "average" & more.'),
        ("en", "", "glossary/#attention", 'An "average" & more.'),
        ("id", "page/", "../glossary/#attention", "Rata-rata <berbobot>."),
    ],
)
def test_mark_leads_to_the_definition_and_shows_it(language, url, href, title):
    (link,) = marked("<p>attention</p>", language, url).select("a")
    assert (link["href"], link["title"]) == (href, title)


@pytest.mark.usefixtures("few_terms")
def test_the_list_has_every_term_in_both_languages():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="glossary.md"))
    config = SimpleNamespace(theme={"language": "id"})
    text = glossary.on_page_markdown("# G\n\n{{ glossary }}\n", page, config, None)
    soup = BeautifulSoup(text, "html.parser")
    assert "{{" not in text
    assert len(soup.select("dt")) == len(soup.select("dd")) == len(ROWS.splitlines()) - 1
    (entry,) = soup.select("dt#weight")
    assert entry.get_text() == "bobot EN: weight"
    assert entry.select_one("[lang=en]").get_text() == "EN: weight"
    assert entry.find_next_sibling("dd").get_text() == "Bilangan."
    assert soup.select_one("dt#attention + dd").get_text() == "Rata-rata <berbobot>."
    (entry,) = soup.select("dt#multiply-add")
    assert entry.get_text() == "kali & tambah EN: multiply & add"
    assert "kali &amp; tambah <span" in text
    assert "EN: multiply &amp; add<" in text
    names = [dt.contents[0].strip() for dt in soup.select("dt")]
    assert names == sorted(names)
    assert names[0] == "attention"


@pytest.mark.usefixtures("few_terms")
def test_only_the_glossary_gets_the_list_and_has_no_marks():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="glossary.md"))
    config = SimpleNamespace(theme={"language": "en"})
    assert glossary.on_page_content("<p>attention</p>", page, config, None) is None
    page.file.src_uri = "page.md"
    assert glossary.on_page_markdown("{{ glossary }}", page, config, None) is None


def test_rows_are_complete_and_their_anchors_unique():
    rows = glossary.terms()
    assert len(rows) >= 40
    for row in rows:
        assert set(row) == {"term_id", "term_en", "definition_id", "definition_en", "mark", "note"}
        assert row["mark"] in ("yes", "")
        for language in ("id", "en"):
            assert row[f"term_{language}"].strip() == row[f"term_{language}"] != ""
            assert row[f"definition_{language}"].endswith(".")
            assert len(row[f"definition_{language}"].split()) >= 4
    anchors = [glossary.anchor(row) for row in rows]
    assert len(set(anchors)) == len(anchors)
    assert all(anchor.strip("-") == anchor != "" for anchor in anchors)


@pytest.mark.parametrize(("language", "prefix"), [("id", ""), ("en", "en/")])
def test_every_term_is_on_the_glossary_page_and_in_use(language, prefix, soups):
    page = soups[f"{prefix}glossary/"]
    entries = {dt["id"]: dt for dt in page.select("dl.glossary dt")}
    pages = [
        address
        for address in soups
        if address.startswith("en/") is (language == "en") and not address.endswith("glossary/")
    ]
    used = {
        link["href"].partition("#")[2] for page in pages for link in soups[page].select("a.term")
    }
    text = " ".join(soups[page].select_one("article").get_text(" ") for page in pages).lower()
    for row in glossary.terms():
        entry = entries.pop(glossary.anchor(row))
        assert entry.contents[0].strip() == row[f"term_{language}"]
        assert entry.find_next_sibling("dd").get_text() == row[f"definition_{language}"]
        if row["mark"]:
            assert glossary.anchor(row) in used | LISTED_ONLY
        else:
            assert row[f"term_{language}"].lower() in text
    assert entries == {}


def test_pages_mark_each_term_once_and_only_in_running_text(soups):
    for address, soup in soups.items():
        terms = soup.select("a.term")
        targets = [link["href"] for link in terms]
        assert len(set(targets)) == len(targets), address
        for link in terms:
            inside = [parent.name for parent in link.parents]
            assert {"p", "li", "dd"} & set(inside), link
            assert not {"a", "code", "pre", "h1", "h2", "h3", "table", "math"} & set(inside), link
            assert link.find_parent(class_="md-nav") is None
            where, _, anchor = urljoin(f"/{address}", link["href"]).partition("#")
            assert soups[where.lstrip("/")].find("dt", id=anchor), link
    for slug in ("one-head/", "two-heads/", "lab/"):
        assert len(soups[slug].select("a.term")) >= 5
        assert len(soups["en/" + slug].select("a.term")) >= 5


def test_the_list_is_one_that_other_programs_read():
    text = glossary.GLOSSARY.read_text("utf-8")
    rows = list(csv.reader(text.splitlines(), strict=True))
    assert {len(row) for row in rows} == {6}
