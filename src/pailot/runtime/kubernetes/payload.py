"""What a pod is told of its attempt: everything that is known before the cluster has placed it.

Addresses are not. Where they belong stand marks, which the pod replaces once it knows where all tasks are.
"""

from __future__ import annotations

import gzip
import json
import re

from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class RolePart(Value):
    """What all tasks of a role have in common."""

    name: str
    main: str
    start: str = ""
    exit: str = ""
    retries: int = 0
    environments: tuple[Mapping[str, str], ...] = ()
    """The variables of each task; there are as many as instances."""


class Payload(Value):
    """One attempt."""

    token: str
    """What all marks begin with; no text of the job holds it."""
    roles: tuple[RolePart, ...]
    shared: Mapping[str, str] = {}
    peers: tuple[Mapping[str, Any], ...] = ()
    """The content of the file that PAI_PEERS_FILE names."""
    secrets: Mapping[str, str] = {}
    hidden: tuple[str, ...] = ()
    retry_delay: float = 1
    grace: float = 30
    hold_seconds: float = 0
    hold_command: str = ""
    fetch_seconds: float = 300
    max_run_seconds: float = 0

    def __repr__(self) -> str:
        return f"Payload({len(self.roles)} roles)"  # never a secret

    @property
    def tasks(self) -> int:
        return sum(len(role.environments) for role in self.roles)

    def packed(self) -> bytes:
        """The payload as the file that travels; the same payload gives the same bytes."""
        fields = {name: getattr(self, name) for name in self._fields}
        roles = [{name: getattr(role, name) for name in role._fields} for role in self.roles]
        return gzip.compress(json.dumps({**fields, "roles": roles}).encode("ascii"), mtime=0)

    @classmethod
    def unpacked(cls, data: bytes) -> Payload:
        found = json.loads(gzip.decompress(data))
        roles = tuple(RolePart(**{**role, "environments": tuple(role["environments"])}) for role in found["roles"])
        return cls(**{**found, "roles": roles, "peers": tuple(found["peers"]), "hidden": tuple(found["hidden"])})


def mark(token: str, number: int) -> str:
    """What stands for the address of a task, by its number in the job."""
    return f"{token}{{h{number}}}"


def placed(payload: Payload, addresses: Sequence[str]) -> Payload:
    """The payload with the address of every task in its place."""
    marks = re.compile(re.escape(payload.token) + r"\{h([0-9]+)\}")

    def fill(text: str) -> str:
        return marks.sub(lambda found: addresses[int(found[1])], text)

    roles = tuple(
        role.replace(environments=tuple({name: fill(text) for name, text in each.items()} for each in role.environments))
        for role in payload.roles
    )
    peers = tuple({**each, "address": fill(each["address"])} for each in payload.peers)
    return payload.replace(roles=roles, shared={name: fill(text) for name, text in payload.shared.items()}, peers=peers)
