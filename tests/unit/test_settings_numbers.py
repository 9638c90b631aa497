"""Numbers among the settings are finite and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pailot.jobserver.lifespan import capacity, clusters
from pailot.server.toolkit.rate_limits import parse_limits
from pailot.settings import SETTINGS, BadSetting, Settings

NUMBERS = [each.name for each in SETTINGS if each.kind == "number"]
ODD = ["inf", "-inf", "nan", "1e400", "-1", "1e10"]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ODD)
def test_a_number_is_finite_and_bounded(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="between 0 and"):
        Settings({f"PAILOT_{name.upper()}": value}, str(tmp_path))
    (tmp_path / "pailot.toml").write_text(f"{name} = {value.replace('1e400', 'inf')}\n")
    with pytest.raises(BadSetting, match=name):
        Settings({}, str(tmp_path))


@pytest.mark.parametrize("name", ["cpus", "memory_mb"])
@pytest.mark.parametrize("value", [*ODD, "0", "many"])
def test_an_amount_is_auto_or_a_number(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=name):
        capacity(Settings({f"PAILOT_{name.upper()}": value}, str(tmp_path)), "local")


@pytest.mark.parametrize("text", ['{"a": Infinity}', '{"a": [{"b": NaN}]}', '{"a": 1e999}', "[" * 100_000])
def test_a_table_is_json(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadSetting):
        Settings({"PAILOT_INSTANCE_TYPES": text}, str(tmp_path))


def test_shares_and_limits_are_bounded() -> None:
    with pytest.raises(BadSetting):
        clusters((f"research:cpus={'9' * 400}",))
    for seconds in ("inf", "nan", "1e400", "0"):
        with pytest.raises(ValueError, match="seconds"):
            parse_limits(f"all=600/{seconds}")
