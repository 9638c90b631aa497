"""Who one is on a server: a token that was configured, or one by logging in when it is first needed, and again when it ends."""

from __future__ import annotations

import json
import time

from ..client.api import Client
from ..client.errors import Denied
from ..client.http import Http

KNOWN: dict[tuple[str, str], tuple[str, float]] = {}
"""Tokens of this process, by server and user, with the time until which they are good."""


class Tokens:
    """Gives out the token of one user on one server."""

    def __init__(self, url: str, username: str, password: str | None, expiration: int, token: str | None) -> None:
        self.url, self.username, self.password, self.expiration, self.token = url, username, password, expiration, token
        self.version = 2
        """Of the API, by which one logs in."""

    def now(self) -> str:
        """A token that should be good."""
        if self.token:
            return self.token
        known, until = KNOWN.get((self.url, self.username), ("", 0.0))
        return known if known and time.time() < until else self.renewed("")

    def renewed(self, refused: str) -> str:
        """A token in place of one that the server does not accept any more."""
        if self.token:
            words = f"{self.url} does not accept the token; it may have expired (token in [OpenPai], or of the task)"
            raise Denied(words, 401, "Unauthorized")
        if self.password is None:
            words = f"to log in at {self.url} set password or token in [OpenPai] of luigi's configuration"
            raise Denied(words, 401, "NoLogin")
        made = self._login_v1() if self.version == 1 else self._login()
        KNOWN[self.url, self.username] = made, time.time() + 0.8 * self.expiration
        return made

    def _login(self) -> str:
        with Client(self.url) as client:
            return str(client.login(self.username, self.password or "", self.expiration)["token"])

    def _login_v1(self) -> str:
        said = {"username": self.username, "password": self.password, "expiration": self.expiration}
        http = Http(self.url)
        try:
            reply = http.request("POST", "/api/v1/token", json.dumps(said).encode(), {"Content-Type": "application/json"})
            return str(reply.json()["token"])
        finally:
            http.close()
