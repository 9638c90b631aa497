"""A real notebook: cells run in a Jupyter kernel of their own, and what they show arrives as it would in a browser."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

SECONDS = 300


class CellFailed(Exception):
    """A cell has raised something; `name` is its type."""

    def __init__(self, name: str, value: str) -> None:
        super().__init__(f"{name}: {value}")
        self.name, self.value = name, value


class Notebook:
    """`run(code)` runs a cell and answers what it printed; `shown` is every HTML that was displayed, oldest first."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder), env={**os.environ, **environment, "PYDEVD_DISABLE_FILE_VALIDATION": "1"})
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)
        self.shown: list[str] = []
        self.displays: dict[str, str] = {}
        """What each output shows now, by its id."""

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def __enter__(self) -> Notebook:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, code: str) -> str:
        return self.finish(self.begin(code))

    def begin(self, code: str) -> str:
        """Start a cell, and wait for nothing."""
        return str(self.client.execute(code, store_history=True))

    def interrupt(self) -> None:
        """As the button does."""
        self.manager.interrupt_kernel()

    def finish(self, cell: str) -> str:
        """Until a cell is done; raises CellFailed if it has raised something."""
        printed, failure = "", None
        while True:
            message = self._next(SECONDS)
            content = message["content"]
            if message["parent_header"].get("msg_id") != cell:
                continue
            if message["msg_type"] == "stream":
                printed += content["text"]
            elif message["msg_type"] == "execute_result":
                printed += content["data"].get("text/plain", "")
            elif message["msg_type"] == "error":
                failure = CellFailed(content["ename"], content["evalue"])
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                if failure is not None:
                    raise failure
                return printed

    def wait_for(self, wanted: Callable[[dict[str, str]], bool]) -> None:
        """Until the outputs look as wanted, though no cell is running."""
        end = time.monotonic() + SECONDS
        while not wanted(self.displays):
            assert time.monotonic() < end, self.displays
            try:
                self._next(1.0)
            except Empty:
                continue

    def until_printed(self, text: str) -> None:
        """Until a cell that is running has printed something."""
        while text not in (self._next(SECONDS)["content"].get("text") or ""):
            pass

    def _next(self, seconds: float) -> dict[str, Any]:
        message: dict[str, Any] = self.client.get_iopub_msg(timeout=seconds)
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data", "execute_result"):
            html = content["data"].get("text/html", "")
            if html:
                self.shown.append(html)
                self.displays[content.get("transient", {}).get("display_id", f"cell {len(self.displays)}")] = html
        return message
