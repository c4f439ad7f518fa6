"""The finished site on a server of its own."""

import contextlib
import functools
import http.server
import threading
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "site"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        """Say nothing."""


@contextlib.contextmanager
def serving(folder: Path, handler_class=Quiet):
    """A server on this machine for the files of a folder."""
    if not (SITE / "index.html").exists():
        pytest.fail("no site: run `nox -s docs` first")
    handler = functools.partial(handler_class, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
