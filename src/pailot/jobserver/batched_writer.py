"""One thread that writes: what came while it was busy is kept in one transaction, with one wait for the disk."""

from __future__ import annotations

import threading

from ..store import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any

    from ..store.server import ServerStore


class Writer:
    """`await writer.do(work)`: done, in order, and durable when it returns."""

    def __init__(self, store: ServerStore, loop: asyncio.AbstractEventLoop) -> None:
        self.store, self.loop = store, loop
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._condition = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="pailot-writer", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """A call of the store, in the next transaction; the future has its answer, or its exception, once that is durable."""
        future = self.loop.create_future()
        with self._condition:
            if self._ended:
                raise StoreError("the server is ending: nothing more is kept")
            self._waiting.append((work, future))
            self._condition.notify()
        return future

    def close(self) -> None:
        """Whatever waits is written first."""
        with self._condition:
            self._ended = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                while not self._waiting and not self._ended:
                    self._condition.wait()
                batch, self._waiting = self._waiting, []
            if not batch:
                return
            answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
            try:
                with self.store.batch():
                    for work, future in batch:
                        try:
                            answers.append((future, work(), None))
                        except Exception as error:  # it is the caller's, and the others' work goes on
                            answers.append((future, None, error))
            except Exception as error:  # nothing of the batch was kept: everyone must hear that
                answers = [(future, None, error) for _, future in batch]
            try:
                self.loop.call_soon_threadsafe(_answer, answers)
            except RuntimeError:
                return  # the loop has ended; what was written is kept


def _answer(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, answer, error in answers:
        if future.done():
            continue  # the caller does not wait any more
        if error is None:
            future.set_result(answer)
        else:
            future.set_exception(error)
