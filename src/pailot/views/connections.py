"""Connections to one server as one user."""

from __future__ import annotations

import os

from ..client.api import Client as Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..client.http import Http
    from .cancellation import Quit

POLL_SECONDS = 2.0
"""How often a server is asked that tells nothing by itself."""
POLLED_AT_ONCE = 10
"""The number of waits that ask that often; with more of them each asks less often, so that no server counts too many requests."""


class _Closing(Wire):
    """A client that closes its connection when it is not used any more."""

    def __del__(self) -> None:
        if hasattr(self, "http"):  # its address was none
            self.close()


class Connections:
    """Each thread has its own connection, and so has a forked process. What is found out about the server is shared."""

    def __init__(self, server: str, token: str, user: str, renew: Callable[[str], str] | None = None) -> None:
        from threading import Lock, local

        self.server, self.token, self._user, self._renew = server, token, user, renew
        self.is_plain: bool | None = None
        """Whether the server is an OpenPAI, which has no records and tells nothing by itself; None: not known yet."""
        self._of_thread = local()
        self._lock = Lock()
        self._polling = 0
        self.mine  # noqa: B018  # an address that is none is refused now

    @property
    def mine(self) -> Wire:
        found: tuple[int, Wire] | None = getattr(self._of_thread, "found", None)
        if found is None or found[0] != os.getpid():
            wire = _Closing(self.server, self.token, self._user)
            wire.http.renew = self._renewed if self._renew is not None else None
            found = self._of_thread.found = os.getpid(), wire
        return found[1]

    @property
    def user(self) -> str:
        """Whose token it is."""
        if not self._user:
            self._user = self.mine.user
        return self._user

    def _renewed(self, refused: str) -> str:
        """A token in place of one that is not accepted any more; connections that notice one after the other ask for one only."""
        assert self._renew is not None
        with self._lock:
            if refused == self.token:
                self.token = self._renew(refused)
            return self.token

    def aside(self, quit: Quit) -> Http:
        """A connection for something that is read as it comes; `quit` ends that."""
        http = self.mine.http.clone()
        quit.then(http.interrupt)
        return http

    def pause(self, longest: float, quit: Quit) -> None:
        """Until it is time to ask again, the time is up, or `quit` is set."""
        self._polling += 1
        try:
            quit.wait(min(longest, POLL_SECONDS * max(1.0, self._polling / POLLED_AT_ONCE)))
        finally:
            self._polling -= 1
