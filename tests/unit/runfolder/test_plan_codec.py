"""A plan is written and read back as it was, and holds nothing that must not lie in a file."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pailot
from pailot.data.rules import Rules
from pailot.engines import context_codec
from pailot.engines.contract import LaunchContext
from pailot.job_values import Auth, Channels, Completion, Options, Resources, Storage
from pailot.loading import read_job
from pailot.planning import Plan
from pailot.planning.private_values import private_values
from pailot.problem import CODES, Problem, Rest
from pailot.protocol import InvalidJob
from pailot.runfolder import plan_codec
from pailot.runfolder.plan import Image, PlannedCallback, Provision, RolePlan, Scripts
from pailot.runfolder.plan_codec import PlanFormatError, decode, encode, masked, restored, whole_plan
from pailot.userruns.masked_job_file import Kept, recorded

TEXTS = st.text(max_size=12)
NAMES = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=6)
COUNTS = st.integers(0, 10**12)
SECONDS = st.one_of(COUNTS, st.floats(0, 1e9))
OR_NONE = st.none()
VARIABLES = st.dictionaries(TEXTS, TEXTS, max_size=4)
PORTS = st.dictionaries(TEXTS, COUNTS, max_size=3)


def tuples(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


PROBLEMS = st.builds(Problem, st.sampled_from(sorted(CODES)), TEXTS, TEXTS, COUNTS, COUNTS, TEXTS, TEXTS, TEXTS)
RESTS = st.builds(Rest, st.just("more-problems"), TEXTS, TEXTS, COUNTS, COUNTS, TEXTS, TEXTS, TEXTS, COUNTS)
CHANNELS = st.builds(
    Channels, tuples(TEXTS), tuples(TEXTS), VARIABLES, VARIABLES, OR_NONE | TEXTS, OR_NONE | VARIABLES, st.booleans()
)
OPTIONS = st.builds(
    Options,
    max_run_seconds=OR_NONE | SECONDS,
    grace_seconds=SECONDS,
    retry_delay_seconds=SECONDS,
    hold_on_failure_minutes=SECONDS,
    hold_command=OR_NONE | TEXTS,
    code=OR_NONE | TEXTS,
    environment=VARIABLES,
    data_dir=OR_NONE | TEXTS,
    output_dir=OR_NONE | TEXTS,
    gpu_type=OR_NONE | TEXTS,
    auth_file=OR_NONE | TEXTS,
    port_base=st.dictionaries(TEXTS, PORTS, max_size=2),
    labels=VARIABLES,
    channels=OR_NONE | CHANNELS,
)
ROLES = st.builds(
    RolePlan,
    name=NAMES,
    instances=COUNTS,
    image=st.builds(Image, TEXTS, OR_NONE | st.builds(Auth, TEXTS, TEXTS, TEXTS)),
    entrypoint=TEXTS,
    scripts=st.builds(Scripts, TEXTS, TEXTS, TEXTS),
    environment=VARIABLES,
    resources=st.builds(Resources, COUNTS, COUNTS, COUNTS, OR_NONE | COUNTS, st.booleans(), PORTS),
    task_retry_count=COUNTS,
    completion=st.builds(Completion, OR_NONE | COUNTS, OR_NONE | COUNTS),
    prerequisites=tuples(TEXTS),
    callbacks=tuples(st.builds(PlannedCallback, TEXTS, TEXTS, tuples(TEXTS), st.booleans())),
    provisions=tuples(st.builds(Provision, TEXTS, TEXTS, TEXTS, TEXTS)),
    port_base=PORTS,
    peers_by_name=st.booleans(),
)
PLANS = st.builds(
    Plan,
    name=TEXTS,
    user=TEXTS,
    roles=st.lists(ROLES, max_size=3, unique_by=lambda role: role.name).map(lambda found: {role.name: role for role in found}),
    job_retry_count=COUNTS,
    virtual_cluster=TEXTS,
    priority=TEXTS,
    gang=st.booleans(),
    options=OPTIONS,
    storages=tuples(st.builds(Storage, TEXTS, TEXTS)),
    default_storages=st.booleans(),
    warnings=tuples(PROBLEMS | RESTS),
)


@given(PLANS)
def test_every_plan_is_read_back_as_it_was(plan: Plan) -> None:
    text = encode(plan)
    assert "\n" not in text
    assert decode(text) == plan


@given(PLANS, st.text(string.ascii_letters, min_size=1, max_size=2))
def test_what_is_masked_in_a_file_comes_back(plan: Plan, secret: str) -> None:
    whole = json.loads(encode(plan))
    kept, taken = masked(whole, lambda text: text.replace(secret, "*"))
    values: list[Any] = [kept]
    while values:
        value = values.pop()
        values += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        assert not isinstance(value, str) or secret not in value
    in_file = json.loads(json.dumps({plan_codec.KEY: kept}))
    assert whole_plan(in_file, json.loads(json.dumps(taken))) == plan


def test_all_real_jobs(corpus: Path) -> None:
    read = 0
    for file in sorted(corpus.glob("*.yaml")):
        try:
            plan = pailot.plan(read_job(file.read_text(), file.name, lenient=True, own_files=False))
        except InvalidJob:
            continue
        assert decode(encode(plan)) == plan, file.name
        read += 1
    assert read > 100


JOB = """
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian, auth: {username: ann, password: written-out, registryuri: r.example}}
  - {name: other, type: dockerimage, uri: alpine, auth: {username: ann, password: <% $secrets.word %>}}
  - {name: set, type: data, plugin: com.microsoft.pai.runtimeplugin.fetch, uri: "https://<% $secrets.word %>@example.com/x"}
secrets: {word: hunter22, unused: another-one}
taskRoles:
  one:
    dockerImage: image
    prerequisites: [set]
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ["echo <% $secrets.word %>", "curl -u me:t0ken-of-mine-9f8e7d6c https://example.com"]
  two:
    dockerImage: other
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 1}
    commands: ["true"]
extras:
  pailot: {environment: {API_KEY: 0123456789abcdef0123}}
"""
PRIVATE = ("written-out", "hunter22", "another-one")


def test_credentials_and_secrets_travel_beside_the_plan() -> None:
    job = pailot.loads(JOB.replace("com.microsoft.pai.runtimeplugin.fetch", "fetch"))
    plan = pailot.plan(job)
    assert not [text for text in PRIVATE if text in encode(plan) + repr(plan)]
    private = private_values(job, plan)
    assert private.secrets == {"<% $secrets.word %>": "hunter22"}
    assert {role: each.password for role, each in private.logins.items()} == {"one": "written-out", "two": "hunter22"}
    assert "hunter22" not in repr(private)


def test_the_file_of_a_run_holds_nothing_secret_and_with_what_was_sealed_the_whole_plan() -> None:
    job = pailot.loads(JOB.replace("com.microsoft.pai.runtimeplugin.fetch", "fetch"))
    plan = pailot.plan(job)
    kept = recorded(job, JOB, plan)
    file = plan_codec.with_whole_plan(json.dumps(dict(kept.plan)), json.dumps(list(kept.document)))
    assert not [text for text in (*PRIVATE, "0123456789abcdef0123") if text in file]
    content = json.loads(file)
    assert content["taskRoles"]["one"]["imageAuth"]["password"] == "******"
    sealed = Kept.opened({"secrets": dict(kept.secrets), **json.loads(json.dumps(kept.to_seal()))})
    assert whole_plan(content, sealed.taken) == plan.replace(warnings=())


def test_a_folder_of_an_earlier_pailot_has_no_whole_plan() -> None:
    assert whole_plan({"name": "demo", "taskRoles": {}}) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("{}", "this is no plan"),
        ("[]", "this is no plan"),
        ('["1"]', "this is no plan"),
        ("[2]", "written by a later Pailot, in format 2; this one reads up to 1"),
        ("[1]", "damaged"),
        ('[1, "a", "b", 0, "c", "d", true, [], [], false, [], {}, []]', "damaged"),
    ],
)
def test_what_is_no_plan_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(PlanFormatError, match=words) as caught:
        decode(text)
    assert "\n" not in str(caught.value)


def test_what_was_sealed_for_another_plan_does_not_fit() -> None:
    with pytest.raises(PlanFormatError, match="does not fit"):
        restored([1, "a"], [([5, "x"], "text")])


def test_the_format_does_not_change_under_those_who_have_written_it() -> None:
    """This text was written by the first Pailot with this codec."""
    text = (
        '[1,"demo","ann",2,"default","test",true,[null,30,1,0,null,null,{"A":"b"},null,null,null,null,{},{},'
        '[["in"],[],{"in":"/data"},{},null,null,false]],[["store","/mnt"]],false,[["unused-secret","words","f",1,2,"p","s","h"]],'
        '{"X":"1","Y":"2"},[["one",3,["debian",["ann","******",""]],"true",["main","start",""],[],[1,2,3,null,false,{"http":1}],'
        '4,[1,null],["set"],[["set","containerStart",["ls"],true]],[["fetch","s","V",""]],{"http":80},true],'
        '["two",1,["alpine",null],"false",["main","",""],[{"Z":"3"},["Y"]],[1,2,0,4,true,{}],0,[null,3],[],[],[],{},false]]]'
    )
    plan = decode(text)
    assert encode(plan) == text
    assert plan.roles["two"].environment == {"X": "1", "Z": "3"}
    assert plan.roles["one"].image == Image("debian", Auth("ann", "******", ""))
    assert plan.options.channels == Channels(("in",), (), {"in": "/data"})
    assert plan.warnings == (Problem("unused-secret", "words", "f", 1, 2, "p", "s", "h"),)
    later = json.loads(text)
    later += ["extras.storages", "a field of a later Pailot"]
    assert decode(json.dumps(later)) == plan


def test_the_context_of_a_launch_is_read_back_as_it_was() -> None:
    context = LaunchContext(
        cwd="/a", work_dir="shared", environment={"A": "\udc80"}, secrets={"<% $secrets.a %>": "b"},
        logins={"one": Auth("ann", "word", "r")}, hidden=("b",), cache="/c", home="/h", sandbox=True, rotate_bytes=7,
        code="/code", source="text", run_as="ann",
        rules=Rules(True, ("s3",), ("/d",), ("10.0.0.0/8",), False, True), data_folder="/data", data_bytes=9, data_user="fetcher",
    )  # fmt: skip
    plain = LaunchContext()
    assert not [name for name in context._fields if getattr(context, name) == getattr(plain, name)], "a field is not tried"
    for each in (context, plain):
        assert context_codec.context_of(json.loads(json.dumps(context_codec.document(each)))) == each
    assert "word" not in repr(context)
