"""How large a job may become: a few words can stand for very much, and the reader pays for it."""

from __future__ import annotations

from .problems import Finding

MIB = 1024 * 1024


class JOB_LIMITS:  # noqa: N801  # a namespace of constants, as yaml's LIMITS
    """Far above what jobs are, far below what would keep others waiting."""

    USES = 5_000
    """Prerequisites and plugins, counted for each role that uses them, and names in `require`."""
    RENDERED = 8 * MIB
    """Characters of all commands and keys, with templates replaced."""
    INHERITED = 300_000
    """Keys that prerequisites take over from those they require."""
    VARIABLES = 16 * MIB
    """Characters of the variables that are known before a task is placed, for all roles together."""


class TooMuch(Exception):
    """A job goes beyond a limit; nothing more is read of it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Allowance:
    """What is left of a limit."""

    __slots__ = ("_left", "_message")

    def __init__(self, most: int, message: str) -> None:
        self._left, self._message = most, message

    def take(self, amount: int) -> None:
        """Use up some of it. Raises TooMuch where less is left."""
        self._left -= amount
        if self._left < 0:
            raise TooMuch(Finding("job-limit", self._message, ("taskRoles",), at_key=True))

    def allows(self, amount: int) -> bool:
        """Whether that much is left."""
        return amount <= self._left


def uses() -> Allowance:
    return Allowance(JOB_LIMITS.USES, _TOO_MANY_USES)


def rendered() -> Allowance:
    return Allowance(JOB_LIMITS.RENDERED, _TOO_LARGE)


def inherited() -> Allowance:
    return Allowance(JOB_LIMITS.INHERITED, _TOO_MANY_KEYS)


_TOO_MANY_USES = (
    f"the roles of this job use more than {JOB_LIMITS.USES:,} prerequisites and plugins, counted for each role; split the job"
)
_TOO_LARGE = f"with its templates replaced, this job is larger than {JOB_LIMITS.RENDERED // MIB} MiB; use shorter values"
_TOO_MANY_KEYS = (
    f"the prerequisites of this job take over more than {JOB_LIMITS.INHERITED:,} keys from those they require;"
    " shorten the chains of 'require'"
)
