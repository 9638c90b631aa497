"""Starting and ending the team service around a server."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ...settings import Settings
    from .team import Team


def running_team(settings: Settings, *, engine: str = "local") -> AbstractAsyncContextManager[Team]:
    """The team of this home, with its lock held, its store open, its keeper found or started and its jobs re-adopted.

    Raises Conflict when another server has this home. Leaving hands running jobs over to the next server, unless
    `shutdown` was called with another wish before. `team.store` is the store, for accounts and lists.
    """
    raise NotImplementedError
