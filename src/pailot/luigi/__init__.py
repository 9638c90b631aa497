"""OpenPAI jobs as Luigi tasks, with the names of `luigi.contrib.pai`: changing the import line is all a pipeline needs.

    from pailot.luigi import PaiTask, TaskRole

    class Train(PaiTask):
        name = "train"
        image = "python:3.12"
        tasks = [TaskRole("worker", "python train.py", memoryMB=4096)]

`[OpenPai] pai_url = local` in luigi's configuration runs jobs on this machine, without a server.
"""

from __future__ import annotations

from .config import OpenPai
from .pai_job import PaiJob, Port, TaskRole, slot_to_dict
from .processor_task import ProcessorTask
from .started import PaiJobFailed
from .tasks import JobTask, PaiTask, ProtocolTask

__all__ = [
    "JobTask",
    "OpenPai",
    "PaiJob",
    "PaiJobFailed",
    "PaiTask",
    "Port",
    "ProcessorTask",
    "ProtocolTask",
    "TaskRole",
    "slot_to_dict",
]
