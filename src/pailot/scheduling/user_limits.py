"""What one user may have of a virtual cluster at once: running jobs and GPUs. What is not limited is not counted."""

from __future__ import annotations

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Owner = tuple[str, str]
    """A virtual cluster and a user of it."""


class UserLimits(Value):
    """The most that each user of a virtual cluster may have running in it; None: as much as there is."""

    jobs: int | None = None
    gpus: int | None = None

    @property
    def are_set(self) -> bool:
        return self.jobs is not None or self.gpus is not None


class UserBooks:
    """What each user holds of the virtual clusters that have limits. All classes of jobs count."""

    def __init__(self, limits: Mapping[str, UserLimits]) -> None:
        self.limits = {vc: limit for vc, limit in limits.items() if limit.are_set}
        self.held: dict[Owner, tuple[int, int]] = {}
        """Running jobs and their GPUs."""

    def copy(self) -> UserBooks:
        made = UserBooks.__new__(UserBooks)
        made.limits, made.held = self.limits, dict(self.held)
        return made

    def owner(self, vc: str, user: str) -> Owner | None:
        """In whose name a job is counted; None where nothing is."""
        return (vc, user) if vc in self.limits else None

    def take(self, owner: Owner | None, gpus: int) -> None:
        self._count(owner, 1, gpus)

    def give(self, owner: Owner | None, gpus: int) -> None:
        self._count(owner, -1, -gpus)

    def permits(self, owner: Owner | None, gpus: int) -> bool:
        """Whether the user may start one more job with this many GPUs."""
        if owner is None:
            return True
        limit, (held_jobs, held_gpus) = self.limits[owner[0]], self.held.get(owner, (0, 0))
        if limit.jobs is not None and held_jobs + 1 > limit.jobs:
            return False
        return limit.gpus is None or not gpus or held_gpus + gpus <= limit.gpus

    def never_permits(self, owner: Owner | None, gpus: int) -> bool:
        """Whether the job is too big for a user who has nothing else."""
        if owner is None:
            return False
        limit = self.limits[owner[0]]
        return limit.jobs == 0 or (limit.gpus is not None and gpus > limit.gpus)

    def _count(self, owner: Owner | None, jobs: int, gpus: int) -> None:
        if owner is None:
            return
        before = self.held.get(owner, (0, 0))
        after = (before[0] + jobs, before[1] + gpus)
        if after[0]:
            self.held[owner] = after
        else:
            self.held.pop(owner, None)
