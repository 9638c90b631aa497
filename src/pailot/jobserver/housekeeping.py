"""What a running server does beside its jobs: fill the list of jobs, and remove what is old."""

from __future__ import annotations

import asyncio  # only a server comes here
import logging
import time

from ..data.data_sets import DataSets
from ..runtime import defects
from ..store import StoreError
from . import server_log
from .maintenance import collect
from .server_home import data_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..settings import Settings
    from ..store.server import ServerStore

EVERY_SECONDS = 3600.0


class Housekeeping:
    """Between `begin` and `end`."""

    def __init__(self, settings: Settings, store: ServerStore) -> None:
        self.settings = settings
        self.store = store
        self.task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self.task = asyncio.create_task(self._run())

    async def end(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    def work(self) -> None:
        """All of it, once."""
        self.store.jobs.warm()
        collect(self.store, self.settings.home, time.time(), keep_days=float(self.settings["keep_days"]))
        self.store.jobs.warm()  # what is gone takes no more memory
        shared = data_folder(self.settings)
        if shared:
            DataSets(shared).evict(self.settings.data_bytes)

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.work)
            except StoreError as error:
                server_log.note(server_log.SERVER, logging.ERROR, "housekeeping failed", error=str(error))
            except Exception as error:  # the next time may go better, and the server serves without
                defects.note(error, "housekeeping")
            await asyncio.sleep(EVERY_SECONDS)
