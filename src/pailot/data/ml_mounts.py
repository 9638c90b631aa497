"""What each instance of a job with channels sees as /ml.

As in containers of their own: code, configuration and whatever else is written below /ml are one instance's alone, while
the channels are the same folders for all, so that all write to the same outputs. Of a single instance, what was made for
the job is its own.
"""

from __future__ import annotations

import os
import shutil

from ..runfolder import layout
from ..values import Value
from . import ml_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..job_values import Channels

CODE, CONFIGURATION, DATA = "usercode", "input/config", "input/data"
CONTAINED = "PAILOT_CONTAINED"
"""The variable that says that a task has the file system of its image for itself."""


class Mount(Value):
    """A file or folder of this machine, and where a task sees it."""

    source: str
    target: str
    read_only: bool = False


class MlFolders(Value):
    """The folders of one instance: those of its own, and those that all share."""

    chosen: Channels
    own: str
    shared: str

    def variables(self, *, inside: bool) -> dict[str, str]:
        """Where the instance finds things: below /ml, or in the folders as they are."""
        return ml_folders.variables(self.chosen, ml_folders.INSIDE if inside else self.own, self.shared)

    def mounts(self, shown: Sequence[tuple[str, str]] = ()) -> list[Mount]:
        """What of this machine is seen where, in this order: inputs for reading only, all else below /ml can be written.

        `shown` are inputs that are where they are, as (path, place below /ml).
        """
        outputs = [] if self.own == self.shared else self._each(self.shared, _outputs(self.chosen))
        return [
            Mount(self.own, ml_folders.INSIDE),
            *(Mount(source, target) for source, target in outputs),
            *(Mount(source, target, read_only=True) for source, target in self._each(self.shared, [DATA])),
            *(Mount(path, f"{ml_folders.INSIDE}/{place}", read_only=True) for path, place in shown),
        ]

    def bound(self, shown: Sequence[tuple[str, str]] = ()) -> tuple[str, ...]:
        """The mounts in bubblewrap's words."""
        return tuple(
            word
            for each in self.mounts(shown)
            for word in ("--ro-bind" if each.read_only else "--bind", each.source, each.target)
        )

    def parts(self) -> list[tuple[str, str]]:
        """The same, one by one, for programs that do not follow links."""
        other = [
            (os.path.join(self.shared, "output", name), f"{ml_folders.INSIDE}/{ml_folders.OTHER_OUTPUTS}/{name}")
            for name in self.chosen.outputs
        ]
        return [*self._each(self.own, (CODE, CONFIGURATION)), *self._each(self.shared, _of_all(self.chosen)), *other]

    def _each(self, folder: str, places: Sequence[str]) -> list[tuple[str, str]]:
        return [(os.path.join(folder, place), f"{ml_folders.INSIDE}/{place}") for place in places]


def make(chosen: Channels, ml: str, tasks: Mapping[tuple[str, int], str]) -> dict[tuple[str, int], MlFolders]:
    """The views of tasks in their folders; `ml` is the folder that was made for the job."""
    alone = len(tasks) == 1
    return {task: MlFolders(chosen, ml if alone else os.path.join(folder, layout.ML), ml) for task, folder in tasks.items()}


def fill(views: Mapping[tuple[str, int], MlFolders], *, mounted: bool) -> None:
    """Give each task a copy of the job's code and configuration; where channels are not `mounted`, links to them."""
    for each in views.values():
        if each.own == each.shared:
            continue
        for part in (CODE, CONFIGURATION):
            shutil.copytree(os.path.join(each.shared, part), os.path.join(each.own, part), symlinks=True)
        os.mkdir(os.path.join(each.own, "output"))
        ml_folders.show_outputs_twice(each.own)
        for place in _of_all(each.chosen):
            if mounted:
                os.mkdir(os.path.join(each.own, place))
            else:
                os.symlink(os.path.join(each.shared, place), os.path.join(each.own, place))


def _of_all(chosen: Channels) -> list[str]:
    return [DATA, *_outputs(chosen)]


def _outputs(chosen: Channels) -> list[str]:
    return [f"output/{name}" for name in chosen.outputs]
