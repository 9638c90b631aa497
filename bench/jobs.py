"""Job files to measure with: distinct ones of about 5 KB, and one as large as a file may be."""

from __future__ import annotations

HEAD = """\
protocolVersion: 2
name: bench_{number}
type: job
version: v1.0
contributor: OpenPAI
description: |
  Benchmark job number {number}.
  Two roles.
prerequisites:
  - protocolVersion: 2
    name: tf_example
    type: dockerimage
    version: latest
    contributor: Alice
    description: python3.5, tensorflow
    uri: openpai/pai.example.tensorflow
  - protocolVersion: 2
    name: tensorflow_cifar10_model
    type: output
    version: latest
    contributor: Alice
    description: cifar10 data output
    uri: 'hdfs://storage.example:9000/core/cifar10_model'
  - protocolVersion: 2
    name: tensorflow_cnnbenchmarks
    type: script
    version: 84820935288cab696c9c2ac409cbd46a1f24723d
    contributor: Bob
    description: tensorflow benchmarks
    uri: git.example/bob/benchmarks
  - protocolVersion: 2
    name: cifar10
    type: data
    version: latest
    contributor: Alice
    uri:
      - https://data.example/kriz/cifar-10-python.tar.gz
parameters:
  model: resnet20
  lr: 0.00{number}1
secrets:
  github_token: cGFzc3dvcmQ=
jobRetryCount: 1
taskRoles:
"""
ROLE = """\
  {role}:
    instances: {instances}
    completion:
      minFailedInstances: 1
      minSucceededInstances: {succeeded}
    taskRetryCount: 0
    dockerImage: tf_example
    data: cifar10
    output: tensorflow_cifar10_model
    script: tensorflow_cnnbenchmarks
    extraContainerOptions:
      shmMB: 64
    resourcePerInstance:
      cpu: 2
      memoryMB: 8192
      gpu: 1
      ports:
        ssh: 1
        http: 1
    commands:
      - cd script_<% $script.name %>/scripts/tf_cnn_benchmarks
"""
COMMAND = (
    "      - python train.py --step {step} --run {number} --model <% $parameters.model %> --lr <% $parameters.lr %>"
    " --data <% $data.uri[0] %> --out $PAI_WORK_DIR/output_<% $output.name %>"
    " --index $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX\n"
)
TAIL = """\
deployments:
  - name: prod
    taskRoles:
      {first}:
        preCommands:
          - wget <% $data.uri[0] %> -P data_<% $data.name %>
          - >
            git clone https://<% $script.contributor %>:<% $secrets.github_token %>@<% $script.uri %> script_<% $script.name %> &&
            cd script_<% $script.name %> && git checkout <% $script.version %> && cd ..
      {last}:
        postCommands:
          - hdfs dfs -cp output_<% $output.name %> <% $output.uri %>
defaults:
  deployment: prod
  virtualCluster: default
extras:
  submitFrom: submit-job-v2
  gangAllocation: true
"""


def two_role_job(number: int) -> str:
    """A distinct job of about 5 KB: two roles, seven commands each, some 70 template tags."""
    return _job(number, ["worker", "ps_server"], instances=2, commands=6)


def largest_job() -> str:
    """100 roles, 4,000 instances, just under 1 MiB."""
    roles = [f"role_{position}" for position in range(100)]
    return _job(0, roles, instances=40, commands=45)


def _job(number: int, roles: list[str], instances: int, commands: int) -> str:
    body = "".join(
        ROLE.format(role=role, instances=instances, succeeded=1 if role == roles[0] else -1)
        + "".join(COMMAND.format(step=step, number=number) for step in range(commands))
        for role in roles
    )
    return HEAD.format(number=number) + body + TAIL.format(first=roles[0], last=roles[-1])
