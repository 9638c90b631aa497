"""The pages of the documentation: their blocks, their commands, and a desk at which these are run.

In a page, a fenced block with a title (```yaml title=job.yaml) is written to that file, in a directory of the page's
own; a titled Python block is also run. A ```console block holds commands, each after `$ `, with exactly what they print
(standard output and error together). A line `…` stands for any lines, `…` within a line for any text there (a time, an
id), a last line `[exit status N]` for a status other than 0. A page has a home of its own, so the runs it starts are the
only ones it sees.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pailot

ROOT = Path(__file__).resolve().parents[2]
HOME = "/home/me"
"""What examples show instead of the temporary place."""


class Block(NamedTuple):
    """A fenced block: the first line of its text is line `line` of the page."""

    language: str
    title: str
    text: str
    line: int


class Command(NamedTuple):
    """A command of a console block; its output is on the page's lines `line` to `line + len(output)`."""

    text: str
    output: list[str]
    status: int
    line: int


FENCE = re.compile(r"(?P<fence>```+)(?P<language>\w*)(?: title=(?P<title>\S+))?\s*\Z")


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        at += 1
        if opening:
            end = lines.index(opening["fence"], at)
            yield Block(opening["language"], opening["title"] or "", "".join(f"{line}\n" for line in lines[at:end]), at + 1)
            at = end + 1


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of a console block with what they print."""
    lines = block.text.split("\n")[:-1]
    at = 0
    while at < len(lines):
        assert lines[at].startswith("$ "), f"line {block.line + at}: a command begins with '$ '"
        text = lines[at][2:]
        at += 1
        while text.endswith("\\"):
            text += "\n" + lines[at]
            at += 1
        start = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        output, status = lines[start:at], 0
        if output and (told := re.fullmatch(r"\[exit status (\d+)\]", output[-1])):
            output, status = output[:-1], int(told[1])
        yield Command(text, output, status, block.line + start)


INSTALL = """\
# Stands in for `pip install .`: makes the entry points of the package in this directory known, and nothing else.
import pathlib, tomllib
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
folder = pathlib.Path(f"{project['name'].replace('-', '_')}-{project['version']}.dist-info")
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {project['name']}\\nVersion: {project['version']}\\n")
lines = []
for group, entries in project["entry-points"].items():
    lines += [f"[{group}]", *(f"{name} = {where}" for name, where in entries.items())]
(folder / "entry_points.txt").write_text("\\n".join(lines) + "\\n")
"""


class Desk:
    """A user's home with one directory to work in; knows `pailot`, `python` and a `pip` that only pretends."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / "work"
        self.folder.mkdir(parents=True)
        programs = home / "bin"
        programs.mkdir()
        (home / "install.py").write_text(INSTALL)
        for name, arguments in (("pailot", '-m pailot "$@"'), ("python", '"$@"'), ("pip", f'"{home}/install.py"')):
            shim = programs / name
            shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}\n')
            shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
        self.environment = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{Path(pailot.__file__).parents[1]}{os.pathsep}{self.folder}",  # where that `pip` installs
            "PYTHONUNBUFFERED": "1",
            "HOME": str(home),
            "PAILOT_HOME": str(home / ".local/share/pailot"),
            "PAILOT_LOCKS": str(home / "locks"),  # ports and GPUs are handed out beside those of the machine's other runs
            **{f"XDG_{kind}_HOME": str(home / folder) for kind, folder in XDG.items()},
            "USER": "me",
            "LOGNAME": "me",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "LANG": "C.UTF-8",
        }

    def write(self, block: Block) -> None:
        file = self.folder / block.title
        assert file.resolve().is_relative_to(self.folder.resolve()), f"{block.title} is outside the page's directory"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")

    def run(self, command: str) -> tuple[list[str], int]:
        """What a command prints, line by line, and its exit status."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,  # for a machine that is very busy
            check=False,
        )
        text = done.stdout.decode().replace(str(self.home), HOME)
        return [line.rstrip() for line in text.splitlines()], done.returncode

    def close(self) -> None:
        """Stop what a page left running, also when one of its commands did not do what it should."""
        for server in self.folder.glob("*.pid"):
            self.run(f"kill $(cat {server.name}) 2>/dev/null")
        if (self.home / ".local/share/pailot/jobs").exists():
            listed, _ = self.run("cd && pailot ps --all --json --server none")  # away from the page's own pailot.toml
            for row in json.loads("\n".join(listed)):
                if row["ended"] is None:
                    self.run(f"cd && pailot stop --now {row['id']} --server none")


XDG = {"DATA": ".local/share", "CONFIG": ".config", "CACHE": ".cache", "STATE": ".local/state"}


def results_of(text: str, home: Path) -> Iterator[tuple[Command, list[str], int]]:
    """Do what a page says, and tell for each command what it printed and its status."""
    desk = Desk(home)
    try:
        for block in blocks_of(text):
            if block.title:
                desk.write(block)
                if block.language == "python":
                    output, status = desk.run(f"python '{block.title}'")
                    assert status == 0, f"line {block.line}: {block.title} failed:\n" + "\n".join(output)
            elif block.language == "console":
                for command in commands_of(block):
                    yield command, *desk.run(command.text)
    finally:
        desk.close()


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the output is the expected one, where `…` is any lines, or any text within a line."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line == "…" else re.escape(line.rstrip()).replace("…", r"[^\n]*?") + "\n" for line in expected
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None
