"""Jobs as OpenPAI 0.x told them: what luigi, NNI, the old Python SDK and the VS Code client read."""

from __future__ import annotations

from .jobs import detail, list_item
from .openpai_terms import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...jobserver.models import JobDetail
    from ...store.server import JobRecord


def v1_item(job: JobRecord, succeeded: str) -> dict[str, object]:
    """One job of the list; `succeeded` is the word for a job that did."""
    return {
        **list_item(job),
        "state": _state(job.state, succeeded),
        "createdTime": milliseconds(job.submitted),
        "namespace": job.user,
        "legacy": False,
    }


def v1_detail(shown: JobDetail, succeeded: str) -> dict[str, Any]:
    """A job with its tasks."""
    told = detail(shown)
    status = told["jobStatus"]
    told["jobStatus"] = {"name": told["name"], **status, "state": _state(status["state"], succeeded)}
    return told


def _state(state: str, succeeded: str) -> str:
    return succeeded if state == "SUCCEEDED" else state
