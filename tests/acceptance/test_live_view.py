"""The status line of a run on a real terminal."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import termios
from fcntl import ioctl

from pailot.testing.runs import Home, job, role


def seen(home: Home, text: str, columns: int, **environment: str) -> str:
    """All that a terminal of this width is sent."""
    (home.cwd / "job.yaml").write_text(text)
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        home.command, cwd=home.cwd, env=home.environment | environment, stdin=slave, stdout=slave, stderr=slave
    )
    home.started.append(process)  # type: ignore[arg-type]  # it is only waited for
    os.close(slave)
    data = b""
    while True:
        try:
            data += os.read(master, 1 << 16)
        except OSError:  # the terminal's last user has gone
            break
    os.close(master)
    assert process.wait() == 0
    return data.decode()


def two_roles(seconds: float) -> str:
    worker = 'echo first; touch "$PAI_CHECKPOINT_DIR/../up"; [ $FC_TASK_ATTEMPT_ID = 1 ]'
    server = f'until [ -e "$PAI_CHECKPOINT_DIR/../up" ]; do sleep 0.02; done; sleep {seconds}; echo last'
    return job(role(worker, "worker", retries=1), role(server, "a_server_with_a_long_name", instances=2))


def test_one_line_below_the_logs_tells_roles_retries_and_time(home: Home) -> None:
    text = seen(home, two_roles(3), 200)
    assert "\x1b[36m[worker:0]\x1b[0m first\r\n" in text
    assert re.search(r"demo · \d+ s · 3 of 3 running \(worker 1/1, a_server_with_a_long_name 2/2\)", text)
    assert re.search(r"demo · \d+ s · 2 of 3 running \(worker 0/1, a_server_with_a_long_name 2/2\) · 1 retry", text)
    assert not re.search(r"\r\x1b\[2m(demo[^\x1b]*)\x1b\[0m\x1b\[K\r\x1b\[2m\1\x1b", text)  # never the same again


def test_it_fits_the_terminal_and_has_no_colour_where_none_is_wanted(home: Home) -> None:
    text = seen(home, two_roles(0.5), 40, NO_COLOR="1")
    assert "\x1b[2m" not in text
    lines = re.findall(r"\r(demo[^\x1b\r]*)\x1b\[K", text)
    assert lines
    assert max(map(len, lines)) == 39
