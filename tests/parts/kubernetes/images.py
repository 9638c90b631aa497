"""Container images made from this machine's own files: no registry is asked.

`localhost/pause:1` holds a pod's network, `localhost/bb:1` has busybox only, `localhost/python:3` has bash and Python
as well, `localhost/user:1` is the same with a user that is not root.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

from .programs import cache

IMAGES = ("pause", "bb", "python", "user")
NAMES = {"pause": "localhost/pause:1", "bb": "localhost/bb:1", "python": "localhost/python:3", "user": "localhost/user:1"}
WAIT = "trap exit TERM INT; while :; do /bin/busybox sleep 2147483647 & wait $!; done"
LEFT_OUT = {"__pycache__", "test", "idlelib", "tkinter", "lib2to3", "ensurepip"}
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


class Layer:
    """One tar archive, file by file."""

    def __init__(self) -> None:
        self.data = io.BytesIO()
        self.archive = tarfile.open(fileobj=self.data, mode="w", format=tarfile.GNU_FORMAT)  # noqa: SIM115  # `pack` closes it
        self.there: set[str] = set()

    def _parents(self, path: str) -> None:
        for parent in reversed(Path(path).parents[:-1]):
            self.folder(str(parent))

    def _member(self, path: str, kind: bytes, mode: int) -> tarfile.TarInfo | None:
        path = path.strip("/")
        if path in self.there:
            return None
        self._parents(path)
        self.there.add(path)
        member = tarfile.TarInfo(path)
        member.type, member.mode = kind, mode
        return member

    def folder(self, path: str, mode: int = 0o755) -> None:
        member = self._member(path, tarfile.DIRTYPE, mode)
        if member is not None:
            self.archive.addfile(member)

    def link(self, path: str, target: str) -> None:
        member = self._member(path, tarfile.SYMTYPE, 0o777)
        if member is not None:
            member.linkname = target
            self.archive.addfile(member)

    def text(self, path: str, content: str) -> None:
        self.content(path, content.encode(), 0o644)

    def content(self, path: str, content: bytes, mode: int) -> None:
        member = self._member(path, tarfile.REGTYPE, mode)
        if member is not None:
            member.size = len(content)
            self.archive.addfile(member, io.BytesIO(content))

    def copy(self, source: str, path: str) -> None:
        """What a link leads to is copied."""
        self.content(path, Path(source).read_bytes(), 0o755 if os.access(source, os.X_OK) else 0o644)


def busybox_layer() -> Layer:
    layer = Layer()
    for name in "bin usr etc proc sys dev run root var lib lib64 mnt home".split():
        layer.folder(name)
    for name in ("tmp", "var/tmp"):
        layer.folder(name, 0o1777)
    layer.link("usr/bin", "../bin")
    layer.link("usr/sbin", "../bin")
    layer.link("sbin", "bin")
    found = shutil.which("busybox") or "/bin/busybox"
    layer.copy(found, "bin/busybox")
    layer.text(
        "etc/passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    )
    layer.text("etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n")
    layer.text("etc/nsswitch.conf", "hosts: files dns\n")
    return layer


def add_applets(layer: Layer) -> None:
    """Last, so that real programs of the same name stay."""
    listed = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        layer.link(f"bin/{name}", "busybox")


def add_python(layer: Layer) -> None:
    """Debian's Python with its standard library, bash, and the libraries of both."""
    python = os.path.realpath("/usr/bin/python3")
    version = Path(python).name
    layer.copy(python, f"bin/{version}")
    layer.link("bin/python3", version)
    layer.copy("/bin/bash", "bin/bash")
    library = Path("/usr/lib") / version
    extensions: list[str] = []
    for parent, folders, files in os.walk(library):
        folders[:] = [each for each in folders if each not in LEFT_OUT and not each.startswith("config-3")]
        for file in files:
            path = os.path.join(parent, file)
            if os.path.exists(path):
                layer.copy(path, path.strip("/"))
            if path.endswith(".so"):
                extensions.append(path)
    listed = subprocess.run(["ldd", python, "/bin/bash", *extensions], capture_output=True, text=True, check=False).stdout
    needed = {*re.findall(r"=> (/\S+)", listed), *re.findall(r"(?m)^\s+(/lib\S+)", listed)}
    needed |= {str(each) for name in ("dns", "files") for each in Path("/lib").glob(f"*-linux-gnu/libnss_{name}.so.2")}
    for path in sorted(needed):
        layer.copy(path, path.strip("/"))


def pack(layer: Layer, name: str, file: Path, command: list[str], user: str = "", environment: tuple[str, ...] = ()) -> None:
    """Write an archive as `docker save` does."""
    layer.archive.close()
    data = layer.data.getvalue()
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    config = {
        "architecture": MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Env": [path, *environment], "Cmd": command, "User": user},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(data).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    unfinished = file.with_suffix(f".{os.getpid()}")
    with tarfile.open(unfinished, "w") as archive:
        parts = {"manifest.json": json.dumps(manifest).encode(), "config.json": json.dumps(config).encode(), "layer.tar": data}
        for part, content in parts.items():
            member = tarfile.TarInfo(part)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    unfinished.rename(file)


def image(which: str) -> Path:
    """The archive of one of our images; made when it is not in the cache yet."""
    version = Path(os.path.realpath("/usr/bin/python3")).name
    file = cache() / "images" / f"{which}-{version}.tar"
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    layer = busybox_layer()
    if which == "pause":
        pack(layer, NAMES[which], file, ["/bin/busybox", "sh", "-c", WAIT])
        return file
    if which in ("python", "user"):
        add_python(layer)
    add_applets(layer)
    command = ["/bin/sh"] if which == "bb" else ["python3"]
    pack(layer, NAMES[which], file, command, "1000:1000" if which == "user" else "")
    return file
