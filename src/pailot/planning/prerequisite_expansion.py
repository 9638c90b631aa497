"""Prerequisites and runtime plugins of a role, turned by their plugins into callbacks."""

from __future__ import annotations

from ..job_values import Storage
from ..protocol import limits
from ..protocol.checks import BUILTIN_PLUGINS, CallbackRenderers
from ..protocol.model import EXIT, FAILS, START, SUCCEEDS, Callback
from ..protocol.problems import Finding
from ..protocol.references import LATEST, version_of
from ..runfolder.plan import STORAGES, PlannedCallback, Provision
from .environment import converted
from .plugins import PluginError, Steps, find
from .plugins.plugin_api import callbacks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..protocol.model import Job, Prerequisite, RuntimePlugin, TaskRole
    from ..protocol.templates import Renderer


_COMMANDS = frozenset(("preCommands", "postCommands"))
TEAMWISE_STORAGE = "teamwise_storage"
MAX_SSH_TASKS = 1_000  # each task knows all others by variables, and the kernel bounds their size


class Expansion:
    """What the prerequisites of one role come to."""

    __slots__ = ("callbacks", "provisions", "findings")

    def __init__(self) -> None:
        self.callbacks: list[PlannedCallback] = []
        self.provisions: list[Provision] = []
        self.findings: list[Finding] = []

    def add(self, name: str, steps: Steps) -> None:
        self.callbacks += [
            PlannedCallback(name, each.event, each.commands, each.ignore_failure) for each in steps.callbacks if each.commands
        ]
        self.provisions += steps.provisions

    def found(self, code: str, message: str, path: tuple[str | int, ...]) -> None:
        self.findings.append(Finding(code, message, path))


class Expander:
    """Expands the roles of one job; what they have in common is made once, and their allowances are shared."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.task_count = job.task_count
        self._renderers = CallbackRenderers(job)
        self._uses = limits.uses()
        self._plugins = [
            (each, None if each.roles is None else frozenset(each.roles))
            for each in job.extras.runtime_plugins
            if each.plugin != TEAMWISE_STORAGE
        ]

    def expand(self, role: TaskRole) -> Expansion:
        """Callbacks of the role in start order: its prerequisites, then the plugins in `extras`; may raise TooMuch."""
        expansion = Expansion()
        self._uses.take(len(role.prerequisites) + len(self._plugins))
        for each in role.prerequisites:
            if each.plugin in ("cmd", "docker") and not each.callbacks and _COMMANDS.isdisjoint(each.fields):
                continue
            prerequisite = {
                **each.fields,
                "callbacks": each.callbacks,
                "failurePolicy": "ignore" if each.ignore_failure else "fail",
            }
            renderer = self._renderers.of(role, each)
            before = len(expansion.provisions)
            _run(self.job, expansion, each.plugin, each.name, each.path, prerequisite, renderer)
            if label := _shared_label(each):
                made = expansion.provisions
                made[before:] = [one.replace(shared=label) if one.kind == "fetch" else one for one in made[before:]]
        for plugin, roles in self._plugins:
            if roles is None or role.name in roles or converted(role.name) in roles:
                self._add_plugin(expansion, plugin, self._renderers.of_plugin(role))
        return expansion

    def _add_plugin(self, expansion: Expansion, plugin: RuntimePlugin, renderer: Renderer) -> None:
        job = self.job
        parameters = plugin.parameters if isinstance(plugin.parameters, dict) else {}
        if plugin.parameters is not None and not isinstance(plugin.parameters, dict):
            message = f"plugin {plugin.plugin}: 'parameters' should be a mapping"
            expansion.found("plugin-parameters", message, (*plugin.path, "parameters"))
        if plugin.plugin == "ssh" and not job.extras.gang and parameters.get("jobssh"):
            message = "with gangAllocation: false the tasks do not wait for each other, so job ssh is off, as in OpenPAI"
            expansion.found("plugin-note", message, plugin.path)
            parameters = {**parameters, "jobssh": False}
        if plugin.plugin == "ssh" and parameters.get("jobssh") and self.task_count > MAX_SSH_TASKS:
            message = f"job ssh between {self.task_count} tasks is too much; at most {MAX_SSH_TASKS} can log in to each other"
            expansion.found("plugin-parameters", message, plugin.path)
        policy = {"failurePolicy": "ignore" if plugin.ignore_failure else "fail"}
        _run(job, expansion, plugin.plugin, plugin.plugin, (*plugin.path, "parameters"), {**parameters, **policy}, renderer)


def _shared_label(each: Prerequisite) -> str:
    """NAME@VERSION of a data set of the library whose content is the same for every job; empty for any other prerequisite.

    Its addresses must stand in its file as they are, and a version or a checksum must say which content is meant.
    """
    if each.path or each.type != "data" or each.plugin != "fetch" or "<%" in repr(each.uri):
        return ""
    version = version_of(each.fields)
    return f"{each.name}@{version}" if version != LATEST or each.fields.get("sha256") else ""


def storages(job: Job) -> tuple[tuple[Storage, ...], bool, str]:
    """Storages to mount, whether the user's default ones are meant, and what in the job file says so."""
    given = job.extras.storages
    if given is not None:
        return given, not given, STORAGES
    for plugin in job.extras.runtime_plugins:
        if plugin.plugin == TEAMWISE_STORAGE:
            parameters = plugin.parameters if isinstance(plugin.parameters, dict) else {}
            names = parameters.get("storageConfigNames")
            if isinstance(names, list):
                return tuple(Storage(str(name), f"/mnt/{name}") for name in names), False, TEAMWISE_STORAGE
            return (), True, TEAMWISE_STORAGE
    return (), False, STORAGES


def _run(
    job: Job,
    expansion: Expansion,
    plugin: str,
    name: str,
    path: tuple[str | int, ...],
    prerequisite: dict[str, object],
    renderer: Renderer,
) -> None:
    rendered = {key: _deep(value, renderer) for key, value in prerequisite.items()}
    if not job.lenient:
        expansion.findings += [issue.finding(path).replace(fragment="") for issue in renderer.issues.values()]
    try:
        rendered["callbacks"] = callbacks_of(rendered.get("callbacks") or (), str(rendered.get("failurePolicy", "fail")))
        steps = _steps(plugin, {"name": name, **rendered})
    except PluginError as error:
        place = (*path, error.key) if error.key else path
        expansion.found("plugin-parameters", f"plugin {plugin}: {error}", place)
        return
    for note in steps.notes:
        expansion.found("plugin-note", f"plugin {plugin}: {note}", path)
    expansion.add(name, steps)


def _steps(plugin: str, prerequisite: dict[str, object]) -> Steps:
    """What a plugin makes of a prerequisite; a defect in an installed plugin is reported, not raised."""
    if plugin in BUILTIN_PLUGINS:
        return find(plugin)(**prerequisite)
    try:
        steps = find(plugin)(**prerequisite)
        fits = _fits(steps)
    except PluginError:
        raise
    except Exception as error:  # whatever an installed plugin raises must not end in a traceback of ours
        raise PluginError(f"it failed with {type(error).__name__}: {error}") from None
    if not fits:
        raise PluginError("it did not answer Steps with known events")
    return steps


def _fits(answer: Any) -> bool:
    return isinstance(answer, Steps) and all(each.event in (START, EXIT, SUCCEEDS, FAILS) for each in answer.callbacks)


def _deep(value: Any, renderer: Renderer) -> Any:
    if isinstance(value, str):
        return renderer.render(value)
    if isinstance(value, list | tuple):
        renderer.charge(len(value))
        return [_deep(item, renderer) for item in value]
    if isinstance(value, dict):
        renderer.charge(len(value))
        return {key: _deep(item, renderer) for key, item in value.items()}
    if isinstance(value, Callback):
        return value.replace(commands=tuple(renderer.render(command) for command in value.commands))
    return value
