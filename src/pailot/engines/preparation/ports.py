"""Ports that no other run on this machine has and that no process listens on."""

from __future__ import annotations

from ...runtime import ports
from ...runtime.locks import LocksError
from ..contract import EngineError
from .machine import MachineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class PortTaken(EngineError, ports.PortTaken):
    """A port that a job needs exactly is not to be had; `words` say why."""


class NoPorts(EngineError):
    """Not enough ports are free."""


class Ports(ports.Ports):
    """The ports of one job; what goes wrong is the engine's error."""

    def __init__(self, ranges: Sequence[range] | None = None) -> None:
        try:
            super().__init__(ranges)
        except LocksError as error:
            raise MachineError(str(error)) from None

    def take(self, count: int) -> list[int]:
        """Reserve free ports, from a random one upwards. Returns them; raises NoPorts, an EngineError, if there are too few."""
        try:
            return super().take(count)
        except ports.NoPorts as error:
            raise NoPorts(str(error)) from None

    def take_exactly(self, first: int, count: int = 1) -> list[int]:
        """Reserve just these ports, one after the other. Returns them; raises PortTaken, an EngineError, if one is in use."""
        try:
            return super().take_exactly(first, count)
        except ports.PortTaken as error:
            raise PortTaken(error.port, error.words) from None
