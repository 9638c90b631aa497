"""Everything that Pailot raises on purpose.

PailotError
├── InvalidJob            the job cannot be run; `.problems` holds everything found in it
├── BadSetting            a setting in the environment or in pailot.toml cannot be understood
├── Conflict              a run of this name is still active
├── NoSuchRun             there is no run of that name or id
├── DataError             a place that a job names cannot be read or written
├── EngineError           an engine cannot do what it is asked
├── StoreError            the records on disk cannot be read or written
├── WireError             a server did not do what it was asked
│   ├── Unreachable       no server responds, or not as a server of jobs does
│   └── Refused           the server says no: `.status`, `.code`, `.message`
│       ├── Denied        not for this user, or the token has expired
│       └── NotFound      there is no such thing on the server
└── RunError              a run did not do what was waited for: `.job`, `.task`, `.exit_code`, `.reason`, `.last_lines`
    ├── JobFailed         it ended as FAILED
    ├── JobStopped        it was stopped
    └── WaitTimeout       it was not over in time (also a TimeoutError); the run goes on
"""

from __future__ import annotations

from ..errors import PailotError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self


class RunError(PailotError):
    """A run did not do what was waited for."""

    def __init__(
        self,
        message: str,
        job: str = "",
        task: str | None = None,
        exit_code: int | None = None,
        reason: str = "",
        last_lines: Sequence[str] = (),
    ) -> None:
        self.message, self.job, self.task, self.exit_code, self.reason = message, job, task, exit_code, reason
        self.last_lines = tuple(last_lines)
        shown = "".join(f"\n    {line}" for line in self.last_lines)
        super().__init__(f"{message}\nlast lines of {task}:{shown}" if shown and task else message + shown)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.job, self.task, self.exit_code, self.reason, self.last_lines)

    @classmethod
    def of(cls, record: Mapping[str, Any], message: str = "") -> Self:
        """The error that the record of a run tells of, as `pailot show --json` prints it, with `task` and `lastLines`."""
        name, reason = record["name"], record.get("reason") or ""
        words = message or f"{name} is {record['state']}: {reason}"
        return cls(words, name, record.get("task"), record.get("exitCode"), reason, record.get("lastLines") or ())


class JobFailed(RunError):
    """The job ended as FAILED."""


class JobStopped(RunError):
    """The job was stopped."""


class WaitTimeout(RunError, TimeoutError):
    """The run was not over in time; it goes on."""
