"""A page says when it is done, and may not take for ever."""

import signal
import time
from types import SimpleNamespace

import progress
import pytest

ALARM = signal.SIGALRM
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
CONFIG = SimpleNamespace(theme={"language": "id"})


@pytest.fixture(autouse=True)
def old_handler():
    """Whatever a test sets, nothing rings afterwards."""
    before = signal.getsignal(ALARM)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(ALARM, before)


def test_a_page_that_takes_too_long_is_named(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS", 0.05)
    progress.on_page_markdown("", PAGE, CONFIG, None)
    with pytest.raises(progress.TooLong, match=r"^page\.md: no end after 0\.05 s$"):
        time.sleep(10)


def test_a_block_cannot_catch_it_by_chance():
    assert not issubclass(progress.TooLong, Exception)


def test_a_page_that_is_done_in_time_says_so(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS", 0.05)
    progress.on_page_markdown("", PAGE, CONFIG, None)
    progress.on_page_content("", PAGE, CONFIG, None)
    assert capsys.readouterr().out == "id  page.md\n"
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    time.sleep(0.1)
