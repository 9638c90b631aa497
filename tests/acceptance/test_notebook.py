"""Runs in a real notebook: a Jupyter kernel, whose event loop is running already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..parts.notebook import CellFailed, Notebook

PREPARE = """
import pailot

def job(name, commands, instances=1):
    return pailot.Job(name, {"main": pailot.TaskRole(commands=commands, image="debian", instances=instances, memory_mb=64)})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def notebook(folder: Path) -> Iterator[Notebook]:
    with Notebook(folder, PAILOT_HOME=str(folder / "home")) as opened:
        opened.run(PREPARE)
        yield opened


def test_a_run_is_a_table_that_lives(notebook: Notebook, folder: Path) -> None:
    os.mkfifo(folder / "gate")
    notebook.run("run = pailot.run(job('table', 'read line <gate; exit $line', instances=1)); run")
    (table,) = (id for id, html in notebook.displays.items() if "<b>table</b>" in html)
    assert "main:0" in notebook.displays[table]
    assert "FAILED" not in notebook.displays[table]
    (folder / "gate").write_text("3\n")
    notebook.wait_for(lambda displays: ">FAILED<" in displays[table] and "exited with 3" in displays[table])
    with pytest.raises(CellFailed, match="main:0 exited with 3") as caught:
        notebook.run("run.result()")
    assert caught.value.name == "JobFailed"
    assert notebook.run("print(pailot.get('table'))").startswith("Run('table'")


def test_waiting_shows_a_bar_and_the_button_ends_it(notebook: Notebook, folder: Path) -> None:
    os.mkfifo(folder / "bar")
    notebook.run("run = pailot.run(job('waited', 'read line <bar'))")
    waiting = notebook.begin("run.wait()")
    notebook.wait_for(
        lambda displays: any("<b>waited</b>" in html and "<progress value='0'" in html for html in displays.values())
    )
    notebook.interrupt()
    with pytest.raises(CellFailed) as caught:
        notebook.finish(waiting)
    assert caught.value.name == "KeyboardInterrupt"
    assert notebook.run("run.state") == "'RUNNING'"  # it goes on
    (folder / "bar").write_text("\n")
    assert notebook.run("run.wait()") == "'SUCCEEDED'"
    assert any("<b>waited</b>" in html and "<progress value='1'" in html for html in notebook.displays.values())


def test_coroutines_run_in_the_loop_that_is_there(notebook: Notebook) -> None:
    code = """
        import asyncio
        run = await pailot.run_async(job("loop", "echo one; echo two", instances=2))
        print(sorted([line async for line in run.logs(follow=True)]))
        print([event.kind async for event in run][-1], (await run).state, run.wait(progress=False))
        many = await asyncio.gather(*[pailot.run_async(job(f"many-{n}", "true")) for n in range(5)])
        print([result.state for result in await asyncio.gather(*many)])
    """
    lines = notebook.run("\n".join(line[8:] for line in code.splitlines())).splitlines()
    assert lines == [
        "['[main:0] one', '[main:0] two', '[main:1] one', '[main:1] two']",
        "ended SUCCEEDED SUCCEEDED",
        "['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED']",
    ]


def test_a_processor(notebook: Notebook, folder: Path) -> None:
    os.mkfifo(folder / "goon")
    notebook.run(
        "from pailot.processor import *\n"
        f"p = Processor('image', 'echo one; read line <{folder}/goon; echo $line; exit 4',\n"
        "              session=Session(engine='local'))\n"
        "job = p.run(wait=False)"
    )
    waiting = notebook.begin("job.wait()")
    notebook.until_printed("one")
    notebook.interrupt()
    with pytest.raises(CellFailed) as caught:
        notebook.finish(waiting)
    assert caught.value.name == "KeyboardInterrupt"
    assert notebook.run("print(job.status)") == "Running\n"
    notebook.run("job")
    assert "worker:0" in notebook.shown[-1]
    (folder / "goon").write_text("two\n")
    with pytest.raises(CellFailed, match="exited with 4") as caught:
        notebook.run("p.wait()")
    assert caught.value.name == "UnexpectedStatusException"
    assert notebook.run("print(list(job.logs()), job.exit_code)") == "['one', 'two'] 4\n"
