"""Whether an attempt has started: it has when each of its tasks was begun."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .completion import RoleRule


class Claims:
    """The tasks that were not seen to begin."""

    def __init__(self, rules: Iterable[RoleRule]) -> None:
        self._open = {(rule.name, index) for rule in rules for index in range(rule.instances)}

    def add(self, role: str, index: int) -> bool:
        """A task was begun, or has ended and must have been; True once, for the last of all.

        >>> from pailot.lifecycle.completion import RoleRule
        >>> claims = Claims([RoleRule("worker", 2, 1, None)])
        >>> claims.add("worker", 0), claims.add("worker", 0), claims.add("worker", 1), claims.add("worker", 1)
        (False, False, True, False)
        """
        if not self._open:
            return False
        self._open.discard((role, index))
        return not self._open
