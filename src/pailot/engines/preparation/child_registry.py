"""The children of this process, and whose they are.

A process has one list of children, however many runs it drives: who collects ended children finds those of other runs.
"""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    class Parent(Protocol):
        """Who wants to hear that a child has ended."""

        def child_ended(self, pid: int, status: int) -> None: ...


class Children:
    """All children that this process has forked."""

    def __init__(self) -> None:
        self.owners: dict[int, Parent] = {}
        self.touched: dict[Parent, None] = {}
        """The owners whose children ended since this was last emptied."""
        self.on_fault: Callable[[Parent, Exception], None] | None = None
        """Called with an error that an owner raised when it heard of its child; without it, the error is raised."""

    def add(self, pid: int, owner: Parent) -> None:
        self.owners[pid] = owner

    def reap(self) -> None:
        """Collect the dead, tell their owners; orphans that died with us as their new parent have none."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            owner = self.owners.pop(pid, None)
            if owner is not None:
                self.touched[owner] = None
                try:
                    owner.child_ended(pid, status)
                except Exception as error:
                    if self.on_fault is None:
                        raise
                    self.on_fault(owner, error)


def keep_only(descriptors: Iterable[int]) -> None:
    """In a child of a process that drives many runs: close what is not its own, locks and pipes of other runs above all."""
    before = 2
    for descriptor in sorted({each for each in descriptors if each > before}):
        os.closerange(before + 1, descriptor)
        before = descriptor
    os.closerange(before + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


CHILDREN = Children()
