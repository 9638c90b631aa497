"""Who is logged in where."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pailot.client.credentials import BadCredentials, Login, chosen, forget, normal, path, remember


def test_the_option_wins_then_the_variable_then_the_login(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert chosen(None, environment) is None
    remember(Login("http://one:1", "t1", "dana"), environment)
    remember(Login("http://two:2", "t2", "dana"), environment)
    assert chosen(None, environment) == Login("http://two:2", "t2", "dana")
    assert chosen("one:1/", environment) == Login("http://one:1", "t1", "dana")
    assert chosen(None, {**environment, "PAILOT_SERVER": "http://one:1/api/v2"}) == Login("http://one:1", "t1", "dana")
    assert chosen("two:2", {**environment, "PAILOT_SERVER": "one:1"}) == Login("http://two:2", "t2", "dana")
    assert chosen(None, {**environment, "PAILOT_TOKEN": "other"}) == Login("http://two:2", "other")
    assert chosen(None, {**environment, "PAILOT_SERVER": "none"}) is None
    assert chosen("none", environment) is None
    assert chosen("http://three:3", environment) == Login("http://three:3")


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    file = remember(Login("http://one:1", "t1", "dana"), environment)
    assert file == path(environment)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode) == 0o700
    os.chmod(file, 0o644)
    with pytest.raises(BadCredentials, match="chmod 600"):
        chosen(None, environment)


def test_logging_out(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    remember(Login("http://one:1", "t1", "dana"), environment)
    remember(Login("http://two:2", "t2", "dana"), environment)
    assert forget(None, environment) == Login("http://two:2", "t2", "dana")
    assert chosen(None, environment) is None
    assert forget(None, environment) is None
    assert chosen("http://one:1", environment) == Login("http://one:1", "t1", "dana")
    assert forget("one:1", environment) == Login("http://one:1", "t1", "dana")
    assert chosen("http://one:1", environment) == Login("http://one:1")


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    file = remember(Login("http://one:1", "t1", "dana"), environment)
    Path(file).write_text("[]")
    with pytest.raises(BadCredentials, match="is damaged"):
        chosen(None, environment)


def test_a_token_is_not_shown() -> None:
    assert "t1" not in repr(Login("http://one:1", "t1", "dana"))


def test_addresses() -> None:
    assert normal(" host:9186/ ") == "http://host:9186"
    assert normal("https://host/rest-server/api/v2") == "https://host/rest-server"
