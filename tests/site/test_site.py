"""The finished site as its readers get it."""

import ast
import inspect
import json
import re
import xml.etree.ElementTree as ElementTree
from copy import copy
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
import site_checks

import mha
import mha.draw
import mha.exercises
import mha.layouts
import mha.show

DOCS = Path(__file__).parents[2] / "docs"
SLUGS = sorted(
    "" if page.stem == "index" else f"{page.stem}/"
    for page in (Path(__file__).parents[2] / "docs/id").iterdir()
)
PAGES = [prefix + slug for prefix in ("", "en/") for slug in SLUGS]


def test_passes_the_builds_own_checks(site):
    assert site_checks.check_site(site, DOCS) == []


def test_every_page_is_there_and_no_other(soups):
    assert set(soups) == {*PAGES, "404.html", "en/404.html"}


@pytest.mark.parametrize("page", PAGES)
def test_language_and_addresses(page, soups):
    soup = soups[page]
    language = "en" if page.startswith("en/") else "id"
    other = page.removeprefix("en/") if language == "en" else "en/" + page
    assert soup.html["lang"] == language
    assert urlsplit(soup.select_one("link[rel=canonical]")["href"]).path == "/" + page
    (link,) = soup.select("a.language")
    assert urljoin("/" + page, link["href"]) == "/" + other
    assert link["hreflang"] == link["lang"] == ("id" if language == "en" else "en")


@pytest.mark.parametrize("home", ["", "en/"])
def test_the_home_page_lists_every_page_in_the_order_of_the_menu(home, soups):
    menu, path = (
        [urljoin("/" + home, link["href"]) for link in soups[home].select(links)]
        for links in (".md-nav--primary a.md-nav__link", "#path ~ :is(ol, ul) a:first-child")
    )
    pages = list(dict.fromkeys(urlsplit(address).path for address in menu))
    assert [address for address in path if address in pages][: len(pages) - 1] == pages[1:]


@pytest.mark.parametrize("page", PAGES)
def test_title_and_description(page, soups):
    twin = page.removeprefix("en/") if page.startswith("en/") else "en/" + page
    for soup in (soups[page], soups[twin]):
        assert len(soup.select_one("meta[name=description]")["content"]) > 40
    assert soups[page].title.text != soups[twin].title.text


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_fetched_from_elsewhere(page, site):
    html = (site / page / "index.html").read_text("utf-8")
    fetched = re.findall(r'(?:src|srcset|data|poster|action)="(?:https?:)?//[^"]+"', html)
    assert fetched == []
    assert "@import" not in html
    assert not re.search(r"url\(['\"]?(?:https?:)?//", html)


def test_style_sheets_and_scripts_fetch_nothing(site):
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", sheet.read_text("utf-8")), sheet


def test_sitemaps_pair_the_languages(site):
    space = {
        "s": "http://www.sitemaps.org/schemas/sitemap/0.9",
        "x": "http://www.w3.org/1999/xhtml",
    }
    for prefix in ("", "en/"):
        tree = ElementTree.parse(site / prefix / "sitemap.xml")
        urls = tree.findall("s:url", space)
        assert len(urls) == len(SLUGS)
        for url in urls:
            page = urlsplit(url.find("s:loc", space).text).path.lstrip("/").removeprefix("en/")
            links = {
                link.get("hreflang"): urlsplit(link.get("href")).path
                for link in url.findall("x:link", space)
            }
            assert links == {"id": f"/{page}", "en": f"/en/{page}"}


def test_numbers_follow_the_language(soups):
    for page, mark in (("two-heads/", ","), ("en/two-heads/", ".")):
        cells = [cell.text for cell in soups[page].select("table.weights td")]
        assert f"0{mark}390" in cells
        assert f"0{mark}219" in cells
        wrong = "." if mark == "," else ","
        assert not [cell for cell in cells if wrong in cell]


def test_pages_hold_live_values(soups):
    counts = {page: len(soups[page].select(".live")) for page in PAGES}
    for slug in ("", "one-head/", "two-heads/", "parity/", "cost/", "order/"):
        assert counts[slug] >= 3
        assert counts["en/" + slug] == counts[slug]


def test_formulas_are_mathml(soups):
    assert len(soups["one-head/"].select("math")) >= 5
    for page in PAGES:
        article = copy(soups[page].select_one("article"))
        for skip in article.select("code"):
            skip.extract() if skip.find_parent("p") else None
        assert "\\(" not in article.get_text()


def test_each_language_searches_its_own_pages(site):
    for prefix in ("", "en/"):
        index = json.loads((site / prefix / "search/search_index.json").read_text("utf-8"))
        assert index["config"]["pipeline"] == []  # no stemmer of another language
        assert {entry["location"].split("#")[0] for entry in index["docs"]} == set(SLUGS)


def test_not_found_speaks_both_languages_from_any_depth(soups):
    soup = soups["404.html"]
    assert [section["lang"] for section in soup.select("section[lang]")] == ["id", "en"]
    assert [a["href"] for a in soup.select("section[lang] a")] == ["/", "/en/"]


LAYER = ("forward", "from_torch", "to_torch", "to_numpy")
DOCUMENTED = {
    **{f"mha.{name}": getattr(mha, name) for name in mha.__all__},
    **{f"mha.MultiHeadAttention.{name}": getattr(mha.MultiHeadAttention, name) for name in LAYER},
    "mha.show.WeightTable": mha.show.WeightTable,
    "mha.show.ShapeLedger": mha.show.ShapeLedger,
    "mha.layouts.pack": mha.layouts.pack,
    "mha.layouts.unpack": mha.layouts.unpack,
    "mha.exercises.use": mha.exercises.use,
    "mha.exercises.check": mha.exercises.check,
    "mha.exercises.Verdict": mha.exercises.Verdict,
    "mha.draw.HeadView": mha.draw.HeadView,
    "mha.draw.ShapeFlow": mha.draw.ShapeFlow,
}


def call_of(shown: str) -> list[tuple]:
    """Name, kind and default of each argument, as the reference shows the call."""
    arguments = ast.parse(f"def {shown}: ...").body[0].args
    first, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    required = [None] * (len(arguments.args) - len(arguments.defaults))
    defaults = zip(arguments.args, required + arguments.defaults, strict=True)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    every = [*((a, first, d) for a, d in defaults), *((a, keyword, d) for a, d in named)]
    return [(a.arg, kind, d and ast.literal_eval(d)) for a, kind, d in every]


@pytest.mark.parametrize("prefix", ["", "en/"])
@pytest.mark.parametrize("name", DOCUMENTED)
def test_reference_shows_each_call_as_it_is(name, prefix, soups):
    heading = soups[f"{prefix}reference/"].find(id=name)
    block = heading.find_next("pre")
    assert block.find_previous(["h3", "h4"]) == heading
    assert block.find_parent(class_="no-copy")
    shown = block.get_text().strip()
    call, last = shown.partition("(")[0], name.rpartition(".")[2]
    assert call == (f"MultiHeadAttention.{last}" if last == "from_torch" else last)
    expected = [
        (p.name, p.kind, None if p.default is inspect.Parameter.empty else p.default)
        for p in inspect.signature(DOCUMENTED[name]).parameters.values()
        if p.name != "self"
    ]
    assert call_of(last + shown.removeprefix(call)) == expected
    assert "/" not in shown


def test_reference_has_every_public_name_and_links_to_it(soups):
    for prefix in ("", "en/"):
        soup = soups[f"{prefix}reference/"]
        for name in DOCUMENTED:
            assert soup.select(f'article a[href="#{name}"]'), name
            text = soup.find(id=name).find_next_sibling("div").get_text()
            assert len(text.split()) > 10, name
    assert len(DOCUMENTED) >= 20


def test_nothing_lies_there_that_no_reader_needs(site):
    files = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    assert any(name.startswith("assets/javascripts/bundle") for name in files)
    assert not [name for name in files if name.endswith(".map") or "/lunr/" in name]
