"""`pailot run -e slurm` where the nodes see nothing of the login node's home: all travels there, logs and records come back."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.testing.runs import job, processes_with, role, wait_for

from ..parts.canaries import Canaries, found_below
from ..parts.slurm import Cluster, cluster
from .test_slurm import LONG, SLEEP, Login, ended, first_line
from .test_slurm import test_a_python_of_3_9_on_the_node_is_enough as python_of_3_9_is_enough


@pytest.fixture
def slurm() -> Cluster:
    return cluster()


@pytest.fixture
def login(slurm: Cluster) -> Iterator[Login]:
    """A home that no node sees; what the nodes keep is in a folder of the test's own."""
    folder = Path(tempfile.mkdtemp(dir=slurm.folder / "unseen"))
    nodes = Path(tempfile.mkdtemp(dir=slurm.folder))
    made = Login(folder, slurm)
    made.environment |= {"PAILOT_SLURM_SHARED_HOME": "no", "PAILOT_SLURM_NODE_FOLDER": str(nodes)}
    yield made
    made.close()
    shutil.rmtree(folder)
    shutil.rmtree(nodes)


def kept_on_nodes(login: Login) -> list[str]:
    return os.listdir(login.environment["PAILOT_SLURM_NODE_FOLDER"])


def test_a_task_runs_and_its_log_comes_back_to_the_last_byte(login: Login) -> None:
    commands = f"[ ! -e {login.folder} ]; ls -A; echo $PAI_TASK_INDEX; seq 20000; printf 'no newline'"
    (login.cwd / "here").touch()
    done = login.run(job(role(commands)))
    assert done.status == 0, done
    assert done.out == "".join(f"{number}\n" for number in [0, *range(1, 20001)]) + "no newline"
    assert "the nodes do not see this home: tasks begin in an empty directory" in done.err
    assert login.pailot("logs", "demo").out == done.out
    assert login.show()["taskRoles"]["main"]["tasks"][0]["host"] in login.slurm.names
    wait_for(lambda: kept_on_nodes(login) == [])


def test_tasks_on_several_nodes_are_followed_live(login: Login) -> None:
    commands = (
        "echo on $SLURMD_NODENAME; cat code/part; "
        f'until [ -e "{login.environment["PAILOT_SLURM_NODE_FOLDER"]}/go" ]; do sleep 0.05; done; '
        'seq 30000; grep -c address "$PAI_PEERS_FILE"; printf "end of $PAI_TASK_INDEX"'
    )
    (login.cwd / "code").mkdir()
    (login.cwd / "code/part").write_text("came along\n")
    text = job(role(commands, instances=2), options="code: code").replace("cpu: 1", "cpu: 5")
    process = login.start(text, "--quiet")
    lines = [first_line(process) for _ in range(4)]  # while they run
    assert {line.split()[-1] for line in lines if " on " in line}.issubset(login.slurm.names)
    assert len({line.split()[-1] for line in lines if " on " in line}) == 2
    assert sum("came along" in line for line in lines) == 2
    (Path(login.environment["PAILOT_SLURM_NODE_FOLDER"]) / "go").touch()
    done = ended(process)
    assert done.status == 0, done
    for index in range(2):
        said = [line.partition("] ")[2] for line in done.lines if line.startswith(f"[main:{index}]")]
        assert said[-30002:] == [*map(str, range(1, 30001)), "1", f"end of {index}"]
    wait_for(lambda: kept_on_nodes(login) == ["go"])


@pytest.mark.parametrize("instances", [1, 2])
def test_failures_are_tried_again_and_told(login: Login, instances: int) -> None:
    done = login.run(job(role("echo attempt $FC_TASK_ATTEMPT_ID; exit 7", instances=instances, retries=1, failed=instances)))
    assert done.status == 1, done
    assert done.out.count("attempt 0") == done.out.count("attempt 1") == instances
    shown = login.show()
    assert (shown["state"], shown["exitCode"]) == ("FAILED", 7)
    assert [task["exitCode"] for task in shown["taskRoles"]["main"]["tasks"]] == [7] * instances


@pytest.mark.parametrize("instances", [1, 2])
def test_a_stop_reaches_the_tasks_with_its_grace(login: Login, instances: int) -> None:
    commands = f"trap 'echo saved; exit 0' TERM; echo ready; {SLEEP}"
    process = login.start(job(role(commands, instances=instances)), "--quiet")
    for _ in range(instances):
        assert first_line(process).endswith("ready\n")
    assert login.pailot("stop", "demo", timeout=LONG).status == 0
    done = ended(process)
    assert (done.status, done.out.count("saved")) == (3, instances), done
    assert login.show()["state"] == "STOPPED"


def test_a_job_with_secrets_is_refused_unless_they_may_lie_in_the_spool(login: Login) -> None:
    text = job(role("t='<% $secrets.token %>'; echo ${#t} $t"), more="secrets: {token: hunter2-hunter2}")
    refused = login.run(text)
    assert refused.status == 1
    assert "slurm_secrets_in_spool = yes allows that" in refused.err
    assert refused.err.count("\n") == 1, refused.err
    allowed = login.run(text, PAILOT_SLURM_SECRETS_IN_SPOOL="yes")
    assert (allowed.status, allowed.out) == (0, "15 ******\n"), allowed
    for folder in (login.folder / "home", Path(login.environment["PAILOT_SLURM_NODE_FOLDER"])):
        assert found_below(folder, ["hunter2-hunter2"]) == {}


def test_inherited_credentials_do_not_come_to_lie_in_the_spool(login: Login) -> None:
    inherited = Canaries().inherited()
    login.environment |= inherited
    done = login.run(job(role("echo [${GITHUB_PAT-}] [${ANY_NAME_AT_ALL-}]")))
    assert (done.status, done.out) == (0, f"[] [{inherited['ANY_NAME_AT_ALL']}]\n"), done
    names = sorted(set(inherited) - {"ANY_NAME_AT_ALL"})
    assert f"not sent to the nodes, since it would lie in Slurm's spool: {', '.join(names)} (slurm_secrets_in_spool)" in done.err
    allowed = login.run(job(role("echo ${#GITHUB_PAT} $GITHUB_PAT")), PAILOT_SLURM_SECRETS_IN_SPOOL="yes")
    assert (allowed.status, allowed.out) == (0, f"{len(inherited['GITHUB_PAT'])} ******\n"), allowed


def test_it_is_found_out_by_the_first_attempt(login: Login) -> None:
    done = login.run(job(role("echo attempt $FC_FRAMEWORK_ATTEMPT_ID")), PAILOT_SLURM_SHARED_HOME="auto")
    assert (done.status, done.out) == (0, "attempt 1\n"), done
    assert "does not see the job's folder" in login.pailot("why", "demo").out


def test_the_launcher_and_its_mirror_die_and_whoever_waits_fetches_it(login: Login) -> None:
    nodes = Path(login.environment["PAILOT_SLURM_NODE_FOLDER"])
    process = login.start(job(role(f"echo up; until [ -e {nodes}/go ]; do sleep 0.05; done; echo end")), "--quiet")
    assert first_line(process) == "up\n"
    process.kill()
    process.wait()
    mirrors = processes_with(f"mirror\0{login.jobs()[0]}")
    assert len(mirrors) == 1
    os.kill(mirrors[0], signal.SIGKILL)
    (nodes / "go").touch()
    assert login.pailot("wait", "demo", timeout=LONG).status == 0
    assert login.pailot("logs", "demo").out == "up\nend\n"
    wait_for(lambda: kept_on_nodes(login) == ["go"])


@pytest.mark.parametrize("instances", [1, 2])
def test_a_cancel_in_slurm_stops_the_job(login: Login, instances: int) -> None:
    """The last words may be missing then: Slurm ends the steps that bring them together with the tasks."""
    commands = f"trap 'echo saved; exit 1' TERM; echo ready; {SLEEP}"
    process = login.start(job(role(commands, instances=instances, retries=3)), "--quiet")
    for _ in range(instances):
        assert first_line(process).endswith("ready\n")
    login.slurm.slurm("scancel", login.slurm_job())
    done = ended(process)
    assert done.status == 3, done
    assert login.show()["reason"] == "it was cancelled in Slurm (scancel)"


def test_a_task_without_a_record_is_a_platform_failure(login: Login) -> None:
    commands = "echo attempt $FC_FRAMEWORK_ATTEMPT_ID; [ $FC_FRAMEWORK_ATTEMPT_ID != 0 ] || sleep 1000"
    process = login.start(job(role(commands, instances=2)), "--quiet")
    for _ in range(2):
        assert first_line(process).endswith("attempt 0\n")
    login.slurm.slurm("scancel", "--signal=KILL", f"{login.slurm_job()}.1")
    done = ended(process)
    assert (done.status, sorted(done.lines)) == (0, ["[main:0] attempt 1", "[main:1] attempt 1"]), done
    assert "its step ended without a record" in login.pailot("why", "demo").out


def test_what_cannot_be_taken_along_is_refused(login: Login) -> None:
    (login.cwd / "code").mkdir()
    (login.cwd / "code/large").write_bytes(os.urandom(3_000_000))
    done = login.run(job(role("true"), options="code: code"), "--quiet")
    assert (done.status, done.out) == (1, "")
    assert "2.5 MB at most fit into a batch script" in done.err


def test_roles_of_different_shapes_and_a_shell_beside_a_held_task(login: Login) -> None:
    """The components of a heterogeneous job, too, hear what they need from the driver."""
    text = job(
        role(SLEEP, "ps", memory=300), role("exit 5", "worker", gpu=2), options="holdOnFailureMinutes: 10, graceSeconds: 1"
    )
    process = login.start(text)
    assert process.stderr
    assert any("pailot enter" in line for line in process.stderr)
    entered = login.pailot("enter", "demo", "worker", "0", "--command", "echo $SLURMD_NODENAME; pwd")
    host, place = entered.out.splitlines()
    assert host == login.show()["taskRoles"]["worker"]["tasks"][0]["host"]
    assert place.startswith(login.environment["PAILOT_SLURM_NODE_FOLDER"])
    process.send_signal(signal.SIGINT)
    assert ended(process).status in (1, 3)


def test_a_python_of_3_9_is_enough_here_too(login: Login) -> None:
    python_of_3_9_is_enough(login)
