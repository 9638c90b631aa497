"""Completions in real shells: what the Tab key writes."""

from __future__ import annotations

import os
import pty
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pailot.testing.runs import Home, job, role

needs_zsh = pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here: sudo apt-get install zsh")
needs_fish = pytest.mark.skipif(not shutil.which("fish"), reason="no fish here: sudo apt-get install fish")

ZSH_EVAL = 'compinit -u -d zcompdump; eval "$(cat _pailot)"'


def script(shell: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pailot", "completion", shell], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(("typed", "written"), [("pailot va", "validate"), ("pailot plan --in", "--index")])
def test_bash_completes(typed: str, written: str) -> None:
    words = f'COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _pailot; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", f"{script('bash')}\n{words}"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{written}\n"


def zsh_says(typed: bytes, load: str, folder: Path, **more: str) -> tuple[list[str], str]:
    """What was typed in the end in a terminal, with a `pailot` that says it: a list, and what the terminal showed."""
    (folder / ".zshrc").write_text(
        f"PS1='>'; unsetopt beep zle_bracketed_paste; autoload -Uz compinit; {load}\npailot() {{ print -r -- \"[$*]\" >>said }}\n"
    )
    told, teller = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm", "LANG": "C.UTF-8", "ZDOTDIR": str(folder)}
    shell = subprocess.Popen(["zsh", "-i"], stdin=teller, stdout=teller, stderr=teller, cwd=folder, env=environment | more)
    os.close(teller)
    seen = b""
    while b">" not in seen:  # it is ready
        seen += os.read(told, 4096)
    os.write(told, typed)
    while True:
        try:
            seen += os.read(told, 4096)
        except OSError:  # the shell has left its terminal
            break
    os.close(told)
    shell.wait()
    return (folder / "said").read_text().splitlines(), seen.decode()


@needs_zsh
@pytest.mark.parametrize("way", ["eval", "fpath"])
def test_zsh_completes_from_the_first_tab(way: str, tmp_path: Path) -> None:
    """Once for each line, the first of a new shell among them."""
    (tmp_path / "_pailot").write_text(script("zsh"))
    (tmp_path / "job-file.yaml").touch()
    load = {"eval": ZSH_EVAL, "fpath": "fpath=($PWD $fpath); compinit -u -d zcompdump"}
    typed = b"pailot vali\t\npailot validate --str\t\npailot validate job\t\npailot completion fi\t\nexit\n"
    said, seen = zsh_says(typed, load[way], tmp_path)
    assert said == ["[validate]", "[validate --strict]", "[validate job-file.yaml]", "[completion fish]"], seen


@needs_fish
@pytest.mark.parametrize(
    ("typed", "written"),
    [("pailot vali", "validate"), ("pailot validate --str", "--strict"), ("pailot completion zs", "zsh")],
)
def test_fish_completes(typed: str, written: str, tmp_path: Path) -> None:
    (tmp_path / "pailot.fish").write_text(script("fish"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    command = ["fish", "--no-config", "-c", f"source pailot.fish; complete -C '{typed}'"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == [written]


# Runs, roles, tasks and engines

ASKED = {
    "pailot why cr": ["crash"],
    "pailot stop --now crash sl": ["slow"],
    "pailot stop crash cr": [],
    "pailot logs -f crash w": ["worker"],
    "pailot logs crash worker ": ["0", "1"],
    "pailot logs --stream std": ["stderr", "stdout"],
    "pailot logs nothing w": [],
    "pailot rerun --name other sl": ["slow"],
    "pailot run --engine do": ["docker"],
    "pailot run -e op": ["openpai"],
    "pailot ps --state RUN": ["RUNNING"],
}


@pytest.fixture
def with_runs(home: Home, tmp_path: Path) -> dict[str, Any]:
    """An environment in which `pailot` finds two runs, in a folder with names to confuse them with."""
    home.run(job(role("true", "worker", instances=2), role("true", "ps"), name="crash"))
    home.run(job(role("true"), name="slow"))
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "pailot"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pailot "$@"\n')
    program.chmod(0o755)
    for name in ("crash", "work", "documents", "slow"):
        (home.cwd / name).mkdir()
    return {**home.environment, "PATH": f"{program.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}


def _nothing(typed: str) -> str:
    """The empty word at the end, where there is one."""
    return '""' if typed.endswith(" ") else ""


def test_bash_completes_runs_roles_and_engines(with_runs: dict[str, Any], home: Home) -> None:
    asked = "".join(
        f"COMP_WORDS=({typed}{_nothing(typed)}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));"
        ' COMPREPLY=(); _pailot; echo "${COMPREPLY[*]}"\n'
        for typed in [*ASKED, "pailot plan --engine = sl"]
    )
    done = subprocess.run(
        ["bash", "-c", f"{script('bash')}\n{asked}"], capture_output=True, text=True, cwd=home.cwd, env=with_runs, check=True
    )
    assert [sorted(line.split()) for line in done.stdout.split("\n")[:-1]] == [*ASKED.values(), ["slurm"]]
    assert done.stderr == ""


def test_bash_does_not_run_what_a_name_says(with_runs: dict[str, Any], home: Home) -> None:
    """It expands the words that it completes."""
    plan = Path(home.show("crash")["folder"], "plan.json")
    plan.write_text(plan.read_text().replace('"worker"', '"$(touch ran)"'))
    asked = 'COMP_WORDS=(pailot logs crash ""); COMP_CWORD=3; _pailot; echo "${COMPREPLY[*]}"'
    done = subprocess.run(
        ["bash", "-c", f"{script('bash')}\n{asked}"], capture_output=True, text=True, cwd=home.cwd, env=with_runs, check=True
    )
    assert (done.stdout, (home.cwd / "ran").exists()) == ("ps\n", False)


@needs_fish
def test_fish_completes_runs_roles_and_engines(with_runs: dict[str, Any], home: Home) -> None:
    (home.cwd / "pailot.fish").write_text(script("fish"))
    asked = "; ".join(f"complete -C '{typed}'; echo ::" for typed in ASKED)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source pailot.fish; {asked}"],
        capture_output=True, text=True, cwd=home.cwd, env=with_runs, check=True,
    )  # fmt: skip
    answers = [sorted(line.partition("\t")[0] for line in part.splitlines() if line) for part in done.stdout.split("::\n")[:-1]]
    assert answers == list(ASKED.values())
    assert done.stderr == ""


@needs_zsh
def test_zsh_completes_runs_roles_and_engines(with_runs: dict[str, Any], home: Home) -> None:
    (home.cwd / "_pailot").write_text(script("zsh"))
    one = {typed: words[0] for typed, words in ASKED.items() if len(words) == 1}
    typed = "".join(f"{each}\t\n" for each in one)
    said, seen = zsh_says(f"{typed}exit\n".encode(), ZSH_EVAL, home.cwd, **with_runs)
    assert said == [f"[{each.removeprefix('pailot ').rpartition(' ')[0]} {word}]" for each, word in one.items()], seen


@pytest.mark.parametrize("words", ["why", "logs crash", "logs crash worker"])
def test_a_server_that_does_not_reply_completes_nothing_and_says_nothing(home: Home, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        home.environment |= {"PAILOT_SERVER": server, "PAILOT_TOKEN": "token"}
        done = home.pailot("completion", "bash", "--after", words)
    assert (done.status, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("words", ["", "nothing", "validate", "run", "logs crash worker 0", "wait --timeout"])
def test_what_runs_cannot_tell_is_left_to_the_shell(home: Home, words: str) -> None:
    done = home.pailot("completion", "bash", "--after", words)
    assert (done.status, done.out, done.err) == (1, "", "")
