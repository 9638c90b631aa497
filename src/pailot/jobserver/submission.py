"""From the text of a job file to what the server keeps and the keeper drives."""

from __future__ import annotations

from ..data.addresses import parse
from ..data.job_places import refusals
from ..loading import shell_syntax, with_what_planning_finds
from ..planning import plan
from ..planning.plugins import exists as is_plugin
from ..planning.private_values import PrivateValues, private_values
from ..protocol import InvalidJob, read
from ..protocol.masked_text import scalars
from ..protocol.overrides import Override
from ..protocol.secrecy import MASK
from ..runfolder.plan_codec import encode
from ..userruns.masked_job_file import Kept, Recorded, recorded
from ..values import Value
from .errors import Invalid
from .json_lines import to_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..data.rules import Rules
    from ..planning import Plan
    from ..protocol import Job
    from ..store.secrets import SecretBox
    from .team_library import TeamLibrary


class Prepared(Value):
    """A job that was read and planned. Secrets are in it: it lives in memory only."""

    job: Any
    plan: Any
    kept: Recorded
    """The job as it is written down."""
    private: PrivateValues
    """What the plan refers to."""
    plan_text: str
    """The plan as `plan --json` prints it, masked."""
    whole: str
    """The whole plan, as the keeper reads it."""
    library: Mapping[str, str] = {}
    """What of the server's library the job uses: the digest of each text by its reference."""

    @property
    def source(self) -> str:
        """The job file, masked."""
        return self.kept.source

    @property
    def documents(self) -> tuple[str, ...]:
        """What goes to the keeper: the plan as it is shown, the whole plan, and that masked, where this makes a difference."""
        masked = (to_line(self.kept.document),) if self.kept.taken else ()
        return self.plan_text, self.whole, *masked

    @property
    def hidden(self) -> tuple[str, ...]:
        return self.kept.hidden

    def sealed(self, box: SecretBox, number: str) -> bytes | None:
        """What is kept sealed of the job with this number; None if nothing of it is secret."""
        kept = self.kept
        return box.seal(number, kept.secrets, kept.to_seal()) if kept.secrets or kept.hidden else None


class JobReader:
    """Reads jobs as the server's settings want it."""

    def __init__(self, library: TeamLibrary) -> None:
        self.library = library

    def prepare(
        self,
        text: str,
        user: str,
        *,
        name: str | None = None,
        secrets: Mapping[str, Any] | None = None,
        with_code: bool = False,
        kept: Kept | None = None,
        copied_from: Kept | None = None,
        library: Mapping[str, str] | None = None,
    ) -> Prepared:
        """Read and plan; raises Invalid with everything that is wrong.

        `library` is what a job that was read before used of the library: it gets the same texts again.

        `secrets` are added to those of the file. A text that we masked is made whole again by what was `kept` of it, and a
        changed copy of such a text by what was kept of the job that it was `copied_from`.
        """
        changes = kept.changes(secrets or {}) if kept is not None else []
        changes += copied_from.changes_for(text) if copied_from is not None else []
        changes += [Override(("secrets", key), value, f"secret {key}") for key, value in (secrets or {}).items()]
        if name is not None:
            changes.append(Override(("name",), name, "the name given with the request"))
        finder = self.library.finder(library or {})
        try:
            job = read(text, changes=tuple(changes), library=finder, is_plugin=is_plugin)
            if copied_from is not None:
                _check_unmasked(job)
            made = plan(job, user)
        except InvalidJob as error:
            found = with_what_planning_finds(error).problems
            raise Invalid("\n".join(map(str, found)), found) from None
        made = _without_local_code(job, made, with_code=with_code)
        _check_channels(job, made)
        try:
            form = recorded(job, text, made)
        except InvalidJob as error:
            raise Invalid(str(error), error.problems) from None
        whole = encode(made.replace(warnings=())) if form.taken else to_line(form.document)
        return Prepared(job, made, form, private_values(job, made), to_line(form.plan), whole, finder.used)


def _check_unmasked(job: Job) -> None:
    """Refuse a copy that still holds a masked value: the job that it was copied from has none for that place."""
    root = job.origin.document.root if job.origin is not None else None
    left = [path for path, value in scalars(root) if isinstance(value, str) and MASK in value]
    if left:
        words = "this value is masked, and the job that the file was copied from has none for it; write it again"
        raise InvalidJob([job.problem("masked-secrets", words, path) for path in left])


def _without_local_code(job: Job, made: Plan, *, with_code: bool) -> Plan:
    """A folder of the submitter's machine means nothing here: its content was sent along, or the job cannot run."""
    code = made.options.code
    if not code or not parse(code).is_path:
        return made
    if not with_code:
        words = f"the code folder '{code}' is not on the server; submit the job with it (pailot submit --code)"
        raise Invalid(words, [job.problem("code-folder", words, ("extras", "pailot", "code"))])
    roles = {
        name: role.replace(provisions=tuple(each for each in role.provisions if each.kind != "code"))
        for name, role in made.roles.items()
    }
    return made.replace(roles=roles, options=made.options.replace(code=None))


def _check_channels(job: Job, made: Plan) -> None:
    """Code for /ml is sent along, too, or fetched from elsewhere."""
    channels = made.options.channels
    if channels and channels.code and parse(channels.code).is_path:
        words = f"the code '{channels.code}' is not on the server; send it along (pailot submit --code), or name a URI"
        raise Invalid(words, [job.problem("code-folder", words, ("extras", "pailot", "channels", "code"))])


def check_places(job: Job, made: Plan, secrets: Mapping[str, str], rules: Rules) -> None:
    """Refuse a job that names places which it may not use; it is asked again when they are opened."""
    found = [job.problem("place-refused", words, field) for field, words in refusals(made, secrets, rules)]
    if found:
        raise Invalid("; ".join(each.message for each in found), found)


def check_scripts(prepared: Prepared, *, runs_here: bool) -> Plan:
    """The plan with warnings of what bash says of its scripts; where they run in the bash of this machine, a refusal."""
    try:
        return shell_syntax.checked(prepared.job, prepared.plan, runs_here=runs_here)
    except InvalidJob as error:
        raise Invalid(str(error), error.problems) from None


def demand(made: Plan) -> tuple[int, int, int]:
    """CPUs, MB of memory and GPUs of all tasks together."""
    roles: Sequence[Any] = tuple(made.roles.values())
    return (
        sum(role.instances * role.resources.cpu for role in roles),
        sum(role.instances * role.resources.memory_mb for role in roles),
        sum(role.instances * role.resources.gpu for role in roles),
    )
