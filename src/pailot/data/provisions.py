"""What Pailot brings before a task starts: fetched files, the job's ssh key, code."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from fcntl import LOCK_EX, flock
from hashlib import sha256
from json import dump, load
from shutil import copy2, which
from time import time

from ..client.ignore import walk
from ..progress import Meter
from ..protocol.templates import replace_secrets
from ..runfolder import layout
from ..runfolder.careful_files import make_folders
from ..runfolder.removing import remove_tree
from .addresses import parse
from .download import CachedCopy, from_http, from_store, pour
from .folders import may_read, open_file, whoever_we_are
from .location import Location, ProvideError, Unreachable
from .rules import OWN_MACHINE, WEB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..planning import Plan, Provision, RolePlan
    from ..progress import Progress
    from .download import MeterOf
    from .rules import Rules

NO_SECRETS: Mapping[str, str] = {}
NOTHING_SHARED: Mapping[tuple[str, str], str] = {}
IGNORE_FILE = ".pailotignore"
_LONGEST_NAME = 200
_VARIABLE = re.compile(r"\$(?:\{(PAI_\w+)\}|(PAI_\w+))", re.ASCII)


def provide(
    plan: Plan,
    attempt_folder: str,
    cache: str,
    *,
    secrets: Mapping[str, str] = NO_SECRETS,
    cwd: str = "",
    rules: Rules = OWN_MACHINE,
    shared: Mapping[tuple[str, str], str] = NOTHING_SHARED,
) -> dict[str, dict[str, str]]:
    """Fetch what the roles ask for and make the job's ssh key: for each role, the paths by variable.

    `secrets` are those that addresses refer to, by reference. Relative paths start from `cwd`. Code is brought by `bring_code`,
    once the working directories are there. `shared` are the paths of data sets that lie here already, by label and address.
    """
    fetched: dict[tuple[str, str], str] = {}
    provided: dict[str, dict[str, str]] = {}
    for role in plan.roles.values():
        paths = provided[role.name] = {}
        for each in role.provisions:
            if each.kind == "fetch" and (each.shared, each.source) in shared:
                paths[each.variable] = shared[each.shared, each.source]
            elif each.kind == "fetch":
                source = _source(role, each, secrets)
                wanted = source.uri, each.sha256
                if wanted not in fetched:
                    fetched[wanted] = _fetch(source, each.sha256, cache, cwd, rules)
                paths[each.variable] = fetched[wanted]
            elif each.kind == "ssh-key":
                paths[each.variable] = _ssh_key(attempt_folder, plan.full_name)
            elif each.kind != "code":
                raise ProvideError(f"this Pailot cannot bring '{each.kind}' to a task")
    return provided


def bring_code(
    plan: Plan,
    works: Mapping[tuple[str, int], str],
    cache: str,
    *,
    secrets: Mapping[str, str] = NO_SECRETS,
    cwd: str = "",
    private: bool = True,
    leave_out: Iterable[str] = (),
    rules: Rules = OWN_MACHINE,
) -> None:
    """Put the code that the roles ask for into the working directory of each (role, index), below its own name.

    A private working directory gets a copy, without what `.pailotignore` names, and links to what is in it where a name is
    free: `python train.py` finds it. One that is the user's own gets a link to the folder, unless the code is there already,
    and nothing else: what a run leaves in a user's folder stays there. The paths in `leave_out` (PAILOT_HOME) are never copied.
    """
    found: dict[str, tuple[str, str]] = {}
    done: set[tuple[str, str]] = set()
    for (role, _), work in works.items():
        for each in plan.roles[role].provisions:
            if each.kind != "code" or (each.source, work) in done:
                continue
            done.add((each.source, work))
            if each.source not in found:
                source = _source(plan.roles[role], each, secrets)
                path = _fetch(source, each.sha256, cache, cwd, rules)
                name = os.path.basename(source.shown.rstrip("/") if source.local else path)
                found[each.source] = path, "" if name in (".", "..") else name
            path, name = found[each.source]
            try:
                if private:
                    _copy_into(work, path, name, {*map(_identity, leave_out), _identity(work)})
                    if name:
                        _show_entries(work, name)
                else:
                    _link_into(work, path, name)
            except OSError as error:
                words = f"{error.filename2 or error.filename}: {error.strerror}"
                raise ProvideError(f"the code {each.source} cannot be brought: {words}") from None


# Where things come from


def sources(plan: Plan, secrets: Mapping[str, str]) -> Iterator[tuple[str, Location]]:
    """Everything that the roles ask for and that is somewhere, as (role, where); with secrets."""
    for role in plan.roles.values():
        for each in role.provisions:
            if each.kind in ("fetch", "code"):
                yield role.name, _source(role, each, secrets)


def _source(role: RolePlan, each: Provision, secrets: Mapping[str, str]) -> Location:
    """With OpenPAI's variables (`$PAI_USER_NAME`) and the secrets inserted."""

    def variable(match: re.Match[str]) -> str:
        return role.environment.get(match[1] or match[2], match[0])

    shown = _VARIABLE.sub(variable, each.source)
    return Location(shown, with_secrets(shown, secrets))


def with_secrets(shown: str, secrets: Mapping[str, str]) -> str:
    """A text of the plan with its secrets inserted."""
    if "<%" not in shown:
        return shown

    def inserted(name: str) -> str:
        value = secrets.get(f"<% $secrets.{name} %>")
        if value is None:
            raise ProvideError(f"{shown}: there is no secret '{name}'")
        return value

    return replace_secrets(shown, inserted)


# Fetching


def _nobody(_: Progress) -> None: ...


def fetch(
    uri: str,
    cache: str,
    cwd: str = "",
    what: str = "",
    tell: Callable[[Progress], None] = _nobody,
    rules: Rules = OWN_MACHINE,
) -> str:
    """The path of what a URI names: where it is on this machine, else of a copy in the cache."""
    return _fetch(Location(uri, uri), "", cache, cwd, rules, what, tell)


def _fetch(
    source: Location,
    wanted: str,
    cache: str,
    cwd: str,
    rules: Rules,
    what: str = "",
    tell: Callable[[Progress], None] = _nobody,
) -> str:
    """The path of something, which is brought into the cache unless it is on this machine; `wanted` is its SHA-256 sum."""
    source.check(rules)
    if source.local:
        return _check_local(source, source.path(cwd, rules), wanted, rules)
    place = os.path.join(cache, "fetch", sha256(source.uri.encode()).hexdigest())
    target = os.path.join(place, _file_name(source.shown))
    asked = time()
    try:
        make_folders(os.path.dirname(place))
        lock = _lock(f"{place}.lock")
        try:
            kept = _kept(place, target)
            if kept is not None and (kept.sha256 == wanted if wanted else kept.fetched >= asked):
                return target  # just what is needed, or brought while we waited
            _bring(source, wanted, place, target, None if wanted else kept, lambda total: Meter(what, total, tell), rules)
        finally:
            os.close(lock)
    except OSError as error:
        raise source.error(f"{error.filename2 or error.filename or target} cannot be written: {error.strerror}") from None
    return target


def _check_local(source: Location, path: str, wanted: str, rules: Rules) -> str:
    if rules.server and not may_read(path):
        raise source.error(f"{whoever_we_are()} may not read it")
    if not os.path.exists(path):
        raise source.error("there is no such file" + ("" if source.secret or source.uri == path else f" ({path})"))
    if wanted:
        if os.path.isdir(path):
            raise source.error("is a folder, of which there is no SHA-256 sum")
        try:
            with open(open_file(path, rules), "rb") as stream:
                _check_sum(source, pour(stream, None), wanted)
        except OSError as error:
            raise source.error(f"cannot be read: {error.strerror}") from None
    return path


def _bring(
    source: Location, wanted: str, place: str, target: str, kept: CachedCopy | None, meter_of: MeterOf, rules: Rules
) -> None:
    """Fetch into the cache, all or nothing; an old copy stays if it is still right, or if the source cannot be reached."""
    part = f"{place}.part"
    _remove(part)
    try:
        news = (from_http if parse(source.uri).scheme in WEB else from_store)(source, part, kept, meter_of, rules)
        if news is None:
            return
        if wanted:
            _check_sum(source, news.sha256, wanted)
        if os.path.isfile(part):
            os.chmod(part, 0o444)  # many tasks read it
        make_folders(place)
        if os.path.isdir(part) or os.path.isdir(target):
            _remove(target)
        os.rename(part, target)
        _write_notes(place, news.replace(look=_look(target), fetched=time()))
    except Unreachable:
        if kept is None:
            raise
    finally:
        _remove(part)


def _check_sum(source: Location, found: str, wanted: str) -> None:
    if not found:
        raise source.error("is a folder, of which there is no SHA-256 sum")
    if found != wanted:
        raise source.error(f"is not what it should be: its SHA-256 sum is {found}, the job wants {wanted}")


def _file_name(shown: str) -> str:
    inner = shown.partition("::")[0]  # fsspec: what is inside comes first, zip://main.py::https://example/code.zip
    name = inner.rstrip("/").rpartition("/")[2].partition("?")[0].partition("#")[0]
    return "file" if name in ("", ".", "..") or "<%" in name else name[-_LONGEST_NAME:]


def _lock(file: str) -> int:
    """Wait for our turn; the kernel gives the lock back when the descriptor is closed."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    flock(descriptor, LOCK_EX)
    return descriptor


def _kept(place: str, target: str) -> CachedCopy | None:
    """What is known about the copy in the cache, if it still is as it was brought."""
    try:
        with open(f"{place}.json", encoding="utf-8") as stream:
            kept = CachedCopy.from_json(load(stream))
        return kept if kept.look == _look(target) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _look(target: str) -> tuple[int, int, int]:
    found = os.stat(target)
    return found.st_size, found.st_mtime_ns, found.st_ino


def _write_notes(place: str, notes: CachedCopy) -> None:
    with open(f"{place}.json.part", "w", encoding="utf-8") as stream:
        dump(notes.to_json(), stream)
    os.replace(f"{place}.json.part", f"{place}.json")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        remove_tree(path)


# The key of the job


def _ssh_key(attempt_folder: str, comment: str) -> str:
    path = os.path.join(attempt_folder, layout.SSH, "id_ed25519")
    if os.path.exists(f"{path}.pub"):
        return path
    program = which("ssh-keygen")
    if program is None:
        raise ProvideError("ssh between tasks needs ssh-keygen; install it (openssh-client on Debian and Ubuntu)")
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    command = [program, "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path]
    made = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise ProvideError(f"ssh-keygen cannot make a key: {made.stderr.strip() or made.stdout.strip()}")
    return path


# Code


def _link_into(work: str, path: str, name: str) -> None:
    for each in [name] if name else os.listdir(path):
        source, target = path if name else os.path.join(path, each), os.path.join(work, each)
        if not os.path.lexists(target):
            os.symlink(source, target)
        elif not os.path.exists(target) or not os.path.samefile(source, target):
            words = f"the working directory {work} has another '{each}' already, so the code {path} cannot be shown there"
            raise ProvideError(f"{words}; rename one, or name another directory with --workdir DIR")


def _show_entries(work: str, name: str) -> None:
    """What is in a folder of a directory, in that directory, too; what has its name there already stays."""
    folder = os.path.join(work, name)
    for each in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            os.symlink(os.path.join(name, each), os.path.join(work, each))
        except FileExistsError:
            continue


def _copy_into(work: str, path: str, name: str, never: set[tuple[int, int]]) -> None:
    """Copy a tree, with links as links; sockets, devices and FIFOs are no code."""
    root = os.path.realpath(path)
    if _identity(root) in never:
        return
    top = os.path.join(work, name) if name else work
    if name and os.path.islink(top):
        os.unlink(top)  # made by us, to the user's entry of that name
    if not os.path.isdir(root):
        copy2(root, top)
        return
    os.makedirs(top, exist_ok=True)

    def left_out(entry: os.DirEntry[str]) -> bool:
        found = entry.stat(follow_symlinks=False)
        return (found.st_dev, found.st_ino) in never

    for below, entry in walk(root, (IGNORE_FILE,), always=(), left_out=left_out):
        target, mode = f"{top}/{below}", entry.stat(follow_symlinks=False).st_mode
        if os.path.islink(target):
            os.unlink(target)  # likewise
        if stat.S_ISDIR(mode):
            os.makedirs(target, exist_ok=True)
        elif stat.S_ISLNK(mode):
            end = os.path.realpath(entry.path)
            os.symlink(os.readlink(entry.path) if end.startswith(f"{root}/") else end, target)
        elif stat.S_ISREG(mode):
            copy2(entry.path, target)


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return -1, -1
    return found.st_dev, found.st_ino
