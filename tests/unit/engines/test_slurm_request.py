"""What is asked of Slurm: the shape of an allocation, the script, and what is refused before Slurm hears of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.engines.contract import EngineError
from pailot.engines.slurm import container_wrappers, sbatch_request, slurm_cli
from pailot.engines.slurm.pending_reasons import in_words
from pailot.engines.slurm.sbatch_request import ClusterSite, Partition
from pailot.planning import Plan, plan
from pailot.protocol import read

BIG = Partition("main", True, 10, 64, 500_000, 8, is_default=True)


def planned(*roles: tuple[str, int, int, int, int], more: str = "", options: str = "") -> Plan:
    """A plan of roles, each given by name, instances, CPUs, memory and GPUs."""
    text = "protocolVersion: 2\nname: demo\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: debian}]\ntaskRoles:\n"
    for name, instances, cpu, memory, gpu in roles:
        text += f"  {name}:\n    instances: {instances}\n    dockerImage: i\n    commands: ['true']\n"
        text += f"    resourcePerInstance: {{cpu: {cpu}, memoryMB: {memory}, gpu: {gpu}}}\n"
    return plan(read(f"{text}{more}\nextras: {{pailot: {{{options}}}}}\n"), "me")


def options(script: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in script.splitlines() if line.startswith("#SBATCH")]


def test_one_task_asks_for_just_that() -> None:
    made = sbatch_request.make(planned(("main", 1, 4, 1000, 2)), ClusterSite(), [BIG])
    assert options(made.script) == [
        "--job-name=me~demo",
        "--no-requeue",
        "--output=/dev/null",
        "--chdir=/",
        "--signal=B:USR2@60",
        "--nodes=1",
        "--ntasks=1",
        "--cpus-per-task=4",
        "--mem=1000M",
        "--gres=gpu:2",
    ]


def test_roles_of_one_shape_share_an_allocation() -> None:
    made = sbatch_request.make(planned(("ps", 1, 2, 999, 1), ("worker", 3, 2, 999, 1)), ClusterSite(), [BIG])
    assert options(made.script)[5:] == ["--ntasks=4", "--cpus-per-task=2", "--mem-per-cpu=500M", "--gpus-per-task=1"]


@pytest.mark.parametrize(
    ("roles", "where", "components"),
    [
        ([("ps", 1, 2, 1000, 0), ("worker", 2, 2, 1000, 4)], ClusterSite(), 2),  # no GPU is to lie idle
        ([("ps", 1, 1, 1000, 0), ("worker", 4, 2, 1000, 0)], ClusterSite(), 1),  # a CPU may
        ([("ps", 4, 1, 1000, 0), ("worker", 1, 16, 1000, 0)], ClusterSite(), 2),
        ([("ps", 1, 2, 1000, 0), ("worker", 2, 2, 1000, 4)], ClusterSite(shape="flat"), 1),
        ([("ps", 1, 1, 1000, 0), ("worker", 4, 2, 1000, 0)], ClusterSite(shape="het"), 2),
    ],
)
def test_different_roles(roles: list[tuple[str, int, int, int, int]], where: ClusterSite, components: int) -> None:
    made = sbatch_request.make(planned(*roles), where, [BIG])
    assert len(made.components) == components == made.script.count("#SBATCH hetjob") + 1


def test_where_nodes_are_too_few_roles_share_them() -> None:
    roles = ("ps", 1, 2, 1000, 0), ("worker", 2, 2, 1000, 1)
    assert len(sbatch_request.make(planned(*roles), ClusterSite(), [BIG.replace(nodes=1)]).components) == 1


def test_limits_priorities_and_more_options() -> None:
    hived = "extras: {hivedScheduler: {jobPriorityClass: %s}, pailot: {maxRunSeconds: 600, gpuType: a100}}"
    text = (
        "protocolVersion: 2\nname: demo\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: debian}]\n"
        "taskRoles: {main: {instances: 2, dockerImage: i, commands: ['true'],\n"
        "  resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 1}}}\n"
    )
    where = ClusterSite({"default": "batch"}, {"prod": "qos:high"}, ("--account=vision",))
    script = sbatch_request.make(plan(read(text + hived % "prod"), "me"), where).script
    expected = {"--partition=batch", "--time=13", "--qos=high", "--account=vision", "--gpus-per-task=a100:1"}
    assert expected <= set(options(script))
    assert "--nice=1000" in options(sbatch_request.make(plan(read(text + hived % "oppo"), "me"), where).script)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"slurm_shape": "round"}, "slurm_shape: should be auto, flat or het, is 'round'"),
        ({"slurm_priorities": ["prd=qos:x"]}, "there is no priority class 'prd'; did you mean 'prod'?"),
        ({"slurm_priorities": ["prod=high"]}, "should be prod=qos:NAME or prod=nice:NUMBER"),
        ({"slurm_partitions": ["main"]}, "slurm_partitions: 'main' should be NAME=VALUE"),
    ],
)
def test_settings_that_cannot_be_understood(settings: dict[str, object], words: str) -> None:
    given = {"slurm_shape": "auto", "slurm_priorities": (), "slurm_partitions": (), "slurm_options": (), **settings}
    with pytest.raises(EngineError) as found:
        sbatch_request.site(given)
    assert words in str(found.value)


SINFO = """\
main*|up|2|8|4096|gpu:fake:2(S:0-1)|1-00:00:00
main*|up|1|16|8192+|(null)|1-00:00:00
gpu|up|2|8|4096|gpu:a100:4,gpu:t4:1,shard:9|infinite
old|down|0|0|0|(null)|30:00
"""


def test_partitions_are_read() -> None:
    assert [each.replace(groups=()) for each in slurm_cli.parse_partitions(SINFO)] == [
        Partition("main", True, 3, 16, 8192, 2, True, 86400.0),
        Partition("gpu", True, 2, 8, 4096, 5),
        Partition("old", False, 0, 0, 0, 0, False, 1800.0),
    ]


SMALL = slurm_cli.parse_partitions("main*|up|3|8|16000|(null)|infinite|1-infinite\n")[0]
MIXED = slurm_cli.parse_partitions(
    "main*|up|2|8|16000|gpu:2|infinite|1-infinite\nmain*|up|4|4|16000|(null)|infinite|1-infinite\n"
    "few|up|3|8|16000|(null)|infinite|1-2\n"
)


@pytest.mark.parametrize(
    ("where", "cpus", "gpus", "most"),
    [
        (SMALL, 1, 0, 24),
        (SMALL, 3, 0, 6),
        (SMALL, 8, 0, 3),
        (MIXED[0], 1, 0, 32),
        (MIXED[0], 1, 1, 4),
        (MIXED[0], 5, 0, 2),
        (MIXED[1], 1, 0, 16),
    ],
)
def test_how_many_tasks_a_partition_holds(where: Partition, cpus: int, gpus: int, most: int) -> None:
    """What Slurm would let wait for ever is refused at once; one task less is not."""
    assert sbatch_request.make(
        planned(("w", most, cpus, 100, gpus)), ClusterSite(partitions={"default": where.name}), [where]
    ).components
    with pytest.raises(EngineError, match=f"{most + 1} tasks of 'w' .* can never start together: .* hold {most}"):
        sbatch_request.make(planned(("w", most + 1, cpus, 100, gpus)), ClusterSite(partitions={"default": where.name}), [where])


def test_the_sum_of_tasks_is_refused_in_one_line() -> None:
    with pytest.raises(EngineError) as refused:
        sbatch_request.make(planned(("worker", 30, 1, 100, 0)), ClusterSite(), [SMALL])
    assert str(refused.value) == (
        "30 tasks of 'worker' with 1 CPU each can never start together: the 3 nodes of Slurm's partition 'main' hold 24"
    )
    assert sbatch_request.make(planned(("worker", 30, 1, 100, 0)), ClusterSite(options=("--overcommit",)), [SMALL]).components
    assert sbatch_request.make(planned(("worker", 30, 1, 100, 0)), ClusterSite(), [SMALL.replace(groups=())]).components, (
        "what is not known is not judged"
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "no nodes are free for it now; it is first in line (Resources)"),
        ("JobHeldUser", "it is held by its user; 'scontrol release 7' lets it go (JobHeldUser)"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", "a node that it needs is down, drained or reserved (ReqNodeNotAvail, Una"),
        (
            "QOSMaxGRESPerUser",
            "its quality of service (QOS) limits GPUs for each user, and that limit is reached (QOSMaxGRESPerUser)",
        ),
        ("AssocGrpCPULimit", "its account limits CPUs, and that limit is reached (AssocGrpCPULimit)"),
        ("SomethingNew", "SomethingNew"),
        ("", ""),
    ],
)
def test_reasons_of_slurm_are_put_in_words(reason: str, words: str) -> None:
    assert in_words(reason, "7").startswith(words)


@given(st.text())
def test_any_reason_of_slurm_is_told(reason: str) -> None:
    assert reason in in_words(reason, "7")


def test_jobs_are_read_and_components_count_as_one() -> None:
    out = "7|RUNNING|None|x|pailot a 0\n12+0|PENDING|Resources|x|pailot b | 1\n12+1|PENDING|None|x|(null)\nnonsense\n"
    found = slurm_cli.parse_jobs(out)
    assert {name: (each.state, each.reason, each.comment) for name, each in found.items()} == {
        "7": ("RUNNING", "None", "pailot a 0"),
        "12": ("PENDING", "Resources", "pailot b | 1"),
    }


@given(st.text())
def test_no_answer_of_slurm_is_an_accident(out: str) -> None:
    slurm_cli.parse_jobs(out)
    slurm_cli.parse_partitions(out)
    assert isinstance(slurm_cli.complain("sbatch", out), EngineError)


@pytest.mark.parametrize(
    ("err", "kind", "words"),
    [
        (
            "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
            slurm_cli.SlurmRefused,
            "Slurm refused the job: Requested node configuration is not available",
        ),
        (
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n",
            slurm_cli.Away,
            "Slurm does not answer (sbatch: Unable to contact slurm controller (connect failure))",
        ),
    ],
)
def test_what_sbatch_complains_about(err: str, kind: type[EngineError], words: str) -> None:
    found = slurm_cli.complain("sbatch", err)
    assert (type(found), str(found)) == (kind, words)


def test_an_allocation_that_we_are_in_is_not_passed_on() -> None:
    given = {"PATH": "/bin", "SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/s", "SBATCH_ACCOUNT": "x", "AWS_SECRET": "y"}
    assert slurm_cli.environment(given) == {"PATH": "/bin", "SLURM_CONF": "/etc/s", "SBATCH_ACCOUNT": "x"}


def test_images_run_in_the_runtime_that_is_set() -> None:
    made = planned(("main", 1, 1, 100, 1))
    works = ["/work"]
    assert container_wrappers.wrappers(made, "", "/a", "/c", works) == {}
    apptainer = container_wrappers.wrappers(made, "apptainer", "/a", "/c", works)["main"]
    assert apptainer[:3] == ("apptainer", "exec", "--nv")
    assert apptainer[-1] == "docker://debian"
    podman = container_wrappers.wrappers(made, "podman", "/a", "/c", works)["main"]
    assert {"--volume", "/a:/a", "/work:/work", "debian"} <= set(podman)
    assert container_wrappers.wrappers(made, "in-image --of {image}", "/a", "/c", works)["main"] == ("in-image", "--of", "debian")
    with pytest.raises(EngineError, match="neither apptainer"):
        container_wrappers.wrappers(made, "rocket", "/a", "/c", works)
