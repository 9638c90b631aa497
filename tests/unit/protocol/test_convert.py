"""From v1 to v2 and back: the same job runs, and what the other version cannot say is told by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pailot.job_values import Completion
from pailot.protocol import CODES, Job, read
from pailot.protocol.convert import to_v1, to_v2
from pailot.protocol.problems import Finding, path_text
from pailot.protocol.yaml import parse
from pailot.protocol.yaml.writer import dump

V2 = """
protocolVersion: 2
name: hello
type: job
prerequisites:
  - {type: dockerimage, name: img, uri: ubuntu}
taskRoles:
  worker:
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 0}
    commands:
      - echo hi
"""


def v1_role(**changes: Any) -> dict[str, Any]:
    return {"name": "worker", "command": "echo hi", **changes}


def v1_job(*roles: dict[str, Any], **changes: Any) -> str:
    return json.dumps({"jobName": "j", "image": "ubuntu", "taskRoles": list(roles or (v1_role(),)), **changes}, indent=1)


def v2_job(**changes: Any) -> dict[str, Any]:
    return {**parse(V2).root, **changes}


def v2_role(**changes: Any) -> dict[str, Any]:
    return {**parse(V2).root["taskRoles"]["worker"], **changes}


def converted(root: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """A v2 job as v1, and (code, path) of what was found."""
    answer, findings = to_v1(read(dump(root)))
    return answer, told(findings)


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.code, path_text(finding.path)) for finding in findings]


def lossy(*paths: str) -> list[tuple[str, str]]:
    return [("lossy-conversion", path) for path in paths]


def essence(job: Job) -> dict[str, Any]:
    """What a job does, whatever the version of its file."""
    return {
        "name": job.name,
        "virtualCluster": job.virtual_cluster,
        "retries": job.job_retry_count,
        "options": job.extras.options,
        "extras": {key: value for key, value in job.extras.raw.items() if key != "pailot"},
        "roles": {
            name: (role.instances, role.completion, role.resources, role.entrypoint, role.prerequisites[0].uri)
            for name, role in job.task_roles.items()
        },
    }


# From v1 to v2


def test_a_v1_job_in_v2() -> None:
    ports = [{"label": "web", "beginAt": 7000, "portNumber": 2}]
    text = v1_job(v1_role(taskNumber=2, portList=ports, minSucceededTaskCount=2), codeDir="code", retryCount=1, extras={"k": 1})
    root, findings = to_v2(parse(text))
    assert findings == []
    assert dump(root) == (
        "protocolVersion: 2\n"
        "name: j\n"
        "type: job\n"
        "jobRetryCount: 1\n"
        "prerequisites:\n"
        "  - name: image\n"
        "    type: dockerimage\n"
        "    uri: ubuntu\n"
        "taskRoles:\n"
        "  worker:\n"
        "    instances: 2\n"
        "    completion:\n"
        "      minFailedInstances: 1\n"
        "      minSucceededInstances: 2\n"
        "    dockerImage: image\n"
        "    resourcePerInstance:\n"
        "      cpu: 1\n"
        "      memoryMB: 100\n"
        "      gpu: 0\n"
        "      ports:\n"
        "        web: 2\n"
        "    extraContainerOptions:\n"
        "      shmMB: 64\n"
        "    commands:\n"
        "      - echo hi\n"
        "defaults:\n"
        "  virtualCluster: default\n"
        "extras:\n"
        "  k: 1\n"
        "  pailot:\n"
        "    code: code\n"
        "    portBase:\n"
        "      worker:\n"
        "        web: 7000\n"
    )
    assert essence(read(dump(root))) == essence(read(text))


def test_names_are_made_legal_kept_distinct_and_told() -> None:
    ports = [{"label": "p.q", "beginAt": 7000}, {"label": "p_q"}, {"label": "8080"}]
    text = v1_job(
        v1_role(name="a.b", portList=ports), v1_role(name="a_b"), v1_role(name="a~b"), v1_role(name="1st"), jobName="my.job~1"
    )
    document = parse(text)
    before = json.dumps(document.root)
    root, findings = to_v2(document)
    assert root["name"] == "my-job-1"
    assert [*root["taskRoles"]] == ["a_b_2", "a_b", "a_b_3", "_1st"]
    assert root["taskRoles"]["a_b_2"]["resourcePerInstance"]["ports"] == {"p_q_2": 1, "p_q": 1, "_8080": 1}
    assert root["extras"]["pailot"]["portBase"] == {"a_b_2": {"p_q_2": 7000}}
    assert told(findings) == lossy(
        "jobName",
        "taskRoles[0].name",
        "taskRoles[0].portList[0].label",
        "taskRoles[0].portList[2].label",
        "taskRoles[2].name",
        "taskRoles[3].name",
    )
    assert [("'a.b'" in findings[1].message, "'a_b_2'" in findings[1].message)] == [(True, True)]
    assert read(dump(root)).name == "my-job-1"
    assert json.dumps(document.root) == before


def test_extras_follow_the_new_names() -> None:
    extras = {
        "hivedScheduler": {"jobPriorityClass": "prod", "taskRoles": {"a.b": {"skuType": "x"}}},
        "com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "taskroles": ["a.b", "c"]}, {"plugin": "cmd"}],
        "pailot": {"portBase": {"a.b": {"p~": 5}, "c": {"q": 6}}, "graceSeconds": 1},
        "other": {"a.b": 1},
    }
    text = v1_job(v1_role(name="a.b", portList=[{"label": "p~"}]), v1_role(name="c"), extras=extras)
    root, _ = to_v2(parse(text))
    assert root["extras"] == {
        "hivedScheduler": {"jobPriorityClass": "prod", "taskRoles": {"a_b": {"skuType": "x"}}},
        "com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "taskroles": ["a_b", "c"]}, {"plugin": "cmd"}],
        "pailot": {"portBase": {"a_b": {"p_": 5}, "c": {"q": 6}}, "graceSeconds": 1},
        "other": {"a.b": 1},
    }


def test_the_older_spelling_of_hived_follows_too() -> None:
    text = v1_job(v1_role(name="a.b"), extras={"hivedscheduler": {"taskRoles": {"a.b": {}}}})
    assert to_v2(parse(text))[0]["extras"] == {"hivedscheduler": {"taskRoles": {"a_b": {}}}}


@pytest.mark.parametrize("command", ["echo '<%' and <% $parameters.x %>", "<%%>", "<<% $secrets.y", "%> <%"])
def test_what_looks_like_a_template_stays_what_it_is(command: str) -> None:
    root, findings = to_v2(parse(v1_job(v1_role(command=command), v1_role(name="b", command="true"))))
    assert findings == []
    job = read(dump(root))
    assert job.task_roles["worker"].entrypoint == command
    assert job.task_roles["b"].entrypoint == "true"
    assert to_v1(job)[0]["taskRoles"][0]["command"] == command


def test_without_templates_there_are_no_parameters() -> None:
    assert "parameters" not in to_v2(parse(v1_job()))[0]


@pytest.mark.parametrize("text", ['{"jobName": "j"}', "[]", "a: 1"])
def test_a_broken_v1_job_is_not_converted(text: str) -> None:
    root, findings = to_v2(parse(text))
    assert root == {}
    assert any(CODES[finding.code] == "error" for finding in findings)


def test_warnings_of_v1_are_passed_on() -> None:
    root, findings = to_v2(parse(v1_job(killAllOnCompletedTaskNumber=1)))
    assert root["name"] == "j"
    assert told(findings) == [("ignored-key", "killAllOnCompletedTaskNumber")]


# From v2 to v1


def test_a_v2_job_in_v1() -> None:
    root = v2_job(
        prerequisites=[
            {"type": "dockerimage", "name": "img", "uri": "ubuntu"},
            {"type": "data", "name": "d", "uri": ["/data"]},
        ],
        parameters={"x": 1},
        jobRetryCount=2,
        defaults={"virtualCluster": "vc1", "deployment": "prod"},
        deployments=[{"name": "prod", "taskRoles": {"worker": {"preCommands": ["first"], "postCommands": ["last"]}}}],
        taskRoles={
            "worker": v2_role(
                instances=3,
                completion={"minFailedInstances": 2, "minSucceededInstances": -1},
                resourcePerInstance={"cpu": 4, "memoryMB": 2048, "gpu": 1, "ports": {"a": 2, "b": 1, "http": 1, "ssh": 2}},
                extraContainerOptions={"shmMB": 128},
                data="d",
                commands=["echo <% $parameters.x %>", "ls <% $data.uri[0] %>"],
            )
        },
        extras={
            "tags": ["t"],
            "submitFrom": "me",
            "pailot": {
                "code": "c",
                "dataDir": "d",
                "outputDir": "o",
                "gpuType": "g",
                "authFile": "f",
                "environment": {"A": 1},
                "portBase": {"worker": {"a": 7000, "http": 8000}},
            },
        },
    )
    answer, findings = converted(root)
    assert findings == []
    assert answer == {
        "jobName": "hello",
        "image": "ubuntu",
        "codeDir": "c",
        "dataDir": "d",
        "outputDir": "o",
        "gpuType": "g",
        "authFile": "f",
        "jobEnvs": {"A": 1},
        "virtualCluster": "vc1",
        "retryCount": 2,
        "taskRoles": [
            {
                "name": "worker",
                "taskNumber": 3,
                "cpuNumber": 4,
                "memoryMB": 2048,
                "shmMB": 128,
                "gpuNumber": 1,
                "portList": [
                    {"label": "ssh", "beginAt": 0, "portNumber": 2},
                    {"label": "http", "beginAt": 8000, "portNumber": 1},
                    {"label": "a", "beginAt": 7000, "portNumber": 2},
                    {"label": "b", "beginAt": 0, "portNumber": 1},
                ],
                "command": "first\necho 1\nls /data\nlast",
                "minFailedTaskCount": 2,
                "minSucceededTaskCount": None,
            }
        ],
        "extras": {"tags": ["t"], "submitFrom": "me"},
    }
    assert essence(read(json.dumps(answer))) == essence(read(dump(root)))


def test_what_is_left_out_in_v2() -> None:
    answer, findings = converted(v2_job())
    assert findings == []
    assert answer == {
        "jobName": "hello",
        "image": "ubuntu",
        "virtualCluster": "default",
        "retryCount": 0,
        "taskRoles": [
            {
                "name": "worker",
                "taskNumber": 1,
                "cpuNumber": 1,
                "memoryMB": 1024,
                "shmMB": 512,
                "gpuNumber": 0,
                "command": "echo hi",
                "minFailedTaskCount": 1,
                "minSucceededTaskCount": 1,
            }
        ],
    }


def test_the_default_of_shared_memory_is_within_the_memory() -> None:
    small = v2_role(resourcePerInstance={"cpu": 1, "memoryMB": 200, "gpu": 0})
    answer, findings = converted(v2_job(taskRoles={"worker": small}))
    assert (answer["taskRoles"][0]["shmMB"], findings) == (200, [])


@pytest.mark.parametrize(
    ("bounds", "completion"),
    [
        ({}, Completion(1, 2)),
        ({"minFailedInstances": -1, "minSucceededInstances": 1}, Completion(None, 1)),
        ({"minFailedInstances": 2, "minSucceededInstances": -1}, Completion(2, None)),
        ({"minFailedInstances": 3, "minSucceededInstances": 3}, Completion(None, None)),
    ],
)
def test_completion(bounds: dict[str, int], completion: Completion) -> None:
    answer, findings = converted(v2_job(taskRoles={"worker": v2_role(instances=2, completion=bounds)}))
    assert findings == []
    assert read(json.dumps(answer)).task_roles["worker"].completion == completion


def test_an_empty_command_becomes_one_that_does_nothing() -> None:
    answer, findings = converted(v2_job(taskRoles={"worker": v2_role(commands=[" "])}))
    assert (answer["taskRoles"][0]["command"], findings) == ("true", [])


def test_what_is_below_the_least_of_v1_is_raised_and_told() -> None:
    role = v2_role(resourcePerInstance={"cpu": 0, "memoryMB": 99, "gpu": 0}, extraContainerOptions={"shmMB": 101})
    answer, findings = converted(v2_job(taskRoles={"worker": role}))
    assert findings == lossy(
        "taskRoles.worker.resourcePerInstance.memoryMB",
        "taskRoles.worker.resourcePerInstance.cpu",
        "taskRoles.worker.extraContainerOptions.shmMB",
    )
    (written,) = answer["taskRoles"]
    assert (written["cpuNumber"], written["memoryMB"], written["shmMB"]) == (1, 100, 100)


def test_what_is_just_enough_stays() -> None:
    role = v2_role(resourcePerInstance={"cpu": 1, "memoryMB": 100, "gpu": 0}, extraContainerOptions={"shmMB": 100})
    assert converted(v2_job(taskRoles={"worker": role}))[1] == []


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"description": "d", "contributor": "c", "version": 1}, ["version", "contributor", "description"]),
        ({"version": "latest", "description": ""}, []),
        ({"secrets": {"s": "longenough"}}, ["secrets"]),
        ({"deployments": [{"name": "p", "taskRoles": {"worker": {}}}]}, ["deployments"]),
        ({"taskRoles": {"worker": v2_role(), "b": v2_role(taskRetryCount=1)}}, ["taskRoles.b.taskRetryCount"]),
        ({"taskRoles": {"worker": v2_role(extraContainerOptions={"infiniband": True})}},
         ["taskRoles.worker.extraContainerOptions.infiniband"]),
        ({"extras": {"gangAllocation": False}}, ["extras.gangAllocation"]),
        ({"extras": {"gangAllocation": True}}, []),
        ({"extras": {"storages": []}}, ["extras.storages"]),
        ({"extras": {"hivedScheduler": {"taskRoles": {"worker": {}}}}}, ["extras.hivedScheduler"]),
        ({"extras": {"hivedscheduler": {"taskRoles": {"worker": {}}}}}, ["extras.hivedscheduler"]),
        ({"extras": {"com.microsoft.pai.runtimeplugin": [{"plugin": "ssh"}]}}, ["extras.com.microsoft.pai.runtimeplugin"]),
        ({"extras": {"com.microsoft.pai.runtimeplugin": []}}, []),
        ({"extras": {"jobStatusChangeNotification": {"failed": True}}}, ["extras.jobStatusChangeNotification"]),
        ({"extras": {"pailot": {"maxRunSeconds": 5, "holdCommand": "a"}}},
         ["extras.pailot.maxRunSeconds", "extras.pailot.holdCommand"]),
        ({"extras": {"pailot": {"portBase": {"other": {"x": 1}}}}}, ["extras.pailot.portBase"]),
        ({"extras": {"anything": "else"}}, []),
    ],
)  # fmt: skip
def test_what_v1_cannot_say_is_told_by_name(changes: dict[str, Any], paths: list[str]) -> None:
    job = read(dump(v2_job(**changes)))
    answer, findings = to_v1(job)
    assert told(findings) == lossy(*paths)
    for finding in findings:
        assert f"'{finding.path[-1]}'" in finding.message
    assert answer.get("extras", {}) == changes.get("extras", {})
    assert read(json.dumps(answer)).name == "hello"


def test_roles_and_names_are_told() -> None:
    roles = {"a": v2_role(taskRetryCount=1), "b": v2_role(), "c": v2_role(taskRetryCount=2)}
    deployments: list[dict[str, Any]] = [{"name": name, "taskRoles": {"a": {}}} for name in ("x", "y", "z")]
    job = read(
        dump(v2_job(taskRoles=roles, deployments=deployments, defaults={"deployment": "y"}, secrets={"s1": "long enough"}))
    )
    secrets, others, retried = to_v1(job)[1]
    assert "'s1'" in secrets.message
    assert "'x', 'z'" in others.message
    assert "'a', 'c'" in retried.message
    assert retried.path[1] == "a"


def prerequisite(**changes: Any) -> dict[str, Any]:
    return {"type": "script", "name": "s", **changes}


@pytest.mark.parametrize(
    ("each", "key"),
    [
        (prerequisite(uri="x"), None),
        (prerequisite(callbacks=[{"event": "taskStarts", "commands": ["a"]}]), "callbacks"),
        (prerequisite(plugin="git", uri="x"), "plugin"),
        (prerequisite(plugin="git", uri="x", callbacks=[{"event": "taskFails", "commands": ["a"]}]), "callbacks"),
    ],
)
def test_prerequisites_that_do_something(each: dict[str, Any], key: str | None) -> None:
    root = v2_job(prerequisites=[*v2_job()["prerequisites"], each], taskRoles={"worker": v2_role(prerequisites=["s"])})
    assert converted(root)[1] == lossy(*([f"prerequisites[1].{key}"] if key else []))


def test_a_prerequisite_of_the_library_has_no_place_of_its_own() -> None:
    text = "{type: script, name: s, callbacks: [{event: taskStarts, commands: [a]}]}"
    root = v2_job(taskRoles={"worker": v2_role(prerequisites=["s"])})
    job = read(dump(root), library=lambda name: (text, "lib") if name == "s" else None)
    assert told(to_v1(job)[1]) == lossy("taskRoles.worker.callbacks")


def test_an_unused_prerequisite_is_not_missed() -> None:
    assert converted(v2_job(prerequisites=[*v2_job()["prerequisites"], prerequisite(plugin="git", uri="x")]))[1] == []


def test_credentials_need_a_file() -> None:
    image = {"type": "dockerimage", "name": "img", "uri": "r.io/x", "auth": {"username": "u", "password": "<% $secrets.p %>"}}
    answer, findings = to_v1(read(dump(v2_job(prerequisites=[image], secrets={"p": "long enough"}))))
    assert told(findings) == lossy("secrets", "prerequisites[0].auth")
    assert "authFile" in findings[1].message
    assert answer["image"] == "r.io/x"
    assert "long enough" not in json.dumps(answer)


def test_several_images_cannot_be_said() -> None:
    images = [
        {"type": "dockerimage", "name": name, "uri": uri} for name, uri in (("x", "ubuntu"), ("y", "debian"), ("z", "ubuntu"))
    ]
    roles = {name: v2_role(dockerImage=image) for name, image in (("a", "x"), ("b", "y"), ("c", "z"))}
    answer, findings = to_v1(read(dump(v2_job(prerequisites=images, taskRoles=roles))))
    assert answer == {}
    assert told(findings) == [("cannot-convert", "taskRoles.b.dockerImage")]
    assert "'a', 'c': ubuntu; 'b': debian" in findings[0].message


def test_two_names_of_one_image_can() -> None:
    images = [{"type": "dockerimage", "name": name, "uri": "ubuntu"} for name in ("x", "y")]
    roles = {"a": v2_role(dockerImage="x"), "b": v2_role(dockerImage="y")}
    answer, findings = converted(v2_job(prerequisites=images, taskRoles=roles))
    assert (answer["image"], findings) == ("ubuntu", [])


def test_an_image_without_address_cannot_be_said() -> None:
    answer, findings = converted(v2_job(prerequisites=[{"type": "dockerimage", "name": "img", "uri": ""}]))
    assert (answer, findings) == ({}, [("cannot-convert", "taskRoles.worker.dockerImage")])


def test_a_command_with_secrets_cannot_be_said() -> None:
    text = dump(
        v2_job(secrets={"s": {"deep": "long enough"}}, taskRoles={"worker": v2_role(commands=["a", "b <%$secrets.s.deep%>"])})
    )
    job = read(text, file="job.yaml")
    answer, findings = to_v1(job)
    assert answer == {}
    assert told(findings) == [("cannot-convert", "taskRoles.worker.commands"), *lossy("secrets")]
    assert job.origin is not None
    problem = job.origin.locate(findings[0])
    assert "'s'" in problem.message
    assert problem.source.strip() == "- b <%$secrets.s.deep%>"


def test_each_role_that_uses_a_secret_is_told_once() -> None:
    roles = {"a": v2_role(commands=["<% $secrets.s %> <% $secrets.s %> <% $secrets.t %>"]), "b": v2_role()}
    _, findings = to_v1(read(dump(v2_job(secrets={"s": "long enough", "t": "long enough"}, taskRoles=roles))))
    assert [finding.fragment for finding in findings if finding.code == "cannot-convert"] == ["$secrets.s", "$secrets.t"]
    assert all("'a'" in finding.message for finding in findings if finding.code == "cannot-convert")


def test_what_is_lost_is_shown_at_its_key() -> None:
    job = read(dump(v2_job(description="what it is")))
    (finding,) = to_v1(job)[1]
    assert job.origin is not None
    problem = job.origin.locate(finding)
    assert (problem.column, problem.source) == (1, "description: what it is")


def test_a_text_that_only_looks_like_a_secret_can_be_said() -> None:
    text = dump(v2_job(taskRoles={"worker": v2_role(commands=["b <% $secrets.s %>"])}))
    answer, findings = to_v1(read(text, lenient=True))
    assert (answer["taskRoles"][0]["command"], findings) == ("b <% $secrets.s %>", [])


def test_what_json_cannot_hold_becomes_text() -> None:
    text = V2 + "extras: {a: [2019-01-01, .inf, 1.5, null, true], b: !!binary aGk=, c: {d: .nan}}\n"
    answer, findings = to_v1(read(text))
    assert answer["extras"] == {"a": ["2019-01-01", ".inf", 1.5, None, True], "b": "!!binary 'aGk='", "c": {"d": ".nan"}}
    assert told(findings) == lossy("extras.a[0]", "extras.a[1]", "extras.b", "extras.c.d")
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_the_job_itself_is_left_as_it_is() -> None:
    extras = {"pailot": {"code": "c", "portBase": {"worker": {"http": 1}}, "graceSeconds": 2}}
    job = read(dump(v2_job(extras=extras)))
    to_v1(job)
    assert job.extras.raw == extras


# There and back

NAMES = st.sampled_from(["a", "b", "c_1"])
PORT_LISTS = st.lists(
    st.fixed_dictionaries(
        {"label": st.sampled_from(["x", "y", "ssh", "http"])},
        optional={"beginAt": st.integers(0, 3) | st.just(7000), "portNumber": st.integers(1, 3)},
    ),
    max_size=3,
    unique_by=lambda port: str(port["label"]),
)
COMMANDS = st.sampled_from(["true", "a\n  b\n", "echo '<% x'", "<% $secrets.s %>", "x: 'y' # z"])
ROLES = st.fixed_dictionaries(
    {"command": COMMANDS, "taskNumber": st.integers(2, 4)},
    optional={
        "cpuNumber": st.integers(1, 8),
        "memoryMB": st.integers(200, 9000),
        "shmMB": st.integers(1, 100),
        "gpuNumber": st.integers(0, 8),
        "portList": PORT_LISTS | st.none(),
        "minFailedTaskCount": st.integers(1, 2) | st.none(),
        "minSucceededTaskCount": st.integers(1, 2) | st.none(),
    },
)
HOLDABLE = st.text().filter(lambda text: "\0" not in text)
"""What a variable can hold."""
JOBS = st.fixed_dictionaries(
    {
        "jobName": st.sampled_from(["j", "a-b_c"]),
        "image": st.sampled_from(["ubuntu", "r.io:5000/x@sha256:0"]),
        "taskRoles": st.dictionaries(NAMES, ROLES, min_size=1).map(
            lambda roles: [{"name": name, **role} for name, role in roles.items()]
        ),
    },
    optional={
        **dict.fromkeys(
            ("authFile", "dataDir", "outputDir", "codeDir", "gpuType"), st.sampled_from(["$PAI_DEFAULT_FS_URI/x", "", None])
        ),
        "virtualCluster": st.sampled_from(["default", "vc", "1", "", None]),
        "retryCount": st.integers(0, 3),
        "jobEnvs": st.dictionaries(st.sampled_from(["A", "B"]), HOLDABLE | st.integers(0, 9) | st.booleans()) | st.none(),
        "extras": st.fixed_dictionaries({}, optional={"tags": st.lists(st.text()), "pailot": st.just({"graceSeconds": 3})})
        | st.none(),
    },
)


@settings(deadline=None)
@given(JOBS)
def test_from_v1_to_v2_and_back(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    there, findings = to_v2(parse(text))
    assert findings == []
    in_v2 = read(dump(there))
    assert not in_v2.legacy
    assert essence(in_v2) == essence(read(text))
    back, findings = to_v1(in_v2)
    assert {finding.path for finding in findings} <= {("extras", "pailot", "graceSeconds")}
    assert essence(read(json.dumps(back))) == essence(read(text))


def test_a_v1_job_read_as_such_is_said_in_v1_again() -> None:
    text = v1_job(v1_role(name="a.b", portList=[{"label": "x~", "beginAt": 9}]), jobName="a.b", codeDir="c")
    answer, findings = to_v1(read(text))
    assert findings == []
    assert essence(read(json.dumps(answer))) == essence(read(text))
