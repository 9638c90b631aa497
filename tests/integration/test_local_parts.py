"""The parts of the local engine between real processes: locks that outlive a parent, GPUs that are waited for, fetching."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from pailot.data.location import ProvideError
from pailot.data.provisions import bring_code, provide
from pailot.engines.preparation.gpus import Gpus, discover
from pailot.engines.preparation.machine import MachineLocks, locks_folder
from pailot.engines.preparation.ports import Ports, PortTaken
from pailot.planning import Plan, plan
from pailot.planning.private_values import secret_values
from pailot.protocol import read

from ..support.web_server import WebServer

# A process that does what it is told, line by line.
OTHER = """
import os, select, subprocess, sys
from pailot.engines.preparation.gpus import Gpus, GpusBusy, discover
from pailot.engines.preparation.machine import locks_folder
from pailot.engines.preparation.ports import Ports

def child(descriptor):
    "Fork one that lives until the descriptor's other end is closed."
    if os.fork() == 0:
        os.read(descriptor, 1)
        os._exit(0)

def wait_for_one(gpus):
    "Sleep until one of the GPUs that were busy is given back."
    with gpus.released() as sign:
        if not sign.is_set():
            select.select([sign], [], [])
        return sign.is_set()

def rounds(count, folder):
    "Take a GPU again and again; a file says that it is ours alone."
    for _ in range(count):
        gpus = Gpus(discover("2"), "me")
        while True:
            try:
                (gpu,) = gpus.take(1)
                break
            except GpusBusy:
                wait_for_one(gpus)
        mine = os.path.join(folder, str(gpu.index))
        os.close(os.open(mine, os.O_CREAT | os.O_EXCL))
        os.unlink(mine)
        gpus.close()
    return count

for line in sys.stdin:
    try:
        answer = eval(line)
    except (Exception, KeyboardInterrupt) as error:
        answer = f"{type(error).__name__}: {error}"
    print(repr(answer), flush=True)
"""


class Other:
    """Another process with the same folder for locks."""

    def __init__(self, *descriptors: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=descriptors
        )

    def tell(self, code: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, code: str) -> Any:
        self.tell(code)
        return eval(self.hear())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "locks"
    monkeypatch.setenv("PAILOT_LOCKS", str(folder))
    return folder


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """A wait that nobody ends fails the test."""

    def late(*_: object) -> None:
        raise TimeoutError("the test waits for something that does not come")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def others() -> Iterator[Callable[..., Other]]:
    started: list[Other] = []

    def start(*descriptors: int) -> Other:
        started.append(Other(*descriptors))
        return started[-1]

    yield start
    for each in started:
        each.kill()


# Locks


def test_processes_that_compete_are_given_different_ports(others: Callable[..., Other], span: Callable[[int], range]) -> None:
    ports = span(800)
    crowd = [others() for _ in range(4)]
    for each in crowd:
        assert each.ask(f"globals().update(ports=Ports([{ports!r}]))") is None
    for each in crowd:
        each.tell("sum((ports.take(10) for _ in range(20)), [])")
    taken = [port for each in crowd for port in eval(each.hear())]
    assert len(taken) == len(set(taken)) == 800
    assert "NoPorts" in crowd[0].ask("ports.take(1)")
    crowd[1].kill()
    assert len(crowd[0].ask("ports.take(200)")) == 200


def test_ports_outlive_the_parent_with_its_forked_child_and_no_longer(
    others: Callable[..., Other], span: Callable[[int], range]
) -> None:
    first, second, third = span(3)
    life, end = os.pipe()
    other = others(life)
    other.ask("globals().update(ports=Ports())")
    assert other.ask(f"ports.take_exactly({first}, 3)") == [first, second, third]
    assert other.ask(f"child({life})") is None
    os.close(life)
    other.process.kill()
    other.process.wait()  # its output stays open: the child has it
    ports = Ports()
    with pytest.raises(PortTaken, match=f"port {second} is reserved by another run"):
        ports.take_exactly(second)
    os.close(end)
    freed = MachineLocks("ports")
    freed.wait(second)
    freed.close()
    assert ports.take_exactly(first, 3) == [first, second, third]
    ports.close()


def test_a_program_started_by_exec_keeps_no_port(others: Callable[..., Other], span: Callable[[int], range]) -> None:
    (port,) = span(1)
    life, end = os.pipe()
    other = others(life)
    other.ask("globals().update(ports=Ports())")
    other.ask(f"ports.take_exactly({port})")
    assert other.ask(f"subprocess.Popen(['cat'], stdin={life}).pid") > 0
    other.process.kill()
    other.process.wait()
    ports = Ports()
    assert ports.take_exactly(port) == [port]
    ports.close()
    for descriptor in (life, end):
        os.close(descriptor)


def test_many_that_make_the_folder_at_once_agree_on_it(others: Callable[..., Other], locks: Path) -> None:
    crowd = [others() for _ in range(6)]
    for each in crowd:
        each.ask("1")  # it has started
    for each in crowd:
        each.tell("(Ports().take(50), locks_folder())[1]")
    assert {eval(each.hear()) for each in crowd} == {str(locks)}
    assert locks.lstat().st_mode & 0o7777 == 0o1777
    assert [path.name for path in locks.parent.iterdir()] == ["locks"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("first", [0, 65534])
def test_users_share_ports_and_gpus(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import _socket  # noqa: F401  # while we may read it
    import errno  # noqa: F401
    import select  # noqa: F401

    def run_as(user: int, work: Callable[[], None]) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                os.umask(0o077)
                os.setuid(user)
                work()
                os._exit(0)
            except BaseException as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
            finally:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def take() -> None:
        Ports().take(3)
        Gpus(discover("2"), f"user {os.getuid()}").take(2)

    def take_privileged() -> None:
        with pytest.raises(PortTaken, match="port 1 may only be used by root"):
            Ports().take_exactly(1)

    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o777)
    monkeypatch.setenv("PAILOT_LOCKS", f"{folder}/locks")
    try:
        for user in (first, 65534 - first, first):
            assert run_as(user, take) == 0
        assert Path(f"{folder}/locks/gpu-1.holder").read_text() == f"user {first}"
        assert run_as(65534, take_privileged) == 0
    finally:
        shutil.rmtree(folder)


# GPUs


def test_a_gpu_has_one_owner_who_is_named(others: Callable[..., Other]) -> None:
    ann, bob = others(), others()
    for each, name in ((ann, "ann~train"), (bob, "bob~test")):
        each.ask(f"globals().update(gpus=Gpus(discover('2'), '{name}'))")
    assert ann.ask("[gpu.index for gpu in gpus.take(1)]") == [0]
    assert bob.ask("gpus.take(2)") == "GpusBusy: GPU 0 is held by ann~train"
    bob.tell("wait_for_one(gpus)")
    ann.kill()
    assert bob.hear() == "True"
    assert bob.ask("[gpu.index for gpu in gpus.take(2)]") == [0, 1]


def test_whichever_gpu_comes_free_first_ends_the_wait(others: Callable[..., Other]) -> None:
    long, short, waiting = others(), others(), others()
    for each, name in ((long, "long"), (short, "short"), (waiting, "waiting")):
        each.ask(f"globals().update(gpus=Gpus(discover('2'), '{name}'))")
    assert long.ask("len(gpus.take(1))") == short.ask("len(gpus.take(1))") == 1
    assert "GPU 0 is held by long, GPU 1 is held by short" in waiting.ask("gpus.take(1)")
    waiting.tell("wait_for_one(gpus)")
    short.kill()
    assert waiting.hear() == "True"
    assert waiting.ask("[gpu.index for gpu in gpus.take(1)]") == [1]


def test_gpus_outlive_the_parent_with_its_forked_child_and_no_longer(others: Callable[..., Other]) -> None:
    life, end = os.pipe()
    other, waiting = others(life), others()
    other.ask("globals().update(gpus=Gpus(discover('1'), 'ann'))")
    assert other.ask("len(gpus.take(1))") == 1
    assert other.ask(f"child({life})") is None
    os.close(life)
    other.process.kill()
    other.process.wait()
    waiting.ask("globals().update(gpus=Gpus(discover('1'), 'bob'))")
    assert waiting.ask("gpus.take(1)") == "GpusBusy: GPU 0 is held by ann"
    waiting.tell("wait_for_one(gpus)")
    os.close(end)
    assert waiting.hear() == "True"
    # A dying process lets go of one descriptor after the other: the sign may be gone a moment before the lock.
    while (answer := waiting.ask("len(gpus.take(1))")) != 1:
        assert "held by ann" in str(answer)
        waiting.ask("wait_for_one(gpus)")


def test_a_signal_ends_the_wait(others: Callable[..., Other]) -> None:
    holder = Gpus(discover("1"), "ann")
    holder.take(1)
    waiting = others()
    waiting.ask("globals().update(gpus=Gpus(discover('1'), 'bob'))")
    waiting.tell("(print('now', flush=True), wait_for_one(gpus))")
    assert waiting.hear() == "now"
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.hear() == "'KeyboardInterrupt: '"
    holder.close()


def test_nobody_waits_for_ever_and_nobody_shares(others: Callable[..., Other], tmp_path: Path) -> None:
    crowd = [others() for _ in range(5)]
    for each in crowd:
        each.tell(f"rounds(40, {str(tmp_path)!r})")
    assert [each.hear() for each in crowd] == ["40"] * 5


# Fetching

CONTENT = b"weights " * 50_000
SUM = hashlib.sha256(CONTENT).hexdigest()


class Shelf:
    """A web server with one file; remembers what was asked and answered."""

    def __init__(self) -> None:
        self.content, self.tag = CONTENT, '"1"'
        self.cut = 0
        self.answers: list[int] = []
        self.logins: list[str | None] = []
        self.server = WebServer(self.answer)
        self.host = self.server.host
        self.url = f"http://{self.host}/files/model.bin"
        self.close = self.server.close

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.logins.append(request.headers.get("Authorization"))
        there = request.path.startswith("/files/model.bin")
        same = bool(self.tag) and request.headers.get("If-None-Match") == self.tag
        status = 304 if there and same else 200 if there else 404
        self.answers.append(status)
        request.send_response(status)
        if status == 200:
            request.send_header("Content-Length", str(len(self.content)))
            if self.tag:
                request.send_header("ETag", self.tag)
        request.end_headers()
        if status == 200:
            request.wfile.write(self.content[: len(self.content) - self.cut])


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    made = Shelf()
    yield made
    made.close()


def job_text(*uris: str, sha256: str = "", secrets: dict[str, str] | None = None, plugins: Any = (), **options: Any) -> str:
    """A job with two roles that fetch these."""
    fetch = {"name": "data", "type": "data", "plugin": "fetch", "uri": uris, **({"sha256": sha256} if sha256 else {})}
    role = {
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
        "commands": ["true"],
        "prerequisites": ["data"] if uris else [],
    }
    job = {
        "protocolVersion": 2,
        "name": "demo",
        "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "debian"}, *([fetch] if uris else [])],
        "secrets": secrets or {},
        "taskRoles": {"one": role, "two": role},
        "extras": {"pailot": options, "com.microsoft.pai.runtimeplugin": plugins},
    }
    return json.dumps(job)


def planned(*uris: str, **more: Any) -> Plan:
    return plan(read(job_text(*uris, **more)), user="ann")


def fetched(job: Plan, tmp_path: Path, cwd: str = "", secrets: dict[str, str] | None = None) -> Path:
    known = secret_values(secrets or {}, job)
    provided = provide(job, str(tmp_path / "attempt"), str(tmp_path / "cache"), secrets=known, cwd=cwd)
    assert provided["one"] == provided["two"]
    return Path(provided["one"]["PAI_FETCH_data"])


def test_a_file_is_fetched_once_and_kept(shelf: Shelf, tmp_path: Path) -> None:
    path = fetched(planned(shelf.url + "?version=2"), tmp_path)
    key = hashlib.sha256((shelf.url + "?version=2").encode()).hexdigest()
    assert path == tmp_path / "cache" / "fetch" / key / "model.bin"
    assert path.read_bytes() == CONTENT
    assert shelf.answers == [200]  # for both roles
    fetched(planned(shelf.url + "?version=2"), tmp_path)
    assert shelf.answers == [200, 304]


def test_what_has_changed_is_fetched_again(shelf: Shelf, tmp_path: Path) -> None:
    fetched(planned(shelf.url), tmp_path)
    shelf.content, shelf.tag = b"new", '"2"'
    assert fetched(planned(shelf.url), tmp_path).read_bytes() == b"new"
    assert shelf.answers == [200, 200]


def test_a_spoilt_copy_is_fetched_again(shelf: Shelf, tmp_path: Path) -> None:
    for sha256 in ("", SUM):
        path = fetched(planned(shelf.url, sha256=sha256), tmp_path)
        path.chmod(0o644)
        path.write_bytes(b"spoilt")
        assert fetched(planned(shelf.url, sha256=sha256), tmp_path).read_bytes() == CONTENT


def test_with_a_sum_the_copy_is_enough(shelf: Shelf, tmp_path: Path) -> None:
    fetched(planned(shelf.url, sha256=SUM), tmp_path)
    fetched(planned(shelf.url, sha256=SUM), tmp_path)
    assert shelf.answers == [200]


def test_when_nobody_answers_the_old_copy_serves(shelf: Shelf, tmp_path: Path) -> None:
    job = planned(shelf.url)
    fetched(job, tmp_path)
    shelf.close()
    assert fetched(job, tmp_path).read_bytes() == CONTENT
    with pytest.raises(ProvideError, match=r"127.0.0.1:\d+/files/other: .*refused"):
        fetched(planned(shelf.url.replace("model.bin", "other")), tmp_path)


def test_a_wrong_sum_is_said_and_nothing_kept(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(ProvideError, match=f"model.bin: is not what it should be: its SHA-256 sum is {SUM}, the job wants 0000"):
        fetched(planned(shelf.url, sha256="0" * 64), tmp_path)
    assert [path.suffix for path in (tmp_path / "cache" / "fetch").iterdir()] == [".lock"]


def test_a_broken_connection_is_no_file(shelf: Shelf, tmp_path: Path) -> None:
    shelf.cut = 100_000
    with pytest.raises(ProvideError, match="the connection broke off after 300000 of 400000 bytes"):
        fetched(planned(shelf.url), tmp_path)
    assert [path.suffix for path in (tmp_path / "cache" / "fetch").iterdir()] == [".lock"]


def test_what_the_server_says_is_passed_on(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(ProvideError, match=f"http://{shelf.host}/nothing: the server answered 404 Not Found"):
        fetched(planned(f"http://{shelf.host}/nothing"), tmp_path)
    with pytest.raises(ProvideError, match="http://"):
        fetched(planned("http://"), tmp_path)


FETCHER = """
import sys
from pailot.data.provisions import provide
from pailot.planning import plan
from pailot.protocol import read

job = plan(read(sys.stdin.read()))
print(provide(job, "attempt", sys.argv[1])["one"]["PAI_FETCH_data"])
"""


def test_processes_that_need_the_same_fetch_it_once(shelf: Shelf, tmp_path: Path) -> None:
    shelf.tag = ""  # so that nobody can ask whether it has changed
    folder = tmp_path / "cache" / "fetch"
    folder.mkdir(parents=True)
    key = hashlib.sha256(shelf.url.encode()).hexdigest()
    lock = os.open(folder / f"{key}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    crowd = []
    for _ in range(4):
        command = [sys.executable, "-c", FETCHER, str(tmp_path / "cache")]
        crowd.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert crowd[-1].stdin
        crowd[-1].stdin.write(job_text(shelf.url))
        crowd[-1].stdin.close()
        crowd[-1].stdin = None
    while Path("/proc/locks").read_text().count(f":{os.fstat(lock).st_ino} ") < 5:
        os.sched_yield()  # until all of them wait behind us
    os.close(lock)
    paths = {each.communicate()[0] for each in crowd}
    assert len(paths) == 1
    assert Path(paths.pop().strip()).read_bytes() == CONTENT
    assert shelf.answers == [200]


def test_a_login_travels_in_a_header_and_a_secret_in_no_message(shelf: Shelf, tmp_path: Path) -> None:
    secrets = {"word": "hush/hush"}
    job = planned(
        f"http://ann:<% $secrets.word %>@{shelf.host}/files/model.bin?t=<% $secrets.word %>", secrets={"word": "hushhush"}
    )
    assert fetched(job, tmp_path, secrets={"word": "hushhush"}).read_bytes() == CONTENT
    assert shelf.logins == ["Basic YW5uOmh1c2hodXNo"]
    assert not [path for path in (tmp_path / "cache").rglob("*") if "hush" in str(path)]
    for uri in (
        f"http://{shelf.host}/no/<% $secrets.word %>",
        "http://ann:<% $secrets.word %>",
        "nosuch://<% $secrets.word %>/a",
    ):
        with pytest.raises(ProvideError) as caught:
            fetched(planned(uri, secrets=secrets), tmp_path, secrets=secrets)
        assert "hush" not in str(caught.value)
        assert "<% $secrets.word %>" in str(caught.value)
    with pytest.raises(ProvideError, match=r"<% \$secrets.word %>: there is no secret 'word'"):
        fetched(planned("http://<% $secrets.word %>", secrets=secrets), tmp_path)


def test_what_is_here_is_used_where_it_is(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    data.mkdir()
    (data / "set").write_bytes(CONTENT)
    assert fetched(planned(str(data)), tmp_path) == data
    assert fetched(planned("my data/set", sha256=SUM), tmp_path, cwd=str(tmp_path)) == data / "set"
    assert fetched(planned(f"file://{str(data).replace(' ', '%20')}/set"), tmp_path) == data / "set"
    assert not (tmp_path / "cache").exists()
    with pytest.raises(ProvideError, match=r"my data/none: there is no such file \(.*/my data/none\)"):
        fetched(planned("my data/none"), tmp_path, cwd=str(tmp_path))
    with pytest.raises(ProvideError, match="is a folder, of which there is no SHA-256 sum"):
        fetched(planned(str(data), sha256=SUM), tmp_path)
    with pytest.raises(ProvideError, match="is not what it should be"):
        fetched(planned(str(data / "set"), sha256="0" * 64), tmp_path)


def test_any_fsspec_address_serves_files_and_folders(tmp_path: Path) -> None:
    import fsspec

    for name, text in (("a.txt", b"A"), ("sub/b.txt", b"B")):
        with fsspec.open(f"memory://shelf/{name}", "wb") as stream:
            stream.write(text)
    path = fetched(planned("memory://shelf/a.txt"), tmp_path)
    assert (path.name, path.read_bytes()) == ("a.txt", b"A")
    before = path.stat().st_ino
    assert fetched(planned("memory://shelf/a.txt"), tmp_path).stat().st_ino == before
    folder = fetched(planned("memory://shelf"), tmp_path)
    assert (folder / "sub" / "b.txt").read_bytes() == b"B"
    with fsspec.open("memory://shelf/sub/c.txt", "wb") as stream:
        stream.write(b"C")
    assert fetched(planned("memory://shelf"), tmp_path) == folder
    assert (folder / "sub" / "c.txt").read_bytes() == b"C"
    with pytest.raises(ProvideError, match="memory://shelf/none: there is no such file"):
        fetched(planned("memory://shelf/none"), tmp_path)
    with pytest.raises(ProvideError, match=r"nosuch://a/b: .*nosuch"):
        fetched(planned("nosuch://a/b"), tmp_path)


def test_without_fsspec_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ProvideError, match=r"memory://a/b: to fetch from memory:// install fsspec: pip install '.*\[storage\]'"):
        fetched(planned("memory://a/b"), tmp_path)


# The key of the job


def test_a_job_has_one_key_that_ssh_accepts(tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen here")
    job = planned(plugins=[{"plugin": "ssh", "parameters": {"jobssh": True}}])
    provided = provide(job, str(tmp_path), str(tmp_path / "cache"))
    key = Path(provided["one"]["PAI_JOB_SSH_KEY"])
    assert provided["two"]["PAI_JOB_SSH_KEY"] == str(key)
    assert (key.stat().st_mode & 0o777, key.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    public = subprocess.run(["ssh-keygen", "-y", "-f", key], capture_output=True, text=True, check=True).stdout
    assert public.split()[:2] == key.with_suffix(".pub").read_text().split()[:2]
    assert provide(job, str(tmp_path), str(tmp_path / "cache")) == provided


def test_without_ssh_keygen_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProvideError, match="needs ssh-keygen; install it"):
        provide(planned(plugins=[{"plugin": "ssh", "parameters": {"jobssh": True}}]), str(tmp_path), "")


# Code


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in (
        "train/main.py",
        "train/deep/model.py",
        "train/deep/model.pyc",
        "train/data/big.bin",
        "train/keep.pyc",
        "other.txt",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "train" / ".pailotignore").write_text("# not these\n*.pyc\n!keep.pyc\n/data/\n\ndeep/**/none\n")
    (folder / "train" / "inside").symlink_to("deep/model.py")
    (folder / "train" / "outside").symlink_to("../other.txt")
    os.mkfifo(folder / "train" / "fifo")
    return folder


def works_for(tmp_path: Path, *names: str) -> dict[tuple[str, int], str]:
    works = {}
    for name in names:
        (tmp_path / "works" / name).mkdir(parents=True)
        works[name, 0] = str(tmp_path / "works" / name)
    return works


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def linked_from(folder: Path) -> set[str]:
    """The names beside a folder that are links to what is in it."""
    return {
        each.name for each in folder.parent.iterdir() if each.is_symlink() and each.readlink() == Path(folder.name, each.name)
    }


def test_each_private_directory_gets_a_copy_of_the_code(project: Path, tmp_path: Path) -> None:
    works = works_for(tmp_path, "one", "two")
    Path(works["one", 0], "train").symlink_to(project / "train")
    for _ in range(2):
        bring_code(planned(code="train"), works, "", cwd=str(project))
    for work in works.values():
        copied = Path(work, "train")
        assert linked_from(copied) == set(os.listdir(copied)) == set(os.listdir(work)) - {"train"}
        assert files_below(copied) == [".pailotignore", "deep/model.py", "inside", "keep.pyc", "main.py", "outside"]
        assert (copied / "inside").readlink() == Path("deep/model.py")
        assert (copied / "outside").read_text() == "other.txt"
    Path(works["one", 0], "train", "main.py").write_text("changed")
    assert (project / "train" / "main.py").read_text() == "train/main.py"


def test_the_current_directory_as_code_comes_with_its_contents_but_not_our_home(project: Path, tmp_path: Path) -> None:
    works = works_for(project, "one", "two")
    (project / "home").mkdir()
    (project / "home" / "jobs").write_text("ours")
    Path(works["one", 0], "other.txt").symlink_to(project / "other.txt")
    bring_code(
        planned(code="."), works, "", cwd=str(project), leave_out=[str(project / "home"), str(project / "works"), "nowhere"]
    )
    for work in works.values():
        assert sorted(os.listdir(work)) == ["other.txt", "train"]
        assert not Path(work, "other.txt").is_symlink()


def test_a_copy_into_itself_ends(project: Path) -> None:
    works = works_for(project, "one")
    bring_code(planned(code="."), works, "", cwd=str(project))
    assert Path(works["one", 0], "train", "main.py").exists()


def test_the_users_own_directory_is_left_as_it_is(project: Path, tmp_path: Path) -> None:
    shared = {("one", 0): str(project), ("two", 0): str(project)}
    before = files_below(project)
    for code in ("train", "./train/", ".", str(project / "train")):
        bring_code(planned(code=code), shared, "", cwd=str(project), private=False)
    assert files_below(project) == before
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for _ in range(2):
        bring_code(planned(code="../project/train"), {("one", 0): str(elsewhere)}, "", cwd=str(elsewhere), private=False)
    assert (elsewhere / "train").readlink() == project / "train"
    (elsewhere / "train").unlink()
    (elsewhere / "train").mkdir()
    with pytest.raises(ProvideError, match=r"the working directory .* has another 'train' already"):
        bring_code(planned(code="../project/train"), {("one", 0): str(elsewhere)}, "", cwd=str(elsewhere), private=False)


def test_code_is_fetched_and_its_address_may_name_the_user(shelf: Shelf, tmp_path: Path) -> None:
    works = works_for(tmp_path, "one", "two")
    bring_code(planned(code=shelf.url), works, str(tmp_path / "cache"))
    assert Path(works["two", 0], "model.bin").read_bytes() == CONTENT
    assert shelf.answers == [200]
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "go.sh").write_text("true")
    bring_code(planned(code="${PAI_USER_NAME}"), works, "", cwd=str(tmp_path))
    assert Path(works["one", 0], "ann", "go.sh").read_text() == "true"


def test_code_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProvideError, match=r"nowhere: there is no such file \(.*/nowhere\)"):
        bring_code(planned(code="nowhere"), works_for(tmp_path, "one"), "", cwd=str(tmp_path))
    (tmp_path / "code").mkdir()
    with pytest.raises(ProvideError, match=r"the code code cannot be brought: .*File name too long"):
        bring_code(planned(code="code"), {("one", 0): str(tmp_path / ("x" * 300))}, "", cwd=str(tmp_path))


def test_the_folder_for_locks_is_that_of_the_setting(locks: Path) -> None:
    assert locks_folder() == str(locks)
