"""Small words that newcomers met."""

from __future__ import annotations

import pytest

from pailot.cli.commands.events import _print_events
from pailot.engines import registry
from pailot.engines.contract import EngineError
from pailot.sdk.run import Result


def test_a_result_shows_itself_without_its_record() -> None:
    result = Result("demo", "1", "SUCCEEDED", 0, "well", 1.0, 0, {"long": "x" * 1000})
    assert repr(result) == "Result(name='demo', id='1', state='SUCCEEDED', exit_code=0, reason='well', seconds=1.0, retries=0)"


def test_an_engine_that_is_not_there_has_a_hint() -> None:
    with pytest.raises(EngineError, match="'docker' uses Podman, too"):
        registry.load("podman")
    with pytest.raises(EngineError, match="did you mean 'slurm'"):
        registry.load("slrum")


def test_events_print_times_that_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    _print_events([{"at": 1794892805.59, "event": "task-ended", "role": "a", "started": 1794892804.5}])
    assert "1794892804" not in capsys.readouterr().out
