"""Code on its way to a job: packed once, named for its content, without what ignore files leave out."""

from __future__ import annotations

import os
import sys

from ..engines.local.provide import ignore_matcher
from ..settings import Settings
from .errors import InvalidProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

IGNORE_FILES = (".gitignore", ".pailotignore")
ALWAYS_LEFT_OUT = (".git/", "__pycache__/", ".ipynb_checkpoints/", ".DS_Store")
LARGE_BYTES = 200 * 1000 * 1000
SHOWN_BYTES = 20 * 1000 * 1000


def pack(folder: str) -> str:
    """The archive of a code folder (or of one file), made unless there is one with the same content; its path."""
    import hashlib
    import tarfile

    files = list(_files(folder)) if os.path.isdir(folder) else [(folder, os.path.basename(folder))]
    total = sum(os.lstat(path).st_size for path, _ in files)
    if total > LARGE_BYTES:
        import warnings

        words = f"the code in {folder} is {total / 1e6:.0f} MB; leave data out with a .pailotignore file"
        warnings.warn(words, stacklevel=4)
    kept = os.path.join(Settings().home, "code")
    os.makedirs(kept, mode=0o700, exist_ok=True)
    part = os.path.join(kept, f".{os.urandom(6).hex()}.part")
    try:
        digest = hashlib.sha256()
        with open(part, "wb") as raw, tarfile.open(fileobj=_Counted(raw, digest, total), mode="w|") as archive:  # type: ignore[call-overload]  # only written to
            for path, name in files:
                archive.add(path, name, recursive=False, filter=_same_everywhere)
        target = os.path.join(kept, f"{digest.hexdigest()}.tar")
        os.replace(part, target)  # the same content has the same name
    finally:
        if os.path.exists(part):
            os.unlink(part)
    return target


def check_source(source: str | Mapping[str, Any] | None) -> None:
    """Refuse a source that is not there, before anything else is done."""
    if isinstance(source, str) and "://" not in source and not os.path.exists(source):
        raise InvalidProcessor(f"source_dir does not exist: {source}")
    if source is not None and not isinstance(source, str):
        unknown = sorted(set(source) - {"repo", "branch", "commit", "token", "username", "password", "source_dir"})
        if unknown or not source.get("repo"):
            words = f"'{unknown[0]}' is not known" if unknown else "'repo' is missing"
            raise InvalidProcessor(f"a git source has repo, branch, commit, token (or username, password), source_dir: {words}")


def from_git(source: Mapping[str, Any], folder: str) -> str:
    """Clone a repository into a folder; the path of the code in it. The token is on no command line."""
    import subprocess
    from base64 import b64encode

    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    user, password = source.get("username") or "x-access-token", source.get("token") or source.get("password")
    if password:
        login = b64encode(f"{user}:{password}".encode()).decode()
        environment |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {login}",
        }

    def git(*words: str) -> None:
        done = subprocess.run(["git", *words], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["git failed"])[-1]
            raise InvalidProcessor(f"the code of {source['repo']} cannot be fetched: {last}")

    branch = ["--branch", str(source["branch"])] if source.get("branch") else []
    depth = [] if source.get("commit") else ["--depth", "1"]
    git("clone", "--quiet", *depth, *branch, "--", str(source["repo"]), folder)
    if source.get("commit"):
        git("-C", folder, "checkout", "--quiet", "--detach", str(source["commit"]))
    path = os.path.normpath(os.path.join(folder, source.get("source_dir") or "."))
    if not (path + "/").startswith(folder.rstrip("/") + "/") or not os.path.exists(path):
        raise InvalidProcessor(f"there is no '{source.get('source_dir')}' in {source['repo']}")
    return path


def _files(folder: str) -> Iterator[tuple[str, str]]:
    """What of a folder is code: (path, name in the archive), sorted; links stay links."""
    home = os.path.realpath(Settings().home)

    def walk(path: str, name: str, rules: list[tuple[str, Callable[[Sequence[str], bool], bool]]]) -> Iterator[tuple[str, str]]:
        lines = list(ALWAYS_LEFT_OUT) if not name else []
        for file in IGNORE_FILES:
            try:
                with open(os.path.join(path, file), encoding="utf-8", errors="surrogateescape") as stream:
                    lines += [line.strip() for line in stream]
            except OSError:
                continue
        rules = [*rules, (name, ignore_matcher(lines))] if lines else rules
        for each in sorted(os.listdir(path)):
            below, inside = os.path.join(path, each), f"{name}/{each}" if name else each
            is_folder = os.path.isdir(below) and not os.path.islink(below)
            left_out = any(ignored(inside[len(base) :].lstrip("/").split("/"), is_folder) for base, ignored in rules)
            if left_out or (is_folder and os.path.realpath(below) == home):
                continue
            yield below, inside
            if is_folder:
                yield from walk(below, inside, rules)

    return walk(os.path.abspath(folder), "", [])


def _same_everywhere(entry: Any) -> Any:
    """Only names, modes and contents count; sockets and devices are no code."""
    if not (entry.isreg() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class _Counted:
    """A file that is hashed while it is written, with a bar for a person to watch."""

    def __init__(self, raw: Any, digest: Any, total: int) -> None:
        self.raw, self.digest, self.total, self.done = raw, digest, total, 0
        self.shows = total > SHOWN_BYTES and sys.stderr is not None and sys.stderr.isatty()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.raw.write(data)
        self.done += len(data)
        if self.shows:
            share = min(1.0, self.done / self.total)
            end = "\n" if share == 1.0 else ""
            self.shows = share < 1.0
            bar = "█" * int(24 * share) + "░" * (24 - int(24 * share))
            sys.stderr.write(f"\rpacking code {bar} {self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB{end}")
        return len(data)
