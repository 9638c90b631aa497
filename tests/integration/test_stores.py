"""Data from and to real stores: S3, HDFS, a web server with TLS, folders."""

from __future__ import annotations

import base64
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from pailot.data import download, filesystems, multipart, upload
from pailot.data.errors import DataError
from pailot.data.location import ProvideError
from pailot.data.provisions import fetch
from pailot.data.upload_journal import UploadJournal
from pailot.progress import Progress

from ..parts.stores import S3, SECRET, Hadoop
from ..support.web_server import WebServer

STRANGE = ["a b", "ünï-文件", "line\nbreak", "[x]*?", "%41", "-r", "a'b\"c", "sub/deeper/x", ".hidden"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with S3(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A part of the bucket for each test alone."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)


def fill(folder: Path, names: list[str]) -> dict[str, bytes]:
    made = {}
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        made[name] = bytes([number]) * (number * 1000)
        (folder / name).write_bytes(made[name])
    return made


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def publish(target: str, folder: Path, ledger: Path, told: list[Progress] | None = None) -> list[str]:
    """The folder `output` in it, to a target."""
    tell = told.append if told is not None else lambda _: None
    return upload.publish({"output": target}, str(folder), "/", UploadJournal(str(ledger)), tell)


# Inputs


def test_a_folder_of_a_bucket_is_brought_as_it_is(s3: S3, prefix: str, tmp_path: Path) -> None:
    names = [name for name in STRANGE if s3.is_minio or "\n" not in name]  # the other server spells line breaks its own way
    made = {name: os.urandom(number * 1000) for number, name in enumerate(names)}
    for name, data in made.items():
        s3.put(f"{prefix}/data/{name}", data)
    told: list[Progress] = []
    path = fetch(f"s3://bucket/{prefix}/data", str(tmp_path / "cache"), "", "input x", told.append)
    assert tree(Path(path)) == made
    assert told[-1] == told[-1].replace(what="input x", done=sum(map(len, made.values())), ended=True)
    told.clear()
    assert fetch(f"s3://bucket/{prefix}/data/", str(tmp_path / "cache"), "", "input x", told.append)
    s3.put(f"{prefix}/data/new", b"new")
    assert "new" in tree(Path(fetch(f"s3://bucket/{prefix}/data", str(tmp_path / "cache"))))
    told.clear()
    fetch(f"s3://bucket/{prefix}/data", str(tmp_path / "cache"), "", "input x", told.append)
    assert told == []  # nothing has changed, so nothing is brought
    one = fetch(f"s3://bucket/{prefix}/data/a b", str(tmp_path / "cache"))
    assert Path(one).read_bytes() == made["a b"]
    assert os.path.basename(one) == "a b"


@pytest.mark.parametrize(
    ("uri", "environment", "words"),
    [
        ("s3://bucket/none", {}, "s3://bucket/none: there is no such file"),
        ("s3://bucket/none/", {}, "s3://bucket/none/: there is no such f"),
        ("s3://no-such-bucket/x", {}, "s3://no-such-bucket/x: there is no such bucket"),
        ("s3://bucket/x", {"AWS_SECRET_ACCESS_KEY": "wrong-wrong-wrong"}, r"access is denied \(.*AWS_ACCESS_KEY_ID"),
        ("s3://bucket/x", {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "credentials come from AWS_ACCESS_KEY_ID"),
        ("gs://bucket/x", {}, r"gs://bucket/x: the driver for gs:// is not installed: .*gcsfs"),
    ],
)
def test_what_cannot_be_brought_is_said_in_one_line(
    s3: S3, uri: str, environment: dict[str, str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        if not value:
            monkeypatch.delenv(name)
    for work in (lambda: fetch(uri, str(tmp_path / "cache")), lambda: filesystems.probe_input(uri)):
        with pytest.raises(DataError, match=words) as caught:
            work()
        assert "\n" not in str(caught.value)
        assert SECRET not in str(caught.value)
        assert "wrong-wrong" not in str(caught.value)
    assert [name for name in os.listdir(tmp_path / "cache" / "fetch") if not name.endswith(".lock")] == []


def test_an_output_to_no_bucket_is_refused_before_anything_is_done(s3: S3) -> None:
    filesystems.probe_output("s3://bucket/anything/at/all")
    with pytest.raises(DataError, match="s3://no-such-bucket/x: there is no such bucket"):
        filesystems.probe_output("s3://no-such-bucket/x")


def test_names_that_lead_out_are_refused(tmp_path: Path) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    files.store.clear()
    files.store["/out/../../evil"] = files.open("/harmless", "wb")
    with pytest.raises(DataError, match="cannot be the name of a file here"):
        fetch("memory://out/", str(tmp_path))
    files.store.clear()


def test_a_full_disk_is_one_line_and_leaves_nothing(s3: S3, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.put(f"{prefix}/large", b"x" * 3_000_000)

    class Usage:
        free = 1_000_000

    with monkeypatch.context() as patched:
        patched.setattr(download, "disk_usage", lambda _: Usage)
        with pytest.raises(ProvideError, match=r"there is no room for it: 3.0 MB are needed, 1.0 MB are free"):
            fetch(f"s3://bucket/{prefix}/large", str(tmp_path))
    # And one that fills up in the middle, which nobody can know before.
    work = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
from pailot.data.provisions import fetch
for uri in ("s3://bucket/{prefix}/large", "s3://bucket/{prefix}"):
    try:
        fetch(uri, {str(tmp_path)!r})
    except Exception as error:
        print(error)
"""
    ended = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=True)
    lines = ended.stdout.splitlines()
    assert len(lines) == 2, ended
    assert all(line.endswith("cannot be written: File too large") for line in lines), lines
    assert [name for name in os.listdir(tmp_path / "fetch") if not name.endswith(".lock")] == []


def test_what_was_killed_is_begun_anew(s3: S3, prefix: str, tmp_path: Path) -> None:
    s3.put(f"{prefix}/data/large", os.urandom(4_000_000))
    work = f"""
import os, signal
from pailot import progress
from pailot.data import download
progress.TELL_SECONDS = 0
from pailot.data.provisions import fetch
fetch("s3://bucket/{prefix}/data", {str(tmp_path)!r}, "", "", lambda _: os.kill(os.getpid(), signal.SIGKILL))
"""
    assert subprocess.run([sys.executable, "-c", work], check=False).returncode == -signal.SIGKILL
    assert any(name.endswith(".part") for name in os.listdir(tmp_path / "fetch"))
    path = Path(fetch(f"s3://bucket/{prefix}/data", str(tmp_path)))
    assert tree(path) == {"large": s3.get(f"{prefix}/data/large")}
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path / "fetch"))


def test_a_large_file_takes_no_more_memory_than_a_small_one(s3: S3, prefix: str, tmp_path: Path) -> None:
    """Up, and down again."""
    work = """
import os, resource, sys
from pailot.data.provisions import fetch
from pailot.data import upload
from pailot.data.upload_journal import UploadJournal
size, uri, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.makedirs(f"{folder}/out/output")
with open(f"{folder}/out/output/large", "wb") as stream:
    stream.truncate(size)
upload.publish({"output": uri}, f"{folder}/out", "/", UploadJournal(f"{folder}/ledger"))
path = fetch(f"{uri}/large", f"{folder}/cache")
assert os.stat(path).st_size == size
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

    def peak(size: int) -> int:
        folder = tmp_path / str(size)
        folder.mkdir()
        arguments = [sys.executable, "-c", work, str(size), f"s3://bucket/{prefix}/{size}", str(folder)]
        return int(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout) // 1024

    large = int(os.environ.get("PAILOT_TEST_LARGE_MB", "70")) * 1024 * 1024
    assert peak(large) < peak(16 * 1024 * 1024) + 40


# Outputs


def test_objects_appear_only_when_all_of_them_are_complete(
    s3: S3, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fill(tmp_path / "output", [name for name in STRANGE if s3.is_minio or "\n" not in name])
    (tmp_path / "output" / "large").write_bytes(os.urandom(9_000_000))
    (tmp_path / "output" / "empty-folder").mkdir()
    (tmp_path / "output" / "link").symlink_to("a b")
    (tmp_path / "output" / "out").symlink_to("/etc/passwd")
    seen: list[dict[str, int]] = []
    appear = upload._Objects.appear

    def watched(self: upload._Objects) -> None:
        seen.append(s3.objects(prefix))
        appear(self)

    monkeypatch.setattr(upload._Objects, "appear", watched)
    told: list[Progress] = []
    notes = publish(f"s3://bucket/{prefix}/model/", tmp_path, tmp_path / "ledger", told)
    assert notes == ["output output: left out, since it cannot be kept there: out"]
    assert seen == [{}]  # all bytes are there, and nothing is to be seen
    assert {key.removeprefix(f"{prefix}/model/"): s3.get(key) for key in s3.objects(prefix)} == {
        **made,
        "large": (tmp_path / "output" / "large").read_bytes(),
        "link": made["a b"],
    }
    assert (told[-1].done, told[-1].ended) == (told[-1].total, True)
    assert s3.uploads() == []


def test_what_is_there_already_stays_and_is_replaced_by_name(s3: S3, prefix: str, tmp_path: Path) -> None:
    s3.put(f"{prefix}/old", b"old")
    s3.put(f"{prefix}/same", b"before")
    fill(tmp_path / "output", ["first", "same"])
    publish(f"s3://bucket/{prefix}", tmp_path, tmp_path / "ledger")
    assert s3.objects(prefix) == {f"{prefix}/old": 3, f"{prefix}/same": 1000, f"{prefix}/first": 0}


@pytest.mark.parametrize("step", ["begin", "send", "complete", "put"])
def test_a_failure_leaves_nothing(s3: S3, prefix: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fill(tmp_path / "output", ["a", "b", "c", "d"])
    calls = 0
    real = getattr(multipart.S3, step)

    def fails(self: multipart.S3, *words: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= (1 if step == "put" else 3):
            raise OSError("the line is dead")
        return real(self, *words)

    monkeypatch.setattr(multipart.S3, step, fails)
    uri = f"s3://bucket/{prefix}/model"
    with pytest.raises(DataError, match=f"the output 'output' could not be brought to {uri}: the line is dead"):
        publish(uri, tmp_path, tmp_path / "ledger")
    assert s3.objects(prefix) == {}
    assert s3.uploads() == []
    monkeypatch.undo()
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    publish(uri, tmp_path, tmp_path / "ledger")
    assert s3.objects(prefix) == {f"{prefix}/model/{name}": len(data) for name, data in made.items()}


KILLED = """
import os, signal, sys
from pailot.data import multipart, upload
from pailot.data.upload_journal import UploadJournal
step, uri, folder, number = sys.argv[1:]
real, calls = getattr(multipart.S3, step), 0
def killed(self, *words):
    global calls
    calls += 1
    answer = real(self, *words)
    if calls == 2:
        os.kill(os.getpid(), int(number))
    return answer
setattr(multipart.S3, step, killed)
from pailot.engines.preparation.background_child import stops_when_told
stops_when_told(os.getppid())
upload.THREADS = 1
upload.publish({"output": uri}, folder, "/", UploadJournal(folder + "/ledger"))
"""


@pytest.mark.parametrize("step", ["send", "complete"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whoever_comes_after_a_killed_upload_removes_what_it_left(
    s3: S3, prefix: str, step: str, number: int, tmp_path: Path
) -> None:
    s3.put(f"{prefix}/model/before", b"mine")
    fill(tmp_path / "output", ["a", "b", "c", "d"])
    words = [sys.executable, "-c", KILLED, step, f"s3://bucket/{prefix}/model", str(tmp_path), str(int(number))]
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    if number == signal.SIGKILL:
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert s3.uploads() or not s3.is_minio
        upload.undo(UploadJournal(str(tmp_path / "ledger")))
    assert s3.objects(prefix) == {f"{prefix}/model/before": 4}
    assert s3.uploads() == []
    assert UploadJournal(str(tmp_path / "ledger")).open() == []


def test_ten_thousand_files_in_both_directions(s3: S3, prefix: str, tmp_path: Path) -> None:
    count = int(os.environ.get("PAILOT_TEST_FILES", "100"))
    for number in range(count):
        (tmp_path / "output" / str(number % 100)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "output" / str(number % 100) / str(number)).write_text(str(number))
    publish(f"s3://bucket/{prefix}", tmp_path, tmp_path / "ledger")
    assert len(s3.objects(f"{prefix}/")) == count
    assert tree(Path(fetch(f"s3://bucket/{prefix}", str(tmp_path / "cache")))) == tree(tmp_path / "output")


def test_a_folder_of_this_machine_appears_at_once(tmp_path: Path) -> None:
    made = fill(tmp_path / "output", STRANGE)
    (tmp_path / "output" / "empty").mkdir()
    (tmp_path / "output" / "link").symlink_to("a b")
    target = tmp_path / "results" / "model"
    publish(str(target), tmp_path, tmp_path / "ledger")
    assert tree(target) == {**made, "link": made["a b"]}
    assert (target / "empty").is_dir()
    assert (target / "link").is_symlink()
    assert os.listdir(target.parent) == ["model"]
    fill(tmp_path / "output", ["new", "a b"])
    publish(f"file://{target}/", tmp_path, tmp_path / "ledger")
    assert tree(target) == {**made, "new": b"", "a b": b"\1" * 1000, "link": b"\1" * 1000}
    assert os.listdir(target.parent) == ["model"]


def test_when_one_output_fails_none_appears_and_the_work_is_kept(tmp_path: Path) -> None:
    made = fill(tmp_path / "first", ["a", "b"])
    fill(tmp_path / "second", ["c"])
    targets = {"first": str(tmp_path / "results" / "first"), "second": "/proc/nowhere/second"}
    with pytest.raises(DataError, match="the output 'second' could not be brought to /proc/nowhere/second"):
        upload.publish(targets, str(tmp_path), "/", UploadJournal(str(tmp_path / "ledger")))
    assert os.listdir(tmp_path / "results") == []
    assert tree(tmp_path / "first") == made


# A Hadoop file system


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    with Hadoop(tmp_path_factory.mktemp("hadoop")) as running:
        yield running


def test_hdfs_in_both_directions(hadoop: Hadoop, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", os.environ.get("USER") or "root")
    base = f"{hadoop.uri}/{prefix}"
    files, root = filesystems.connect(base)
    names = [name for name in STRANGE if not set(name) & set("[?%\n'")]  # the drivers cannot name these
    made = fill(tmp_path / "output", names)
    (tmp_path / "output" / "empty").mkdir()
    (tmp_path / "output" / "large").write_bytes(os.urandom(9_000_000))
    made["large"] = (tmp_path / "output" / "large").read_bytes()
    seen: list[Any] = []
    real = upload._Renamed.appear

    def watched(self: upload._Renamed) -> None:
        seen.append(files.exists(f"{root}/model"))
        real(self)

    monkeypatch.setattr(upload._Renamed, "appear", watched)
    publish(f"{base}/model", tmp_path, tmp_path / "ledger")
    assert seen == [False]
    assert [os.path.basename(each.rstrip("/")) for each in files.ls(root, detail=False)] == ["model"]
    path = Path(fetch(f"{base}/model", str(tmp_path / "cache")))
    assert tree(path) == made
    assert (path / "empty").is_dir()
    assert Path(fetch(f"{base}/model/large", str(tmp_path / "cache"))).read_bytes() == made["large"]
    fill(tmp_path / "output", ["new", "a b"])
    publish(f"{base}/model", tmp_path, tmp_path / "ledger")  # into what is there
    assert tree(Path(fetch(f"{base}/model", str(tmp_path / "cache")))) == {**made, "new": b"", "a b": b"\1" * 1000}
    with pytest.raises(DataError, match="there is no such file"):
        fetch(f"{base}/none", str(tmp_path / "cache"))
    monkeypatch.setattr(upload._Renamed, "appear", _fails)
    with pytest.raises(DataError, match="the line is dead"):
        publish(f"{base}/other", tmp_path, tmp_path / "ledger")
    assert [os.path.basename(each.rstrip("/")) for each in files.ls(root, detail=False)] == ["model"]


def _fails(_: object) -> None:
    raise OSError("the line is dead")


# The web


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run([*words.split(), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    made = Site()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    made.web.server.socket = context.wrap_socket(made.web.server.socket, server_side=True)
    yield made
    made.web.close()


class Site:
    """A site with TLS, passwords, redirects, connections that break off."""

    DATA = os.urandom(300_000)

    def __init__(self) -> None:
        self.web = WebServer(self.answer)
        self.address = f"https://localhost:{self.web.host.rpartition(':')[2]}"
        self.seen: list[tuple[str, str | None, str | None]] = []
        self.changed = False

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path, given, wanted = request.path, request.headers.get("Authorization"), request.headers.get("Range")
        self.seen.append((path, given, wanted))
        if path.startswith("/private") and given != "Basic " + base64.b64encode(b"me:a-pass-word").decode():
            request.send_error(401)
        elif path == "/moved":
            request.send_response(302)
            request.send_header("Location", "/plain")
            request.end_headers()
        elif path == "/none":
            request.send_error(404)
        elif path == "/unknown-length":
            request.send_response(200)
            request.end_headers()
            request.wfile.write(self.DATA)
        elif path.startswith("/breaks"):
            self.break_off(request, wanted)
        else:
            request.send_response(200)
            request.send_header("Content-Length", str(len(self.DATA)))
            request.end_headers()
            request.wfile.write(self.DATA)

    def break_off(self, request: BaseHTTPRequestHandler, wanted: str | None) -> None:
        """100,000 bytes at a time."""
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if wanted and request.path == "/breaks-and-changes" and not self.changed:
            self.changed, start, wanted = True, 0, None
        request.send_response(206 if wanted else 200)
        request.send_header("ETag", '"x"')
        if wanted:
            request.send_header("Content-Range", f"bytes {start}-{len(self.DATA) - 1}/{len(self.DATA)}")
        request.send_header("Content-Length", str(len(self.DATA) - start))
        request.end_headers()
        size = 0 if request.path == "/breaks-at-once" else 100_000
        request.wfile.write(self.DATA[start : start + size])
        request.close_connection = True


@pytest.mark.parametrize("path", ["plain", "moved", "unknown-length", "breaks", "breaks-and-changes"])
def test_a_file_of_the_web_is_brought_whole(site: Site, path: str, tmp_path: Path) -> None:
    told: list[Progress] = []
    found = fetch(f"{site.address}/{path}", str(tmp_path / "cache"), "", "input x", told.append)
    assert Path(found).read_bytes() == site.DATA
    assert told[-1].ended
    assert told[-1].total == (None if path == "unknown-length" else len(site.DATA))
    if path == "breaks":
        assert [wanted for _, _, wanted in site.seen] == [None, "bytes=100000-", "bytes=200000-"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("none", "the server answered 404 Not Found"),
        ("private", r"the server answered 401 Unauthorized; credentials come from a line of ~/.netrc"),
        ("breaks-at-once", "the connection broke off after 0 of 300000 bytes"),
    ],
)
def test_what_the_web_does_not_give_is_said_in_one_line(site: Site, path: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ProvideError, match=f"{site.address}/{path}: {words}"):
        fetch(f"{site.address}/{path}", str(tmp_path / "cache"))
    assert [name for name in os.listdir(tmp_path / "cache" / "fetch") if not name.endswith(".lock")] == []


def test_a_password_comes_from_the_user_s_own_file_and_goes_nowhere_else(site: Site, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login me password a-pass-word\n")
    netrc.chmod(0o600)
    found = fetch(f"{site.address}/private", str(tmp_path / "cache"))
    assert Path(found).read_bytes() == site.DATA
    netrc.unlink()
    with pytest.raises(ProvideError) as caught:
        fetch(f"{site.address.replace('://', '://me:an-other-word@')}/private/secret", str(tmp_path / "other"))
    assert "an-other-word" not in str(caught.value)
    assert "localhost" in str(caught.value)


def test_a_certificate_that_nobody_knows_is_refused(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ProvideError, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
        fetch(f"{site.address}/plain", str(tmp_path / "cache"))


def test_uris_are_shown_without_what_is_secret_in_them() -> None:
    assert filesystems.shown("https://me:secret@host/x?X-Amz-Signature=abc") == "https://me:…@host/x?…"
    assert filesystems.shown("s3://bucket/a b?c") == "s3://bucket/a b?c"
    assert filesystems.shown("sftp://me:secret@host/x") == "sftp://me:…@host/x"
    assert filesystems.has_credentials("https://me:secret@host/x")
    assert not filesystems.has_credentials("https://host/x:y@z")


def test_room_is_looked_for_where_the_file_goes(tmp_path: Path) -> None:
    from pailot.data.location import Location

    download.room_for(1, str(tmp_path / "x"), Location("a", "a"))
    with pytest.raises(ProvideError, match="a: there is no room for it"):
        download.room_for(10**18, str(tmp_path / "x"), Location("a", "a"))
