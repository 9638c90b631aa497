"""Values that a job file says and a plan takes over as they are."""

from __future__ import annotations

from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Auth(Value):
    """Credentials of a registry; may still hold references to secrets."""

    username: str = ""
    password: str = ""
    registry: str = ""

    def __repr__(self) -> str:
        return f"Auth(username={self.username!r}, password='******', registry={self.registry!r})"


class Completion(Value):
    """When a role ends the job; None switches a bound off."""

    min_failed: int | None
    min_succeeded: int | None


class Resources(Value):
    """What one task needs."""

    cpu: int
    memory_mb: int
    gpu: int
    shm_mb: int | None = None
    infiniband: bool = False
    ports: Mapping[str, int] = {}


class Storage(Value):
    name: str
    mount_path: str


class Channels(Value):
    """Folders that the tasks of a job share: data in, results out."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    sources: Mapping[str, str] = {}
    """Where the data of inputs is."""
    targets: Mapping[str, str] = {}
    """Where the data of outputs goes when the job has succeeded."""
    code: str | None = None
    hyperparameters: Mapping[str, str] | None = None
    mount: bool = False


class Options(Value):
    """`extras.pailot`: options that OpenPAI does not have."""

    max_run_seconds: float | None = None
    grace_seconds: float = 30
    retry_delay_seconds: float = 1
    hold_on_failure_minutes: float = 0
    hold_command: str | None = None
    code: str | None = None
    environment: Mapping[str, str] = {}
    data_dir: str | None = None
    output_dir: str | None = None
    gpu_type: str | None = None
    auth_file: str | None = None
    port_base: Mapping[str, Mapping[str, int]] = {}
    labels: Mapping[str, str] = {}
    channels: Channels | None = None
    after: tuple[str, ...] = ()
    """Jobs that this one waits for: `JOB`, `JOB:success` or `JOB:end`."""
