"""`pailot run` as a user meets it: real jobs, real processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE, Home, job, no_process_left, role, wait_for


def test_a_job_runs_and_its_output_is_ours(home: Home) -> None:
    done = home.run(job(role("echo out; echo err >&2; pwd")), "--quiet")
    assert (done.status, done.lines, done.err) == (0, ["out", str(home.cwd)], "err\n")
    assert home.show()["state"] == "SUCCEEDED"


def test_several_tasks_are_told_apart_and_work_in_folders_of_their_own(home: Home) -> None:
    (home.cwd / "mine.txt").write_text("mine")
    done = home.run(
        job(role('cat mine.txt; echo; echo "$PAI_TASK_INDEX" >private; cat private', instances=2), role("ls", "other")), "--quiet"
    )
    assert sorted(done.lines) == sorted(
        ["[main:0] mine", "[main:0] 0", "[main:1] mine", "[main:1] 1", "[other:0] job.yaml", "[other:0] mine.txt"]
    )
    assert not (home.cwd / "private").exists()


def test_workdir_shared_keeps_one_for_all(home: Home) -> None:
    done = home.run(job(role("pwd", instances=2)), "--quiet", "--workdir", "shared")
    assert sorted(done.lines) == [f"[main:0] {home.cwd}", f"[main:1] {home.cwd}"]


def test_a_failure_says_which_task_how_and_why(home: Home) -> None:
    done = home.run(job(role("echo before; ls /no/such/file; echo after")))
    assert done.status == 1
    assert "main:0 exited with 2" in done.err
    assert "minFailedInstances" in done.err
    why = home.pailot("why", "demo").out
    assert "is FAILED" in why
    assert "No such file or directory" in why
    shown = home.show()
    assert (shown["exitCode"], shown["taskRoles"]["main"]["tasks"][0]["exitCode"]) == (2, 2)


def test_json_is_all_there_is_on_standard_output(home: Home) -> None:
    done = home.run(job(role("echo hello")), "--json")
    shown = json.loads(done.out)
    assert (shown["state"], shown["exitCode"], shown["name"]) == ("SUCCEEDED", 0, "demo")
    assert "hello" in done.err
    task = shown["taskRoles"]["main"]["tasks"][0]
    assert Path(task["logs"]["stdout"]).read_text() == "hello\n"
    assert set(task["ports"]) >= {"ssh", "http", "data"}


def test_roles_find_each_other_over_their_ports(home: Home) -> None:
    server = role(
        "python3 - <<'END'\n"
        "import os, socket\n"
        "server = socket.create_server(('', int(os.environ['PAI_CONTAINER_HOST_data_PORT_LIST'])))\n"
        "print(server.accept()[0].recv(9).decode())\n"
        "END\n",
        "server",
        succeeded=1,
    )
    client = role(
        "python3 - <<'END'\n"
        "import os, socket, time\n"
        "host, port = os.environ['PAI_HOST_IP_server_0'], int(os.environ['PAI_PORT_LIST_server_0_data'])\n"
        "while True:\n"
        "    try:\n"
        "        socket.create_connection((host, port)).sendall(b'over here')\n"
        "        break\n"
        "    except ConnectionRefusedError:\n"
        "        time.sleep(0.02)\n"
        "END\n",
        "client",
    )
    done = home.run(job(server, client), "--quiet")
    assert "[server:0] over here" in done.lines


def test_a_task_is_tried_again_and_every_attempt_keeps_its_log(home: Home) -> None:
    commands = (
        'n=$(cat "$PAI_CHECKPOINT_DIR/n" 2>/dev/null || echo 0); echo $((n + 1)) >"$PAI_CHECKPOINT_DIR/n"; '
        'echo "try $n of $FC_TASK_ATTEMPT_ID"; [ $n -ge 2 ]'
    )
    done = home.run(job(role(commands, retries=2)))
    assert (done.status, done.lines) == (0, ["try 0 of 0", "try 1 of 1", "try 2 of 2"])
    assert done.err.count("trying again") == 2
    assert home.pailot("logs", "demo", "--task-attempt", "1").out == "try 1 of 1\n"
    assert home.show()["taskRoles"]["main"]["tasks"][0]["attempts"] == 3


def test_a_detached_run_of_many_tasks_is_left_as_soon_as_all_have_begun(home: Home) -> None:
    """More tasks tell so at once than anybody listens to while they are started."""
    gate = home.cwd / "gate"
    job_of_many = job(role(f"until [ -e {gate} ]; do sleep 0.1; done", instances=150))
    assert home.run(job_of_many, "--detach", "--workdir", "shared").status == 0
    assert home.show()["state"] == "RUNNING"
    gate.touch()
    assert home.pailot("wait", "demo").status == 0


def test_a_job_is_tried_again_as_a_whole(home: Home) -> None:
    commands = 'echo "attempt $FC_FRAMEWORK_ATTEMPT_ID"; [ $FC_FRAMEWORK_ATTEMPT_ID -ge 1 ]'
    done = home.run(job(role(commands), job_retries=3))
    assert (done.status, done.lines) == (0, ["attempt 0", "attempt 1"])
    shown = home.show()
    assert (shown["attempt"], shown["retries"]) == (1, 1)


def test_retries_are_bounded(home: Home) -> None:
    done = home.run(job(role("echo try; exit 7", retries=1), job_retries=1), "--quiet")
    assert (done.status, done.lines) == (1, ["try"] * 4)


def test_the_first_role_to_reach_its_bound_ends_the_job(home: Home) -> None:
    done = home.run(job(role("echo done", "worker", succeeded=1), role("sleep 1000", "server")), "--quiet")
    assert done.status == 0
    assert home.show()["taskRoles"]["server"]["tasks"][0]["state"] == "STOPPED"


def test_one_interrupt_stops_with_grace_and_exit_callbacks_learn_it(home: Home) -> None:
    command = "echo $PAI_TASK_OUTCOME $PAI_TASK_EXIT_CODE"
    tidy = f'  - {{name: tidy, type: script, callbacks: [{{event: containerExit, commands: ["{command}"]}}]}}'
    commands = "trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    process = home.start(job(role(commands, listed="tidy"), prerequisites=tidy))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (3, "saved\nstopped 3\n")
    assert "STOPPED" in err
    assert home.show()["state"] == "STOPPED"


def test_two_interrupts_kill_at_once(home: Home) -> None:
    process = home.start(job(role("trap '' TERM; echo ready; sleep 1000"), options="graceSeconds: 600"))
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert any("once more" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 3


def test_after_its_grace_a_stubborn_task_is_killed_with_all_it_started(home: Home) -> None:
    marker = f"marker-{home.folder.name}-grace"
    daemon = f"(setsid bash -c 'trap \"\" TERM HUP; exec -a {marker} sleep 1000' >/dev/null 2>&1 &)"
    process = home.start(job(role(f"{daemon}; trap '' TERM; echo ready; sleep 1000"), options="graceSeconds: 0.2"))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    no_process_left(marker)


def test_what_a_finished_task_left_running_is_ended(home: Home) -> None:
    marker = f"marker-{home.folder.name}-left"
    done = home.run(job(role(f"(setsid bash -c 'exec -a {marker} sleep 1000' >/dev/null 2>&1 &); echo done")), "--quiet")
    assert (done.status, done.out) == (0, "done\n")
    no_process_left(marker)


def test_a_time_limit_fails_the_job_with_that_reason(home: Home) -> None:
    done = home.run(job(role("sleep 1000"), options="maxRunSeconds: 0.3"))
    assert done.status == 1
    assert "maxRunSeconds" in done.err


def test_a_server_of_a_start_callback_lives_as_long_as_the_task(home: Home) -> None:
    serve = "  - {name: serve, type: script, callbacks: [{event: containerStart, commands: ['sleep 1000 & echo $! >pid']}]}"
    done = home.run(job(role("kill -0 $(cat pid) && echo alive", listed="serve"), prerequisites=serve), "--quiet")
    assert (done.status, done.out) == (0, "alive\n")
    assert (
        subprocess.run(["kill", "-0", (home.cwd / "pid").read_text().strip()], check=False, capture_output=True).returncode != 0
    )


def test_logs_are_complete_without_a_last_newline_and_at_any_volume(home: Home) -> None:
    done = home.run(job(role("head -c 5000000 /dev/zero | tr '\\0' x; printf end")), "--quiet")
    assert (done.status, len(done.out), done.out[-3:]) == (0, 5_000_003, "end")
    assert len(home.pailot("logs", "demo", "--stream", "stdout").out) == 5_000_003


def test_secrets_are_used_and_never_seen(home: Home) -> None:
    text = job(
        role(
            "t='<% $secrets.token %>'; echo ${#t}; echo $t; printf hunter2-hun; sleep 0.1; printf ter2-hunter2; false", retries=1
        ),
        more="secrets: {token: hunter2-hunter2-hunter2}",
    )
    done = home.run(text)
    assert done.status == 1
    assert "23\n******\n" in done.out
    everything = done.out + done.err + home.pailot("why", "demo").out + home.pailot("events", "demo", "--json").out
    assert "hunter2-hunter2" not in everything
    for path in (home.folder / "home").rglob("*"):
        if path.is_file():
            assert b"hunter2-hunter2-hunter2" not in path.read_bytes(), path
    again = home.pailot("rerun", "demo", "--quiet")
    assert "23\n******\n" in again.out


def test_running_it_again_is_normal_but_not_twice_at_once(home: Home) -> None:
    text = job(role("echo hello"))
    for _ in range(2):
        assert home.run(text, "--quiet").status == 0
    assert len(json.loads(home.pailot("ps", "--json").out)) == 2
    process = home.start(job(role("echo ready; sleep 1000")))
    assert process.stdout
    process.stdout.readline()
    second = home.run(text)
    assert (second.status, "is running already" in second.err) == (2, True)
    assert home.run(text, "--unique", "--quiet").status == 0
    assert home.pailot("stop", "demo").status == 0
    process.communicate(timeout=PATIENCE)


def test_detached_runs_are_seen_from_any_shell(home: Home) -> None:
    started = home.run(job(role("echo ready; while [ ! -e go ]; do sleep 0.02; done; echo gone")), "--detach")
    assert (started.status, "is running" in started.out) == (0, True)
    assert home.show()["state"] == "RUNNING"
    wait_for(lambda: home.pailot("logs", "demo").out == "ready\n")
    (home.cwd / "go").touch()
    assert home.pailot("wait", "demo").status == 0
    assert home.pailot("logs", "demo").out == "ready\ngone\n"
    assert [row["state"] for row in json.loads(home.pailot("ps", "--json").out)] == ["SUCCEEDED"]


def test_stop_and_wait_from_another_process(home: Home) -> None:
    home.run(job(role("sleep 1000")), "--detach")
    assert home.pailot("wait", "demo", "--timeout", "0.1").status == 4
    stopped = home.pailot("stop", "demo")
    assert (stopped.status, stopped.out) == (0, "demo STOPPED\n")
    assert home.pailot("wait", "demo").status == 3


def test_memory_is_limited_and_a_kill_for_it_is_called_that(home: Home) -> None:
    from pailot.runtime import cgroups

    if cgroups.available() is None:
        pytest.skip("cgroups cannot be written here")
    done = home.run(job(role("python3 -c \"x = b'x' * 300_000_000; print(len(x))\"", memory=100)))
    assert done.status == 1
    assert "memory" in done.err


def test_a_held_task_can_be_entered(home: Home) -> None:
    text = job(role("echo kept >file; export X=1; exit 5"), options="holdOnFailureMinutes: 10")
    process = home.start(text)
    assert process.stderr
    assert any("pailot enter" in line for line in process.stderr)
    assert home.show()["taskRoles"]["main"]["tasks"][0]["state"] == "HELD"
    assert "RUNNING (1 held)" in home.pailot("ps").out
    entered = home.pailot("enter", "demo", "main", "0", "--command", "cat file; echo $PAI_TASK_INDEX")
    assert entered.out == "kept\n0\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)


def test_credentials_of_the_caller_reach_the_task_and_no_file(home: Home) -> None:
    home.environment["MY_TOKEN"] = "inherited-by-the-task"
    assert home.run(job(role("echo $MY_TOKEN | wc -c")), "--quiet").lines == ["22"]
    kept = [path for path in home.folder.rglob("*") if path.is_file() and b"inherited-by-the-task" in path.read_bytes()]
    assert kept == []
    assert home.pailot("enter", "demo", "--command", "echo $MY_TOKEN $PAI_TASK_INDEX").lines == ["inherited-by-the-task 0"]


def test_gpus_are_given_exclusively(home: Home) -> None:
    done = home.run(job(role("echo $CUDA_VISIBLE_DEVICES", instances=2, gpu=1)), "--quiet", PAILOT_GPUS="2")
    assert sorted(line[-1] for line in done.lines) == ["0", "1"]


def test_a_job_gets_gpus_of_the_type_it_asks_for(home: Home) -> None:
    (home.cwd / "pailot.toml").write_text("cpus = 1\nmemory_mb = 10")
    text = job(role("echo $CUDA_VISIBLE_DEVICES", gpu=1), options="gpuType: V100")
    done = home.run(text, PAILOT_GPUS="0:Tesla K80,3:Tesla V100-SXM2-16GB")
    assert done.lines == ["3"]
    assert "asks for 200 MB of memory, this machine has 10 MB" in done.err
    assert "no such GPU" not in done.err
    done = home.run(text, PAILOT_GPUS="0:Tesla K80")
    assert done.lines == ["0"]
    assert "no such GPU here: the job asks for type 'V100', there is Tesla K80; it goes on without the type" in done.err


def test_old_runs_are_removed_by_rule(home: Home) -> None:
    for _ in range(3):
        home.run(job(role("true")), "--quiet")
    assert home.pailot("gc", "--keep-days", "0", "--keep-last", "1").status == 0
    assert len(home.jobs()) == 1
    assert len(json.loads(home.pailot("ps", "--json").out)) == 1
    (home.folder / "home" / "index.db").write_bytes(b"garbage" * 1000)
    assert home.pailot("gc", "--rebuild-index").status == 0
    assert [row["state"] for row in json.loads(home.pailot("ps", "--json").out)] == ["SUCCEEDED"]


def test_a_closed_terminal_does_not_end_the_job(home: Home) -> None:
    process = home.start(job(role("for i in 1 2 3; do echo $i; sleep 0.05; done; echo end")))
    assert process.stdout
    process.stdout.close()
    process.wait(timeout=PATIENCE)
    assert process.stderr
    process.stderr.close()
    assert home.pailot("logs", "demo").out.endswith("end\n")
    assert home.show()["state"] == "SUCCEEDED"


def test_channels_are_shared_folders_that_variables_name(home: Home) -> None:
    options = "channels: {inputs: [train], outputs: [model]}"
    done = home.run(
        job(
            role('echo "$PAI_TASK_INDEX" >"$PAI_OUTPUT_MODEL/$PAI_TASK_INDEX"; ls -d "$PAI_INPUT_TRAIN" >/dev/null', instances=2),
            options=options,
        ),
        "--quiet",
    )
    assert done.status == 0
    found = sorted(path.name for path in (home.jobs()[0] / "attempts" / "0" / "ml" / "output" / "model").iterdir())
    assert found == ["0", "1"]


def test_a_sandbox_keeps_the_rest_of_the_machine_as_it_is(home: Home) -> None:
    import shutil

    if shutil.which("bwrap") is None:
        done = home.run(job(role("true")), "--sandbox")
        assert (done.status, "bubblewrap" in done.err) == (1, True)
        pytest.skip("bubblewrap is not installed: sudo apt-get install bubblewrap")
    commands = (
        "touch /tmp/private; ls /tmp/private; ls -d /ml/output/model/; touch mine; "
        "touch /usr/not-mine 2>/dev/null || echo read-only"
    )
    done = home.run(job(role(commands), options="channels: {outputs: [model]}"), "--sandbox", "--quiet")
    assert (done.status, done.lines) == (0, ["/tmp/private", "/ml/output/model/", "read-only"])
    assert (home.cwd / "mine").exists()


def test_it_is_said_that_commands_made_for_a_container_change_this_machine(home: Home) -> None:
    done = home.run(job(role("true")))
    assert (
        "pailot: the local engine runs commands as they are, and they change this machine; the image debian is not used"
        " (-e docker uses it, --sandbox keeps the machine as it is)"
    ) in done.err.splitlines()


def test_a_sandboxed_task_has_its_grace(home: Home) -> None:
    import shutil

    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed: sudo apt-get install bubblewrap")
    process = home.start(
        job(role("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done")), "--sandbox", "--quiet"
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[0] == "saved\n"


def test_logs_are_rotated_where_asked_and_offsets_go_on(home: Home) -> None:
    done = home.run(job(role("seq 1 100000")), "--quiet", PAILOT_LOG_ROTATE_MB="0.1")
    assert done.status == 0
    kept = home.pailot("logs", "demo").out.split()
    assert kept[-1] == "100000"
    assert len(kept) < 100_000


def test_code_is_brought_into_the_working_directory(home: Home) -> None:
    (home.cwd / "src").mkdir()
    (home.cwd / "src" / "main.py").write_text("print('brought')")
    done = home.run(job(role("python3 src/main.py", instances=2), options="code: src"), "--quiet")
    assert (done.status, sorted(done.lines)) == (0, ["[main:0] brought", "[main:1] brought"])


def test_a_v1_job_gets_the_ports_it_names_and_its_code_from_an_address(home: Home, span: Callable[[int], range]) -> None:
    first, *_ = ports = span(4)
    (home.cwd / "src").mkdir()
    (home.cwd / "src" / "main.py").write_text("print('brought')")
    with zipfile.ZipFile(home.cwd / "code.zip", "w") as archive:
        archive.write(home.cwd / "src" / "main.py", "main.py")
    text = {
        "jobName": "demo",
        "image": "debian",
        "dataDir": "/data",
        "codeDir": f"zip://main.py::file://{home.cwd}/code.zip",
        "taskRoles": [
            {
                "name": "main",
                "taskNumber": 2,
                "memoryMB": 100,
                "portList": [{"label": "grpc", "beginAt": first, "portNumber": 2}],
                "command": "python3 main.py; echo $PAI_DATA_DIR $PAI_CONTAINER_HOST_grpc_PORT_LIST",
            }
        ],
    }
    # The test's own reservation is in the folder that all runs share.
    done = home.run(json.dumps(text), "--quiet", PAILOT_LOCKS=str(home.folder / "locks"))
    assert (done.status, sorted(done.lines)) == (
        0,
        [
            f"[main:0] /data {ports[0]},{ports[1]}",
            "[main:0] brought",
            f"[main:1] /data {ports[2]},{ports[3]}",
            "[main:1] brought",
        ],
    ), done
    with socket.create_server(("", ports[3])):
        refused = home.run(json.dumps(text), "--quiet", PAILOT_LOCKS=str(home.folder / "locks"))
    assert (refused.status, f"port {ports[3]} is in use by another program" in refused.err) == (1, True)


def test_waiting_for_a_gpu_names_who_holds_it_and_can_be_stopped(home: Home) -> None:
    first = home.start(job(role("echo ready; sleep 1000", gpu=1), name="holder"), PAILOT_GPUS="1")
    assert first.stdout
    assert first.stdout.readline() == "ready\n"
    second = home.start(job(role("echo mine", gpu=1), name="waiter"), PAILOT_GPUS="1")
    assert second.stderr
    assert any("me~holder" in line for line in second.stderr)
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=PATIENCE)
    assert second.returncode == 3
    third = home.start(job(role("echo mine", gpu=1), name="third"), "--quiet", PAILOT_GPUS="1")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE)
    assert third.communicate(timeout=PATIENCE)[0] == "mine\n"


def test_a_detached_job_is_tried_again_to_its_verdict(home: Home) -> None:
    home.run(job(role("exit 4"), job_retries=3), "--detach")
    assert home.pailot("wait", "demo").status == 1
    shown = home.show()
    assert (shown["state"], shown["attempt"], shown["exitCode"]) == ("FAILED", 3, 4)


def test_a_job_that_runs_on_beside_a_server_role_says_why(home: Home) -> None:
    home.run(job(role("true", "worker"), role("sleep 1000", "ps"), name="psw"), "--detach")
    wait_for(lambda: home.show("psw")["taskRoles"]["worker"]["tasks"][0]["state"] == "SUCCEEDED", 60, "the worker's end")
    assert home.pailot("why", "psw").lines == [
        (
            "psw is RUNNING: all of worker done; ps runs;"
            " no role ends the job by success (minSucceededInstances), so it goes on until all tasks have ended"
        )
    ]
    assert home.pailot("stop", "--now", "psw").status == 0


def test_a_detached_job_that_cannot_start_says_why(home: Home) -> None:
    done = home.run(job(role("true")), "--detach", "--workdir", "/no/such/folder")
    assert (done.status, "no such directory" in done.err) == (1, True)


def test_no_secret_lies_in_the_folder_of_a_run(home: Home) -> None:
    setup = (
        "  - {name: setup, type: script, callbacks: [{event: containerStart, commands: ['export T=\"<% $secrets.token %>\"']}]}"
    )
    text = job(role("echo ${#T}", listed="setup"), prerequisites=setup, more="secrets: {token: x}")
    done = home.run(text, "--quiet", "--secret", "token=env:MY_TOKEN", MY_TOKEN="hunter2-hunter2")
    assert (done.status, done.out) == (0, "15\n")
    for path in (home.folder / "home").rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes(), path


def test_following_logs_goes_on_with_the_next_attempt(home: Home) -> None:
    import subprocess
    import sys

    commands = (
        'echo "attempt $FC_FRAMEWORK_ATTEMPT_ID"; until [ -e "go$FC_FRAMEWORK_ATTEMPT_ID" ]; do sleep 0.02; done; '
        "exit $((1 - FC_FRAMEWORK_ATTEMPT_ID))"
    )
    home.run(job(role(commands), job_retries=1), "--detach")
    follower = subprocess.Popen(
        [sys.executable, "-m", "pailot", "logs", "-f", "demo"],
        cwd=home.cwd,
        env=home.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert follower.stdout
    assert follower.stdout.readline() == "attempt 0\n"
    (home.cwd / "go0").touch()
    assert follower.stdout.readline() == "attempt 1\n"
    (home.cwd / "go1").touch()
    assert follower.communicate(timeout=PATIENCE)[0] == ""
    assert home.pailot("wait", "demo").status == 0


def test_two_interrupts_kill_also_after_the_verdict(home: Home) -> None:
    stubborn = role("trap '' TERM; touch up; sleep 1000", "server")
    worker = role("until [ -e ../../server-0/work/up ]; do sleep 0.02; done; echo decided", "worker", succeeded=1)
    process = home.start(job(worker, stubborn, options="graceSeconds: 600"))
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline() == "[worker:0] decided\n"
    while "is not used" not in process.stderr.readline():
        pass
    wait_for(lambda: "completed" in "".join(p.read_text() for p in home.jobs()[0].glob("attempts/0/stop.json")))
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_a_rerun_keeps_what_was_changed(home: Home) -> None:
    text = job(role("echo <% $parameters.word %>; pwd"), more="parameters: {word: first}")
    home.run(text, "--quiet", "--set", "parameters.word=second", "--name", "renamed")
    again = home.pailot("rerun", "renamed", "--quiet")
    assert again.lines == ["second", str(home.cwd)]


def test_a_rerun_says_what_the_shell_changes(home: Home) -> None:
    home.environment["VIRTUAL_ENV"] = "/one"
    home.run(job(role("true")), "--quiet")
    same = home.pailot("rerun", "demo")
    assert (same.status, "environment of this shell" in same.err) == (0, False)
    home.environment |= {"VIRTUAL_ENV": "/two", "LD_LIBRARY_PATH": "/lib"}
    other = home.pailot("rerun", "demo")
    said = "pailot: the tasks get the environment of this shell; VIRTUAL_ENV, LD_LIBRARY_PATH differ from that of the run before"
    assert said in other.err.splitlines()
    del home.environment["VIRTUAL_ENV"]
    assert "VIRTUAL_ENV differs from" in home.pailot("rerun", "demo").err
    home.environment["VIRTUAL_ENV"] = "/three"
    assert "environment of this shell" not in home.pailot("rerun", "demo", "--quiet").err


def test_a_variable_that_the_job_sets_is_no_difference(home: Home) -> None:
    text = job(role("true"), options="environment: {VIRTUAL_ENV: /own}")
    home.environment["VIRTUAL_ENV"] = "/one"
    home.run(text, "--quiet")
    home.environment["VIRTUAL_ENV"] = "/two"
    assert "environment of this shell" not in home.pailot("rerun", "demo").err


def test_teamwise_storage_is_called_by_its_name(home: Home) -> None:
    plugin = "  com.microsoft.pai.runtimeplugin: [{plugin: teamwise_storage, parameters: {storageConfigNames: [nfs]}}]\n"
    said = home.run(job(role("true")).replace("extras:\n", f"extras:\n{plugin}")).err
    assert "without effect on the local engine: teamwise_storage" in said
    assert "extras.storages" not in said


@pytest.mark.parametrize(
    "words",
    [
        ("enter", "demo", "mian", "0"),
        ("logs", "demo", "mian"),
        ("cp", "demo:mian:0/x", "."),
        ("forward", "demo", "mian", "0", "1"),
    ],
)
def test_a_misspelt_role_is_told_with_the_right_one(home: Home, words: tuple[str, ...]) -> None:
    home.run(job(role("true")), "--quiet")
    done = home.pailot(*words)
    assert (done.status, done.err) == (2, "pailot: 'demo' has no role 'mian'; did you mean 'main'?\n")


def test_a_run_that_waits_for_gpus_can_be_stopped_from_elsewhere(home: Home) -> None:
    first = home.start(job(role("echo ready; sleep 1000", gpu=1), name="holder"), PAILOT_GPUS="1")
    assert first.stdout
    first.stdout.readline()
    assert home.run(job(role("true", gpu=1), name="waiter"), "--detach", PAILOT_GPUS="1").status == 0
    assert home.pailot("stop", "waiter").out == "waiter STOPPED\n"
    assert home.pailot("ps", "--state", "bogus").status == 2
    assert "holder" in home.pailot("ps", "--state", "running").out


def test_channels_bring_data_in_and_results_out_only_when_all_went_well(home: Home) -> None:
    (home.cwd / "data.txt").write_text("a line\n")
    (home.cwd / "set").mkdir()
    (home.cwd / "set" / "part").write_text("a part\n")
    (home.cwd / "code").mkdir()
    (home.cwd / "code" / "program").write_text("code\n")
    options = (
        "channels: {inputs: {one: data.txt, many: set}, outputs: {model: results/model}, code: code, hyperparameters: {lr: '1'}}"
    )
    commands = (
        'cat "$PAI_INPUT_ONE" "$PAI_INPUT_MANY/part" "$PAI_WORKING_DIR/program" "$PAI_CONFIG_DIR/hyperparameters.json"\n'
        'echo weights >"$PAI_OUTPUT_MODEL/weights"\n'
    )
    failed = home.run(job(role(commands + "exit 1"), options=options), "--quiet")
    assert failed.status == 1
    assert not (home.cwd / "results").exists()
    done = home.run(job(role(commands), options=options), "--quiet")
    assert (done.status, done.lines) == (0, ["a line", "a part", "code", '{"lr": "1"}'])
    assert (home.cwd / "results" / "model" / "weights").read_text() == "weights\n"
    broken = home.run(job(role(commands), options=options.replace("results/model", "/proc/nowhere/model")), "--quiet")
    assert broken.status == 1
    assert "the output 'model' could not be brought to /proc/nowhere/model" in broken.err


@pytest.mark.parametrize(("engine", "words"), [("docker", "none of them is installed"), ("openpai", "which server?")])
def test_an_engine_that_is_not_there_has_a_status_of_its_own(home: Home, engine: str, words: str) -> None:
    home.environment["PATH"] = str(Path(sys.executable).parent)
    home.environment["XDG_CONFIG_HOME"] = str(home.folder / "nobody-logged-in")
    ended = home.run(job(role("true")), "-e", engine)
    assert (ended.status, home.show()["state"]) == (4, "FAILED")
    assert words in ended.err
