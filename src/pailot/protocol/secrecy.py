"""What is secret in a job: the one function that says so, and the form of a job that may be kept and shown."""

from __future__ import annotations

from .. import credentials
from ..values import Value
from .document_secrets import leaves, of_part
from .js_semantics import to_string
from .overrides import Override
from .problems import InvalidJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any

    from ..job_values import Auth
    from .model import Job

MASK = "******"
KEPT = "the kept secrets"
"""How a change is named that gives a masked file its secrets back."""
MOST_HIDDEN = 500
"""At most this many texts of a job can be hidden: every line of its logs is searched for each of them, in all its forms."""


class Written(Value):
    """A value of a job file that holds a credential: where it stands, and what it is."""

    path: tuple[str | int, ...]
    value: str | int | float

    def __repr__(self) -> str:
        return f"Written({self.path!r}, '{MASK}')"


def hidden_texts(job: Job, written: Iterable[str] | None = None) -> tuple[str, ...]:
    """Everything in a job that no log, record, message or answer may show.

    These are its `secrets`, the credentials of registries (`auth`, `authFile`), and whatever looks like a credential in the
    rest of the file (see `credentials`). Who has asked for `written_texts` already hands them in.
    """
    return _bounded(job, dict.fromkeys((*leaves(job.secrets.reveal()), *(written_texts(job) if written is None else written))))


def hidden_in_records(job: Job, written: Iterable[str] | None = None) -> tuple[str, ...]:
    """What is masked wherever it stands in the kept file and plan: not a secret that is a common word, as a user name is.

    References stand there for secrets, and a word that happens to be one is no reason to make the rest unreadable.
    """
    secret = (leaf for leaf in leaves(job.secrets.reveal()) if not credentials.is_common(leaf))
    return _bounded(job, dict.fromkeys((*secret, *(written_texts(job) if written is None else written))))


def _bounded(job: Job, texts: Iterable[str]) -> tuple[str, ...]:
    found = tuple(texts)
    if len(found) > MOST_HIDDEN:
        message = f"the job holds {len(found)} secrets and credentials; at most {MOST_HIDDEN} can be kept out of its logs"
        raise InvalidJob([job.problem("job-limit", message, ())])
    return found


def written_texts(job: Job) -> tuple[str, ...]:
    """Credentials that stand in a job outside of its `secrets`."""
    found: dict[str, None] = {}
    for auth in (job.registry_auth, *(each.auth for each in job.prerequisites)):
        if auth is not None:
            found.update(dict.fromkeys(_of_auth(auth)))
    for part in _parts(job):
        found.update(dict.fromkeys(of_part("", part)))
    return tuple(found)


def masked_root(root: Any, mask: Callable[[str], str], hidden: Iterable[str]) -> tuple[dict[str, object], tuple[Written, ...]]:
    """A document as it may be kept, and what was taken out of it besides `secrets`, for `restored`."""
    written: list[Written] = []
    whole = frozenset(hidden)

    def shown(value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, dict):
            return {key: shown(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [shown(item, (*path, position)) for position, item in enumerate(value)]
        masked = masked_value(path, value, mask, whole)
        if masked != value:
            written.append(Written(path, value))
        return masked

    made = {key: MASK if key == "secrets" else shown(item, (key,)) for key, item in root.items()}
    return made, tuple(written)


def masked_value(path: tuple[str | int, ...], value: Any, mask: Callable[[str], str], hidden: Collection[str]) -> Any:
    """A value of a document as it may be kept; `path` is where it stands."""
    if isinstance(value, str):
        return MASK if path[-2:] == ("auth", "password") and value and "<%" not in value else mask(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and to_string(value) in hidden:
        return MASK
    return value


def restored(written: Iterable[Written]) -> list[Override]:
    """The changes that give a masked document back what was taken out of it."""
    return [Override(each.path, each.value, KEPT) for each in written]


def _of_auth(auth: Auth) -> Iterator[str]:
    if auth.password and "<%" not in auth.password:
        yield auth.password
    if credentials.is_opaque(auth.username):
        yield auth.username


def _parts(job: Job) -> Iterator[Any]:
    """Where credentials may stand, as far as a quick look at the text cannot exclude it."""
    origin = job.origin
    borrowed = [each.fields for each in job.prerequisites if not each.path]
    if origin is None:
        yield {
            "parameters": job.parameters,
            "prerequisites": [each.fields for each in job.prerequisites],
            "commands": [role.commands for role in job.task_roles.values()],
            "environment": job.extras.options.environment,
            "extras": job.extras.raw,
        }
        return
    if borrowed:
        yield borrowed
    if origin.overridden or credentials.may_hold(origin.document.text):
        root = origin.document.root
        yield {key: item for key, item in root.items() if key != "secrets"} if isinstance(root, dict) else root
