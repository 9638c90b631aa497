"""Changes made to a job file when it is read: `--set`, `--secret`, `--name`, `--deployment`, `--vc`."""

from __future__ import annotations

import re

from ..errors import did_you_mean
from ..values import Value
from .problems import Finding, Near, path_text
from .yaml import LIMITS, List, Map, YamlError, new_map, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .yaml import Document


class Override(Value):
    """One change: a path into the document and its new value; `option` is how the user said it."""

    path: tuple[str | int, ...]
    value: object
    option: str


class BadOverride(ValueError):
    """An option that cannot be understood."""


def parse_set(assignment: str) -> Override:
    """`taskRoles.worker.instances=4`: a dotted path and a value, typed as YAML would read it."""
    path_part, equals, value = assignment.partition("=")
    if not equals or not path_part.strip():
        raise BadOverride(f"--set {assignment}: write it as path=value, for instance parameters.lr=0.1")
    try:
        parsed = parse(value).root if value.strip() else ""
    except YamlError as error:
        raise BadOverride(f"--set {path_part}: the value is not YAML: {error.message}") from None
    return Override(parse_path(path_part.strip()), parsed, f"--set {path_part.strip()}")


def parse_path(text: str) -> tuple[str | int, ...]:
    """'taskRoles.w.commands[0]' as its steps."""
    steps: list[str | int] = []
    if text.count(".") + text.count("[") >= LIMITS.DEPTH:
        raise BadOverride(f"--set {text[:40]}…: a path has at most {LIMITS.DEPTH} steps")
    for part in text.split("."):
        found = re.fullmatch(r"([^\[\]]+)((?:\[\d+\])*)", part)
        if not found:
            raise BadOverride(f"--set {text}: '{part}' is not a key; write keys with dots and list items as [0]")
        steps.append(found[1])
        steps += [int(index) for index in re.findall(r"\d+", found[2])]
    return tuple(steps)


def apply(document: Document, changes: Sequence[Override]) -> tuple[dict[str, str], list[Finding]]:
    """Change the document in place; return which paths come from which option, and what did not fit."""
    overridden: dict[str, str] = {}
    findings: list[Finding] = []
    for change in changes:
        problem, near = (_TOO_DEEP, None) if _is_too_deep(change) else _put(document.root, change)
        if problem:
            findings.append(Finding("bad-override", problem, change.path, near=near))
        overridden[path_text(change.path)] = change.option
    return overridden, findings


def with_what_was_meant(findings: Sequence[Finding], root: Any, overridden: dict[str, str]) -> list[Finding]:
    """`--set lr=3` and `--set worker.instances=2` lack the section; the findings about them name the whole path."""
    return [_with_section(each, root, overridden) if each.code == "unknown-key" else each for each in findings]


_SECTIONS = ("parameters", "secrets", "taskRoles")


def _with_section(finding: Finding, root: Any, overridden: dict[str, str]) -> Finding:
    if len(finding.path) != 1:
        return finding
    word = str(finding.path[0])
    said = next((path for path in overridden if path == word or path.startswith((f"{word}.", f"{word}["))), None)
    section = next((name for name in _SECTIONS if isinstance(root.get(name), dict) and word in root[name]), None)
    if said is None or section is None:
        return finding
    meant = did_you_mean(f"{section}.{said}")
    return finding.replace(message=finding.message + meant, path=parse_path(said), near=None)


_TOO_DEEP = f"is nested deeper than {LIMITS.DEPTH} levels"


def _is_too_deep(change: Override) -> bool:
    """Whether a value that did not come through our reader goes deeper than it allows."""
    level = [change.value]
    for _ in range(LIMITS.DEPTH - len(change.path)):
        level = [
            item
            for value in level
            if isinstance(value, dict | list | tuple)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True


def _put(root: Any, change: Override) -> tuple[str, Near | None]:
    """Why a change does not fit, or nothing."""
    node, done = root, ""
    if change.path[0] == "secrets" and isinstance(root, dict) and root.get("secrets") == "******":
        root["secrets"] = new_map(getattr(root, "at", 0))  # a masked copy gets its secrets back
    for position, step in enumerate(change.path):
        last = position == len(change.path) - 1
        if isinstance(node, dict) and isinstance(step, str):
            if last:
                node[step] = change.value
                if isinstance(node, Map):
                    node.marks.setdefault(step, node.at)
                return "", None
            if step not in node or node[step] is None:
                if position == 1 and change.path[0] == "taskRoles":
                    return f"there is no task role '{step}'", Near(step, tuple(node))
                node[step] = new_map(node.at) if isinstance(node, Map) else {}
                if isinstance(node, Map):
                    node.marks[step] = node.at
            node = node[step]
        elif isinstance(node, list) and isinstance(step, int):
            if step > len(node) or (step == len(node) and not last):
                return f"'{done}' has {len(node)} items; the index {step} is too large", None
            if last:
                if step == len(node):
                    node.append(change.value)
                    if isinstance(node, List):
                        node.marks.append(node.at)
                else:
                    node[step] = change.value
                return "", None
            node = node[step]
        else:
            return f"'{done or 'the document'}' has no part '{step}'", None
        done = path_text(change.path[: position + 1])
    return "", None
