"""Makes the terminal pictures of the README from real runs: `make pictures` writes docs/pictures/*.svg.

Each picture is a session: commands are typed after a prompt, run on a real terminal, and what the terminal shows is drawn.
"""

from __future__ import annotations

import functools
import html
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 110, 60
WIDTH, HEIGHT = 8.0, 18.0
"""Size of a character in the picture, in units of the SVG."""
COLOURS = {"default": "#d8dee9", "red": "#ff7b72", "green": "#7ee787", "brown": "#f2cc60", "blue": "#79c0ff", "cyan": "#76e3ea"}
COLOURS |= {"magenta": "#d2a8ff", "white": "#ffffff", "black": "#6e7681"}
JOB = """\
protocolVersion: 2
name: train
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: "python:3.12"}
parameters: {lr: 0.1}
taskRoles:
  worker:
    instances: 2
    taskRetryCount: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands:
      - echo "worker $RANK of $WORLD_SIZE, lr <% $parameters.lr %>"
      - "[ $RANK = 0 ] || python3 -c 'import nonsense'"
"""
SLIPS = (
    JOB.replace("$parameters.lr %>", "$parameters.rate %>")
    .replace("instances: 2", "instances: two")
    .replace("taskRetry", "taskRerty")
)
SESSIONS = {
    "run-fail-why": (JOB, ("pailot run job.yaml", "pailot why train")),
    "validate": (SLIPS, ("pailot validate job.yaml",)),
}


def draw(name: str) -> str:
    """Return the picture of a session as SVG."""
    job, commands = SESSIONS[name]
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "job.yaml").write_text(job, encoding="utf-8")
        for command in commands:
            stream.feed(f"\x1b[32m$\x1b[0m \x1b[1m{command}\x1b[0m\r\n".encode())
            stream.feed(typed(["bash", "-c", command], home))
    return svg(screen)


def typed(words: Sequence[str], home: str) -> bytes:
    """Run a program on a terminal of its own and return what it writes there."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    places = {"HOME": home, "PAILOT_HOME": f"{home}/pailot", "PAILOT_LOCKS": f"{home}/locks", "XDG_CONFIG_HOME": f"{home}/config"}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**places, "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8", "USER": "me", "LOGNAME": "me"}
    start = functools.partial(subprocess.Popen, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    with start(words, cwd=home, env=environment) as program:
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 65536):
                shown += chunk
        except OSError:  # Linux's word for: the last process has closed the terminal
            pass
        program.wait()
    os.close(master)
    return shown


def svg(screen: pyte.Screen) -> str:
    """Return what a screen shows as SVG, without the empty lines at its end."""
    last = max(row for row in range(ROWS) if screen.display[row].strip()) + 1
    width, height = COLUMNS * WIDTH + 32, last * HEIGHT + 32
    lines = []
    for row in range(last):
        spans, at = [], 0
        text = screen.display[row].rstrip()
        while at < len(text):
            style = look(screen, row, at)
            end = at
            while end < len(text) and look(screen, row, end) == style:
                end += 1
            spans.append(f'<tspan x="{16 + at * WIDTH:g}" {style}>{html.escape(text[at:end])}</tspan>')
            at = end
        lines.append(f'<text y="{30 + row * HEIGHT:g}" xml:space="preserve">{"".join(spans)}</text>')
    font = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" {font}>'
    ground = f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#161b22"/>'
    return "\n".join((head, ground, *lines, "</svg>\n"))


def look(screen: pyte.Screen, row: int, column: int) -> str:
    """Return the attributes of one character."""
    character = screen.buffer[row][column]
    colour = COLOURS.get(character.fg.removeprefix("bright"), COLOURS["default"])
    return f'fill="{colour}"' + (' font-weight="bold"' if character.bold else "")


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for each in sys.argv[1:] or SESSIONS:
        (PICTURES / f"{each}.svg").write_text(draw(each), encoding="utf-8")
        print(f"docs/pictures/{each}.svg")
