"""What Pailot's own engines are made of, for authors of others: one module, so that its parts can move.

Nothing is defined here, and no other module of Pailot imports it. The names that stand here stay as long as the contract does;
the modules that they come from may change with any version. docs/how-to/write-an-engine.md uses all of them.
"""

from __future__ import annotations

from ..runfolder.atomic_json import claim
from ..runfolder.layout import KILL, task_folder
from ..runfolder.stop_reason import claim_stop
from ..runtime.cleanup import clean_up
from ..runtime.processes import become_subreaper, kill_all
from ..runtime.processes import send as send_signal
from ..runtime.shim_events import Channel
from ..runtime.shim_process import run_and_exit
from .observation import LOST, observe_task
from .preparation.child_registry import CHILDREN, keep_only
from .preparation.ports import Ports
from .preparation.tasks import place_ports, prepare_tasks

__all__ = [
    "CHILDREN",
    "KILL",
    "LOST",
    "Channel",
    "Ports",
    "become_subreaper",
    "claim",
    "claim_stop",
    "clean_up",
    "keep_only",
    "kill_all",
    "observe_task",
    "place_ports",
    "prepare_tasks",
    "run_and_exit",
    "send_signal",
    "task_folder",
]
