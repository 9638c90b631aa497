"""One engine, ready to run jobs, and a place for the runs of a test."""

from __future__ import annotations

from ..engines.registry import traits
from ..values import Value
from .runs import Home, Result, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..engines.traits import Traits


class EngineUnderTest(Value):
    """One engine, ready to run jobs.

    ::

        @pytest.fixture
        def engine():
            return EngineUnderTest("mine", image="debian:12")
    """

    name: str
    """What `pailot run -e` is told."""
    image: str = "debian"
    """An image with bash and python3."""
    environment: Mapping[str, str] = {}
    """Variables that point the command line at it."""
    options: tuple[str, ...] = ()
    """More words for `pailot run`."""
    addresses: str = r"127\.0\.0\.1"
    """A pattern for the addresses that tasks are told."""
    seconds: float = 120
    """How long a test waits for something that should take far less."""
    prepare: Callable[[Path], None] | None = None
    """Called with the folder of a test before its first run."""
    sees_our_files: bool = True
    """Whether tasks see the folders of this machine, be it by other paths."""
    left: Callable[[], list[str]] | None = None
    """What is still there of runs; nothing, once they have ended."""

    @property
    def traits(self) -> Traits:
        """What of the suite the engine is excused from, and what it must do in another way."""
        return traits(self.name)


class Place(Home):
    """A home whose runs go to one engine."""

    def __init__(self, folder: Path, engine: EngineUnderTest) -> None:
        super().__init__(folder)
        self.engine = engine
        self.environment |= engine.environment
        if engine.prepare:
            engine.prepare(folder)

    def job(self, *roles: str, **more: object) -> str:
        """A job file with the engine's image."""
        return job(*roles, **more).replace("uri: debian", f"uri: '{self.engine.image}'")  # type: ignore[arg-type]  # passed on

    def start(self, text: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        """Start `pailot run` with a job file, on the engine. Returns the process."""
        return super().start(text, "-e", self.engine.name, *self.engine.options, *options, **environment)

    def run(self, text: str, *options: str, timeout: float = 0, **environment: str) -> Result:
        """Run a job file on the engine, to its end. Returns what `pailot run` printed, and its exit status."""
        return super().run(text, *options, timeout=timeout or self.engine.seconds, **environment)

    def pailot(self, *arguments: str, timeout: float = 0) -> Result:
        """Run a command of Pailot in this home. Returns what it printed, and its exit status."""
        return super().pailot(*arguments, timeout=timeout or self.engine.seconds)
