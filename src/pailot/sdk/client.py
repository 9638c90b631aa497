"""`pailot.Client`: the same runs, on a server."""

from __future__ import annotations

import os
import warnings

from ..client import credentials
from ..client.errors import NotFound, Refused
from ..errors import PailotError
from ..library.entries import read_entry
from ..planning.plugins import exists as is_plugin
from ..progress import display
from ..protocol.export import outgoing
from ..protocol.references import split
from ..userruns.launch import Conflict
from ..views.connections import Connections
from ..views.server import ServerRuns
from .job import prepared
from .run import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self

    from ..client.api import Client as Wire
    from ..protocol import model


class Client:
    """A server and who one is there. Without arguments: `PAILOT_SERVER` and `PAILOT_TOKEN`, else the last `pailot login`.

    No connection is opened before the first call that needs one. The server is a Pailot, or an OpenPAI. Raises PailotError if no
    server is known.

    ::

        with pailot.Client("http://jobs.example.org:9186", token="...") as client:
            run = client.run("job.yaml")
            print(run.result().seconds)
    """

    def __init__(self, server: str | None = None, token: str | None = None) -> None:
        login = credentials.chosen(server)
        if login is None:
            raise PailotError("no server is known; name one, set PAILOT_SERVER, or use pailot login")
        self._runs = ServerRuns(Connections(login.server, token or login.token, "" if token else login.user))

    @classmethod
    def over(cls, connections: Connections) -> Self:
        """A client that uses these connections."""
        made = cls.__new__(cls)
        made._runs = ServerRuns(connections)
        return made

    @property
    def _wire(self) -> Wire:
        return self._runs.connections.mine

    @property
    def server(self) -> str:
        """The address of the server."""
        return self._runs.connections.server

    @property
    def user(self) -> str:
        """The user whose token it is."""
        return self._runs.connections.user

    def run(
        self,
        job: model.Job | str | os.PathLike[str],
        *,
        name: str | None = None,
        unique: bool = False,
        secrets: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        code: str | os.PathLike[str] | None = None,
        progress: bool = True,
    ) -> Run:
        """Submit a job; `code` is a folder that is sent along, and in which its tasks start. By `labels` it is found again.

        A folder of this machine that the job itself names as its code is sent along, too, and found under its own name. A bar
        shows how far the code is, unless `progress` is False.

        Returns the run. Raises InvalidJob with every problem of the job, Conflict if a job of this name is there already, and
        WireError if the server cannot be reached or refuses the job.
        """
        read = prepared(job, name=name, unique=unique, secrets=secrets, overrides=overrides)
        if labels:
            read = read.changed({"extras.pailot.labels": {**read.extras.options.labels, **labels}})
        own = _own_folder(read.extras.options.code)
        if code is not None:
            archive = self._send(os.fspath(code), quiet=not progress)
        else:
            archive = self._send(own, os.path.basename(os.path.abspath(own)), quiet=not progress) if own else ""
        try:
            full = self._wire.submit(outgoing(read), code=archive)
        except Refused as error:
            if error.status == 409:
                raise Conflict(str(error)) from None
            raise
        return Run(self._runs.find(full or read.name))

    def _send(self, folder: str, below: str = "", *, quiet: bool) -> str:
        from ..client.code_archive import pack

        with display(quiet=quiet) as shown, pack(folder, shown.show, below=below) as packed:
            for note in packed.notes:
                warnings.warn(note, stacklevel=4)
            try:
                return self._wire.send_code(packed, shown.show)
            except NotFound as error:
                if error.code != "NoApiError":
                    raise
                raise PailotError(
                    f"{self.server} is an OpenPAI, which takes no code folder; have the job fetch its code (git, or a storage)"
                ) from None

    def get(self, name: str) -> Run:
        """A job by `user~name`, or by the name alone if it is yours; raises NoSuchRun."""
        found = self._runs.find(name)
        found.record()
        return Run(found)

    def runs(
        self,
        *,
        states: Sequence[str] = (),
        keyword: str = "",
        labels: Mapping[str, str] | None = None,
        limit: int | None = None,
        users: Sequence[str] = (),
    ) -> Iterator[Run]:
        """The jobs, newest first: in one of these states, with this text in the name, with these labels."""
        return map(Run, self._runs.search(states, keyword, labels, limit, users))

    def library(self, words: str = "", type: str = "") -> Iterator[dict[str, Any]]:
        """What the server's library holds, of each name the newest version: `name`, `version`, `type`, `size`, `owner`, …

        Only entries that have all the words, and the type, if these are given.
        """
        return self._wire.library(words, type)

    def library_entry(self, reference: str) -> dict[str, Any]:
        """An entry by `NAME` or `NAME@VERSION`, with its `text`, its `versions` and where its `content` lies."""
        return self._wire.library_entry(*split(reference))

    def add_to_library(self, text: str, *, replace: bool = False, owner: str = "") -> dict[str, Any]:
        """Keep a prerequisite, data set or job template, given as the text of its file. Returns the entry.

        Raises InvalidJob with what is wrong with it, Refused where that version is there already and `replace` is False.
        """
        return self._wire.put_library_entry(read_entry(text, is_plugin=is_plugin).name, text, replace=replace, owner=owner)

    def remove_from_library(self, reference: str) -> None:
        """Remove `NAME@VERSION`, or a name with all its versions."""
        self._wire.remove_library_entry(*split(reference))

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.server!r})"


def _own_folder(code: str | None) -> str | None:
    """The folder of this machine that a job has its code in, if that is where it is."""
    if not code or "$" in code or ("://" in code and not code.startswith("file://")):
        return None
    return os.path.expanduser(code.removeprefix("file://"))
