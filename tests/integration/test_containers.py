"""The docker engine against a real Docker Engine and a real Podman: what is particular to containers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest

from pailot.testing.runs import Home, Result, job, no_process_left, processes_with, role, wait_for

from ..parts import containers
from ..parts.containers import DASH, IMAGE, SMALL, Docker

REPETITIONS = min(int(os.environ.get("PAILOT_FAULT_REPETITIONS", "2")), 20)
SECONDS = 120.0
SLEEP = "while :; do sleep 0.05; done"


class Place(Home):
    """A home whose runs go to a container engine."""

    def __init__(self, folder: Path, engine: Docker) -> None:
        super().__init__(folder)
        self.engine = engine
        self.environment |= engine.environment | {"PAILOT_ENGINE": "docker"}

    def job(self, *roles: str, image: str = IMAGE, **more: str) -> str:
        return job(*roles, **more).replace("uri: debian", f"uri: '{image}'")  # type: ignore[arg-type]  # passed on

    def run(self, text: str, *options: str, timeout: float = SECONDS, **environment: str) -> Result:
        return super().run(text, *options, timeout=timeout, **environment)

    def run_with(self, environment: Mapping[str, str], text: str, *options: str) -> Result:
        process = self.start(text, *options, **environment)
        out, err = process.communicate(timeout=SECONDS)
        return Result(process.returncode, out, err)

    def known_to_run(self) -> None:
        """Its task may speak before the daemon has written down that it runs; killed in between, it knows nothing of it."""
        (container,) = self.engine.containers()
        running = '"Running": true'
        wait_for(lambda: running in self.engine.run("inspect", container).stdout, SECONDS, "that the daemon knows")

    def nothing_left(self) -> None:
        wait_for(lambda: not self.engine.containers(), SECONDS, "the removal of all containers")


@pytest.fixture
def docker(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, containers.docker())
    yield made
    made.close()


@pytest.fixture(params=["docker", "podman"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(tmp_path, getattr(containers, request.param)())
    yield made
    made.close()


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, containers.podman())
    yield made
    made.close()


def ready(process: subprocess.Popen[str], line: str = "ready\n") -> None:
    assert process.stdout
    assert process.stdout.readline() == line


# Images


def test_a_missing_image_is_said_before_anything_starts(place: Place) -> None:
    text = place.job(role("echo never", "first"), image=SMALL).replace(
        "taskRoles:\n", "taskRoles:\n" + role("echo never", "second").replace("dockerImage: image", "dockerImage: other")
    )
    text = text.replace(
        "prerequisites:\n", "prerequisites:\n  - {name: other, type: dockerimage, uri: 'localhost:1/no/such:image'}\n", 1
    )
    done = place.run(text)
    assert (done.status, done.out) == (1, "")
    assert re.search(r"the image 'localhost:1/no/such:image' cannot be pulled: .*refused", done.err), done.err
    done = place.run(text, PAILOT_IMAGE_PULL="never")
    assert "there is no image 'localhost:1/no/such:image' here, and image_pull is 'never'" in done.err
    assert not place.engine.containers()


@pytest.mark.parametrize(("image", "words"), [(SMALL, "commands run in /bin/sh"), (DASH, "which has no pipefail either")])
def test_an_image_needs_only_a_shell(docker: Place, image: str, words: str) -> None:
    setup = "  - {name: setup, type: script, callbacks: [{event: containerStart, commands: ['export A=\"a  b\"']}]}"
    text = docker.job(role('echo "$A"; cd /; pwd; exit 3', listed="setup"), image=image, prerequisites=setup)
    done = docker.run(text, "--quiet")
    assert (done.status, done.lines) == (1, ["a  b", "/"])
    assert f"pailot: the image {image} has no bash" in done.err
    assert words in done.err
    assert docker.show()["exitCode"] == 3
    done = docker.run(docker.job(role("kill -9 $$"), image=image), "--quiet")
    assert "SIGKILL" in done.err
    docker.nothing_left()


def test_credentials_reach_the_registry_and_nobody_else(place: Place, tmp_path: Path) -> None:
    from ..parts.registry import Registry

    with Registry(tmp_path, "ann", "hunter2-hunter2") as registry:
        image = f"{registry.address}/team/small:1"
        registry.push(place.engine, SMALL, image)
        place.engine.run("rmi", image)
        auth = f"auth: {{username: ann, password: '<% $secrets.word %>', registryuri: '{registry.address}'}}"
        text = place.job(role("echo pulled"), image=image, more="secrets: {word: x}")
        text = text.replace(f"uri: '{image}'", f"uri: '{image}', {auth}")
        wrong = place.run_with(registry.trusted(place.engine), text, "--secret", "word=wrong-password")
        assert wrong.status == 1
        assert re.search(f"the image '{re.escape(image)}' cannot be pulled as 'ann': .*(unauthorized|authentication)", wrong.err)
        assert "wrong-password" not in wrong.err
        right = place.run_with(registry.trusted(place.engine), text, "--secret", "word=hunter2-hunter2")
        assert (right.status, right.out) == (0, "pulled\n"), right
        assert f"pulling the image {image}" in right.err
        for path in [*(place.folder / "home").rglob("*"), *Path("/dev/shm").glob("pailot-auth-*/*")]:
            if path.is_file():
                assert b"hunter2" not in path.read_bytes(), path
        assert not list(Path("/dev/shm").glob("pailot-auth-*"))
        place.engine.run("rmi", "--force", image)
        (place.cwd / "auth").write_text(f"{registry.address}\nann\nhunter2-hunter2\n")
        text = place.job(role("echo by file"), image=image, options="authFile: auth")
        assert place.run_with(registry.trusted(place.engine), text, "--quiet").lines == ["by file"]
        place.engine.run("rmi", "--force", image)


def test_a_pull_can_be_stopped_and_leaves_no_credentials(docker: Place) -> None:
    """From a registry that accepts connections and never answers."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        image = f"127.0.0.1:{silent.getsockname()[1]}/slow"
        text = docker.job(role("true"), image=image).replace(
            f"uri: '{image}'", f"uri: '{image}', auth: {{username: a, password: b}}"
        )
        process = docker.start(text)
        connection, _ = silent.accept()
        wait_for(lambda: list(Path("/dev/shm").glob(f"pailot-auth-{process.pid}-*")), SECONDS, "the folder for the credentials")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
        connection.close()
        assert process.returncode == 3
        assert not list(Path("/dev/shm").glob(f"pailot-auth-{process.pid}-*"))


# Engines that are not there


def test_no_engine_no_daemon_and_a_remote_one_are_said_in_one_line(docker: Place) -> None:
    text = docker.job(role("true"))
    words = {
        "none of them is installed": {"PATH": os.path.dirname(sys.executable), "PAILOT_CONTAINER_COMMAND": ""},
        "docker: its daemon does not answer": {"DOCKER_HOST": "unix:///nowhere/docker.sock"},
        "cannot see the job's folders": {"DOCKER_HOST": "tcp://192.0.2.1:2375"},
        "there is no program 'docker-of-old'": {"PAILOT_CONTAINER_COMMAND": "docker-of-old"},
        "container_network: should be host or bridge": {"PAILOT_CONTAINER_NETWORK": "moon"},
    }
    for expected, environment in words.items():
        done = docker.run_with(environment, text)
        assert done.status != 0
        assert expected in done.err
        assert "Traceback" not in done.err


def test_the_next_engine_is_taken_where_the_first_does_not_answer(podman: Place) -> None:
    done = podman.run(podman.job(role("echo there")), "--quiet", PAILOT_CONTAINER_COMMAND="", DOCKER_HOST="unix:///nowhere")
    assert (done.status, done.out) == (0, "there\n"), done


# What a container is given


def test_limits_and_devices(place: Place) -> None:
    commands = (
        "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || true\n"
        "df -m /dev/shm | tail -1 | awk '{print $2}'\n"
        "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2>/dev/null || true"
    )
    text = place.job(role(commands)).replace("    dockerImage", "    extraContainerOptions: {shmMB: 33}\n    dockerImage")
    done = place.run(text, "--quiet")
    assert [line.split()[0] for line in done.lines] == [str(200 * 1024 * 1024), "33", "100000"], done
    if not Path("/dev/infiniband").exists():
        text = place.job(role("true")).replace(
            "    dockerImage", "    extraContainerOptions: {infiniband: true}\n    dockerImage"
        )
        assert "this machine has no /dev/infiniband" in place.run(text).err


def test_memory_is_limited_and_a_kill_for_it_is_called_that(place: Place) -> None:
    done = place.run(place.job(role("python3 -c \"x = b'x' * 300_000_000; print(len(x))\"", memory=100)), "--quiet")
    assert (done.status, done.out) == (1, "")
    assert "used more memory than it asked for" in done.err
    assert place.show()["taskRoles"]["main"]["tasks"][0]["class"]["code"] == -1200


def test_gpus_are_given_or_refused_never_forgotten(place: Place, tmp_path: Path) -> None:
    done = place.run(place.job(role("echo $CUDA_VISIBLE_DEVICES", instances=2, gpu=1)), "--quiet", PAILOT_GPUS="2")
    assert sorted(line[-1] for line in done.lines) == ["0", "1"]  # declared only: nothing to give
    fake = tmp_path / "bin" / "nvidia-smi"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho '0, GPU-1234, Fake, 1000'\n")
    fake.chmod(0o755)
    done = place.run(place.job(role("true", gpu=1)), PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert done.status == 1
    assert ("could not select device driver" if place.engine.program == "docker" else "only by CDI") in done.err, done


def test_folders_of_the_machine(place: Place) -> None:
    (place.folder / "data").mkdir()
    (place.folder / "data" / "x").write_text("data\n")
    (place.folder / "odd, name").mkdir()
    (place.folder / "odd, name" / "y").write_text("odd\n")
    (place.folder / "store").mkdir()
    options = "channels: {inputs: [train], outputs: [model]}"
    commands = (
        "cat /mnt/data/x; touch /mnt/data/z 2>/dev/null || echo read-only; echo kept >/mnt/kept/file; "
        "echo $PAI_OUTPUT_MODEL; echo made >$PAI_OUTPUT_MODEL/file"
    )
    text = place.job(role(commands), options=options).replace(
        "extras:\n", "extras:\n  storages: [{name: keep, mountPath: /mnt/kept}]\n"
    )
    settings = {
        "PAILOT_CONTAINER_MOUNTS": f"{place.folder}/data:/mnt/data:ro",
        "PAILOT_STORAGE_FOLDERS": f"keep={place.folder}/store",
    }
    done = place.run_with(settings, text, "--quiet")
    assert (done.status, done.lines) == (0, ["data", "read-only", "/ml/output/model/"]), done
    assert (place.folder / "store" / "file").read_text() == "kept\n"
    assert (place.jobs()[0] / "attempts" / "0" / "ml" / "output" / "model" / "file").read_text() == "made\n"
    done = place.run(text)
    assert "no folder is set for the storage 'keep'" in done.err
    odd = place.run(place.job(role("cat y")), "--quiet", "--workdir", str(place.folder / "odd, name"))
    assert (odd.status, odd.out) == (0, "odd\n")
    assert "would hide the image's own" in place.run(text, "--workdir", "/usr").err


SERVERS = """\
python3 - <<'END'
import http.server, os, pathlib, socket, threading
pathlib.Path("page").write_text("of the container\\n")
given = int(os.environ["PAI_CONTAINER_HOST_data_PORT_LIST"])
def serve(place):
    made = http.server.ThreadingHTTPServer(place, http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=made.serve_forever).start()
    return made.server_port
serve(("", given))
print(serve(("", 0)), serve(("127.0.0.1", 0)), flush=True)
END"""


@pytest.mark.parametrize("network", ["bridge", "host"])
def test_ports_of_a_container_are_forwarded(place: Place, network: str) -> None:
    """One that the job was given, one that it chose itself; none of this machine and none of another container."""
    more = {"PAILOT_CONTAINER_NETWORK": network}
    process = place.start(place.job(role(SERVERS), name="serving"), "--quiet", **more)
    elsewhere = socket.create_server(("127.0.0.1", 0))
    try:
        assert process.stdout
        chosen, inside = process.stdout.readline().split()
        for wanted in ("data", chosen):
            assert forwarded(place, wanted) == b"of the container\n", wanted
        refused = place.pailot("forward", "serving", "main", "0", str(elsewhere.getsockname()[1]))
        assert (refused.status != 0, "is not one of main:0 of 'serving'" in refused.err) == (True, True), refused
        if network == "host":
            assert forwarded(place, inside) == b"of the container\n"
        else:
            refused = place.pailot("forward", "serving", "main", "0", inside)
            assert "only on 127.0.0.1 inside its container: let it listen on 0.0.0.0" in refused.err, refused
    finally:
        elsewhere.close()
        place.pailot("stop", "serving", "--now")
        process.communicate(timeout=SECONDS)


def forwarded(place: Place, wanted: str) -> bytes:
    """A page of a task, through `pailot forward`."""
    words = [sys.executable, "-m", "pailot", "forward", "serving", "main", "0", wanted, "--json"]
    process = subprocess.Popen(words, cwd=place.cwd, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    try:
        said = process.stdout.readline()
        assert said, process.communicate()
        with urlopen(f"http://127.0.0.1:{json.loads(said)['port']}/page", timeout=SECONDS) as page:
            found: bytes = page.read()
            return found
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)


def test_a_bridge_has_names_for_peers_and_publishes_ports(docker: Place) -> None:
    server = (
        "python3 - <<'END'\nimport os, socket\n"
        "server = socket.create_server(('', int(os.environ['PAI_CONTAINER_HOST_data_PORT_LIST'])))\nprint('up', flush=True)\n"
        "for _ in range(2):\n    print(server.accept()[0].recv(9).decode(), flush=True)\nEND"
    )
    client = (
        "python3 - <<'END'\nimport os, socket, time\n"
        "while True:\n    try:\n        socket.create_connection((os.environ['PAI_HOST_IP_ps_server_0'],"
        " int(os.environ['PAI_PORT_LIST_ps_server_0_data']))).sendall(b'a peer')\n        break\n"
        f"    except OSError:\n        time.sleep(0.05)\nprint(os.environ['PAI_HOST_IP_ps_server_0'])\nEND\n{SLEEP}"
    )
    process = docker.start(
        docker.job(role(server, "ps_server", succeeded=1), role(client, "client")), "--quiet", PAILOT_CONTAINER_NETWORK="bridge"
    )
    assert process.stdout
    seen = {process.stdout.readline(), process.stdout.readline(), process.stdout.readline()}
    assert seen == {"[ps_server:0] up\n", "[ps_server:0] a peer\n", "[client:0] ps-server-0\n"}, process.communicate()
    port = docker.show()["taskRoles"]["ps_server"]["tasks"][0]["ports"]["data"][0]
    with socket.create_connection(("127.0.0.1", port)) as outside:
        outside.sendall(b"the host")
    out, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (0, "[ps_server:0] the host\n")
    docker.nothing_left()
    assert "pailot-" not in docker.engine.run("network", "ls").stdout


def test_a_container_has_the_images_environment_and_no_secret_is_told_to_the_engine(docker: Place) -> None:
    text = docker.job(
        role(f"t='<% $secrets.token %>'; echo \"[${{MINE-}}]\" $HOME ${{#t}}; echo ready; {SLEEP}"),
        more="secrets: {token: hunter2-hunter2}",
        options="environment: {GIVEN: hunter2-hunter2}",
    )
    process = docker.start(text, "--quiet", MINE="mine")
    ready(process, "[] /root 15\n")
    ready(process)
    (container,) = docker.engine.containers()
    told = docker.engine.run("inspect", container).stdout
    assert "hunter2" not in told
    assert '"pailot.task": "main:0"' in told
    for pid in processes_with(str(docker.folder)):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        assert b"hunter2" not in words
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)
    for path in docker.jobs()[0].glob("attempts/**/*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes(), path


def test_files_belong_to_the_user_also_without_root(docker: Place) -> None:
    """As user nobody, through the socket that an administrator has opened."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing; enable this test with: sudo apt-get install util-linux")
    docker.engine.socket.chmod(0o666)
    docker.engine.folder.chmod(0o755)
    folder = containers.folder_for("nobody")
    mine = Place(folder, docker.engine)
    for each in (folder, mine.cwd):
        os.chown(each, 65534, 65534)
    (mine.cwd / "job.yaml").write_text(mine.job(role('id -u; echo mine >mine; touch "$HOME/x"; echo $USER; exit 4')))
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-m", "pailot", "run", "job.yaml"]
    try:
        done = subprocess.run(
            [*words, "--quiet"], cwd=mine.cwd, env=mine.environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert (done.returncode, done.stdout) == (1, "65534\nme\n"), done
        found = (mine.cwd / "mine").stat()
        assert (found.st_uid, found.st_gid) == (65534, 65534)
    finally:
        shutil.rmtree(folder)


# Faults


def counting(number: int) -> str:
    """A task that prints numbered lines until it may end, then ends with 7."""
    return (
        f"n=0; until [ -e go ]; do echo line $n; n=$((n + 1)); sleep 0.02; done; echo end $n; printf 'no newline'; exit {number}"
    )


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_the_daemon_is_killed_and_log_and_exit_code_are_whole_while_it_is_down(docker: Place, repetition: int) -> None:
    process = docker.start(docker.job(role(counting(7), retries=0)), "--quiet")
    ready(process, "line 0\n")
    docker.known_to_run()
    docker.engine.kill()
    try:
        ready(process, "line 1\n")
        (docker.cwd / "go").touch()
        assert process.stdout
        out = process.stdout.read()  # not `communicate`, which does not know what was read ahead
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 1, err
        lines = [f"line {n}" for n in range(2, 2 + out.count("line "))]
        assert out.splitlines() == [*lines, f"end {len(lines) + 2}", "no newline"]
        assert docker.show()["exitCode"] == 7
        assert "its daemon does not answer" in docker.run(docker.job(role("true"), name="other")).err
    finally:
        docker.engine.start()
    docker.nothing_left()


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_the_daemon_is_killed_and_comes_back_while_the_tasks_go_on(docker: Place, repetition: int) -> None:
    """With live-restore: not a line is missing or twice, nothing is tried again, and no container is left."""
    process = docker.start(docker.job(role(counting(7), retries=0)), "--quiet")
    ready(process, "line 0\n")
    docker.known_to_run()
    docker.engine.kill()
    ready(process, "line 1\n")
    docker.engine.start()
    ready(process, "line 2\n")
    assert process.stdout
    seen = [process.stdout.readline() for _ in range(20 + repetition)]
    (docker.cwd / "go").touch()
    out = "".join(seen) + process.stdout.read()
    _, err = process.communicate(timeout=SECONDS)
    events = json.loads(docker.pailot("events", "demo", "--json").out)
    assert [each["reason"] for each in events if each["event"] == "job-retry"] == [], err
    docker.nothing_left()
    lines = [f"line {n}" for n in range(3, 3 + out.count("line "))]
    assert out.splitlines() == [*lines, f"end {len(lines) + 3}", "no newline"]
    assert (docker.show()["exitCode"], docker.show()["attempt"]) == (7, 0)


def test_a_job_is_stopped_with_grace_although_the_daemon_is_down(docker: Place) -> None:
    process = docker.start(docker.job(role(f"trap 'echo saved; exit 0' TERM; echo ready; {SLEEP}")), "--quiet")
    ready(process)
    docker.known_to_run()
    docker.engine.kill()
    try:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, out) == (3, "saved\n"), err
    finally:
        docker.engine.start()
    docker.nothing_left()


def test_a_daemon_that_takes_its_containers_along_is_a_platform_failure(docker: Place) -> None:
    """Without live-restore, a restarted daemon ends what still runs; the job is tried again."""
    docker.engine.live_restore = False
    docker.engine.kill()
    docker.engine.start()
    try:
        process = docker.start(docker.job(role(counting(0)), options="graceSeconds: 5"), "--quiet")
        ready(process, "line 0\n")
        docker.known_to_run()
        docker.engine.kill()
        docker.engine.start()
        events = wait_for(
            lambda: [each for each in json.loads(docker.pailot("events", "demo", "--json").out) if each["event"] == "job-retry"],
            SECONDS,
            "another attempt",
        )
        assert "from outside, not by Pailot" in events[0]["reason"]
        (docker.cwd / "go").touch()
        out, _ = process.communicate(timeout=SECONDS)
        assert (process.returncode, out.splitlines()[-1]) == (0, "no newline")
    finally:
        docker.engine.live_restore = True
        docker.engine.kill()
        docker.engine.start()
    docker.nothing_left()


def test_a_container_that_is_removed_from_outside_is_tried_again(place: Place) -> None:
    process = place.start(place.job(role(f"echo ready $FC_FRAMEWORK_ATTEMPT_ID; {SLEEP}")), "--quiet")
    ready(process, "ready 0\n")
    (container,) = place.engine.containers()
    place.engine.run("rm", "--force", container)
    ready(process, "ready 1\n")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)
    assert "from outside, not by Pailot" in place.pailot("why", "demo").out
    place.nothing_left()


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_whoever_is_killed_no_container_is_left(place: Place, repetition: int) -> None:
    marker = f"marker-{place.folder.name}"
    commands = f"(setsid bash -c 'trap \"\" TERM HUP; {SLEEP}' {marker} >/dev/null 2>&1 </dev/null &); echo ready; {SLEEP}"
    process = place.start(place.job(role(commands, instances=2), options="graceSeconds: 1"))
    assert process.stdout
    for _ in range(2):
        process.stdout.readline()
    shims = [int(word) for word in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    victims = [process.pid, *shims] if repetition % 2 == 0 else [shims[0], process.pid]
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    no_process_left(marker, SECONDS)
    assert wait_for(lambda: place.show()["state"] in ("STOPPED", "FAILED"), SECONDS, "its end")
    place.nothing_left()


def test_a_killed_shim_is_a_platform_failure_and_leaves_no_container(place: Place) -> None:
    process = place.start(place.job(role(f"echo ready $FC_FRAMEWORK_ATTEMPT_ID; {SLEEP}")), "--quiet")
    ready(process, "ready 0\n")
    (shim,) = [int(word) for word in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    os.kill(shim, signal.SIGKILL)
    ready(process, "ready 1\n")
    wait_for(lambda: len(place.engine.containers()) == 1, SECONDS, "the removal of the first container")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)
    place.nothing_left()


# Examples, and a server


@pytest.fixture
def named_as_in_examples(docker: Place) -> Iterator[Place]:
    """Our image under the names that the examples use."""
    names = ("debian:12-slim", "python:3.11-slim")
    for name in names:
        docker.engine.run("tag", IMAGE, name)
    docker.environment["PAILOT_IMAGE_PULL"] = "never"
    yield docker
    docker.engine.run("rmi", *names)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("hello", "Hello from task 0 of worker"),
        ("parameter-server", "[ps_server:0] the total is 520.0"),
        ("training", "[trainer:1] task 1, attempt 1, begins at round 20"),
        ("prerequisites", "[sum:0] sum 55"),
        ("deployment", "trained"),
        ("legacy-v1", "[worker:1] worker 1"),
        ("library", "somebody works on me~from-the-library"),
    ],
)
def test_the_examples_run_in_containers(named_as_in_examples: Place, name: str, line: str) -> None:
    home = named_as_in_examples
    shutil.copytree(Path(__file__).parents[2] / "examples" / name, home.cwd, dirs_exist_ok=True)
    done = home.pailot("run", next(home.cwd.glob("job.*")).name, "--quiet", *(["--library", "."] if name == "library" else []))
    assert (done.status, line in done.lines) == (0, True), done


def test_a_server_runs_jobs_in_containers(docker: Place, tmp_path: Path) -> None:
    from ..support.servers import Server, submit

    server = Server(tmp_path / "server", PAILOT_ENGINE="docker", **docker.engine.environment)
    try:
        me = server.client(tmp_path / "me")
        done = submit(me, docker.job(role("until [ -e go ]; do touch up; sleep 0.05; done; echo gone; exit 6")))
        assert done.status == 0, done
        work = wait_for(
            lambda: list((tmp_path / "server").glob("home/jobs/*/attempts/0/tasks/main-0/work/up")), SECONDS, "a task"
        )[0]
        server.kill()  # the task goes on without it
        server.start()
        work.with_name("go").touch()
        assert me.pailot("wait", "demo", timeout=SECONDS).status == 1
        assert me.pailot("logs", "demo").out == "gone\n"
        missing = submit(me, docker.job(role("true"), name="missing", image="localhost:1/no/such"))
        assert missing.status == 0
        assert me.pailot("wait", "missing", timeout=SECONDS).status == 1
        assert "cannot be pulled" in me.pailot("why", "missing").out
    finally:
        server.close()
    docker.nothing_left()


def test_a_task_that_ends_its_own_container_is_no_platform_failure(place: Place) -> None:
    """It kills all it can, or sends the first process the signal that `docker stop` would: nothing is tried again for free."""
    for number, words in enumerate(
        ("kill -9 -1; sleep 60", "kill -TERM 1; sleep 0.2; exit 9", "echo nonsense >&4; kill -9 $PPID")
    ):
        done = place.run(place.job(role(words), name=f"own{number}"))
        assert done.status == 1, done
        shown = json.loads(place.pailot("show", f"own{number}", "--json").out)
        assert (shown["attempt"], shown["retries"]) == (0, 0), shown
    place.nothing_left()


def test_a_container_reaches_nothing_of_the_server_and_what_it_spoils_is_its_own(docker: Place, tmp_path: Path) -> None:
    """A task that is root inside puts a link to a file of the server's in place of all that it can change, twice."""
    from ..support.servers import Server, submit

    canary = tmp_path / "canary"
    canary.write_text("canary-of-root")
    spoil = f"""set +e
for each in keys server.db keeper.log jobs/../keeper.lock; do [ ! -e {tmp_path}/server/home/$each ] || echo "sees $each"; done
echo '{{"command": ["sh", "-c", "echo spoilt >{canary}"], "name": "x", "memory": "", "folders": ["/"]}}' >/tmp/evil
for folder in $(find {tmp_path}/server -type d); do
  for name in stdout stderr all stdout.pipe stderr.pipe events control main.sh main.env exit.sh exit.env inside.sh \\
      main.end told how exit.json final.json environment container.json cgroup.json stop.json kill attempts/1/stdout; do
    mkdir -p $folder/attempts/1
    rm -rf $folder/$name && ln -s {canary} $folder/$name
    case $name in container.json|cgroup.json) rm -f $folder/$name; cp /tmp/evil $folder/$name;; esac
  done
done 2>/dev/null
echo "attempt $FC_TASK_ATTEMPT_ID"
exit 1
"""
    server = Server(tmp_path / "server", PAILOT_ENGINE="docker", **docker.engine.environment)
    try:
        me = server.client(tmp_path / "me")
        assert (
            submit(me, docker.job(role("until [ -e go ]; do touch up; sleep 0.05; done; echo fine"), name="beside")).status == 0
        )
        up = wait_for(lambda: list((tmp_path / "server").glob("home/jobs/*/attempts/0/tasks/main-0/work/up")), SECONDS, "a task")
        text = docker.job(
            role(spoil, retries=1, listed="last"),
            name="spoils",
            prerequisites="  - {name: last, type: script, callbacks: [{event: containerExit, commands: [echo last]}]}",
        )
        assert submit(me, text).status == 0
        assert me.pailot("wait", "spoils", timeout=SECONDS).status == 1
        log = me.pailot("logs", "spoils").out
        assert "attempt 1" in log
        assert "sees" not in log
        assert "canary-of-root" not in log
        for words in (["show", "spoils"], ["why", "spoils"], ["ps"], ["events", "spoils"]):
            done = me.pailot(*words)
            assert done.status == 0, done
            assert "canary-of-root" not in done.out
        up[0].with_name("go").touch()
        assert me.pailot("wait", "beside", timeout=SECONDS).status == 0
        assert canary.read_text() == "canary-of-root"
    finally:
        server.close()
    docker.nothing_left()


# The documentation


def test_the_page_about_containers_is_true(docker: Place) -> None:
    """Its `shell` blocks are read as the `console` blocks of other pages; the image in them is one of ours."""
    from ..support.documentation import ROOT, Desk, blocks_of, commands_of, matches

    docker.engine.run("tag", IMAGE, "python:3.12-slim")
    desk = Desk(docker.folder / "desk")
    desk.environment |= docker.engine.environment
    try:
        for block in blocks_of((ROOT / "docs/how-to/run-in-containers.md").read_text()):
            if block.title:
                desk.write(block)
            for command in commands_of(block) if block.language == "shell" else ():
                output, status = desk.run(command.text)
                assert matches(command.output, output), "\n".join([command.text, *output])
                assert status == command.status
    finally:
        desk.close()
        docker.engine.run("rmi", "python:3.12-slim")


def test_every_container_setting_has_its_place_in_the_list() -> None:
    from pailot.engines.docker import settings
    from pailot.settings import SETTINGS

    assert settings.read().network == "host"
    assert {"container_command", "container_network", "image_pull"} <= {setting.name for setting in SETTINGS}


def test_a_registrys_password_in_the_file_is_used_kept_sealed_and_never_shown(docker: Place, tmp_path: Path) -> None:
    """By a run and its repetition, and by a server and its `rerun`, each of which has to pull the image."""
    from ..parts.canaries import Canaries, found_below, found_in
    from ..parts.registry import Registry
    from ..support.http_server import Server

    password = "cAn4ryZregistry9x"
    with Registry(tmp_path, "ann", password) as registry:
        image = f"{registry.address}/team/canary:1"
        registry.push(docker.engine, IMAGE, image)
        made = Canaries(image=image, registry=password)
        text = made.job.replace("registryuri: registry.example", f"registryuri: '{registry.address}'")
        docker.environment |= registry.trusted(docker.engine)
        docker.engine.run("rmi", "--force", image)
        done = docker.run(text)
        assert done.status == 0, done
        docker.engine.run("rmi", "--force", image)
        again = docker.pailot("rerun", "canaries")
        assert again.status == 0, again
        assert f"pulling the image {image}" in again.err
        assert found_in((done.out + done.err + again.out + again.err).encode(), made.texts.values()) == []
        assert found_below(docker.folder / "home", made.texts.values()) == {}
        with Server(
            tmp_path / "server",
            "--stop-jobs",
            "--engine",
            "docker",
            **docker.engine.environment,
            **registry.trusted(docker.engine),
        ) as server:
            for name in ("first", "second"):
                docker.engine.run("rmi", "--force", image)
                if name == "first":
                    assert server.submit(text.replace("name: canaries", "name: first")).status == 202
                else:
                    assert server.ask("POST", "/jobs/admin~first/rerun", {"name": name}).status < 300
                assert server.wait(name)["jobStatus"]["state"] == "SUCCEEDED", server.get(f"/jobs/admin~{name}/why").text
                for path in ("", "/config", "/plan", "/journal", "/why", "/logs/main/0"):
                    assert found_in(server.get(f"/jobs/admin~{name}{path}").body, made.texts.values()) == [], path
            assert found_below(server.home, made.texts.values()) == {}
        docker.engine.run("rmi", "--force", image)
    docker.nothing_left()
