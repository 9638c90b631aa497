"""What can go wrong with a processing job.

PailotError
├── InvalidProcessor              it cannot be run as it is (also a ValueError); nothing was started or uploaded
└── RunError
    └── UnexpectedStatusException it did not succeed: `.status`, `.reason_message`, `.exit_code`, `.last_lines`
"""

from __future__ import annotations

from ..errors import PailotError
from ..sdk.errors import RunError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class InvalidProcessor(PailotError, ValueError):
    """A processing job that cannot be run as it is."""


class UnexpectedStatusException(RunError):
    """A job that was waited for has not succeeded."""

    def __init__(
        self,
        message: str,
        status: str,
        job: str = "",
        task: str | None = None,
        exit_code: int | None = None,
        reason: str = "",
        last_lines: Sequence[str] = (),
    ) -> None:
        super().__init__(message, job, task, exit_code, reason, last_lines)
        self.status = status
        self.reason_message = reason

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.message, self.status, self.job, self.task, self.exit_code, self.reason, self.last_lines)
        return type(self), fields


UnExpectedStatusException = UnexpectedStatusException
"""As the documentation of Alibaba's `Processor.run` spells it."""
