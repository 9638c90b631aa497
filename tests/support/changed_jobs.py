"""A job to change in tests, and what the reader says of it."""

from __future__ import annotations

import copy
import json
from typing import Any

from pailot.protocol import InvalidJob, Job, Problem, read

BASE: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "demo",
    "type": "job",
    "prerequisites": [
        {"name": "image", "type": "dockerimage", "uri": "debian"},
        {"name": "set", "type": "data", "uri": ["https://data.example/set.tgz"]},
        {"name": "code", "type": "script", "uri": "git.example/code"},
        {"name": "model", "type": "output", "uri": "hdfs://out.example/model"},
    ],
    "parameters": {"lr": 0.1},
    "taskRoles": {
        "worker": {
            "dockerImage": "image",
            "data": "set",
            "script": "code",
            "output": "model",
            "resourcePerInstance": {"cpu": 1, "memoryMB": 1024, "gpu": 0},
            "commands": ["train --lr <% $parameters.lr %>"],
        }
    },
}
REMOVE = object()


def changed(*changes: tuple[str, Any]) -> dict[str, Any]:
    """The base job with values at dotted paths set (or removed)."""
    root = copy.deepcopy(BASE)
    for path, value in changes:
        steps: list[Any] = [int(step) if step.isdigit() else step for step in path.split("/")]
        *parents, last = steps
        node: Any = root
        for step in parents:
            node = node[step] if isinstance(node, list) else node.setdefault(step, {})
        if value is REMOVE:
            del node[last]
        elif isinstance(node, list) and last == len(node):
            node.append(value)
        else:
            node[last] = value
    return root


def problems(root: Any, **options: Any) -> tuple[Problem, ...]:
    """Errors and warnings of a job given as values."""
    try:
        return read(json.dumps(root, indent=1), file="job.json", **options).warnings
    except InvalidJob as invalid:
        return invalid.problems


def codes(*changes: tuple[str, Any], **options: Any) -> list[str]:
    return [problem.code for problem in problems(changed(*changes), **options)]


def job(*changes: tuple[str, Any], **options: Any) -> Job:
    return read(json.dumps(changed(*changes)), **options)
