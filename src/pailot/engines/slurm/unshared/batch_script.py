"""For clusters whose nodes do not see the home of the login node: all that an attempt needs travels in its batch script."""

from __future__ import annotations

import base64
import io
import os
import shlex

from ....runfolder import layout
from ....runtime.slurm.unshared import unpack
from ...contract import EngineError
from .. import private_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...contract import Attempt

LIMIT_BYTES = 2_500_000
"""Slurm takes scripts of up to 4 MiB unless its configuration says otherwise, and packing for text adds a third."""
NOT_SEEN = 98
"""The batch script's status where its node does not see the attempt's folder."""
UNSHARED = layout.UNSHARED
"""The file in an attempt's folder that says so."""
SCRIPT_END = """
# The nodes do not see the folders of the login node: Pailot's driver and what it needs stand below. It needs Python 3.9 or newer.
umask 077
root=${{PAILOT_NODE_FOLDER:-${{TMPDIR:-/tmp}}}}/pailot-$SLURM_JOB_ID
mkdir -p "${{root%/*}}"
mkdir "$root" || {{ [ -O "$root" ] && [ ! -L "$root" ]; }} || exit 96
mkdir -p "$root/attempt"
exec >>"$root/attempt/{log}" 2>&1
exec sh -c {find} "${{PAILOT_PYTHON:-python3}}" {driver} "$root" <<'PAILOT_END'
{archive}
PAILOT_END
"""


def wanted(setting: str, folder: str, number: int) -> bool:
    """Whether the attempt in this folder takes everything along: as set, or because a node did not see an earlier one's."""
    if setting not in ("auto", "yes", "no"):
        raise EngineError(f"slurm_shared_home: should be auto, yes or no, is '{setting}'")
    if setting != "auto":
        return setting == "no"
    parent = os.path.dirname(folder)
    return any(os.path.exists(os.path.join(parent, str(earlier), UNSHARED)) for earlier in range(number))


def permitted(attempt: Attempt, *, secrets_in_spool: bool) -> Attempt:
    """The attempt without the credentials that its tasks would inherit, unless these may lie in Slurm's spool.

    Refuses what lies on the login node and cannot, or may not, be taken along.
    """
    _check(attempt)
    if secrets_in_spool:
        return attempt
    if private_part.holds_secrets(attempt):
        raise EngineError(
            "the nodes do not see this home (slurm_shared_home), so the secrets of the job would lie in Slurm's spool, where"
            " root and Slurm's own user can read them; slurm_secrets_in_spool = yes allows that"
        )
    left_out = private_part.inherited_credentials(attempt)
    environment = {name: value for name, value in attempt.context.environment.items() if name not in left_out}
    return attempt.replace(context=attempt.context.replace(environment=environment, hidden=()))


def _check(attempt: Attempt) -> None:
    plan = attempt.plan
    missing = sorted({each.kind for role in plan.roles.values() for each in role.provisions if each.kind != "code"})
    if plan.options.channels:
        missing.append("channels")
    if missing:
        raise EngineError(
            f"the nodes do not see this home (slurm_shared_home), and this cannot be taken along: {', '.join(missing)}"
        )


def script(head: str, code: str, files: str, payload: bytes, private: bytes) -> str:
    """The batch script with everything in it; `head` is that of an ordinary one.

    `files` is the folder that `bring_files` made, if there was something to bring.
    """
    packed_for_all = _along(code, files if os.path.isdir(files) else "")
    along = {
        "along.tgz": packed_for_all,
        f"attempt/{layout.PAYLOAD}": payload,
        f"attempt/{layout.DRIVER_ORDERS}": b"",
        f"attempt/{layout.DRIVER_EVENTS}": b"",
    }
    packed = _tar({**along, f"attempt/{private_part.FILE}": private})
    if len(packed) > LIMIT_BYTES:
        size, most = len(packed) / 1e6, LIMIT_BYTES / 1e6
        words = f"what the job takes along to its nodes is {size:.1f} MB packed, {most:.1f} MB at most fit into a batch script"
        raise EngineError(f"{words}; put the code where the nodes see it")
    end = SCRIPT_END.format(
        log=layout.DRIVER_LOG,
        find=shlex.quote(unpack.FIND),
        driver=shlex.quote(unpack.DRIVER),
        archive=base64.encodebytes(packed).decode().strip(),
    )
    return head + end


def _along(code: str, files: str) -> bytes:
    """What every node gets."""
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(code, "code", filter=lambda entry: None if entry.name.endswith("__pycache__") else entry)
        if files:
            archive.add(files, "files")
    return stream.getvalue()


def _tar(contents: dict[str, bytes]) -> bytes:
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
    return stream.getvalue()
