"""A job as it is kept: a file that may be shown, and apart from it, sealed, all that may not."""

from __future__ import annotations

import os

from .. import credentials
from ..protocol.document_secrets import leaves
from ..protocol.overrides import Override
from ..protocol.secrecy import (
    KEPT,
    MASK,
    Written,
    hidden_in_records,
    hidden_texts,
    masked_root,
    masked_value,
    restored,
    written_texts,
)
from ..runfolder import careful_files, layout
from ..runfolder.masking import text_masker
from ..runfolder.plan_codec import document
from ..runfolder.plan_codec import masked as masked_document
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..planning import Plan
    from ..protocol import Job
    from ..runfolder.plan_codec import Taken
    from .run_folder import JobFolder


MOST_ROLES_WITH_PLACES = 100
"""In a job with more roles the command that fails is not named: to find the place of each takes time at every start."""


class Recorded(Value):
    """A job in the form in which it is written down."""

    source: str
    """The job file with the changes made to it, and nothing secret in it."""
    hidden: tuple[str, ...] = ()
    """All that is secret in the job: what no log may show."""
    secrets: Mapping[str, Any] = {}
    written: tuple[Written, ...] = ()
    """Credentials that stand outside of `secrets`, for the next start of the job."""
    plan: Mapping[str, Any] = {}
    """What was planned, as `plan --json` prints it, with nothing secret in it."""
    document: Sequence[Any] = ()
    """The whole plan (see `plan_codec`), with nothing secret in it."""
    taken: Sequence[Taken] = ()
    """What was taken out of that."""

    def __repr__(self) -> str:
        return f"Recorded({len(self.hidden)} hidden)"

    def to_seal(self) -> dict[str, object]:
        """What is kept sealed beside the secrets."""
        return {
            "written": [[list(each.path), each.value] for each in self.written],
            "hidden": list(self.hidden),
            "plan": list(self.taken),
        }


class Kept(Value):
    """What was sealed for a job."""

    secrets: Mapping[str, Any] = {}
    written: tuple[Written, ...] = ()
    hidden: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    """Variables that its tasks inherit and that no record shows."""
    taken: Sequence[Taken] = ()
    """What was taken out of the whole plan in plan.json."""

    def __repr__(self) -> str:
        return f"Kept({len(self.secrets)} secrets, {len(self.written)} other values)"

    @classmethod
    def opened(cls, content: Mapping[str, Any]) -> Kept:
        """From what `SecretBox.open_all` returns; a job that an earlier Pailot sealed has secrets only."""
        written = tuple(Written(tuple(path), value) for path, value in content.get("written", ()))
        hidden = content["hidden"] if "hidden" in content else leaves(content["secrets"])
        return cls(content["secrets"], written, tuple(hidden), content.get("environment", {}), content.get("plan", ()))

    def changes(self, given: Mapping[str, Any] | Sequence[str] = ()) -> list[Override]:
        """What makes the kept file whole again; secrets named in `given` come from elsewhere."""
        own = {name: value for name, value in self.secrets.items() if name not in given}
        changes = [Override(("secrets",), own, KEPT)] if self.secrets else []
        return [*changes, *restored(self.written)]

    def changes_for(self, text: str) -> list[Override]:
        """What gives a copy of the kept file its secrets back, although the copy may have been changed elsewhere.

        A masked value gets the value back that looked the same when it was masked; of several, the one at its own path.
        """
        from ..protocol.masked_text import values_of

        mask, whole = text_masker(self.hidden), frozenset(self.hidden)
        looks: dict[Any, dict[tuple[str | int, ...], Any]] = {}
        for each in self.written:
            looks.setdefault(masked_value(each.path, each.value, mask, whole), {})[each.path] = each.value
        changes = []
        for path, value in values_of(text):
            if not isinstance(value, str) or MASK not in value:
                continue
            if path == ("secrets",):
                changes.append(Override(path, dict(self.secrets), KEPT))
            elif path[0] == "secrets":
                found = _part(self.secrets, path[1:])
                changes += [Override(path, found, KEPT)] if found is not None else []
            else:
                same = looks.get(value, {})
                known = [same[path]] if path in same else list(dict.fromkeys(same.values()))
                changes += [Override(path, known[0], KEPT)] if len(known) == 1 else []
        return changes


def _part(secrets: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(secrets, dict):
            secrets = secrets.get(step)
        elif isinstance(secrets, list) and isinstance(step, int) and step < len(secrets):
            secrets = secrets[step]
        else:
            return None
    return secrets


def recorded(job: Job, text: str, plan: Plan) -> Recorded:
    """How a job that was read from a text is kept; InvalidJob if too much of it is secret."""
    found = written_texts(job)
    hidden = hidden_texts(job, found)
    whole = document(plan.replace(warnings=()))  # which stand in the other form
    if not (hidden or job.secrets.names() or (job.origin is not None and job.origin.overridden)):
        return Recorded(text, plan=_planned(job, plan), document=whole)

    masked = hidden_in_records(job, found)
    mask = text_masker(masked)
    shown = shown_plan(_planned(job, plan), mask)
    kept, taken = masked_document(whole, mask)
    if job.origin is None:
        return Recorded(mask(text), hidden, job.secrets.reveal(), (), shown, kept, taken)
    named = job.origin.document.root if job.legacy else {**job.origin.document.root, "name": job.name}
    root, written = masked_root(named, mask, masked)
    source = _as_written(job, text, mask, masked)
    if source is None:
        from ..protocol.yaml.writer import dump

        source = dump(root)
    return Recorded(source, hidden, job.secrets.reveal(), written, shown, kept, taken)


def _as_written(job: Job, text: str, mask: Callable[[str], str], masked: Sequence[str]) -> str | None:
    """The text with nothing secret in it and the name that the job has; None where its values are not those of the text."""
    overridden = job.origin.overridden if job.origin is not None else {}
    if job.legacy or not all(
        path == "name" or path.partition(".")[0] == "secrets" or option == KEPT for path, option in overridden.items()
    ):
        return None
    from ..protocol.masked_text import with_values_shown

    whole = frozenset(masked)

    def shown(path: tuple[str | int, ...], value: Any) -> Any:
        if path[0] == "secrets":
            return value if value is None else MASK
        return job.name if path == ("name",) else masked_value(path, value, mask, whole)

    return with_values_shown(text, shown)


def _planned(job: Job, plan: Plan) -> dict[str, object]:
    """The plan as it is kept: with the places of its commands, by which the one that fails is named."""
    from ..planning.command_places import table

    made = plan.to_json()
    if len(plan.roles) <= MOST_ROLES_WITH_PLACES:
        for name, role in plan.roles.items():
            made["taskRoles"][name]["commandPlaces"] = table(job, role)
    return made


def shown_plan(plan: dict[str, object], mask: Callable[[str], str]) -> dict[str, object]:
    """A plan as it is kept and printed: its scripts, variables and addresses show nothing that is secret."""

    def shown(value: Any) -> Any:
        if isinstance(value, str):
            return mask(value)
        if isinstance(value, dict):
            return {key: shown(item) for key, item in value.items()}
        return [shown(item) for item in value] if isinstance(value, list) else value

    parts = ("taskRoles", "options", "warnings")
    return {key: shown(item) if key in parts else item for key, item in plan.items()}


def seal(home: str, folder: JobFolder, run_id: str, kept: Recorded, environment: Mapping[str, str]) -> None:
    """Seal what a run must know later and may not lie in a file."""
    withheld = {name: value for name, value in environment.items() if not credentials.is_harmless(name)}
    if not (kept.secrets or kept.hidden or withheld):
        return
    from ..store.secrets import SecretBox

    more = {**kept.to_seal(), **({"environment": withheld} if withheld else {})}
    sealed = SecretBox(home).seal(run_id, kept.secrets, more)
    with open(folder.file(layout.SEALED_SECRETS), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(sealed)


def kept_for(home: str, folder: JobFolder) -> Kept:
    """What was sealed for a run when it was started."""
    try:
        sealed = careful_files.read_regular(folder.file(layout.SEALED_SECRETS))
    except FileNotFoundError:
        return Kept()
    from ..store.secrets import SecretBox

    return Kept.opened(SecretBox(home).open_all(os.path.basename(folder.path), sealed))
