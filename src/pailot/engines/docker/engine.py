"""Tasks in containers: one forked shim each, as on the local engine, with a container around what it runs."""

from __future__ import annotations

import errno
import os

from ...data.addresses import folder_of
from ...data.ml_mounts import CONTAINED
from ...runfolder import layout
from ...runfolder.records import Placement
from ...runtime import (
    container_shim,  # noqa: F401  # or each shim would load it by itself
    docker_api,
)
from ...runtime.docker_api import mount
from ...runtime.task_spec import Container
from .. import traits
from ..contract import EngineError
from ..local.engine import LocalEngine, too_much
from ..preparation import machine, workdir
from . import images, run_arguments, settings
from .container_cli import DOCKER, PODMAN, Program, candidates, has_proxies, last_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence

    from ...data.ml_mounts import Mount
    from ...planning import RolePlan
    from ...runtime.task_spec import Task
    from ..contract import Attempt, EngineContext, Steps
    from ..preparation.gpus import Gpu

MEMORY_FOLDER = "/run/pailot"
LABEL = "pailot"


class DockerEngine(LocalEngine):
    """Runs attempts in containers of this machine."""

    name = "docker"
    traits = traits.DOCKER

    def __init__(self, context: EngineContext | None = None) -> None:
        super().__init__(context)
        self.choices = settings.read()
        self.program: Program | None = None
        self.network = ""
        self._common: tuple[str, ...] = ()
        self._fetched: set[str] = set()

    def start(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Sequence[str]]:
        if attempt.context.sandbox:
            raise EngineError("a container is a sandbox already; leave --sandbox out")
        if attempt.context.run_as:
            raise EngineError(f"the docker engine cannot start containers as another user ({attempt.context.run_as})")
        return (yield from super().start(attempt, stopped))

    def release(self) -> None:
        super().release()
        self._remove_network()

    def close(self) -> None:
        self._remove_network()
        super().close()

    # For the user

    @classmethod
    def listening(cls, task_folder: str) -> set[int]:
        from .task_container import running  # with `subprocess` and `socket`, which a run does without

        found = running(task_folder)
        return found.listening() if found else set()

    @classmethod
    def dial(cls, task_folder: str, host: str, port: int, seconds: float) -> socket.socket:  # noqa: ARG003  # a name inside
        from .task_container import running

        found = running(task_folder)
        if found is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "its container is not running")
        return found.dial(port, seconds)

    # What is around a task

    def _notes(self, attempt: Attempt) -> list[str]:
        if attempt.number:
            return []
        return too_much(attempt.plan)

    def _inherited(self, attempt: Attempt) -> Mapping[str, str]:
        """Nothing: an image has an environment of its own, and the paths of this machine are not there."""
        return {}

    def _address(self, role: str, index: int) -> str:
        return _host_name(role, index) if self._bridged else super()._address(role, index)

    @property
    def _bridged(self) -> bool:
        return self.choices.network == settings.BRIDGE

    def _provide(
        self, attempt: Attempt, works: Sequence[str], stopped: Callable[[], bool]
    ) -> Steps[Mapping[str, Mapping[str, str]]]:
        self.program = yield from self._bring_images(attempt, stopped)
        self._sweep(self.program)
        provided = yield from super()._provide(attempt, works, stopped)
        self._fetched = {_to_mount(path, attempt) for paths in provided.values() for path in paths.values()}
        self._common = ()
        return provided

    def _bring_images(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Program]:
        """The images first: whatever is wrong with them is said before anything starts."""
        programs = [self.program] if self.program else candidates(self.choices.command)
        policy = self.choices.pull if not attempt.number else settings.MISSING

        if policy != settings.ALWAYS:
            found = images.all_here(attempt.plan, programs)
            if found is not None:
                return found
        owner = os.getpid()
        say = self.context.waiting
        if self.context.many_runs:  # a child has none of what the others would be told through
            self.context.waiting(
                f"bringing the images {', '.join(sorted({role.image.uri for role in attempt.plan.roles.values()}))}"
            )
            say = _say_nothing

        def bring() -> int:
            return programs.index(images.bring(attempt.plan, attempt.context.logins, programs, policy, say, owner))

        from ..preparation.background_child import in_a_child

        try:
            # A pull takes long, and is to be stopped like anything else.
            return programs[(yield from in_a_child(bring, attempt.descriptors, self, stopped))]
        finally:
            images.sweep(owner)

    def _sweep(self, program: Program) -> None:
        """Remove what a daemon that was away, or the death of all our processes, has left behind."""
        if program.socket:
            docker_api.sweep(program.socket, f"{LABEL}.run")

    def _words_for_all(self, attempt: Attempt) -> tuple[str, ...]:
        """What the containers of an attempt have in common."""
        program, chosen = self._program, self.choices
        run = os.path.basename(os.path.dirname(os.path.dirname(attempt.folder)))
        common = [
            *_work_mount(attempt),
            *mount(os.path.join(attempt.folder, layout.PEERS), read_only=True),
            *mount(attempt.checkpoints),
            *(word for each in sorted({*self._fetched, *self.roots}) for word in mount(each, read_only=True)),
            *run_arguments.more_mounts(chosen.mounts),
            *run_arguments.storages(attempt.plan, chosen.storages),
            *run_arguments.user(program, chosen.user),
            "--label", f"{LABEL}.run={run}",
            "--label", f"{LABEL}.job={attempt.plan.full_name}",
        ]  # fmt: skip
        if not attempt.context.rules.server:
            common += run_arguments.job_folders(attempt.plan.options, common)
        if attempt.context.hidden:
            common += ["--tmpfs", f"{MEMORY_FOLDER}:rw,noexec,nosuid,mode=1777,size=64m"]
        if program.kind in (DOCKER, PODMAN):
            common += ["--log-driver", "none", "--pull", "never"]
        if os.path.exists("/sys/fs/selinux/enforce"):
            common += ["--security-opt", "label=disable"]  # or the mounted folders could not be used
        if self._bridged:
            self.network = f"pailot-{run}-{attempt.number}"
            made = program.run("network", "create", "--label", f"{LABEL}.run={run}", self.network)
            if made.returncode:
                raise EngineError(f"the network of the job cannot be made: {last_line(made.stderr)}")
            common += ["--network", self.network]
        else:
            common += ["--network", "host"]
        return tuple(common)

    @property
    def _program(self) -> Program:
        assert self.program is not None, "the images are brought first"
        return self.program

    def _around(self, task: Task, attempt: Attempt, role: RolePlan, gpus: Sequence[Gpu]) -> Task:
        program = self._program
        self._common = self._common or self._words_for_all(attempt)
        run = os.path.basename(os.path.dirname(os.path.dirname(attempt.folder)))
        mine = [
            *self._common,
            *self._own_mounts(task),
            *(word for each in self._mounts(task)
              for word in mount(each.source, each.target, read_only=each.read_only)),
            "--label", f"{LABEL}.task={task.role}:{task.index}",
            *run_arguments.limits(program, role.resources, machine.cpus()),
            *run_arguments.devices(program, role.resources, gpus),
        ]  # fmt: skip
        if self._bridged:
            name = _host_name(task.role, task.index)
            mine += ["--hostname", name, "--network-alias", name]
            numbers = [number for ports in self._ports_of(attempt, task) for number in ports]
            mine += [word for number in numbers for word in ("--publish", f"{number}:{number}")]
        environment = {**task.environment, **self._inside(task, program, gpus), **attempt.plan.options.environment}
        strange = {key: value for key, value in environment.items() if not (key.isascii() and key.isidentifier())}
        mine += [word for key, value in strange.items() for word in ("--env", f"{key}={value}")]
        made = Container(
            command=(program.path,),
            name=f"pailot-{run}-{attempt.number}-{task.role}-{task.index}",
            words=tuple(mine),
            image=role.image.uri,
            memory_folder=MEMORY_FOLDER if attempt.context.hidden else "",
            removes_itself=program.kind == PODMAN,
            remove_at=program.socket,
            socket="" if has_proxies() else program.socket,
            needs_client=program.kind != DOCKER,
            wait_until_removed=self._bridged,
        )
        return task.replace(environment=environment, container=made, memory_mb=0, cpus=0)

    def _own_mounts(self, task: Task) -> list[str]:
        """Of the run's folder, only what the task works with. Its logs are for reading; no record of ours is there."""
        logs, home = os.path.join(task.folder, layout.ATTEMPTS), os.path.join(task.folder, layout.CONTAINER_HOME)
        os.makedirs(logs, mode=0o700, exist_ok=True)
        shown = [*mount(logs, read_only=True)]
        if f"{task.work_dir}/".startswith(f"{task.folder}/"):
            shown += mount(task.work_dir)
        if not run_arguments.is_root(self._program, self.choices.user):
            os.makedirs(home, mode=0o700, exist_ok=True)
            shown += mount(home)
        return shown

    def _mounts(self, task: Task) -> list[Mount]:
        """What the task sees below /ml, if the job has channels."""
        if (task.role, task.index) not in self.views:
            return []
        return self.views[task.role, task.index].mounts(self.shown)

    def _ports_of(self, attempt: Attempt, task: Task) -> list[list[int]]:
        return list(Placement.of(attempt.folder).ports_of(task.role, task.index).values())

    def _inside(self, task: Task, program: Program, gpus: Sequence[Gpu]) -> dict[str, str]:
        """Variables that are other than on the machine itself."""
        told = {CONTAINED: "1"} if self.views else {}
        if not run_arguments.is_root(program, self.choices.user):
            # Root has a home in every image; this user is in no image's list of users.
            home = os.path.join(task.folder, layout.CONTAINER_HOME)
            told |= {"HOME": home, "USER": task.environment["PAI_USER_NAME"], "LOGNAME": task.environment["PAI_USER_NAME"]}
        if any(gpu.uuid for gpu in gpus):
            told["CUDA_VISIBLE_DEVICES"] = ",".join(str(number) for number in range(len(gpus)))  # counted anew inside
        return told

    def _remove_network(self) -> None:
        if self.network and self.program:
            self.program.run("network", "rm", self.network)
            self.network = ""


def _work_mount(attempt: Attempt) -> tuple[str, ...]:
    """The folder where the job was started, or that was named for it; tasks of a server have only one of their own."""
    if not attempt.context.cwd and not attempt.context.work_dir:
        return ()
    return run_arguments.work_mount(workdir.base_of(attempt.context.cwd, attempt.context.work_dir))


def _to_mount(path: str, attempt: Attempt) -> str:
    """What a container has to see for a file that was brought: its folder in the cache, or the folder of the settings."""
    return folder_of(path, attempt.context.rules) or os.path.dirname(path)


def _say_nothing(_: str) -> None:
    pass  # the first word of it was said already


def _host_name(role: str, index: int) -> str:
    """A name that other containers find a task by."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in f"{role}-{index}").lower()[:63]
