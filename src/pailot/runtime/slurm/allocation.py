"""What Slurm tells a batch script about its allocation, and how a step in it is asked for."""

from __future__ import annotations

import re

from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COUNT = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")


class Slot(Value):
    """Room for one task: its node, and the component of a heterogeneous job that holds it (-1: a plain one)."""

    node: str
    group: int = -1


def expand(listed: str) -> list[str]:
    """The names in a list of nodes as Slurm writes it: `n[1-2,07],login` is n1, n2, n07 and login."""
    names: list[str] = []
    for part in _split(listed):
        names += _expand_one(part)
    return names


def counts(listed: str) -> list[int]:
    """`2(x3),1` as 2, 2, 2, 1."""
    found: list[int] = []
    for part in listed.split(",") if listed else ():
        match = _COUNT.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{listed!r} is no list of task counts")
        found += [int(match[1])] * int(match[2] or 1)
    return found


def slots(environment: Mapping[str, str]) -> list[list[Slot]]:
    """The room of each component, node after node; a plain job is its only component."""
    size = environment.get("SLURM_HET_SIZE")
    if not size:
        return [_component(environment, "", -1)]
    return [_component(environment, f"_HET_GROUP_{group}", group) for group in range(int(size))]


def _component(environment: Mapping[str, str], suffix: str, group: int) -> list[Slot]:
    nodes = expand(environment[f"SLURM_JOB_NODELIST{suffix}"])
    each = counts(environment.get(f"SLURM_TASKS_PER_NODE{suffix}", ""))
    each += [1] * (len(nodes) - len(each))
    return [Slot(node, group) for node, count in zip(nodes, each) for _ in range(count)]  # noqa: B905  # Python 3.9


def srun(slot: Slot, *, name: str, cpus: int, memory_mb: int, gpus: str, command: Sequence[str]) -> list[str]:
    """The words that start one step on one node, beside the others of the job."""
    words = ["srun", "--nodes=1", "--ntasks=1", "--exact", f"--nodelist={slot.node}", f"--cpus-per-task={cpus}"]
    if slot.group >= 0:
        words.insert(1, f"--het-group={slot.group}")
    if memory_mb:
        words.append(f"--mem={memory_mb}M")
    words.append(f"--gres={gpus or 'none'}")
    # Unbuffered: a line of the step is news. The others live on if this one fails.
    words += ["--kill-on-bad-exit=0", "--unbuffered", "--quiet", f"--job-name={name}", "--input=all", *command]
    return words


def _split(listed: str) -> list[str]:
    """At the commas that stand outside brackets."""
    parts, depth, begin = [], 0, 0
    for position, character in enumerate(listed):
        depth += (character == "[") - (character == "]")
        if character == "," and not depth:
            parts.append(listed[begin:position])
            begin = position + 1
    parts.append(listed[begin:])
    return [part for part in parts if part]


def _expand_one(part: str) -> list[str]:
    before, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, closing, after = rest.partition("]")
    if not closing:
        raise ValueError(f"{part!r} is no list of nodes")
    names: list[str] = []
    tails = _expand_one(after)
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            raise ValueError(f"{part!r} is no list of nodes")
        first, last = match[1], match[2] or match[1]
        for number in range(int(first), int(last) + 1):
            names += [f"{before}{number:0{len(first)}}{tail}" for tail in tails]
    return names
