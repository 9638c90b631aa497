"""What the rest of the house must know of an engine before, or without, loading it."""

from __future__ import annotations

from ..values import Value

__all__ = ["Traits"]


class Traits(Value):
    """How an engine differs from one that runs the tasks as plain processes of the driver's machine."""

    survives_launcher: bool = False
    """Tasks go on when the process that drives the run dies; else they are stopped with it."""
    decides_outcome: bool = False
    """A driver beside the tasks (batch script, server, driver pod) applies the completion policy; `Engine.decided` returns it."""
    needs_follower: bool = False
    """What becomes of a job is known only to a process that follows it; without, any process learns it from `Engine.observe`."""
    takes_job_file: bool = False
    """The whole job is handed on as a file, with its secrets, and is retried there."""
    own_filesystem: bool = False
    """Tasks see a file system of their own, that of an image."""
    works_in_current_directory: bool = True
    """Tasks find the directory in which the job was started, and what they write there stays."""
    on_this_machine: bool = True
    """Tasks use the processors, memory and GPUs of this machine; else they are queued, and counted, elsewhere."""
    has_channels: bool = True
    """Inputs and outputs of a job (/ml) can be brought to its tasks and back."""
    fits_server: bool = True
    """A server can run its users' jobs with it."""
    unix_users: bool = False
    """Tasks can be processes of another Unix user than ours."""

    @property
    def can_be_driven_on(self) -> bool:
        """Whether another process can drive a run on, from its folder alone, after its driver has died."""
        return self.survives_launcher and not self.needs_follower

    @property
    def runs_plain_processes(self) -> bool:
        """Whether tasks are processes of this machine that see what we see."""
        return self.on_this_machine and not self.own_filesystem


LOCAL = Traits(unix_users=True)
DOCKER = Traits(own_filesystem=True)
SLURM = Traits(survives_launcher=True, decides_outcome=True, on_this_machine=False)
KUBERNETES = Traits(
    survives_launcher=True,
    own_filesystem=True,
    works_in_current_directory=False,
    on_this_machine=False,
    has_channels=False,
    fits_server=False,
)
OPENPAI = Traits(
    survives_launcher=True,
    decides_outcome=True,
    needs_follower=True,
    takes_job_file=True,
    own_filesystem=True,
    works_in_current_directory=False,
    on_this_machine=False,
    has_channels=False,
)
