"""What is wrong with a processing job, found before anything of it is done; and what of it has no meaning where it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..engines.preparation import sandbox
from ..engines.registry import traits
from ..protocol import reserved
from ..protocol.schema import MOST_RUN_SECONDS, MOST_TASKS
from ..settings import Settings
from . import entry_script
from .alibaba_types import ExperimentConfig, MetricDefinition, ResourceType, SpotSpec, UserVpcConfig
from .errors import InvalidProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .processor import Processor

LONGEST_NAME = 200
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PRIORITIES = ("oppo", "oppo", "oppo", "test", "test", "test", "prod", "prod", "crit")


def mapping(name: str, value: Any) -> dict[Any, Any]:
    """A copy of a mapping; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidProcessor(f"{name} should be a mapping, is {value!r}")
    return dict(value)


def check(given: Processor) -> None:
    """Refuse what cannot be run. A program without a type checker may have given anything."""
    image: Any = given.image_uri
    if not isinstance(image, str) or not image.strip():
        raise InvalidProcessor("image_uri should be the name of an image")
    if len(given.base_job_name) > LONGEST_NAME:
        raise InvalidProcessor(f"base_job_name has more than {LONGEST_NAME} characters")
    _check_command(given.command)
    _check_numbers(given.instance_count, given.max_run_time)
    _check_texts(given)
    for name, value, kind in (
        ("spot_spec", given.spot_spec, SpotSpec),
        ("user_vpc_config", given.user_vpc_config, UserVpcConfig),
        ("experiment_config", given.experiment_config, ExperimentConfig),
    ):
        if value is not None and not isinstance(value, kind):
            raise InvalidProcessor(f"{name} should be a {kind.__name__}, is {described(value)}")
    for each in given.metric_definitions:
        _check_metric(each)
    priority(given.settings.get("Priority"))


def described(value: object) -> str:
    """A value with the module of its type: others have types of the same names."""
    return f"{value!r} ({type(value).__module__}.{type(value).__qualname__})"


def _check_command(command: Any) -> None:
    words = [command] if isinstance(command, str) else command
    if not isinstance(words, list | tuple) or not words or not words[0] or not all(isinstance(each, str) for each in words):
        raise InvalidProcessor("command should be a text, or a list of texts that begins with a program")
    for word in words:
        _check_text("command", word)
        if entry_script.too_long(word):
            raise InvalidProcessor(
                f"command is longer than the {entry_script.LONGEST} bytes that a program can be told; use a file"
            )


def _check_numbers(count: Any, seconds: Any) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_TASKS:
        raise InvalidProcessor(f"instance_count should be a whole number from 1 to {MOST_TASKS}, is {count!r}")
    if seconds is not None and (
        not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds <= MOST_RUN_SECONDS
    ):
        raise InvalidProcessor(f"max_run_time should be a number of seconds from 0 to {MOST_RUN_SECONDS}, is {seconds!r}")


def _check_texts(given: Processor) -> None:
    parameters: dict[Any, Any] = given.parameters
    for key, value in parameters.items():
        if not isinstance(key, str) or not key:
            raise InvalidProcessor(f"parameters: {key!r} is not the name of a parameter")
        _check_text(f"parameters: '{key}'", key, str(value))
    for key, value in given.environments.items():
        if not _VARIABLE.match(str(key)):
            raise InvalidProcessor(f"environments: '{key}' cannot be the name of a variable")
        if reserved.is_reserved(key):
            raise InvalidProcessor(f"environments: '{key}' is not the job's to set: {reserved.HINT}")
        if not isinstance(value, str):
            raise InvalidProcessor(f"environments: the value of '{key}' should be a text, is {value!r}")
        _check_text(f"environments: '{key}'", value)
        if entry_script.too_long(key, value):
            raise InvalidProcessor(
                f"environments: '{key}' has more than the {entry_script.LONGEST} bytes that a variable can have"
            )
    for key, value in given.labels.items():
        if not all(isinstance(each, str) for each in (key, value)) or not key:
            raise InvalidProcessor(f"labels should be texts: {key!r}: {value!r}")
        _check_text(f"labels: '{key}'", key, value)
    packages: list[Any] = given.requirements
    for each in packages:
        if not isinstance(each, str) or not each.strip():
            raise InvalidProcessor(f"requirements: {each!r} is not the name of a package")
        _check_text("requirements", each)


def _check_text(where: str, *texts: str) -> None:
    for text in texts:
        if "\0" in text:
            raise InvalidProcessor(f"{where} holds a NUL character, which no program can be told")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidProcessor(f"{where} holds half of a character ({text!r})") from None


def _check_metric(given: Any) -> None:
    if not isinstance(given, MetricDefinition):
        raise InvalidProcessor(f"metric_definitions: {given!r} is no MetricDefinition")
    try:
        re.compile(given.regex)
    except (re.error, TypeError) as error:
        raise InvalidProcessor(f"metric_definitions: the regular expression of '{given.name}' is none: {error}") from None


def priority(value: Any) -> str | None:
    """Alibaba's 1 to 9 as one of the four classes."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).isdecimal() or not 1 <= int(value) <= 9:
        raise InvalidProcessor(f"settings['Priority'] should be a number from 1 to 9, is {value!r}")
    return _PRIORITIES[int(value) - 1]


def without_effect(given: Processor, engine: str | None, *, chosen: bool) -> list[str]:
    """The fields that were given and mean nothing where it runs; `engine` is None for a server.

    Who has `chosen` the engine by its name need not be told again that it uses no images.
    """
    settings = Settings()
    here = engine is not None and traits(engine).on_this_machine
    is_process = engine is not None and traits(engine).runs_plain_processes
    unused = [
        name
        for name, is_set in (
            ("spot_spec", given.spot_spec),
            ("user_vpc_config", given.user_vpc_config),
            ("resource_type", given.resource_type not in (None, ResourceType.General)),
            ("image_uri (the command runs as a process)", is_process and not chosen),
        )
        if is_set
    ]
    unused += [f"settings['{key}']" for key in given.settings if key != "Priority" or here]
    if given.experiment_config and not settings["experiments"].get(given.experiment_config.experiment_id):
        unused.append(f"experiment_config (no place for '{given.experiment_config.experiment_id}' in the setting experiments)")
    return unused


def warnings(given: Processor, engine: str | None, *, chosen: bool) -> list[str]:
    """What is to be known about a job that can be run."""
    found = []
    unused = without_effect(given, engine, chosen=chosen)
    if unused:
        found.append(f"without effect here: {', '.join(unused)}")
    named: dict[str, str] = {}
    for key in given.parameters:
        other = named.setdefault(entry_script.variable_of(key), key)
        if other != key:
            found.append(
                f"the parameters '{other}' and '{key}' have one variable, {entry_script.variable_of(key)}; it holds '{key}'"
            )
    _, long = entry_script.variables(given.parameters, "", 1)
    if long:
        found.append(f"left out, since no variable can be so long: {', '.join(long)}; read hyperparameters.json instead")
    words = " ".join(entry_script.words_of(given.command))
    plain = engine is not None and traits(engine).runs_plain_processes
    if plain and re.search(r"(?<![\w.])/ml/", words) and not sandbox.works():
        found.append("the command names /ml, which is not there: install bubblewrap, or use PAI_* variables")
    return found
