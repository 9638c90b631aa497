"""The contract of engines: what the registry knows, what the base class does, and that nobody asks an engine for its name."""

from __future__ import annotations

import ast
import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from pailot.engines.contract import Engine, EngineContext, EngineError, through
from pailot.engines.fake import FakeEngine
from pailot.engines.registry import BUILT_IN, check, load, traits, traits_of_run
from pailot.engines.traits import Traits
from pailot.runfolder import layout

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "pailot"
LONGEST_ENGINE_LINES = 150


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_table_tells_what_the_engine_says(name: str) -> None:
    engine = load(name)
    assert issubclass(engine, Engine)
    assert (engine.name, engine.traits) == (name, traits(name))


def test_traits_are_known_without_loading_the_engine() -> None:
    code = "import sys; from pailot.engines.registry import traits; [traits(n) for n in sys.argv[1:]]; print(*sys.modules)"
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code, *BUILT_IN], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith("pailot.engines.") and name.endswith(".engine")]


def test_a_name_that_no_engine_has_is_refused_but_for_runs_of_the_past() -> None:
    for ask in (traits, check, load):
        with pytest.raises(EngineError, match="there is no engine 'cloud'; there is local, docker, slurm, kubernetes, openpai"):
            ask("cloud")
    assert traits_of_run("cloud") == Traits()


def test_engines_are_asked_by_their_contract_and_never_by_name() -> None:
    metrics = runpy.run_path(str(ROOT / "bench" / "metrics.py"))
    rules = [metrics["engine_getattrs"], metrics["engine_comparisons"]]
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    asking = {path: text for path, text in texts.items() if "engine" in text and path != SOURCE / "engines" / "registry.py"}
    found = {path.relative_to(SOURCE).as_posix(): sum(rule(ast.parse(text)) for rule in rules) for path, text in asking.items()}
    assert {name: times for name, times in found.items() if times} == {}


def test_the_base_class_has_a_default_for_all_but_four_methods(tmp_path: Path) -> None:
    engine = Engine(EngineContext(many_runs=True))
    attempt: Any = None
    assert (engine.changes(), engine.events(), engine.decided(attempt), engine.abandon()) == (None, (), None, ())
    assert (engine.preview(attempt), engine.shell_prefix("", terminal=False)) == ("", [])
    for do in (engine.release, engine.close, engine.check, lambda: engine.child_ended(1, 0)):
        do()
    seen = engine.observe(str(tmp_path))
    assert (seen.state, seen.tasks, seen.outcome) == ("WAITING", (), None)
    for must in (
        lambda: engine.start(attempt, lambda: False),
        lambda: engine.newly_ended(attempt),
        engine.alive,
        lambda: engine.stop(attempt, 0, "user"),
        lambda: engine.stop_detached("", 0, now=False),
    ):
        with pytest.raises(NotImplementedError):
            must()


def test_a_folder_tells_what_its_tasks_do(tmp_path: Path) -> None:
    import fcntl

    for index in range(4):
        os.makedirs(layout.task_folder(str(tmp_path), "worker", index))
    claims = [Path(layout.task_folder(str(tmp_path), "worker", index), layout.CLAIM) for index in range(3)]
    for claim in claims:
        claim.touch()
    held = os.open(claims[0], os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    claims[2].with_name(layout.FINAL).write_text('{"outcome": "succeeded", "exitCode": 0}')
    seen = Engine().observe(str(tmp_path))
    os.close(held)
    assert {each.index: each.state for each in seen.tasks} == {0: "running", 1: "lost", 2: "ended", 3: "absent"}
    assert seen.state == "RUNNING"


def test_steps_can_be_gone_through_by_a_process_that_has_nothing_else_to_do() -> None:
    waits: list[float | None] = []

    def steps() -> Any:
        yield None
        yield 3.0
        return "done"

    assert (through(steps(), waits.append), waits) == ("done", [None, 3.0])


def test_each_engine_object_has_a_state_of_its_own() -> None:
    one, other = FakeEngine(), FakeEngine()
    one.tell("grown")
    assert (len(one.events()), len(other.events())) == (1, 0)


def test_the_engine_of_the_how_to_is_short() -> None:
    page = (ROOT / "docs" / "how-to" / "write-an-engine.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python title=pailot_fork.py\n(.*?)```", page, re.DOTALL)
    assert len(code.splitlines()) < LONGEST_ENGINE_LINES
