"""Where something is that a job names, and how that may be said."""

from __future__ import annotations

from ..values import Value
from . import filesystems
from .addresses import NotAllowed, parse, refusal
from .errors import DataError
from .folders import real_path
from .rules import OWN_MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules


class ProvideError(DataError):
    """Something that a task needs cannot be brought."""


class Unreachable(ProvideError):
    """The place cannot be reached at the moment."""


class Location(Value):
    """Where something is: as it may be shown, and with secrets inserted."""

    shown: str
    uri: str

    @property
    def secret(self) -> bool:
        return self.uri != self.shown

    @property
    def local(self) -> bool:
        return not filesystems.is_remote(self.uri)

    def path(self, cwd: str, rules: Rules = OWN_MACHINE) -> str:
        """The path of a local one; NotAllowed if a job may not use it."""
        try:
            return real_path(parse(self.uri), cwd, rules)
        except NotAllowed as problem:
            raise self._not_allowed(str(problem)) from None

    def check(self, rules: Rules) -> None:
        """Refuse what a job may not use, as far as its words tell."""
        problem = refusal(parse(self.uri), rules)
        if problem:
            raise self._not_allowed(problem)

    def _not_allowed(self, problem: str) -> NotAllowed:
        words = "it is not allowed here (no more is said, since it holds a secret)" if self.secret else problem
        return NotAllowed(f"{filesystems.shown(self.shown)}: {words}")

    def error(self, words: str, kind: type[ProvideError] = ProvideError) -> ProvideError:
        """An error about it."""
        return kind(f"{filesystems.shown(self.shown)}: {words}")

    def failure(self, cause: object, kind: type[ProvideError] = ProvideError) -> ProvideError:
        """An error in the words of another program; they could quote a part of a secret."""
        words = getattr(cause, "strerror", None)
        if not words and self.secret:
            words = f"{type(cause).__name__} (no more is said, since its address holds a secret)"
        elif not words:
            words = filesystems.describe(self.uri, cause) if isinstance(cause, BaseException) else str(cause)
        return self.error(words, kind)

    def store_failure(self, error: BaseException) -> ProvideError:
        """An error of a bucket's driver."""
        if isinstance(error, ProvideError):
            return error
        kind = Unreachable if isinstance(found := filesystems.failure(self.uri, error), filesystems.Silent) else ProvideError
        return self.failure(error, kind) if self.secret else kind(str(found))
