"""A job as typed values: what the file says, with every default filled in."""

from __future__ import annotations

from ..job_values import Options
from ..printable import cut, printable
from ..problem import CODES, ERROR, MOST_SHOWN, Problem, together
from ..values import Value
from .problems import Finding, path_text
from .yaml import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..job_values import Auth, Completion, Resources, Storage
    from .yaml import Document

MOST_COMPARED = 5_000
"""At most this many known words are compared, for all problems of a job together, to suggest the one that was meant."""
LONGEST_MESSAGE = 2_000
START, EXIT, SUCCEEDS, FAILS = "containerStart", "containerExit", "taskSucceeds", "taskFails"


class Callback(Value):
    """Commands for one event of a task's life."""

    event: str
    commands: tuple[str, ...]
    ignore_failure: bool = False


class Prerequisite(Value):
    """An image, data set, script or output that roles refer to."""

    name: str
    type: str
    plugin: str
    uri: str | tuple[str, ...] | None = None
    require: tuple[str, ...] = ()
    callbacks: tuple[Callback, ...] = ()
    ignore_failure: bool = False
    auth: Auth | None = None
    fields: Mapping[str, Any] = {}
    """Every key of the file, as templates see them."""
    path: tuple[str | int, ...] = ()
    """Where it stands in the job file; empty for one from the library."""
    source: str = ""
    """Where in the library it was found."""


class TaskRole(Value):
    """A kind of task and how many of it there are."""

    name: str
    instances: int
    completion: Completion
    task_retry_count: int
    resources: Resources
    commands: tuple[str, ...]
    docker_image: str
    data: str | None = None
    output: str | None = None
    script: str | None = None
    listed: tuple[str, ...] = ()
    """The names in the role's `prerequisites`."""
    prerequisites: tuple[Prerequisite, ...] = ()
    """Everything the role uses, required ones inserted, in start order."""
    entrypoint: str = ""
    """The commands as OpenPAI's REST server renders them; secrets stay references."""
    scope: Mapping[str, Any] = {}
    """What templates of this role can name."""


class DeploymentRole(Value):
    pre_commands: tuple[str, ...] = ()
    post_commands: tuple[str, ...] = ()


class Deployment(Value):
    """Commands that adapt the job's roles to a place."""

    name: str
    roles: Mapping[str, DeploymentRole]


class HivedRole(Value):
    """Placement wishes of a role."""

    sku_type: str | None = None
    pinned_cell_id: str | None = None
    affinity_group: str | None = None


class Hived(Value):
    """`extras.hivedScheduler`."""

    priority: str = "test"
    roles: Mapping[str, HivedRole] = {}


class RuntimePlugin(Value):
    """An entry of `extras."com.microsoft.pai.runtimeplugin"`."""

    plugin: str
    parameters: Any
    ignore_failure: bool = False
    roles: tuple[str, ...] | None = None
    path: tuple[str | int, ...] = ()


class Extras(Value):
    """`extras`, as far as it is understood; `raw` keeps the rest for plugins."""

    gang: bool = True
    storages: tuple[Storage, ...] | None = None
    runtime_plugins: tuple[RuntimePlugin, ...] = ()
    hived: Hived | None = None
    notify_on: frozenset[str] = frozenset()
    options: Options = Options()
    raw: Mapping[str, Any] = {}


class Secrets:
    """Named secrets; they are given out by name and never shown."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def reveal(self) -> dict[str, object]:
        """The values in clear, for the one place that inserts or encrypts them."""
        return dict(self._values)

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secrets) and other._values == self._values

    def __hash__(self) -> int:
        return hash(self.names())

    def __repr__(self) -> str:
        return f"Secrets({', '.join(f'{name}=******' for name in self._values)})"


class Job(Value):
    """One job file, checked. `warnings` holds what is doubtful in it."""

    name: str
    task_roles: Mapping[str, TaskRole]
    version: str = "latest"
    contributor: str = ""
    description: str = ""
    prerequisites: tuple[Prerequisite, ...] = ()
    parameters: Mapping[str, Any] = {}
    secrets: Secrets = Secrets({})
    job_retry_count: int = 0
    deployments: Mapping[str, Deployment] = {}
    deployment: str | None = None
    virtual_cluster: str = "default"
    extras: Extras = Extras()
    lenient: bool = False
    legacy: bool = False
    """Read from a v1 file."""
    origin: Origin | None = None
    registry_auth: Auth | None = None
    """What `authFile` says, for images without credentials of their own; it is in memory only."""

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return self.origin.warnings() if self.origin else ()

    @property
    def task_count(self) -> int:
        return sum(role.instances for role in self.task_roles.values())

    def place(self, path: Sequence[str | int]) -> str:
        """Where a value stands, in short: `job.yaml:12`, the option that sets it, or nothing where the job is no file."""
        return self.origin.place(path) if self.origin is not None and path else ""

    def problem(self, code: str, message: str, path: Sequence[str | int]) -> Problem:
        """A problem that a later step found in this job, with its place in the file."""
        return self.problems([Finding(code, message, tuple(path))])[0]

    def problems(self, findings: Iterable[Finding]) -> tuple[Problem, ...]:
        """What a later step found in this job, with the places in the file."""
        if self.origin:
            return self.origin.locate_all(findings)
        return together(Problem(each.code, printable(each.text()), path=path_text(each.path)) for each in findings)


_KEPT_NAME = "job.yaml"
"""A job that was read from no file is kept under this name."""


class Origin:
    """Where a job came from: its text and what was doubtful in it. Places are worked out when asked for."""

    __slots__ = ("_warnings", "document", "file", "findings", "overridden")

    def __init__(
        self, file: str, document: Document, findings: Iterable[Finding] = (), overridden: Mapping[str, str] | None = None
    ) -> None:
        self.file, self.document, self.findings = file, document, tuple(findings)
        self.overridden = dict(overridden or {})
        self._warnings: tuple[Problem, ...] | None = None

    def warnings(self) -> tuple[Problem, ...]:
        if self._warnings is None:
            self._warnings = self.locate_all(self.findings)
        return self._warnings

    def locate_all(self, findings: Iterable[Finding]) -> tuple[Problem, ...]:
        """Problems in the order of the file, errors before warnings at the same place; no more than are told."""
        told, rest = _first(findings)  # a place costs more than a finding: only those that are told are looked up
        compared, problems = 0, []
        for finding in told:
            compared += len(finding.near.known) if finding.near else 0
            problems.append(self.locate(finding, hint=compared <= MOST_COMPARED))
        problems.sort(key=lambda p: (p.file, p.line, p.column, not p.is_error))
        return together(problems, len(rest))

    def locate(self, finding: Finding, *, hint: bool = True) -> Problem:
        """Where a finding stands: line and column of the file, or the option that overrides it."""
        document = self.document
        steps = document.path(finding.path)
        path, option = path_text(steps), self._option(steps)
        meant = finding.hint() if hint else ""
        if option is not None:
            message = printable(cut(finding.text(meant), LONGEST_MESSAGE))
            return Problem(finding.code, message, option, 1, 1, printable(cut(path, LONGEST_MESSAGE)), hint=meant)
        offset = finding.offset
        if offset is None:
            offset = document.offset(steps, key=finding.at_key)
            if finding.fragment:
                offset = document.find(finding.fragment, offset)
        line, column = document.line_and_column(offset)
        if _is_confidential(steps) or document.in_secrets(offset):
            message, source, meant = _without_value(finding), "", ""
            message = document.without_secrets(message)
        else:
            message, source = document.without_secrets(finding.text(meant)), document.shown_line(line)
        message, path = printable(cut(message, LONGEST_MESSAGE)), printable(cut(path, LONGEST_MESSAGE))
        return Problem(finding.code, message, self.file, line, column, path, source, meant)

    def place(self, path: Sequence[str | int]) -> str:
        """Where a value stands, in short."""
        steps = self.document.path(path)
        option = self._option(steps)
        if option is not None:
            return option
        line, _ = self.document.line_and_column(self.document.offset(steps))
        return f"{_KEPT_NAME if self.file == '-' else self.file}:{line}"

    def _option(self, steps: Sequence[str | int]) -> str | None:
        """The option that sets the value at a path, or something that it is part of."""
        if not self.overridden:
            return None
        places = (path_text(steps[:count]) for count in range(1, len(steps) + 1))
        return next((self.overridden[place] for place in places if place in self.overridden), None)

    def __reduce__(self) -> tuple[Any, ...]:
        # The document is read again as it stands in the file: paths are those of the file, and hints are part of the messages.
        document = self.document
        told, rest = _first(self.findings)
        findings = [each.replace(path=document.path(each.path), message=each.text(), near=None) for each in told]
        findings += [each.replace(near=None) for each in rest]
        return _origin_from_text, (self.file, document.text, tuple(findings), self.overridden)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin) and other.document.text == self.document.text

    def __hash__(self) -> int:
        return hash(self.document.text)


def _first(findings: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Each finding once: those that are told, errors rather than warnings if there are too many, and the rest."""
    distinct: dict[object, Finding] = {}
    for finding in findings:
        distinct.setdefault(finding.same(), finding)
    found = [*distinct.values()]
    if len(found) > MOST_SHOWN:
        found.sort(key=lambda finding: CODES[finding.code] != ERROR)
    return found[:MOST_SHOWN], found[MOST_SHOWN:]


def _is_confidential(path: Sequence[str | int]) -> bool:
    return path[:1] == ("secrets",) or "auth" in path


def _without_value(finding: Finding) -> str:
    """A message about a secret, without the secret."""
    if finding.code == "wrong-type":
        return finding.message.partition(", is ")[0]
    if finding.code == "yaml-ambiguous":
        return "OpenPAI reads this value unlike other YAML readers; put it in quotes"
    return finding.text()


def _origin_from_text(file: str, text: str, findings: tuple[Finding, ...], overridden: Mapping[str, str]) -> Origin:
    return Origin(file, parse(text), findings, overridden)
