"""Would bash read the scripts of a job? `bash -n` on each distinct one, told at the command of the job file.

Only bash knows bash, so it is asked, but for scripts of plain words. It runs nothing, has no variables, little memory and little
time, and sees a word in place of each secret. That it crashes, or is not there, says nothing about the job.
"""

from __future__ import annotations

import os
import re
import resource
import time

from ..planning import plan
from ..planning.command_places import SCRIPTS, at_line, commands_in
from ..protocol.problems import Finding, InvalidJob, in_order
from ..protocol.templates import replace_secrets
from ..values import Value
from .plain_scripts import is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..planning import Plan, RolePlan
    from ..planning.command_places import PlacedCommand
    from ..protocol import Job, Problem

MOST_SCRIPTS = 50
MOST_SECONDS = 2.0
"""No further script of a job is looked at after this time."""
CPU_SECONDS = 1
MEMORY_BYTES = 512 * 1024 * 1024
MOST_PREFIXES = 20
"""The most beginnings of a script that are tried, to find where something without an end begins."""
MOST_REMEMBERED = 2_000
_WORD = "pailot"
"""What stands for a secret."""
_SAID = r"^bash: line (\d+): (.+)$"
_HERE_DOCUMENT = r"here-document at line (\d+) delimited by end-of-file"
_BEGINS_AT = r"on line (\d+)$"
_ENDS_EARLY = r"^\s*(?:exit|exec)\b"

_remembered: dict[str, tuple[Complaint, ...]] = {}


class Complaint(Value):
    """What bash says of a script."""

    line: int
    message: str
    is_error: bool


def checked(job: Job, plan: Plan, *, runs_here: bool) -> Plan:
    """The plan with what is doubtful in its scripts; InvalidJob where bash will refuse one: certain only if it runs here."""
    found = job.problems(findings(job, plan, runs_here=runs_here))
    if not found:
        return plan
    problems = in_order((*plan.warnings, *found))
    if any(problem.is_error for problem in found):
        raise InvalidJob(problems)
    return plan.replace(warnings=problems)


def are_known_to_be_right(plan: Plan) -> bool:
    """Whether all scripts of a plan were looked at before, and nothing was said of them. Starts no process."""
    return all(is_plain(text) or _remembered.get(text) == () for text, _, _ in _distinct(plan, complete=True))


def with_what_bash_says(invalid: InvalidJob) -> Sequence[Problem]:
    """All that is wrong with a job that cannot be planned as it is: also what bash says of the commands that could be read."""
    partial = invalid.partial
    if partial is None:
        return invalid.problems

    try:
        made = plan(partial.job)
    except InvalidJob:
        return invalid.problems
    return in_order((*invalid.problems, *partial.still_true(findings(partial.job, made, runs_here=False, complete=False))))


def findings(job: Job, plan: Plan, *, runs_here: bool, complete: bool = True) -> list[Finding]:
    """What bash says of the scripts of a plan, each distinct one once."""
    found: list[Finding] = []
    until = time.monotonic() + MOST_SECONDS
    for text, role, script in _distinct(plan, complete=complete):
        complaints = () if is_plain(text) else _complaints(text)
        if complaints:
            commands = commands_in(job, role, script)
            found += [_finding(job, text, each, commands, until, runs_here=runs_here) for each in complaints]
        if time.monotonic() > until:
            break
    return found


def _distinct(plan: Plan, *, complete: bool) -> Iterator[tuple[str, RolePlan, str]]:
    seen: set[str] = set()
    for role in plan.roles.values():
        for script in SCRIPTS:
            text = replace_secrets(getattr(role.scripts, script), lambda _: _WORD)
            if not complete:  # some tags could not be resolved, which is told already
                text = re.sub(r"<%[\s\S]*?%>", _WORD, text)
            if text and text not in seen and len(seen) < MOST_SCRIPTS:
                seen.add(text)
                yield text, role, script


def _finding(
    job: Job, text: str, said: Complaint, commands: Sequence[PlacedCommand], until: float, *, runs_here: bool
) -> Finding:
    line = said.line
    if "unexpected end of file" in said.message:
        begins = re.search(_BEGINS_AT, said.message)
        line = int(begins[1]) if begins else _beginning(text, commands, until) or line
    lines = text.split("\n")
    certain = runs_here and said.is_error and not any(re.match(_ENDS_EARLY, each) for each in lines[: said.line - 1])
    code = "shell-syntax-error" if certain else "shell-syntax"
    command = at_line(commands, line) or (commands[-1] if commands else None)
    if command is None or not command.path:
        return Finding(code, f"bash says of a script: {said.message}", ("taskRoles",))
    fragment = ""
    if command.first != command.last and job.origin is not None:
        document = job.origin.document
        if document.text[document.offset(document.path(command.path)) :][:1] == "|":  # its lines stand there as they are
            fragment = lines[line - 1].strip()
    message = re.sub(r"\s*(?:\(wanted .*\)| from .* on line \d+| at line \d+)", "", said.message)
    return Finding(code, f"bash says of {command.name}: {message}", command.path, fragment=fragment)


def _beginning(text: str, commands: Sequence[PlacedCommand], until: float) -> int | None:
    """The line of the command from which on the script has no end."""
    lines = text.split("\n")
    for command in commands[: -MOST_PREFIXES - 1 : -1]:
        if time.monotonic() > until:
            return None
        if not _complaints("\n".join(lines[: command.first - 1]) + "\n"):
            return command.first
    return None


def _complaints(text: str) -> tuple[Complaint, ...]:
    """What bash says of a script, and nothing where it cannot be asked."""
    known = _remembered.get(text)
    if known is not None:
        return known
    if "expand_aliases" in text:
        return ()  # what its words mean is known only when it runs
    found = tuple(_parsed(_asked(text)))
    if len(text) <= 1 << 14:
        if len(_remembered) >= MOST_REMEMBERED:
            _remembered.clear()
        _remembered[text] = found
    return found


def _parsed(said: str) -> Iterator[Complaint]:
    for line, message in re.findall(_SAID, said, re.MULTILINE):
        here_document = re.search(_HERE_DOCUMENT, message)
        if here_document:
            yield Complaint(int(here_document[1]), message.removeprefix("warning: "), is_error=False)
        elif not message.startswith("`"):  # the line itself, once more
            yield Complaint(int(line), message, is_error=True)


def _asked(text: str) -> str:
    """The words of `bash -n`, where it comes to an end by itself."""
    try:
        script, said = os.memfd_create("script"), os.memfd_create("said")
    except (AttributeError, OSError):
        return ""
    try:
        os.write(script, text.encode("utf-8", "surrogatepass"))
        os.lseek(script, 0, os.SEEK_SET)
        files = [
            (os.POSIX_SPAWN_DUP2, script, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, said, 2),
        ]
        options = ["-O", "extglob"] if "extglob" in text else []
        pid = os.posix_spawnp("bash", ["bash", "--norc", "--noprofile", *options, "-n"], {}, file_actions=files)
        _limit(pid)
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status) < 0:
            return ""  # it crashed, or took too long
        return os.pread(said, 1 << 14, 0).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(script)
        os.close(said)


def _limit(pid: int) -> None:
    for kind, most in ((resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        try:
            resource.prlimit(pid, kind, (most, most))
        except OSError:
            pass  # it has ended already, or may not be limited
