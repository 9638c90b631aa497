"""The keys of a run's files are spelled in the room `runfolder` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src" / "pailot"
READERS = {"read_record", "read_lines"}
"""They return a record as it stands in its file, with its keys: other rooms read typed values."""
WRITERS = {"write_record": 1, "write_last_record": 1, "place_record": 1, "append_line": 1, "append_lines": 1}
"""They write what they are given: the argument of that number is the JSON form of a typed value."""
OTHERS = {
    "data/data_sets.py": "what is known of a data set: written and read by this module alone, outside of a run's folder",
    "data/ml_folders.py": "the sizes of a channel's files, by their paths: no keys",
    "data/upload_journal.py": "the ledger of what is published: written and read by this module alone",
    "engines/preparation/tasks.py": "peers.json, which tasks read: the addresses by role",
    "engines/slurm/engine.py": "orders to Slurm's driver: a protocol between two processes of the engine",
    "engines/slurm/journal_tail.py": "likewise",
    "engines/slurm/unshared/home.py": "what travels to Slurm's driver: likewise",
    "protocol/yaml/load.py": "another function of that name",
    "runtime/folder_copy/receiver.py": "orders to Slurm's driver",
    "runtime/kubernetes/pod.py": "peers.json, and what the first process of a pod tells the engine's driver",
    "runtime/kubernetes/show.py": "likewise",
    "runtime/slurm/driver.py": "likewise, and what it tells in return",
    "runtime/slurm/step.py": "the addresses of the tasks, by their names: no keys",
    "runtime/slurm/unshared/fetch.py": "the mirror's own files, outside of the folder",
    "userruns/original_plan.py": "the environment that a payload of an earlier Pailot has",
    "userruns/run_folder.py": "plan.json, the one record that is kept as a document",
}
STAMP = '{"at": time.time()}'


def spelled(text: str) -> Iterator[str]:
    """Yield the calls of a module that read or write the raw form of a record, and events that are not made by the journal."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        given = node.args[WRITERS[name]] if name in WRITERS and len(node.args) > WRITERS[name] else None
        value = given.elt if isinstance(given, ast.ListComp) else given
        typed = isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "to_json"
        if name in READERS or (given is not None and not typed and ast.unparse(given) != STAMP.replace('"', "'")):
            yield f"{node.lineno}: {ast.unparse(node)}"
        if name == "note" and getattr(getattr(node.func, "value", None), "attr", "") == "folder" and node.keywords:
            yield f"{node.lineno}: {ast.unparse(node)}"


def modules() -> Iterator[tuple[str, str]]:
    for each in sorted(SOURCE.rglob("*.py")):
        name = str(each.relative_to(SOURCE))
        if not name.startswith("runfolder/"):
            yield name, each.read_text(encoding="utf-8")


def test_no_other_room_reads_or_writes_a_record_with_its_keys() -> None:
    assert [f"{name}:{found}" for name, text in modules() if name not in OTHERS for found in spelled(text)] == []


def test_every_excuse_is_still_needed() -> None:
    assert [name for name, text in modules() if name in OTHERS and not list(spelled(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        'read_record(path)["why"]',
        'write_record(path, {"offset": 3}, durable=False)',
        "atomic_json.append_line(path, entry)",
        "append_lines(path, [entry for entry in entries])",
        'self.folder.note("waiting", reason="x")',
    ],
)
def test_a_spelled_key_is_found(text: str) -> None:
    assert list(spelled(text))
