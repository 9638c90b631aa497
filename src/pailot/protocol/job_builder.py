"""A checked document as typed values, with references resolved and commands rendered."""

from __future__ import annotations

from ..job_values import Auth, Channels, Completion, Options, Resources, Storage
from ..printable import cut
from . import limits, schema
from . import prerequisites as used
from .js_semantics import to_string, trim
from .model import (
    EXIT,
    START,
    Callback,
    Deployment,
    DeploymentRole,
    Extras,
    Hived,
    HivedRole,
    Job,
    Prerequisite,
    RuntimePlugin,
    Secrets,
    TaskRole,
)
from .problems import Finding, Near
from .templates import FORGIVEN, Renderer, join_commands
from .yaml import YamlError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .reader import Library

PLUGIN_PREFIX = "com.microsoft.pai.runtimeplugin."
_EVENT_NAMES = {"taskStarts": START}


def build_job(root: Any, findings: list[Finding], *, lenient: bool, library: Library | None, legacy: bool) -> Job:
    """The job a document describes; problems with references and templates go to `findings`."""
    own = _own_prerequisites(root.get("prerequisites") or (), findings)
    shelf = used.Shelf(own, _from_library(library, findings))
    parameters = root.get("parameters") or {}
    secrets = root.get("secrets") or {}
    deployments = _deployments(root.get("deployments") or (), findings)
    defaults = root.get("defaults") or {}
    chosen = defaults.get("deployment")
    if chosen is not None and chosen not in deployments:
        message = f"there is no deployment '{cut(chosen)}'"
        near = Near(chosen, tuple(deployments))
        findings.append(Finding("unknown-deployment", message, ("defaults", "deployment"), near=near))
    extras = build_extras(root.get("extras") or {})
    adapted = deployments[chosen].roles if chosen in deployments else {}
    roles = {}
    allowance = limits.rendered()
    renderers: dict[Any, Renderer] = {}  # roles that refer to the same things render the same tags
    for name, node in root["taskRoles"].items():
        role = _task_role(name, node)
        needed = used.used_by(role, shelf, ("taskRoles", name), findings)
        references = (role.listed, role.data, role.script, role.output)
        renderer = renderers.get(references)
        if renderer is None:
            scope = used.scope_of(role, needed, shelf, parameters)
            renderer = renderers[references] = Renderer(scope, secrets, allowance=allowance)
        if legacy:  # the commands of v1 are no templates
            entrypoint = trim(join_commands(role.commands))
        else:
            entrypoint = _entrypoint(role, renderer, adapted.get(name), chosen, root, lenient, findings)
        roles[name] = role.replace(prerequisites=needed, scope=renderer.scope, entrypoint=entrypoint)
    findings += used.unknown_requirements(own, shelf)
    return Job(
        name=root["name"],
        task_roles=roles,
        version=to_string(root.get("version", "latest")),
        contributor=root.get("contributor", ""),
        description=root.get("description", ""),
        prerequisites=(*own, *shelf.borrowed()),
        parameters=parameters,
        secrets=Secrets(secrets),
        job_retry_count=root.get("jobRetryCount", 0),
        deployments=deployments,
        deployment=chosen if chosen in deployments else None,
        virtual_cluster=to_string(defaults.get("virtualCluster") or "default"),
        extras=extras,
        lenient=lenient,
        legacy=legacy,
    )


def prerequisite(node: Mapping[str, Any], path: tuple[str | int, ...]) -> Prerequisite:
    """One prerequisite of a checked document."""
    kind, uri = node["type"], node.get("uri")
    plugin = node.get("plugin") or ("docker" if kind == "dockerimage" else "cmd")
    ignore = node.get("failurePolicy") == "ignore"
    auth = node.get("auth")
    if kind != "dockerimage" and not _is_table_of_texts(auth):
        auth = None  # it means nothing there; where it looks like credentials, its password is hidden all the same
    fields = node if "version" in node else {**node, "version": "latest"}
    if kind == "data" and isinstance(uri, str):
        fields = {**fields, "uri": [uri]}
    return Prerequisite(
        name=node["name"],
        type=kind,
        plugin=plugin.removeprefix(PLUGIN_PREFIX),
        uri=tuple(uri) if isinstance(uri, list) else uri,
        require=tuple(node.get("require") or ()),
        callbacks=callbacks(node.get("callbacks") or (), ignore),
        ignore_failure=ignore,
        auth=Auth(auth.get("username", ""), auth.get("password", ""), auth.get("registryuri", "")) if auth else None,
        fields=fields,
        path=path,
    )


def _is_table_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def callbacks(nodes: Any, ignore: bool) -> tuple[Callback, ...]:
    """Callbacks with their own failure policy, or that of what they belong to."""
    if not nodes:
        return ()
    return tuple(
        Callback(
            _EVENT_NAMES.get(node["event"], node["event"]),
            tuple(node["commands"]),
            node["failurePolicy"] == "ignore" if "failurePolicy" in node else ignore,
        )
        for node in nodes
    )


def build_extras(node: Mapping[str, Any]) -> Extras:
    """The parts of `extras` that Pailot understands."""
    if not node:
        return Extras()
    storages = node.get("storages")
    hived = node.get("hivedScheduler") or node.get("hivedscheduler")
    return Extras(
        gang=node.get("gangAllocation", True) is True,
        storages=None
        if storages is None
        else tuple(
            Storage(each["name"], each.get("mountPath") or f"/mnt/{each['name']}") for each in storages if each.get("name")
        ),
        runtime_plugins=tuple(
            _runtime_plugin(position, each) for position, each in enumerate(node.get("com.microsoft.pai.runtimeplugin") or ())
        ),
        hived=_hived(hived) if hived else None,
        notify_on=frozenset(state for state, on in (node.get("jobStatusChangeNotification") or {}).items() if on is True),
        options=_options(node["pailot"]) if node.get("pailot") else Options(),
        raw=node,
    )


def _own_prerequisites(nodes: Any, findings: list[Finding]) -> tuple[Prerequisite, ...]:
    own, seen = [], set()
    for position, node in enumerate(nodes):
        each = prerequisite(node, ("prerequisites", position))
        if (each.type, each.name) in seen:
            message = f"there are two {each.type} prerequisites '{each.name}'; rename or remove one"
            findings.append(Finding("duplicate-prerequisite", message, (*each.path, "name")))
            continue
        seen.add((each.type, each.name))
        own.append(each)
    return tuple(own)


def _from_library(library: Library | None, findings: list[Finding]) -> Any:
    def find(name: str) -> Prerequisite | None:
        found = library(name) if library else None
        return None if found is None else read_prerequisite(*found, findings)

    return find


def read_prerequisite(text: str, origin: str, findings: list[Finding]) -> Prerequisite | None:
    """The prerequisite in a file of the library; its problems name that file."""
    try:
        root = parse(text).root
    except YamlError as error:
        findings.append(Finding(error.code, f"in {origin}: {error.message}"))
        return None
    problems = schema.PREREQUISITE.check(root)
    findings += [each.replace(message=f"in {origin}: {each.message}", path=()) for each in problems]
    return None if problems else prerequisite(root, ()).replace(source=origin)


def _deployments(nodes: Any, findings: list[Finding]) -> dict[str, Deployment]:
    deployments: dict[str, Deployment] = {}
    for position, node in enumerate(nodes):
        name = node["name"]
        if name in deployments:
            message = f"there are two deployments '{cut(name)}'; rename or remove one"
            findings.append(Finding("duplicate-deployment", message, ("deployments", position, "name")))
            continue
        deployments[name] = Deployment(
            name,
            {
                role: DeploymentRole(tuple(each.get("preCommands") or ()), tuple(each.get("postCommands") or ()))
                for role, each in node["taskRoles"].items()
            },
        )
    return deployments


def _task_role(name: str, node: Mapping[str, Any]) -> TaskRole:
    wanted, options = node["resourcePerInstance"], node.get("extraContainerOptions") or {}
    instances = node.get("instances", 1)
    completion = node.get("completion") or {}
    return TaskRole(
        name=name,
        instances=instances,
        completion=Completion(
            _bound(completion.get("minFailedInstances"), 1), _bound(completion.get("minSucceededInstances"), instances)
        ),
        task_retry_count=node.get("taskRetryCount", 0),
        resources=Resources(
            wanted["cpu"],
            wanted["memoryMB"],
            wanted["gpu"],
            options.get("shmMB") or None,
            bool(options.get("infiniband")),
            {"ssh": 1, "http": 1, **(wanted.get("ports") or {})},
        ),
        commands=tuple(node["commands"]),
        docker_image=node["dockerImage"],
        data=node.get("data"),
        output=node.get("output"),
        script=node.get("script"),
        listed=tuple(node.get("prerequisites") or ()),
    )


def _bound(value: int | None, default: int) -> int | None:
    return default if value is None else None if value < 0 else value


def _entrypoint(
    role: TaskRole,
    renderer: Renderer,
    adapted: DeploymentRole | None,
    deployment: str | None,
    root: Any,
    lenient: bool,
    findings: list[Finding],
) -> str:
    """The role's entry point: deployment and own commands, rendered as one template."""
    commands = [*adapted.pre_commands, *role.commands, *adapted.post_commands] if adapted else role.commands
    entrypoint = trim(renderer.render(join_commands(commands)))
    if renderer.issues:
        places = _command_places(role, deployment, root)
        for issue in renderer.issues.values():
            if lenient and issue.code in FORGIVEN:
                continue
            findings.append(issue.finding(places.get(issue.tag, ("taskRoles", role.name, "commands"))))
        renderer.issues.clear()
    return entrypoint


def _command_places(role: TaskRole, deployment: str | None, root: Any) -> dict[str, tuple[str | int, ...]]:
    """The command in which each tag stands first."""
    places: dict[str, tuple[str | int, ...]] = {}

    def add(base: tuple[str | int, ...], commands: Any) -> None:
        for index, command in enumerate(commands or ()):
            for part in command.split("<%")[1:]:
                tag, closed, _ = part.partition("%>")
                places.setdefault(f"<%{tag}%>" if closed else "<%", (*base, index))

    for position, node in enumerate(root.get("deployments") or ()):
        if node["name"] == deployment and role.name in node["taskRoles"]:
            for key in ("preCommands", "postCommands"):
                add(("deployments", position, "taskRoles", role.name, key), node["taskRoles"][role.name].get(key))
    add(("taskRoles", role.name, "commands"), role.commands)
    return places


def _hived(node: Mapping[str, Any]) -> Hived:
    return Hived(
        node.get("jobPriorityClass", "test"),
        {
            name: HivedRole(
                each.get("skuType") or each.get("gpuType"),
                each.get("pinnedCellId") or each.get("reservationId"),
                each.get("affinityGroupName"),
            )
            for name, each in (node.get("taskRoles") or {}).items()
        },
    )


def _runtime_plugin(position: int, node: Mapping[str, Any]) -> RuntimePlugin:
    return RuntimePlugin(
        node["plugin"].removeprefix(PLUGIN_PREFIX),
        node.get("parameters"),
        str(node.get("failurePolicy", "fail")).lower() == "ignore",
        tuple(node["taskroles"]) if "taskroles" in node else None,
        ("extras", "com.microsoft.pai.runtimeplugin", position),
    )


def _options(node: Mapping[str, Any]) -> Options:
    return Options(
        max_run_seconds=node.get("maxRunSeconds"),
        grace_seconds=node.get("graceSeconds", 30),
        retry_delay_seconds=node.get("retryDelaySeconds", 1),
        hold_on_failure_minutes=node.get("holdOnFailureMinutes", 0),
        hold_command=node.get("holdCommand"),
        code=node.get("code"),
        environment={name: to_string(value) for name, value in (node.get("environment") or {}).items()},
        data_dir=node.get("dataDir"),
        output_dir=node.get("outputDir"),
        gpu_type=node.get("gpuType"),
        auth_file=node.get("authFile"),
        port_base=node.get("portBase") or {},
        labels=node.get("labels") or {},
        channels=_channels(node["channels"]) if "channels" in node else None,
        after=_texts(node.get("after")),
    )


def _texts(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return a list that may be written as its only item."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def _channels(node: Mapping[str, Any]) -> Channels:
    inputs, outputs = node.get("inputs") or (), node.get("outputs") or ()
    return Channels(
        tuple(inputs),
        tuple(outputs),
        inputs if isinstance(inputs, dict) else {},
        outputs if isinstance(outputs, dict) else {},
        node.get("code"),
        node.get("hyperparameters"),
        bool(node.get("mount")),
    )


__all__ = ["EXIT", "PLUGIN_PREFIX", "build_extras", "build_job", "callbacks", "prerequisite", "read_prerequisite"]
