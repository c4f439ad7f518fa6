"""The policy of each page allows its own scripts, by their hash, and no others."""

import base64
import hashlib
import re

import csp


def policy(html: str) -> str:
    """The page's policy."""
    return re.search(r'Content-Security-Policy" content="([^"]+)"', html)[1]


def test_hash_of_each_script():
    html = csp.with_policy("<html><head></head><script>a()</script><script>b()</script></html>")
    for script in (b"a()", b"b()"):
        digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
        assert f"'sha256-{digest}'" in policy(html)
    assert policy(html).count("sha256") == 2


def test_every_page_is_closed(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) >= 20
    for page in pages:
        html = page.read_text("utf-8")
        rules = policy(html)
        assert "default-src 'none'" in rules
        runs_python = 'id="runner"' in html
        assert re.findall(r"\S*unsafe\S*", rules) == ["'wasm-unsafe-eval'"] * runs_python
        assert "http" not in rules
        body = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", body), page
