"""The process that becomes a shell beside a task: it takes its terminal, leaves the rights of the server, and is the shell.

It is told what to do over a descriptor, for an environment can hold secrets, and every user sees the words of a command.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import termios

from . import rights
from .processes import end_with_parent


def main(descriptor: int) -> None:
    """Read the order, and become what it says."""
    with open(descriptor, encoding="utf-8") as stream:
        order = json.load(stream)
    os.setsid()
    if order["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Before the user changes: that one may not be able to read our Python, and then nothing more can be loaded.
    program = shutil.which(order["words"][0], path=order["environment"].get("PATH", os.defpath)) or order["words"][0]
    if order["user"]:
        rights.become(rights.unix_user(order["user"]))
    end_with_parent(signal.SIGHUP, order["parent"])  # who changes his user is no longer told
    os.umask(0o022)
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(order["cwd"])
        os.execve(program, order["words"], order["environment"])  # noqa: S606  # the shell is the point
    except OSError as error:
        sys.stderr.write(f"pailot: {error.filename or order['words'][0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)
