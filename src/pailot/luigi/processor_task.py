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
    """Say what runs in `processor()`, what it reads in `inputs()`, and where its results go in `outputs()`.

    ::

        class Count(ProcessorTask):
            def processor(self):
                return Processor(image_uri="debian", command="wc -l /ml/input/data/text/* >/ml/output/count/lines")

            def inputs(self):
                return {"text": "data/text"}

            def outputs(self):
                return {"count": "results/count"}
    """

    def processor(self) -> Processor:
        """The processor that runs: a subclass has to say it."""
        raise NotImplementedError

    def inputs(self) -> Mapping[str, Any]:
        """The input channels; a luigi target stands for its path."""
        return {}

    def outputs(self) -> Mapping[str, str]:
        """The output channels and their URIs; all of them are this task's output."""
        return {}

    def output(self) -> dict[str, luigi.Target]:
        """The targets of all output channels, by their names."""
        return {name: target(uri) for name, uri in self.outputs().items()}

    def run(self) -> None:
        """Start the job, and wait until it has succeeded. Raises PaiJobFailed if it did not."""
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
