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
HOLD_SECONDS = 5.0
"""A server that has nothing to write looks this often whether the database is still its own."""


class Housekeeping:
    """Between `begin` and `end`."""

    def __init__(self, settings: Settings, store: ServerStore) -> None:
        self.settings = settings
        self.store = store
        self.tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        self.tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._hold())]

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def work(self) -> None:
        """All of it, once."""
        self.store.jobs.warm()
        collect(self.store, self.settings.home, time.time(), keep_days=float(self.settings["keep_days"]))
        self.store.jobs.warm()  # what is gone takes no more memory
        shared = data_folder(self.settings)
        if shared:
            DataSets(shared).evict(self.settings.data_bytes)

    async def _hold(self) -> None:
        while True:
            await asyncio.sleep(HOLD_SECONDS)
            try:
                await asyncio.to_thread(self.store.hold)
            except StoreError:
                pass  # it cannot be reached: requests that need it say so

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.work)
            except StoreError as error:
                server_log.note(server_log.SERVER, logging.ERROR, "housekeeping failed", error=str(error))
            except Exception as error:  # the next time may go better, and the server serves without
                defects.note(error, "housekeeping")
            await asyncio.sleep(EVERY_SECONDS)
