"""A stand-in for a document with errors, so that the rest of it can be checked in the same go.

Only what is faulty is taken out, not what it is part of; and what the rest says about something that was taken out is
not told, since it may be right.
"""

from __future__ import annotations

from ..errors import nearest
from ..values import Value
from . import schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .problems import Finding
    from .yaml.document import Step

    Path = tuple[Step, ...]

MOST_ROUNDS = 8
"""A fault whose removal leaves another (a list without items, a key that is needed) is taken out with what it is part of."""
_ROOT = {"protocolVersion": 2, "name": "x", "type": "job", "taskRoles": {}}
_RESOURCES = {"cpu": 0, "memoryMB": 0, "gpu": 0}
_ROLE = {"dockerImage": "", "resourcePerInstance": _RESOURCES, "commands": [""]}
_PREREQUISITE = {"name": "", "type": "script", "uri": ""}
_CALLBACK = {"event": "containerStart", "commands": [""]}
_DEPLOYMENT = {"name": "", "taskRoles": {}}
_TOLERATED = frozenset(("bad-name", "too-few"))
"""What does not keep a stand-in from being built: others may refer to it by its wrong name."""
_REFERENCES = frozenset(("prerequisites", "script", "data", "output"))


class StandIn(Value):
    """A document that can be built, and what was taken out of the real one."""

    root: dict[str, object]
    removed: frozenset[Path]
    """Places that do not say what the document says."""
    lost: frozenset[str]
    """Words that perhaps name something all the same."""


def stand_in(root: Any, faults: Sequence[Finding]) -> StandIn | None:
    """The document with every faulty part taken out or replaced; None where too little is left."""
    if not isinstance(root, dict):
        return None
    made: dict[str, object] = _copy(root)
    removed: set[Path] = set()
    found: Iterable[Finding] = faults
    for _ in range(MOST_ROUNDS):
        left = [fault for fault in found if fault.code not in _TOLERATED]
        if not left:
            return StandIn(made, frozenset(removed), frozenset(_lost_words(root, faults, removed)))
        for fault in left:
            removed.update(_mend(made, fault, removed))
        found = schema.JOB.check(made)
    return None


def still_true(findings: Iterable[Finding], used: StandIn) -> list[Finding]:
    """What of the findings in the stand-in also holds for the document itself."""
    return [finding for finding in findings if _holds(finding, used)]


def _holds(finding: Finding, used: StandIn) -> bool:
    path = finding.path
    if any(path[:count] in used.removed for count in range(1, len(path) + 1)):
        return False
    if finding.code == "template-unresolved":
        tag = finding.fragment
        if any(word in tag for word in used.lost):
            return False
        return "$parameters" in tag or "$secrets" in tag or not _may_be_named(path, used)
    if finding.code in ("unknown-prerequisite", "unknown-deployment", "unknown-role"):
        kind = finding.code.removeprefix("unknown-")
        return f"any {kind}" not in used.lost and (finding.near is None or finding.near.word not in used.lost)
    return True


def _may_be_named(path: Path, used: StandIn) -> bool:
    """Whether a template can perhaps name more than the stand-in has: what is in prerequisites that are faulty."""
    if any(each[:1] == ("prerequisites",) and (len(each) <= 2 or each[2] in ("name", "type")) for each in used.removed):
        return True
    return path[:1] == ("taskRoles",) and any(
        each[:2] == path[:2] and len(each) > 2 and each[2] in _REFERENCES for each in used.removed
    )


def _lost_words(root: dict[str, object], faults: Iterable[Finding], removed: Iterable[Path]) -> Iterable[str]:
    """Names of what was taken out, and of what was perhaps meant by keys that are not known."""
    for path in removed:
        yield from (step for step in path[-1:] if isinstance(step, str))
        kind = {"prerequisites": "prerequisite", "deployments": "deployment", "taskRoles": "role"}.get(str(path[0]))
        if kind and (len(path) == 1 or (kind != "role" and (len(path) == 2 or path[2] == "name"))):
            yield f"any {kind}"
        if path[0] == "prerequisites" and len(path) > 1:
            name = _at(root, (*path[:2], "name"))
            if isinstance(name, str) and name:
                yield name
    for fault in faults:
        if fault.code == "unknown-key" and fault.near is not None:
            meant = nearest(fault.near.word, fault.near.known)
            if meant:
                yield meant
                if len(fault.path) == 1 and meant in ("prerequisites", "deployments"):
                    yield f"any {meant.removesuffix('s')}"


def _mend(made: dict[str, object], fault: Finding, removed: set[Path]) -> Iterable[Path]:
    """Take one fault out of a document; returns the places that no longer say what they said."""
    path = fault.path
    if fault.code == "missing-key":
        return _fill(made, path)
    value = _at(made, path)
    if value is None and path in removed:
        path = path[:-1]  # taking it out was not enough
    return [_take_out(made, path)]


def _fill(made: dict[str, object], path: Path) -> list[Path]:
    """Add what is missing in a part of the document."""
    node, wanted = _at(made, path), _stand_in_for(path)
    if not isinstance(node, dict) or wanted is None:
        return [_take_out(made, path)]
    missing = [key for key in wanted if key not in node]
    node.update({key: _copy(wanted[key]) for key in missing})
    return [(*path, key) for key in missing]


def _take_out(made: dict[str, object], path: Path) -> Path:
    """Remove the value at a path; in a list, where places count, something harmless comes in its place."""
    if not path:
        made.clear()
        return path
    parent, step = _at(made, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent.pop(step, None)
        if path[:1] == ("taskRoles",) and len(path) == 2:
            parent[step] = {}
    elif isinstance(parent, list) and isinstance(step, int) and step < len(parent):
        parent[step] = _copy(_stand_in_for(path) or "")
    return path


def _stand_in_for(path: Path) -> dict[str, Any] | None:
    """The least that must stand at a place of the document, as far as it is a mapping with keys that it needs."""
    match path:
        case ():
            return _ROOT
        case ("taskRoles", str()):
            return _ROLE
        case ("taskRoles", str(), "resourcePerInstance"):
            return _RESOURCES
        case ("prerequisites", int()):
            return _PREREQUISITE
        case ("prerequisites", int(), "callbacks", int()):
            return _CALLBACK
        case ("deployments", int()):
            return _DEPLOYMENT
        case _:
            return None


def _at(node: Any, path: Sequence[Step]) -> Any:
    """The value at a path, None if there is none."""
    for step in path:
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            return None
    return node


def _copy(value: Any) -> Any:
    """A copy to change, without the places; `deepcopy` takes ten times as long."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
