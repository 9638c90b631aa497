"""Job files from v1 to v2 and back; what the other version cannot say is told, never dropped in silence."""

from __future__ import annotations

import re

from ..problem import CODES, ERROR
from . import v1
from .problems import Finding
from .schema import IDENTIFIER
from .templates import secret_references
from .yaml.writer import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from .model import Job, Prerequisite, TaskRole
    from .yaml import Document
    from .yaml.document import Step


def to_v2(document: Document) -> tuple[dict[str, Any], list[Finding]]:
    """A v1 document as a v2 job file; findings name places of the v1 document. Empty if it has errors."""
    root, findings = v1.read(document)
    if not root:
        return {}, findings
    name = re.sub(r"[.~]", "-", root["name"])
    names = _renamed(root["taskRoles"])
    labels = {role: _renamed(node["resourcePerInstance"].get("ports", ())) for role, node in root["taskRoles"].items()}
    findings += _told_renames(v1.V1Document(document.text, document.root, ()), root["name"], name, names, labels)
    root["name"] = name
    root["taskRoles"] = {names[old]: _with_labels(role, labels[old]) for old, role in root["taskRoles"].items()}
    if "extras" in root:
        root["extras"] = _extras_with_names(root["extras"], names, labels)
    return _with_literal_commands(root), findings


def to_v1(job: Job) -> tuple[dict[str, Any], list[Finding]]:
    """A job as v1 JSON; findings name places of its v2 form. Empty if v1 cannot say it."""
    findings: list[Finding] = []
    extras = dict(job.extras.raw)
    own = dict(extras.pop("pailot", {}))
    taken = {key: own.pop(option) for key, option in v1.OPTIONS.items() if option in own}
    bases = {name: dict(base) for name, base in own.pop("portBase", {}).items()}
    converted = {
        "jobName": job.name,
        "image": _image(job, findings),
        **taken,
        "virtualCluster": job.virtual_cluster,
        "retryCount": job.job_retry_count,
        "taskRoles": [_v1_role(job, role, bases.get(role.name, {}), findings) for role in job.task_roles.values()],
    }
    bases = {name: base for name, base in bases.items() if base}
    own |= {"portBase": bases} if bases else {}
    extras |= {"pailot": own} if own else {}
    converted |= {"extras": extras} if extras else {}
    findings += _lost(job)
    findings += _kept_without_effect(job, own)
    converted = as_json(converted, (), findings)
    return ({} if any(CODES[finding.code] == ERROR for finding in findings) else converted), findings


# From v1 to v2

_OPENING = "openingTag"


def _identifier(name: str) -> str:
    repaired = re.sub(r"[.~]", "_", name)
    return repaired if re.fullmatch(IDENTIFIER, repaired) else f"_{repaired}"


def _renamed(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each; those that are one already stay, and no two become the same."""
    renamed = {name: name for name in names}
    taken = {name for name in renamed if _identifier(name) == name}
    numbers: dict[str, int] = {}
    for name in renamed:
        if name in taken:
            continue
        candidate = base = _identifier(name)
        number = numbers.get(base, 2)
        while candidate in taken:
            candidate, number = f"{base}_{number}", number + 1
        numbers[base] = number
        taken.add(candidate)
        renamed[name] = candidate
    return renamed


def _told_renames(
    document: v1.V1Document, old: str, new: str, roles: Mapping[str, str], labels: Mapping[str, Mapping[str, str]]
) -> Iterator[Finding]:
    def told(what: str, before: str, after: str, *path: Step) -> Finding:
        return Finding("lossy-conversion", f"v2 does not allow the {what} '{before}'; it is now '{after}'", path)

    if old != new:
        yield told("job name", old, new, "jobName")
    for position, (name, renamed) in enumerate(roles.items()):
        if name != renamed:
            yield told("role name", name, renamed, "taskRoles", position, "name")
        for label, other in labels[name].items():
            if label != other:
                *port, _ = document.path(("taskRoles", name, "resourcePerInstance", "ports", label))
                yield told("port label", label, other, *port, "label")


def _with_labels(role: Mapping[str, Any], labels: Mapping[str, str]) -> Mapping[str, Any]:
    resources = role["resourcePerInstance"]
    if "ports" in resources:
        resources["ports"] = {labels[label]: count for label, count in resources["ports"].items()}
    return role


def _extras_with_names(
    extras: Mapping[str, Any], names: Mapping[str, str], labels: Mapping[str, Mapping[str, str]]
) -> dict[str, object]:
    """The extras with the new names wherever they name a role or a port."""
    extras = dict(extras)
    for spelling in ("hivedScheduler", "hivedscheduler"):
        node = extras.get(spelling)
        if node and "taskRoles" in node:
            extras[spelling] = {**node, "taskRoles": {names.get(name, name): role for name, role in node["taskRoles"].items()}}
    key = "com.microsoft.pai.runtimeplugin"
    if key in extras:
        extras[key] = [
            {**each, "taskroles": [names.get(name, name) for name in each["taskroles"]]} if "taskroles" in each else each
            for each in extras[key]
        ]
    bases = extras.get("pailot", {}).get("portBase")
    if bases:
        bases = {
            names.get(name, name): {labels.get(name, {}).get(label, label): port for label, port in base.items()}
            for name, base in bases.items()
        }
        extras["pailot"] = {**extras["pailot"], "portBase": bases}
    return extras


def _with_literal_commands(root: dict[str, Any]) -> dict[str, Any]:
    """The commands of v2 are templates, those of v1 are not: '<%' becomes a parameter that holds it."""
    commands = [command for role in root["taskRoles"].values() for command in role["commands"]]
    if not any("<%" in command for command in commands):
        return root
    for role in root["taskRoles"].values():
        role["commands"] = [command.replace("<%", f"<% $parameters.{_OPENING} %>") for command in role["commands"]]
    head = {key: root[key] for key in ("protocolVersion", "name", "type")}
    return {**head, "parameters": {_OPENING: "<%"}, **root}


# From v2 to v1

_V2_SHM_MB = 512  # what OpenPAI gives where a v2 job does not say
_ALWAYS_THERE = ("ssh", "http")


def _lossy(message: str, *path: Step) -> Finding:
    return Finding("lossy-conversion", message, path, at_key=True)


def _images(job: Job) -> dict[str, Prerequisite]:
    """The image of each role."""
    images = {each.name: each for each in job.prerequisites if each.type == "dockerimage"}
    return {role.name: images[role.docker_image] for role in job.task_roles.values()}


def _image(job: Job, findings: list[Finding]) -> str:
    users: dict[str, list[str]] = {}
    for name, image in _images(job).items():
        users.setdefault(str(image.uri), []).append(name)
    if len(users) > 1:
        shown = "; ".join(f"{_quoted(roles)}: {uri}" for uri, roles in users.items())
        other = [*users.values()][1][0]
        message = f"v1 has one image for all roles, here there are {len(users)}: {shown}"
        findings.append(Finding("cannot-convert", message, ("taskRoles", other, "dockerImage")))
    uri, roles = next(iter(users.items()))
    if not uri:
        message = f"v1 needs an image, and that of {_quoted(roles)} is empty"
        findings.append(Finding("cannot-convert", message, ("taskRoles", roles[0], "dockerImage")))
    return uri


def _v1_role(job: Job, role: TaskRole, base: dict[str, int], findings: list[Finding]) -> dict[str, object]:
    """The role in v1; takes from `base` the first ports it can say."""
    wanted, at = role.resources, ("taskRoles", role.name, "resourcePerInstance")
    memory = _raised(wanted.memory_mb, v1.MIN_MEMORY_MB, (*at, "memoryMB"), findings)
    ports = [
        {"label": label, "beginAt": base.pop(label, 0), "portNumber": count}
        for label, count in wanted.ports.items()
        if label not in _ALWAYS_THERE or count != 1 or label in base
    ]
    return {
        "name": role.name,
        "taskNumber": role.instances,
        "cpuNumber": _raised(wanted.cpu, 1, (*at, "cpu"), findings),
        "memoryMB": memory,
        "shmMB": _shared_memory(role, memory, findings),
        "gpuNumber": wanted.gpu,
        **({"portList": ports} if ports else {}),
        "command": _command(role, job.secrets.names(), findings),
        "minFailedTaskCount": _reachable(role.completion.min_failed, role.instances),
        "minSucceededTaskCount": _reachable(role.completion.min_succeeded, role.instances),
    }


def _raised(value: int, least: int, path: tuple[Step, ...], findings: list[Finding]) -> int:
    if value < least:
        findings.append(_lossy(f"v1 needs at least {least} here; {value} is raised to it", *path))
    return max(value, least)


def _shared_memory(role: TaskRole, memory: int, findings: list[Finding]) -> int:
    wanted = role.resources.shm_mb
    if wanted is not None and wanted > memory:
        message = f"v1 does not allow more shared memory than memory; {wanted} MB is lowered to {memory}"
        findings.append(_lossy(message, "taskRoles", role.name, "extraContainerOptions", "shmMB"))
    return min(wanted or _V2_SHM_MB, memory)


def _command(role: TaskRole, secrets: tuple[str, ...], findings: list[Finding]) -> str:
    path = ("taskRoles", role.name, "commands")
    references = [reference[3:-3].split(".") for reference in secret_references(role.entrypoint)]
    for name in dict.fromkeys(steps[1] for steps in references if steps[1] in secrets):
        message = f"v1 has no secrets, and the commands of '{role.name}' use '{name}'"
        findings.append(Finding("cannot-convert", message, path, fragment=f"$secrets.{name}"))
    return role.entrypoint or "true"  # v1 allows no empty command; this one does as little


def _reachable(bound: int | None, instances: int) -> int | None:
    """v1 allows no bound above the number of tasks; null, like such a bound, never takes effect."""
    return None if bound is None or bound > instances else bound


def _lost(job: Job) -> Iterator[Finding]:
    """What v1 has no words for, each by name."""
    for key, value in (("version", job.version != "latest"), ("contributor", job.contributor), ("description", job.description)):
        if value:
            yield _lossy(f"v1 has no '{key}'; it is left out", key)
    if job.secrets.names():
        yield _lossy(f"v1 has no 'secrets'; {_quoted(job.secrets.names())} is left out", "secrets")
    others = [name for name in job.deployments if name != job.deployment]
    if others:
        yield _lossy(f"v1 has no 'deployments'; {_quoted(others)} is left out", "deployments")
    retried = [role.name for role in job.task_roles.values() if role.task_retry_count]
    if retried:
        message = f"v1 has no 'taskRetryCount'; failed tasks of {_quoted(retried)} are not tried again"
        yield _lossy(message, "taskRoles", retried[0], "taskRetryCount")
    linked = [role.name for role in job.task_roles.values() if role.resources.infiniband]
    if linked:
        message = f"v1 has no 'infiniband'; {_quoted(linked)} runs without"
        yield _lossy(message, "taskRoles", linked[0], "extraContainerOptions", "infiniband")
    yield from _lost_prerequisites(job)


def _lost_prerequisites(job: Job) -> Iterator[Finding]:
    """Those that do something; a mere address is in the rendered commands already."""
    used = {(each.type, each.name): (each, role.name) for role in job.task_roles.values() for each in role.prerequisites}
    for each, role in used.values():
        what = f"the {each.type} '{each.name}'"
        place = each.path or ("taskRoles", role)
        if each.auth is not None:
            yield _lossy(f"v1 has no 'auth'; write that of {what} to a file and name it in authFile", *place, "auth")
        if each.callbacks or each.fields.get("preCommands") or each.fields.get("postCommands"):
            yield _lossy(f"v1 has no 'callbacks'; those of {what} never run", *place, "callbacks")
        elif each.plugin not in ("cmd", "docker"):
            yield _lossy(f"v1 has no 'plugin'; '{each.plugin}' does nothing for {what}", *place, "plugin")


def _kept_without_effect(job: Job, options: Mapping[str, Any]) -> Iterator[Finding]:
    """Extras that a v2 platform acts on; they stay in the file, but no v1 server reads them."""
    extras = job.extras
    hived = "hivedScheduler" if "hivedScheduler" in extras.raw else "hivedscheduler"
    acted_on = {
        "gangAllocation": not extras.gang,
        hived: extras.hived is not None,
        "storages": extras.storages is not None,
        "com.microsoft.pai.runtimeplugin": extras.runtime_plugins,
        "jobStatusChangeNotification": extras.notify_on,
    }
    paths: list[tuple[str, ...]] = [("extras", key) for key, used in acted_on.items() if used]
    paths += [("extras", "pailot", option) for option in options]
    for path in paths:
        yield _lossy(f"'{path[-1]}' stays under 'extras', but OpenPAI's v1 does nothing with it", *path)


def as_json(value: Any, path: tuple[Step, ...], findings: list[Finding]) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, dict):
        return {key: as_json(item, (*path, key), findings) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item, (*path, position), findings) for position, item in enumerate(value)]
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and abs(value) < float("inf")):
        return value

    text = dump(value).strip()
    findings.append(_lossy(f"JSON cannot hold {text}; it is now a text", *path))
    return text


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
