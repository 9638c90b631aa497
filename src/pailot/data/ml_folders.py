"""The folders that tasks of a job share, laid out as /ml is in Alibaba's PAI.

Inside a container or sandbox they really are /ml; without one the same layout stands in the attempt's folder. The variables
tell. What is on this machine is shown as it is, what is elsewhere is fetched first; outputs are brought to their targets
when the job has succeeded, so that a reader never finds half of them.
"""

from __future__ import annotations

import json
import os
import shutil

from ..runfolder.atomic_json import read_record, write_record
from ..values import Value
from .errors import DataError
from .filesystems import is_remote, shown
from .provisions import fetch
from .rules import OWN_MACHINE
from .tar import BadArchive, is_archive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..job_values import Channels
    from ..progress import Progress
    from .rules import Rules

INSIDE = "/ml"
OTHER_OUTPUTS = "outputs/data"
"""Where the documentation of Alibaba's `Processor.run` has the outputs; that of the class has them in `output`."""


class Filled(Value):
    """What was made of the channels of a job."""

    shown: Sequence[Sequence[str]]
    """What of this machine is seen below the folder, as (path, place in the folder)."""
    files: Mapping[str, str]
    """By channel: the name of the file that its source is, where that is no folder."""

    def keep(self, folder: str) -> None:
        """Write down what `variables` has to know later; beside the folder, where no task can write."""
        if self.files:
            write_record(f"{folder}.files.json", dict(self.files), durable=False)


def make(
    channels: Channels,
    folder: str,
    cache: str = "",
    cwd: str = "",
    *,
    mounted: bool = False,
    tell: Callable[[Progress], None] = lambda _: None,
    rules: Rules = OWN_MACHINE,
) -> Filled:
    """The layout: code, configuration, a folder for each channel, with the data that the job names.

    What is on this machine is shown by links, unless it is `mounted` there, for reading only, by a container or sandbox. On a
    server it is always a link: what a path leads to may be another thing by the time it is mounted.
    """
    for part in ("usercode", "input/config", "input/data", "output", *(f"output/{each}" for each in channels.outputs)):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    show_outputs_twice(folder)
    if channels.hyperparameters is not None:
        with open(os.path.join(folder, "input/config/hyperparameters.json"), "w", encoding="utf-8") as stream:
            json.dump(dict(channels.hyperparameters), stream)
    if channels.code:
        _bring_code(channels.code, os.path.join(folder, "usercode"), cache, cwd, tell, rules)
    seen = []
    files: dict[str, str] = {}
    for name in channels.inputs:
        place = f"input/data/{name}"
        source = channels.sources.get(name)
        if not source:
            os.makedirs(os.path.join(folder, place), exist_ok=True)
            continue
        path = fetch(source, cache, cwd, f"input {name}", tell, rules)
        if not os.path.isdir(path):
            files[name] = os.path.basename(path)
        if is_remote(source):
            # The cache is not the task's to change: a read-only mount protects it, or else file modes do (not from root).
            _copy(path, os.path.join(folder, place), linked=mounted or os.geteuid() != 0)
        else:
            place = place if os.path.isdir(path) else f"{place}/{os.path.basename(path)}"
            seen.append((path, place))
            _show(path, os.path.join(folder, place), mounted=mounted and not rules.server)
    return Filled(seen, files)


def show_outputs_twice(folder: str) -> None:
    """Outputs have two places in Alibaba's documentation: they are the same folders."""
    place = os.path.join(folder, OTHER_OUTPUTS)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if not os.path.lexists(place):
        os.symlink("../output", place)


def _show(path: str, place: str, *, mounted: bool) -> None:
    """A link, or that on which something is mounted."""
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if not mounted:
        os.symlink(path, place)
    elif os.path.isdir(path):
        os.makedirs(place, exist_ok=True)
    else:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o444))


def places(channels: Channels) -> list[str]:
    """All addresses that a job's channels name, inputs, outputs and code."""
    return [*channels.sources.values(), *channels.targets.values(), *([channels.code] if channels.code else [])]


def fetched(channels: Channels) -> list[str]:
    """What is not on this machine and so must be fetched first, as it may be shown."""
    return [shown(uri) for uri in (*channels.sources.values(), channels.code or "") if is_remote(uri)]


def variables(channels: Channels, base: str, folder: str = "") -> dict[str, str]:
    """Where a task finds them; `base` is /ml or the folder that stands for it, `folder` that folder as it is here."""
    found = {"PAI_WORKING_DIR": f"{base}/usercode/", "PAI_CONFIG_DIR": f"{base}/input/config/"}
    files = _only_files(folder)
    for name in channels.inputs:
        found[f"PAI_INPUT_{_spelled(name)}"] = f"{base}/input/data/{name}/{files.get(name, '')}"
    for name in channels.outputs:
        found[f"PAI_OUTPUT_{_spelled(name)}"] = f"{base}/output/{name}/"
    return found


def _only_files(folder: str) -> dict[str, str]:
    """The names of the files that channels are whose source is no folder."""
    return read_record(f"{folder}.files.json") or {} if folder else {}


def _spelled(name: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name).upper()


def _bring_code(source: str, target: str, cache: str, cwd: str, tell: Callable[[Progress], None], rules: Rules) -> None:
    """A folder is copied, an archive unpacked: what a task writes beside its code is not the user's."""
    path = fetch(source, cache, cwd, "code", tell, rules)
    if os.path.isdir(path):
        _copy(path, target)
        return
    from .unpacking import unpack

    if not is_archive(path):
        _copy(path, target)
        return
    try:
        unpack(path, target)
    except BadArchive as error:
        raise DataError(f"the code {shown(source)} cannot be unpacked: {error}") from None


def _copy(path: str, target: str, *, linked: bool = False) -> None:
    """Files that are never changed can be hard links to the same file; that costs neither time nor space."""

    def place(source: str, to: str, *, follow_symlinks: bool = True) -> str:
        if linked:
            try:
                os.link(source, to, follow_symlinks=False)
                return to
            except OSError:
                pass  # another file system
        return shutil.copy2(source, to, follow_symlinks=follow_symlinks)

    if os.path.isdir(path):
        shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True, copy_function=place)
    else:
        os.makedirs(target, exist_ok=True)
        place(path, os.path.join(target, os.path.basename(path)))
