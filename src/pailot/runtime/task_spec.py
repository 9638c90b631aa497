"""What a shim is told about its task."""

from __future__ import annotations

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..job_values import Options
    from ..runfolder.plan import RolePlan
    from .rights import UnixUser


class Container(Value):
    """How a task's container is made: the words of the engine's command line. No secret is among them."""

    command: tuple[str, ...]
    """The engine's program, `docker` for instance."""
    name: str
    """The container's, to which the number of the task attempt is added."""
    words: tuple[str, ...]
    """Of `run`, between the name and the image: mounts, limits, network."""
    image: str
    memory_folder: str = ""
    """A folder in the container's memory, for what may never lie on a disk; empty where there are no secrets."""
    removes_itself: bool = True
    """Whether the engine removes it when it has ended. Docker must not be asked to: a daemon that was killed and comes back ends
    all containers that it is to remove, although it lets the others live (live-restore)."""
    remove_at: str = ""
    """The socket of Docker's daemon, which is asked to remove it."""
    socket: str = ""
    """Where Docker's daemon can be asked without its program; empty where it must be the program."""
    needs_client: bool = False
    """Whether the engine has no daemon, so that its `run` must end by itself."""
    wait_until_removed: bool = False
    """Whether the task is over only then: its ports are published, its network is to be removed."""


class Task(Value):
    """One task of one job attempt: everything its shim needs. It holds secrets and lives in memory only."""

    role: str
    index: int
    folder: str
    work_dir: str
    environment: Mapping[str, str]
    main: str
    start: str = ""
    exit: str = ""
    secrets: Mapping[str, str] = {}
    """What stands in the scripts for a secret, and the secret."""
    hidden: tuple[str, ...] = ()
    """Texts that no log may show."""
    inherited: Mapping[str, str] = {}
    """What of `environment` the task takes from the process that started the job; not all of it is written down."""
    attempt_folder: str = ""
    checkpoint: str = ""
    """The folder that survives retries, which the shim makes."""
    retries: int = 0
    retry_delay: float = 1
    grace: float = 30
    hold_seconds: float = 0
    hold_command: str = ""
    memory_mb: int = 0
    cpus: int = 0
    rotate_bytes: int = 0
    outlives_power: bool = True
    """Whether the task can go on while the machine that wrote these records is down; one on this machine cannot."""
    owner: UnixUser | None = None
    """Whose the task's processes are, if not ours: what they write to must be theirs."""
    foreign_stop: str = ""
    """What a SIGTERM means that no word of ours explains: where another program (Slurm) may stop tasks, why it does."""
    wrapper: tuple[str, ...] = ()
    """Words before `bash`: a sandbox, for instance."""
    script_on_input: bool = False
    """Whether bash reads its script from standard input: for a wrapper that hands on no other descriptor."""
    container: Container | None = None
    """The container it runs in; none on the local engine."""

    @property
    def name(self) -> str:
        return f"{self.role}:{self.index}"

    def __repr__(self) -> str:
        return f"Task({self.name})"

    def to_json(self) -> dict[str, object]:
        """All of it, secrets included, for a process on another machine; a task with an owner or a container stays here."""
        assert self.owner is None
        assert self.container is None
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Task:
        """What `to_json` made."""
        return cls(**{**found, "hidden": tuple(found["hidden"]), "wrapper": tuple(found["wrapper"])})


def task_of_plan(role: RolePlan, options: Options, **more: Any) -> Task:
    """A task as its plan has it; `more` is what depends on the place where it runs."""
    scripts = role.scripts
    return Task(
        role=role.name,
        main=scripts.main,
        start=scripts.start,
        exit=scripts.exit,
        retries=role.task_retry_count,
        retry_delay=options.retry_delay_seconds,
        grace=options.grace_seconds,
        hold_seconds=options.hold_on_failure_minutes * 60,
        hold_command=options.hold_command or "",
        **more,
    )
