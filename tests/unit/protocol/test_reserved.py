"""Variables that a job cannot set: all those that Pailot itself sets for a task, wherever in the house it does."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import pailot
from pailot.processor import Processor
from pailot.processor.errors import InvalidProcessor
from pailot.protocol import InvalidJob, read
from pailot.protocol.reserved import is_reserved

SOURCES = Path(pailot.__file__).parent
OURS = re.compile(r"(PAI|FC)_[A-Z0-9_]*[A-Z0-9]")  # what ends with _ is a part of another text
# These come with the job: from a Processor and from Luigi.
THE_JOBS = {"PAI_TRAINING_JOB_ID", "PAI_HPS", "PAI_HPS_0", "PAI_USER_ARGS", "PAI_DEFAULT_FS_URI"}
# Names of OpenPAI's parts, not of variables.
PARTS = {"PAI_FC", "PAI_RUNTIME", "PAI_DB_CONTROLLER", "PAI_DOCKER", "PAI_K8S", "PAI_UNKNOWN", "PAI_LAUNCHER"}


def text_of(node: ast.AST) -> str | None:
    """A text of the source; what is put into it stands as 0."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
    return None


def names_in_the_house() -> set[str]:
    found = set()
    for path in SOURCES.rglob("*.py"):
        texts = [text_of(node) for node in ast.walk(ast.parse(path.read_text()))]
        found |= {text for text in texts if text and OURS.fullmatch(text)}
    return found - PARTS


def test_every_variable_that_pailot_sets_is_refused() -> None:
    names = names_in_the_house()
    assert {"PAI_CHECKPOINT_DIR", "PAI_WORK_DIR", "PAI_0_0_0_PORT", "FC_TASK_INDEX", "PAI_HPS"} <= names
    # `PAI_RESOURCE` and the like get the name of a role at their end, and those of prerequisites their name.
    open_to_jobs = {name for name in names if not is_reserved(name) and not is_reserved(f"{name}_0")}
    assert open_to_jobs == THE_JOBS


@pytest.mark.parametrize("name", ["PAI_CHECKPOINT_DIR", "PAI_WORK_DIR", "PAI_HOST_IP_main_0", "PAILOT_HOME", "FC_ANY"])
def test_it_is_refused_with_its_place(name: str) -> None:
    text = f"""\
protocolVersion: 2
name: x
type: job
prerequisites: [{{name: i, type: dockerimage, uri: debian}}]
taskRoles: {{main: {{dockerImage: i, resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}, commands: ["true"]}}}}
extras:
  pailot:
    environment:
      MINE: 1
      {name}: /etc
"""
    with pytest.raises(InvalidJob) as caught:
        read(text, file="job.yaml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.code) == (10, 7, "bad-name")
    assert f"'{name}' is not the job's to set" in problem.message
    version1 = {
        "jobName": "x",
        "image": "debian",
        "jobEnvs": {name: "/etc"},
        "taskRoles": [{"name": "m", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 1, "gpuNumber": 0, "command": "true"}],
    }
    with pytest.raises(InvalidJob, match=f"{name}.*not the job's to set"):
        read(json.dumps(version1), file="job.json")
    with pytest.raises(InvalidProcessor, match=f"{name}.*not the job's to set"):
        Processor(image_uri="debian", command="true", environments={name: "/etc"}).run()


def test_what_is_the_jobs_stays_so() -> None:
    for name in (
        *THE_JOBS,
        "MASTER_ADDR",
        "MASTER_PORT",
        "RANK",
        "WORLD_SIZE",
        "TF_CONFIG",
        "PATH",
        "LD_PRELOAD",
        "MY_PAI_WORK_DIR",
    ):
        assert not is_reserved(name)
