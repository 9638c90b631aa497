"""Processing jobs in real containers: the same contract as without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pailot.processor import Processor, Session, UnexpectedStatusException

from ..parts import containers, meeting
from ..parts.containers import IMAGE
from ..parts.wheels import wheel

ROOT = Path(__file__).parents[2]
DOCKER = Session(engine="docker")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in containers.docker().environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_the_contract_in_a_container(here: Path) -> None:
    (here / "code").mkdir()
    (here / "code" / "main.py").write_text(
        "import json, os\n"
        "print(os.getcwd(), open('/ml/input/data/set/one').read(), open(os.environ['PAI_INPUT_FILE']).read())\n"
        "print(json.load(open('/ml/input/config/hyperparameters.json')), os.environ['PAI_OUTPUT_MODEL'])\n"
        "open('/ml/output/model/result', 'w').write('made inside')\n"
        "open('/ml/outputs/data/model/other', 'w').write('made inside, too')\n"
    )
    (here / "set").mkdir()
    (here / "set" / "one").write_text("1")
    made = Processor(IMAGE, "python3 main.py", source_dir="code", parameters={"rate": 2}, session=DOCKER, instance_type="local")
    job = made.run({"set": "set", "file": "set/one"}, {"model": "model"}, show_logs=False)
    assert list(job.logs()) == ["/ml/usercode 1 1", "{'rate': '2'} /ml/output/model/"]
    assert (here / "model" / "result").read_text() == "made inside"
    assert (here / "model" / "other").read_text() == "made inside, too"
    assert (here / "model" / "result").stat().st_uid == os.getuid()
    with pytest.raises(UnexpectedStatusException) as caught:
        Processor(IMAGE, ["sh", "-c", "exit 8"], session=DOCKER).run(show_logs=False)
    assert caught.value.exit_code == 8


def test_each_instance_has_a_container_of_its_own(here: Path) -> None:
    (here / "code").mkdir()
    (here / "code" / "meet.py").write_text(meeting.PROGRAM)
    (here / "code" / "given").write_text("code")
    made = Processor(IMAGE, "python3 meet.py", "code", session=DOCKER, instance_count=2)
    with pytest.warns(UserWarning, match="not kept: /ml/output/mine; what is kept: /ml/output/model"):
        job = made.run(outputs={"model": "model"}, show_logs=False)
    assert {index: list(job.logs(index)) for index in range(2)} == meeting.expected(2)
    assert sorted(path.name for path in (here / "model").iterdir()) == ["0", "1"]


def test_requirements_go_into_the_container(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image has no pip of its own; it is shown ours."""
    for version in ("1.0", "2.0"):
        wheel(here / "wheels", "pailot_probe", version)
    (here / "code").mkdir()
    (here / "code" / "requirements.txt").write_text("pailot_probe==1.0\n")
    shutil.copytree(Path(sysconfig.get_path("purelib"), "pip"), here / "packages" / "pip")
    monkeypatch.setenv("PAILOT_CONTAINER_MOUNTS", f"{here}/packages:/packages:ro,{here}/wheels:/wheels:ro")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels", "PYTHONPATH": "/packages"}
    command = "python3 -c 'import pailot_probe; print(pailot_probe.version)'"
    made = Processor(IMAGE, command, "code", requirements=["pailot_probe==2.0"], environments=offline, session=DOCKER)
    assert list(made.run(show_logs=False).logs())[-1] == "2.0"
    made.requirements = ["pailot_probe==3.0"]
    with pytest.raises(UnexpectedStatusException) as caught:
        made.run(show_logs=False)
    assert caught.value.last_lines[-1] == "the requirements could not be installed"


def test_the_example_trains_a_model_in_a_container(here: Path) -> None:
    """The image has Python; scikit-learn is shown to it from this environment."""
    shutil.copytree(ROOT / "examples" / "processor", here / "example")
    packages, libraries = sysconfig.get_path("purelib"), "/usr/lib/x86_64-linux-gnu"
    if not os.path.isdir(libraries):
        pytest.skip(f"scikit-learn needs the C++ library, which is not in {libraries}")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PAILOT_ENGINE": "docker",
        "IMAGE": IMAGE,
        "PAILOT_CONTAINER_MOUNTS": f"{packages}:/packages:ro,{libraries}:/libraries:ro",
    }
    program = (here / "example" / "run.py").read_text()
    shown = 'environments={"PYTHONPATH": "/packages", "LD_LIBRARY_PATH": "/libraries", "OPENBLAS_NUM_THREADS": "1"},'
    (here / "example" / "run.py").write_text(program.replace('    source_dir="code",', f'    source_dir="code", {shown}'))
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=here / "example", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((here / "example" / "results" / "model" / "report.json").read_text())
    assert report["accuracy"] > 0.8


def test_local_means_containers_where_an_engine_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PAILOT_ENGINE", raising=False)
    assert Session().engine_for("local") == "docker"
    assert Session().engine_for(None) == "local"
    assert Session(engine="local").engine_for("local") == "local"
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert Session().engine_for("local") == "local"
    monkeypatch.setenv("PAILOT_ENGINE", "slurm")
    assert Session().engine_for("local") == "slurm"
