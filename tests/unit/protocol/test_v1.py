"""Version 1 of the job JSON: what it means, what is refused, and where problems are said to be."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pailot.job_values import Completion, Options
from pailot.protocol import InvalidJob, Job, read, v1
from pailot.protocol.overrides import Override, parse_set
from pailot.protocol.schema import JOB
from pailot.protocol.yaml import parse

# As Luigi's PaiTask sends it: everything that is set, nothing that is None.
LUIGI = """{"jobName": "SklearnExample", "image": "openpai/pai.example.sklearn",
 "outputDir": "$PAI_DEFAULT_FS_URI/SklearnExample/output", "virtualCluster": "default",
 "taskRoles": [{"name": "test", "taskNumber": 1, "cpuNumber": 4, "memoryMB": 8192, "shmMB": 64, "gpuNumber": 0,
                "portList": [{"label": "web", "beginAt": 0, "portNumber": 2}],
                "command": "cd examples && python3 mnist.py"}],
 "retryCount": 0}
"""


def role(**changes: Any) -> dict[str, Any]:
    return {"name": "worker", "command": "echo hi", **changes}


def job(*roles: dict[str, Any], **changes: Any) -> str:
    return json.dumps({"jobName": "j", "image": "ubuntu", "taskRoles": list(roles or (role(),)), **changes}, indent=1)


def problems(text: str, **options: Any) -> list[tuple[str, str]]:
    """(code, path) of everything found in a text."""
    try:
        found = read(text, **options).warnings
    except InvalidJob as error:
        found = error.problems
    return [(problem.code, problem.path) for problem in found]


# What it means


def test_a_job_as_luigi_sends_it() -> None:
    read_job = read(LUIGI)
    test = read_job.task_roles["test"]
    assert read_job.name == "SklearnExample"
    assert read_job.legacy
    assert read_job.warnings == ()
    assert read_job.prerequisites[0].uri == "openpai/pai.example.sklearn"
    assert [each.name for each in test.prerequisites] == ["image"]
    assert test.entrypoint == "cd examples && python3 mnist.py"
    assert (test.instances, test.resources.cpu, test.resources.memory_mb, test.resources.gpu) == (1, 4, 8192, 0)
    assert test.resources.shm_mb == 64
    assert test.resources.ports == {"ssh": 1, "http": 1, "web": 2}
    assert read_job.extras.options == Options(output_dir="$PAI_DEFAULT_FS_URI/SklearnExample/output")


def test_what_is_left_out_has_the_defaults_of_v1() -> None:
    read_job = read(job())
    worker = read_job.task_roles["worker"]
    assert (worker.instances, worker.resources.cpu, worker.resources.memory_mb, worker.resources.gpu) == (1, 1, 100, 0)
    assert worker.resources.shm_mb == 64
    assert worker.resources.ports == {"ssh": 1, "http": 1}
    assert worker.task_retry_count == 0
    assert read_job.virtual_cluster == "default"
    assert read_job.job_retry_count == 0
    assert read_job.extras.raw == {}
    assert read_job.deployments == {}


def test_every_key_arrives() -> None:
    text = job(
        role(taskNumber=3, cpuNumber=2, memoryMB=512, shmMB=128, gpuNumber=1, portList=[{"label": "a"}]),
        role(name="ps", portList=[{"label": "b", "beginAt": 7000, "portNumber": 4}, {"label": "c"}]),
        authFile="auth",
        dataDir="$PAI_DEFAULT_FS_URI/data",
        outputDir="/out/$PAI_JOB_NAME",
        codeDir="/code/$PAI_USER_NAME",
        virtualCluster="vc1",
        gpuType="K80",
        retryCount=2,
        jobEnvs={"A": "x", "B": 1},
        extras={"tags": ["t"]},
    )
    read_job = read(text)
    worker, ps = read_job.task_roles.values()
    assert (worker.instances, worker.resources.cpu, worker.resources.memory_mb, worker.resources.gpu) == (3, 2, 512, 1)
    assert worker.resources.shm_mb == 128
    assert worker.resources.ports["a"] == 1
    assert (ps.resources.ports["b"], ps.resources.ports["c"]) == (4, 1)
    assert read_job.virtual_cluster == "vc1"
    assert read_job.job_retry_count == 2
    assert read_job.extras.raw["tags"] == ["t"]
    assert read_job.extras.options == Options(
        code="/code/$PAI_USER_NAME",
        data_dir="$PAI_DEFAULT_FS_URI/data",
        output_dir="/out/$PAI_JOB_NAME",
        gpu_type="K80",
        auth_file="auth",
        environment={"A": "x", "B": "1"},
        port_base={"ps": {"b": 7000}},
    )


@pytest.mark.parametrize("nothing", [None, ""])
def test_null_and_empty_texts_mean_not_given(nothing: str | None) -> None:
    keys = ("authFile", "dataDir", "outputDir", "codeDir", "virtualCluster", "gpuType")
    read_job = read(job(**dict.fromkeys(keys, nothing)))
    assert read_job.virtual_cluster == "default"
    assert read_job.extras.raw == {}


@pytest.mark.parametrize("nothing", [None, {}])
def test_null_and_empty_mappings_mean_not_given(nothing: object) -> None:
    assert read(job(jobEnvs=nothing, extras=nothing)).extras.raw == {}


@pytest.mark.parametrize("nothing", [None, []])
def test_null_and_empty_port_lists_mean_not_given(nothing: object) -> None:
    assert read(job(role(portList=nothing))).task_roles["worker"].resources.ports == {"ssh": 1, "http": 1}


@pytest.mark.parametrize(
    ("keys", "completion"),
    [
        ({}, Completion(1, None)),
        ({"minFailedTaskCount": None}, Completion(None, None)),
        ({"minSucceededTaskCount": None}, Completion(1, None)),
        ({"minFailedTaskCount": 2, "minSucceededTaskCount": 3}, Completion(2, 3)),
    ],
)
def test_completion(keys: dict[str, int | None], completion: Completion) -> None:
    assert read(job(role(taskNumber=3, **keys))).task_roles["worker"].completion == completion


def test_what_extras_pailot_says_itself_wins() -> None:
    own = {"code": "here", "maxRunSeconds": 5, "environment": {"A": "own"}, "portBase": {"worker": {"a": 1}, "other": {"x": 9}}}
    ports = [{"label": "a", "beginAt": 7000}, {"label": "b", "beginAt": 8000}]
    text = job(
        role(portList=ports), codeDir="there", dataDir="d", jobEnvs={"A": "job", "B": "job"}, extras={"pailot": own, "k": 1}
    )
    read_job = read(text)
    assert read_job.extras.options == Options(
        code="here",
        max_run_seconds=5,
        data_dir="d",
        environment={"A": "own", "B": "job"},
        port_base={"worker": {"a": 1, "b": 8000}, "other": {"x": 9}},
    )
    assert read_job.extras.raw["k"] == 1


@pytest.mark.parametrize("command", ["echo '<%'", "echo <% $parameters.x %>", "echo <% $secrets.x %>", "a <% b", "<%%>"])
def test_commands_are_no_templates(command: str) -> None:
    assert read(job(role(command=f"  {command}\n"))).task_roles["worker"].entrypoint == command


def test_names_that_v2_does_not_allow() -> None:
    read_job = read(job(role(name="1.a~b", portList=[{"label": "p.q~1"}]), jobName="my.job~1"))
    assert read_job.name == "my.job~1"
    assert read_job.task_roles["1.a~b"].resources.ports["p.q~1"] == 1


def test_the_v2_form_is_a_v2_document() -> None:
    document = parse(job(role(portList=[{"label": "a", "beginAt": 1}]), codeDir="c", extras={"k": [1]}))
    root, findings = v1.read(document)
    assert findings == []
    assert root is not document.root
    assert JOB.check(root) == []


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ({"jobName": "x"}, True),
        ({"jobName": "x", "protocolVersion": 2}, False),
        ({"name": "x"}, False),
        (["jobName"], False),
        (None, False),
    ],
)
def test_looks_like_v1(root: object, expected: bool) -> None:
    assert v1.looks_like_v1(root) is expected


# What is refused


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"taskNumber": 0}, "taskNumber"),
        ({"cpuNumber": 0}, "cpuNumber"),
        ({"memoryMB": 99}, "memoryMB"),
        ({"gpuNumber": -1}, "gpuNumber"),
        ({"shmMB": -1}, "shmMB"),
        ({"shmMB": 101}, "shmMB"),
        ({"shmMB": 513, "memoryMB": 512}, "shmMB"),
        ({"minFailedTaskCount": 0}, "minFailedTaskCount"),
        ({"minFailedTaskCount": 2}, "minFailedTaskCount"),
        ({"minFailedTaskCount": 4, "taskNumber": 3}, "minFailedTaskCount"),
        ({"minSucceededTaskCount": 0}, "minSucceededTaskCount"),
        ({"minSucceededTaskCount": 2}, "minSucceededTaskCount"),
        ({"portList": [{"label": "a", "beginAt": -1}]}, "portList[0].beginAt"),
        ({"portList": [{"label": "a", "portNumber": 0}]}, "portList[0].portNumber"),
    ],
)
def test_bounds_of_a_role(changes: dict[str, Any], path: str) -> None:
    assert problems(job(role(**changes))) == [("out-of-range", f"taskRoles[0].{path}")]


@pytest.mark.parametrize(
    "changes",
    [
        {"taskNumber": 1},
        {"cpuNumber": 1},
        {"memoryMB": 100, "shmMB": 100},
        {"gpuNumber": 0},
        {"shmMB": 0},
        {"minFailedTaskCount": 2, "minSucceededTaskCount": 2, "taskNumber": 2},
        {"portList": [{"label": "a", "beginAt": 0, "portNumber": 1}]},
    ],
)
def test_what_is_just_within_the_bounds(changes: dict[str, Any]) -> None:
    assert problems(job(role(**changes))) == []


@pytest.mark.parametrize(("count", "found"), [(-1, [("out-of-range", "retryCount")]), (0, []), (1, [])])
def test_bound_of_retries(count: int, found: list[tuple[str, str]]) -> None:
    assert problems(job(retryCount=count)) == found


@pytest.mark.parametrize("command", ["", " ", "\n\t"])
def test_an_empty_command(command: str) -> None:
    assert problems(job(role(command=command))) == [("bad-value", "taskRoles[0].command")]


def test_a_role_that_stands_twice() -> None:
    assert problems(job(role(), role(name="other"), role())) == [("duplicate-role", "taskRoles[2].name")]


def test_a_port_that_stands_twice() -> None:
    ports = [{"label": "a"}, {"label": "b"}, {"label": "a"}]
    assert problems(job(role(portList=ports))) == [("bad-value", "taskRoles[0].portList[2].label")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"jobName": "j"}', [("missing-key", ""), ("missing-key", "")]),
        ('{"jobName": "j", "image": "i", "taskRoles": []}', [("too-few", "taskRoles")]),
        ('{"jobName": "j", "image": "", "taskRoles": [{"name": "a", "command": "b"}]}', [("bad-value", "image")]),
        ('{"jobName": "j", "image": null, "taskRoles": null}', [("wrong-type", "image"), ("wrong-type", "taskRoles")]),
        ('{"jobName": "j", "image": "i", "taskRoles": [{}]}', [("missing-key", "taskRoles[0]")] * 2),
        ('{"jobName": "j", "image": "i", "taskRoles": [{"name": "r", "command": "c", "portList": [{}]}]}',
         [("missing-key", "taskRoles[0].portList[0]")]),
    ],
)  # fmt: skip
def test_what_is_required(text: str, found: list[tuple[str, str]]) -> None:
    assert problems(text) == found


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (job(jobName="a b"), "jobName"),
        (job(jobName=""), "jobName"),
        (job(jobName="a" * 256), "jobName"),
        (job(role(name="a-b")), "taskRoles[0].name"),
        (job(role(name="")), "taskRoles[0].name"),
        (job(role(portList=[{"label": "a-b"}])), "taskRoles[0].portList[0].label"),
        (job(jobEnvs={"a b": "x"}), "jobEnvs.a b"),
    ],
)
def test_names(text: str, path: str) -> None:
    assert problems(text) == [("bad-name", path)]


def test_the_longest_and_oddest_name() -> None:
    assert problems(job(jobName="aA0._~-" + "a" * 248)) == []


@pytest.mark.parametrize(
    "key",
    ["image", "authFile", "dataDir", "outputDir", "codeDir", "virtualCluster", "gpuType", "retryCount", "jobEnvs", "extras"],
)
def test_types_of_the_job(key: str) -> None:
    assert problems(job(**{key: [1]})) == [("wrong-type", key)]


@pytest.mark.parametrize("key", ["name", "command", "taskNumber", "cpuNumber", "memoryMB", "shmMB", "gpuNumber", "portList"])
def test_types_of_a_role(key: str) -> None:
    assert problems(job(role(**{key: {}}))) == [("wrong-type", f"taskRoles[0].{key}")]


def test_numbers_and_required_texts_are_not_null() -> None:
    text = job(role(taskNumber=None, command=None), retryCount=None)
    paths = {path for code, path in problems(text) if code == "wrong-type"}
    assert paths == {"taskRoles[0].taskNumber", "taskRoles[0].command", "retryCount"}


def test_values_of_variables_are_plain() -> None:
    assert problems(job(jobEnvs={"A": {}})) == [("wrong-type", "jobEnvs.A")]


def test_our_own_extras_are_checked() -> None:
    assert problems(job(extras={"pailot": {"graceSecond": 1}})) == [("unknown-key", "extras.pailot.graceSecond")]


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        (job(codedir="x"), "codedir", "codeDir"),
        (job(role(taskNumbers=1)), "taskRoles[0].taskNumbers", "taskNumber"),
        (job(role(portList=[{"label": "a", "beginsAt": 1}])), "taskRoles[0].portList[0].beginsAt", "beginAt"),
    ],
)
def test_an_unknown_key_and_the_nearest_one(text: str, path: str, hint: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("unknown-key", path)
    assert f"did you mean '{hint}'?" in problem.message


def test_everything_is_found_at_once() -> None:
    text = job(role(cpuNumber=0), role(name="b", shmMB=200), role(name="b", command=""), jobName="", retryCount=-1)
    assert sorted(problems(text)) == [
        ("bad-name", "jobName"),
        ("bad-value", "taskRoles[2].command"),
        ("duplicate-role", "taskRoles[2].name"),
        ("out-of-range", "retryCount"),
        ("out-of-range", "taskRoles[0].cpuNumber"),
        ("out-of-range", "taskRoles[1].shmMB"),
    ]


def test_the_obsolete_key_is_a_warning() -> None:
    read_job = read(job(killAllOnCompletedTaskNumber=1))
    (warning,) = read_job.warnings
    assert (warning.code, warning.path) == ("ignored-key", "killAllOnCompletedTaskNumber")
    assert warning.source[warning.column - 1 :].startswith('"killAllOnCompletedTaskNumber"')
    assert problems(job(killAllOnCompletedTaskNumber=None)) == []


# Where problems are said to be

LAID_OUT = """{
  "jobName": "j",
  "image": "ubuntu",
  "retryCount": 3,
  "taskRoles": [
    {"name": "one", "command": "a"},
    {
      "name": "two",
      "portList": [{"label": "x", "portNumber": 2}],
      "command": "--password hunter22",
      "minFailedTaskCount": 9
    }
  ]
}
"""


def test_positions_in_the_file() -> None:
    with pytest.raises(InvalidJob) as caught:
        read(LAID_OUT, file="job.json")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column) == ("job.json", 11, 29)
    assert problem.source == '      "minFailedTaskCount": 9'


def test_what_is_found_in_the_v2_form_is_led_back() -> None:
    read_job = read(LAID_OUT.replace(": 9", ": null").replace('"command": "a"', '"command": "a", "minFailedTaskCount": null'))
    found = {warning.code: warning for warning in read_job.warnings}
    assert (found["retry-never"].path, found["retry-never"].line, found["retry-never"].column) == ("retryCount", 4, 17)
    assert found["secret-literal"].line == 10


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("name",), 2, 14),
        (("prerequisites", 0, "uri"), 3, 12),
        (("jobRetryCount",), 4, 17),
        (("taskRoles",), 5, 16),
        (("taskRoles", "one"), 6, 5),
        (("taskRoles", "one", "dockerImage"), 3, 12),
        (("taskRoles", "one", "commands", 0), 6, 32),
        (("taskRoles", "two"), 7, 5),
        (("taskRoles", "two", "resourcePerInstance", "ports", "x"), 9, 49),
        (("taskRoles", "two", "resourcePerInstance", "ports", "http"), 9, 19),
        (("taskRoles", "two", "commands", 0), 10, 18),
        (("taskRoles", "two", "completion", "minFailedInstances"), 11, 29),
        (("taskRoles", "two", "instances"), 7, 5),
        (("taskRoles", "none"), 5, 16),
        (("taskRoles", 1, "command"), 10, 18),
        (("parameters", "x"), 1, 1),
    ],
)
def test_places_of_the_v2_form(path: tuple[str | int, ...], line: int, column: int) -> None:
    read_job = read(LAID_OUT.replace(": 9", ": null"))
    problem = read_job.problem("plugin-note", "said later", path)
    assert (problem.line, problem.column) == (line, column)


def test_every_place_of_the_v2_form_has_one_in_v1() -> None:
    full = job(
        role(taskNumber=1, cpuNumber=1, memoryMB=100, shmMB=64, gpuNumber=0, minFailedTaskCount=1, minSucceededTaskCount=1),
        **dict.fromkeys(("authFile", "dataDir", "outputDir", "codeDir", "gpuType", "virtualCluster"), "x"),
        jobEnvs={"A": "x"},
        extras={"pailot": {"graceSeconds": 1}},
    )
    document = v1.V1Document(full, parse(full).root, ())
    at = ("taskRoles", "worker")
    assert {v2: document.path(v2) for v2 in EXPECTED_PLACES} == EXPECTED_PLACES
    assert document.path((*at, "resourcePerInstance", "cpu")) == ("taskRoles", 0, "cpuNumber")


EXPECTED_PLACES: dict[tuple[str | int, ...], tuple[str | int, ...]] = {
    ("defaults", "virtualCluster"): ("virtualCluster",),
    ("extras", "pailot", "code"): ("codeDir",),
    ("extras", "pailot", "dataDir"): ("dataDir",),
    ("extras", "pailot", "outputDir"): ("outputDir",),
    ("extras", "pailot", "gpuType"): ("gpuType",),
    ("extras", "pailot", "authFile"): ("authFile",),
    ("extras", "pailot", "environment", "A"): ("jobEnvs", "A"),
    ("extras", "pailot", "graceSeconds"): ("extras", "pailot", "graceSeconds"),
    ("taskRoles", "worker", "instances"): ("taskRoles", 0, "taskNumber"),
    ("taskRoles", "worker", "resourcePerInstance", "memoryMB"): ("taskRoles", 0, "memoryMB"),
    ("taskRoles", "worker", "resourcePerInstance", "gpu"): ("taskRoles", 0, "gpuNumber"),
    ("taskRoles", "worker", "resourcePerInstance", "ports"): ("taskRoles", 0, "portList"),
    ("taskRoles", "worker", "extraContainerOptions", "shmMB"): ("taskRoles", 0, "shmMB"),
    ("taskRoles", "worker", "completion", "minSucceededInstances"): ("taskRoles", 0, "minSucceededTaskCount"),
}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("extras", "pailot", "code"), ("extras", "pailot", "code")),
        (["extras", "pailot", "dataDir"], ("dataDir",)),
        (("extras", "pailot", "environment", "A"), ("extras", "pailot", "environment", "A")),
        (("extras", "pailot", "environment", "B"), ("jobEnvs", "B")),
        (("taskRoles",), ("taskRoles",)),
        (("taskRoles", "x", "commands"), ("taskRoles", "x", "commands")),
        ((), ()),
    ],
)
def test_a_place_that_v1_has_itself_stays(path: tuple[str | int, ...], place: tuple[str | int, ...]) -> None:
    own = {"code": "c", "environment": {"A": 1}}
    text = json.dumps({"jobName": "j", "codeDir": "d", "dataDir": "d", "jobEnvs": {"B": 1}, "extras": {"pailot": own}})
    assert v1.V1Document(text, parse(text).root, ()).path(path) == place


def test_places_of_values_and_of_keys() -> None:
    text = '{"jobName": "j"}'
    document = v1.V1Document(text, parse(text).root, ())
    assert (document.offset(("name",)), document.offset(("name",), key=True)) == (12, 1)


def test_the_shape_as_json_schema() -> None:
    shape = v1.job_shape().schema()
    assert shape["required"] == ["jobName", "image", "taskRoles"]
    assert {"type": "null"} in shape["properties"]["extras"]["anyOf"]
    assert shape["properties"]["taskRoles"]["items"]["properties"]["memoryMB"]["minimum"] == 100


def test_warnings_keep_their_place_when_pickled() -> None:
    read_job = read(LAID_OUT.replace(": 9", ": null").replace('"command": "a"', '"command": "a", "minFailedTaskCount": null'))
    assert pickle.loads(pickle.dumps(read_job)).warnings == read_job.warnings != ()


# Options of the command line speak of v2


def test_changes_may_name_places_of_v1_or_v2() -> None:
    changes = [
        Override(("name",), "other", "--name"),
        Override(("defaults", "virtualCluster"), "vc2", "--vc"),
        parse_set("taskRoles.worker.instances=4"),
        parse_set("taskRoles[0].cpuNumber=8"),
        parse_set("taskRoles.worker.commands[0]=date"),
        parse_set("taskRoles.worker.resourcePerInstance.ports.a=3"),
        parse_set("extras.pailot.graceSeconds=7"),
    ]
    read_job = read(job(role(portList=[{"label": "a"}])), changes=changes)
    worker = read_job.task_roles["worker"]
    assert (read_job.name, read_job.virtual_cluster) == ("other", "vc2")
    assert (worker.instances, worker.resources.cpu, worker.entrypoint) == (4, 8, "date")
    assert worker.resources.ports["a"] == 3
    assert read_job.extras.options.grace_seconds == 7


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("taskRoles.worker.instances=0", "out-of-range"),
        ("deployments=1", "unknown-key"),
        ("taskRoles.wroker.instances=1", "bad-override"),
    ],
)
def test_a_change_that_does_not_fit_is_said_of_the_option(change: str, code: str) -> None:
    with pytest.raises(InvalidJob) as caught:
        read(job(), changes=[parse_set(change)])
    (problem,) = caught.value.problems
    assert problem.code == code
    assert change.partition("=")[0] in f"{problem.file} {problem.message}"


# Whatever comes in

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 200) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def mostly(sensible: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return sensible | sensible | sensible | JSON


NAMES = st.sampled_from(["a", "a", "b", "1.x~", "a-b"])
COUNTS = mostly(st.integers(1, 4))
PORTS = st.fixed_dictionaries({"label": mostly(NAMES)}, optional={"beginAt": COUNTS, "portNumber": COUNTS})
ROLES = st.fixed_dictionaries(
    {"name": mostly(NAMES), "command": mostly(st.sampled_from(["true", "<%", "", "<% $secrets.x %>"]))},
    optional={
        "taskNumber": COUNTS,
        "cpuNumber": COUNTS,
        "memoryMB": mostly(st.integers(90, 300)),
        "shmMB": mostly(st.integers(0, 200)),
        "gpuNumber": COUNTS,
        "portList": mostly(st.lists(mostly(PORTS), max_size=3)),
        "minFailedTaskCount": COUNTS,
        "minSucceededTaskCount": COUNTS,
    },
)
PAILOT = st.dictionaries(
    st.sampled_from(["code", "environment", "portBase", "graceSeconds"]), mostly(st.dictionaries(NAMES, JSON))
)
EXTRAS = st.dictionaries(st.sampled_from(["pailot", "hivedScheduler", "storages", "x"]), mostly(PAILOT))
JOBS = st.fixed_dictionaries(
    {
        "jobName": mostly(NAMES),
        "image": mostly(st.just("i")),
        "taskRoles": mostly(st.lists(mostly(ROLES), min_size=1, max_size=3)),
    },
    optional={
        **dict.fromkeys(("authFile", "dataDir", "outputDir", "codeDir", "virtualCluster", "gpuType"), mostly(st.just("x"))),
        "retryCount": COUNTS,
        "killAllOnCompletedTaskNumber": COUNTS,
        "jobEnvs": mostly(st.dictionaries(NAMES, st.text(max_size=3))),
        "extras": mostly(EXTRAS),
        "other": JSON,
    },
)


@settings(deadline=None)
@given(JOBS)
def test_any_value_gives_a_job_or_says_what_is_wrong(value: Any) -> None:
    found = read_or_refused(value)
    if isinstance(found, Job):
        assert found.name == value["jobName"]
        assert [each.name for each in found.task_roles.values()] == [each["name"] for each in value["taskRoles"]]
    else:
        assert any(problem.is_error for problem in found.problems)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*v1.job_shape().fields, "x"]), JSON))
def test_any_value_under_any_key_gives_a_job_or_says_what_is_wrong(value: Any) -> None:
    found = read_or_refused({"jobName": "j", **value})
    assert isinstance(found, Job) or found.problems


def read_or_refused(value: Any) -> Job | InvalidJob:
    try:
        return read(json.dumps(value))
    except InvalidJob as error:
        return error
