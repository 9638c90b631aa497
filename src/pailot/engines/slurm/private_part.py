"""What of an attempt no readable file may hold: secrets, credentials in scripts and variables, most of what is inherited.

The payload has marks in their place. The values go to the driver in a file of their own, which only its owner can read and
which the driver removes as soon as it has read it. Where every node that sees the file also sees our Python, the file is
sealed, and the key goes with the batch job's environment.
"""

from __future__ import annotations

import os

from ... import credentials
from ...runfolder import layout
from ...runtime.slurm.payload import PrivatePart
from ...values import Value
from . import code_bundle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime.slurm.payload import Payload
    from ..contract import Attempt

FILE = layout.SECRETS_ONCE
UNSEALABLE = "unsealable"
"""The file in an attempt's folder that says that its node could not open what was sealed."""


class Sealed(Value):
    """The content of the file, and the variables by which the driver opens it."""

    data: bytes
    variables: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Sealed({len(self.data)} bytes)"


def split(payload: Payload, attempt: Attempt) -> tuple[Payload, PrivatePart]:
    """The payload without anything private, and the private part."""
    texts = sorted({text for text in attempt.context.hidden if len(text) >= credentials.MIN_CHARACTERS}, key=len, reverse=True)
    marks = {text: f"{payload.token}{{s{number}}}" for number, text in enumerate(texts)}
    used: dict[str, str] = {}

    def public(text: str) -> str:
        for secret, mark in marks.items():
            if secret in text:
                used[mark] = secret
                text = text.replace(secret, mark)
        return text

    shown = payload.changed(public) if marks else payload
    inherited = payload.environment
    kept = {name: value for name, value in inherited.items() if credentials.is_harmless(name) and public(value) == value}
    withheld = {name: value for name, value in inherited.items() if name not in kept}
    return shown.replace(environment=kept), PrivatePart(attempt.context.secrets, attempt.context.hidden, used, withheld)


def remove(folder: str) -> None:
    """The file of an attempt that is over before its driver has read it."""
    try:
        os.unlink(os.path.join(folder, FILE))
    except OSError:
        pass  # the driver has read it, as it should


def inherited_credentials(attempt: Attempt) -> Sequence[str]:
    """The names of variables with a credential that tasks take from the process that started the job."""
    return sorted(name for name, value in attempt.context.environment.items() if credentials.of_environment({name: value}))


def write_own(folder: str, name: str, data: bytes) -> None:
    """A file in the attempt's folder for us alone; no process looks for it before Slurm has the job."""
    path = os.path.join(folder, name)
    with open(path, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(data)


def holds_secrets(attempt: Attempt) -> bool:
    """Whether the job itself has secrets, apart from what its tasks inherit."""
    inherited = set(credentials.of_environment(attempt.context.environment))
    return bool(attempt.context.secrets) or any(text not in inherited for text in attempt.context.hidden)


def seal(private: PrivatePart, attempt: Attempt) -> Sealed:
    """The content of the file: sealed if the nodes can open it, else plain."""
    data = private.to_bytes()
    packages = _packages_seen_with(attempt.folder)
    parent = os.path.dirname(attempt.folder)
    if not packages or any(os.path.exists(os.path.join(parent, str(each), UNSEALABLE)) for each in range(attempt.number)):
        return Sealed(data)
    from cryptography.fernet import Fernet

    key = Fernet.generate_key()
    return Sealed(Fernet(key).encrypt(data), {"PAILOT_KEY": key.decode(), "PAILOT_PACKAGES": packages})


def _packages_seen_with(folder: str) -> str:
    """The folder of the package `cryptography`, if a node that sees an attempt's folder sees it and this Python as well.

    That is known only where all of them lie in the user's home directory, which is shared as a whole or not at all.
    """
    import cryptography

    packages = os.path.dirname(os.path.dirname(os.path.abspath(cryptography.__file__)))
    home = os.path.realpath(os.path.expanduser("~")).rstrip("/") + "/"
    paths = (folder, packages, code_bundle.interpreter())
    return packages if all(os.path.realpath(path).startswith(home) for path in paths) else ""
