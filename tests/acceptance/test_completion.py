"""Completions in real shells: what the Tab key writes."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_zsh = pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here: sudo apt-get install zsh")
needs_fish = pytest.mark.skipif(not shutil.which("fish"), reason="no fish here: sudo apt-get install fish")


def script(shell: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "pailot", "completion", shell], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(("typed", "written"), [("pailot va", "validate"), ("pailot plan --in", "--index")])
def test_bash_completes(typed: str, written: str) -> None:
    words = f'COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _pailot; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(["bash", "-c", f"{script('bash')}\n{words}"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{written}\n"


@needs_zsh
@pytest.mark.parametrize("way", ["eval", "fpath"])
def test_zsh_completes_from_the_first_tab(way: str, tmp_path: Path) -> None:
    """In a terminal, with a `pailot` that says what was typed: once for each line, the first of a new shell among them."""
    (tmp_path / "_pailot").write_text(script("zsh"))
    (tmp_path / "job-file.yaml").touch()
    load = {"eval": 'compinit -u -d zcompdump; eval "$(cat _pailot)"', "fpath": "fpath=($PWD $fpath); compinit -u -d zcompdump"}
    (tmp_path / ".zshrc").write_text(
        f"PS1='>'; unsetopt beep zle_bracketed_paste; autoload -Uz compinit; {load[way]}\n"
        'pailot() { print -r -- "[$*]" >>said }\n'
    )
    typed = b"pailot vali\t\npailot validate --str\t\npailot validate job\t\npailot completion fi\t\nexit\n"
    told, teller = pty.openpty()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "ZDOTDIR": str(tmp_path),
    }
    shell = subprocess.Popen(["zsh", "-i"], stdin=teller, stdout=teller, stderr=teller, cwd=tmp_path, env=environment)
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
    said = (tmp_path / "said").read_text().splitlines()
    assert said == ["[validate]", "[validate --strict]", "[validate job-file.yaml]", "[completion fish]"], seen.decode()


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
