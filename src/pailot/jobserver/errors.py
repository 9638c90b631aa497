"""What the team service refuses, by name: front doors turn these into their own responses."""

from __future__ import annotations

from ..errors import PailotError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..problem import Problem


class TeamError(PailotError):
    """Something that was asked of the team service cannot be done; the message is one line for the user."""


class Invalid(TeamError):
    """The job file cannot be run; `problems` holds everything found in it (empty when the message says it all)."""

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class BadRequest(TeamError):
    """The request makes no sense: a tag with a comma, an unknown stream, a digest that does not fit its content."""


class Forbidden(TeamError):
    """The caller may not do that, or may not use that virtual cluster."""


class QuotaExceeded(TeamError):
    """What the caller sends would take more of the server than is theirs."""


class Conflict(TeamError):
    """The name is used already, or the job is not in a state for that (a running job cannot be deleted)."""


class Missing(TeamError):
    """What is asked for is not there."""


class NoSuchJob(Missing):
    """There is no job of that name, or no such attempt or task of it."""


class NoSuchTag(Missing):
    """The job does not have that tag."""


class NoSuchLog(Missing):
    """That task attempt has no log, or none yet."""


class NoSuchCode(Missing):
    """No code with that digest was uploaded."""


class ShuttingDown(TeamError):
    """The server is ending and takes no more jobs; try again soon."""


class Unavailable(TeamError):
    """What the service needs (its keeper, its store, an engine) does not answer."""
