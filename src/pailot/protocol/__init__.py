"""What does the file say? Text becomes a typed, immutable `Job`, or a list of `Problem`s.

Names are loaded when first used: most rooms need only the errors, not the reader.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..problem import CODES, Problem
    from .model import Job
    from .problems import InvalidJob
    from .reader import read

_HOMES = {
    "CODES": ".problem",
    "InvalidJob": "problems",
    "Job": "model",
    "Problem": ".problem",
    "read": "reader",
}

__all__ = ["CODES", "InvalidJob", "Job", "Problem", "read"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pailot.protocol' has no attribute {name!r}")
