"""Faults, for real: SIGKILL of whoever takes part, at every stage. Nothing is left behind, nothing is stuck, no log is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE, Home, job, no_process_left, role, wait_for

REPETITIONS = int(os.environ.get("PAILOT_FAULT_REPETITIONS", "3"))


def marked_job(marker: str, *, instances: int = 2, options: str = "graceSeconds: 1") -> str:
    """Tasks with a child and a daemon each, all of them recognisable, that print without end."""
    commands = (
        f"(setsid bash -c 'trap \"\" HUP; exec -a {marker} sleep 1000' >/dev/null 2>&1 &)\n"
        f"bash -c 'exec -a {marker} sleep 1000' &\n"
        "n=0; while :; do echo line $n; n=$((n + 1)); sleep 0.01; done"
    )
    return job(role(commands, instances=instances), options=options)


def children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_the_launcher_is_killed_at_any_moment(home: Home, repetition: int) -> None:
    marker = f"marker-{home.folder.name}"
    process = home.start(marked_job(marker))
    moment = random.Random(repetition).choice(["at once", "first output", "later"])
    if moment != "at once":
        assert process.stdout
        process.stdout.readline()
    if moment == "later":
        for _ in range(20):
            process.stdout.readline()  # type: ignore[union-attr]  # checked above
    process.send_signal(signal.SIGKILL)
    process.wait()
    no_process_left(marker)
    rows = wait_for(
        lambda: all(row["state"] in ("STOPPED", "FAILED") for row in json.loads(home.pailot("ps", "--json").out)),
        what="an end in the record",
    )
    assert rows
    if home.jobs():
        assert "launcher was killed" in home.pailot("why", "demo").out


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_a_shim_is_killed(home: Home, repetition: int) -> None:
    marker = f"marker-{home.folder.name}"
    process = home.start(marked_job(marker), "--quiet")
    assert process.stdout
    for _ in range(5):
        process.stdout.readline()
    victims = wait_for(lambda: children_of(process.pid), what="a shim")
    os.kill(random.Random(repetition).choice(victims), signal.SIGKILL)
    for line in process.stdout:
        if "line 3" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    no_process_left(marker)
    assert any(
        event["event"] == "job-retry" and "lost" in event["reason"]
        for event in json.loads(home.pailot("events", "demo", "--json").out)
    ), err


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_a_task_is_killed_and_the_job_says_so(home: Home, repetition: int) -> None:
    marker = f"marker-{home.folder.name}"
    process = home.start(marked_job(marker, instances=1))
    assert process.stdout
    for _ in range(3 + repetition):
        process.stdout.readline()
    (shim,) = children_of(process.pid)
    bash = next(pid for pid in children_of(shim) if b"main.sh" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(bash, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "SIGKILL" in err
    no_process_left(marker)
    logged = home.pailot("logs", "demo").out.splitlines()
    assert logged == [f"line {number}" for number in range(len(logged))]


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_a_child_of_a_task_is_killed_and_the_task_learns_it(home: Home, repetition: int) -> None:
    """The commands see the death of their own child, at any of its stages; what they make of it is theirs."""
    marker = f"marker-{home.folder.name}"
    commands = (
        f"(setsid bash -c 'trap \"\" HUP; exec -a {marker} sleep 1000' >/dev/null 2>&1 &)\n"
        "printf 'before\\n'\n"
        f"bash -c 'n=0; echo $$; while :; do echo line $n; n=$((n + 1)); sleep 0.01; done; : {marker}' || echo child $?\n"
        "printf 'the last words'; exit 7"
    )
    process = home.start(job(role(commands, retries=0)), "--quiet")
    assert process.stdout
    assert process.stdout.readline() == "before\n"
    child = int(process.stdout.readline())
    seen = [process.stdout.readline() for _ in range(3 * repetition)]
    os.kill(child, signal.SIGKILL)
    rest = process.stdout.read()  # `communicate` would not know what `readline` has read ahead
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "main:0 exited with 7" in err
    no_process_left(marker)
    stdout = home.pailot("logs", "demo", "--stream", "stdout").out
    assert stdout == f"before\n{child}\n" + "".join(seen) + rest
    *lines, said, last = stdout.splitlines()[2:]
    assert lines == [f"line {number}" for number in range(len(lines))]
    assert (said, last) == ("child 137", "the last words")


def test_the_supervisor_of_a_detached_run_is_killed(home: Home) -> None:
    marker = f"marker-{home.folder.name}"
    home.run(marked_job(marker), "--detach")
    record = json.loads((home.jobs()[0] / "attempts" / "0" / "attempt.json").read_text())
    os.kill(record["driver"], signal.SIGKILL)
    assert home.pailot("wait", "demo").status == 3
    no_process_left(marker)
    assert home.show()["state"] == "STOPPED"


def test_a_reboot_is_recognised(home: Home) -> None:
    home.run(job(role("sleep 1000"), options="graceSeconds: 0.1"), "--detach")
    folder = home.jobs()[0]
    driver = json.loads((folder / "attempts" / "0" / "attempt.json").read_text())["driver"]
    os.kill(driver, signal.SIGKILL)
    record = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps({**record, "boot": "another boot"}))
    # A killed process holds its lock until the kernel has ended it.
    shown = wait_for(lambda: (seen := home.show())["state"] != "RUNNING" and seen, what="the end of the run")
    assert (shown["state"], "restarted" in shown["reason"]) == ("FAILED", True)
    no_process_left(str(folder))


def test_a_full_disk_ends_the_job_with_that_reason(home: Home) -> None:
    import subprocess

    small = home.folder / "home"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(small)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    try:
        done = home.run(job(role("yes 'much to say'")), "--quiet")
        assert done.status == 1
        assert "the disk that holds PAILOT_HOME is full" in done.err
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_thousand_tasks_in_one_job(home: Home) -> None:
    done = home.run(job(role("true", instances=1000, memory=0)), "--quiet")
    assert done.status == 0
    shown = home.show()
    assert shown["state"] == "SUCCEEDED"
    # What it took begins with its first task, not when the last of so many was started.
    firsts = [json.loads(path.read_text())["started"] for path in home.jobs()[0].glob("attempts/0/tasks/*/final.json")]
    assert shown["started"] <= min(moment for moment in firsts if moment)


def test_more_tasks_than_a_machine_is_asked_to_run_are_refused(home: Home) -> None:
    done = home.run(job(role("true", instances=4001)))
    assert done.status == 1
    assert "4000" in done.err


def test_a_look_at_a_run_that_is_about_to_start_does_not_end_it(home: Home) -> None:
    """Whoever lists runs while one is being recorded must not take it for one whose launcher was killed."""
    (home.cwd / "job.yaml").write_text(job(role("true")))
    code = (
        "import os, sys; from pailot.userruns import launch; from pailot.cli.main import main; drive = launch.drive_here\n"
        "def late(*all): print('recorded', flush=True); sys.stdin.readline(); return drive(*all)\n"
        "launch.drive_here = late; os._exit(main(['run', 'job.yaml', '--quiet']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=home.cwd,
        env=home.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == "recorded\n"
    assert home.show()["state"] == "WAITING"
    process.communicate("go\n", timeout=60)
    assert process.returncode == 0
    assert home.show()["state"] == "SUCCEEDED"
