"""Files that commands name, and that nobody sent."""

from __future__ import annotations

import pytest

from pailot.loading.named_files import forgotten_files
from pailot.planning import plan
from pailot.protocol import read

JOB = """
protocolVersion: 2
name: demo
type: job
prerequisites: [{name: i, type: dockerimage, uri: debian}]
taskRoles:
  main:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands: ["COMMAND"]
EXTRAS
"""
HERE = ("train.py", "src/run.sh", "data.csv")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python train.py --lr 0.1", ("train.py", True)),
        ("bash src/run.sh", ("src/run.sh", True)),
        ("python -m train data.csv", ("data.csv", True)),
        ("python3 -u elsewhere.py", ("elsewhere.py", False)),
        ("git clone https://x.org/y && cd y && python elsewhere.py", ("", False)),
        ("echo 'print(1)' > elsewhere.py; python elsewhere.py", ("", False)),
        ("python /app/train2.py", ("", False)),
        ("echo 1.5; ls ../train.py; date", ("", False)),
    ],
)
def test_what_the_commands_expect(command: str, found: tuple[str, bool]) -> None:
    made = plan(read(JOB.replace("COMMAND", command).replace("EXTRAS", "")), "me")
    assert forgotten_files(made, lambda path: path in HERE) == found


@pytest.mark.parametrize("extras", ["{code: https://x.org/code.tar.gz}", "{channels: {code: 's3://b/code.tar.gz'}}"])
def test_a_job_that_brings_its_code_has_forgotten_nothing(extras: str) -> None:
    text = JOB.replace("COMMAND", "python train.py").replace("EXTRAS", f"extras: {{pailot: {extras}}}")
    assert forgotten_files(plan(read(text), "me"), lambda path: path in HERE) == ("", False)
