"""A processing job as a luigi task: complete when its outputs are there, and they are there only when they are whole."""

from __future__ import annotations

import logging

import luigi

from ..processor.errors import UnexpectedStatusException
from ..settings import Settings
from .places import PaiJobFailed
from .targets import resolved, target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..processor import Processor

logger = logging.getLogger("luigi-interface")


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
        job = self.processor().run(
            {name: getattr(value, "path", value) for name, value in self.inputs().items()},
            {name: resolved(uri) for name, uri in self.outputs().items()},
            wait=False,
        )
        logger.info("job %s has started: %s", job.training_job_name, job.console_uri)
        if self.set_tracking_url is not None:
            self.set_tracking_url(job.console_uri)
        try:
            for line in job.logs(follow=True):
                logger.info("%s: %s", job.training_job_name, line)
            job.wait(show_logs=False)
        except UnexpectedStatusException as error:
            raise PaiJobFailed(error.message, error.job, error.task, error.exit_code, error.reason, error.last_lines) from None
        except (KeyboardInterrupt, SystemExit):
            if Settings()["luigi_stop_on_interrupt"]:
                job.stop(wait=False)
            raise
