"""A wait that is ended from another thread, whatever comes first."""

from __future__ import annotations

import select
import threading

from pailot.views.cancellation import Quit


def is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def test_it_is_readable_once_it_is_set() -> None:
    quit = Quit()
    assert not is_readable(quit.reader)
    quit.set()
    assert is_readable(quit.reader)
    quit.close()


def test_it_is_readable_if_it_was_set_before_anybody_looked() -> None:
    quit = Quit()
    quit.set()
    assert is_readable(quit.reader)
    quit.close()


def test_what_is_to_follow_is_done_once_and_at_once_if_it_is_late() -> None:
    quit, done = Quit(), list[str]()
    quit.then(lambda: done.append("early"))
    quit.set()
    quit.set()
    quit.then(lambda: done.append("late"))
    assert done == ["early", "late"]


def test_a_wait_ends_with_it() -> None:
    quit = Quit()
    waiting = threading.Thread(target=quit.wait, args=(3600,))
    waiting.start()
    quit.set()
    waiting.join(60)
    assert not waiting.is_alive()


def test_setting_it_and_waiting_for_it_at_the_same_time_loses_nothing() -> None:
    for _ in range(200):
        quit, done = Quit(), threading.Event()
        setter = threading.Thread(target=quit.set)
        setter.start()
        quit.then(done.set)
        setter.join()
        assert done.wait(60)
