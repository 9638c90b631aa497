"""A server with the jobs of a small team, for screenshots and for looking at the page by hand.

python -m tests.browser.demo        # prints the address, and serves until Ctrl-C
"""

from __future__ import annotations

import signal
import sys
import time

from tests.support.http_server import PASSWORD, Server

TRAIN = """\
protocolVersion: 2
name: {name}
type: job
description: Fine-tunes the model on last night's data.   # kept as it was written
contributor: ada
prerequisites:
  - name: torch
    type: dockerimage
    uri: openpai/standard:python_3.6-pytorch_1.2.0-gpu
parameters:
  batchsize: 32
  epochs: {steps}
secrets:
  token: hf-a1b2c3d4e5
taskRoles:
  ps:
    instances: {ps}
    dockerImage: torch
    resourcePerInstance: {{cpu: 1, memoryMB: 512, gpu: 0}}
    completion: {{minFailedInstances: 1, minSucceededInstances: -1}}
    commands:
      - echo "parameter server $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX is ready"
      - sleep {seconds}
  worker:
    instances: {workers}
    taskRetryCount: 2
    dockerImage: torch
    resourcePerInstance: {{cpu: {cpu}, memoryMB: 1024, gpu: {gpu}, ports: {{http: 1}}}}
    completion: {{minFailedInstances: 1, minSucceededInstances: -1}}
    commands:
      - |
{commands}
defaults: {{virtualCluster: vision}}
"""

STEPS = r"""
echo "loading 1,204,332 examples with batches of <% $parameters.batchsize %>"
if [ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" = 1 ] && [ "$FC_TASK_ATTEMPT_ID" = 0 ]; then
  echo "NCCL WARN connection to worker:0 was refused" >&2
  sleep 2; exit 137
fi
python3 - <<'END'
import math, sys, time
began = time.time()
kept = []
for step in range(1, 100000):
    kept.append(bytearray(2_000_000))
    if len(kept) > 60: kept.clear()
    until = time.time() + (0.06 if int(time.time() - began) % 16 < 8 else 0.01)
    while time.time() < until: math.sqrt(step)
    print(f"step {step:5}  loss={3.1 * math.exp(-step / 400) + 0.02 * math.sin(step):.4f}  lr=3e-05")
    if step % 20 == 0:
        print(f"\x1b[32mcheckpoint\x1b[0m \x1b[1mstep-{step}.pt\x1b[0m saved")
    if step % 33 == 0:
        print("UserWarning: lr_scheduler.step() was called before optimizer.step()", file=sys.stderr)
    time.sleep(0.3)
END
"""
FAILS = """
echo "reading s3://corpus/part-0001"
for i in $(seq 1 40); do echo "batch $i: 512 rows, 0 skipped"; done
echo "Traceback (most recent call last):" >&2
echo '  File "evaluate.py", line 41, in <module>' >&2
echo "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity)" >&2
exit 1
"""


def train(
    name: str, *, workers: int = 3, ps: int = 1, cpu: int = 1, gpu: int = 1, seconds: int = 9000, commands: str = STEPS
) -> str:
    """A job with two roles, as a team writes it."""
    body = "\n".join("        " + line for line in commands.strip().splitlines())
    return TRAIN.format(name=name, workers=workers, ps=ps, cpu=cpu, gpu=gpu, seconds=seconds, commands=body, steps=90)


def small(name: str, command: str, *, cpu: int = 1, gpu: int = 0, instances: int = 1, cluster: str = "default") -> str:
    """A job with one role."""
    body = "\n".join("        " + line for line in command.strip().splitlines())
    return (
        f"protocolVersion: 2\nname: {name}\ntype: job\nprerequisites:\n  - {{name: image, type: dockerimage, uri: python:3.12}}\n"
        f"taskRoles:\n  main:\n    instances: {instances}\n    dockerImage: image\n"
        f"    resourcePerInstance: {{cpu: {cpu}, memoryMB: 256, gpu: {gpu}}}\n    commands:\n      - |\n{body}\n"
        f"defaults: {{virtualCluster: {cluster}}}\n"
    )


def serve() -> Server:
    """A server that is not started yet: 16 CPUs, 64 GB and 4 GPUs that are only counted."""
    return Server(None, "--stop-jobs", PAILOT_CPUS="16", PAILOT_MEMORY_MB="65536", PAILOT_GPUS="4")


def populate(server: Server) -> dict[str, str]:
    """Users, virtual clusters and jobs in every state. Returns the users' tokens."""
    cluster = {"resourcesGuaranteed": {"cpu": 8, "memory": 32768, "gpu": 3}}
    assert server.ask("PUT", "/virtual-clusters/vision", cluster).status < 300
    tokens = {name: server.user(name, clusters=("vision", "default")) for name in ("ada", "bob", "carol")}
    for number in range(1, 6):
        server.run(small(f"preprocess-{number}", f"echo part {number}; sleep 0.{number}"), tokens["ada"])
    server.run(small("eval-nightly", FAILS, cpu=2), tokens["ada"])
    server.run(small("tokenize", "seq 1 2000 | sed 's/^/row /'"), tokens["bob"])
    server.submit(train("bert-large-07"), tokens["ada"])
    server.begun("ada~bert-large-07")
    server.submit(small("sweep-3", "sleep 60", gpu=1, instances=2, cluster="vision"), tokens["bob"])
    server.submit(small("vit-finetune", "sleep 60", gpu=2, cluster="vision"), tokens["carol"])
    server.submit(small("export-onnx", "for i in $(seq 1 900); do echo exported layer $i; sleep 1; done", cpu=3), tokens["carol"])
    server.begun("carol~export-onnx")
    server.submit(small("huge-batch", "true", gpu=8, cluster="vision"), tokens["bob"])
    server.submit(small("labels-check", "sleep 900", cpu=2), tokens["ada"])
    server.begun("ada~labels-check")
    server.ask("PUT", "/jobs/ada~labels-check/executionType", {"value": "STOP"})
    server.ask("PUT", "/jobs/ada~bert-large-07/tag", {"value": "nightly"}, tokens["ada"])
    return tokens


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with serve() as started:
        populate(started)
        print(f"{started.url}  user ada, password {PASSWORD}", flush=True)
        while True:
            time.sleep(60)
