"""Regular expressions that are compiled when they are first used: a command needs few of those that there are."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Like the result of `re.compile`, but compiled at its first use."""
    return _Later(text, flags)  # type: ignore[return-value]  # it becomes one in all but type


class _Later:
    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        compiled = re.compile(self._text, self._flags)
        # From now on these are found without coming here.
        self.__dict__.update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


_METHODS = ("pattern", "match", "search", "fullmatch", "sub", "findall", "finditer", "split")
