"""Starting and ending the team service around a server."""

from __future__ import annotations

import array
import fcntl
import os
import sys
from contextlib import asynccontextmanager

from ..engines.contract import EngineError
from ..engines.preparation import gpus, machine
from ..engines.registry import check, traits
from ..library import Library
from ..scheduling.capacity import Capacity
from ..settings import MOST, BadSetting
from ..store import SecretBox
from ..store.server import ServerStore
from ..store.server.integrity import check_key
from .housekeeping import Housekeeping
from .server_home import database, take_lock
from .service import Team
from .skus import from_setting, of_machine
from .submission import JobReader
from .team_library import TeamLibrary
from .unix_users import task_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..settings import Settings
    from .skus import Sku

_GET_FLAGS, _SET_FLAGS, _TOP_FOLDER = 0x80086601, 0x40086602, 0x00020000
LOST_STATUS = 75
"""Exit status of a server that another one has replaced: EX_TEMPFAIL."""
_CLUSTER_KEYS = ("cpus", "memory_mb", "gpus", "user_jobs", "user_gpus")


@asynccontextmanager
async def running_team(settings: Settings, *, engine: str = "local") -> AsyncIterator[Team]:
    """The team of this home, with its lock held, its store open, its keeper found or started and its jobs re-adopted.

    Raises Conflict when another server has this home. Leaving hands running jobs over to the next server, unless
    `shutdown` was called with another wish before. `team.store` is the store, for accounts and lists.
    """
    check(engine)
    if not traits(engine).fits_server:
        raise EngineError(f"the engine {engine} runs the jobs of one user; a server cannot use it yet")
    if settings["unix_users"] and not traits(engine).unix_users:
        raise BadSetting(f"unix_users: the engine {engine} cannot run tasks as Unix users; only local can")
    if settings["data_cache_user"] and not settings["unix_users"]:
        raise BadSetting("data_cache_user: it is for a server with unix_users; without, all tasks are the server's own processes")
    home = settings.home
    os.makedirs(home, mode=0o700, exist_ok=True)
    jobs = os.path.join(home, "jobs")
    os.makedirs(jobs, mode=0o700, exist_ok=True)  # one that is a link is the administrator's
    _spread(jobs)
    lock = take_lock(home)
    try:
        store = ServerStore.open(database(settings), alone=True)
        try:
            box = SecretBox(home)
            check_key(store, box)
            store.accounts.seal_with(box)
            folders = Library(settings.library, home=home, cache=settings.cache, fresh_seconds=settings.library_cache_seconds)
            team = Team(
                settings,
                store,
                JobReader(TeamLibrary(store, folders, settings)),
                engine=engine,
                machine=capacity(settings, engine),
                environment=task_environment(),
            )
            team.skus, team.skus_are_set = cells(settings, engine, team.machine)
            housekeeping = Housekeeping(settings, store)
            store.database.on_lost = _stop_at_once
            try:
                await team.set_clusters({**clusters(settings["virtual_clusters"]), **store.accounts.clusters()})
                await team.begin()
                housekeeping.begin()
                yield team
            finally:
                await housekeeping.end()
                await team.end()
        finally:
            store.close()
    finally:
        os.close(lock)


def _stop_at_once(reason: str) -> None:
    """End as a crash does, which the next start is made for: another server acts now, and this one must not, not even to end."""
    sys.stderr.write(f"pailot: {reason}\n")
    sys.stderr.flush()
    os._exit(LOST_STATUS)


def _spread(folder: str) -> None:
    """Have ext4 put each job's folder into a part of the disk of its own, as `chattr +T` does.

    Else all are crowded into one, where a new file is searched for past every one removed in the last minutes: with many
    small jobs that takes half of all time.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flags = array.array("l", [0])
        fcntl.ioctl(descriptor, _GET_FLAGS, flags)
        if not flags[0] & _TOP_FOLDER:
            flags[0] |= _TOP_FOLDER
            fcntl.ioctl(descriptor, _SET_FLAGS, flags)
    except OSError:
        pass  # another file system, which has its own ways
    finally:
        os.close(descriptor)


def capacity(settings: Settings, engine: str) -> Capacity:
    """What jobs may use at the same time: as set, else what this machine has."""
    if not traits(engine).on_this_machine:
        return Capacity(1e6, 1 << 40, 1 << 20)

    return Capacity(
        _amount(settings, "cpus") or machine.cpus(),
        int(_amount(settings, "memory_mb") or machine.memory_mb()),
        len(gpus.discover(str(settings["gpus"]))),
    )


def _amount(settings: Settings, name: str) -> float | None:
    """A setting that is a number, or None for `auto`."""
    text = str(settings[name])
    if text == "auto":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value <= MOST:
        raise BadSetting(f"{name}: should be auto, or a number above 0 and up to {MOST}, is {text!r}")
    return value


def cells(settings: Settings, engine: str, machine: Capacity) -> tuple[dict[str, Sku], bool]:
    """The kinds of cells, and whether they were set: else this machine's, by its GPUs; another engine's are not known."""
    table = settings["sku_types"]
    if table:
        return from_setting(table), True
    if not traits(engine).on_this_machine:
        return {}, False

    return of_machine(machine, [gpu.name for gpu in gpus.discover(str(settings["gpus"]))]), False


def clusters(setting: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """`research:gpus=2:cpus=8:user_jobs=4` as a name, its shares, and what each user may have of it."""
    found: dict[str, dict[str, float]] = {}
    for entry in setting:
        name, *parts = entry.split(":")
        shares: dict[str, float] = {}
        for part in parts:
            key, _, value = part.partition("=")
            is_number = value.isascii() and value.replace(".", "", 1).isdecimal() and float(value) <= MOST
            if key not in _CLUSTER_KEYS or not is_number or (key.startswith("user_") and "." in value):
                like = "research:cpus=8:memory_mb=32000:gpus=2:user_jobs=4:user_gpus=1"
                raise BadSetting(f"virtual_clusters: {entry!r} should read like {like}")
            shares[key] = float(value)
        found[name] = shares
    return found
