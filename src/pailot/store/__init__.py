"""What do we remember? The index of runs, where it may live, and the secrets of jobs.

The truth about a run is in its job folder; the index only finds it quickly and can be made anew.
Names are loaded when first used: `import pailot.store` opens and loads no database.
"""

from __future__ import annotations

from importlib import import_module

from ..errors import PailotError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .index import Index, JobRow, NameInUse, new_id
    from .network_filesystems import index_path, is_network
    from .secrets import SecretBox

_HOMES = {
    "Index": "index",
    "JobRow": "index",
    "NameInUse": "index",
    "new_id": "index",
    "index_path": "network_filesystems",
    "is_network": "network_filesystems",
    "SecretBox": "secrets",
}

__all__ = ["Index", "JobRow", "NameInUse", "SecretBox", "StoreError", "index_path", "is_network", "new_id"]


class StoreError(PailotError):
    """Something kept cannot be read or written; the message is one line that says what to do."""


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pailot.store' has no attribute {name!r}")
