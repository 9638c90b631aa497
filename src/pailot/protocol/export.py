"""A job as the text that another server is given: complete in itself, with its secrets."""

from __future__ import annotations

import json

from .convert import to_v2
from .schema import NAME
from .yaml.writer import dump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .model import Job


def stays_version_1(job: Job, name: str) -> bool:
    """Whether a job is of version 1 and is to have a name that version 2 does not allow (`train_1.5`)."""
    return job.legacy and bool(NAME.check(name))


def as_version_1(job: Job) -> str:
    """A job of version 1 as it would be written with all changes made to it."""
    if job.origin is None:
        raise ValueError("a job without a file cannot be written")
    return json.dumps({**job.origin.document.root, "jobName": job.name})


def outgoing(job: Job, there: str = "") -> str:
    """The job file with all changes made to it, prerequisites of the library included; a v1 file becomes v2 where it can.

    What was found at a place that begins with `there` is not included: the one that gets the file has it.

    A file that needs none of that is sent as it was written. The text holds secrets in clear: never write it anywhere.
    """
    if job.origin is None:
        raise ValueError("a job without a file cannot be sent")
    if stays_version_1(job, job.name):
        return as_version_1(job)
    document = job.origin.document
    borrowed = [each for each in job.prerequisites if not each.path and not (there and each.source.startswith(there))]
    root = document.root
    if job.legacy:
        root, _ = to_v2(document)
    elif not (job.origin.overridden or borrowed or root.get("name") != job.name):
        return document.text

    root = {**root, "name": job.name}
    if borrowed:
        own = list(root.get("prerequisites") or [])
        root["prerequisites"] = [*own, *(dict(each.fields) for each in borrowed)]
    return dump(root)
