"""A stand-in for a document with errors, so that the rest of it can be checked in the same go."""

from __future__ import annotations

import copy

from . import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .problems import Finding

_ROLE_STAND_INS: dict[str, Any] = {
    "dockerImage": "",
    "resourcePerInstance": {"cpu": 0, "memoryMB": 0, "gpu": 0},
    "commands": [""],
}
_ROOT_STAND_INS: dict[str, Any] = {"protocolVersion": 2, "name": "x", "type": "job"}


def repaired(root: Any, findings: Iterable[Finding]) -> dict[str, Any] | None:
    """The document with every faulty part taken out or replaced; None where too little is left."""
    if not isinstance(root, dict) or not isinstance(root.get("taskRoles"), dict) or not root["taskRoles"]:
        return None
    made: dict[str, Any] = {key: copy.deepcopy(value) for key, value in root.items()}
    for finding in findings:
        _take_out(made, finding.path)
    for key, value in _ROOT_STAND_INS.items():
        made.setdefault(key, value)
    for role in made["taskRoles"].values():
        for key, value in _ROLE_STAND_INS.items():
            role.setdefault(key, copy.deepcopy(value))
    return None if schema.JOB.check(made) else made


def still_true(finding: Finding, faults: Sequence[Finding]) -> bool:
    """Whether something found in the stand-in also holds for the document itself."""
    touched = {fault.path[:1] for fault in faults}
    about_names = finding.code in ("unknown-prerequisite", "template-unresolved", "unknown-deployment", "unknown-role")
    if about_names and touched & {("prerequisites",), ("parameters",), ("secrets",), ("deployments",)}:
        return False
    return not any(finding.path[: len(fault.path)] == fault.path for fault in faults if fault.path) and not any(
        fault.path == finding.path[: len(finding.path) - 1] and fault.code == "missing-key" for fault in faults
    )


def _take_out(made: dict[str, Any], path: Sequence[str | int]) -> None:
    if not path:
        return
    first = path[0]
    if first == "taskRoles" and len(path) > 1:
        role = made["taskRoles"].get(path[1])
        if len(path) == 2 or not isinstance(role, dict):
            # The name is bad, or a key is missing: the role stays, as far as it goes.
            if not isinstance(role, dict):
                made["taskRoles"][path[1]] = {}
            elif not _is_identifier(str(path[1])):
                del made["taskRoles"][path[1]]
            return
        role.pop(path[2], None)
    elif first == "prerequisites" and len(path) > 1 and isinstance(made.get("prerequisites"), list):
        # Places count: a faulty one is replaced, not removed.
        made["prerequisites"][path[1]] = {"name": f"faulty-{path[1]}", "type": "script"}
    else:
        made.pop(str(first), None)


def _is_identifier(name: str) -> bool:
    return name.isascii() and name.isidentifier()
