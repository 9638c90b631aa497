"""Real container engines for tests: a Docker Engine and a Podman of our own, and images made of this machine's files."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ENABLE = "sudo apt-get install docker.io podman runc iptables busybox-static, and run the tests as root"
ULIMITS = "nofile=16384:16384", "nproc=16384:16384"
IMAGE = "localhost/pailot-test:latest"
"""bash, busybox's tools and this machine's Python."""
SMALL = "localhost/pailot-busybox:latest"
"""busybox and nothing else: its /bin/sh knows pipefail."""
DASH = "localhost/pailot-dash:latest"
"""dash as /bin/sh and nothing else but a few tools: no pipefail."""


class Docker:
    """A Docker Engine whose data and socket live in a folder of their own."""

    def __init__(self, folder: Path, *, live_restore: bool = True) -> None:
        self.folder, self.live_restore = folder, live_restore
        self.socket = folder / "docker.sock"
        self.environment = {"DOCKER_HOST": f"unix://{self.socket}", "PAILOT_CONTAINER_COMMAND": "docker"}
        self.process: subprocess.Popen[bytes] | None = None
        self.program = "docker"
        self.before: tuple[bytes, set[str]] | None = None
        """The rules of the firewall and the networks that were there before."""

    def start(self) -> None:
        """Start it and wait until it answers; one that was killed needs a second try now and then."""
        self.before = self.before or (_rules(), set(os.listdir("/sys/class/net")))
        for last in (False, False, True):
            # A killed dockerd takes its containerd along; for the pid file of that, the next one would wait 15 seconds.
            for name in ("docker.pid", "exec/containerd/containerd.pid"):
                (self.folder / name).unlink(missing_ok=True)
            with (self.folder / "dockerd.log").open("ab") as log:
                self.process = subprocess.Popen(
                    self._words(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
            if self._answers(60) or last:
                break
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "dockerd.log").read_text()[-2000:]

    def _words(self) -> list[str]:
        folder = self.folder
        dies_with_us = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
        return [
            *dies_with_us,
            "dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/docker.pid",
            "-H", f"unix://{self.socket}", *(["--live-restore"] if self.live_restore else []),
            *(word for each in ULIMITS for word in ("--default-ulimit", each)),
        ]  # fmt: skip

    def _answers(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process is not None and self.process.poll() is None:
            if self.run("version", check=False).returncode == 0:
                return True
            time.sleep(0.05)
        return False

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command of the engine."""
        return subprocess.run(
            [self.program, *words], env=os.environ | self.environment, capture_output=True, text=True, check=check, timeout=120
        )

    def kill(self) -> None:
        """As a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def containers(self) -> list[str]:
        """Those of Pailot that are there, running or not."""
        return self.run("ps", "--all", "--quiet", "--filter", "label=pailot.run").stdout.split()

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        left = self.run("ps", "--all", "--quiet", check=False).stdout.split()
        if left:
            self.run("rm", "--force", *left, check=False)
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # Each container has a process of containerd's, which stays if that was killed.
        for pid in _processes_of(str(self.folder)):
            os.kill(pid, signal.SIGKILL)
        _unmount(self.folder)
        self._restore_network()

    def _restore_network(self) -> None:
        """Docker leaves its bridges and rules behind, and forwards nothing else; another one may still need them."""
        if self.before is None or _processes_of("dockerd"):
            return
        rules, networks = self.before
        for name in set(os.listdir("/sys/class/net")) - networks:
            if name == "docker0" or name.startswith("br-"):
                subprocess.run(["ip", "link", "delete", name], check=False, capture_output=True)
        subprocess.run(["iptables-restore"], input=rules, check=False, capture_output=True)


def _rules() -> bytes:
    return subprocess.run(["iptables-save"], check=False, capture_output=True).stdout


def _processes_of(word: str) -> list[int]:
    """Processes of a container engine with that word on their command line."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            line = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        program = os.path.basename(line[0])
        if program in (b"dockerd", b"containerd", b"containerd-shim-runc-v2", b"docker-proxy") and word.encode() in b" ".join(
            line
        ):
            found.append(int(entry))
    return found


class Podman(Docker):
    """A Podman with its own storage; there is no daemon."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        conf = folder / "containers.conf"
        limits = ", ".join(f'"{each}"' for each in ULIMITS)
        conf.write_text(f'[containers]\ndefault_ulimits = [{limits}]\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n')
        storage = folder / "storage.conf"
        storage.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n')
        self.environment = {
            "CONTAINERS_CONF": str(conf),
            "CONTAINERS_STORAGE_CONF": str(storage),
            "PAILOT_CONTAINER_COMMAND": "podman",
        }
        self.program = "podman"

    def start(self) -> None:
        pass  # each command does its own work

    def stop(self) -> None:
        self.run("rm", "--all", "--force", check=False)
        _unmount(self.folder)


def _unmount(folder: Path) -> None:
    """What an engine left mounted below its folder, deepest first."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in sorted((each for each in mounts if each.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)


_started: dict[str, Docker] = {}


def docker() -> Docker:
    """The Docker Engine that all tests share; skips where there is none."""
    return _started.get("docker") or _start("docker", Docker, "dockerd", "runc", "docker", "iptables", "busybox")


def podman() -> Docker:
    """The Podman that all tests share; skips where there is none."""
    return _started.get("podman") or _start("podman", Podman, "podman", "runc", "busybox")


def folder_for(name: str) -> Path:
    """A short path, since sockets have short names; on a real disk, since overlays need one."""
    return Path(tempfile.mkdtemp(prefix=f"pailot-{name}-", dir="/var/tmp"))


def _start(name: str, kind: type[Docker], *programs: str) -> Docker:
    missing = [each for each in programs if shutil.which(each) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"{', '.join(missing) or 'root'} is missing; enable these tests with: {ENABLE}")
    engine = kind(folder_for(name))
    atexit.register(_finish, engine)
    engine.start()
    for image in (IMAGE, SMALL, DASH):
        make_image(engine, image)
    _started[name] = engine
    return engine


def _finish(engine: Docker) -> None:
    engine.stop()
    shutil.rmtree(engine.folder, ignore_errors=True)


# Images of this machine's files: no registry is asked


def make_image(engine: Docker, image: str) -> None:
    root = Path(tempfile.mkdtemp(prefix="pailot-image-"))
    try:
        {IMAGE: _with_python, SMALL: _busybox, DASH: _dash}[image](root)
        archive = subprocess.Popen(
            ["tar", "-C", str(root), "--numeric-owner", "--owner=0", "--group=0", "-cf", "-", "."], stdout=subprocess.PIPE
        )
        path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        subprocess.run(
            [engine.program, "import", "--change", path, "-", image],
            env=os.environ | engine.environment, stdin=archive.stdout, check=True, capture_output=True,
        )  # fmt: skip
        assert archive.stdout
        archive.stdout.close()
        assert archive.wait() == 0
    finally:
        shutil.rmtree(root)


def _skeleton(root: Path) -> None:
    for name in "bin sbin usr etc proc sys dev run tmp root var/tmp lib lib64 mnt".split():
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib"):
        (root / "usr" / name).symlink_to(f"../{name}")
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\npasswd: files\ngroup: files\n")


def _busybox(root: Path) -> None:
    _skeleton(root)
    program = shutil.which("busybox")
    assert program
    shutil.copy(program, root / "bin/busybox")
    for name in subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if not (root / "bin" / name).exists():
            (root / "bin" / name).symlink_to("busybox")


def _dash(root: Path) -> None:
    _skeleton(root)
    for source, target in (("/bin/dash", "sh"), ("/bin/cat", "cat"), ("/bin/sleep", "sleep")):
        shutil.copy(source, root / "bin" / target)
        _libraries(root, source)


def _with_python(root: Path) -> None:
    _busybox(root)
    python = next(path for path in sorted(Path("/usr/bin").glob("python3.*")) if path.name[8:].isdigit())
    for source, target in ((python, python.name), (Path("/bin/bash"), "bash")):
        (root / "bin" / target).unlink(missing_ok=True)
        shutil.copy(source, root / "bin" / target)
    for name in ("python3", "python"):
        (root / "bin" / name).symlink_to(python.name)
    library = Path("/usr/lib") / python.name
    left_out = shutil.ignore_patterns(
        "__pycache__", "config-3*", "test", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo"
    )
    shutil.copytree(library, root / "lib" / python.name, ignore=left_out, symlinks=True, ignore_dangling_symlinks=True)
    _libraries(root, str(python), "/bin/bash", *map(str, (library / "lib-dynload").glob("*.so")))


def _libraries(root: Path, *programs: str) -> None:
    """Every shared object that these need, at the same path."""
    said = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    wanted = {word for line in said.splitlines() for word in line.split() if word.startswith("/") and not word.endswith(":")}
    for each in wanted:
        target = root / each.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            shutil.copy(os.path.realpath(each), target)
