"""The check itself: what is still fading in is not judged, and what is wrong is found."""

import pytest
from accessible import violations

PAGE = """<html lang="en"><title>A page</title><style>
  p { opacity: 1; transition: opacity 500ms } p.coming { opacity: 0.1 }
</style><p class="coming">Some words</p>"""


@pytest.fixture
def opened(chromium):
    page = chromium.new_page()
    page.set_content(PAGE)
    yield page
    page.close()


def test_what_fades_in_is_judged_when_it_is_there(opened):
    opened.evaluate("document.querySelector('p').classList.remove('coming')")
    assert violations(opened) == ""


def test_what_stays_pale_is_found(opened):
    assert "color-contrast" in violations(opened)
