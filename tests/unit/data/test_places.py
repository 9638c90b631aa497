"""Every way to name a place, in every field that takes one, for every engine and whoever submits: one decision."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import pailot
from pailot.data import server_rules
from pailot.data.job_places import named_by, refusals
from pailot.data.rules import Rules
from pailot.engines.registry import BUILT_IN
from pailot.jobserver.errors import Invalid
from pailot.jobserver.models import Caller
from pailot.jobserver.submission import JobReader, check_places
from pailot.jobserver.team_library import TeamLibrary
from pailot.library import Library
from pailot.protocol.schema import json_schema
from pailot.protocol.v1 import job_shape
from pailot.settings import Settings
from pailot.store.server import ServerStore

CALLERS = {
    "owner": Caller("ann"),
    "other user": Caller("bob"),
    "member of the virtual cluster": Caller("eve", clusters=frozenset(("research",))),
    "administrator": Caller("root", admin=True),
}

JOB = """\
protocolVersion: 2
name: x
type: job
prerequisites:
  - {{name: image, type: dockerimage, uri: u}}
  - {fetched}
secrets: {{way: "{secret}"}}
taskRoles:
  main: {{dockerImage: image, prerequisites: [f], resourcePerInstance: {{cpu: 1, memoryMB: 1, gpu: 0}}, commands: ["true"]}}
extras: {{pailot: {{{options}}}}}
"""
PLAIN = "{name: f, type: script, plugin: cmd}"

OPENED = {
    "extras.pailot.code": "code: '{uri}'",
    "extras.pailot.channels.code": "channels: {{code: '{uri}'}}",
    "extras.pailot.channels.inputs.*": "channels: {{inputs: {{i: '{uri}'}}}}",
    "extras.pailot.channels.outputs.*": "channels: {{outputs: {{o: '{uri}'}}}}",
    "prerequisites[].uri": "{{name: f, type: data, plugin: fetch, uri: '{uri}'}}",
    "prerequisites[].uri[]": "{{name: f, type: data, plugin: fetch, uri: ['https://example.com/x', '{uri}']}}",
}
"""Fields whose place a server opens for a job, and how a job names one there."""
CODE = ("extras.pailot.code", "extras.pailot.channels.code")
"""What is code is sent along: no path of the server is."""

NEVER_OPENED = {
    "extras.pailot.authFile": "read where the job is submitted; a server does not look at it",
    "extras.pailot.dataDir": "a variable of the task's; the task opens it",
    "extras.pailot.outputDir": "a variable of the task's; the task opens it",
    "extras.pailot.environment.*": "variables of the task's",
    "extras.storages[].name": "the name of a folder in the setting storage_folders",
    "extras.storages[].mountPath": "a place inside of the container",
    "prerequisites[].auth.registryuri": "the container engine pulls images",
}
NO_PLACES = frozenset(
    """
    contributor description name version
    defaults.deployment defaults.virtualCluster
    deployments[].name deployments[].taskRoles.*.postCommands[] deployments[].taskRoles.*.preCommands[]
    extras.com.microsoft.pai.runtimeplugin[].plugin extras.com.microsoft.pai.runtimeplugin[].taskroles[]
    extras.hivedScheduler.jobPriorityClass extras.hivedscheduler.jobPriorityClass
    extras.hivedScheduler.taskRoles.*.affinityGroupName extras.hivedscheduler.taskRoles.*.affinityGroupName
    extras.hivedScheduler.taskRoles.*.gpuType extras.hivedscheduler.taskRoles.*.gpuType
    extras.hivedScheduler.taskRoles.*.pinnedCellId extras.hivedscheduler.taskRoles.*.pinnedCellId
    extras.hivedScheduler.taskRoles.*.reservationId extras.hivedscheduler.taskRoles.*.reservationId
    extras.hivedScheduler.taskRoles.*.skuType extras.hivedscheduler.taskRoles.*.skuType
    extras.pailot.channels.hyperparameters.* extras.pailot.channels.inputs[] extras.pailot.channels.outputs[]
    extras.pailot.after extras.pailot.after[] extras.pailot.gpuType extras.pailot.holdCommand extras.pailot.labels.*
    prerequisites[].auth.* prerequisites[].auth.password prerequisites[].auth.username
    prerequisites[].callbacks[].commands[] prerequisites[].callbacks[].event prerequisites[].callbacks[].failurePolicy
    prerequisites[].contributor prerequisites[].description prerequisites[].failurePolicy prerequisites[].name
    prerequisites[].plugin prerequisites[].require[] prerequisites[].type prerequisites[].version
    taskRoles.*.commands[] taskRoles.*.data taskRoles.*.dockerImage taskRoles.*.output taskRoles.*.prerequisites[]
    taskRoles.*.script
    """.split()
)
OF_VERSION_1 = {
    "authFile": "extras.pailot.authFile",
    "codeDir": "extras.pailot.code",
    "dataDir": "extras.pailot.dataDir",
    "outputDir": "extras.pailot.outputDir",
    "jobEnvs.*": "extras.pailot.environment.*",
    "image": "no place: the container engine pulls images",
}


def text_fields(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The fields of a schema that can hold a text."""
    for kind in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(kind, ()):
            yield from text_fields(each, path)
    for part in ("then", "else"):
        if isinstance(schema.get(part), dict):
            yield from text_fields(schema[part], path)
    for name, each in schema.get("properties", {}).items():
        yield from text_fields(each, f"{path}.{name}" if path else name)
    for each in (schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()):
        if isinstance(each, dict) and each:
            yield from text_fields(each, f"{path}.*")
    if isinstance(schema.get("items"), dict):
        yield from text_fields(schema["items"], f"{path}[]")
    kinds = schema.get("type", ())
    if path and ("string" in ((kinds,) if isinstance(kinds, str) else kinds)):
        yield path


def test_every_field_that_holds_a_text_is_known_to_name_a_place_or_not() -> None:
    found = set(text_fields(json_schema()))
    known = {*OPENED, *NEVER_OPENED, *NO_PLACES}
    assert not found - known, "a new field: if a server opens what it names, it needs a row in OPENED and a line in named_by"
    assert not known - found, "fields that are gone"


def test_the_fields_of_version_1_are_those_of_version_2() -> None:
    ours = {each for each in text_fields(job_shape().schema()) if not each.startswith(("extras.", "taskRoles"))}
    assert ours - {"jobName", "virtualCluster", "gpuType"} == set(OF_VERSION_1)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that jobs may name, beside one that they may not, with links between them."""
    base = tmp_path_factory.mktemp("places")
    for name in ("allowed", "allowed/deep", "allowed-too", "closed"):
        (base / name).mkdir()
        (base / name / "canary").write_text("secret")
    (base / "allowed" / "out").symlink_to(base / "closed")
    (base / "allowed" / "file-out").symlink_to(base / "closed" / "canary")
    (base / "allowed" / "chain").symlink_to("out")
    (base / "allowed" / "in").symlink_to("deep")
    return base


def ways(base: Path) -> dict[str, tuple[str, bool]]:
    """Ways to name a place, and whether a job on a server may."""
    closed, allowed = base / "closed" / "canary", base / "allowed"
    return {
        "plain path": (str(closed), False),
        "the root": ("/", False),
        "relative path": ("closed/canary", False),
        "home": ("~/canary", False),
        "dots": (f"{allowed}/../closed/canary", False),
        "a folder whose name only begins so": (f"{base}/allowed-too/canary", False),
        "file": (f"file://{closed}", False),
        "file in capitals": (f"FILE://{closed}", False),
        "file of localhost": (f"file://localhost{closed}", False),
        "file with escapes": (f"file://{allowed}/%2e%2e/closed/canary", False),
        "local": (f"local://{closed}", False),
        "local in the allowed folder": (f"local://{allowed}/canary", False),
        "memory": ("memory://x", False),
        "chain with file": (f"simplecache::file://{closed}", False),
        "chain with local": (f"filecache::local://{closed}", False),
        "chain with a path": (f"simplecache::{closed}", False),
        "chain of a folder": (f"dir::file://{base}/closed", False),
        "chain that begins well": (f"s3://bucket/key::file://{closed}", False),
        "archive in a chain": (f"tar://x::file://{closed}", False),
        "link out": (f"{allowed}/out/canary", False),
        "link out to a file": (f"{allowed}/file-out", False),
        "link to a link out": (f"file://{allowed}/chain/canary", False),
        "secret": ("<% $secrets.way %>", False),
        "secret as a part": ("<% $secrets.way %>/canary", False),
        "loopback": ("http://127.0.0.1:8000/x", False),
        "loopback as a number": ("http://2130706433/x", False),
        "metadata": ("http://169.254.169.254/latest/meta-data", False),
        "web": ("https://example.com/code.tar.gz", True),
        "bucket": ("s3://bucket/archive.tgz", True),
        "HDFS in a private network": ("hdfs://10.151.40.179:9000/x", True),
        "allowed folder": (f"{allowed}/canary", True),
        "allowed folder by file": (f"file://{allowed}/canary", True),
        "link that stays inside": (f"{allowed}/in/canary", True),
    }


def text_of(field: str, uri: str, secret: str) -> str:
    written = OPENED[field].format(uri=uri)
    fetched, options = (written, "") if field.startswith("prerequisites") else (PLAIN, written)
    return JOB.format(fetched=fetched, options=options, secret=secret)


def rules_of(engine: str, base: Path) -> Rules:
    """As a server with this engine has them."""
    variables = {"PAILOT_STORAGE_FOLDERS": f"data={base}/allowed", "PAILOT_ENGINE": engine}
    return server_rules.read(Settings(variables, folder=str(base)))


@pytest.mark.parametrize("field", OPENED)
def test_one_decision_for_all(field: str, storage: Path) -> None:
    rules = {engine: rules_of(engine, storage) for engine in BUILT_IN}
    folders = Library((), home=str(storage / "home"), cache=str(storage / "cache"))
    reader = JobReader(TeamLibrary(ServerStore.open(str(storage / "server.db")), folders, Settings({})))
    for way, (uri, fine) in ways(storage).items():
        allowed = fine and not (field in CODE and pailot_path(uri))
        text = text_of(field, uri, f"local://{storage}/closed/canary")
        for who, caller in CALLERS.items():
            try:
                prepared = reader.prepare(text, caller.name)
            except Invalid:
                assert field in CODE, (field, way, who)
                assert not allowed, (field, way, who)
                continue
            for engine in rules:
                found = list(refusals(prepared.plan, prepared.private.secrets, rules[engine]))
                assert (not found) is allowed, (field, way, who, engine, found)
                with nullcontext() if allowed else pytest.raises(Invalid):
                    check_places(prepared.job, prepared.plan, prepared.private.secrets, rules[engine])


def pailot_path(uri: str) -> bool:
    return "://" not in uri or uri.lower().startswith("file://")


def test_a_secret_is_not_told_by_a_refusal(storage: Path) -> None:
    word = f"local://{storage}/closed/canary"
    job = pailot.loads(text_of("prerequisites[].uri", "<% $secrets.way %>", word))
    [(field, words)] = refusals(pailot.plan(job), {"<% $secrets.way %>": word}, rules_of("local", storage))
    assert field == ("taskRoles", "main")
    assert "$secrets.way" in words
    assert word not in words
    assert str(storage) not in words


def test_variables_are_looked_at_with_their_values(storage: Path) -> None:
    job = pailot.loads(text_of("prerequisites[].uri", "$PAI_USER_NAME://${PAI_USER_NAME}/x", ""))
    [named] = named_by(pailot.plan(job, "local"), {})
    assert named.location.uri == "local://local/x"
    assert list(refusals(pailot.plan(job, "local"), {}, rules_of("local", storage)))
    assert not list(refusals(pailot.plan(job, "s3"), {}, rules_of("local", storage)))


def test_a_link_that_is_made_after_the_check_leads_nowhere(storage: Path) -> None:
    """Between the look at a path and its opening, tasks may change what lies in the folder."""
    from pailot.data import folders
    from pailot.data.addresses import parse

    rules = rules_of("docker", storage)
    place = storage / "allowed" / "swapped"
    place.mkdir()
    (place / "canary").write_text("mine")
    real = folders.real_path(parse(f"{place}/canary"), "", rules)
    with open(folders.open_file(real, rules)) as stream:
        assert stream.read() == "mine"
    place.rename(storage / "allowed" / "away")
    place.symlink_to(storage / "closed")
    with pytest.raises(OSError, match="Not a directory"):
        folders.open_file(real, rules)
    with pytest.raises(OSError, match="Not a directory"):
        folders.hold(f"{place}/new", rules, create=True)
    assert os.listdir(storage / "closed") == ["canary"]
    os.mkfifo(storage / "allowed" / "fifo")
    with pytest.raises(pailot.DataError, match="it is no file"):
        folders.open_file(f"{storage}/allowed/fifo", rules)
