"""The documentation is true: its examples run, its lists are complete, its links lead somewhere.

How a page is read stands in `tests.support.documentation`. `python -m tests.acceptance.test_docs`
rewrites the output in the pages; look at the difference before you keep it.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

import pailot
from pailot.cli.main import COMMANDS, parser_for
from pailot.problem import CODES
from pailot.protocol import v1
from pailot.protocol.checks import BUILTIN_PLUGINS
from pailot.protocol.schema import EVENTS, JOB
from pailot.protocol.schema_types import Record, Shape
from pailot.protocol.yaml import parse
from pailot.settings import SETTINGS

from ..support.documentation import HOME, ROOT, Desk, blocks_of, commands_of, matches, results_of

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("README.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
PROGRAMS = ("pailot", "cat", "python", "pip", "printf", "bash")


# Pages


def without_code(text: str) -> str:
    """A page without its fenced blocks and `code`."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^(```+).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL))


def sections_of(text: str) -> dict[str, str]:
    """The text below each heading of the second level."""
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {head.strip(): body for head, _, body in (part.partition("\n") for part in parts)}


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_page_run_as_shown(name: str, tmp_path: Path) -> None:
    for command, output, status in results_of((ROOT / name).read_text(encoding="utf-8"), tmp_path / "home"):
        where = f"{name}:{command.line - 1}: $ {command.text}"
        assert matches(command.output, output), f"{where}\n" + "\n".join(
            difflib.unified_diff(command.output, output, "in the page", "printed", lineterm="")
        )
        assert status == command.status, f"{where}\nended with status {status}, not {command.status}"


@pytest.mark.parametrize("name", NAMES)
def test_console_blocks_hold_only_what_every_machine_can_run(name: str) -> None:
    for block in blocks_of((ROOT / name).read_text(encoding="utf-8")):
        for command in commands_of(block) if block.language == "console" else ():
            words = re.sub(r"^(?:[A-Z_]+=\S*\s+)*", "", command.text).split()
            assert words[0] in PROGRAMS, f"{name}:{command.line - 1}: use a ```sh block for what is not run"


@pytest.mark.parametrize("name", NAMES)
def test_every_yaml_block_can_be_read(name: str) -> None:
    for block in blocks_of((ROOT / name).read_text(encoding="utf-8")):
        if block.language in ("yaml", "json") and not block.title:
            parse(block.text)


def test_the_examples_are_many() -> None:
    """A mistake in the reading of pages would let everything pass."""
    commands = [
        command
        for file in DOCS.rglob("*.md")
        for block in blocks_of(file.read_text(encoding="utf-8"))
        if block.language == "console"
        for command in commands_of(block)
    ]
    assert len(commands) > 80


# Completeness


def test_every_problem_code_has_its_heading_and_an_example() -> None:
    sections = sections_of(page("reference/problems.md"))
    assert sorted(sections) == sorted(CODES)
    for code, text in sections.items():
        severity = CODES[code].capitalize()
        assert text.lstrip().startswith(f"{severity}."), f"{code}: say first that it is: {severity}."
        if "Only a server reports it." in text:
            continue
        shown = "".join(block.text for block in blocks_of(text) if block.language == "console")
        assert f"{CODES[code]}[{code}]" in shown, f"{code}: there is no example that shows it"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_explained(command: str) -> None:
    sections = sections_of(page("reference/command-line.md"))
    assert command in sections
    text = sections[command]
    if "(#options-of-every-command-with-a-job-file)" in text:
        text += sections["Options of every command with a job file"]
    for option in long_options(command):
        assert f"`{option}" in text, f"{command}: {option} is not explained"


def long_options(command: str) -> set[str]:
    """The long options of a command and of its sub-commands."""
    waiting, found = [parser_for(command)[0]], set[str]()
    while waiting:
        for action in waiting.pop()._actions:
            found.update(option for option in action.option_strings if option.startswith("--"))
            if isinstance(action.choices, dict):
                waiting += action.choices.values()
    return found - {"--help"}


def test_every_setting_is_explained() -> None:
    text = page("reference/settings.md")
    for setting in SETTINGS:
        assert f"`{setting.name}`" in text
        assert f"`PAILOT_{setting.name.upper()}`" in text


def test_every_key_of_a_job_file_is_named() -> None:
    text = page("reference/job-file.md")
    names = set(re.findall(r"`(?:[^`\s]*?[.\]])?([A-Za-z]\w*)`", text)) | set(re.findall(r"`([^`\s]+)`", text))
    for shape in (JOB, v1.job_shape()):
        assert keys_of(shape) - names == set()


def keys_of(shape: Shape) -> set[str]:
    """The keys that a shape knows, on all levels."""
    found: set[str] = set()
    waiting: list[object] = [shape]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Shape) and id(each) not in seen:
            seen.add(id(each))
            waiting += vars(each).values()
            if isinstance(each, Record):
                found.update(each.fields)
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
    return found


def test_every_event_and_plugin_is_named() -> None:
    text = page("reference/job-file.md")
    for name in (*EVENTS, *BUILTIN_PLUGINS):
        assert f"`{name}`" in text


JOB_TEXT = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian}
taskRoles:
  ps_server:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ["true"]
extras:
  pailot: {dataDir: /data, outputDir: /output, code: "https://code.example/x"}
"""


def test_every_variable_of_a_plan_is_explained() -> None:
    text = page("reference/job-file.md")
    role = pailot.plan(pailot.loads(JOB_TEXT)).roles["ps_server"]
    for name in {**role.environment, **role.task_environment(0)}:
        shown = re.sub("_(?:ps_server|psserver)$", "_ROLE", name)
        assert f"`{shown}`" in text


RUN_TEXT = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian}
  - name: tidy
    type: script
    callbacks:
      - {event: containerStart, commands: ["export STARTED=1"]}
      - {event: containerExit, commands: ["env -0 >$PAI_TASK_LOG_DIR/seen"]}
secrets: {token: correct-horse}
taskRoles:
  ps_server:
    taskRetryCount: 1
    prerequisites: [tidy]
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 1, ports: {grpc: 2}}
    commands: ["echo '<% $secrets.token %>'; [ $FC_TASK_ATTEMPT_ID -eq 1 ]"]
extras:
  pailot: {channels: {inputs: [x], outputs: [x]}}
"""


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which most of what can happen has happened."""
    desk = Desk(tmp_path_factory.mktemp("demo") / "home")
    (desk.folder / "job.yaml").write_text(RUN_TEXT)
    output, status = desk.run("PAILOT_GPUS=1 pailot run job.yaml --quiet --json 2>/dev/null")
    assert status == 0, output
    return Path(json.loads("\n".join(output))["folder"].replace(HOME, str(desk.home), 1))


def test_every_variable_of_a_running_task_is_explained(run_folder: Path) -> None:
    text = page("reference/job-file.md")
    seen = next(run_folder.rglob("attempts/1/seen")).read_bytes().decode().split("\0")
    ours = re.compile(r"(?:PAI|FC|CUDA|NVIDIA|MASTER|TF)_\w+|RANK|WORLD_SIZE")
    names = [name for name in (entry.partition("=")[0] for entry in seen) if ours.fullmatch(name)]
    assert len(names) > 60
    for name in names:
        shown = re.sub("_(?:ps_server|psserver)(?=_|$)", "_ROLE", name)
        shown = re.sub("(?<=_ROLE)_0(?=_|$)", "_INDEX", shown)
        shown = re.sub("_(?:ssh|http|grpc|master)(?=_|$)", "_LABEL", shown)
        shown = re.sub("^(PAI_(?:INPUT|OUTPUT))_X$", r"\1_NAME", shown)
        assert f"`{shown}`" in text, f"{name} is not explained as {shown}"


def test_every_file_and_key_of_a_job_folder_is_explained(run_folder: Path) -> None:
    names = set(re.findall(r"`([\w.-]+)`", page("reference/job-folder.md")))
    files = [
        path for path in run_folder.rglob("*") if not path.is_dir() and not {"work", "ml"} & {*path.relative_to(run_folder).parts}
    ]
    assert {path.name for path in files} - {"seen"} <= names
    told = [json.loads(path.read_text()) for path in files if path.suffix == ".json" and path.name != "plan.json"]
    told += [json.loads(line) for line in (run_folder / "journal").read_text().splitlines()]
    assert {key for each in told for key in each} <= names
    assert {each["event"] for each in told if "event" in each} <= names


# Links


def anchors_of(text: str) -> set[str]:
    """What a link can point at in a page, as GitHub names it."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^(```+).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", [*NAMES, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_link_leads_somewhere(name: str) -> None:
    file = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(file.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        other = (file.parent / path).resolve() if path else file
        assert other.exists(), f"{name}: {target} does not exist"
        if anchor:
            assert anchor in anchors_of(other.read_text(encoding="utf-8")), f"{name}: {target} has no such heading"


def test_every_page_is_linked_from_the_index() -> None:
    index = page("index.md")
    for file in DOCS.rglob("*.md"):
        name = file.relative_to(DOCS).as_posix()
        assert name == "index.md" or f"]({name})" in index


# For whoever works on Pailot


def test_the_map_of_the_house_has_every_room() -> None:
    """One row a room, each after those that may use it."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[\w`, ]+`) \|", text.partition("## The map of the house")[2].partition("\n## ")[0], re.MULTILINE)
    told = [room for row in rows for room in re.findall(r"\w+", row)]
    package = ROOT / "src" / "pailot"
    rooms = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/__init__.py")}
    assert sorted(told) == sorted(rooms - {"__init__", "__main__"})
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    heights = {name: height for height, layer in enumerate(layers) for name in re.findall(r"\w+", layer)}
    assert [heights[room] for room in told] == sorted(heights[room] for room in told)


def test_every_make_target_that_is_told_of_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for name in ("CONTRIBUTING.md", "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"(?:`|^    )make ([a-z]+)", text, re.MULTILINE)) <= targets


# Rewriting


def rewrite(file: Path) -> None:
    """Put into a page what its commands print now; outputs with `…` are left to you."""
    text = file.read_text(encoding="utf-8")
    lines = text.split("\n")
    with tempfile.TemporaryDirectory() as home:
        for command, output, status in reversed(list(results_of(text, Path(home) / "home"))):
            old = command.line - 1
            size = len(command.output) + (command.status != 0)
            if any("…" in line for line in command.output):
                if not matches(command.output, output):
                    print(f"{file}:{old}: $ {command.text}: please change this one yourself\n" + "\n".join(output))
                continue
            lines[old : old + size] = output + ([f"[exit status {status}]"] if status else [])
    file.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    for each in [Path(name) for name in sys.argv[1:]] or PAGES:
        rewrite(each)
