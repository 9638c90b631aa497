"""Records of Alibaba's own SDK, and mappings, where a record of ours is wanted. Theirs have the same fields."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from pailot import processor as ours
from pailot.processor import InvalidProcessor, Processor


class SpotStrategy(Enum):
    SpotWithPriceLimit = "SpotWithPriceLimit"


@dataclass
class SpotSpec:
    spot_strategy: SpotStrategy
    spot_discount_limit: float | None = None


@dataclass
class ExperimentConfig:
    experiment_id: str


@dataclass
class UserVpcConfig:
    vpc_id: str
    security_group_id: str
    switch_id: str | None = None
    extended_cidrs: list[str] | None = None


@dataclass
class Channel:
    name: str
    required: bool | None = None


class ResourceType(Enum):
    Lingjun = "Lingjun"


def test_records_of_alibabas_own_are_taken_by_their_fields() -> None:
    given: Any = {
        "spot_spec": SpotSpec(SpotStrategy.SpotWithPriceLimit, 0.5),
        "experiment_config": ExperimentConfig("exp-1"),
        "user_vpc_config": UserVpcConfig("vpc", "group"),
        "resource_type": ResourceType.Lingjun,
    }
    made = Processor("image", "true", **given)
    assert made.spot_spec == ours.SpotSpec(ours.SpotStrategy.SpotWithPriceLimit, 0.5)
    assert made.experiment_config == ours.ExperimentConfig("exp-1")
    assert made.user_vpc_config == ours.UserVpcConfig("vpc", "group")
    assert made.resource_type == ours.ResourceType.Lingjun
    channels: Any = [Channel("a", required=True)]
    made.set_input_channels(channels)
    assert made._input_channels == [ours.Channel("a", required=True)]


def test_what_has_not_the_fields_is_refused_with_the_module_of_its_type() -> None:
    @dataclass
    class Experiment:
        experiment_name: str

    given: Any = Experiment("x")
    with pytest.raises(InvalidProcessor, match=r"experiment_config should be a ExperimentConfig, is .*tests\.unit\.processor"):
        Processor("image", "true", experiment_config=given).run()


def test_nested_mappings_become_records() -> None:
    given: Any = {"Bucket": "b", "Key": "k"}
    assert ours.CodeDir(given, "oss").location_value == ours.OssLocation("b", "k")
    inner: Any = {"location_value": {"bucket": "b", "key": "k"}, "location_type": "oss"}
    channels: Any = [{"Name": "a", "Required": True}]
    spec = ours.AlgorithmSpec(["true"], "image", input_channels=channels, code_dir=inner)
    assert spec.input_channels == [ours.Channel("a", required=True)]
    assert spec.code_dir == ours.CodeDir(ours.OssLocation("b", "k"), "oss")
    assert ours.AlgorithmSpec.from_dict(spec.to_dict()) == spec
    text: Any = "SpotAsPriceGo"
    assert ours.SpotSpec(text).spot_strategy is ours.SpotStrategy.SpotAsPriceGo
    other: Any = {"Uri": "somewhere"}
    assert ours.CodeDir(other, "local").location_value == other  # it is none of theirs


def test_the_session_is_the_default_one_unless_another_is_given() -> None:
    made = Processor("image", "true")
    assert repr(made.session) == repr(ours.get_default_session())
    own = ours.Session(engine="local")
    made.session = own
    assert made.session is own


def test_a_processor_says_what_it_is() -> None:
    assert repr(Processor("python:3.12", ["a", "b"])) == "Processor('python:3.12', ['a', 'b'], instance_type=None)"


def test_every_argument_is_described() -> None:
    import inspect

    words = inspect.getdoc(Processor) or ""
    for name in inspect.signature(Processor).parameters:
        assert f"\n    {name}: " in words, name


def test_the_exception_has_both_spellings() -> None:
    assert ours.UnExpectedStatusException is ours.UnexpectedStatusException
