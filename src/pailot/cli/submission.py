"""Giving a job to a server: what `pailot submit` sends, and what it says at once."""

from __future__ import annotations

import os

from ..client.errors import NotFound, Refused
from ..errors import PailotError
from ..loading.named_files import forgotten_files
from ..protocol.references import is_reference, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..client.api import Client
    from ..planning import Plan

TAKEN = "ConflictJobError"


def send(
    client: Client, text: str, name: str, *, code: str = "", after: Sequence[str] = (), replace: bool = False
) -> tuple[str, list[str]]:
    """Submit a job file. Returns the job's name and the warnings of the server.

    With `replace`, an ended job of the same name is removed first. The server has checked the new one by then.
    """
    if replace and name in {each.partition(":")[0].rpartition("~")[2] for each in after}:
        raise PailotError(f"--replace: '{name}' cannot follow the job that it replaces")
    try:
        answer = client.submit_job(text, code=code, after=after)
    except Refused as error:
        if error.code != TAKEN:
            raise
        if not replace:
            words = f"{error.message.rstrip('.')}; use --name or --unique for another, or --replace if it has ended"
            raise type(error)(words, error.status, error.code) from None
        client.delete(f"{client.user}~{name}")
        answer = client.submit_job(text, code=code, after=after)
    return str(answer.get("name") or name), [str(each) for each in answer.get("warnings") or ()]


def library_of(client: Client, reference: str) -> tuple[str, str] | None:
    """A prerequisite of the server's library; the job that is sent names it, and the server puts it in."""
    if not is_reference(reference):
        return None
    try:
        found = client.library_entry(*split(reference))
    except NotFound:
        return None  # it has none of that name, or no library at all
    return found["text"], f"{client.server}: {reference}"


def check_followers(client: Client, after: Sequence[str]) -> None:
    """Refuse predecessors where the server would ignore them: OpenPAI's own knows none."""
    if not after:
        return
    try:
        client.about()
    except NotFound:
        raise PailotError(
            f"{client.server} is OpenPAI's own and starts a job at once: it knows no --after and no extras.pailot.after"
        ) from None


def code_hints(plan: Plan) -> Iterator[str]:
    """Yield a line if the commands expect files and no code is sent along."""
    name, is_here = forgotten_files(plan, os.path.isfile)
    if is_here:
        yield f"no code was sent, and the commands name '{name}', which is in this folder: --code . sends it along"
    elif name:
        yield f"no code was sent (--code DIR), and tasks start in an empty folder: the commands name '{name}'"


def goes_on(name: str) -> str:
    """Say what becomes of a job that is no longer followed."""
    return f"{name} goes on; pailot logs -f {name} follows it again, pailot stop {name} ends it"
