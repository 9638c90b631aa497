"""The seam: what is other for an attempt whose nodes do not see its folder. All it needs travels in its batch script, and what
it writes is brought back by a mirror, a process of its own (runtime/slurm/unshared).
"""

from __future__ import annotations

import json
import os
import time

from ....runfolder import layout
from ....runfolder.atomic_json import read_record
from ....runfolder.removing import remove_tree
from ...preparation.code_folder import bring_files
from .. import code_bundle, payload, private_part, slurm_cli
from ..container_wrappers import wrappers
from . import batch_script
from .batch_script import permitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ....runfolder.engine_records import SlurmJobRecord
    from ....settings import Settings
    from ...contract import Attempt, Engine, Steps
    from ..sbatch_request import SlurmRequest

MIRROR_SECONDS = 2.0
"""How long a mirror that has ended is not started again."""


class UnsharedHome:
    """One attempt that took everything along."""

    def __init__(self, settings: Settings, folder: str, code: str) -> None:
        self.settings, self.folder, self.code = settings, folder, code
        self.script = ""
        """The batch script, once it is packed."""
        self._mirror: slurm_cli.Command | None = None
        self._mirror_at = 0.0

    @classmethod
    def wanted(cls, settings: Settings, attempt: Attempt) -> UnsharedHome | None:
        """For an attempt that is to take everything along: as set, or because a node did not see an earlier one's folder."""
        if not batch_script.wanted(str(settings["slurm_shared_home"]), attempt.folder, attempt.number):
            return None
        return cls(settings, attempt.folder, code_bundle.code(attempt.context.home))

    @classmethod
    def of_record(cls, settings: Settings, folder: str, record: SlurmJobRecord, home: str = "") -> UnsharedHome | None:
        """For an attempt that was submitted before, if it took everything along; the code is that of `home`, if that is known."""
        if record.code is None and not _is_packed(folder):
            return None
        return cls(settings, folder, code_bundle.code(home) if home else record.code or "")

    def pack(
        self, attempt: Attempt, asked: SlurmRequest, beside: Callable[[Callable[[], None], Attempt], Steps[None]]
    ) -> Steps[None]:
        """Everything that the driver needs into the batch script; what a job names is opened `beside` the loop."""
        attempt = permitted(attempt, secrets_in_spool=bool(self.settings["slurm_secrets_in_spool"]))
        files = os.path.join(attempt.folder, "along")
        yield from beside(lambda: bring_files(attempt, files), attempt)
        token = payload.new_token()
        there = payload.on_nodes(attempt, token)
        tasks = [(role.name, index) for role in attempt.plan.roles.values() for index in range(role.instances)]
        places = {task: os.path.join(payload.task_folder(there, *task), layout.WORK) for task in tasks}
        around = wrappers(attempt.plan, self.settings["slurm_container"], there.folder, there.checkpoints, places.values())
        made = payload.build(there, asked.components, places, {}, around, token)
        made = made.replace(
            script=asked.head,
            away=True,
            fetch_seconds=float(self.settings["slurm_fetch_seconds"]),
            node_folder=self._node_folder,
        )
        public, private = private_part.split(made, attempt)
        data = json.dumps(public.to_json()).encode()
        self.script = batch_script.script(asked.head, self.code, files, data, private.to_bytes())
        remove_tree(files, ignore_errors=True)
        private_part.write_own(attempt.folder, layout.PAYLOAD, data)

    @property
    def variables(self) -> dict[str, str]:
        """What the batch script has to know."""
        return {"PAILOT_NODE_FOLDER": self._node_folder}

    def keep_mirror(self, job: str, owner: Engine) -> None:
        """While the job runs a process keeps the folder up to date; if another of ours does, it ends at once."""
        now = time.monotonic()
        if now >= self._mirror_at and (self._mirror is None or self._mirror.status is not None):
            self._mirror_at = now + MIRROR_SECONDS
            self._mirror = self.start_mirror(job, owner)

    def start_mirror(self, job: str, owner: Engine) -> slurm_cli.Command:
        words = [code_bundle.interpreter(), "-I", "-S", "-B", self.code, "mirror", self.folder, job, self._node_folder]
        return slurm_cli.Command(words, slurm_cli.environment(os.environ), owner=owner)

    @property
    def _node_folder(self) -> str:
        return str(self.settings["slurm_node_folder"])


def was_not_seen(settings: Settings, folder: str, job: str) -> bool:
    """Whether a job failed because its node did not see the folder; the next attempt then takes everything along."""
    if settings["slurm_shared_home"] != "auto" or slurm_cli.exit_code(job) != batch_script.NOT_SEEN:
        return False
    os.close(os.open(os.path.join(folder, batch_script.UNSHARED), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return True


def _is_packed(folder: str) -> bool:
    """Whether an attempt, of whose submission we do not know, took everything along."""
    return bool((read_record(os.path.join(folder, layout.PAYLOAD)) or {}).get("away"))
