"""What a job on a server waits for, told to the one who waits for it."""

from __future__ import annotations

import sys

from ..views.cancellation import Quit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..views.base import View


class TellingWhy:
    """While the caller waits, a line on standard error whenever the job waits for something new.

    >>> with TellingWhy(view):
    ...     view.wait(None, Quit())
    """

    def __init__(self, view: View, *, quiet: bool = False) -> None:
        self._view, self._quit = view, Quit()
        self._quiet = quiet or not view.tells_why

    def __enter__(self) -> None:
        if not self._quiet:
            from threading import Thread

            Thread(target=self._tell, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._quit.set()

    def _tell(self) -> None:
        for lines in self._view.reasons_to_wait(self._quit):
            if self._quit.is_set:
                return
            for line in lines:
                print(f"pailot: {line}", file=sys.stderr, flush=True)
