"""A real Slurm cluster of several nodes on this one machine, for tests and for trying things out.

    python -m tests.parts.slurm up /tmp/cluster      # starts it; prints the line that points Slurm's programs at it
    python -m tests.parts.slurm crash /tmp/cluster n2
    python -m tests.parts.slurm down /tmp/cluster

Each node is a process namespace of its own, with its own host name and its own slurmd, so that a node can be cut off
like a machine that loses power. What is in the cluster's folder `unseen` the nodes do not see. Its GPUs are character
devices that nobody opens. It needs root, and Debian's packages.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "unshare": "util-linux"}
ENABLE = "sudo apt-get install --no-install-recommends munge slurmctld slurmd slurm-client, and run the tests as root"
SECONDS = 90

CONFIGURATION = """\
ClusterName=pailot
SlurmctldHost={host}({address})
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0,bf_interval=1,bf_continue,bf_hetjob_immediate
PriorityType=priority/multifactor
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
MinJobAge=3600
MaxJobCount=20000
KillWait=5
BatchStartTimeout=10
SlurmdTimeout=5
MessageTimeout=5
TCPTimeout=2
InactiveLimit=0
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 DefaultTime=1:00:00 PriorityTier=1 PreemptMode=OFF
PartitionName=gpu Nodes=ALL MaxTime=1-00:00:00 DefaultTime=1:00:00 PriorityTier=1 PreemptMode=OFF
PartitionName=low Nodes=ALL MaxTime=1-00:00:00 DefaultTime=1:00:00 PriorityTier=1 PreemptMode=CANCEL GraceTime=0
PartitionName=urgent Nodes=ALL MaxTime=1-00:00:00 DefaultTime=1:00:00 PriorityTier=9 PreemptMode=OFF
"""
NODE = """\
hostname "$1"
mount --bind "$2/etc/hosts" /etc/hosts
mount -t tmpfs none "$2/unseen"
slurmd -f "$2/etc/slurm.conf" -N "$1" >>"$2/log/node-$1.out" 2>&1
trap : TERM
while :; do sleep 3600 & wait $!; done
"""


class Cluster:
    """One cluster in a folder of its own: configuration, sockets, process numbers, logs."""

    def __init__(self, folder: Path, *, nodes: int = 3, cpus: int = 8, memory_mb: int = 4096, gpus: int = 2) -> None:
        self.folder = folder
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.cpus, self.memory_mb, self.gpus = cpus, memory_mb, gpus
        self.processes: list[subprocess.Popen[bytes]] = []
        self.numbers: dict[str, int] = {}
        """Of the daemons: should somebody remove the folder, they are still found."""

    @property
    def environment(self) -> dict[str, str]:
        """What points Slurm's programs at it; without it they would search the network."""
        return {"SLURM_CONF": str(self.folder / "etc/slurm.conf")}

    @staticmethod
    def missing() -> str:
        """What keeps a cluster from running here, with the way to enable it; empty if nothing does."""
        if not all(shutil.which(program) for program in PROGRAMS):
            return f"no Slurm: {ENABLE}"
        if os.geteuid() != 0:
            return "a Slurm cluster of several nodes needs root: run the tests as root"
        probe = ["unshare", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "true"]
        if subprocess.run(probe, capture_output=True, check=False).returncode:
            return "a Slurm cluster of several nodes needs namespaces, which this machine does not allow: unshare failed"
        return ""

    def start(self) -> None:
        for name in ("etc", "run", "log", "state", "spool", "dev", "unseen"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        (self.folder / "run/node").write_text(NODE)
        self._configure()
        key = self.folder / "etc/munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        files = {"key-file": "etc/munge.key", "socket": "run/munge.socket", "pid-file": "run/munged.pid"}
        files |= {"log-file": "log/munged.log", "seed-file": "run/munged.seed"}
        self._call("munged", "--force", *(f"--{option}={self.folder / path}" for option, path in files.items()))
        self.start_controller("-c")
        for name in self.names:
            self.start_node(name)
        self.wait_idle()

    def wait_idle(self) -> None:
        """Until all nodes take jobs."""

        def idle() -> bool:
            found = self.slurm("sinfo", "-h", "-N", "-p", "main", "-t", "idle", "-o", "%N").split()
            return sorted(found) == self.names

        self._wait(idle, "idle nodes")
        self._remember("munged", "slurmctld")

    def _configure(self) -> None:
        host = os.uname().nodename.partition(".")[0]
        found = subprocess.run(["getent", "ahostsv4", host], capture_output=True, text=True, check=False).stdout.split()
        address = found[0] if found else "127.0.0.1"
        ports = _free_ports(address, len(self.names) + 1)
        hosts = ["127.0.0.1 localhost", f"{address} {host}", *(f"{address} {name}" for name in self.names)]
        (self.folder / "etc/hosts").write_text("\n".join(hosts) + "\n")
        size = f"CPUs={self.cpus} RealMemory={self.memory_mb} Gres=gpu:fake:{self.gpus}"
        nodes = "\n".join(
            f"NodeName={name} NodeAddr={address} Port={port} {size} State=UNKNOWN"
            for name, port in zip(self.names, ports[1:], strict=True)
        )
        text = CONFIGURATION.format(folder=self.folder, host=host, address=address, port=ports[0], nodes=nodes)
        (self.folder / "etc/slurm.conf").write_text(text)
        for number in range(self.gpus):
            device = self.folder / f"dev/nvidia{number}"
            if not device.exists():
                os.mknod(device, 0o20666, os.makedev(1, 3))
        devices = f"{self.folder}/dev/nvidia[0-{self.gpus - 1}]"
        (self.folder / "etc/gres.conf").write_text(f"NodeName={','.join(self.names)} Name=gpu Type=fake File={devices}\n")
        # slurmd looks for control groups although nothing here uses them; a named kind is not looked for.
        version = self._call("slurmctld", "-V").split()[-1]
        plugin = "cgroup/v1" if tuple(map(int, version.split(".")[:2])) <= (23, 2) else "disabled"
        (self.folder / "etc/cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")

    # Its parts

    def start_controller(self, *options: str) -> None:
        self._call("slurmctld", "-f", self.environment["SLURM_CONF"], *options)

    def kill_controller(self) -> None:
        """SIGKILL: it saves nothing."""
        self._end("slurmctld", signal.SIGKILL)

    def restart_controller(self) -> None:
        """The nodes report at once what runs on them, not after half a minute."""
        self.start_controller()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if words[:3] == ["slurmd", "-f", self.environment["SLURM_CONF"]]:
                    os.kill(int(entry.name), signal.SIGHUP)

    def start_node(self, name: str) -> None:
        script = self.folder / "run/node"
        words = ["unshare", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child", "--propagation", "private"]
        with open(self.folder / f"log/node-{name}.out", "ab") as log:
            process = subprocess.Popen(
                [*words, "sh", str(script), name, str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self.environment},
            )
        (self.folder / f"run/node-{name}.pid").write_text(str(process.pid))
        self.processes.append(process)

    def crash_node(self, name: str) -> None:
        """Every process of the node is gone at once, as if it had lost power."""
        self._end(f"node-{name}", signal.SIGKILL)

    def declare_down(self, name: str) -> None:
        """What the controller would find out by itself after a while."""
        self.slurm("scontrol", "update", f"nodename={name}", "state=down", "reason=test")

    def revive_node(self, name: str) -> None:
        (self.folder / f"run/slurmd-{name}.pid").unlink(missing_ok=True)
        self.start_node(name)

        def back() -> bool:
            return self.slurm("sinfo", "-h", "-N", "-p", "main", "-n", name, "-o", "%T").strip() in ("idle", "mixed", "allocated")

        self._wait(back, f"node {name}")

    def stop(self) -> None:
        self._end("slurmctld", signal.SIGTERM)
        for name in self.names:
            self._end(f"node-{name}", signal.SIGKILL)
        self._end("munged", signal.SIGTERM)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    # Talking to it

    def slurm(self, *words: str) -> str:
        """What one of Slurm's programs prints; nothing where it fails."""
        done = subprocess.run(words, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    def jobs(self) -> dict[str, str]:
        """State by job number, of all jobs it knows."""
        lines = self.slurm("squeue", "-h", "-t", "all", "-o", "%i %T").splitlines()
        return {line.split()[0]: line.split()[1] for line in lines}

    def _call(self, *words: str) -> str:
        done = subprocess.run(words, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout

    def _end(self, what: str, number: signal.Signals) -> None:
        """End a part by the number it left, if that still is what it says."""
        file = self.folder / f"run/{what}.pid"
        self._remember(what)
        pid = self.numbers.pop(what, 0)
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().decode()
        except OSError:
            return
        if what.partition("-")[0] not in command and str(self.folder) not in command:
            return
        os.kill(pid, number)
        self._wait(lambda: not _lives(pid), f"the end of {what}")
        file.unlink(missing_ok=True)

    def _remember(self, *daemons: str) -> None:
        for what in daemons:
            try:
                self.numbers[what] = int((self.folder / f"run/{what}.pid").read_text())
            except (OSError, ValueError):
                pass  # not there, or half written; what was known stands

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + SECONDS
        while not done():
            if time.monotonic() > until:
                raise RuntimeError(f"{what}: not within {SECONDS} s; see {self.folder}/log")
            time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] not in ("Z", "X")
    except OSError:
        return False


def _free_ports(address: str, count: int) -> list[int]:
    """Ports that nobody listens on, below those that the kernel gives away."""
    import random
    import socket

    found: list[int] = []
    for port in random.sample(range(20_000, 30_000), 10_000):
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free ports")


_started: list[Cluster] = []


def cluster() -> Cluster:
    """The one that all tests share: started at the first call, stopped when they end; skips where it cannot run."""
    import atexit
    import tempfile

    import pytest

    if not _started:
        problem = Cluster.missing()
        if problem:
            pytest.skip(problem)
        made = Cluster(Path(tempfile.mkdtemp(prefix="pailot-slurm-")))
        if not os.environ.get("PAILOT_KEEP_CLUSTER"):  # its logs tell what went wrong
            atexit.register(shutil.rmtree, made.folder, ignore_errors=True)
        atexit.register(made.stop)
        made.start()
        _started.append(made)
    return _started[0]


def main(words: list[str]) -> int:
    what, folder, *rest = words
    cluster = Cluster(Path(folder).absolute())
    if what == "up":
        problem = cluster.missing()
        if problem:
            print(problem, file=sys.stderr)
            return 1
        cluster.start()
        print("\n".join(f"export {name}={value}" for name, value in cluster.environment.items()))
        return 0
    actions: Mapping[str, Callable[..., None]] = {
        "down": cluster.stop,
        "crash": cluster.crash_node,
        "revive": cluster.revive_node,
        "kill-controller": cluster.kill_controller,
        "start-controller": cluster.start_controller,
    }
    actions[what](*rest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
