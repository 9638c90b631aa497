"""Processing jobs as in Alibaba's PAI SDK: `Processor(...).run(inputs, outputs)`, on this machine, in containers, on a server.

    from pailot.processor import Processor

    processor = Processor(image_uri="python:3.12", command="python train.py", source_dir="src", instance_type="local")
    job = processor.run(inputs={"train": "data/train"}, outputs={"model": "results/model"})
    processor.get_outputs_data()      # {"model": "results/model/"}

Names are loaded when first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .alibaba_types import (
        AlgorithmSpec,
        Channel,
        CodeDir,
        ComputeResource,
        DatasetConfig,
        ExperimentConfig,
        HyperParameter,
        HyperParameterDefinition,
        InstanceSpec,
        JobType,
        MetricDefinition,
        OssLocation,
        ResourceType,
        SchedulerConfig,
        SpotSpec,
        SpotStrategy,
        UriInput,
        UriOutput,
        UserVpcConfig,
    )
    from .channels import CpfsFileSystemInput, FileSystemInput, FileSystemInputBase
    from .errors import InvalidProcessor, UnExpectedStatusException, UnexpectedStatusException
    from .job import TrainingJob, TrainingJobStatus
    from .processor import Processor
    from .session import Session, get_default_session, setup_default_session

_HOMES = {
    "errors": "InvalidProcessor UnExpectedStatusException UnexpectedStatusException",
    "channels": "CpfsFileSystemInput FileSystemInput FileSystemInputBase",
    "job": "TrainingJob TrainingJobStatus",
    "processor": "Processor",
    "alibaba_types": (
        "AlgorithmSpec Channel CodeDir ComputeResource DatasetConfig ExperimentConfig HyperParameter HyperParameterDefinition "
        "InstanceSpec JobType MetricDefinition OssLocation ResourceType SchedulerConfig SpotSpec SpotStrategy UriInput UriOutput "
        "UserVpcConfig"
    ),
    "session": "Session get_default_session setup_default_session",
}

__all__ = [
    "AlgorithmSpec",
    "Channel",
    "CodeDir",
    "ComputeResource",
    "CpfsFileSystemInput",
    "DatasetConfig",
    "ExperimentConfig",
    "FileSystemInput",
    "FileSystemInputBase",
    "HyperParameter",
    "HyperParameterDefinition",
    "InstanceSpec",
    "InvalidProcessor",
    "JobType",
    "MetricDefinition",
    "OssLocation",
    "Processor",
    "ResourceType",
    "SchedulerConfig",
    "Session",
    "SpotSpec",
    "SpotStrategy",
    "TrainingJob",
    "TrainingJobStatus",
    "UnExpectedStatusException",
    "UnexpectedStatusException",
    "UriInput",
    "UriOutput",
    "UserVpcConfig",
    "get_default_session",
    "setup_default_session",
]


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names.split():
            from importlib import import_module

            value = getattr(import_module(f".{home}", __name__), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'pailot.processor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
