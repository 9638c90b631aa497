"""The README names every command, its pictures are there, and the Chinese one keeps in step with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from pailot.cli.main import COMMANDS
from pailot.install_lines import EXTRAS, install_line
from pailot.settings import SETTINGS, Settings
from tests import groups
from tools.pictures import SESSIONS
from tools.site import example_settings

ROOT = Path(__file__).parents[2]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def commands_of(text: str) -> set[str]:
    """What a reader would type or write: indented lines and `code`, without comments."""
    lines = re.findall(r"^    (\S.*)$", text, re.MULTILINE) + re.findall(r"`([^`\n]+)`", text)
    return {re.sub(r"\s+# .*", "", line).strip() for line in lines}


def test_every_command_is_named() -> None:
    table = ENGLISH.partition("## All commands")[2].partition("\n## ")[0]
    assert set(COMMANDS) <= set(re.findall(r"`(\w+)`", table))


def test_what_the_chinese_readme_lets_a_reader_type_stands_in_the_english_one() -> None:
    told = {line for line in commands_of(CHINESE) if re.match(r"(?:PAILOT_\S+ )?(?:pailot|make|pip) |from ", line)}
    assert len(told) > 10
    known = commands_of(ENGLISH)
    assert not {line for line in told if line not in known and not any(each.startswith(f"{line} ") for each in known)}


def test_figures_are_those_that_were_measured() -> None:
    section = ENGLISH.partition("## Figures")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    measured = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    assert len(rows) > 3
    assert [row for row in rows if row not in measured] == [], "copy the rows from bench/RESULTS.md"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("processes", "shim worker:0"),
        ("server", "sealed secrets"),
        ("server", "SUCCEEDED, FAILED"),
        ("server", "by time within each"),
        ("threat-model", "a stranger's program"),
    ],
)
def test_an_explanation_has_its_picture_and_it_fits_a_page(page: str, words: str) -> None:
    text = (ROOT / "docs" / "explanation" / f"{page}.md").read_text(encoding="utf-8")
    (picture,) = (each for each in re.findall(r"```text\n(.*?)```", text, re.DOTALL) if words in each)
    assert max(len(line) for line in picture.splitlines()) <= 110


@pytest.mark.parametrize("name", SESSIONS)
def test_a_picture_shows_its_session(name: str) -> None:
    picture = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert f"docs/pictures/{name}.svg" in ENGLISH
    for command in SESSIONS[name][1]:
        assert command in picture


def test_every_command_of_the_workflows_is_a_make_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert [file.stem for file in files] == ["ci", "release"]
    for file in files:
        text = file.read_text(encoding="utf-8")
        steps = re.findall(r"^ *- run: (.*)$", text, re.MULTILINE)
        assert steps
        assert "run: |" not in text
        for step in steps:
            target = step.removeprefix('sudo -E env "PATH=$PATH" ').removeprefix("make ")
            made = [target] if "$" not in target else _of_matrix(target, text)
            assert set(made) <= targets, step


def _of_matrix(target: str, text: str) -> list[str]:
    """`test-${{ matrix.group }}` for each group that the workflow names."""
    (groups,) = re.findall(r"^ *group: \[(.*)\]$", text, re.MULTILINE)
    return [target.replace("${{ matrix.group }}", group.strip()) for group in groups.split(",")]


def test_every_test_is_in_a_group_that_a_workflow_runs() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    run = {step.rpartition("make ")[2].removeprefix("test-") for step in re.findall(r"^ *- run: (.*)$", text, re.MULTILINE)}
    run |= set(_of_matrix("${{ matrix.group }}", text))
    assert {*groups.GROUPS, groups.REST} <= run
    for group in (*groups.GROUPS, groups.REST):
        assert groups.files(group), group


def test_what_installs_a_part_is_an_extra_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"dev", "docs"}
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "README.zh-CN.md"]
    for page in pages:
        for extra in re.findall(r"(?:pailot|\.)\[([a-z0-9,]+)\]'", page.read_text(encoding="utf-8")):
            assert set(extra.split(",")) <= set(EXTRAS), page
    for source in (ROOT / "src").rglob("*.py"):
        assert source.name == "install_lines.py" or "pip install 'pailot" not in source.read_text(encoding="utf-8"), source
    assert install_line("server").startswith("pip install '")
    with pytest.raises(ValueError, match="no extra 'everything'"):
        install_line("everything")


def test_an_example_of_every_setting_is_read_as_the_defaults(tmp_path: Path) -> None:
    lines = [line.removeprefix("# ") for line in example_settings().splitlines() if re.match(r"# \w+ = ", line)]
    assert len(lines) == len(SETTINGS)
    (tmp_path / "pailot.toml").write_text("\n".join(line for line in lines if not line.startswith("home ")), encoding="utf-8")
    read = Settings({"HOME": str(tmp_path)}, str(tmp_path))
    for each in SETTINGS:
        value, default = read[each.name], each.default
        assert each.name == "home" or (tuple(value) if isinstance(value, list) else value) == default, each.name
