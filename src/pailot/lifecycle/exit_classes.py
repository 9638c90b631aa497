"""How a task ended, in words and in OpenPAI's classes. This explains; it does not decide what is retried.

OpenPAI gives each failure a code, a phrase and a reaction, partly from what the log says. People know these codes and
programs ask for them, so they are reported beside the task's own exit code, which is never replaced.
"""

from __future__ import annotations

from ..values import Value
from . import states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .exit_table import Row, Sign

TAIL_CHARACTERS = 65_536
TAIL_LINES = 200
"""Only the end of a log tells why a task failed; what was said long before did no harm then."""
LONGEST_LINE = 1_000
"""A line is looked at so far; this bounds what a pattern can cost."""
LONGEST_QUOTE = 300

# Linux's numbers. The module `signal` would know those of this machine, but costs time, and the task may run on another one.
_SIGNALS = (
    "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT "
    "CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
).split()

_STOP_CODES = {
    states.USER: -210,
    states.COMPLETED: -220,
    states.PREEMPTED: -1003,
    states.TIMEOUT: -1004,
    states.LAUNCHER_LOST: -210,
    states.DISK_FULL: -1000,
}
_STOP_REASONS = {
    states.USER: "it was stopped on request",
    states.COMPLETED: "the job was decided while it still ran",
    states.PREEMPTED: "it made room for another job",
    states.TIMEOUT: "the attempt ran for as long as maxRunSeconds allows",
    states.LAUNCHER_LOST: "the process that had started the job went away",
    states.DISK_FULL: "the disk was full",
}


class End(Value):
    """What the operating system said of a process: its exit code, or the signal that killed it; neither if it was not seen."""

    exit_code: int | None
    signal: int | None = None


class ExitClass(Value):
    """OpenPAI's word for an end. `reaction` is what OpenPAI would have done, `reason` why we think so."""

    code: int
    phrase: str
    type: str
    reaction: str
    reason: str

    def to_json(self) -> dict[str, int | str]:
        """The class as records and responses show it."""
        return {"code": self.code, "phrase": self.phrase, "type": self.type, "reaction": self.reaction}


def signal_name(number: int) -> str:
    """`SIGKILL` for 9, as Linux counts; `signal 40` for one without a name."""
    return f"SIG{_SIGNALS[number - 1]}" if 1 <= number <= len(_SIGNALS) else f"signal {number}"


def words(end: End) -> str:
    """How a process ended, to follow its name: `exited with 3`, `was killed by signal 9 (SIGKILL)`."""
    if end.signal is not None:
        name = signal_name(end.signal)
        return f"was killed by {name}" if name.startswith("signal") else f"was killed by signal {end.signal} ({name})"
    if end.exit_code is None:
        return "was lost before anyone saw it end"
    if 129 <= end.exit_code <= 192:
        name = signal_name(end.exit_code - 128)
        return f"exited with {end.exit_code}, which a shell answers for a command killed by {name}"
    return f"exited with {end.exit_code}"


def classify(end: End, log_tail: str, out_of_memory: bool = False, stop_cause: str | None = None) -> ExitClass:
    """OpenPAI's class for an end: the first row of its table that fits.

    `log_tail` is the end of the task's log, of which the last lines are looked at, `out_of_memory` whether the task's memory
    limit killed something, `stop_cause` why we stopped the task, if we did. A stop explains the end whatever the code.
    """
    if end.exit_code == 0 and end.signal is None and not stop_cause:
        # Even if a child of it ran out of memory: the commands coped. The common case does without the table.
        return ExitClass(0, "Succeeded", "USER_SUCCESS", "NEVER_RETRY", "it " + words(end))
    from .exit_table import CODES_OF_SIGNALS, ROWS, SIGNS, row

    if stop_cause:
        reason = _STOP_REASONS.get(stop_cause) or f"it was stopped ({stop_cause})"  # an explanation must not fail
        return _class(row(_STOP_CODES.get(stop_cause, -210)), reason)
    if end.exit_code is None and end.signal is None:
        return _class(row(-101), "it " + words(end))
    if out_of_memory:
        return _class(row(-1200), f"it {words(end)}, after using more memory than it asked for")
    code = end.exit_code if end.signal is None else 128 + end.signal
    lines = _last_lines(log_tail)
    for each in ROWS:
        if each.code == code and code in CODES_OF_SIGNALS:
            return _class(each, "it " + words(end))
        for sign in SIGNS.get(each.code, ()):
            if sign.exit_code in (None, code):
                line = _line_with(sign, lines)
                if line:
                    return _class(each, f"it {words(end)}, and its log says: {line}")
    return _class(row(255), f"it {words(end)}, and its log shows no cause that we know")


def _class(row: Row, reason: str) -> ExitClass:
    return ExitClass(row.code, row.phrase, row.type, row.reaction, reason)


def _last_lines(log: str) -> str:
    """The end of a log as a terminal would show it: without colours; a carriage return begins a line."""
    end = log[-TAIL_CHARACTERS:]
    if len(end) < len(log):
        end = end.partition("\n")[2]  # half a line may look like another one
    text = "\n".join(end.rstrip().split("\n")[-TAIL_LINES:]).replace("\r", "\n")
    if "\x1b" in text:
        import re

        text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text)
    return "\n".join([line[:LONGEST_LINE] for line in text.split("\n")])


def _line_with(sign: Sign, lines: str) -> str:
    """The last line with that sign, fit to be quoted, or nothing.

    Looking for plain text first makes the usual answer, no, cost microseconds: no pattern is compiled for it.
    """
    at = lines.rfind(sign.text)
    while at >= 0:
        start = lines.rfind("\n", 0, at) + 1
        line = lines[start:].partition("\n")[0]
        if not sign.pattern or _fits(sign.pattern, line):
            shown = "".join(character if character.isprintable() else " " for character in line.strip())
            return shown if len(shown) <= LONGEST_QUOTE else shown[: LONGEST_QUOTE - 1] + "…"
        at = lines.rfind(sign.text, 0, start)
    return ""


def _fits(pattern: str, line: str) -> bool:
    import re

    return re.search(pattern, line) is not None
