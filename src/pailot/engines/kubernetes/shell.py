"""A shell beside a task in its pod, as a program: `python -m … [--terminal] TASK_FOLDER -- WORDS`."""

from __future__ import annotations

import os
import signal
import sys

from ...errors import PailotError
from ...runfolder import layout
from ...runtime.shim import read_environment
from .exec_stream import STDERR
from .task_pod import bridge, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .exec_stream import ExecStream

GONE = 1


def main(words: list[str]) -> int:
    """Run WORDS in the pod of a task, with the variables of its latest attempt; returns how they ended."""
    terminal = words[0] == "--terminal"
    folder, _, *command = words[1:] if terminal else words
    last = layout.task_attempt_folder(folder, max(0, layout.begun_attempts(folder) - 1))
    variables = [f"{name}={value}" for name, value in read_environment(os.path.join(last, layout.ENVIRONMENT)).items()]
    variables.append(f"TERM={os.environ.get('TERM', 'dumb')}")
    try:
        pod = find(folder)
        if pod is None:
            raise PailotError("the pod of this task is not running")
        stream = pod.command(["env", *variables, *command], terminal=terminal)
        _talk(stream, terminal=terminal)
    except PailotError as error:
        print(f"pailot: {error}", file=sys.stderr)  # noqa: T201  # a program of its own
        return GONE
    if stream.exit_code is None:
        print(f"pailot: {stream.problem or 'the connection to the pod was lost'}", file=sys.stderr)  # noqa: T201  # likewise
        return GONE
    return stream.exit_code


def _talk(stream: ExecStream, *, terminal: bool) -> None:
    def heard(channel: int, data: bytes) -> None:
        where = 2 if channel == STDERR else 1
        while data:
            data = data[os.write(where, data) :]

    before = _raw(stream) if terminal else None
    try:
        bridge(stream, 0, heard)
    except OSError:
        pass  # the connection is lost, or what we write to is gone
    finally:
        if before is not None:
            import termios

            termios.tcsetattr(0, termios.TCSADRAIN, before)
        stream.close()


def _raw(stream: ExecStream) -> list[Any]:
    """Every key goes to the pod; the size of the window follows. Returns how the terminal was."""
    import termios
    import tty

    def resized(*_: object) -> None:
        size = os.get_terminal_size(0)
        stream.resize(size.columns, size.lines)

    before = termios.tcgetattr(0)
    tty.setraw(0)
    signal.signal(signal.SIGWINCH, resized)
    resized()
    return before


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
