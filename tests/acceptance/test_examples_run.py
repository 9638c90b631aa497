"""Every example runs for real, and so does the protocol's own."""

from __future__ import annotations

import shutil
from pathlib import Path

from pailot.testing.runs import Home, Result

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(home: Home, name: str, *options: str) -> Result:
    """An example, run in its own folder."""
    shutil.copytree(EXAMPLES / name, home.cwd, dirs_exist_ok=True)
    file = next(home.cwd.glob("job.*")).name
    return home.pailot("run", file, "--quiet", *options)


def test_hello(home: Home) -> None:
    assert run(home, "hello").out == "Hello from task 0 of worker\n"


def test_two_roles_talk_and_one_task_is_tried_again(home: Home) -> None:
    done = run(home, "two-roles")
    assert done.status == 0
    assert "[board:0] all are here: 10 + 20 + 30 = 60" in done.lines
    assert "[player:1] here I am again" in done.lines


def test_a_parameter_server_and_its_workers(home: Home) -> None:
    done = run(home, "parameter-server")
    assert done.status == 0
    assert "[ps_server:0] the total is 520.0" in done.lines
    assert {line[:18] for line in done.lines if "last saw" in line} <= {"[worker:0] worker ", "[worker:1] worker "}


def test_training_goes_on_from_its_checkpoint_after_a_retry(home: Home) -> None:
    done = run(home, "training")
    assert done.status == 0
    assert "[trainer:1] task 1, attempt 1, begins at round 20" in done.lines
    ends = [line for line in done.lines if "ends with" in line]
    assert len(ends) == 3
    assert len({line.partition("ends with")[2] for line in ends}) == 1
    assert ends[0].endswith("y = 3.00x + 1.00") or "y = 2.9" in ends[0] or "y = 3.0" in ends[0]


def test_prerequisites_with_a_failing_clean_up_that_is_ignored(home: Home) -> None:
    done = run(home, "prerequisites")
    assert done.status == 0
    assert sorted(line for line in done.lines if "done" not in line) == ["[count:0] count 10", "[sum:0] sum 55"]
    assert sum("is done" in line for line in done.lines) == 2


def test_deployments_and_secrets(home: Home) -> None:
    assert run(home, "deployment").out == "trained\n"
    done = run(home, "deployment", "--deployment", "cluster", "--secret", "token=a-real-token")
    assert (done.status, (home.cwd / "results" / "model.txt").read_text()) == (0, "trained\n")


def test_legacy_v1(home: Home) -> None:
    done = run(home, "legacy-v1")
    assert sorted(done.lines) == ["[master:0] master of me~legacy-v1 reads /data", "[worker:0] worker 0", "[worker:1] worker 1"]


def test_the_library(home: Home) -> None:
    assert run(home, "library", "--library", ".").out == "somebody works on me~from-the-library\n"


STAND_INS = {
    "wget": 'mkdir -p "$3"; echo "wget $1" >>"$SEEN"; touch "$3/$(basename "$1")"',
    "git": """
if [ "$1" = clone ]; then
  [ ! -e "$3" ] || { echo "fatal: destination exists" >&2; exit 128; }
  mkdir -p "$3/scripts/tf_cnn_benchmarks"
fi
echo "git $1 $PAI_CURRENT_TASK_ROLE_NAME" >>"$SEEN" """,
    "python": """
echo "python $2 $5 $6" >>"$SEEN"
mkdir -p "$PAI_WORK_DIR/output_tensorflow_cifar10_model"
[ "$2" != --job_name=worker ] || until grep -q ^hdfs "$SEEN"; do sleep 0.05; done""",
    "hdfs": 'cd "$PAI_WORK_DIR"; [ -d "$3" ] || exit 1; echo "hdfs $2 $3 $4" >>"$SEEN"',
}


def test_the_protocols_own_example(home: Home, corpus: Path) -> None:
    tools = home.folder / "tools"
    tools.mkdir()
    for name, body in STAND_INS.items():
        (tools / name).write_text(f"#!/bin/bash\nset -e\n{body}\n")
        (tools / name).chmod(0o755)
    seen = home.folder / "seen"
    text = (corpus / "openpai-protocol__schemas__v2__schema.yaml__example.yaml").read_text()
    (home.cwd / "job.yaml").write_text(text)
    home.environment |= {"PATH": f"{tools}:{home.environment['PATH']}", "SEEN": str(seen)}
    done = home.pailot("run", "job.yaml", "--set", "jobRetryCount=0")
    assert done.status == 0, done.err + home.pailot("why", "tensorflow_distributed_training").out
    lines = seen.read_text().splitlines()
    for role in ("worker", "ps_server"):
        assert lines.count(f"git clone {role}") == 1
    assert sum(line.startswith("hdfs -cp output_tensorflow_cifar10_model hdfs://") for line in lines) == 1
    programs = [line for line in lines if line.startswith("python")]
    assert len(programs) == 2
    for line in programs:
        assert line.count("127.0.0.1:") == 2
