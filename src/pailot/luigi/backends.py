"""Where a task's job runs: this machine, a Pailot server or an OpenPAI cluster (v2), or an old OpenPAI (v1 only).

A job is known by its name. When it has failed, the next run of the pipeline starts it again: here under the same name, on a
server as `name-r2`, `name-r3`, …, since a server keeps a name for ever.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ..client.api import find
from ..client.errors import NotTheApi
from ..client.loopback import is_loopback
from ..engines.preparation.workdir import PRIVATE
from ..errors import NoSuchRun
from ..sdk.client import Client
from ..sdk.local_runs import get, run
from ..settings import Settings
from ..userruns.launch import Conflict
from ..views.connections import Connections
from .auth import Tokens
from .openpai_v1 import OldThere
from .started import Started, last_of, numbered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from ..sdk.job import Job
    from ..sdk.run import Run

    class Place(Protocol):
        """Finds and starts jobs."""

        def latest(self, name: str) -> Started | None:
            """The job of a name that was started last, if its record is left."""

        def start(self, name: str, job: Job, v1: Mapping[str, object] | None) -> Started:
            """Start a job, whatever became of those before it.

            One that another worker has started meanwhile is joined, and one that has succeeded meanwhile is the result.
            """

        def sees(self, path: str) -> bool:
            """Whether what a job writes to a path is at that path of this machine."""


LOCAL = "local"
_FOUND: dict[str, tuple[int, str]] = {}
"""Which version of the API an address has, and where below it."""


class Here:
    """This machine, without a server."""

    def latest(self, name: str) -> Started | None:
        try:
            found = get(name)
        except NoSuchRun:
            return None
        return _started_here(found) if found.name == name else None

    def start(self, name: str, job: Job, v1: Mapping[str, object] | None) -> Started:
        # Code that is brought shows its entries in the working directory: not in the one that luigi was started in.
        work_dir = PRIVATE if v1 and v1.get("codeDir") else ""
        while True:
            try:
                return _started_here(run(job, work_dir=work_dir))
            except Conflict:
                latest = self.latest(name)
                if latest is not None and latest.is_good():
                    return latest

    def sees(self, path: str) -> bool:
        return True


class There:
    """A server with version 2 of the API."""

    def __init__(self, url: str, tokens: Tokens) -> None:
        self.url, self._tokens = url, tokens
        self._made: Client | None = None

    @property
    def _client(self) -> Client:
        """Made when it is first needed, for it needs a token."""
        if self._made is None:
            self._made = Client.over(Connections(self.url, self._tokens.now(), "", self._tokens.renewed))
        return self._made

    def latest(self, name: str) -> Started | None:
        found = last_of(name, self._get)
        return found[1] if found else None

    def _get(self, name: str) -> Started | None:
        try:
            return self._started(self._client.get(name))
        except NoSuchRun:
            return None

    def start(self, name: str, job: Job, v1: Mapping[str, object] | None) -> Started:
        last = last_of(name, self._get)
        number = last[0] + 1 if last else 1
        while True:
            try:
                return self._started(self._client.run(job, name=numbered(name, number)))
            except Conflict:
                taken = self._get(numbered(name, number))
                if taken is not None and taken.is_good():
                    return taken
                number += 1

    def sees(self, path: str) -> bool:
        return is_here(self.url) or is_shared(path)

    def _started(self, run: Run) -> Started:
        if self.url.endswith("/rest-server"):  # the portal of an OpenPAI cluster is above it
            portal = self.url.removesuffix("/rest-server")
            return Started(run, f"{portal}/job-detail.html?username={run.id.partition('~')[0]}&jobName={run.name}")
        return Started(run, f"{self.url}/api/v2/jobs/{run.id}")


def place_for(url: str, username: str, password: str | None, expiration: int, token: str | None) -> Place:
    """The place that an address means; what kind of server it is, is found out once."""
    if url == LOCAL:
        return Here()
    version, server = _FOUND.get(url) or _find(url)
    tokens = Tokens(server, username, password, expiration, token)
    if version == 2:
        return There(server, tokens)
    return OldThere(server, tokens)


def _find(url: str) -> tuple[int, str]:
    try:
        with find(url) as client:
            found = 2, client.server
    except NotTheApi:
        found = 1, url.rstrip("/")
    _FOUND[url] = found
    return found


def is_here(url: str) -> bool:
    """Whether a server is on this machine, and sees the same files."""
    return is_loopback(urlsplit(url).hostname or "")


def is_shared(path: str) -> bool:
    """Whether a path is below a folder of this machine that the settings name as the place for all."""
    base = Settings()["default_fs_uri"]
    return bool(base) and "://" not in base and os.path.isdir(base) and f"{path}/".startswith(f"{os.path.abspath(base)}/")


def _started_here(run: Run) -> Started:
    return Started(run, f"file://{run.describe()['folder']}")
