"""The library over real HTTP and through fsspec: found by name, kept in the cache, used when the network is down."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

import pytest

from pailot.library import Library, LibraryError
from pailot.library.places import write_index

from ..support.web_server import WebServer

GREETER = "name: greeter\ntype: script\n"


class Shelf:
    """A web server with one prerequisite; counts what is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.status = 200
        self.server = WebServer(self.answer)
        self.url = f"http://{self.server.host}/shared"
        self.close = self.server.close

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        found = request.path == "/shared/greeter.yaml"
        request.send_response(self.status if found else 404)
        request.end_headers()
        request.wfile.write(GREETER.encode() if found else b"")


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    made = Shelf()
    yield made
    made.close()


def library(tmp_path: Path, *places: str, fresh_seconds: float = 3600) -> Library:
    return Library(places, home=str(tmp_path / "home"), cache=str(tmp_path / "cache"), fresh_seconds=fresh_seconds)


def test_a_prerequisite_is_fetched_once_while_it_is_fresh(shelf: Shelf, tmp_path: Path) -> None:
    shared = library(tmp_path, shelf.url)
    assert shared.find("greeter") == (GREETER, f"{shelf.url}/greeter.yaml")
    assert shared.find("greeter") == (GREETER, f"{shelf.url}/greeter.yaml")
    assert shelf.asked == ["/shared/greeter.yaml"]


def test_a_stale_copy_is_asked_for_again_and_serves_when_the_network_is_down(shelf: Shelf, tmp_path: Path) -> None:
    shared = library(tmp_path, shelf.url, fresh_seconds=0)
    shared.find("greeter")
    shared.find("greeter")
    assert len(shelf.asked) == 2
    shelf.close()
    assert shared.find("greeter") == (GREETER, f"{shelf.url}/greeter.yaml")


def test_what_is_not_there_is_looked_for_in_the_next_place(shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "other.yml").write_text("name: other\ntype: script\n")
    assert library(tmp_path, shelf.url, str(folder)).find("other") == ("name: other\ntype: script\n", str(folder / "other.yml"))
    assert library(tmp_path, f"file://{folder}").find("other") is not None
    assert library(tmp_path, shelf.url).find("nothing") is None


def test_a_server_error_is_said_with_its_address(shelf: Shelf, tmp_path: Path) -> None:
    shelf.status = 500
    with pytest.raises(LibraryError, match=r"/shared/greeter.yaml: the server answered 500"):
        library(tmp_path, shelf.url).find("greeter")


def test_nobody_listening_is_said_with_its_address(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match=r"127\.0\.0\.1:1/"):
        library(tmp_path, "http://127.0.0.1:1").find("greeter")


def test_any_fsspec_address_serves(tmp_path: Path) -> None:
    import fsspec

    with fsspec.open("memory://shelf/greeter.yaml", "w") as stream:
        stream.write(GREETER)
    assert library(tmp_path, "memory://shelf").find("greeter") == (GREETER, "memory://shelf/greeter.yaml")
    assert library(tmp_path, "memory://shelf").find("nothing") is None
    with pytest.raises(LibraryError, match="nosuchscheme"):
        library(tmp_path, "nosuchscheme://x").find("greeter")


@pytest.mark.parametrize("name", ["../secrets", "a/b", "", ".hidden", "a\\b"])
def test_a_name_is_never_a_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "secrets.yaml").write_text(GREETER)
    folder = tmp_path / "folder"
    folder.mkdir()
    assert library(tmp_path, str(folder)).find(name) is None


def test_a_folder_that_cannot_be_made_is_said_and_nothing_stays_behind(tmp_path: Path) -> None:
    own = library(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "library").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="exists"):
        own.add("greeter", GREETER)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_versions_in_folders(tmp_path: Path) -> None:
    own = library(tmp_path)
    for version in (2, 10):
        own.add("set", f"name: set\ntype: data\nversion: {version}\n", version=str(version))
    assert [(file.name, file.version) for file in own.files()] == [("set", "10"), ("set", "2")]
    newest = own.find("set")
    assert newest is not None
    assert newest[1].endswith("/set@10.yaml")
    assert own.find("set@2") == ("name: set\ntype: data\nversion: 2\n", f"{own.home}/set@2.yaml")
    assert own.find("set@3") is None
    own.add("set", "name: set\ntype: data\nversion: 7\n")
    assert own.find("set@7") == ("name: set\ntype: data\nversion: 7\n", f"{own.home}/set.yaml")
    for reference in ("../set", "set@../x", "set/x", "set@"):
        assert own.find(reference) is None
        with pytest.raises(LibraryError, match="there is no"):
            own.remove(reference)
    assert own.remove("set@2").endswith("/set@2.yaml")


def test_a_url_is_listed_by_its_index(tmp_path: Path) -> None:
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "set@1.yaml").write_text("name: set\ntype: data\nversion: 1\nsize: 2 kB\n")
    (folder / "set@12.yaml").write_text("name: set\ntype: data\nversion: 12\n")
    assert write_index(str(folder)) == (str(folder / "index.yaml"), 2)

    def answer(request: BaseHTTPRequestHandler) -> None:
        file = folder / unquote(request.path).lstrip("/")
        request.send_response(200 if file.is_file() else 404)
        request.end_headers()
        request.wfile.write(file.read_bytes() if file.is_file() else b"")

    server = WebServer(answer)
    try:
        shared = library(tmp_path, f"http://{server.host}")
        listed = shared.index(f"http://{server.host}")
        assert listed is not None
        assert [(each.name, each.version, each.size) for each in listed] == [("set", "1", 2000), ("set", "12", None)]
        found = shared.find("set")
        assert found is not None
        assert found[1] == f"http://{server.host}/set@12.yaml"
        assert shared.find("set@1") == ((folder / "set@1.yaml").read_text(), f"http://{server.host}/set@1.yaml")
        assert shared.find("set@2") is None
        (folder / "index.yaml").write_text("name: no list\n")
        with pytest.raises(LibraryError, match="should be a list"):
            library(tmp_path / "other", f"http://{server.host}").index(f"http://{server.host}")
    finally:
        server.close()
