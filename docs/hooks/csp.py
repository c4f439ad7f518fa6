"""Each page allows what stands on it, and nothing else: a Content-Security-Policy by hashes."""

import hashlib
import re
from base64 import b64encode

_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def on_post_page(output, page, config):
    """Put the policy into a page."""
    return with_policy(output, runs_python="runner" in page.meta)


def on_post_template(output_content, template_name, config):
    """Put the policy into the 404 page."""
    return with_policy(output_content) if template_name.endswith(".html") else None


def with_policy(html: str, runs_python: bool = False) -> str:
    """Add the policy as the first thing of the head; the scripts of the theme go by their hash."""
    theme = re.sub(r"<article.*</article>", "", html, flags=re.DOTALL)  # a page has no scripts
    digests = (hashlib.sha256(script.encode()).digest() for script in _SCRIPT.findall(theme))
    hashes = "".join(f" 'sha256-{b64encode(digest).decode()}'" for digest in digests)
    wasm = " 'wasm-unsafe-eval'" * runs_python
    policy = (
        f"default-src 'none'; script-src 'self'{wasm}{hashes}; style-src 'self'; font-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
        "base-uri 'none'; form-action 'self'"
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return html.replace("<head>", f"<head>\n    {meta}", 1)
