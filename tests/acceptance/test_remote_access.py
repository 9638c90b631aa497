"""The plugins `ssh` and `tensorboard` with real servers: logins between tasks and from outside, files copied, nothing left."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE, Home, job, no_process_left, role, wait_for

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
needs_sshd = pytest.mark.skipif(SSHD is None, reason="no sshd here: sudo apt-get install openssh-server")
WAIT = 'until [ -e "$PAI_CHECKPOINT_DIR/go" ]; do sleep 0.05; done'


@pytest.fixture(autouse=True)
def temporary(home: Home) -> Path:
    """A folder for temporary files of this test alone."""
    folder = home.folder / "tmp"
    folder.mkdir()
    home.environment["TMPDIR"] = str(folder)
    return folder


def with_plugin(text: str, plugin: str) -> str:
    return text.replace("extras:\n", f"extras:\n  com.microsoft.pai.runtimeplugin:\n    - {plugin}\n")


@needs_sshd
def test_tasks_log_in_to_each_other_and_copy_files(home: Home, temporary: Path) -> None:
    worker = (
        "ssh Ps_Server-0 'echo here: $0; cat' <<<sent\n"
        "ssh psserver-1 true && echo by the other spelling\n"
        "echo copied >file; scp -q file Ps_Server-0:$PAI_WORK_DIR/there; cat there\n"
        "echo get there again | sftp -q -b - Ps_Server-0:$PAI_WORK_DIR >/dev/null; cat again\n"
        "for index in 0 1; do ssh Ps_Server-$index touch ${PAI_CHECKPOINT_DIR%/*}/Ps_Server-$index/go; done"
    )
    text = job(role(WAIT, "Ps_Server", instances=2), role(worker, "worker"))
    done = home.run(with_plugin(text, "{plugin: ssh, parameters: {jobssh: true, sshbarrier: true}}"), "--quiet")
    assert done.lines == [f"[worker:0] {line}" for line in ("here: bash", "sent", "by the other spelling", "copied", "copied")], (
        done
    )
    assert done.status == 0
    no_process_left(str(home.folder))
    assert os.listdir(temporary) == []


def logged_in(home: Home, key: Path, process: subprocess.Popen[str]) -> str:
    """What a login from outside prints, with the owner's own key."""
    assert process.stdout
    port = process.stdout.readline().strip()
    options = [
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "LogLevel=ERROR",
        "-o",
        "BatchMode=yes",
    ]
    ssh = ["ssh", "-F", "/dev/null", "-i", str(key), "-p", port, *options, "127.0.0.1", "echo inside"]
    answer = subprocess.run(ssh, capture_output=True, text=True, timeout=PATIENCE, check=False)
    folder = wait_for(lambda: next(iter(home.jobs()[-1].glob("checkpoints/main-0")), None))
    (folder / "go").touch()
    process.communicate(timeout=PATIENCE)
    return answer.stdout + answer.stderr


def owners_key(home: Home) -> tuple[Path, str]:
    key = home.folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = key.with_suffix(".pub").read_text().strip()
    text = job(role(f"echo $PAI_CONTAINER_SSH_PORT; {WAIT}"))
    return key, with_plugin(text, f'{{plugin: ssh, parameters: {{userssh: {{type: custom, value: "{public}"}}}}}}')


@needs_sshd
def test_the_owner_logs_in_from_outside(home: Home) -> None:
    key, text = owners_key(home)
    assert logged_in(home, key, home.start(text, "--quiet")) == "inside\n"
    no_process_left(str(home.folder))


@needs_sshd
def test_a_locked_account_can_be_entered_with_a_key(home: Home) -> None:
    """In a mount namespace of its own, where this account is locked."""
    shadow = Path("/etc/shadow")
    if os.geteuid() or not shadow.exists() or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("only root can have an account that is locked for one test alone")
    key, text = owners_key(home)
    locked = home.folder / "shadow"
    lines = [line.split(":") for line in shadow.read_text().splitlines()]
    locked.write_text("\n".join(":".join([name, "!*" if name == "root" else word, *more]) for name, word, *more in lines) + "\n")
    locked.chmod(0o640)
    (home.cwd / "job.yaml").write_text(text)
    process = home.popen(
        ["unshare", "-m", "sh", "-c", f'mount --bind "{locked}" /etc/shadow && exec "$@"', "sh", *home.command, "--quiet"]
    )
    assert logged_in(home, key, process) == "inside\n"


TENSORBOARD = """\
#!/bin/sh
echo "$@" >"$PAI_CHECKPOINT_DIR/arguments"
exec sleep 1000
"""


def test_tensorboard_shows_the_folders_on_the_port_of_the_first_task(home: Home) -> None:
    programs = home.folder / "bin"
    programs.mkdir()
    (programs / "tensorboard").write_text(TENSORBOARD)
    (programs / "tensorboard").chmod(0o755)
    home.environment["PATH"] = f"{programs}:{home.environment['PATH']}"
    wait = 'until [ -e "${PAI_CHECKPOINT_DIR%/*}/first-0/arguments" ]; do sleep 0.02; done'
    text = job(role(f"{wait}; echo $PAI_CONTAINER_HOST_PORT", "first", instances=2), role(wait, "second"))
    plugin = '{plugin: tensorboard, parameters: {logdir: {run: "$PAI_WORK_DIR/logs", other: /data}}}'
    done = home.run(with_plugin(text, plugin), "--quiet")
    assert done.status == 0, done
    (arguments,) = home.jobs()[0].glob("checkpoints/*/arguments")
    assert arguments.parent.name == "first-0"
    (port,) = (line.split()[1] for line in done.lines if line.startswith("[first:0]"))
    work = home.jobs()[0] / "attempts/0/tasks/first-0/work"
    assert arguments.read_text() == f"--logdir_spec=run:{work}/logs,other:/data --port={port} --bind_all\n"
    no_process_left(str(programs))


def test_without_tensorboard_the_job_goes_on(home: Home) -> None:
    if shutil.which("tensorboard"):
        pytest.skip("tensorboard is installed here")
    done = home.run(with_plugin(job(role("echo on")), "{plugin: tensorboard, parameters: {logdir: {run: logs}}}"), "--quiet")
    assert (done.status, done.out, done.err) == (0, "on\n", "tensorboard is not installed here; go on without it\n")
