"""Where something is that a job names, and how that may be said."""

from __future__ import annotations

import os

from ..values import Value
from . import filesystems
from .errors import DataError


class ProvideError(DataError):
    """Something that a task needs cannot be brought."""


class Unreachable(ProvideError):
    """Nobody answers there at the moment."""


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

    def path(self, cwd: str) -> str:
        """The path of a local one."""
        if not self.uri.startswith("file://"):
            return os.path.abspath(os.path.join(cwd, os.path.expanduser(self.uri)))
        from urllib.parse import unquote

        return os.path.abspath(unquote(self.uri.removeprefix("file://").removeprefix("localhost")))

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
