"""The unpacker: what honest archives become, and what those of others do not."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.data import tar as reading
from pailot.data import unpacking
from pailot.data.tar import BadArchive, is_archive
from pailot.data.unpacking import Limits, unpack, unpack_below

from ...support.archives import END, SQUEEZE, entry, folder, link, long_header, pax, raw, tar, without_end

SMALL = Limits(bytes=100_000, places=50, depth=10)
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


class Place:
    """A folder to unpack into, and another beside it that nobody may touch."""

    def __init__(self, folder: Path) -> None:
        self.target, self.outside, self.archive = folder / "in" / "target", folder / "outside", folder / "archive"
        self.target.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "file").write_text("mine")
        (folder / "in" / "file").write_text("mine")
        self.folder = folder

    def unpack(self, data: bytes, limits: Limits = SMALL) -> Any:
        self.archive.write_bytes(data)
        before = self.seen()
        try:
            return unpack(str(self.archive), str(self.target), limits)
        finally:
            assert self.seen() == before, "something outside has changed"

    def seen(self) -> dict[str, Any]:
        """All that is not in the target."""
        found = {}
        for parent, folders, files in os.walk(self.folder):
            folders[:] = [each for each in folders if Path(parent, each) != self.target]
            for each in (*folders, *files):
                path = Path(parent, each)
                look = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(look.st_mode) else b""
                found[str(path)] = (look.st_mode, look.st_uid, look.st_nlink, look.st_ino, content)
        return found

    def check_inside(self) -> None:
        """Files with one name, folders, and links that end inside; nothing with strange rights."""
        top = os.path.realpath(self.target)
        for parent, folders, files in os.walk(self.target):
            for each in (*folders, *files):
                path = Path(parent, each)
                look = path.lstat()
                if stat.S_ISLNK(look.st_mode):
                    end = os.path.realpath(path)
                    assert end == top or end.startswith(f"{top}/")
                    continue
                assert stat.S_ISDIR(look.st_mode) or (stat.S_ISREG(look.st_mode) and look.st_nlink == 1)
                assert look.st_mode & 0o7022 == 0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("squeeze", SQUEEZE)
def test_an_honest_archive_is_unpacked(place: Place, format: int, squeeze: str) -> None:
    deep = "deep/" + "n" * 60 + "/" + "m" * 60
    entries = [
        folder("./"),
        folder("deep"),
        entry("./deep/run", mode=0o4777, content=b"x" * 3000),
        link("link", "deep/run"),
        link("deep/up", "../deep/../link"),
        link("deep/dangling", "not/there"),
        entry(deep),
        entry("über"),
        folder("deep"),
    ]
    data = SQUEEZE[squeeze](tar(entries, format))
    amount = place.unpack(data)
    assert is_archive(str(place.archive))
    place.check_inside()
    assert (place.target / "deep" / "run").read_bytes() == (place.target / "deep" / "up").read_bytes() == b"x" * 3000
    assert (place.target / "deep" / "run").stat().st_mode & 0o7777 & ~0o022 == 0o755
    assert (place.target / "deep" / "run").stat().st_mtime == 1_000_000_000
    assert (place.target / deep).read_text() == (place.target / "über").read_text() == "text"
    assert (amount.bytes, amount.places) == (3008, 8)


def test_several_compressed_parts_are_one_archive(place: Place) -> None:
    whole = tar([entry("a"), entry("b")])
    place.unpack(b"".join(SQUEEZE["gzip"](part) for part in (whole[:700], whole[700:])) + bytes(100))
    assert sorted(os.listdir(place.target)) == ["a", "b"]


def test_what_is_no_archive(tmp_path: Path) -> None:
    for content in (b"", b"print('hello')\n" * 100, SQUEEZE["gzip"](b"text"), b"\x1f\x8bnonsense", b"BZhnonsense"):
        (tmp_path / "file").write_bytes(content)
        assert not is_archive(str(tmp_path / "file"))


OUT, TWICE, LINKED = "leads out of it", "twice", "behind a link"
LOOPS = [link(f"l{number}", f"l{number + 1}") for number in range(45)]
HOSTILE: dict[str, tuple[bytes, str]] = {
    "a hard link and its name again": (tar([entry("h", tarfile.LNKTYPE, "../../outside/file"), entry("h")]), "hard link"),
    "a hard link inside": (tar([entry("a"), entry("b", tarfile.LNKTYPE, "a")]), "hard-dereference"),
    "a hard link to a link": (tar([link("a", "/etc/passwd"), entry("b", tarfile.LNKTYPE, "a")]), OUT),
    "a character device": (tar([entry("zero", tarfile.CHRTYPE)]), "a device"),
    "a block device": (tar([entry("disk", tarfile.BLKTYPE)]), "a device"),
    "a FIFO": (tar([entry("pipe", tarfile.FIFOTYPE)]), "a FIFO"),
    "a kind that nobody knows": (raw(b"x", b"Z") + END, "no file, folder or link"),
    "a volume label": (raw(b"x", b"V") + END, "no file, folder or link"),
    "a sparse file of GNU": (raw(b"x", b"S") + END, "sparse"),
    "a sparse file of pax": (long_header(b"x", pax(GNU_sparse_major=b"1")) + raw(b"x") + END, "sparse"),
    "an absolute path": (tar([entry("/etc/out")]), OUT),
    "an absolute path in pax": (long_header(b"x", pax(path=b"/etc/out")) + raw(b"fine") + END, OUT),
    "an absolute path of GNU": (long_header(b"L", b"/etc/out\0") + raw(b"fine") + END, OUT),
    "the folder above": (tar([entry("../out")]), OUT),
    "the folder above, later": (tar([entry("a/../../out")]), OUT),
    "the folder above, within": (tar([entry("a/../b")]), OUT),
    "the folder above as a folder": (tar([folder("..")]), OUT),
    "the folder above by its prefix": (raw(b"out", prefix=b"..") + END, OUT),
    "a NUL in a name": (long_header(b"x", pax(path=b"a\0b")) + raw(b"fine") + END, OUT),
    "a NUL in a link": (long_header(b"x", pax(linkpath=b"a\0b")) + raw(b"fine", b"2") + END, "nowhere"),
    "no name": (raw(b"") + END, "no name"),
    "a dot as a file": (tar([entry(".")]), "no name"),
    "a dot as a link": (tar([link("./.", "a")]), "no name"),
    "an absolute link": (tar([link("l", "/etc")]), OUT),
    "a link out": (tar([link("l", "../..")]), OUT),
    "a link to nothing": (raw(b"l", b"2") + END, "nowhere"),
    "a link to a long place": (tar([link("l", "a/" * 600)]), "nowhere"),
    "a link and a file behind it": (tar([link("l", "."), entry("l/file")]), LINKED),
    "a file behind a link, the link last": (tar([entry("l/file"), link("l", "../../outside")]), TWICE),
    "a link in place of a file": (tar([link("l", "a"), entry("l")]), TWICE),
    "a file in place of a link": (tar([entry("l"), link("l", "a")]), TWICE),
    "a folder in place of a link": (tar([link("l", "a"), folder("l")]), TWICE),
    "a link in place of a folder": (tar([folder("l"), link("l", "a")]), TWICE),
    "links that count folders that are none": (
        tar([link("L", "."), folder("a"), link("L/L/L/esc", "../../../server.db")]),
        LINKED,
    ),
    "a chain of links that ends outside": (
        tar([folder("a/b"), link("up", "a/b"), link("a/b/out", "../../.."), link("way", "up/out")]),
        OUT,
    ),
    "a link through a link": (tar([folder("a/b"), link("down", "a/b"), link("l", "down/../../..")]), OUT),
    "a link that is short by words": (tar([link("here", "."), link("l", "here/here/here/../..")]), OUT),
    "the same, the other way round": (tar([link("l", "here/../.."), link("here", ".")]), OUT),
    "a link to itself": (tar([link("l", "l")]), "more than 40"),
    "links in a circle": (tar([link("a", "b"), link("b", "a")]), "more than 40"),
    "a chain of 45 links": (tar(LOOPS), "more than 40"),
    "a file twice": (tar([entry("a"), entry("a")]), TWICE),
    "a file twice, spelled otherwise": (tar([entry("d/a"), entry(".//d/./a")]), TWICE),
    "a folder, then a file": (tar([folder("a"), entry("a")]), TWICE),
    "a file, then a folder": (tar([entry("a"), folder("a")]), TWICE),
    "a file, then one in it": (tar([entry("a"), entry("a/b")]), "lies in a file"),
    "a path of 3,000 folders": (tar([entry("a/" * 3000 + "b")]), "2,048 bytes"),
    "a path that is too deep": (tar([entry("a/" * 10 + "b")]), "10 folders deep"),
    "a name that is too long": (tar([entry("n" * 256)]), "255 bytes"),
    "more files than fit": (tar([entry(str(number)) for number in range(51)]), "50 files"),
    "more folders than fit, in few entries": (tar([folder("a/" * 9 + str(n)) for n in range(60)]), "50 files"),
    "folders that nobody lists": (tar([entry(f"{n}/b/c/d/e/f/g/h/i") for n in range(9)]), "50 files"),
    "more than fits": (tar([entry("a", content=bytes(60_000)), entry("b", content=bytes(60_000))]), "more than 0 MB"),
    "a size that is told and not there": (raw(b"a", size=b"77777777777") + END, "more than 0 MB"),
    "a size in binary": (raw(b"a", size=b"\x80" + b"\x7f" * 11) + END, "more than 0 MB"),
    "a size below nothing": (raw(b"a", size=b"\xff" * 12) + END, "damaged"),
    "a size that is no number": (raw(b"a", size=b"0000000000x") + END, "damaged"),
    "a size of pax": (long_header(b"x", pax(size=b"9" * 17)) + raw(b"a") + END, "more than 0 MB"),
    "a size of pax below nothing": (long_header(b"x", pax(size=b"-512")) + raw(b"a") + END, "no number"),
    "a size of pax with an exponent": (long_header(b"x", pax(size=b"1e3")) + raw(b"a") + END, "no number"),
    "a path for everybody": (long_header(b"g", pax(path=b"a")) + raw(b"a") + END, "all entries"),
    "a header without end": (raw(b"x", b"x", b"77777777777") + END, "header of more"),
    "a long name without end": (raw(b"x", b"L", b"77777777777") + END, "header of more"),
    "a thousand headers": (long_header(b"g", b"") * 1000 + raw(b"a") + END, "more than 8 headers"),
    "a header that tells a wrong length": (long_header(b"x", b"999 path=a\n") + raw(b"a") + END, "understood"),
    "a header that tells no length": (long_header(b"x", b" path=a\n") + raw(b"a") + END, "understood"),
    "a header that tells length 0": (long_header(b"x", b"0 path=a\n") + raw(b"a") + END, "understood"),
    "a header of digits": (long_header(b"x", b"1" * 60_000) + raw(b"a") + END, "understood"),
    "a header and no entry": (long_header(b"x", pax(path=b"a")) + END, "damaged"),
    "a wrong sum": (raw(b"a")[:148] + b"0000000\0" + raw(b"a")[156:] + END, "no tar archive"),
    "cut off in a file": (tar([entry("a", content=bytes(5000))])[:2000], "cut off"),
    "cut off in a header": (tar([entry("a"), entry("b")])[:1100], "damaged"),
    "cut off while compressed": (SQUEEZE["gzip"](tar([entry("a")]))[:-20], "cut off"),
    "damaged while compressed": (SQUEEZE["bzip2"](tar([entry("a")]))[:60] + b"damaged" * 9, "damaged"),
    "nothing": (b"", "no tar archive"),
    "text": (b"no archive" * 100, "no tar archive"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused_in_one_line_and_leaves_nothing(place: Place, what: str) -> None:
    data, words = HOSTILE[what]
    before = [b""]
    if words != "no tar archive" and not data.startswith((b"\x1f\x8b", b"BZh")):
        before.append(without_end(tar([folder("kept"), entry("kept/file"), link("kept/link", "file")])))
    for each in before:
        with pytest.raises(BadArchive, match=words) as refused:
            place.unpack(each + data)
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 300
        assert not os.listdir(place.target)


def test_a_folder_that_is_not_empty_is_left_alone(place: Place) -> None:
    (place.target / "link").symlink_to("..")
    with pytest.raises(BadArchive, match="not empty"):
        place.unpack(tar([entry("link/file")]))
    assert os.listdir(place.target) == ["link"]


def test_a_target_that_is_a_link_is_not_followed(place: Place) -> None:
    place.archive.write_bytes(tar([entry("file")]))
    place.target.rmdir()
    place.target.symlink_to(place.outside)
    with pytest.raises(OSError, match="Not a directory"):
        unpack(str(place.archive), str(place.target))
    assert os.listdir(place.outside) == ["file"]


def test_a_bomb_is_read_as_far_as_its_headers_tell_and_no_further(place: Place) -> None:
    """Ten megabytes of zeros are a few kilobytes; nothing is read of what follows the end, nor of a file that is too large."""
    zeros = bytes(10_000_000)
    place.unpack(SQUEEZE["gzip"](tar([entry("a")]) + zeros))
    assert (place.target / "a").read_text() == "text"

    class Counted(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            self.taken += len(data)
            return data

    stream = Counted(tar([entry("a", content=zeros)]))
    (place.folder / "empty").mkdir()
    empty = os.open(place.folder / "empty", os.O_RDONLY)
    with pytest.raises(BadArchive, match="more than"):
        unpack_below(stream, empty, SMALL)
    os.close(empty)
    assert stream.taken <= 2 * 1024


def test_an_archive_may_not_ask_for_all_memory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "DECOMPRESSION_BYTES", 1 << 20)
    with pytest.raises(BadArchive, match=r"[Mm]emory"):
        place.unpack(SQUEEZE["xz"](tar([entry("a")])))


def test_too_many_links_through_links_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand links of thirty steps each, all of which lead through another link."""
    monkeypatch.setattr(unpacking, "LINK_STEPS", 20_000)
    entries = [link("a", "."), *(link(f"l{number}", "a/" * 30) for number in range(1000))]
    with pytest.raises(BadArchive, match="lead through others"):
        place.unpack(tar(entries), Limits())
    assert not os.listdir(place.target)
    monkeypatch.setattr(unpacking, "LINKS_BYTES", 20_000)
    with pytest.raises(BadArchive, match="too many links"):
        place.unpack(tar(entries), Limits())


names = st.lists(st.sampled_from(["a", "b", "c", "..", ".", "", "l"]), min_size=1, max_size=5).map("/".join)
kinds = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
targets = st.one_of(names, names.map(lambda name: f"/{name}"), st.sampled_from(["../../outside/file", "../file"]))
members = st.builds(entry, names, kinds, targets, st.integers(0, 0o7777))
plain = st.lists(st.sampled_from(["a", "b", "c", "l"]), min_size=1, max_size=4).map("/".join)
honest = st.builds(
    entry, plain, st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE]), names, st.integers(0, 0o7777)
)


@given(st.lists(st.one_of(members, honest, honest, honest), max_size=8), st.sampled_from(FORMATS))
def test_whatever_is_in_an_archive_stays_inside(entries: list[Any], format: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        place = Place(Path(made))
        try:
            place.unpack(tar(entries, format))
        except BadArchive:
            assert not os.listdir(place.target)
        place.check_inside()


@given(st.lists(honest, max_size=5), st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=6))
def test_a_damaged_archive_is_unpacked_or_refused(entries: list[Any], changes: list[tuple[int, int]]) -> None:
    data = bytearray(tar(entries))
    for where, byte in changes:
        data[where % len(data)] = byte
    with tempfile.TemporaryDirectory() as made:
        place = Place(Path(made))
        try:
            place.unpack(bytes(data))
        except BadArchive:
            assert not os.listdir(place.target)
        place.check_inside()


@pytest.mark.parametrize("name", ["]", "BZh91AY", "]x", "BZh"])
def test_a_first_name_that_looks_like_a_compression(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.unpack(tar([entry(name, content=b"whole")]))
    assert (place.target / name).read_bytes() == b"whole"


texts = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=40)


@given(
    st.dictionaries(texts.filter(lambda name: name not in (".", "..")), st.binary(max_size=2000), max_size=6),
    st.sampled_from(FORMATS[1:]),
)
def test_names_and_contents_come_back_as_they_were(files: dict[str, bytes], format: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        place = Place(Path(made))
        place.unpack(tar([entry(name, content=content) for name, content in files.items()], format))
        assert {path.name: path.read_bytes() for path in place.target.iterdir()} == files
