"""The step of one task: takes its ports, says where it is, then forks the shim and stands between it and the driver.

It talks in JSON lines: the driver's words come on standard input, ours go to standard output. Over the same way come the
secrets, which so are in no file and on no command line. When the driver is gone, the input ends, and the task with it.
"""

from __future__ import annotations

import binascii
import json
import os
import select
import signal

from ...runfolder import layout
from ...runfolder.atomic_json import write_record
from ...runfolder.records import TaskRecord
from ...runfolder.removing import remove_tree
from ...runfolder.stop_reason import claim_stop
from .. import processes
from ..folder_copy.tree import Tree
from ..ports import Ports
from ..quick_socket import sockets
from ..shim_events import Channel
from ..shim_process import fork_shim, run_and_exit
from ..task_spec import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PASSED_ON = (
    "CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES ZE_AFFINITY_MASK GPU_DEVICE_ORDINAL TMPDIR SLURM_CONF SLURM_CLUSTER_NAME "
    "SLURM_JOB_ID SLURM_JOBID SLURM_JOB_PARTITION SLURM_JOB_NODELIST SLURMD_NODENAME SLURM_STEP_ID SLURM_STEP_GPUS SLURM_JOB_GPUS"
).split()
"""What a task is told of its allocation. Not its rank among steps, which libraries would take for that in the job."""


BRING_MILLISECONDS = 500
"""How often new writes are looked for without a sign, where it has to be brought to the driver."""


class Step:
    """One task on its node."""

    def __init__(self, wanted: Mapping[str, Any], words_in: int, words_out: int, root: str = "", *, apart: bool = False) -> None:
        self.wanted = wanted
        self.root = root
        """Where no home is shared: the folder of this node that holds what came along."""
        self.tree = Tree(os.path.join(root, "attempt", layout.TASKS)) if apart else None
        """Whether the driver has a folder of its own, to which ours is brought."""
        self.words_in, self.words_out = words_in, words_out
        self.buffer = b""
        self.shim = 0
        self.folder = ""
        self.attempt_folder = ""
        self.over = False
        self.ports: Ports | None = None
        self.channel = Channel()
        self.liveness, self.alive = os.pipe2(os.O_CLOEXEC)

    def run(self) -> None:
        processes.become_subreaper()
        wake, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            self._say(event="ready", host=node_name(), address=address(), ports=self._take_ports(), root=self.root)
        except Exception as error:  # whatever it is, the driver must hear it, and the task does not start
            self._say(event="unfit", reason=str(error))
            return
        poller = select.poll()
        for descriptor in (self.words_in, self.channel.fileno(), wake):
            poller.register(descriptor, select.POLLIN)
        while not self.over:
            for descriptor, _ in poller.poll(None if self.tree is None else BRING_MILLISECONDS):
                if descriptor == self.words_in:
                    if not self._hear():
                        poller.unregister(self.words_in)
                        self._driver_lost()
                elif descriptor == wake:
                    os.read(wake, 4096)
                else:
                    self._pass_on()
            self._bring()
            self._reap()

    def _take_ports(self) -> dict[str, list[int]]:
        wanted: Mapping[str, int] = self.wanted["ports"]
        base: Mapping[str, int] = self.wanted["portBase"]
        self.ports = Ports()
        free = iter(self.ports.take(sum(count for label, count in wanted.items() if label not in base)))
        return {
            label: self.ports.take_exactly(base[label], count) if label in base else [next(free) for _ in range(count)]
            for label, count in wanted.items()
        }

    # The driver

    def _hear(self) -> bool:
        data = os.read(self.words_in, 1 << 16)
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            if "task" in word:
                self._start(Task.from_json(word["task"]), word["base"], word.get("peers"))
            elif "stop" in word:
                self._stop(word["stop"])
        return bool(data)

    def _say(self, **words: Any) -> None:
        data = json.dumps(words).encode("ascii") + b"\n"
        try:
            while data:
                data = data[os.write(self.words_out, data) :]
        except OSError:
            pass  # the reader is gone; the records hold the truth

    def _bring(self) -> None:
        """To the driver, where it does not see our folder."""
        if self.tree is not None and self.folder:
            for path, offset, data in self.tree.news():
                text = binascii.b2a_base64(data, newline=False).decode("ascii")
                self._say(event="piece", path=os.path.join(layout.TASKS, path), offset=offset, data=text)

    def _driver_lost(self) -> None:
        if self.alive >= 0:
            os.close(self.alive)
            self.alive = -1
        self.over = not self.shim

    # The task

    def _start(self, task: Task, base: Mapping[str, str], peers: Mapping[str, object] | None) -> None:
        if self.shim:
            return
        here = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
        environment = {name: value for name, value in base.items() if not name.startswith("SLURM_")}
        if "TMPDIR" in environment and not os.path.isdir(environment["TMPDIR"]):
            del environment["TMPDIR"]
        task = task.replace(environment={**environment, **here, **task.environment}, inherited=environment)
        self.folder, self.attempt_folder = task.folder, task.attempt_folder
        if self.root:
            self._unpack(task, peers)
        if not os.path.isdir(task.work_dir) or not os.path.isdir(task.folder):
            missing = task.work_dir if os.path.isdir(task.folder) else task.folder
            self._say(event="unfit", reason=f"{node_name()} does not see the folder {missing}")
            self.over = True
            return
        os.makedirs(os.path.join(self.attempt_folder, layout.TASKS), exist_ok=True)
        self.shim = fork_shim()
        if self.shim == 0:
            if self.alive >= 0:
                os.close(self.alive)
            for descriptor in (self.words_in, self.words_out):
                os.close(descriptor)
            run_and_exit(task, self.channel.writer, self.liveness)

    def _unpack(self, task: Task, peers: Mapping[str, object] | None) -> None:
        """The folders that the login node makes where they are shared; what came along is in the working directory."""
        import shutil

        for folder in (task.folder, task.work_dir):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        files = os.path.join(self.root, "files")
        if os.path.isdir(files):
            shutil.copytree(files, task.work_dir, symlinks=True, dirs_exist_ok=True)
        if self.tree is not None and peers is not None:
            write_record(os.path.join(task.attempt_folder, layout.PEERS), peers, durable=False)

    def _stop(self, stop: Mapping[str, Any]) -> None:
        """From this node, too, so that the shim sees it whatever the file system remembers."""
        if self.attempt_folder:
            claim_stop(self.attempt_folder, stop["why"], stop["grace"])
            if stop.get("now"):
                with open(os.path.join(self.attempt_folder, layout.KILL), "w"):
                    pass
        if self.shim:
            processes.send([self.shim], signal.SIGTERM)
        else:
            self.over = True

    def _pass_on(self) -> None:
        for word in self.channel.take():
            if word["event"] != "grown":  # that is seen in the file
                self._bring()  # first: what is reported can be found
                self._say(**word)

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.shim:
                self._pass_on()
                final = TaskRecord.final(self.folder)
                if final is None:
                    processes.kill_all(os.getpid())
                self._bring()
                self._say(event="final", final=final and final.to_json())
                self.over = True


def node_name() -> str:
    """This node's name, as Slurm knows it."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def address() -> str:
    """Where other nodes reach this one."""
    try:
        found = sockets.gethostbyname(node_name())
    except OSError:
        found = ""
    if found and not found.startswith("127."):
        return found
    other = os.environ.get("SLURM_LAUNCH_NODE_IPADDR", "")
    if other:
        probe = sockets.socket(sockets.AF_INET, sockets.SOCK_DGRAM)
        try:
            probe.connect((other, 9))  # sends nothing; only asks which way it would go
            return str(probe.getsockname()[0])
        except OSError:
            pass  # no way there
        finally:
            probe.close()
    return found or node_name()


def main(words: list[str]) -> int:
    """The whole life of a step, as a program: WANTED, and where no home is shared the folder that it unpacked."""
    words_out = os.dup(1)
    os.set_inheritable(words_out, False)
    os.dup2(2, 1)  # nothing but words may go that way
    wanted, *roots = words
    if not roots:
        Step(json.loads(wanted), 0, words_out).run()
        return 0
    try:
        Step(json.loads(wanted), 0, words_out, roots[0], apart=True).run()
    finally:
        remove_tree(roots[0], ignore_errors=True)
    return 0
