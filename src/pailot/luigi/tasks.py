"""Jobs as luigi tasks: started once, followed live, stopped with the pipeline."""

from __future__ import annotations

import abc
import fcntl
import json
import logging
import os
import tempfile
import weakref

import luigi
from luigi.configuration import get_config

from ..client.errors import Unreachable
from ..sdk.job import Job, load, loads
from ..settings import Settings
from .backends import LOCAL, is_here, is_shared, place_for
from .config import OpenPai
from .pai_job import PaiJob, TaskRole, slot_to_dict
from .run_job import see_through
from .started import ENDED, SUCCEEDED
from .targets import VARIABLE, Folder, check, is_there, resolved, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .backends import Place
    from .started import Started

logger = logging.getLogger("luigi-interface")
HINT = "for jobs on this machine, without a server, write pai_url = local below [OpenPai] in luigi.cfg"
UNSEEN: set[str] = set()
"""Tasks of which it was said that their output cannot be looked at from here."""


class Memory:
    """The jobs that this luigi has started; the forked workers of a pipeline share it, and it leaves nothing behind."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._descriptor = os.dup(file.fileno())
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, os.O_APPEND)  # several workers may write at once
        weakref.finalize(self, os.close, self._descriptor)

    def add(self, url: str, name: str) -> None:
        os.write(self._descriptor, json.dumps([url, name]).encode() + b"\n")

    def has(self, url: str, name: str) -> bool:
        data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        return json.dumps([url, name]).encode() in data.splitlines()


STARTED = Memory()


class JobTask(luigi.Task):
    """What all tasks that are jobs have in common."""

    pai_url: str | None = None
    """The server of this task, or 'local'; as in luigi's configuration if it is None."""
    token: str | None = None
    """The token of this task; as in luigi's configuration if it is None."""

    @property
    def job_name(self) -> str:
        """The name of the job: a subclass has to say it."""
        raise NotImplementedError

    def _job(self, *, again: bool) -> tuple[Job, Mapping[str, object] | None]:
        """The job, and as version 1 if it is one; `again`: luigi itself tries it once more."""
        raise NotImplementedError

    def _place(self) -> Place:
        config = OpenPai()
        token = self.token or (None if self.pai_url else config.token)
        try:
            return place_for(self._url, config.username, config.password, config.expiration, token)
        except Unreachable as problem:
            if self.pai_url or get_config().has_option("OpenPai", "pai_url"):
                raise
            raise Unreachable(f"{problem}; {HINT}") from None

    @property
    def _url(self) -> str:
        return str(self.pai_url or OpenPai().pai_url)

    def run(self) -> None:
        """Start the job, or join the one that is running already, and wait until it has succeeded."""
        for each in luigi.task.flatten(self.output()):
            check(each)
        see_through(self, self._start)

    def _start(self) -> Started:
        place = self._place()
        latest = place.latest(self.job_name)
        if latest is not None:
            state = latest.state()
            if state not in ENDED:
                logger.info("job %s is running already; waiting for it", self.job_name)
                return latest
            if state in SUCCEEDED and self._left_its_output(place):
                logger.info("job %s has succeeded already", self.job_name)
                return latest
        job, v1 = self._job(again=STARTED.has(self._url, self.job_name))
        for problem in job.warnings:
            logger.warning("job %s: %s", self.job_name, problem.message)
        self._make_places()
        started = place.start(self.job_name, job, v1)
        STARTED.add(self._url, self.job_name)
        return started

    def complete(self) -> bool:
        """Whether its job has succeeded, and its output is there; where no record is left, the output alone tells.

        Where the output cannot be looked at from this machine, the record alone tells.
        """
        place = self._place()
        latest = place.latest(self.job_name)
        if latest is not None:
            return latest.state() in SUCCEEDED and self._left_its_output(place)
        outputs = luigi.task.flatten(self.output())
        return bool(outputs) and all(each.exists() for each in outputs)

    def _left_its_output(self, place: Place) -> bool:
        """Whether nothing is missing of what its job was to leave behind, as far as can be seen from here."""
        for each in luigi.task.flatten(self.output()):
            there = None if isinstance(each, Folder) and not place.sees(each.path) else is_there(each)
            if there is None and self.task_id not in UNSEEN:
                UNSEEN.add(self.task_id)
                logger.info(
                    "job %s: its output %s cannot be looked at from here, so its record alone tells that it is complete",
                    self.job_name,
                    getattr(each, "path", each),
                )
            if there is False:
                return False
        return True

    def _make_places(self) -> None:
        """Folders of this machine that the job expects."""


class PaiTask(JobTask):
    """A job of version 1, with the properties of `luigi.contrib.pai.PaiTask`.

    ::

        class Train(PaiTask):
            name = "train"
            image = "python:3.12"
            tasks = [TaskRole("worker", "python train.py", memoryMB=4096)]
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name of the job, required."""

    @property
    @abc.abstractmethod
    def image(self) -> str:
        """The Docker image of all tasks, required."""

    @property
    @abc.abstractmethod
    def tasks(self) -> list[TaskRole]:
        """The task roles, at least one, required."""

    @property
    def auth_file_path(self) -> str | None:
        """The file with registry, user and password; None if the registry is public."""
        return None

    @property
    def data_dir(self) -> str | None:
        """Where the data is: PAI_DATA_DIR."""
        return None

    @property
    def code_dir(self) -> str | None:
        """The code that is brought to every task."""
        return None

    @property
    def output_dir(self) -> str | None:
        """Where output goes: PAI_OUTPUT_DIR."""
        return f"${VARIABLE}/{self.name}/output"

    @property
    def virtual_cluster(self) -> str | None:
        """The virtual cluster that the job runs in."""
        return "default"

    @property
    def gpu_type(self) -> str | None:
        """The type of GPU to run on; None for any."""
        return None

    @property
    def retry_count(self) -> int:
        """How often the job is tried again. When luigi itself runs the task again, the job is not, so that retries add up."""
        return 0

    @property
    def job_name(self) -> str:
        """The name of the job."""
        return self.name

    def pai_job(self) -> PaiJob:
        """The job as it is sent to an OpenPAI server."""
        job = PaiJob(self.name, self.image, self.tasks)
        job.virtualCluster = self.virtual_cluster
        job.authFile = self.auth_file_path
        job.codeDir = self.code_dir
        job.dataDir = self.data_dir
        job.outputDir = self.output_dir
        job.retryCount = self.retry_count
        job.gpuType = self.gpu_type
        return job

    def _job(self, *, again: bool) -> tuple[Job, Mapping[str, object] | None]:
        v1: dict[str, Any] = json.loads(json.dumps(self.pai_job(), default=slot_to_dict))
        if again:
            v1["retryCount"] = 0
        ours = dict(v1)
        for key in ("dataDir", "codeDir", "outputDir", "authFile"):
            if ours.get(key):
                ours[key] = resolved(ours[key])
        ours["jobEnvs"] = {VARIABLE: Settings().default_fs_uri}
        ours["extras"] = {"luigi": {"task": self.task_id}}
        return loads(json.dumps(ours)), v1

    def _make_places(self) -> None:
        found = resolved(self.output_dir or "")
        if not found or "://" in found:
            return
        if self._url == LOCAL:
            os.makedirs(found, exist_ok=True)
        elif not is_here(self._url) and not is_shared(found):
            logger.warning(
                "job %s writes to %s on another machine; a place for both can be set: default_fs_uri (PAILOT_DEFAULT_FS_URI)",
                self.job_name,
                found,
            )

    def output(self) -> luigi.Target | list[luigi.Target]:
        """The output folder."""
        return target(self.output_dir) if self.output_dir else []


class ProtocolTask(JobTask):
    """A job file of protocol v2, or a `pailot.Job`, as a task. Luigi parameters set the job's parameters of the same names.

    ::

        class Train(ProtocolTask):
            job = "train.yaml"
            rate = luigi.FloatParameter()  # <% $parameters.rate %>
    """

    @property
    def job(self) -> Job | str | os.PathLike[str]:
        """The job, or the path of its file."""
        raise NotImplementedError

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets of the job, given here rather than in the file."""
        return {}

    @property
    def overrides(self) -> dict[str, Any]:
        """What else is changed in the job, by dotted paths."""
        return {}

    @property
    def job_name(self) -> str:
        """The job's name, with luigi's own mark where the task has parameters: each combination is a job."""
        return self._read().name

    def _read(self) -> Job:
        found = self.job
        read = load(found) if isinstance(found, str | os.PathLike) else found
        given = {name: value for name, value in self.param_kwargs.items() if name in read.parameters}
        changes = {**{f"parameters.{name}": _plain(value) for name, value in given.items()}, **self.overrides}
        mark = f"-{self.task_id.rpartition('_')[2]}" if self.get_params() else ""
        changed = read.changed(changes, secrets=self.secrets, name=f"{read.name}{mark}")
        return changed

    def _job(self, *, again: bool) -> tuple[Job, Mapping[str, object] | None]:
        note = {"extras.luigi": {"task": self.task_id}}
        return self._read().changed({**note, **({"jobRetryCount": 0} if again else {})}), None

    def output(self) -> list[luigi.Target]:
        """The targets; none by default: the job's record tells whether it is complete."""
        return []


def _plain(value: Any) -> Any:
    """A luigi parameter's value as a value of a job file."""
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
