"""What every engine must do alike: the whole behaviour of `pailot run`, on the real thing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from .engine_under_test import EngineUnderTest, Place
from .runs import no_process_left, role, wait_for

SLEEP = "while :; do sleep 0.05; done"


def out(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout
    return process.stdout


def interrupt(process: subprocess.Popen[str], place: Place) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=place.engine.seconds)


def daemon(marker: str) -> str:
    """A process out of every group and session, deaf to polite signals."""
    return f"(setsid bash -c 'trap \"\" TERM HUP; {SLEEP}' {marker} >/dev/null 2>&1 </dev/null &)"


def observed(place: Place) -> dict[str, str]:
    """What a process that has nothing to do with the run sees of its tasks."""
    code = (
        "import json, sys; from pailot.engines.registry import create; seen = create(sys.argv[1]).observe(sys.argv[2]);"
        "print(json.dumps({f'{each.role}:{each.index}': each.state for each in seen.tasks}))"
    )
    (run,) = place.jobs()
    words = [sys.executable, "-c", code, place.engine.name, str(run / "attempts" / "0")]
    done, _ = place.popen(words).communicate(timeout=place.engine.seconds)
    return json.loads(done)  # type: ignore[no-any-return]  # JSON


class EngineConformance:
    """The suite. A class of tests that inherits it has a fixture `engine`, which returns an `EngineUnderTest`.

    What an engine's traits excuse it from is skipped, and the reason says so.

    ::

        class TestMine(EngineConformance):
            pass
    """

    @pytest.fixture
    def place(self, tmp_path: Path, engine: EngineUnderTest) -> Iterator[Place]:
        """A home and a working directory for the runs of one test, on this engine."""
        made = Place(tmp_path, engine)
        yield made
        made.close()
        if engine.left:
            left = engine.left
            wait_for(lambda: not left(), 120, "the removal of everything that a run has made")

    def test_output_exit_code_and_record(self, place: Place) -> None:
        where = "pwd" if place.engine.traits.works_in_current_directory else f"echo {place.cwd}"
        done = place.run(place.job(role(f"echo out; echo err >&2; {where}; exit 3")), "--quiet")
        assert (done.status, done.lines, done.err.splitlines()[0]) == (1, ["out", str(place.cwd)], "err")
        shown = place.show()
        task = shown["taskRoles"]["main"]["tasks"][0]
        assert (shown["state"], shown["exitCode"], shown["engine"]) == ("FAILED", 3, place.engine.name)
        assert (task["state"], task["exitCode"], task["signal"], task["attempts"]) == ("FAILED", 3, None, 1)
        assert Path(task["logs"]["stdout"]).read_text() == f"out\n{place.cwd}\n"
        assert Path(task["logs"]["stderr"]).read_text() == "err\n"
        assert "main:0 exited with 3" in place.pailot("why", "demo").out

    def test_the_environment_tells_of_the_job_and_its_tasks(self, place: Place) -> None:
        commands = (
            "env -0 | sort -z | tr '\\0' '\\n' | grep -E '^(PAI|FC|RANK|WORLD|MASTER|ODD)'; cat $PAI_PEERS_FILE; echo; echo end"
        )
        text = place.job(
            role(commands, "worker", instances=2),
            role("true", "ps_server"),
            options="environment: {ODD: 'it''s \"odd\" $HOME'}",
        )
        done = place.run(text, "--quiet")
        assert done.status == 0, done
        logs = [place.pailot("logs", "demo", "worker", str(index)).out for index in (0, 1)]
        assert all(log.endswith("end\n") for log in logs)
        told = [dict(line.split("=", 1) for line in log.splitlines() if "=" in line and line[0].isupper()) for log in logs]
        for index, variables in enumerate(told):
            assert variables["PAI_JOB_NAME"] == "me~demo" or place.engine.traits.takes_job_file
            assert variables["PAI_TASK_INDEX"] == variables["RANK"] == str(index)
            assert variables["WORLD_SIZE"] == variables["PAI_TASK_ROLE_TASK_COUNT_worker"] == "2"
            assert variables["FC_TASK_ATTEMPT_ID"] == variables["FC_FRAMEWORK_ATTEMPT_ID"] == "0"
            assert variables["ODD"] == 'it\'s "odd" $HOME'
            assert variables["PAI_PORT_LIST_psserver_0_http"] == variables["PAI_PORT_LIST_ps_server_0_http"]
        assert told[0]["PAI_TASK_ROLE_worker_HOST_LIST"] == told[1]["PAI_TASK_ROLE_worker_HOST_LIST"]
        hosts = told[0]["PAI_TASK_ROLE_worker_HOST_LIST"].split(",")
        assert len(set(hosts)) == 2
        for index, host in enumerate(hosts):
            address, _, port = host.partition(":")
            assert re.fullmatch(place.engine.addresses, address)
            assert told[0][f"PAI_HOST_IP_worker_{index}"] == address
            assert port == told[index]["PAI_CONTAINER_HOST_http_PORT_LIST"] == told[0][f"PAI_PORT_LIST_worker_{index}_http"]
        shown = place.show()["taskRoles"]["worker"]["tasks"][1]
        assert [str(port) for port in shown["ports"]["http"]] == [told[1]["PAI_CONTAINER_HOST_http_PORT_LIST"]]
        peers = json.loads(next(line for line in logs[0].splitlines() if line.startswith("{")))
        assert {(each["role"], each["index"]) for each in peers["peers"]} >= {("worker", 0), ("worker", 1), ("ps_server", 0)}

    def test_what_python_prints_is_seen_at_once(self, place: Place) -> None:
        """A killed Python loses what it has not handed on; the environment of these tests may say that it keeps nothing."""
        place.environment.pop("PYTHONUNBUFFERED", None)
        script = "python3 -c 'import os, signal; print(\"epoch 1\"); os.kill(os.getpid(), signal.SIGKILL)'"
        done = place.run(place.job(role(script)), "--quiet")
        assert (done.status, done.lines) == (1, ["epoch 1"]), done

    def test_roles_find_each_other(self, place: Place) -> None:
        server = (
            "python3 - <<'END'\nimport os, socket\n"
            "server = socket.create_server(('', int(os.environ['PAI_CONTAINER_HOST_data_PORT_LIST'])))\n"
            "print(server.accept()[0].recv(9).decode())\nEND"
        )
        client = (
            "python3 - <<'END'\nimport os, socket, time\n"
            "host, port = os.environ['PAI_HOST_IP_server_0'], int(os.environ['PAI_PORT_LIST_server_0_data'])\n"
            "while True:\n"
            "    try:\n        socket.create_connection((host, port)).sendall(b'over here')\n        break\n"
            "    except OSError:\n        time.sleep(0.05)\nEND"
        )
        done = place.run(place.job(role(server, "server", succeeded=1), role(f"{client}\n{SLEEP}", "client")), "--quiet")
        assert (done.status, done.lines) == (0, ["[server:0] over here"])
        assert place.show()["taskRoles"]["client"]["tasks"][0]["state"] == "STOPPED"

    def test_callbacks_in_order_with_their_exports(self, place: Place) -> None:
        prerequisites = (
            "  - name: first\n    type: script\n    callbacks:\n"
            "      - {event: containerStart, commands: ['export GIVEN=\"a  b\"; echo start first', 'cd /; touch /tmp/made']}\n"
            "      - {event: containerExit, commands: ['echo exit first $PAI_TASK_OUTCOME $PAI_TASK_EXIT_CODE']}\n"
            "      - {event: taskFails, commands: ['echo failed']}\n"
            "      - {event: taskSucceeds, commands: ['echo never']}\n"
            "  - name: second\n    type: script\n    require: [first]\n    callbacks:\n"
            "      - {event: containerStart, commands: ['echo start second \"$GIVEN\"', 'sleep 1000 & echo $! >pid']}\n"
            "      - {event: containerExit, commands: ['ls /tmp/made; echo exit second']}"
        )
        where = "pwd" if place.engine.traits.works_in_current_directory else f"echo {place.cwd}"
        commands = where + '; echo main "$GIVEN"; ls /tmp/made; kill -0 $(cat pid) && echo served; rm pid; exec bash -c "exit 4"'
        done = place.run(place.job(role(commands, listed="second"), prerequisites=prerequisites), "--quiet")
        assert (done.status, done.lines) == (
            1,
            [
                "start first",
                "start second a  b",
                str(place.cwd),
                "main a  b",
                "/tmp/made",
                "served",
                "/tmp/made",
                "exit second",
                "exit first failed 4",
                "failed",
            ],
        )
        Path("/tmp/made").unlink(missing_ok=True)

    def test_a_failing_start_callback_skips_the_commands_but_not_the_end(self, place: Place) -> None:
        prerequisites = (
            "  - name: bad\n    type: script\n    callbacks:\n"
            "      - {event: containerStart, commands: ['echo begun; false; echo never']}\n"
            "      - {event: containerExit, commands: ['echo ended $PAI_TASK_OUTCOME']}"
        )
        done = place.run(place.job(role("echo never", listed="bad"), prerequisites=prerequisites), "--quiet")
        assert (done.status, done.lines) == (1, ["begun", "ended failed"])
        assert "its start callbacks exited with 1" in done.err

    def test_tasks_and_jobs_are_tried_again(self, place: Place) -> None:
        commands = 'echo "$FC_FRAMEWORK_ATTEMPT_ID.$FC_TASK_ATTEMPT_ID" | tee -a "$PAI_CHECKPOINT_DIR/tries"; [ -e go ]'
        done = place.run(place.job(role(commands, retries=1), job_retries=1), "--quiet")
        assert (done.status, done.lines) == (1, ["0.0", "0.1", "1.0", "1.1"])
        shown = place.show()
        assert (shown["attempt"], shown["retries"], shown["taskRoles"]["main"]["tasks"][0]["attempts"]) == (1, 1, 2)
        if place.engine.traits.works_in_current_directory:
            tries = place.jobs()[0] / "checkpoints" / "main-0" / "tries"
            assert tries.read_text().split() == done.lines
        assert place.pailot("logs", "demo", "--task-attempt", "0").out == "1.0\n"

    def test_the_first_role_to_reach_its_bound_ends_the_job(self, place: Place) -> None:
        # A task may see nothing of another but its port.
        listens = "python3 -m http.server $PAI_CONTAINER_HOST_data_PORT_LIST >/dev/null 2>&1 &"
        stays = role(f"trap 'echo told; exit 0' TERM; {listens} {SLEEP}", "server")
        meet = "</dev/tcp/$PAI_HOST_IP_server_0/$PAI_PORT_LIST_server_0_data"
        worker = role(
            f"until (exec {meet}) 2>/dev/null; do sleep 0.05; done; exit $PAI_TASK_INDEX",
            "worker",
            instances=2,
            failed=2,
            succeeded=1,
        )
        done = place.run(place.job(worker, stays), "--quiet")
        assert done.status == 0, done
        assert "[server:0] told" in done.lines
        assert place.show()["taskRoles"]["server"]["tasks"][0]["state"] == "STOPPED"

    def test_a_signal_is_told_from_an_exit_code(self, place: Place) -> None:
        done = place.run(place.job(role("kill -KILL $$")), "--quiet")
        assert (done.status, "SIGKILL" in done.err) == (1, True)
        task = place.show()["taskRoles"]["main"]["tasks"][0]
        assert (task["exitCode"], task["signal"]) == (None, 9)
        done = place.run(place.job(role("exit 137")), "--quiet")
        task = place.show()["taskRoles"]["main"]["tasks"][0]
        assert (task["exitCode"], task["signal"]) == (137, None)

    def test_stop_gives_its_grace_and_exit_callbacks_learn_it(self, place: Place) -> None:
        command = "echo $PAI_TASK_OUTCOME $PAI_TASK_EXIT_CODE"
        tidy = f'  - {{name: tidy, type: script, callbacks: [{{event: containerExit, commands: ["{command}"]}}]}}'
        commands = f"trap 'echo saved; exit 3' TERM; echo ready; {SLEEP}"
        process = place.start(place.job(role(commands, listed="tidy"), prerequisites=tidy))
        assert out(process).readline() == "ready\n"
        printed, err = interrupt(process, place)
        assert (process.returncode, printed) == (3, "saved\nstopped 3\n"), err
        assert place.show()["state"] == "STOPPED"

    def test_after_its_grace_a_stubborn_task_is_killed_with_all_it_started(self, place: Place) -> None:
        marker = f"marker-{place.folder.name}-grace"
        tidy = "  - {name: tidy, type: script, callbacks: [{event: containerExit, commands: [echo tidied]}]}"
        commands = f"{daemon(marker)}; trap '' TERM; echo ready; {SLEEP}"
        process = place.start(place.job(role(commands, listed="tidy"), prerequisites=tidy, options="graceSeconds: 3"))
        assert out(process).readline() == "ready\n"
        printed, _ = interrupt(process, place)
        assert (process.returncode, printed) == (3, "tidied\n")
        no_process_left(marker, place.engine.seconds)

    def test_two_interrupts_kill_at_once(self, place: Place) -> None:
        process = place.start(place.job(role(f"trap '' TERM; echo ready; {SLEEP}"), options="graceSeconds: 600"))
        assert out(process).readline() == "ready\n"
        assert process.stderr
        process.send_signal(signal.SIGINT)
        assert any("once more" in line for line in process.stderr)
        interrupt(process, place)
        assert process.returncode == 3

    def test_what_a_finished_task_left_running_is_ended(self, place: Place) -> None:
        marker = f"marker-{place.folder.name}-left"
        done = place.run(place.job(role(f"{daemon(marker)}; echo done")), "--quiet")
        assert (done.status, done.out) == (0, "done\n")
        no_process_left(marker, place.engine.seconds)

    def test_a_time_limit_fails_the_job_with_that_reason(self, place: Place) -> None:
        done = place.run(place.job(role(f"echo on; {SLEEP}"), options="maxRunSeconds: 3"), "--quiet")
        assert (done.status, "maxRunSeconds" in done.err) == (1, True)
        assert place.show()["state"] == "FAILED"

    def test_logs_are_whole_at_volume_and_without_a_last_newline(self, place: Place) -> None:
        done = place.run(
            place.job(role("head -c 5000000 /dev/zero | tr '\\0' x; printf 'err' >&2; printf '\\377end'")), "--quiet"
        )
        assert (done.status, len(done.out), done.out[-4:]) == (0, 5_000_004, "\udcffend")
        shown = place.show()["taskRoles"]["main"]["tasks"][0]["logs"]
        assert Path(shown["stdout"]).read_bytes() == b"x" * 5_000_000 + b"\377end"
        assert Path(shown["stderr"]).read_text() == "err"

    def test_secrets_are_used_and_never_seen(self, place: Place) -> None:
        exported = "commands: ['export T=\"<% $secrets.token %>\"']"
        setup = f"  - {{name: setup, type: script, callbacks: [{{event: containerStart, {exported}}}]}}"
        commands = (
            "echo ${#T}; echo $T; t='<% $secrets.token %>'; echo ${#t} >&2; "
            "printf hunter2-hun; sleep 0.1; printf ter2-hunter2; false"
        )
        text = place.job(
            role(commands, listed="setup", retries=1), prerequisites=setup, more="secrets: {token: hunter2-hunter2-hunter2}"
        )
        done = place.run(text, "--quiet")
        assert done.status == 1
        assert done.out == "23\n******\n******" * 2
        assert done.err.startswith("23\n23\n")
        everything = done.out + done.err + place.pailot("why", "demo").out + place.pailot("events", "demo", "--json").out
        assert "hunter2-hunter2" not in everything
        for path in (place.folder / "home").rglob("*"):
            if path.is_file():
                assert b"hunter2-hunter2" not in path.read_bytes(), path

    def test_a_held_task_can_be_entered(self, place: Place) -> None:
        if not place.engine.traits.works_in_current_directory:
            pytest.skip("the tasks are kept elsewhere")
        process = place.start(place.job(role("echo kept >/tmp/kept-file; exit 5"), options="holdOnFailureMinutes: 10"))
        assert process.stderr
        assert any("pailot enter" in line for line in process.stderr)
        assert place.show()["taskRoles"]["main"]["tasks"][0]["state"] == "HELD"
        entered = place.pailot(
            "enter", "demo", "main", "0", "--command", "cat /tmp/kept-file; rm /tmp/kept-file; pwd; echo $PAI_TASK_INDEX"
        )
        assert entered.out == f"kept\n{place.cwd}\n0\n", entered
        interrupt(process, place)
        assert place.show()["taskRoles"]["main"]["tasks"][0]["exitCode"] == 5

    def test_detached_runs_are_seen_and_stopped_from_any_shell(self, place: Place) -> None:
        until_told = f"until [ -e {place.cwd}/go ]; do sleep 0.05; done" if place.engine.sees_our_files else "sleep 5"
        commands = f"echo ready; {until_told}; echo gone; {SLEEP}"
        started = place.run(place.job(role(commands)), "--detach")
        assert (started.status, "is running" in started.out) == (0, True), started
        wait_for(lambda: place.pailot("logs", "demo").out == "ready\n", place.engine.seconds, "its output")
        assert place.show()["state"] == "RUNNING"
        (place.cwd / "go").touch()
        wait_for(lambda: place.pailot("logs", "demo").out == "ready\ngone\n", place.engine.seconds, "its output")
        stopped = place.pailot("stop", "demo")
        assert (stopped.status, stopped.out) == (0, "demo STOPPED\n")
        assert place.pailot("wait", "demo").status == 3
        assert [row["state"] for row in json.loads(place.pailot("ps", "--json").out)] == ["STOPPED"]

    def test_the_launcher_is_killed(self, place: Place) -> None:
        marker = f"marker-{place.folder.name}-killed"
        commands = f"{daemon(marker)}; bash -c '{SLEEP}' {marker} & echo ready; {SLEEP}"
        process = place.start(place.job(role(commands, instances=2), options="graceSeconds: 1"))
        for _ in range(2):
            assert out(process).readline().endswith("ready\n")
        process.kill()
        process.wait()
        if place.engine.traits.survives_launcher:
            assert place.show()["state"] == "RUNNING"
            assert place.pailot("stop", "demo").out == "demo STOPPED\n"
        else:
            assert place.pailot("wait", "demo").status == 3
            assert "launcher was killed" in place.pailot("why", "demo").out
        no_process_left(marker, place.engine.seconds)
        assert place.show()["state"] == "STOPPED"

    def test_files_belong_to_whoever_started_the_job(self, place: Place) -> None:
        if not place.engine.traits.works_in_current_directory:
            pytest.skip("the tasks work elsewhere")
        done = place.run(place.job(role("echo mine >mine; echo more >>given")), "--quiet")
        assert done.status == 0
        for name in ("mine", "given"):
            assert (place.cwd / name).stat().st_uid == os.getuid()

    def test_any_process_can_observe_an_attempt(self, place: Place) -> None:
        process = place.start(place.job(role(f"trap 'exit 0' TERM; echo ready; {SLEEP}", instances=2)))
        for _ in range(2):
            assert out(process).readline().endswith("ready\n")
        if not place.engine.traits.needs_follower:
            assert observed(place) == {"main:0": "running", "main:1": "running"}
        interrupt(process, place)
        assert observed(place) == {"main:0": "ended", "main:1": "ended"}
