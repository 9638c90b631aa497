"""Who may do what with a job."""

from __future__ import annotations

from .errors import Forbidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store.server import JobRecord
    from .models import Caller


class Policy:
    """The rules of one server; with `open_to_all`, everyone with an account sees all, as with OpenPAI."""

    def __init__(self, *, open_to_all: bool = False) -> None:
        self.open_to_all = open_to_all

    def may_read(self, caller: Caller | None, record: JobRecord) -> bool:
        """Config, logs, events: the owner, members of the job's virtual cluster, administrators.

        No caller at all means that the front door has let a request in without a name, on its own responsibility.
        """
        return self.may_see(caller, record.user, record.vc)

    def may_see(self, caller: Caller | None, user: str, cluster: str) -> bool:
        """The same for a job of that user in that virtual cluster."""
        return caller is None or self.open_to_all or caller.admin or caller.name == user or cluster in caller.clusters

    def check_read(self, caller: Caller | None, record: JobRecord) -> None:
        if not self.may_read(caller, record):
            words = "its owner, members of its virtual cluster and administrators"
            raise Forbidden(f"job {record.user}~{record.name} may be read by {words} only")

    def check_change(self, caller: Caller, record: JobRecord) -> None:
        """Stopping, tagging, deleting: the owner and administrators."""
        if not (caller.admin or caller.name == record.user):
            raise Forbidden(f"user {caller.name} is not allowed to do operation on job {record.user}~{record.name}")

    def check_owner(self, caller: Caller, job: str) -> None:
        """The same by the name of a job alone: whose it would be is in it, whether it is there or not."""
        if not (caller.admin or caller.name == job.partition("~")[0]):
            raise Forbidden(f"user {caller.name} is not allowed to do operation on job {job}")

    def check_cluster(self, caller: Caller, cluster: str, known: frozenset[str]) -> None:
        """Submitting to a virtual cluster; an unknown one is refused like one of others, as OpenPAI does."""
        if cluster not in known or not (caller.admin or cluster in caller.clusters):
            raise Forbidden(f"User {caller.name} is not allowed to do operation in {cluster}")
