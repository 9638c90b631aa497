"""The jobs of a queue as values: those that wait, those that run, and why one waits."""

from __future__ import annotations

from ..values import Value
from .capacity import CLASSES, OPPORTUNISTIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .capacity import Group


class Request(Value):
    """A job that waits, with the sum of what its tasks ask for."""

    id: str
    name: str = ""
    """What messages call it."""
    cpu: float = 0
    memory_mb: int = 0
    gpu: int = 0
    priority: str = "test"
    vc: str = "default"
    order: float = 0
    """When it came: smaller is earlier. A job that is queued again keeps its place."""
    overtaken: int = 0
    user: str = ""
    """Whose it is, for what each user may have."""


class Holding(Value):
    """A job that runs."""

    request: Request
    started: float = 0
    stopping: bool = False
    """It is being stopped: what it holds will soon be free."""


class Reason(Value):
    """Why a job waits: `never`, `limit` (of its user), `room`, `kept` (for one in front of it), `stopping` (others make room)
    or `ready`.
    """

    kind: str
    text: str
    missing: Mapping[str, float] = {}
    """`cpu`, `memory_mb`, `gpu`: what is not there for it."""
    holders: tuple[str, ...] = ()
    """Who has it, the biggest first."""
    position: int = 0
    length: int = 0


def group_of(request: Request) -> Group:
    """In whose line a job stands."""
    rank = CLASSES.index(request.priority)
    return (rank, "" if rank == OPPORTUNISTIC else request.vc)
