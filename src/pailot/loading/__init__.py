"""Reading and planning jobs: what the command line and the Python front door have in common."""

from __future__ import annotations

import os
import sys

from ..errors import PailotError
from ..job_values import Auth
from ..library import Library, LibraryError, read_place
from ..planning import Plan, check, findings
from ..planning import plan as make_plan
from ..planning.plugins import exists as is_plugin
from ..protocol import InvalidJob, Job, Problem, read
from ..protocol.model import Origin
from ..protocol.overrides import BadOverride, Override, parse_path
from ..protocol.problems import Finding, in_order, path_text
from ..protocol.yaml import LIMITS
from ..settings import current_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..protocol.reader import Library as Finder

LARGE_CODE_FOLDER = 200 * 1000 * 1000


def plan(job: Job, user: str | None = None) -> Plan:
    """The plan: exactly what a job will run, for a user (you, by default).

    >>> plan = pailot.plan(pailot.load("job.yaml"))
    >>> plan.roles["main"].instances
    1
    """
    return make_plan(job, user or current_user())


def read_job(
    text: str,
    file: str,
    changes: Iterable[Override] = (),
    *,
    lenient: bool = False,
    library: Iterable[str] = (),
    otherwise: Finder | None = None,
    own_files: bool = True,
) -> Job:
    """A job from its text, with everything checked that can be known before it runs.

    What neither the job nor the library has is asked of `otherwise`.
    `own_files`: whether files that it names (`code`, `authFile`) may be read; not for a job of another user.
    """
    shelf = Library.from_settings(library)
    find = shelf.find if otherwise is None else lambda name: shelf.find(name) or otherwise(name)
    try:
        job = read(text, file=file, changes=tuple(changes), lenient=lenient, library=find, is_plugin=is_plugin)
    except InvalidJob as invalid:
        raise with_what_planning_finds(invalid) from None
    problems = check(job)
    if any(problem.is_error for problem in problems):
        raise InvalidJob((*problems, *job.warnings))
    return _with_registry_auth(_with_code_folder_checked(job)) if own_files else job


def with_what_planning_finds(invalid: InvalidJob) -> InvalidJob:
    """All that is wrong with a job that could not be read: also what planning finds in the rest of it."""
    if invalid.partial is None:
        return invalid
    known = {problem.message for problem in invalid.problems}
    unknown = {problem.path.removesuffix(".plugin") for problem in invalid.problems if problem.code == "unknown-plugin"}
    found = [each for each in findings(invalid.partial.job) if path_text(each.path).removesuffix(".parameters") not in unknown]
    more = [each for each in invalid.partial.still_true(found) if each.message not in known]
    return InvalidJob(in_order((*invalid.problems, *more)), invalid.partial)


def read_text(file: str) -> str:
    """The text of a file, or of standard input for '-'; InvalidJob says why it cannot be read."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(LIMITS.BYTES + 1)
        else:
            with open(file, "rb") as stream:
                data = stream.read(LIMITS.BYTES + 1)
    except OSError as error:
        raise InvalidJob([Problem("file-unreadable", f"cannot be read: {error.strerror}", file)]) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if len(data) > LIMITS.BYTES:
            return data.decode("utf-8", "ignore")  # too large in any case, which the reader says
        message = f"is not UTF-8 text (byte {error.start + 1} is 0x{data[error.start]:02x})"
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidJob([Problem("yaml-encoding", message, file, line)]) from None


def changes_from(
    overrides: Mapping[str, Any] | None,
    secrets: Mapping[str, Any] | None,
    name: str | None,
    deployment: str | None,
    virtual_cluster: str | None,
) -> list[Override]:
    """Overrides as the reader takes them."""
    try:
        changes = [Override(parse_path(path), value, path) for path, value in (overrides or {}).items()]
    except BadOverride as error:
        raise PailotError(str(error)) from None
    changes += [Override(("secrets", key), value, f"--secret {key}") for key, value in (secrets or {}).items()]
    for path, value, option in (
        (("name",), name, "--name"),
        (("defaults", "deployment"), deployment, "--deployment"),
        (("defaults", "virtualCluster"), virtual_cluster, "--vc"),
    ):
        if value is not None:
            changes.append(Override(path, value, option))
    return changes


def _with_code_folder_checked(job: Job) -> Job:
    code = job.extras.options.code
    if not code or "://" in code or "$" in code or job.origin is None:
        return job
    path = ("extras", "pailot", "code")
    if not os.path.isdir(os.path.expanduser(code)):
        finding = Finding("code-folder", f"there is no folder '{code}' here; the job will need it when it starts", path)
    elif _size(os.path.expanduser(code), LARGE_CODE_FOLDER) > LARGE_CODE_FOLDER:
        finding = Finding("code-folder", f"'{code}' holds more than 200 MB; leave data out with a .pailotignore file", path)
    else:
        return job
    return _with_finding(job, finding)


def _with_registry_auth(job: Job) -> Job:
    """`authFile`: three lines, registry, user and password, for every image that has no credentials of its own."""
    file = job.extras.options.auth_file
    if not file:
        return job
    words = ""
    try:
        lines = [line.strip() for line in read_place(file).splitlines() if line.strip()]
        if len(lines) != 3:
            words = f"{file} should have three lines: registry, user, password; it has {len(lines)}"
    except LibraryError as error:
        lines, words = [], str(error)
    if words:
        return _with_finding(
            job, Finding("auth-file", f"{words}; images are pulled without it", ("extras", "pailot", "authFile"))
        )
    return job.replace(registry_auth=Auth(lines[1], lines[2], lines[0]))


def _with_finding(job: Job, finding: Finding) -> Job:
    origin = job.origin
    if origin is None:
        return job
    return job.replace(origin=Origin(origin.file, origin.document, (*origin.findings, finding), origin.overridden))


def _size(folder: str, enough: int) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.lstat(os.path.join(parent, file)).st_size
            except OSError:
                continue  # gone meanwhile
            if total > enough:
                return total
    return total


__all__ = ["changes_from", "current_user", "plan", "read_job", "read_text"]
