"""Jobs of OpenPAI 0.x: the v1 JSON that Luigi's `PaiTask` and old clients send, read as v2.

Problems name places of the v1 document. What is found later, in the v2 form, is led back by `V1Document`.
"""

from __future__ import annotations

from ..problem import CODES, ERROR
from . import schema
from .js_semantics import trim
from .problems import Finding
from .schema import EXTRAS, PAILOT
from .schema_types import ListOf, Record, Shape, Text, Whole
from .yaml import Document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from .yaml.document import Path, Step

IMAGE = "image"
"""Name of the one dockerimage prerequisite that a v1 job becomes."""
MIN_MEMORY_MB = 100
SHM_MB = 64
"""Shared memory where the job does not say."""


def looks_like_v1(root: object) -> bool:
    """Whether a document is a v1 job rather than a (perhaps broken) v2 one."""
    return isinstance(root, dict) and "jobName" in root and "protocolVersion" not in root


def read(document: Document) -> tuple[dict[str, Any], list[Finding]]:
    """The job in v2 form, and what is wrong with it; with errors the form is empty.

    Names may still hold '.' and '~', and commands are no templates.
    """
    findings = _check(document.root)
    if any(CODES[finding.code] == ERROR for finding in findings):
        return {}, findings
    return _as_v2(document.root), findings


class V1Document(Document):
    """A v1 document that knows where the parts of its v2 form stand."""

    __slots__ = ("_positions",)

    def __init__(self, text: str, root: Any, ambiguous: Sequence[tuple[int, str, str]]) -> None:
        super().__init__(text, root, ambiguous)
        self._positions: dict[int, dict[Any, int]] = {}
        """Of the roles of a job, and of the ports of a role, by the list's identity: where each name stands."""

    def offset(self, path: Path, *, key: bool = False) -> int:
        return super().offset(self.path(path), key=key)

    def path(self, path: Path) -> tuple[Step, ...]:
        """The place in v1 of a place in the v2 form; a path that is v1 already stays as it is."""
        path = tuple(path)
        if _holds(self.root, path):
            return path
        if path[:1] == ("taskRoles",) and len(path) > 1:
            return self._role_path(self.root.get("taskRoles"), path)
        for known, place in _PLACES:
            if path[: len(known)] == known:
                return place
        if path[:3] == ("extras", "pailot", "environment"):
            return ("jobEnvs", *path[3:])
        return path

    def _role_path(self, roles: Any, path: tuple[Step, ...]) -> tuple[Step, ...]:
        _, name, *rest = path
        position = self._position(roles, "name", name)
        if position is None:
            return path
        base = ("taskRoles", position)
        if rest[:1] == ["dockerImage"]:
            return ("image",)
        if rest[:2] == ["resourcePerInstance", "ports"] and len(rest) > 2:
            port = self._position(roles[position].get("portList"), "label", rest[2])
            return (*base, "portList") if port is None else (*base, "portList", port, "portNumber")
        for known, place in _ROLE_PLACES:
            if tuple(rest[: len(known)]) == known:
                return (*base, *place)
        return (*base, *rest)

    def _position(self, items: Any, key: str, name: Step) -> int | None:
        """Where the item with a name stands in a list, the first of them if they are several."""
        if not isinstance(items, list):
            return None
        found = self._positions.get(id(items))
        if found is None:
            named = [(at, item.get(key)) for at, item in enumerate(items) if isinstance(item, dict)]
            found = self._positions[id(items)] = {each: at for at, each in reversed(named) if isinstance(each, str)}
        return found.get(name)


def job_shape() -> Record:
    """What a v1 job may hold; made when it is needed, since almost every job is v2."""
    return Record(
        {
            "jobName": Text("Name of the job.", pattern=r"[A-Za-z0-9._~-]+", hint=f"{_NAME_HINT}, and '-'", longest=255),
            "image": Text("Docker image of all roles.", shortest=1),
            "authFile": Text("File with registry, user and password.", nullable=True),
            "dataDir": Text("Where the data is.", nullable=True),
            "outputDir": Text("Where output goes.", nullable=True),
            "codeDir": Text("Code brought to every task.", nullable=True),
            "virtualCluster": Text("Virtual cluster; 'default' by default.", nullable=True),
            "gpuType": Text("Type of GPU to run on.", nullable=True),
            "retryCount": Whole("How often a failed job is tried again; 0 by default.", least=0, most=schema.MOST_RETRIES),
            "killAllOnCompletedTaskNumber": Whole("Obsolete.", nullable=True),
            "jobEnvs": _OrNull(PAILOT.fields["environment"]),
            "extras": _OrNull(EXTRAS),
            "taskRoles": ListOf(_role_shape(), "The kinds of task the job has.", least=1, expected="a list of task roles"),
        },
        "An OpenPAI job, version 1.",
        required=("jobName", "image", "taskRoles"),
        what="in a v1 job",
    )


class _OrNull(Shape):
    """A shape that may also be null, as clients send what was not set."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def check(self, value: Any) -> Sequence[Finding]:
        return () if value is None else self.shape.check(value)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.shape.schema(), {"type": "null"}]}


# Keys of a v1 job that are options of ours in v2.
OPTIONS = {
    "codeDir": "code",
    "dataDir": "dataDir",
    "outputDir": "outputDir",
    "gpuType": "gpuType",
    "authFile": "authFile",
    "jobEnvs": "environment",
}

_NAME = r"[A-Za-z0-9._~]+"
_NAME_HINT = "use only letters, digits, '.', '_' and '~'"
_PLACES: list[tuple[tuple[Step, ...], tuple[Step, ...]]] = [
    (("name",), ("jobName",)),
    (("jobRetryCount",), ("retryCount",)),
    (("prerequisites",), ("image",)),
    (("defaults", "virtualCluster"), ("virtualCluster",)),
    *[(("extras", "pailot", option), (key,)) for key, option in OPTIONS.items() if key != "jobEnvs"],
]
_ROLE_PLACES: list[tuple[tuple[Step, ...], tuple[Step, ...]]] = [
    (("instances",), ("taskNumber",)),
    (("commands",), ("command",)),
    (("resourcePerInstance", "cpu"), ("cpuNumber",)),
    (("resourcePerInstance", "memoryMB"), ("memoryMB",)),
    (("resourcePerInstance", "gpu"), ("gpuNumber",)),
    (("resourcePerInstance", "ports"), ("portList",)),
    (("extraContainerOptions", "shmMB"), ("shmMB",)),
    (("completion", "minFailedInstances"), ("minFailedTaskCount",)),
    (("completion", "minSucceededInstances"), ("minSucceededTaskCount",)),
]


def _role_shape() -> Record:
    return Record(
        {
            "name": Text("Name of the role.", pattern=_NAME, hint=_NAME_HINT),
            "taskNumber": Whole("Number of tasks; 1 by default.", least=1, most=schema.MOST_TASKS),
            "cpuNumber": Whole("CPUs of one task; 1 by default.", least=1, most=schema.MOST_CPUS),
            "memoryMB": Whole(f"Memory of one task; {MIN_MEMORY_MB} by default.", least=MIN_MEMORY_MB, most=schema.MOST_MB),
            "shmMB": Whole(f"Size of /dev/shm, within the memory; {SHM_MB} by default.", least=0, most=schema.MOST_MB),
            "gpuNumber": Whole("GPUs of one task; 0 by default.", least=0, most=schema.MOST_GPUS),
            "portList": _OrNull(ListOf(_port_shape(), "Ports wanted, besides 'ssh' and 'http'.", expected="a list of ports")),
            "command": Text("The command to run."),
            "minFailedTaskCount": Whole(
                "So many failed tasks fail the job; 1 by default, null: never.", least=1, most=schema.MOST_TASKS, nullable=True
            ),
            "minSucceededTaskCount": Whole(
                "So many succeeded tasks end the job; null (default): never.", least=1, most=schema.MOST_TASKS, nullable=True
            ),
        },
        required=("name", "command"),
        what="in a task role of a v1 job",
    )


def _port_shape() -> Record:
    return Record(
        {
            "label": Text("Name of these ports.", pattern=_NAME, hint=_NAME_HINT),
            "beginAt": Whole("First port; 0 (default) for any.", least=0, most=schema.MOST_PORTS),
            "portNumber": Whole("How many ports; 1 by default.", least=1, most=schema.MOST_PORTS),
        },
        required=("label",),
        what="in a port",
    )


def _check(root: Any) -> list[Finding]:
    findings = list(job_shape().check(root))
    if not isinstance(root, dict):
        return findings
    broken = {finding.path[1] for finding in findings if finding.path[:1] == ("taskRoles",) and len(finding.path) > 1}
    roles = root["taskRoles"] if isinstance(root.get("taskRoles"), list) else []
    sound = {position: role for position, role in enumerate(roles) if position not in broken}
    for position, role in sound.items():
        findings += [finding.below("taskRoles", position) for finding in _check_role(role)]
    for position in _repeated({position: role["name"] for position, role in sound.items()}):
        message = f"there are two task roles '{roles[position]['name']}'; rename one"
        findings.append(Finding("duplicate-role", message, ("taskRoles", position, "name")))
    if root.get("killAllOnCompletedTaskNumber") is not None:
        message = "'killAllOnCompletedTaskNumber' is obsolete and ignored; say it with minSucceededTaskCount"
        findings.append(Finding("ignored-key", message, ("killAllOnCompletedTaskNumber",), at_key=True))
    return findings


def _check_role(role: Mapping[str, Any]) -> Iterator[Finding]:
    """Rules between the keys of one role, each of which is right in itself."""
    if not trim(role["command"]):
        yield Finding("bad-value", "the command is empty", ("command",))
    memory, shm = role.get("memoryMB", MIN_MEMORY_MB), role.get("shmMB", SHM_MB)
    if shm > memory:
        message = f"{shm} MB of shared memory is more than the {memory} MB of memory it counts against; raise memoryMB"
        yield Finding("out-of-range", message, ("shmMB",))
    tasks = role.get("taskNumber", 1)
    for key in ("minFailedTaskCount", "minSucceededTaskCount"):
        if (role.get(key) or 0) > tasks:
            message = f"should be at most the number of tasks, {tasks}, is {role[key]}; use null to switch it off"
            yield Finding("out-of-range", message, (key,))
    labels = {position: port["label"] for position, port in enumerate(role.get("portList") or ())}
    for position in _repeated(labels):
        message = f"there are two ports '{labels[position]}'; rename one, or raise portNumber"
        yield Finding("bad-value", message, ("portList", position, "label"))


def _repeated(names: Mapping[int, str]) -> Iterator[int]:
    seen = set()
    for position, name in names.items():
        if name in seen:
            yield position
        seen.add(name)


def _as_v2(root: Mapping[str, Any]) -> dict[str, object]:
    extras = _extras(root)
    return {
        "protocolVersion": 2,
        "name": root["jobName"],
        "type": "job",
        "jobRetryCount": root.get("retryCount", 0),
        "prerequisites": [{"name": IMAGE, "type": "dockerimage", "uri": root["image"]}],
        "taskRoles": {role["name"]: _role(role) for role in root["taskRoles"]},
        "defaults": {"virtualCluster": root.get("virtualCluster") or "default"},
        **({"extras": extras} if extras else {}),
    }


def _role(role: Mapping[str, Any]) -> dict[str, object]:
    ports = {port["label"]: port.get("portNumber", 1) for port in role.get("portList") or ()}
    return {
        "instances": role.get("taskNumber", 1),
        "completion": {
            "minFailedInstances": role.get("minFailedTaskCount", 1) or -1,
            "minSucceededInstances": role.get("minSucceededTaskCount") or -1,
        },
        "dockerImage": IMAGE,
        "resourcePerInstance": {
            "cpu": role.get("cpuNumber", 1),
            "memoryMB": role.get("memoryMB", MIN_MEMORY_MB),
            "gpu": role.get("gpuNumber", 0),
            **({"ports": ports} if ports else {}),
        },
        "extraContainerOptions": {"shmMB": role.get("shmMB", SHM_MB)},
        "commands": [role["command"]],
    }


def _extras(root: Mapping[str, Any]) -> dict[str, object]:
    """The job's own extras with our options; what the file says under `extras.pailot` itself wins."""
    extras = dict(root.get("extras") or {})
    own = extras.pop("pailot", {})
    environment = (root.get("jobEnvs") or {}) | own.get("environment", {})
    bases = {role["name"]: _port_bases(role) for role in root["taskRoles"]}
    for name, base in own.get("portBase", {}).items():
        bases[name] = bases.get(name, {}) | base
    options = {option: root.get(key) for key, option in OPTIONS.items()} | own
    options |= {"environment": environment, "portBase": {name: base for name, base in bases.items() if base}}
    options = {option: value for option, value in options.items() if value not in (None, "", {})}
    return {**extras, "pailot": options} if options else extras


def _port_bases(role: Mapping[str, Any]) -> dict[str, int]:
    return {port["label"]: port["beginAt"] for port in role.get("portList") or () if port.get("beginAt")}


def _holds(node: Any, path: Path) -> bool:
    """Whether there is something at the path."""
    for step in path:
        known = step in node if isinstance(node, dict) else isinstance(node, list) and step in range(len(node))
        if not known:
            return False
        node = node[step]
    return True
