"""The job file as it is kept."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..protocol import Job


def masked_source(job: Job, text: str) -> str:
    """The job file with the changes made to it, and its secrets masked."""
    if job.origin is None or not (job.secrets.names() or job.origin.overridden):
        return text
    from ..protocol.yaml.writer import dump

    root = dict(job.origin.document.root)
    if "secrets" in root:
        root["secrets"] = "******"
    return dump(root)
