"""A stand-in for a document with errors, so that the rest of it can be checked in the same go."""

from __future__ import annotations

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
_ABOUT_NAMES = frozenset(("unknown-prerequisite", "template-unresolved", "unknown-deployment", "unknown-role"))
_SOURCES_OF_NAMES = frozenset(("prerequisites", "parameters", "secrets", "deployments"))
_ROOT_STAND_INS: dict[str, Any] = {"protocolVersion": 2, "name": "x", "type": "job"}


def repaired(root: Any, findings: Iterable[Finding]) -> dict[str, Any] | None:
    """The document with every faulty part taken out or replaced; None where too little is left."""
    if not isinstance(root, dict) or not isinstance(root.get("taskRoles"), dict) or not root["taskRoles"]:
        return None
    made: dict[str, Any] = _copy(root)
    for finding in findings:
        _take_out(made, finding.path)
    for key, value in _ROOT_STAND_INS.items():
        made.setdefault(key, value)
    for role in made["taskRoles"].values():
        for key, value in _ROLE_STAND_INS.items():
            role.setdefault(key, _copy(value))
    return None if schema.JOB.check(made) else made


def still_true(findings: Iterable[Finding], faults: Sequence[Finding]) -> list[Finding]:
    """What of the findings in the stand-in also holds for the document itself."""
    faulty = {fault.path for fault in faults if fault.path}
    incomplete = {fault.path for fault in faults if fault.code == "missing-key"}
    names_lost = not _SOURCES_OF_NAMES.isdisjoint(path[0] for path in faulty)

    def holds(finding: Finding) -> bool:
        path = finding.path
        if names_lost and finding.code in _ABOUT_NAMES:
            return False
        return path[:-1] not in incomplete and not any(path[:count] in faulty for count in range(1, len(path) + 1))

    return [finding for finding in findings if holds(finding)]


def _copy(value: Any) -> Any:
    """A copy to change, without the places; `deepcopy` takes ten times as long."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


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
