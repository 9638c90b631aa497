"""Where the content of a data set of the library lies on this machine."""

from __future__ import annotations

import socket

from ..data.data_sets import DataSet, DataSets, shareable
from ..protocol.references import LATEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .entries import Entry

HERE, NOT_FETCHED, NOT_SHARED = "here", "not-fetched", "not-shared"


def content_of(entry: Entry, folder: str) -> list[dict[str, Any]]:
    """For each address of a data set that Pailot fetches: whether its content is in that folder, how much, who uses it.

    `not-shared` is what each user has a copy of: an address that holds a secret or depends on the job, a data set without
    version and checksum, or a machine on which nothing is shared (no folder).
    """
    if entry.type != "data" or entry.plugin != "fetch":
        return []
    host = socket.gethostname()
    named = entry.version != LATEST or bool(entry.sha256)
    told: list[dict[str, Any]] = []
    for position, uri in enumerate(entry.uri):
        nothing = {"path": None, "bytes": None, "files": None, "fetched": None, "used": None, "jobs": 0}
        if not (folder and named and shareable(uri)):
            told.append({"uri": uri, "state": NOT_SHARED, "host": host, **nothing})
            continue
        digest = entry.sha256[position] if position < len(entry.sha256) else ""
        found = DataSets(folder).find(DataSet(uri, f"{entry.name}@{entry.version}", digest))
        if found is None:
            told.append({"uri": uri, "state": NOT_FETCHED, "host": host, **nothing})
            continue
        times = {"fetched": round(found.fetched * 1000), "used": round(found.used * 1000)}
        more = {"path": found.path, "bytes": found.bytes, "files": found.files, **times, "jobs": found.jobs}
        told.append({"uri": uri, "state": HERE, "host": host, **more})
    return told
