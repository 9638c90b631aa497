"""The files in deploy/: the unit of systemd, the compose file and the example of settings are sound and in step with the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import pailot
from pailot.settings import SETTINGS
from tools.site import EXAMPLE_SETTINGS, example_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = (DEPLOY / "systemd" / "pailot.service").read_text()
COMPOSE = DEPLOY / "compose" / "compose.yaml"
VARIABLES = {f"PAILOT_{each.name.upper()}" for each in SETTINGS} | {"PAILOT_ADMIN_PASSWORD"}


def test_the_example_of_settings_is_what_the_code_knows() -> None:
    assert EXAMPLE_SETTINGS.read_text() == example_settings(), "write it again with: python -m tools.site settings"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here: Debian's package systemd has it")
    program = Path(sys.executable).with_name("pailot")
    unit = tmp_path / "pailot.service"
    unit.write_text(UNIT.replace("/opt/pailot/bin/pailot", str(program)).replace("User=pailot\nGroup=pailot\n", ""))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pailot.service" not in done.stderr, done.stderr


def test_the_unit_is_hardened_as_far_as_jobs_allow(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here: Debian's package systemd has it")
    unit = tmp_path / "pailot.service"
    unit.write_text(UNIT)
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=50", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Unknown command verb" not in done.stderr
    assert done.returncode == 0, done.stdout[-600:] + done.stderr


def test_the_unit_lets_jobs_outlive_the_server_and_names_settings_that_exist() -> None:
    assert "KillMode=process" in UNIT
    assert "PrivateTmp" not in UNIT
    assert set(re.findall(r"^Environment=(PAILOT_\w+)=", UNIT, re.MULTILINE)) <= VARIABLES


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


def test_the_compose_file_names_what_exists() -> None:
    found = _compose()
    server, database = found["services"]["server"], found["services"]["database"]
    assert set(found["services"]) == {"server", "database"}
    assert set(server["environment"]) <= VARIABLES
    assert server["image"] == f"pailot:{pailot.__version__}"
    assert all(":" in each["image"] and not each["image"].endswith(":latest") for each in (server, database))
    for service in (server, database):
        for volume in service["volumes"]:
            assert volume.partition(":")[0] in found["volumes"]
        assert set(service["networks"]) <= set(found["networks"])
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert server["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert (COMPOSE.parent / server["build"]["context"] / "pyproject.toml").is_file()


def test_the_compose_file_opens_nothing_to_others_and_holds_no_password() -> None:
    found = _compose()
    assert found["services"]["server"]["ports"] == ["127.0.0.1:9186:9186"]
    assert "ports" not in found["services"]["database"]
    assert found["networks"]["inside"] == {"internal": True}
    for service in found["services"].values():
        for name, value in service["environment"].items():
            if "PASSWORD" in name:
                assert str(value).startswith("${"), name


def test_docker_compose_takes_the_file() -> None:
    command = ["docker", "compose"] if shutil.which("docker") else ["docker-compose"]
    try:
        known = subprocess.run([*command, "version"], capture_output=True, check=False).returncode == 0
    except OSError:
        known = False
    if not known:
        pytest.skip("no docker compose here")
    passwords = {"DATABASE_PASSWORD": "a", "PAILOT_ADMIN_PASSWORD": "b"}
    done = subprocess.run(
        [*command, "--file", str(COMPOSE), "config", "--quiet"],
        capture_output=True,
        text=True,
        env=os.environ | passwords,
        check=False,
    )
    assert done.returncode == 0, done.stderr
