"""Shells, files and ports of tasks, through a real server and without one; terminals are real ones."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from pailot.client.api import Client
from pailot.client.errors import NotFound
from pailot.client.sockets import Closed
from pailot.install_lines import install_line
from pailot.testing.runs import Home, job, role

from ..support.servers import PASSWORD, Server, submit

PATIENCE = 60.0

SERVING = """\
python3 - <<'END'
import http.server, os, pathlib, threading
pathlib.Path("sub/deep").mkdir(parents=True)
pathlib.Path("result.txt").write_text("a result\\n")
pathlib.Path("large").write_bytes(os.urandom(1 << 20) * 3)
pathlib.Path("sub/deep/file").write_text("deep\\n")
os.symlink("/etc/passwd", "leads-out")
os.symlink("result.txt", "stays-inside")
given = int(os.environ[f"PAI_PORT_LIST_main_{os.environ['PAI_TASK_INDEX']}_data"])
own = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
pathlib.Path("port").write_text(str(own.server_port))
threading.Thread(target=own.serve_forever, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", given), http.server.SimpleHTTPRequestHandler).serve_forever()
END"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"), PAILOT_TASK_SESSIONS="3", PAILOT_CPUS="64")
    yield started
    started.close()


@pytest.fixture(scope="module")
def client(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Somebody who is logged in, with a job that serves."""
    home = server.client(tmp_path_factory.mktemp("client"))
    assert submit(home, job(role(SERVING), name="serving")).status == 0
    return home


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The same job, without a server; in a folder of its own, for there are two of it."""
    home = Home(tmp_path_factory.mktemp("local"))
    (home.cwd / "job.yaml").write_text(job(role(SERVING, instances=2), name="serving"))
    assert home.pailot("run", "job.yaml", "--detach").status == 0
    yield home
    home.pailot("stop", "serving", "--now")
    home.close()


@pytest.fixture(params=["server", "local"])
def home(request: pytest.FixtureRequest) -> Home:
    found: Home = request.getfixturevalue("client" if request.param == "server" else "local")
    end = time.monotonic() + PATIENCE
    while found.pailot("enter", "serving", "main", "0", "--command", "test -s port").status != 0:
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def environment_of(home: Home) -> dict[str, str]:
    return {**home.environment, "PYTHONUNBUFFERED": "1"}


def test_a_command_has_the_tasks_environment_and_its_status_comes_back(home: Home) -> None:
    done = home.pailot("enter", "serving", "main", "0", "--command", "echo $PAI_TASK_INDEX; ls sub; echo oops >&2; exit 7")
    assert (done.status, done.out, done.err) == (7, "0\ndeep\n", "oops\n")


def test_what_is_piped_in_arrives_and_ends(home: Home) -> None:
    command = [sys.executable, "-m", "pailot", "enter", "serving", "main", "0", "--command", "cat; echo over"]
    done = subprocess.run(
        command, input="first\nsecond\n", capture_output=True, text=True, cwd=home.cwd, env=environment_of(home), check=False
    )
    assert (done.returncode, done.stdout) == (0, "first\nsecond\nover\n"), done.stderr


PROMPT = r"(work|bash-[0-9.]+)[#$] "


class Screen:
    """`pailot` on a terminal of its own."""

    def __init__(self, home: Home, *words: str, rows: int = 30, columns: int = 90) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(home.cwd)
            os.execvpe(sys.executable, [sys.executable, "-m", "pailot", *words], {**environment_of(home), "TERM": "xterm"})
        self.size(rows, columns)
        self.seen = b""

    def size(self, rows: int, columns: int) -> None:
        ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def until(self, pattern: str) -> re.Match[str]:
        """Wait for a text; what came before it is forgotten."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.seen.decode("utf-8", "replace"))
            if found:
                self.seen = self.seen.decode("utf-8", "replace")[found.end() :].encode()
                return found
            assert select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0], self.seen
            try:
                data = os.read(self.terminal, 65536)
            except OSError:
                data = b""
            assert data, self.seen
            self.seen += data

    def ended(self) -> int:
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)


def test_a_shell_on_a_terminal_has_its_size_and_hears_ctrl_c(client: Home, home: Home) -> None:
    screen = Screen(home, "enter", "serving", "main", "0", rows=31, columns=97)
    screen.until(PROMPT)
    screen.type("stty size; echo $TERM; tty -s && echo yes-a-ter''minal\n")
    screen.until(r"\b31 97\b")
    screen.until("xterm")
    screen.until("yes-a-terminal")
    screen.until(PROMPT)
    screen.size(40, 120)  # of which the kernel tells the program by a signal
    screen.type('until [ "$(stty size)" = "40 120" ]; do sleep 0.1; done; echo res""ized\n')
    screen.until("resized")
    screen.until(PROMPT)
    # By a program of its own: what it prints shows that it is in the foreground, where Ctrl-C goes.
    screen.type("sh -c \"echo beg''un; sleep 1000\"\n")
    screen.until("begun")
    screen.type("\x03")
    screen.until(PROMPT)
    screen.type("echo still-''here; exit 5\n")
    screen.until("still-here")
    assert screen.ended() == 5


def test_a_task_or_role_that_is_not_there_is_said(home: Home) -> None:
    for words in (("mian", "0"), ("main", "9")):
        done = home.pailot("enter", "serving", *words, "--command", "true")
        assert done.status != 0
        assert len(done.err.strip().splitlines()) == 1
    wrong = [
        ("enter", "serving", "mian", "0", "--command", "true"),
        ("enter", "serving", "mian", "0", "--json"),
        ("logs", "serving", "mian"),
        ("cp", "serving:mian:0/port", "copied"),
        ("forward", "serving", "mian", "0", "data"),
    ]
    for command in wrong:
        done = home.pailot(*command)
        assert done.status != 0
        assert done.out == ""
        assert done.err.endswith("; did you mean 'main'?\n"), command


def test_the_log_of_a_role_that_is_not_there_has_a_hint(server: Server, client: Home) -> None:
    assert "serving" in client.pailot("ps").out
    with Client(server.url) as wire:
        wire.login("admin", PASSWORD)
        with pytest.raises(NotFound, match="has no task mian:0; did you mean 'main'"):
            wire.log("admin~serving", "mian", 0)


# Files


def test_files_come_and_go(home: Home) -> None:
    assert home.pailot("cp", "serving:main:0/result.txt", "got.txt").status == 0
    assert (home.cwd / "got.txt").read_text() == "a result\n"
    (home.cwd / "into").mkdir(exist_ok=True)
    told = home.pailot("cp", "serving:main:0/large", "into", "--json")
    assert json.loads(told.out) == {"source": "serving:main:0/large", "target": "into/large", "bytes": 3 << 20}
    (home.cwd / "sent.sh").write_text("echo sent\n")
    (home.cwd / "sent.sh").chmod(0o755)
    assert home.pailot("cp", "sent.sh", "serving:main:0/sub/").status == 0
    assert home.pailot("enter", "serving", "main", "0", "--command", "sub/sent.sh").out == "sent\n"
    assert not [name for name in os.listdir(home.cwd) if name.endswith(".part")]


def test_folders_come_and_go(home: Home) -> None:
    assert home.pailot("cp", "serving:main:0", "everything", "--quiet").status == 0
    got = home.cwd / "everything"
    assert (got / "sub" / "deep" / "file").read_text() == "deep\n"
    assert os.readlink(got / "stays-inside") == "result.txt"
    assert not (got / "leads-out").is_symlink()
    assert (got / "large").stat().st_size == 3 << 20
    (got / "sub" / "new").write_text("new\n")
    assert home.pailot("cp", "everything/sub", "serving:main:0/sub2").status == 0
    assert home.pailot("enter", "serving", "main", "0", "--command", "cat sub2/new sub2/deep/file").out == "new\ndeep\n"


@pytest.mark.parametrize("path", ["leads-out", "../../claim", "missing", "sub/../../x", "leads-out/x", "port/below"])
def test_nothing_is_read_outside_of_the_tasks_folder(home: Home, path: str) -> None:
    done = home.pailot("cp", f"serving:main:0/{path}", "never")
    assert done.status != 0
    assert len(done.err.strip().splitlines()) == 1
    assert not (home.cwd / "never").exists()


def test_a_copy_goes_on_where_it_was_broken_off(client: Home, server: Server) -> None:
    """A part of a copy, as a command that was killed leaves it, is not fetched again; its bytes show it."""
    home = client
    with Client(server.url) as wire:
        wire.login("admin", PASSWORD)
        about = wire.describe_file("admin~serving", "main", 0, "large")
        import hashlib

        mark = hashlib.sha256(about["version"].encode()).hexdigest()[:16]
        (home.cwd / f".resumed.{mark}.part").write_bytes(b"#" * (1 << 20))
        assert home.pailot("cp", "serving:main:0/large", "resumed").status == 0
        got = (home.cwd / "resumed").read_bytes()
        assert len(got) == 3 << 20
        assert got[: 1 << 20] == b"#" * (1 << 20)
        assert got[1 << 20 :] == got[2 << 20 :] * 2
        # The other way: the server has a part, and is sent the rest.
        mark = "0123456789abcdef"
        assert wire.write_file("admin~serving", "main", 0, "up", _body(b"half"), mark=mark, size=8, offset=0) == {"done": 4}
        assert wire.describe_file("admin~serving", "main", 0, "up", mark) == {
            "kind": "nothing",
            "size": 0,
            "version": "",
            "part": 4,
        }
        assert wire.write_file("admin~serving", "main", 0, "up", _body(b"rest"), mark=mark, size=8, offset=4) == {"done": 8}
    assert home.pailot("enter", "serving", "main", "0", "--command", "cat up").out == "halfrest"


def _body(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)


# Ports


def fetched(port: int, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        line.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        found = b""
        while data := line.recv(65536):
            found += data
    return found.partition(b"\r\n\r\n")[2]


def test_a_port_of_a_task_is_found_here(home: Home) -> None:
    own = home.pailot("enter", "serving", "main", "0", "--command", "cat port").out
    for wanted in ("data", own):
        words = [sys.executable, "-m", "pailot", "forward", "serving", "main", "0", wanted, "--json"]
        process = subprocess.Popen(words, cwd=home.cwd, env=environment_of(home), stdout=subprocess.PIPE, text=True)
        assert process.stdout
        try:
            port = json.loads(process.stdout.readline())["port"]
            assert fetched(port, "result.txt") == b"a result\n"
            assert len(fetched(port, "large")) == 3 << 20
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.close()
            assert process.wait(60) == 0


def test_no_other_port_is_reached(home: Home, server: Server) -> None:
    for wanted in (str(server.port), "22", "nothing", "0", "99999"):
        done = home.pailot("forward", "serving", "main", "0", wanted)
        assert done.status != 0
        assert len(done.err.strip().splitlines()) == 1, done.err


# Who may


def test_only_the_owner_gets_at_a_task(server: Server, client: Home, tmp_path: Path) -> None:
    with Client(server.url) as admin:
        admin.login("admin", PASSWORD)
        admin.create_user("mallory", "other-password")
        ours = {"Authorization": f"Bearer {admin.token}"}
    with Client(server.url) as other:
        other.login("mallory", "other-password")
        theirs = {"Authorization": f"Bearer {other.token}"}
    base = f"{server.url.replace('http', 'ws')}/api/v2/jobs/admin~serving/tasks/main/0"
    for path, headers, status in (
        ("/shell", theirs, 403),
        ("/ports/data/connection", theirs, 403),
        ("/shell", {}, 401),
        ("/shell", {**ours, "Origin": "https://evil.example"}, 403),
        ("/ports/22/connection", ours, 400),
        ("/nothing", ours, 404),
        ("/files", ours, 400),
    ):
        with pytest.raises(InvalidStatus) as caught, connect(base + path, additional_headers=headers, proxy=None):
            pass
        assert caught.value.response.status_code == status, (path, caught.value.response.body)
        assert json.loads(caught.value.response.body or b"{}")["message"]
    with connect(base + "/shell", additional_headers=ours, origin=Origin(server.url), proxy=None) as line:
        line.send(json.dumps({"command": "echo hello"}))
        assert line.recv() == b"\1hello\n"
        assert json.loads(line.recv()) == {"exit": 0}
    from urllib.request import Request, urlopen

    with pytest.raises(Exception, match="403"):
        urlopen(Request(f"{base.replace('ws', 'http', 1)}/files?path=result.txt", headers=theirs))
    with pytest.raises(Exception, match="426"):
        urlopen(Request(f"{base.replace('ws', 'http', 1)}/shell", headers=ours))


def test_sessions_are_bounded_and_leave_nothing(server: Server, client: Home) -> None:
    with Client(server.url) as wire:
        wire.login("admin", PASSWORD)
        lines = [wire.open_shell("admin~serving", "main", 0) for _ in range(3)]
        for line in lines:
            line.send(json.dumps({"command": "echo $$; sleep 1000 & sleep 1000"}))
        pids = [int(line.receive()[1:]) for line in lines]
        with pytest.raises(Exception, match="3 shells"):
            wire.open_shell("admin~serving", "main", 0)
        for line in lines:
            line.close()
        end = time.monotonic() + PATIENCE
        while any(os.path.exists(f"/proc/{pid}") for pid in pids):
            assert time.monotonic() < end
            time.sleep(0.05)
        for line in lines:  # there is room again
            with pytest.raises(Closed):
                line.receive()
        made = wire.open_shell("admin~serving", "main", 0)
        made.close()


def test_without_the_library_one_line_says_what_to_install(client: Home, tmp_path: Path) -> None:
    (tmp_path / "websockets.py").write_text("raise ImportError('not here')\n")
    environment = {**environment_of(client), "PYTHONPATH": f"{tmp_path}:{environment_of(client).get('PYTHONPATH', '')}"}
    words = [sys.executable, "-m", "pailot", "enter", "serving", "main", "0", "--command", "true"]
    done = subprocess.run(words, cwd=client.cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr == f"pailot: this needs the package websockets: {install_line('enter')}\n"


# Whose rights


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make processes of other users")
def test_with_unix_users_all_of_it_is_done_as_the_tasks_user() -> None:
    with TemporaryDirectory() as place:  # which other users can enter, as those of pytest they cannot
        os.chmod(place, 0o755)
        check_unix_users(Path(place))


def check_unix_users(folder: Path) -> None:
    server = Server(folder / "server", PAILOT_UNIX_USERS="admin=games", PAILOT_CPUS="8")
    try:
        home = server.client(folder / "client")
        assert submit(home, job(role("echo mine >mine; sleep 1000"), name="theirs")).status == 0
        end = time.monotonic() + PATIENCE
        while home.pailot("enter", "theirs", "main", "0", "--command", "test -s mine").status != 0:
            assert time.monotonic() < end, home.pailot("why", "theirs")
            time.sleep(0.1)
        done = home.pailot("enter", "theirs", "main", "0", "--command", "id -un; grep NoNewPrivs /proc/self/status; pwd")
        assert done.lines[:2] == ["games", "NoNewPrivs:\t1"]
        work = Path(done.lines[2])
        (home.cwd / "sent").write_text("sent\n")
        assert home.pailot("cp", "sent", "theirs:main:0/").status == 0
        assert (work / "sent").owner() == "games"
        assert home.pailot("cp", "theirs:main:0/mine", "got").status == 0
        (work / "roots").write_text("of root alone\n")
        (work / "roots").chmod(0o600)
        refused = home.pailot("cp", "theirs:main:0/roots", "never")
        assert refused.status != 0
        assert "Permission denied" in refused.err
        screen = Screen(home, "enter", "theirs", "main", "0")
        screen.until(PROMPT)
        screen.type("id -un; exit 3\n")
        screen.until("games")
        assert screen.ended() == 3
    finally:
        server.close()
