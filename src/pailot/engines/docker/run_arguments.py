"""What a container is told on the engine's command line: folders, limits, devices, network, user."""

from __future__ import annotations

import os
from pwd import getpwuid

from ...runtime.docker_api import mount, mount_target
from ..contract import EngineError
from .container_cli import DOCKER, PODMAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...job_values import Options, Resources
    from ...planning import Plan
    from ..preparation.gpus import Gpu
    from .container_cli import Program

DEFAULT_SHM_MB = 512  # as OpenPAI
INFINIBAND = "/dev/infiniband"
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
_OF_THE_IMAGE = frozenset(
    "/ /bin /boot /dev /etc /lib /lib32 /lib64 /proc /root /run /sbin /sys /usr /usr/bin /usr/lib /usr/local /var".split()
)


def work_mount(folder: str) -> tuple[str, str]:
    """The folder where tasks work; one that belongs to the image's own system would hide that."""
    if os.path.normpath(folder) in _OF_THE_IMAGE:
        raise EngineError(
            f"tasks in containers cannot work in {folder}: it would hide the image's own; "
            "start the job from a folder of its own, or name one with --workdir DIR"
        )
    return mount(folder)


def job_folders(options: Options, shown: Sequence[str]) -> list[str]:
    """The folders of this machine that the job says it works with: outputDir, dataDir and $PAI_DEFAULT_FS_URI.

    Only for a job of this machine's own user, who could open them anyway. What the words of `shown` already mount, and what is
    not ours to use, is left out: the task then has what its image has at that path.
    """
    words = list(shown)
    if options.output_dir and options.output_dir.startswith("/"):
        try:
            os.makedirs(options.output_dir, exist_ok=True)
        except OSError:
            pass  # the task can do without, as on the other engines
    named = (
        (options.environment.get("PAI_DEFAULT_FS_URI"), os.W_OK),
        (options.output_dir, os.W_OK),
        (options.data_dir, os.R_OK),
    )
    for folder, right in named:
        if folder and folder.startswith("/") and os.path.isdir(folder) and os.access(folder, right | os.X_OK):
            place = "/" + os.path.normpath(folder).lstrip("/")  # which keeps two slashes at the beginning
            if place not in _OF_THE_IMAGE and not _is_shown(place, words):
                words += mount(place, read_only=right == os.R_OK)
    return words[len(shown) :]


def _is_shown(place: str, words: Sequence[str]) -> bool:
    """Whether a path of the container is, or lies in, one that these words mount."""
    targets = (mount_target(value) for option, value in zip(words[::2], words[1::2], strict=True) if option == "--mount")
    return any(f"{place}/".startswith(f"{target.rstrip('/')}/") for target in targets)


def more_mounts(listed: Iterable[str]) -> list[str]:
    """The setting container_mounts: `/data`, `/data:/mnt/data` or `/data:/mnt/data:ro`."""
    words: list[str] = []
    for each in listed:
        parts = each.split(":")
        mode = parts.pop() if parts[-1] in ("ro", "rw") and len(parts) > 1 else "rw"
        if len(parts) > 2 or not all(part.startswith("/") for part in parts):
            raise EngineError(f"container_mounts: '{each}' should be /FOLDER, /FOLDER:/INSIDE or /FOLDER:/INSIDE:ro")
        if not os.path.exists(parts[0]):
            raise EngineError(f"container_mounts: there is no {parts[0]} here")
        words += mount(parts[0], parts[-1], read_only=mode == "ro")
    return words


def storages(plan: Plan, folders: Mapping[str, str]) -> list[str]:
    """The job's storages: folders of this machine by name, as the setting `storages` says."""
    words: list[str] = []
    wanted = [(each.name, each.mount_path) for each in plan.storages]
    if not wanted and plan.default_storages:
        wanted = [(name, "") for name in folders]
    for name, place in wanted:
        folder = folders.get(name)
        if folder is None:
            known = f"; there is {', '.join(folders)}" if folders else ""
            raise EngineError(
                f"{plan.storages_key}: no folder is set for the storage '{name}'{known} (setting storages: {name}=/FOLDER)"
            )
        if not os.path.isdir(folder):
            raise EngineError(f"storages: the folder {folder} of the storage '{name}' is not there")
        words += mount(folder, place or f"/mnt/{name}")
    return words


def limits(program: Program, wanted: Resources, cpus: int) -> list[str]:
    """Memory, processor time and shared memory; an engine refuses more CPUs than there are."""
    words = ["--shm-size", f"{wanted.shm_mb or DEFAULT_SHM_MB}m"]
    if program.kind == PODMAN and program.rootless and not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return words  # Podman would warn and go on; the notes say so
    if wanted.memory_mb:
        words += ["--memory", f"{wanted.memory_mb}m", "--memory-swap", f"{wanted.memory_mb}m"]
    if wanted.cpu:
        words += ["--cpus", str(min(wanted.cpu, cpus))]
    return words


def devices(program: Program, wanted: Resources, gpus: Sequence[Gpu]) -> list[str]:
    """GPUs and InfiniBand. GPUs that were only declared, by number, have no device to give."""
    words: list[str] = []
    real = [gpu.uuid for gpu in gpus if gpu.uuid]
    if real and program.kind == PODMAN:
        if not _has_cdi():
            raise EngineError(
                "Podman gives GPUs to a container only by CDI, and ignores every other way without a word; "
                "there is no CDI description of them here: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
            )
        words += [word for uuid in real for word in ("--device", f"nvidia.com/gpu={uuid}")]
    elif real:
        words += ["--gpus", f'"device={",".join(real)}"' if program.kind == DOCKER else f"device={','.join(real)}"]
    if wanted.infiniband:
        if not os.path.isdir(INFINIBAND):
            raise EngineError(f"the job asks for InfiniBand, but this machine has no {INFINIBAND}")
        words += ["--device", INFINIBAND, "--ulimit", "memlock=-1:-1", "--cap-add", "IPC_LOCK"]
    return words


def _has_cdi() -> bool:
    for folder in CDI_FOLDERS:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as stream:
                if "nvidia.com/gpu" in stream.read():
                    return True
    return False


def user(program: Program, wanted: str) -> list[str]:
    """So that files belong to the user who started the job."""
    if is_root(program, wanted):
        return ["--user", "0:0"]  # with a rootless engine, that is us outside
    ids = ["--user", f"{os.geteuid()}:{os.getegid()}"]
    return ["--userns", "keep-id", *ids] if program.rootless else ids


def is_root(program: Program, wanted: str) -> bool:
    """Whether the task is root inside."""
    if program.rootless:
        return wanted == "root" or program.kind != PODMAN or not _has_more_ids()
    return wanted == "root" or os.geteuid() == 0


def _has_more_ids(file: str = "/etc/subuid") -> bool:
    """Whether the user may have other user ids inside, without which Podman cannot keep ours."""
    names = {str(os.geteuid())}
    try:
        names.add(getpwuid(os.geteuid()).pw_name)
    except KeyError:
        pass  # a user without a name
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return any(line.partition(":")[0] in names for line in stream)
    except OSError:
        return False
