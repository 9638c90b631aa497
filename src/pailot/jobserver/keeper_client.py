"""The server's side of the keeper: find it or start it, give orders, hear what it tells."""

from __future__ import annotations

import asyncio  # only a server loads this
import json
import os
import subprocess
import sys
from typing import cast  # as above

from ..runfolder.careful_files import private
from .errors import Unavailable
from .keeper import earlier_orders, messages
from .keeper.messages import TAKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .server_log import LogOptions

START_SECONDS = 60.0
_HIDDEN = (
    "PAILOT_ADMIN_PASSWORD",
    "PAILOT_TOKEN",
    "PAILOT_OIDC_CLIENT_SECRET",
    "PAILOT_DATABASE",
    "PAILOT_SMTP",
    "PAILOT_WEBHOOK",
    "CREDENTIALS_DIRECTORY",
    "PYTHON",
)


class Link(asyncio.Protocol):
    """A connection to one keeper."""

    def __init__(self, news: Callable[[Link, dict[str, object]], None], lost: Callable[[Link], None]) -> None:
        self._news, self._lost = news, lost
        self._inbox = messages.Inbox()
        self._transport: asyncio.Transport | None = None
        self.hello: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        self.open = True
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pid = 0
        self.version = messages.VERSION

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        for content in self._inbox.feed(data):
            message = json.loads(content)
            if message["event"] == "hello":
                self.pid, self.version = message["pid"], message["version"]
                if not self.hello.done():
                    self.hello.set_result(message)
            else:
                self._news(self, message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        if not self.gone.done():
            self.gone.set_result(None)
        if not self.hello.done():
            self.hello.set_exception(ConnectionResetError("the keeper ended"))
            self.hello.exception()  # the caller may have stopped waiting
        else:
            self._lost(self)

    def order(self, *documents: str, **message: Any) -> None:
        """Tell the keeper to do something; a keeper that is gone is noticed by itself."""
        if self._transport is not None and self.open:
            earlier = self.version <= earlier_orders.LAST_VERSION
            self._transport.write(earlier_orders.pack_order(message) if earlier else messages.pack_order(message, *documents))

    def close(self) -> None:
        """Let go, once all orders were sent; `gone` tells when."""
        self.open = False
        self._lost = lambda _: None
        if self._transport is not None:
            self._transport.close()


async def connect(
    path: str, news: Callable[[Link, dict[str, object]], None], lost: Callable[[Link], None]
) -> tuple[Link, dict[str, object]] | None:
    """The keeper at a socket, and what it says of itself; None if there is none."""
    loop = asyncio.get_running_loop()
    try:
        _, link = await loop.create_unix_connection(lambda: Link(news, lost), messages.socket_address(path))
    except OSError:
        return None
    try:
        return link, await asyncio.wait_for(link.hello, START_SECONDS)
    except (OSError, TimeoutError):
        link.close()
        return None


def found(home: str) -> list[str]:
    """The sockets of all keepers that may live here: the one in charge first, then those that only finish their jobs."""
    try:
        names = os.listdir(home)
    except OSError:
        return []
    retired = sorted(name for name in names if name.startswith("keeper-") and name.endswith(".sock"))
    return [os.path.join(home, messages.SOCKET), *(os.path.join(home, name) for name in retired)]


def start(home: str, engine: str, log_options: LogOptions) -> int:
    """A new keeper, that can be reached when this returns, or the status it ended with.

    It inherits nothing of ours: no descriptor, no terminal, no secret variable.
    """
    with open(os.path.join(home, messages.LOG), "ab", opener=private) as log:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _START, _package(), home, engine, log_options.format, log_options.level],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home,
            env=clean_environment(os.environ),
            start_new_session=True,
            check=False,
        )
    return done.returncode


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """A server's variables without those that could tell a secret of it."""
    return {name: value for name, value in environment.items() if not name.startswith(_HIDDEN)}


async def find_or_start(
    home: str, engine: str, log_options: LogOptions, news: Callable[[Link, dict[str, object]], None], lost: Callable[[Link], None]
) -> list[tuple[Link, dict[str, Any]]]:
    """All keepers of this home, the one that takes new jobs first; it is started if there is none."""
    others = []
    for path in found(home):
        answer = await connect(path, news, lost)
        if answer is None:
            continue
        link, hello = answer
        if hello["version"] != messages.VERSION or hello["engine"] != engine or os.path.basename(path) != messages.SOCKET:
            link.order(do="retire")
            others.append(answer)
        else:
            return [answer, *others, *await _retired(home, path, news, lost)]
    until = asyncio.get_running_loop().time() + START_SECONDS
    while asyncio.get_running_loop().time() < until:
        status = await asyncio.to_thread(start, home, engine, log_options)
        if status not in (0, TAKEN):
            break
        answer = await connect(os.path.join(home, messages.SOCKET), news, lost)
        if answer is not None and answer[1]["version"] == messages.VERSION and answer[1]["engine"] == engine:
            return [answer, *others]
        if answer is not None:
            answer[0].close()
        await asyncio.sleep(0.02)  # the one before is just leaving
    raise Unavailable(f"the keeper of the jobs could not be started; {os.path.join(home, messages.LOG)} says why")


async def _retired(
    home: str, but: str, news: Callable[[Link, dict[str, object]], None], lost: Callable[[Link], None]
) -> list[tuple[Link, dict[str, object]]]:
    answers = [await connect(path, news, lost) for path in found(home) if path != but]
    return [answer for answer in answers if answer is not None]


def _package() -> str:
    here = os.path.abspath(__file__)
    for _ in range(3):
        here = os.path.dirname(here)
    return here


_START = "import sys; sys.path.insert(0, sys.argv[1]); from pailot.jobserver.keeper.keeper import main; main(*sys.argv[2:])"
