"""A processing job as a luigi task: complete when its outputs are there, and they are there only when they are whole."""

from __future__ import annotations

import luigi

from .run_job import see_through
from .started import Started
from .targets import check, resolved, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..processor import Processor


class ProcessorTask(luigi.Task):
    """Say what runs in `processor()`, what it reads in `inputs()`, and where its results go in `outputs()`."""

    def processor(self) -> Processor:
        raise NotImplementedError

    def inputs(self) -> Mapping[str, Any]:
        """Input channels; a luigi target stands for its path."""
        return {}

    def outputs(self) -> Mapping[str, str]:
        """Output channels and their URIs; all of them are this task's output."""
        return {}

    def output(self) -> dict[str, luigi.Target]:
        return {name: target(uri) for name, uri in self.outputs().items()}

    def run(self) -> None:
        for each in self.output().values():
            check(each)
        processor = self.processor()

        def start() -> Started:
            job = processor.run(
                {name: getattr(value, "path", value) for name, value in self.inputs().items()},
                {name: resolved(uri) for name, uri in self.outputs().items()},
                wait=False,
            )
            return Started(job.run, job.console_uri)

        see_through(self, start)
