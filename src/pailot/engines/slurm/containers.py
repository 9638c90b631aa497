"""Images on the nodes: the words before `bash` that run it inside the image, for the runtimes a site may have."""

from __future__ import annotations

from ..base import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...planning import Plan, RolePlan

KNOWN = ("apptainer", "singularity", "podman", "docker")
# These pass on no variables by themselves, and names are known only when the task starts.
_WITH_VARIABLES = 'v=(); for n in $(compgen -e); do v+=(--env "$n"); done; exec "$0" run "${v[@]}" "$@"'


def wrappers(
    plan: Plan, setting: str, attempt_folder: str, checkpoints: str, works: Mapping[tuple[str, int], str]
) -> dict[str, tuple[str, ...]]:
    """For each role the words before bash; none where no runtime is configured."""
    if not setting:
        return {}
    folders = list(dict.fromkeys([attempt_folder, checkpoints, *works.values()]))
    return {role.name: _wrapper(role, setting, folders) for role in plan.roles.values()}


def _wrapper(role: RolePlan, setting: str, folders: list[str]) -> tuple[str, ...]:
    image = role.image.uri
    gpu = bool(role.resources.gpu)
    if setting in ("apptainer", "singularity"):
        binds = [word for folder in folders for word in ("--bind", folder)]
        source = image if "://" in image or image.startswith("/") else f"docker://{image}"
        return (setting, "exec", *(("--nv",) if gpu else ()), *binds, source)
    if setting in ("podman", "docker"):
        mounts = [word for folder in folders for word in ("--volume", f"{folder}:{folder}")]
        user = ("--userns=keep-id",) if setting == "podman" else ()
        devices = (("--device", "nvidia.com/gpu=all") if setting == "podman" else ("--gpus", "all")) if gpu else ()
        alike = ("--rm", "--interactive", "--network=host", "--pid=host", "--ipc=host", *user, *devices, *mounts)
        return ("bash", "-c", _WITH_VARIABLES, setting, *alike, image)
    import shlex

    words = shlex.split(setting)
    if "{image}" not in setting or not words:
        raise EngineError(f"slurm_container: '{setting}' is neither {', '.join(KNOWN)} nor words with {{image}} among them")
    return tuple(word.replace("{image}", image) for word in words)
