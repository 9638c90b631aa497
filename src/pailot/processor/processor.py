"""`Processor`: a command, its code, its channels; run as often as wanted."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
import warnings

from ..data.filesystems import shown
from ..engines.registry import check, traits
from ..errors import suggestion
from ..runfolder import journal
from ..runfolder.removing import remove_tree
from ..sdk.builders import TaskRole
from ..sdk.job import Job
from ..sdk.local_runs import run
from ..settings import Settings
from ..values import Value
from ..views.local import LocalView
from . import channels, checks, code_archive, entry_script, git
from . import requirements as packages
from .alibaba_types import (
    AlgorithmSpec,
    Channel,
    CodeDir,
    ComputeResource,
    DatasetConfig,
    ExperimentConfig,
    HyperParameter,
    JobType,
    MetricDefinition,
    ResourceType,
    SchedulerConfig,
    SpotSpec,
    UserVpcConfig,
    adopt,
)
from .errors import InvalidProcessor, UnexpectedStatusException
from .job import LABEL, TrainingJob
from .machine_types import machine_of
from .requirements import CONTAINER, NODE, SERVER
from .session import Session, get_default_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..sdk.run import Run
    from .alibaba_types import Record
    from .machine_types import Machine

_OTHER = re.compile(r"[^A-Za-z0-9_]")
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
"""What no name of a job holds."""


class Processor:
    """A processing job, with the arguments of Alibaba's `pai.processor.Processor`.

    Making one starts nothing and opens no connection; it can be subclassed and pickled. The command finds its code in
    /ml/usercode and its inputs in /ml/input/data/NAME, and leaves its results in /ml/output/NAME.

    Args:
        image_uri: The image that the command runs in; the engine `local` uses none.
        command: A text is run by `sh -c`; a list is exactly that program and its arguments.
        source_dir: The code: a folder, a file, a URI, or a git source: `{"repo": …, "branch": …, "commit": …, "token": …,
            "source_dir": "folder in it"}`. The command starts in a copy of it.
        job_type: How the instances find each other: PyTorchJob (default), TFJob, XGBoostJob or MPIJob.
        parameters: Hyperparameters: PAI_HPS_NAME, PAI_HPS, PAI_USER_ARGS, and /ml/input/config/hyperparameters.json.
        environments: Variables of the command.
        requirements: Python packages that are installed before the command runs, after those of requirements.txt.
        max_run_time: Seconds after which the job is stopped.
        base_job_name: What the names of its jobs begin with; by default the name of the class in small letters.
        output_path: The folder or URI below which outputs are kept that `run` is given no place for.
        instance_type: A machine of Alibaba's, for its CPUs, memory and GPUs; `local` and `local_gpu` are this machine, in
            containers where an engine for them is found.
        spot_spec: Without effect here; a warning says so.
        resource_type: `General` or `Lingjun`; the second is without effect here, and a warning says so.
        instance_count: The number of instances; 1 by default.
        user_vpc_config: Without effect here; a warning says so.
        experiment_config: The experiment whose place in the setting `experiments` outputs go to, unless `output_path` is given.
        settings: Of Alibaba's settings, `Priority` (1 to 9) has a meaning where there is a queue.
        labels: Texts by which its jobs are found again.
        session: Where jobs run and where outputs go; the default session if it is None.

    ::

        processor = Processor(image_uri="python:3.12", command="python train.py", source_dir="src", instance_type="local")
        job = processor.run(inputs={"train": "data/train"}, outputs={"model": "results/model"})
        processor.get_outputs_data()  # {"model": "results/model/"}
    """

    def __init__(
        self,
        image_uri: str,
        command: str | list[str],
        source_dir: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        job_type: str = JobType.PyTorchJob,
        parameters: Mapping[str, object] | None = None,
        environments: dict[str, str] | None = None,
        requirements: list[str] | None = None,
        max_run_time: int | None = None,
        base_job_name: str | None = None,
        output_path: str | None = None,
        instance_type: str | None = None,
        spot_spec: SpotSpec | None = None,
        resource_type: str | ResourceType | None = None,
        instance_count: int | None = None,
        user_vpc_config: UserVpcConfig | None = None,
        experiment_config: ExperimentConfig | None = None,
        settings: Mapping[str, object] | None = None,
        labels: dict[str, str] | None = None,
        session: Session | None = None,
    ) -> None:
        self.image_uri, self.command = image_uri, command
        self.source_dir = os.fspath(source_dir) if isinstance(source_dir, os.PathLike) else source_dir
        self.job_type = JobType.normalize(job_type or JobType.PyTorchJob)
        self.parameters = checks.mapping("parameters", parameters)
        self.environments = checks.mapping("environments", environments)
        if isinstance(requirements, str):
            raise InvalidProcessor(f"requirements should be a list of packages, is the text '{requirements}'")
        self.requirements = list(requirements or [])
        self.max_run_time = max_run_time
        self.base_job_name = base_job_name or type(self).__name__.lower()
        self.output_path = os.fspath(output_path) if output_path is not None else None
        self.instance_type, self.instance_count = instance_type, 1 if instance_count is None else instance_count
        self.spot_spec: SpotSpec | None = adopt(SpotSpec, spot_spec)
        self.user_vpc_config: UserVpcConfig | None = adopt(UserVpcConfig, user_vpc_config)
        self.experiment_config: ExperimentConfig | None = adopt(ExperimentConfig, experiment_config)
        try:
            self.resource_type = None if resource_type is None else ResourceType(getattr(resource_type, "value", resource_type))
        except ValueError:
            known = ", ".join(each.value for each in ResourceType)
            raise InvalidProcessor(f"there is no resource type '{resource_type}'; there is {known}") from None
        self.settings, self.labels = checks.mapping("settings", settings), checks.mapping("labels", labels)
        self._session = session
        self.metric_definitions: list[MetricDefinition] = []
        self._input_channels: list[Channel] = []
        self._output_channels: list[Channel] = []
        self._jobs: list[TrainingJob] = []

    @property
    def session(self) -> Session:
        """Where its jobs run; the default session, unless it was given one."""
        return self._session or get_default_session()

    @session.setter
    def session(self, session: Session | None) -> None:
        self._session = session

    def __repr__(self) -> str:
        latest = f", latest_job={self._jobs[-1].training_job_id!r}" if self._jobs else ""
        return f"{type(self).__name__}({self.image_uri!r}, {self.command!r}, instance_type={self.instance_type!r}{latest})"

    # Channels

    def set_input_channels(self, channels: list[Channel]) -> None:
        """Declare the inputs; from then on others are refused, and required ones must be given."""
        self._input_channels = [adopt(Channel, each) for each in channels]

    def set_output_channels(self, channels: list[Channel]) -> None:
        """Declare the outputs; each has a place even if `run` is given none."""
        self._output_channels = [adopt(Channel, each) for each in channels]

    # Running

    @property
    def latest_job(self) -> TrainingJob | None:
        """The job that was started last."""
        return self._jobs[-1] if self._jobs else None

    def run(
        self,
        inputs: Mapping[str, object] | None = None,
        outputs: Mapping[str, object] | None = None,
        wait: bool = True,
        show_logs: bool = True,
    ) -> TrainingJob:
        """Start the job, and wait with `wait` until it has succeeded. Returns the job.

        Channels are mapped to paths, URIs, file systems or data sets. Everything is checked before anything is done. Raises
        InvalidProcessor if it cannot be run as it is, and UnexpectedStatusException if it was waited for and did not succeed.
        """
        job = self._start(checks.mapping("inputs", inputs), checks.mapping("outputs", outputs), quiet=not show_logs)
        self._jobs.append(job)
        if wait:
            job.wait(show_logs=show_logs)
        return job

    def wait(self, interval: int = 5, show_logs: bool = True, all_jobs: bool = False) -> None:
        """Wait until the latest job has succeeded, or all of them.

        Raises UnexpectedStatusException if one did not, after all have ended; RuntimeError if none was started.
        """
        if not self._jobs:
            raise RuntimeError("this processor has not started a job yet; call run first")
        failed: list[UnexpectedStatusException] = []
        for job in self._jobs if all_jobs else self._jobs[-1:]:
            try:
                job.wait(interval, show_logs)
            except UnexpectedStatusException as error:
                failed.append(error)
        if failed:
            for each in failed[1:]:
                failed[0].add_note(f"{each.job} is {each.status}: {each.reason_message}")
            raise failed[0]

    def get_outputs_data(self) -> dict[str, str]:
        """Where the outputs of the latest job are: channel names to URIs, or ids of data sets.

        Raises RuntimeError if no job was started yet.
        """
        if not self._jobs:
            raise RuntimeError("this processor has not started a job yet; call run first")
        latest = self._jobs[-1]
        return {str(each.name): latest.output_path(str(each.name)) for each in latest.outputs}

    # Before the start

    def _start(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], *, quiet: bool) -> TrainingJob:
        session = self.session
        checks.check(self)
        code_archive.check_source(self.source_dir)
        name = _NO_NAME.sub("_", self._gen_job_display_name())
        spec = self._build_algorithm_spec(self._code_dir())
        found_in = self._places("input", self.build_inputs(dict(inputs), spec.input_channels), session)
        found_out = self._places("output", self.build_outputs(name, spec.output_channels, dict(outputs)), session)
        engine = None if session.server else session.engine_for(self.instance_type)
        known = None if engine is None else traits(engine)
        here = known is not None and known.on_this_machine
        machine = machine_of(self.instance_type, self.instance_count, here=here)
        if engine is not None and known is not None:
            check(engine)
            if not known.has_channels:
                raise InvalidProcessor(
                    f"the engine '{engine}' has no /ml for a Processor; use a Pailot server, or another engine"
                )
        self._warn(engine, chosen=session.named_engine() is not None)
        description = self._description(spec, found_in, found_out, session, name)
        wanted = _Wanted(name, engine, machine, spec, found_in, found_out, description)
        self._job(wanted, None, "", sent=False)  # whatever is wrong with it is said before anything is fetched or sent
        with _Folder() as scratch:
            code, listed = self._code(scratch)
            is_folder = code is not None and "://" not in code
            sent = scratch.folder_of(code) if code is not None and is_folder and engine is None else None
            packed = code_archive.pack(code, quiet=quiet) if code is not None and is_folder and engine is not None else None
            job = self._job(wanted, packed.path if packed else code, listed, sent=sent is not None)
            client = session.client()
            run = client.run(job, code=sent, progress=not quiet) if client else self._run(job, engine)
            if packed is not None and isinstance(run.view, LocalView):
                run.view.note(journal.code_packed(packed.sha256, packed.size, is_new=packed.is_new))
            return TrainingJob(run, wanted.description, client)

    def _job(self, wanted: _Wanted, code: str | None, listed: str | None, *, sent: bool) -> Job:
        """The job as the engines know it; `listed` is the text of the requirements file, code that is `sent` comes along."""
        place = _place(wanted.engine)
        commands, parameters = entry_script.commands(
            wanted.spec.command,
            wanted.spec.job_type,
            self.requirements,
            listed,
            place=place,
            image=wanted.spec.image,
            code_in_cwd=sent,
        )
        priority = checks.priority(self.settings.get("Priority"))
        machine = wanted.machine
        contract, _ = entry_script.variables(self.parameters, wanted.name, machine.processes)
        return Job(
            wanted.name,
            {
                entry_script.ROLE: TaskRole(
                    commands=commands,
                    image=wanted.spec.image,
                    instances=self.instance_count,
                    cpu=machine.cpu,
                    memory_mb=machine.memory_mb,
                    gpu=machine.gpu,
                )
            },
            parameters=parameters,
            environment={**contract, **self.environments},
            max_run_seconds=self.max_run_time,
            extras={
                **({"hivedScheduler": {"jobPriorityClass": priority}} if priority else {}),
                "processor": wanted.description,
                "pailot": {
                    "labels": {**self.labels, LABEL: "1"},
                    "channels": {
                        "inputs": {key: uri for key, (_, uri) in wanted.inputs.items()},
                        "outputs": {key: uri for key, (_, uri) in wanted.outputs.items()},
                        "hyperparameters": {key: str(value) for key, value in self.parameters.items()},
                        "mount": True,
                        **({"code": code} if code and not sent else {}),
                    },
                },
            },
        )

    def _run(self, job: Job, engine: str | None) -> Run:
        work = os.path.join(Settings().home, "processing")
        os.makedirs(work, mode=0o700, exist_ok=True)
        return run(job, engine=engine, cwd=work, work_dir="shared")

    def _warn(self, engine: str | None, *, chosen: bool) -> None:
        """Fields without a meaning here are named, not forgotten."""
        for each in checks.warnings(self, engine, chosen=chosen):
            warnings.warn(each, stacklevel=4)

    # What a subclass may do otherwise

    def _gen_job_display_name(self, job_name: str | None = None) -> str:
        """A name of its own for each job: the base name, the time, six random letters and digits."""
        if job_name:
            return job_name

        base = _OTHER.sub("_", self.base_job_name)
        letters = "".join("abcdefghijklmnopqrstuvwxyz0123456789"[byte % 36] for byte in os.urandom(6))
        return f"{base}_{time.strftime('%Y%m%d_%H%M%S')}_{letters}"

    def _build_algorithm_spec(self, code_input: CodeDir | None) -> AlgorithmSpec:
        """What runs: command, image, job type and the declared channels."""
        return AlgorithmSpec(
            command=entry_script.words_of(self.command),
            image=self.image_uri,
            job_type=self.job_type,
            input_channels=list(self._input_channels),
            output_channels=list(self._output_channels),
            code_dir=code_input,
        )

    def build_inputs(
        self,
        inputs: Mapping[str, object] | None,
        input_channels: Sequence[Channel],
        default_inputs: Sequence[Any] | None = None,
    ) -> list[dict[str, object]]:
        """The inputs as the API spells them; those of `default_inputs` stand for what was not given.

        Raises InvalidProcessor for a channel that is not declared, and for a required one that is missing.
        """
        given = dict(inputs or {})
        for each in default_inputs or ():
            record = channels.adopted(each)
            given.setdefault(str(record.name), record)
        _refuse_unknown("input", given, input_channels)
        missing = [each.name for each in input_channels if each.required and each.name not in given]
        if missing:
            raise InvalidProcessor(f"the input channel '{missing[0]}' is required, and nothing was given for it")
        return [channels.record_of(name, value, self.session.region_id, "input").to_dict() for name, value in given.items()]

    def build_outputs(
        self, job_name: str, output_channels: Sequence[Channel], outputs: Mapping[str, object] | None = None
    ) -> list[dict[str, object]]:
        """The outputs as the API spells them: all that are declared or given. Those without a place get one of the job's."""
        given = dict(outputs or {})
        _refuse_unknown("output", given, output_channels)
        wanted = {each.name: given.get(each.name) for each in output_channels} | given
        unplaced = any(value is None for value in wanted.values())
        base = self._training_job_base_output(job_name).rstrip("/") if unplaced else ""
        region = self.session.region_id
        return [
            channels.record_of(name, f"{base}/{name}/" if value is None else value, region, "output").to_dict()
            for name, value in wanted.items()
        ]

    def _training_job_base_output(self, job_name: str) -> str:
        """Below this the outputs of a job are kept that were given no place."""
        return f"{self._output_base(self.session).rstrip('/')}/{job_name}"

    def _places(self, kind: str, described: Sequence[Any], session: Session) -> dict[str, tuple[Record, str]]:
        """Where channels are, by their names: found, and checked as far as they can be from here."""
        resolve = channels.resolve_input if kind == "input" else channels.resolve_output
        far, here = _is_far(session.server), session.server is None
        records = [channels.adopted(each) for each in described]
        return {str(each.name): resolve(str(each.name), each, session.region_id, far=far, here=here) for each in records}

    def _output_base(self, session: Session) -> str:
        """output_path, else the experiment's artifacts, else the session's storage."""
        if self.output_path is not None:
            return self.output_path
        if self.experiment_config is not None:
            found = Settings()["experiments"].get(self.experiment_config.experiment_id)
            if found:
                return str(found)
        return session.storage_uri()

    def _code(self, scratch: _Folder) -> tuple[str | None, str | None]:
        """Where the code is, a folder or a URI, and the text of its requirements file; None where that is not known yet."""
        source = self.source_dir
        if not source:
            return None, ""
        if isinstance(source, str) and "://" in source and not source.startswith("file://"):
            return source, None
        local = channels.local_path(source) if isinstance(source, str) else git.clone(source, scratch.path())
        folder = local or str(source)
        return folder, packages.file_in(folder)

    def _code_dir(self) -> CodeDir | None:
        if not self.source_dir:
            return None
        if isinstance(self.source_dir, str):
            return CodeDir({"Uri": shown(self.source_dir)}, "local")
        return CodeDir(git.describe(self.source_dir), "git")

    def _description(
        self,
        spec: AlgorithmSpec,
        found_in: Mapping[str, tuple[Record, str]],
        found_out: Mapping[str, tuple[Record, str]],
        session: Session,
        name: str,
    ) -> dict[str, object]:
        spec = spec.replace(
            input_channels=spec.input_channels or [Channel(each) for each in found_in],
            output_channels=spec.output_channels or [Channel(each) for each in found_out],
        )
        given = {
            "Environments": dict(self.environments),
            "PythonRequirements": list(self.requirements),
            "Settings": dict(self.settings),
            "SpotSpec": self.spot_spec.to_dict() if self.spot_spec else None,
            "UserVpc": self.user_vpc_config.to_dict() if self.user_vpc_config else None,
            "ResourceType": self.resource_type.value if self.resource_type else None,
        }
        experiment = self.experiment_config.to_dict() if self.experiment_config else None
        return {
            "TrainingJobName": name,
            "AlgorithmSpec": spec.to_dict(),
            "ComputeResource": ComputeResource(ecs_count=self.instance_count, ecs_spec=self.instance_type or "local").to_dict(),
            "Scheduler": SchedulerConfig(self.max_run_time).to_dict(),
            **({"ExperimentConfig": experiment} if experiment else {}),
            **({"WorkspaceId": session.workspace_id} if session.workspace_id else {}),
            "InputChannels": [record.to_dict() for record, _ in found_in.values()],
            "OutputChannels": [record.to_dict() for record, _ in found_out.values()],
            "HyperParameters": [HyperParameter(str(value), key).to_dict() for key, value in self.parameters.items()],
            "Labels": [{"Key": key, "Value": value} for key, value in self.labels.items()],
            "MetricDefinitions": [each.to_dict() for each in self.metric_definitions],
            **{key: value for key, value in given.items() if value},
        }


class _Wanted(Value):
    """A job that was found to be right, before its code is fetched."""

    name: str
    engine: str | None
    machine: Machine
    spec: AlgorithmSpec
    inputs: Mapping[str, tuple[Record, str]]
    outputs: Mapping[str, tuple[Record, str]]
    description: Mapping[str, Any]


class _Folder:
    """A temporary folder, made when it is needed."""

    def __init__(self) -> None:
        self._path = ""

    def __enter__(self) -> _Folder:
        return self

    def path(self) -> str:
        self._path = self._path or tempfile.mkdtemp(prefix="pailot-")
        return os.path.join(self._path, "code")

    def folder_of(self, code: str) -> str:
        """The folder of the code; a file alone gets one."""
        if os.path.isdir(code):
            return code
        folder = self.path()
        os.mkdir(folder)
        shutil.copy2(code, folder)
        return folder

    def __exit__(self, *_: object) -> None:
        if self._path:
            remove_tree(self._path, ignore_errors=True)


def _refuse_unknown(kind: str, given: Mapping[str, Any], declared: Sequence[Channel]) -> None:
    known = [each.name for each in declared]
    for name in given:
        if known and name not in known:
            raise InvalidProcessor(f"there is no {kind} channel '{name}'{suggestion(name, known)} (declared: {', '.join(known)})")


def _place(engine: str | None) -> str:
    """Where the commands of a job run; `engine` is None for a server."""
    if engine is None:
        return SERVER
    known = traits(engine)
    if known.own_filesystem:
        return CONTAINER
    return packages.HERE if known.on_this_machine else NODE


def _is_far(server: str | None) -> bool:
    """Whether a server is on another machine, as far as its address tells."""
    if server is None:
        return False
    host = server.partition("://")[2].partition("/")[0].rpartition("@")[2]
    return re.match(r"(localhost|127\.[0-9.]+|\[::1\])(:\d+)?\Z", host) is None


__all__ = ["DatasetConfig", "Processor"]
