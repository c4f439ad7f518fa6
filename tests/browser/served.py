"""The finished site on a server of its own, and the browser that opens it."""

import contextlib
import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

SITE = Path(__file__).parents[2] / "site"
# The first is the same browser without its windows, and takes half the time.
NAMES = "chromium-headless-shell", "chromium", "google-chrome"
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_):
        """Say nothing."""


@contextlib.contextmanager
def serving(folder: Path, handler_class=Quiet):
    """A server on this machine for the files of a folder."""
    handler = functools.partial(handler_class, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
