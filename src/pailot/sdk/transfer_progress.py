"""How far the inputs and outputs of a run are on their way, for a process that waits: its events tell, here or on a server."""

from __future__ import annotations

from threading import Thread

from ..errors import PailotError
from ..progress import Display, Progress
from ..views.cancellation import Quit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from ..views.base import View


class Transfers:
    """Follows the events of a run in a thread of its own, and shows the progress that they tell."""

    def __init__(self, view: View, display: Display | None = None) -> None:
        self._view, self._display, self._quit = view, display or Display(), Quit()
        self.latest: Progress | None = None
        """What is on its way now."""

    def __enter__(self) -> Transfers:
        self._thread = Thread(target=self._follow, name=f"transfers of {self._view.name}", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        self._quit.set()
        self._thread.join(0.5)  # one that waits for a server ends when that says something; it shows nothing any more
        self._display.close()

    def _follow(self) -> None:
        try:
            for event in self._view.events(self._quit):
                if self._quit.is_set:
                    return
                if event["event"] == "progress":
                    told = Progress.from_dict(event)
                    self.latest = None if told.ended else told
                    self._display.show(told)
        except PailotError:
            pass  # the wait reports it, too
