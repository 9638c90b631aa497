"""`TrainingJob`: a processing job that was started, in Alibaba's words, on any engine."""

from __future__ import annotations

import re
import sys
import time
import warnings
from contextlib import nullcontext
from threading import Timer

from ..data.ml_strays import WORDS
from ..errors import PailotError
from ..progress import display
from ..sdk import local_runs
from ..sdk.errors import WaitTimeout
from ..sdk.transfer_progress import Transfers
from ..views.cancellation import Quit
from .alibaba_types import (
    AlgorithmSpec,
    ComputeResource,
    DatasetConfig,
    HyperParameter,
    MetricDefinition,
    SchedulerConfig,
    UriInput,
    UriOutput,
)
from .errors import UnexpectedStatusException
from .session import Session, get_default_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from ..sdk.client import Client
    from ..sdk.run import Run

LABEL = "pailot.processor"
KEPT = ("Environments", "PythonRequirements", "Settings", "SpotSpec", "UserVpc", "ResourceType")
"""What a job was given, and is described by as it was given."""
PREPARING = ("local", "docker")
"""Engines without a queue: a job that waits there is being prepared."""


class TrainingJobStatus:
    """Alibaba's words for the states of a job."""

    CreateFailed = "CreateFailed"
    InitializeFailed = "InitializeFailed"
    Succeed = "Succeed"
    Failed = "Failed"
    Terminated = "Terminated"
    Creating = "Creating"
    Created = "Created"
    Initializing = "Initializing"
    Submitted = "Submitted"
    Running = "Running"

    @classmethod
    def completed_status(cls) -> list[str]:
        """The words for a job that is over."""
        return [cls.CreateFailed, cls.InitializeFailed, cls.Succeed, cls.Failed, cls.Terminated]

    @classmethod
    def failed_status(cls) -> list[str]:
        """The words for a job that has failed."""
        return [cls.CreateFailed, cls.InitializeFailed, cls.Failed]


_STATUS = {
    "WAITING": TrainingJobStatus.Submitted,
    "RUNNING": TrainingJobStatus.Running,
    "STOPPING": TrainingJobStatus.Running,
    "SUCCEEDED": TrainingJobStatus.Succeed,
    "FAILED": TrainingJobStatus.Failed,
    "STOPPED": TrainingJobStatus.Terminated,
    "UNKNOWN": TrainingJobStatus.Running,
}


class TrainingJob:
    """One job; equal to another of the same id. What changes is looked up when it is asked for."""

    def __init__(self, run: Run, description: Mapping[str, Any], client: Client | None = None) -> None:
        """A run that a Processor started, and what it is described by; `client` looks at it if it is on a server."""
        self.run = run
        """The same job as a `pailot.Run`."""
        self._described = description
        self.algorithm_id = self.algorithm_name = self.algorithm_provider = self.algorithm_version = None
        self.algorithm_spec = AlgorithmSpec.from_dict(description["AlgorithmSpec"])
        self.compute_resource = ComputeResource.from_dict(description["ComputeResource"])
        self.scheduler = SchedulerConfig.from_dict(description.get("Scheduler") or {})
        self.experiment_config: dict[str, object] | None = description.get("ExperimentConfig")
        self.inputs = [_channel(each, UriInput) for each in description["InputChannels"]]
        self.outputs = [_channel(each, UriOutput) for each in description["OutputChannels"]]
        self.hyperparameters = [HyperParameter.from_dict(each) for each in description["HyperParameters"]]
        self.labels: list[dict[str, str]] = description.get("Labels") or []
        self.training_job_description: str | None = None
        self.training_job_name = run.name
        self._server = client.server if client else None
        # On a server a bare name is one's own.
        self.training_job_id = run.id if client and not run.id.startswith(f"{client.user}~") else run.name
        self.workspace_id: str | None = description.get("WorkspaceId")
        self._metrics = [MetricDefinition.from_dict(each) for each in description.get("MetricDefinitions") or ()]

    @classmethod
    def get(cls, training_job_id: str, session: Session | None = None) -> TrainingJob:
        """A job by its id; raises NoSuchRun."""
        client = (session or get_default_session()).client()
        found = (client or local_runs).get(training_job_id)
        return cls(found, _description(found), client)

    @property
    def id(self) -> str:
        """The id: the name of the job, with its user before it where that is another one."""
        return self.training_job_id

    @property
    def status(self) -> str:
        """The status, as one of the words of `TrainingJobStatus`."""
        return self._status(self.run.describe())

    def _status(self, record: Mapping[str, Any]) -> str:
        if record["state"] == "FAILED" and not record.get("started"):
            return TrainingJobStatus.InitializeFailed
        if record["state"] == "WAITING" and record.get("engine") in PREPARING and self._server is None:
            return TrainingJobStatus.Initializing
        return _STATUS[record["state"]]

    @property
    def reason_code(self) -> str | None:
        """The reason in one word, as `ExitCode1`; None for a job that has not failed and was not stopped."""
        record = self.run.describe()
        if record["state"] not in ("FAILED", "STOPPED"):
            return None
        code = record.get("exitCode")
        return self._status(record) if code is None else f"ExitCode{code}"

    @property
    def reason_message(self) -> str | None:
        """The reason in words; None if there is none."""
        return self.run.describe().get("reason")

    @property
    def exit_code(self) -> int | None:
        """The exit code of the task that decided how the job ended; None while it is not over."""
        return self.run.exit_code

    @property
    def training_job_url(self) -> str:
        """The same as `console_uri`."""
        return self.console_uri

    @property
    def console_uri(self) -> str:
        """Where to look at it: an address of the server, else its folder."""
        if self._server is not None:
            return f"{self._server}/api/v2/jobs/{self.run.id}"
        return str(self.run.describe().get("folder") or "")

    def is_succeeded(self) -> bool:
        """Whether the job has succeeded."""
        return self.status == TrainingJobStatus.Succeed

    def is_completed(self) -> bool:
        """Whether the job is over, well or not."""
        return self.status in TrainingJobStatus.completed_status()

    def wait(self, interval: int = 5, show_logs: bool = True, timeout: float | None = None) -> None:
        """Until it has succeeded. Anything else raises UnexpectedStatusException; `timeout` seconds raise WaitTimeout.

        `interval` is theirs: nothing is polled here. A wait that is interrupted leaves the job running, and says so.
        """
        try:
            self._wait(show_logs, timeout)
        except WaitTimeout:
            record = self.run.describe()
            words = f"{self.training_job_name} is still {self._status(record)} after {timeout:g} s"
            raise WaitTimeout.of(record, words) from None
        except KeyboardInterrupt:
            sys.stderr.write(f"{self.training_job_name} goes on; its stop() ends it, and so does: pailot stop {self.run.name}\n")
            raise
        record = self.run.describe()
        status = self._status(record)
        self._warn_of_what_is_lost()
        if status != TrainingJobStatus.Succeed:
            reason = record.get("reason") or ""
            raise UnexpectedStatusException(
                f"{self.training_job_name} is {status}: {reason}",
                status,
                self.training_job_name,
                record.get("task"),
                record.get("exitCode"),
                reason,
                record.get("lastLines") or (),
            )

    def _warn_of_what_is_lost(self) -> None:
        """Files in places below /ml where nothing is kept."""
        for event in self.run.events():
            if event.kind == "waiting" and str(event.details.get("reason")).startswith(WORDS):
                warnings.warn(f"{self.training_job_name}: {event.details['reason']}", stacklevel=4)

    def _wait(self, show_logs: bool, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        if show_logs:
            self._print(timeout)
        self.run.wait(None if end is None else max(0.0, end - time.monotonic()), progress=False if show_logs else None)

    def _print(self, timeout: float | None) -> None:
        """The logs, and how far the data is on its way."""
        with Transfers(self.run.view, display()) if self.inputs or self.outputs else nullcontext():
            if timeout is not None:
                self._print_until(timeout)
                return
            for line in self.run.logs(follow=True):
                sys.stdout.write(line + "\n")

    def _print_until(self, timeout: float | None) -> None:
        quit = Quit()
        alarm = Timer(timeout or 0, quit.set)
        alarm.daemon = True
        alarm.start()
        try:
            for line in self.run.logs(follow=True)._lines(quit, True):
                sys.stdout.write(line + "\n")
        finally:
            alarm.cancel()

    def logs(self, worker: int | None = None, follow: bool = False) -> Iterator[str]:
        """What the instances printed, or one of them."""
        return iter(
            self.run.logs(None if worker is None else next(iter(self.run.describe()["taskRoles"])), worker, follow=follow)
        )

    def stop(self, wait: bool = True) -> None:
        """Stop the job, and wait until it is over, unless `wait` is False."""
        self.run.stop(wait=wait)

    def delete(self) -> None:
        """Remove its record and logs, not its outputs."""
        self.run.delete()

    def describe(self) -> dict[str, Any]:
        """All about it, in the words of Alibaba's API."""
        record = self.run.describe()
        status = self._status(record)
        return {
            "TrainingJobId": self.training_job_id,
            "TrainingJobName": self.training_job_name,
            "Status": status,
            "ReasonCode": self.reason_code,
            "ReasonMessage": record.get("reason"),
            "ExitCode": record.get("exitCode"),
            "AlgorithmSpec": self.algorithm_spec.to_dict(),
            "ComputeResource": self.compute_resource.to_dict(),
            "Scheduler": self.scheduler.to_dict(),
            "ExperimentConfig": self.experiment_config,
            "InputChannels": [each.to_dict() for each in self.inputs],
            "OutputChannels": [each.to_dict() for each in self.outputs],
            "HyperParameters": [each.to_dict() for each in self.hyperparameters],
            "Labels": self.labels,
            **{key: self._described[key] for key in KEPT if key in self._described},
            "WorkspaceId": self.workspace_id,
            "TrainingJobUrl": self.console_uri,
            "GmtCreateTime": record.get("submitted"),
            "Duration": (record["ended"] - record["started"]) if record.get("ended") and record.get("started") else None,
            "StatusTransitions": _transitions(record, status),
            "Instances": [
                {"Name": f"{role}-{task['index']}", "Role": role, "Status": task["state"], "ExitCode": task.get("exitCode")}
                for role, node in record["taskRoles"].items()
                for task in node["tasks"]
            ],
        }

    def to_dict(self) -> dict[str, object]:
        """The fields of the job as Alibaba's SDK writes them: PascalCase names, nothing that is None."""
        theirs = (
            "AlgorithmSpec", "ComputeResource", "Scheduler", "ExperimentConfig", "InputChannels", "OutputChannels",
            "HyperParameters", "Labels", "TrainingJobId", "TrainingJobName", "WorkspaceId", "TrainingJobUrl", "Status",
            "ReasonCode", "ReasonMessage",
        )  # fmt: skip
        found = self.describe()
        return {name: found[name] for name in theirs if found[name] is not None}

    def output_path(self, channel_name: str = "model") -> str:
        """Where an output channel is brought to: a URI, or the id of a data set. Raises PailotError if there is none of it."""
        for each in self.outputs:
            if each.name == channel_name:
                return each.output_uri if isinstance(each, UriOutput) else each.dataset_id
        known = ", ".join(str(each.name) for each in self.outputs) or "none"
        raise PailotError(f"{self.training_job_name} has no output channel '{channel_name}'; there is {known}")

    def metrics(self, definitions: Sequence[MetricDefinition] | None = None) -> dict[str, list[float]]:
        """The values of metrics in the logs, one instance after the other: the first group of each regular expression."""
        texts = [
            str(self.run.logs(role, task["index"]))
            for role, node in self.run.describe()["taskRoles"].items()
            for task in node["tasks"]
        ]
        return {
            each.name: [
                _number(each.name, found[1] if found.re.groups else found[0])
                for text in texts
                for found in re.finditer(each.regex, text, re.MULTILINE)
            ]
            for each in (definitions if definitions is not None else self._metrics)
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingJob) and other.training_job_id == self.training_job_id

    def __hash__(self) -> int:
        return hash(self.training_job_id)

    def __repr__(self) -> str:
        return f"TrainingJob({self.training_job_id!r}, status={self.status!r})"

    def _repr_html_(self) -> str:
        return self.run._repr_html_()

    @classmethod
    def list(
        cls,
        status: str | None = None,
        session: Session | None = None,
        page_size: int = 50,
        page_number: int = 1,
        *,
        name: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> list[TrainingJob]:
        """The jobs, newest first: of this status, with this text in the name, with these labels."""
        found: list[TrainingJob] = []
        skipped = (page_number - 1) * page_size
        client = (session or get_default_session()).client()
        for run in (client or local_runs).runs(keyword=name, labels={**(labels or {}), LABEL: "1"}):
            if len(found) == page_size:
                break
            job = cls(run, _description(run), client)
            if status is None or job.status == status:
                if skipped:
                    skipped -= 1
                else:
                    found.append(job)
        return found


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        raise PailotError(f"the metric '{name}': {text!r} is no number") from None


def _transitions(record: Mapping[str, Any], status: str) -> list[dict[str, object]]:
    """The states that a job went through, with the time when each began."""
    steps = [(TrainingJobStatus.Submitted, record.get("submitted")), (TrainingJobStatus.Running, record.get("started"))]
    if record.get("ended"):
        steps.append((status, record["ended"]))
    begun = [(name, moment) for name, moment in steps if moment]
    ends = [*(moment for _, moment in begun[1:]), None]
    return [{"Status": name, "StartTime": moment, "EndTime": end} for (name, moment), end in zip(begun, ends, strict=True)]


def _description(run: Run) -> Mapping[str, Any]:
    found = run.job.extras.raw.get("processor")
    if not found:
        raise PailotError(f"'{run.name}' was not started by a Processor")
    description: Mapping[str, Any] = found
    return description


def _channel(node: Mapping[str, Any], kind: type[Any]) -> Any:
    return DatasetConfig.from_dict(node) if "DatasetId" in node else kind.from_dict(node)
