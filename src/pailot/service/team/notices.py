"""Messages about changes of jobs: to a web address and by e-mail, delivered at least once, in spite of crashes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...settings import Settings
    from ...store.server import JobRecord, ServerStore
    from .writer import Writer


class Notices:
    """Puts messages into the outbox with the change itself, and delivers them."""

    def __init__(self, settings: Settings, store: ServerStore, writer: Writer) -> None:
        self.settings, self.store, self.writer = settings, store, writer

    def begin(self) -> None: ...

    async def end(self) -> None: ...

    def of_change(self, after: JobRecord, before: JobRecord | None) -> Callable[[], None] | None:
        """What to keep together with a change."""
        return None
