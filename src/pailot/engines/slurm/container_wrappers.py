"""Images on the nodes: the words before `bash` that run it inside the image, for the runtimes a site may have."""

from __future__ import annotations

import shlex

from ...data.ml_mounts import CONTAINED
from ...values import Value
from ..contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ...data.ml_mounts import MlFolders
    from ...planning import Plan, RolePlan

KNOWN = ("apptainer", "singularity", "podman", "docker")
# These pass on no variables by themselves, and names are known only when the task starts.
_WITH_VARIABLES = 'v=(); for n in $(compgen -e); do v+=(--env "$n"); done; exec "$0" run "${v[@]}" "$@"'

# Folders and where they are to be seen, variables that then hold, the command: where bubblewrap does not work, only that.
_WITH_ML = """\
shopt -s dotglob nullglob
w=(bwrap --die-with-parent --tmpfs /)
for f in /*; do
    if [ "$f" = /ml ]; then :
    elif [ -L "$f" ]; then w+=(--symlink "$(readlink "$f")" "$f")
    else w+=(--dev-bind "$f" "$f")
    fi
done
while [ "$1" != -- ]; do w+=(--bind "$1" "$2"); shift 2; done
shift
v=()
while [ "$1" != -- ]; do v+=("$1"); shift; done
shift
if "${w[@]}" true 2>/dev/null; then exec env "${v[@]}" "${w[@]}" "$@"; fi
exec "$@"
"""


class SeenChannels(Value):
    """What a task sees of the job's channels: its variables, and the words before bash that make it so."""

    variables: Mapping[str, str]
    wrapper: Sequence[str]


def see(view: MlFolders, wrapper: tuple[str, ...], setting: str) -> SeenChannels:
    """The view of a task: a real /ml in an image, and on a node where bubblewrap works; else the folders as they are."""
    if setting in KNOWN:
        option = "--bind" if setting in ("apptainer", "singularity") else "--volume"
        binds = [word for source, target in view.parts() for word in (option, f"{source}:{target}")]
        told = {CONTAINED: "1"} if setting in ("podman", "docker") else {}  # the others' images cannot be written to
        return SeenChannels({**view.variables(inside=True), **told}, (*wrapper[:-1], *binds, wrapper[-1]))
    if setting or not view.chosen.mount:
        return SeenChannels(view.variables(inside=False), wrapper)
    places = [word for pair in view.parts() for word in pair]
    inside = [f"{name}={value}" for name, value in view.variables(inside=True).items()]
    return SeenChannels(view.variables(inside=False), ("bash", "-c", _WITH_ML, "bash", *places, "--", *inside, "--"))


def wrappers(
    plan: Plan, setting: str, attempt_folder: str, checkpoints: str, more: Iterable[str], read_only: Iterable[str] = ()
) -> dict[str, tuple[str, ...]]:
    """For each role the words before bash; none where no runtime is configured.

    `more` folders are seen inside, too, and those in `read_only` for reading.
    """
    if not setting:
        return {}
    folders = list(dict.fromkeys([attempt_folder, checkpoints, *more]))
    shown = [folder for folder in dict.fromkeys(read_only) if not folder.startswith(tuple(f"{each}/" for each in folders))]
    return {role.name: _wrapper(role, setting, folders, shown) for role in plan.roles.values()}


def _wrapper(role: RolePlan, setting: str, folders: list[str], read_only: list[str]) -> tuple[str, ...]:
    image = role.image.uri
    gpu = bool(role.resources.gpu)
    if setting in ("apptainer", "singularity"):
        binds = [word for folder in folders for word in ("--bind", folder)]
        binds += [word for folder in read_only for word in ("--bind", f"{folder}:{folder}:ro")]
        source = image if "://" in image or image.startswith("/") else f"docker://{image}"
        return (setting, "exec", *(("--nv",) if gpu else ()), *binds, source)
    if setting in ("podman", "docker"):
        mounts = [word for folder in folders for word in ("--volume", f"{folder}:{folder}")]
        mounts += [word for folder in read_only for word in ("--volume", f"{folder}:{folder}:ro")]
        user = ("--userns=keep-id",) if setting == "podman" else ()
        devices = (("--device", "nvidia.com/gpu=all") if setting == "podman" else ("--gpus", "all")) if gpu else ()
        alike = ("--rm", "--interactive", "--network=host", "--pid=host", "--ipc=host", *user, *devices, *mounts)
        return ("bash", "-c", _WITH_VARIABLES, setting, *alike, image)

    words = shlex.split(setting)
    if "{image}" not in setting or not words:
        raise EngineError(f"slurm_container: '{setting}' is neither {', '.join(KNOWN)} nor words with {{image}} among them")
    return tuple(word.replace("{image}", image) for word in words)
