"""`pailot.Job`: one kind of object for a job that was read from a file and a job that was written in Python.

Both are what the reader makes of a text: a job built here is first written as a job file, then read, so that it is
checked by the same rules, means the same, and `to_yaml()` is the file that any other program would be given.
"""

from __future__ import annotations

import os

from .. import loading
from ..protocol import model
from ..protocol.convert import to_v2
from ..protocol.export import as_version_1, stays_version_1
from ..protocol.overrides import Override
from ..protocol.problems import InvalidJob
from ..protocol.secrecy import hidden_in_records, hidden_texts, masked_root
from ..protocol.yaml.writer import dump
from ..runfolder.masking import text_masker
from .attributes import Parts, WrittenInPython
from .builders import collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Self

    from ..planning import Plan
    from .builders import Deployment, Prerequisite, TaskRole
    from .run import Run


class Job(model.Job):
    """A job, checked. Raises InvalidJob with everything that is wrong with it.

    >>> job = pailot.Job("hello", {"main": pailot.TaskRole(commands="echo hello", image="debian")})
    >>> job.task_roles["main"].instances
    1
    """

    def __init__(
        self,
        name: str,
        task_roles: Mapping[str, TaskRole],
        *,
        prerequisites: Sequence[Prerequisite] = (),
        parameters: Mapping[str, Any] | None = None,
        secrets: Mapping[str, Any] | None = None,
        job_retry_count: int = 0,
        deployments: Sequence[Deployment] = (),
        deployment: str | None = None,
        virtual_cluster: str | None = None,
        version: str | None = None,
        contributor: str | None = None,
        description: str | None = None,
        extras: Mapping[str, Any] | None = None,
        environment: Mapping[str, Any] | None = None,
        code: str | os.PathLike[str] | None = None,
        max_run_seconds: float | None = None,
        lenient: bool = False,
        library: Iterable[str] = (),
    ) -> None:
        needed, roles = collect(task_roles, prerequisites)
        more = dict(extras or {})
        options = dict(more.get("pailot") or {})
        options |= {"environment": {**options.get("environment", {}), **environment}} if environment else {}
        options |= {"code": os.fspath(code)} if code is not None else {}
        options |= {"maxRunSeconds": max_run_seconds} if max_run_seconds is not None else {}
        defaults = {"virtualCluster": virtual_cluster, "deployment": deployment}
        document = {
            "protocolVersion": 2,
            "name": name,
            "type": "job",
            "version": version,
            "contributor": contributor,
            "description": description,
            "prerequisites": [each.to_dict() for each in needed] or None,
            "parameters": dict(parameters) if parameters else None,
            "secrets": dict(secrets) if secrets else None,
            "jobRetryCount": job_retry_count or None,
            "taskRoles": roles,
            "deployments": [each.to_dict() for each in deployments] or None,
            "defaults": {key: value for key, value in defaults.items() if value is not None} or None,
            "extras": {**more, **({"pailot": options} if options else {})} or None,
        }
        text = dump({key: _plain(value) for key, value in document.items() if value is not None})
        arguments = {"environment": environment, "code": code, "maxRunSeconds": max_run_seconds}
        names = {
            key: "max_run_seconds" if key == "maxRunSeconds" else key for key, value in arguments.items() if value is not None
        }
        parts = Parts(dict(task_roles), tuple(needed), tuple(deployments), names)
        self.__dict__.update(_read(text, (), parts, lenient=lenient, library=library).__dict__)

    def to_dict(self, *, with_secrets: bool = False) -> dict[str, Any]:
        """The job file as plain values (protocol v2); secrets are masked unless asked for.

        Raises ValueError for a job that was not made from a text, which only Pailot itself makes.
        """
        if self.origin is None:
            raise ValueError("this job has no text")
        document = self.origin.document
        if self.legacy:
            root, _ = to_v2(document)
        else:
            root = dict(document.root)
        root["name"] = self.name
        if with_secrets:
            return root
        hidden = hidden_in_records(self)

        return masked_root(root, text_masker(hidden), hidden)[0] if hidden or "secrets" in root else root

    def to_yaml(self, *, with_secrets: bool = False) -> str:
        """The job file (protocol v2); secrets are masked unless asked for. As it was read, if nothing has changed."""
        if self.origin and not self.legacy and not self.origin.overridden and (with_secrets or not hidden_texts(self)):
            document = self.origin.document
            if document.root.get("name") == self.name:
                return document.text
        return dump(self.to_dict(with_secrets=with_secrets))

    def save(self, path: str | os.PathLike[str], *, with_secrets: bool = False) -> None:
        """Write the job file; with secrets, readable by you alone."""
        mode = 0o600 if with_secrets and hidden_texts(self) else 0o666
        text = self.to_yaml(with_secrets=with_secrets)
        with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            stream.write(text)

    def changed(
        self,
        overrides: Mapping[str, Any] | None = None,
        *,
        secrets: Mapping[str, Any] | None = None,
        name: str | None = None,
        deployment: str | None = None,
        virtual_cluster: str | None = None,
        library: Iterable[str] = (),
    ) -> Job:
        """The same job with some values changed: `job.changed({"parameters.lr": 0.1}, name="second")`.

        Raises InvalidJob if it cannot be run any more.
        """
        text = as_version_1(self) if stays_version_1(self, name or self.name) else self.to_yaml(with_secrets=True)
        changes = loading.changes_from(overrides, secrets, name, deployment, virtual_cluster)
        parts = self.origin.parts if isinstance(self.origin, WrittenInPython) else None
        return adopt(_read(text, changes, parts, lenient=self.lenient, library=library))

    def plan(self, user: str | None = None) -> Plan:
        """The plan: exactly what the job will run, for a user (you, by default)."""
        return loading.plan(self, user)

    def run(self, **options: Any) -> Run:
        """Run it; see `pailot.run` for the options. Returns the run, and raises what `pailot.run` raises."""
        import pailot  # as a program does: the module that runs jobs stands on this one

        return pailot.run(self, **options)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed. Nothing is checked: `changed` does that."""
        made = object.__new__(type(self))
        made.__dict__.update({**self.__dict__, **changes})
        return made


def _read(text: str, changes: Sequence[Override], parts: Parts | None, *, lenient: bool, library: Iterable[str]) -> model.Job:
    """A job from the text that was made of it; problems name the attributes of the parts that it was written with."""
    if parts is None:
        return loading.read_job(text, "-", changes, lenient=lenient, library=library)
    try:
        job = loading.read_job(text, "-", changes, lenient=lenient, library=library)
    except InvalidJob as invalid:
        raise InvalidJob(parts.named(invalid.problems)) from None
    return job if job.origin is None else job.replace(origin=WrittenInPython(job.origin, parts))


def adopt(job: model.Job) -> Job:
    """A job that was read, as `pailot.Job`."""
    if isinstance(job, Job):
        return job
    made = object.__new__(Job)
    made.__dict__.update(job.__dict__)
    return made


def without_secrets(text: str) -> Job:
    """A job from a text whose secrets are masked; references to them stay as they are."""
    masked = "\nsecrets:" in text or text.startswith("secrets:") or '"secrets":' in text  # an OpenPAI returns it as JSON
    changes = [Override(("secrets",), {}, "the masked secrets")] if masked else []
    return adopt(loading.read_job(text, "-", changes, lenient=True))


def load(
    path: str | os.PathLike[str],
    *,
    overrides: Mapping[str, Any] | None = None,
    secrets: Mapping[str, Any] | None = None,
    name: str | None = None,
    deployment: str | None = None,
    virtual_cluster: str | None = None,
    lenient: bool = False,
    library: Iterable[str] = (),
) -> Job:
    """Read a job file (v2 YAML or v1 JSON; '-' is standard input). Returns the job; raises InvalidJob with all problems.

    `overrides` maps dotted paths to values, `secrets` names to secrets that the file leaves open. `library` holds files and
    folders of prerequisites that the job may refer to.

    >>> job = pailot.load("job.yaml", overrides={"taskRoles.main.instances": 2})
    >>> job.task_roles["main"].instances
    2
    """
    file = os.fspath(path)
    changes = loading.changes_from(overrides, secrets, name, deployment, virtual_cluster)
    return adopt(loading.read_job(loading.read_text(file), file, changes, lenient=lenient, library=library))


def loads(
    text: str,
    *,
    overrides: Mapping[str, Any] | None = None,
    secrets: Mapping[str, Any] | None = None,
    name: str | None = None,
    deployment: str | None = None,
    virtual_cluster: str | None = None,
    lenient: bool = False,
    library: Iterable[str] = (),
) -> Job:
    """Read a job from a text; as `load` otherwise. Returns the job; raises InvalidJob with all problems.

    >>> try:
    ...     pailot.loads("name: no-roles")
    ... except pailot.InvalidJob as invalid:
    ...     print(invalid.problems[0].code)
    missing-key
    """
    changes = loading.changes_from(overrides, secrets, name, deployment, virtual_cluster)
    return adopt(loading.read_job(text, "-", changes, lenient=lenient, library=library))


def prepared(
    job: model.Job | str | os.PathLike[str],
    *,
    name: str | None,
    unique: bool,
    secrets: Mapping[str, Any] | None,
    overrides: Mapping[str, Any] | None,
) -> Job:
    """A job, or the file of one, as it is to be run."""
    if isinstance(job, str | os.PathLike):
        read = load(job, overrides=overrides, secrets=secrets, name=name)
    else:
        read = adopt(job)
        if name is not None or secrets or overrides:
            read = read.changed(overrides, secrets=secrets, name=name)
    return read.replace(name=f"{read.name}-{os.urandom(3).hex()}") if unique else read


def _plain(value: Any) -> Any:
    """Tuples as lists and paths as texts, so that the writer knows every value."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value
