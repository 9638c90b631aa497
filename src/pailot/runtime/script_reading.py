"""How far bash has read a script, which tells the command that ended it.

Bash reads a pipe byte by byte, and never beyond the command that it is about to run. So bash is handed the script through a
FIFO that stands under the script's name; once bash has opened it, the file takes the name. What is left unread when bash
has ended tells the line. The script notices nothing: `$0`, line numbers, traps, options and functions are its own, and it
cannot take this means away.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .rights import UnixUser

LONGEST_SCRIPT_BYTES = 16_384
"""A longer script is read as a file, since reading byte by byte takes time."""
MOST_TRIES = 10
"""The most beginnings of a script that are looked at to find where its last command begins."""
LOOK_SECONDS = 2.0
_END = b"\0"
"""Bash skips it, and reads it only after the last command: then the script ran to its end."""
_STRICT_LINE = "set -o errexit -o nounset -o pipefail"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,@%+- \t")
_NOT_PLAIN = frozenset("if then else elif fi case esac for select while until do done in function time coproc trap".split())
_BEFORE_A_SCRIPT = ("BASH_ENV", "LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD", "SHELLOPTS")
"""Variables that can end bash before it reads a script."""
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python 3.9 does not name
_PAGE_BYTES, _USUAL_BYTES = 4096, 65_536


class Reading:
    """A script on its way to bash. `descriptor` is writable when there is something to do; -1 when all was handed over."""

    def __init__(self, folder: int, name: str, text: str) -> None:
        self.folder, self.name = os.dup(folder), name
        self.text = text
        self.data = text.encode("utf-8", "surrogateescape") + _END
        self.left = memoryview(self.data)
        self.begun = False
        os.mkfifo(name, 0o600, dir_fd=folder)
        self.reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
        self.descriptor = os.open(f"/proc/self/fd/{self.reader}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        # With room for one page, it is writable again only when bash has opened it and read the first byte.
        fcntl.fcntl(self.descriptor, _SET_PIPE_SIZE, _PAGE_BYTES)
        self.left = self.left[os.write(self.descriptor, self.left[:1]) :]

    def pump(self) -> bool:
        """Bash reads: hand on more of the script. Returns whether that was all."""
        if not self.begun:
            self._take_the_name()
            try:
                fcntl.fcntl(self.descriptor, _SET_PIPE_SIZE, _USUAL_BYTES)
            except OSError:
                pass  # the user has too many large pipes: in small pieces, then
        try:
            self.left = self.left[os.write(self.descriptor, self.left) :]
        except BlockingIOError:
            pass  # bash has not read what it has
        return not self.left

    def _take_the_name(self) -> None:
        self.begun = True
        try:
            _put_in_place(self.folder, self.name)
        except OSError:
            pass  # a container may change its folder: only its own script is concerned
        os.close(self.folder)

    def close_writer(self) -> None:
        os.close(self.descriptor)
        self.descriptor = -1

    def finish(self) -> Reached | None:
        """How far bash came, once it has ended; None where that does not tell of a command."""
        unread = self._unread()
        os.close(self.reader)
        if self.descriptor >= 0:
            self.close_writer()
        if not self.begun:
            self._take_the_name()
        read = self.data[: len(self.data) - len(self.left) - unread]
        if read.endswith(_END):
            return Reached(read.count(b"\n"), to_the_end=True)
        return Reached(read.count(b"\n"), to_the_end=False) if read.endswith(b"\n") else None

    def _unread(self) -> int:
        try:
            return len(os.read(self.reader, len(self.data)))
        except BlockingIOError:
            return 0


class Reached:
    """The last line that bash has read, counted from 1, and whether it looked for more after the last one."""

    def __init__(self, line: int, *, to_the_end: bool) -> None:
        self.line, self.to_the_end = line, to_the_end


def waiting(name: str) -> str:
    """The name of what takes the place of a FIFO, while it waits for that."""
    return f"{name}.waiting"


def begun(folder: int, name: str, text: str) -> Reading | None:
    """Hand a script to bash by a FIFO in a folder, where its file waits. None if bash reads the file, which is then in place."""
    if len(text) <= LONGEST_SCRIPT_BYTES and "\0" not in text:
        try:
            return Reading(folder, name, text)
        except OSError:
            pass  # a file system without FIFOs, or a system without sizes of pipes
    _put_in_place(folder, name)
    return None


def only_command(text: str, environment: Mapping[str, str]) -> int | None:
    r"""The line of the one command that a script has, if it is a line of plain words: if the script fails, it has failed.

    Bash needs no FIFO for such a script. None if bash itself could fail before it.

    >>> only_command("#!/bin/bash\nset -o errexit -o nounset -o pipefail\n\npython train.py\n", {})
    4
    """
    lines = text.split("\n")
    commands = [number for number, line in enumerate(lines, 1) if line.strip()[:1] not in ("", "#")]
    if len(commands) != 2 or lines[commands[0] - 1] != _STRICT_LINE:
        return None
    line = lines[commands[1] - 1]
    plain = _PLAIN.issuperset(line) and _NOT_PLAIN.isdisjoint(line.split())
    return commands[1] if plain and not any(name in environment for name in _BEFORE_A_SCRIPT) else None


def _put_in_place(folder: int, name: str) -> None:
    os.rename(waiting(name), name, src_dir_fd=folder, dst_dir_fd=folder)


def failed_lines(text: str, reached: Reached, is_whole: Callable[[str], bool]) -> tuple[int | None, int] | None:
    """The first and the last line of the command that ended a script; None where no command is known to have ended it.

    The first line is None if it is not known. `is_whole(text)` says whether commands end where a beginning of the script ends.
    """
    lines = text.split("\n")
    last = min(reached.line, len(lines))
    if reached.to_the_end:
        # Without errexit, or after `&&`, the script ends with the status of its last command; a trap may change that.
        if "trap" in text or not is_whole(text):
            return None
        while last > 0 and lines[last - 1].strip()[:1] in ("", "#"):
            last -= 1
    if last < 1 or "expand_aliases" in text:
        return None
    for first in range(last, max(last - MOST_TRIES, 0), -1):
        before = "\n".join(lines[: first - 1])
        if not before.strip() or (not _continues(before) and is_whole(before + "\n")):
            return first, last
    return None, last


def _continues(text: str) -> bool:
    """Whether a text ends with a backslash that joins the next line to it."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def start_look(text: str, program: str, mark: dict[str, str], ignored: Sequence[int], owner: UnixUser | None) -> tuple[int, int]:
    """Start `bash -n` on a text, as the user whose script it is. Returns its process, and a descriptor for what it says.

    It runs nothing of the text, and has little time and memory, whatever the text is.
    """
    memory, said = os.memfd_create("before", os.MFD_CLOEXEC), os.memfd_create("said", os.MFD_CLOEXEC)
    argv = ["bash", "--norc", "-n"]
    try:
        os.write(memory, text.encode("utf-8", "surrogateescape"))
        os.lseek(memory, 0, os.SEEK_SET)
        if owner is not None:
            pid = _fork_look(program, argv, mark, memory, said, ignored, owner)
        else:
            files = [
                (os.POSIX_SPAWN_DUP2, memory, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, said, 2),
            ]
            pid = os.posix_spawn(program, argv, mark, file_actions=files, setpgroup=0, setsigdef=ignored)
    except OSError:
        os.close(said)
        raise
    finally:
        os.close(memory)
    _limit(pid)
    return pid, said


def _fork_look(
    program: str, argv: list[str], mark: dict[str, str], memory: int, said: int, ignored: Sequence[int], owner: UnixUser
) -> int:
    from .rights import become

    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)
        for source, target in ((memory, 0), (said, 1), (said, 2)):
            os.dup2(source, target)
        become(owner)
        os.execve(program, argv, mark)  # noqa: S606  # the job's own bash
    finally:
        os._exit(127)


def _limit(pid: int) -> None:
    import resource

    for kind, most in ((resource.RLIMIT_CPU, 1), (resource.RLIMIT_AS, 1 << 29), (resource.RLIMIT_CORE, 0)):
        try:
            resource.prlimit(pid, kind, (most, most))
        except OSError:
            pass  # it has ended already


def line_before_secrets(text: str, reference: str, secrets: Mapping[str, str], line: int) -> int:
    """The line of a script whose secrets are references, for a line of the script in which they were inserted."""
    filled = kept = 1
    at = 0
    for match in re.finditer(reference, text):
        part = text[at : match.start()]
        if filled + part.count("\n") >= line:
            return kept + line - filled
        filled, kept = filled + part.count("\n"), kept + part.count("\n")
        filled += secrets.get(match[0], match[0]).count("\n")
        if filled >= line:
            return kept
        kept += match[0].count("\n")
        at = match.end()
    return kept + line - filled
