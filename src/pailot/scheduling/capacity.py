"""The books of a machine: what it has, what virtual clusters are guaranteed of it, who uses how much."""

from __future__ import annotations

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    Amounts = tuple[int, int, int]
    """Thousandths of a CPU, MB of memory, GPUs."""
    Group = tuple[int, str]
    """Class and virtual cluster; opportunistic jobs of all clusters are one group."""

    class Demand(Protocol):
        """Whatever has or asks for resources."""

        @property
        def cpu(self) -> float: ...
        @property
        def memory_mb(self) -> int: ...
        @property
        def gpu(self) -> int: ...


CLASSES = ("crit", "prod", "test", "oppo")
OPPORTUNISTIC = len(CLASSES) - 1
NOTHING = (0, 0, 0)


class Capacity(Value):
    """What a machine has, or a virtual cluster is guaranteed of it."""

    cpu: float = 0
    memory_mb: int = 0
    gpu: int = 0


Share = Capacity


class Ledger:
    """Who uses what: per cluster, of the shared rest, and what lies free."""

    def __init__(self, total: Amounts, shares: Mapping[str, Amounts]) -> None:
        self.shares = shares
        self.shared = list(total)
        for share in shares.values():
            self.shared = [has - part for has, part in zip(self.shared, share)]  # noqa: B905  # Python 3.9
        self.total = total
        self.used: dict[str, Amounts] = {}
        self.borrowed = [0, 0, 0]
        """Of what is shared, by all clusters together."""
        self.free: Amounts = total
        self.leaving: Amounts = NOTHING
        """Held by opportunistic jobs that are being stopped."""

    def copy(self) -> Ledger:
        made = Ledger.__new__(Ledger)
        made.__dict__.update(self.__dict__, used=dict(self.used), borrowed=list(self.borrowed))
        return made

    def most(self, group: Group) -> Amounts:
        """What a job of that group can have at best."""
        if group[0] == OPPORTUNISTIC:
            return self.total
        share = self.shares.get(group[1], NOTHING)
        return (share[0] + self.shared[0], share[1] + self.shared[1], share[2] + self.shared[2])

    def take(self, group: Group, demand: Amounts, *, stopping: bool) -> None:
        self.free = minus(self.free, demand)
        if group[0] == OPPORTUNISTIC:
            if stopping:
                self.leaving = plus(self.leaving, demand)
        else:
            self.book(group[1], demand)

    def give(self, group: Group, demand: Amounts, *, stopping: bool) -> None:
        self.free = plus(self.free, demand)
        if group[0] == OPPORTUNISTIC:
            if stopping:
                self.leaving = minus(self.leaving, demand)
        else:
            self.book(group[1], (-demand[0], -demand[1], -demand[2]))

    def book(self, vc: str, demand: Amounts) -> None:
        """Count towards a cluster's share, and what exceeds it towards the shared rest."""
        share, before = self.shares.get(vc, NOTHING), self.used.get(vc, NOTHING)
        after = self.used[vc] = plus(before, demand)
        for kind in (0, 1, 2):
            self.borrowed[kind] += max(0, after[kind] - share[kind]) - max(0, before[kind] - share[kind])

    def lacking(self, vc: str, demand: Amounts) -> Amounts:
        """What the cluster's share and the shared rest do not have for it."""
        share, used = self.shares.get(vc, NOTHING), self.used.get(vc, NOTHING)
        missing = [0, 0, 0]
        for kind in (0, 1, 2):
            if demand[kind]:
                beyond = max(0, used[kind] + demand[kind] - share[kind]) - max(0, used[kind] - share[kind])
                if beyond:
                    missing[kind] = min(demand[kind], max(0, self.borrowed[kind] + beyond - self.shared[kind]))
        return (missing[0], missing[1], missing[2])

    def room(self, group: Group) -> Amounts:
        """The most that `lacking` would not complain about; for an opportunistic job what is free."""
        free = self.free
        if group[0] == OPPORTUNISTIC:
            return (max(0, free[0]), max(0, free[1]), max(0, free[2]))
        share, used = self.shares.get(group[1], NOTHING), self.used.get(group[1], NOTHING)
        shared, borrowed = self.shared, self.borrowed
        return (
            max(0, share[0] - used[0]) + max(0, shared[0] - borrowed[0]),
            max(0, share[1] - used[1]) + max(0, shared[1] - borrowed[1]),
            max(0, share[2] - used[2]) + max(0, shared[2] - borrowed[2]),
        )

    def permits(self, vc: str, demand: Amounts) -> bool:
        return self.lacking(vc, demand) == NOTHING

    def has_free(self, demand: Amounts) -> bool:
        free = self.free
        return (
            (not demand[0] or demand[0] <= free[0])
            and (not demand[1] or demand[1] <= free[1])
            and (not demand[2] or demand[2] <= free[2])
        )

    def draws_on_shared(self, vc: str, demand: Amounts) -> bool:
        share, used = self.shares.get(vc, NOTHING), self.used.get(vc, NOTHING)
        return any(demand[kind] and used[kind] + demand[kind] > share[kind] for kind in (0, 1, 2))


def amounts_of(of: Demand) -> Amounts:
    return (round(of.cpu * 1000), int(of.memory_mb), int(of.gpu))


def capacity_of(amounts: Amounts) -> Capacity:
    return Capacity(amounts[0] / 1000, amounts[1], amounts[2])


def plus(one: Amounts, other: Amounts) -> Amounts:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])


def minus(one: Amounts, other: Amounts) -> Amounts:
    return (one[0] - other[0], one[1] - other[1], one[2] - other[2])


def shares_of(total: Amounts, clusters: Mapping[str, Share]) -> dict[str, Amounts]:
    """The guaranteed shares; where they exceed the machine, each is cut in proportion."""
    given = {name: amounts_of(share) for name, share in clusters.items()}
    sums = [sum(each) for each in zip(NOTHING, *given.values())]  # noqa: B905  # Python 3.9
    return {
        name: tuple(  # type: ignore[misc]  # three of them
            share[kind] if sums[kind] <= total[kind] else share[kind] * total[kind] // sums[kind] for kind in (0, 1, 2)
        )
        for name, share in given.items()
    }
