"""What a server's home needs now and then: old things removed, keys changed, everything checked."""

from __future__ import annotations

import os

from ..runfolder import layout
from ..runfolder.removing import remove_tree
from ..store import SecretBox, StoreError
from ..store.server import ServerStore
from ..store.server.integrity import check_key, reseal, verify
from ..userruns.run_folder import JobFolder
from ..values import Value
from .errors import Conflict
from .server_home import database, take_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..settings import Settings

DAY = 86400.0
UNUSED_CODE_DAYS = 7
"""How long code that no kept job has is kept after its last use."""
PLACE_DAYS = 90
"""How long the address of a log-in is remembered."""
GIVEN_UP_DAYS = 14
"""Messages that could not be delivered for this time are dropped."""
AT_ONCE = 200
LITTLE_SPACE = 50_000_000
"""Bytes on the disk below which a server will soon refuse jobs."""
SEALED = layout.SEALED_SECRETS


class Removed(Value):
    """What `collect` removed."""

    jobs: int = 0
    code: int = 0
    tokens: int = 0
    messages: int = 0


def opened(settings: Settings, *, as_it_is: bool = False) -> ServerStore:
    """The store of a home in which a server has run; it may be running. `as_it_is` changes nothing."""
    where = database(settings)
    if "://" not in where and not (os.path.exists(where) and os.path.getsize(where)):
        raise StoreError(f"{where}: no server has run in this home yet")
    return ServerStore.open(where, as_it_is=as_it_is)


def collect_server(settings: Settings, now: float, *, keep_days: float, keep_last: int, dry_run: bool) -> int | None:
    """Old jobs of a server that is not running; how many. None where there is none, or it is running and does that itself."""
    where = database(settings)
    if "://" not in where and not os.path.exists(where):
        return None
    try:
        lock = take_lock(settings.home)
    except Conflict:
        return None
    try:
        with opened(settings) as store:
            if dry_run:
                return len(store.jobs.ended_before(now - keep_days * DAY, 1_000_000, keep_last=keep_last))
            return collect(store, settings.home, now, keep_days=max(keep_days, 1e-9), keep_last=keep_last).jobs
    finally:
        os.close(lock)


def collect(
    store: ServerStore,
    home: str,
    now: float,
    *,
    keep_days: float,
    keep_last: int = 0,
) -> Removed:
    """Remove jobs that ended long ago with their folders, unused code, expired tokens, stale messages.

    `keep_days` 0 keeps every job; the latest `keep_last` jobs always stay.
    """
    jobs = 0
    if keep_days > 0:
        while old := store.jobs.ended_before(now - keep_days * DAY, AT_ONCE, keep_last=keep_last):
            for record in old:
                remove_folder(home, record.folder)  # first: a row without a folder is removed the next time, nothing is left over
            with store.batch():
                for record in old:
                    jobs += store.jobs.remove(record.id)
    code = 0
    for blob in store.code.unused(now - UNUSED_CODE_DAYS * DAY, 1000):
        if store.code.remove_unused(blob.digest, now - UNUSED_CODE_DAYS * DAY):
            remove_tree(os.path.join(home, "code", blob.digest), ignore_errors=True)
            code += 1
    _remove_stale_parts(home, now - DAY)
    with store.batch():
        tokens = store.accounts.remove_expired(now)
        store.accounts.forget_failures(now - DAY, now - PLACE_DAYS * DAY)
        messages = store.outbox.give_up(now - GIVEN_UP_DAYS * DAY)
    return Removed(jobs, code, tokens, messages)


def _remove_stale_parts(home: str, before: float) -> None:
    """Code that was being received when a server was killed; no upload takes that long."""
    folder = os.path.join(home, "code")
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        if name.startswith(".") and os.path.isdir(path) and os.stat(path).st_mtime < before:
            remove_tree(path, ignore_errors=True)


def remove_folder(home: str, folder: str) -> None:
    """The folder of a job; never anything that is not in the home's folder of jobs."""
    jobs = os.path.realpath(os.path.join(home, "jobs"))
    real = os.path.realpath(folder) if folder else ""
    if real.startswith(jobs + os.sep):
        remove_tree(real, ignore_errors=True)


def rotate_keys(store: ServerStore, home: str, *, forget: bool = False) -> int:
    """Make a new key and seal everything kept with it; how many secrets. With `forget` the old keys are dropped.

    A server that is running uses the new key at once. Tokens are not affected.
    """
    box = SecretBox(home)
    check_key(store, box)
    box.add_key()
    count = reseal(store, box) + _reseal_runs(box, home)
    if forget:
        reseal(store, box)  # what came in meanwhile under the old key
        box.drop_old_keys()
        check_key(store, box)
    return count


def _reseal_runs(box: SecretBox, home: str) -> int:
    """The secrets of runs without a server, which lie in their folders."""
    count = 0
    jobs = os.path.join(home, "jobs")
    for name in sorted(os.listdir(jobs)) if os.path.isdir(jobs) else ():
        file = os.path.join(jobs, name, SEALED)
        try:
            with open(file, "rb") as stream:
                sealed = stream.read()
        except OSError:
            continue  # most jobs have no secrets
        job = JobFolder(os.path.join(jobs, name)).job()
        run_id = job.id if job else name  # a damaged record is no reason to lose the secrets
        temporary = f"{file}.{os.getpid()}.tmp"
        try:
            with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
                stream.write(box.reseal(run_id, sealed))
                os.fsync(stream.fileno())
            os.replace(temporary, file)
        except OSError as error:
            raise StoreError(f"{file}: cannot be written: {error.strerror}") from None
        count += 1
    return count


def check(store: ServerStore, home: str) -> list[str]:
    """Everything that is wrong with a home, a line each."""
    return [*_places(store, home), *verify(store, SecretBox(home))]


def _places(store: ServerStore, home: str) -> Iterator[str]:
    """Files and folders of the home: who can read them, what is missing, whether there is room."""
    keys = os.path.join(home, "keys")
    files = [os.path.join(keys, name) for name in (sorted(os.listdir(keys)) if os.path.isdir(keys) else ())]
    if store.database.kind == "sqlite":
        files.append(store.place)
    for path, forbidden in ((home, 0o066), (keys, 0o077), *((file, 0o077) for file in files)):
        try:
            mode = os.stat(path).st_mode & 0o777
        except OSError:
            continue  # told below, where it matters
        if mode & forbidden:
            yield f"{path}: others than its owner can {'write' if mode & 0o022 else 'read'} it; chmod go-rw {path}"
    if store.database.one("SELECT 1 FROM tokens") and not os.path.exists(os.path.join(keys, "token.key")):
        yield f"{os.path.join(keys, 'token.key')}: is gone, and with it every token; everybody has to log in again"
    for digest in store.code.digests():
        if not os.path.isdir(os.path.join(home, "code", digest)):
            yield f"{os.path.join(home, 'code', digest)}: is gone; jobs that were submitted with it cannot be started"
    if not os.path.isdir(home):
        return  # with a database elsewhere there may be none yet
    space = os.statvfs(home)
    if space.f_bavail * space.f_frsize < LITTLE_SPACE:
        yield f"{home}: only {space.f_bavail * space.f_frsize / 1e6:.0f} MB are left on its disk; pailot gc removes old jobs"
