"""One line for each page that is done, and a limit to the time that one may take."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from mkdocs.plugins import event_priority

SECONDS = float(os.environ.get("PAGE_SECONDS") or 60)


class TooLong(BaseException):
    """Not an Exception: a block that catches those must not catch this."""


@event_priority(100)
def on_page_markdown(markdown, page, config, files):
    """Set the alarm."""
    _set_alarm(page.file.src_uri)


@event_priority(-100)
def on_page_content(html, page, config, files):
    """Stop it, and say which page it was."""
    _stop_alarm()
    line = f"{config.theme['language']}  {page.file.src_uri}\n"
    print(line, end="", flush=True)  # in one piece: the other language prints, too


@contextmanager
def limit(name: str) -> Iterator[None]:
    """Let what is done inside take no longer than a page may."""
    _set_alarm(name)
    try:
        yield
    finally:
        _stop_alarm()


def _set_alarm(name: str) -> None:
    def stop(*_):
        raise TooLong(f"{name}: no end after {SECONDS:g} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 1)  # again, if it is caught


def _stop_alarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
