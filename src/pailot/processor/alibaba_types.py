"""The records of Alibaba's SDK, with its names and defaults. `to_dict()` spells them as its API does."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import Enum, StrEnum

from ..values import Value
from .errors import InvalidProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self


class Record(Value):
    """Base of the records. What a field holds may be given as a mapping, or as a record of Alibaba's own."""

    _spelled = {"": ""}
    _kinds = dict[str, "type[Record] | type[StrEnum]"]()
    """Of what kind a field is, or each item of its list."""
    _general_instances = 0  # each instance is completed

    @classmethod
    def _make_init(cls) -> None:
        super()._make_init()
        if not cls._kinds:
            return
        plain = cls.__init__

        @functools.wraps(plain)
        def made(self: Record, *arguments: Any, **named: Any) -> None:
            plain(self, *arguments, **named)
            for name, kind in cls._kinds.items():
                self.__dict__[name] = _adopt_all(kind, self.__dict__[name])

        cls.__init__ = made  # type: ignore[method-assign, assignment]  # as `Value` does

    def to_dict(self) -> dict[str, object]:
        """As in the API: PascalCase names, nothing that is None."""
        return {
            self._spelled.get(name) or _pascal(name): _plain(getattr(self, name))
            for name in self._fields
            if getattr(self, name) is not None
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make one from what `to_dict` returns; unknown names are left out."""
        known = cls._names()
        return cls(**{known[key]: value for key, value in values.items() if key in known})

    @classmethod
    def _names(cls) -> dict[str, str]:
        """Fields by the names of the API."""
        return {cls._spelled.get(name) or _pascal(name): name for name in cls._fields}

    @classmethod
    def _required(cls) -> set[str]:
        return {name for name in cls._fields if not hasattr(cls, name)}


def adopt(kind: type[Record], value: Any) -> Any:
    """The record that a value means: a mapping with its fields in either spelling, or Alibaba's own; else the value itself."""
    if value is None or isinstance(value, kind):
        return value
    if isinstance(value, Mapping):
        names = {**kind._names(), **{name: name for name in kind._fields}}
        if not value.keys() <= names.keys():
            return value
        found = {names[key]: each for key, each in value.items()}
    else:
        found = {name: getattr(value, name) for name in kind._fields if hasattr(value, name)}
    return kind(**found) if kind._required() <= found.keys() else value


def _adopt_all(kind: type[Record | StrEnum], value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_adopt_all(kind, each) for each in value]
    if issubclass(kind, Record):
        return adopt(kind, value)
    try:
        return kind(getattr(value, "value", value))
    except ValueError:
        return value  # who uses it says that there is no such word


class JobType:
    """How the instances of a job find each other."""

    TFJob = "TFJob"
    PyTorchJob = "PyTorchJob"
    XGBoostJob = "XGBoostJob"
    MPIJob = "MPIJob"
    SUPPORTED_JOB_TYPEs = [TFJob, PyTorchJob, XGBoostJob, MPIJob]  # their spelling

    @classmethod
    def normalize(cls, job_type: str) -> str:
        """The type in its right spelling; raises InvalidProcessor for others."""
        for each in cls.SUPPORTED_JOB_TYPEs:
            if each.lower() == str(job_type).lower():
                return each
        raise InvalidProcessor(f"there is no job type '{job_type}'; there is {', '.join(cls.SUPPORTED_JOB_TYPEs)}")


class SpotStrategy(StrEnum):
    """How spot instances are bid for: with a limit of the price, or at the price of the market."""

    SpotWithPriceLimit = "SpotWithPriceLimit"
    SpotAsPriceGo = "SpotAsPriceGo"


class ResourceType(StrEnum):
    """The kind of machines: `General`, or `Lingjun`, which has no effect here."""

    Lingjun = "Lingjun"
    General = "General"


class UserVpcConfig(Record):
    """A virtual private cloud of Alibaba's; without effect here."""

    vpc_id: str
    security_group_id: str
    switch_id: str | None = None
    extended_cidrs: list[str] | None = None


class ExperimentConfig(Record):
    """The experiment of a job: the setting `experiments` says where its outputs go."""

    experiment_id: str


class OssLocation(Record):
    """A place in an object store: bucket, key and endpoint."""

    bucket: str
    key: str
    endpoint: str | None = None


class CodeDir(Record):
    """Where the code of a job is."""

    location_value: OssLocation | dict[str, Any]
    location_type: str
    _kinds = {"location_value": OssLocation}


class HyperParameter(Record):
    """A hyperparameter: its name, and its value as text."""

    value: str
    name: str


class InstanceSpec(Record):
    """The CPUs, memory and GPUs of an instance, as texts."""

    memory: str
    cpu: str
    gpu: str
    shared_memory: str | None = None
    _spelled = {"cpu": "CPU", "gpu": "GPU"}


class ComputeResource(Record):
    """The instances of a job: how many, and of which type."""

    ecs_count: int | None = None
    ecs_spec: str | None = None
    instance_count: int | None = None
    instance_spec: InstanceSpec | None = None
    _kinds = {"instance_spec": InstanceSpec}


class UriInput(Record):
    """An input channel whose data is at a URI."""

    name: str
    input_uri: str


class UriOutput(Record):
    """An output channel whose data goes to a URI."""

    name: str
    output_uri: str


class DatasetConfig(Record):
    """A data set by its id; the setting `mounts` says where it is."""

    dataset_id: str
    name: str | None = None
    dataset_name: str | None = None


class Channel(Record):
    """An input or output that a processor declares."""

    name: str
    description: str | None = None
    required: bool | None = None
    supported_channel_types: list[str] | None = None
    properties: dict[str, Any] | None = None


class HyperParameterDefinition(Record):
    """A hyperparameter that an algorithm declares."""

    name: str
    type: str | None = None
    default_value: str | None = None
    description: str | None = None
    required: bool = False


class SchedulerConfig(Record):
    """The limit of a job's time, in seconds."""

    max_running_time_in_seconds: int | None = None


class MetricDefinition(Record):
    """A metric: its name, and the regular expression that finds it in a line of the log."""

    name: str
    regex: str
    description: str | None = None


class AlgorithmSpec(Record):
    """What a job runs: command, image, code, channels and metrics."""

    command: list[str]
    image: str
    supported_channel_types: Sequence[str] = []
    output_channels: Sequence[Channel] = []
    input_channels: Sequence[Channel] = []
    supports_distributed_training: bool | None = True
    supported_instance_types: Sequence[str] | None = None
    metric_definitions: Sequence[MetricDefinition] | None = None
    hyperparameter_definitions: Sequence[HyperParameterDefinition] = []
    job_type: str = JobType.PyTorchJob
    code_dir: CodeDir | None = None
    customization: dict[str, object] | None = None
    _spelled = {"hyperparameter_definitions": "HyperParameters"}
    _kinds = {
        "output_channels": Channel,
        "input_channels": Channel,
        "metric_definitions": MetricDefinition,
        "hyperparameter_definitions": HyperParameterDefinition,
        "code_dir": CodeDir,
    }


class SpotSpec(Record):
    """A wish for spot instances; without effect here."""

    spot_strategy: SpotStrategy
    spot_discount_limit: float | None = None
    _kinds = {"spot_strategy": SpotStrategy}


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.value if isinstance(value, Enum) else value
