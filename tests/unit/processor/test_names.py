"""Names, arguments and defaults are those of Alibaba's SDK; `names.json` was taken from alipai 0.4.13."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import pailot.processor
from pailot.processor import JobType, Processor, TrainingJob

NAMES = json.loads((Path(__file__).parent / "names.json").read_text())
OURS_BESIDES = {"TrainingJob.list": ["name", "labels"], "TrainingJob.wait": ["timeout"]}


@pytest.mark.parametrize("function", NAMES["functions"])
def test_a_function_takes_what_theirs_takes(function: str) -> None:
    owner, _, name = function.partition(".")
    signature = inspect.signature(getattr(getattr(pailot.processor, owner), name))
    ours = {key: each for key, each in signature.parameters.items() if key != "self"}
    theirs = NAMES["functions"][function]
    assert list(ours) == [key for key, _, _ in theirs] + OURS_BESIDES.get(function, [])
    for key, default, required in theirs:
        assert (ours[key].default is inspect.Parameter.empty) == required, key
        assert required or repr(ours[key].default) == default, key


@pytest.mark.parametrize("record", NAMES["records"])
def test_a_record_has_the_fields_of_theirs(record: str) -> None:
    cls = getattr(pailot.processor, record)
    required = {field: "x" for field, _, needed, _ in NAMES["records"][record] if needed}
    made = cls(**required)
    spelled = cls(**{field: "x" for field, _, _, _ in NAMES["records"][record]}).to_dict()
    for field, alias, needed, default in NAMES["records"][record]:
        assert needed or repr(getattr(made, field)) == default, field
        assert alias in spelled, alias
    assert set(cls._fields) == {field for field, _, _, _ in NAMES["records"][record]}
    assert cls.from_dict(made.to_dict()) == made


@pytest.mark.parametrize("name", NAMES["enums"])
def test_words_are_theirs(name: str) -> None:
    ours = getattr(pailot.processor, name)
    for word, value in NAMES["enums"][name].items():
        found = getattr(ours, word)
        assert (found.value if isinstance(found, Enum) else found) == value


@pytest.mark.parametrize("name", [each for each in NAMES["attributes"] if each != "latest_job"])
def test_a_job_has_the_attributes_of_theirs(name: str) -> None:
    source = inspect.getsource(TrainingJob)
    assert hasattr(TrainingJob, name) or f"self.{name}" in source


@pytest.mark.parametrize("name", pailot.processor.__all__)
def test_every_exported_name_is_there(name: str) -> None:
    assert getattr(pailot.processor, name) is not None
    assert name in dir(pailot.processor)


def test_a_name_that_is_not_there_is_said_plainly() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Estimator'"):
        pailot.processor.Estimator  # noqa: B018  # that is the test


class Mine(Processor):
    """A processor of one's own."""


def test_it_is_a_real_class(recwarn: pytest.WarningsRecorder) -> None:
    made: Any = Mine("image", ["a", "b"], parameters={"x": 1}, session=pailot.processor.Session(engine="local"))
    assert inspect.isclass(Processor)
    assert isinstance(made, Processor)
    again = pickle.loads(pickle.dumps(made))
    assert (type(again), again.command, again.session.engine) == (Mine, ["a", "b"], "local")
    assert made.base_job_name == "mine"
    assert made.latest_job is None
    assert not list(recwarn)


def test_job_types_are_normalised_and_unknown_ones_refused() -> None:
    assert Processor("i", "c", job_type="tfjob").job_type == JobType.TFJob
    with pytest.raises(ValueError, match="no job type 'SparkJob'"):
        Processor("i", "c", job_type="SparkJob")


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys; from pailot.processor import Processor; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"asyncio", "ssl", "http.client", "fsspec", "sqlite3", "tarfile", "yaml", "dataclasses"}
