"""Families of job files that grow without end: each is a size, and the text of that size.

A size is the number of things that the family has many of. `test_growth` holds the cost of each to its size;
`make bench` measures the largest that a job file can be.
"""

from __future__ import annotations

import json
from collections.abc import Callable

Family = Callable[[int], str]

IMAGE = "{name: image, type: dockerimage, uri: debian}"
RESOURCES = "resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}"


def job(
    *, parameters: str = "", secrets: str = "", prerequisites: str = "", role: str = "", commands: str = "[date]", more: str = ""
) -> str:
    """A job file with one role, and what a family puts into it."""
    return (
        "protocolVersion: 2\nname: grown\ntype: job\n"
        + (f"parameters:\n{parameters}" if parameters else "")
        + (f"secrets:\n{secrets}" if secrets else "")
        + f"prerequisites:\n- {IMAGE}\n{prerequisites}"
        + f"taskRoles:\n  worker:\n    dockerImage: image\n    {RESOURCES}\n{role}    commands: {commands}\n"
        + more
    )


def many(size: int, line: str) -> str:
    """A line so many times, with its number for every `#`."""
    return "".join(line.replace("#", str(number)) for number in range(size))


def roles(size: int, *, more: str = "", commands: str = "[date]") -> str:
    """That many roles."""
    return many(size, f"  r#: {{dockerImage: image, {RESOURCES}, commands: {commands}{more}}}\n")


def _chain(size: int, *, keys: str = "", back: str = "") -> str:
    """Prerequisites of which each requires the next."""
    first = many(size - 1, f"- {{name: p#, type: script, uri: x, {keys}require: [p@]}}\n")
    lines = [line.replace("p@", f"p{number + 1}") for number, line in enumerate(first.splitlines(keepends=True))]
    return "".join(lines) + f"- {{name: p{size - 1}, type: script, uri: x{back}}}\n"


def _secret(number: int) -> str:
    return f"{number * 7919:08d}"


def _v1(size: int, role: dict[str, object], **keys: object) -> str:
    named = [{"name": f"r{number}", **role} for number in range(size)]
    return json.dumps({"jobName": "old", "image": "debian", "taskRoles": named, **keys})


START = "callbacks: [{event: taskStarts, commands: ["

FAMILIES: dict[str, Family] = {
    # Many problems, each on a line of its own.
    "unused parameters": lambda n: job(parameters=many(n, "  name#: 1\n")),
    "unknown keys": lambda n: job(more=many(n, "unheardOf#: 1\n")),
    "keys that are nearly right": lambda n: job(more=many(n, "parameter#: 1\n")),
    "unknown keys of a role": lambda n: job(role=many(n, "    unheardOf#: 1\n")),
    "roles with a bad name": lambda n: job() + many(n, "  r-#: {}\n"),
    "roles without anything": lambda n: job() + many(n, "  r#: {}\n"),
    "roles with an unknown key": lambda n: job() + many(n, "  r#: {comands: 1}\n"),
    "wrong types": lambda n: job(commands="\n" + many(n, "    - 1\n")),
    "numbers that others read otherwise": lambda n: job(parameters=many(n, "  name#: 010\n")),
    "unknown prerequisites": lambda n: job(
        role="    prerequisites:\n" + many(n, "    - nearly#\n"), prerequisites=many(n, "- {name: near#, type: script}\n")
    ),
    "unknown required ones": lambda n: job(
        role="    script: p\n", prerequisites="- name: p\n  type: script\n  require:\n" + many(n, "  - nothing#\n")
    ),
    "prerequisites that are twice there": lambda n: job(prerequisites="- {name: p, type: script}\n" * n),
    "unused prerequisites": lambda n: job(prerequisites=many(n, "- {name: p#, type: data, uri: x}\n")),
    "unknown plugins": lambda n: job(prerequisites=many(n, "- {name: p#, type: script, plugin: plug#}\n")),
    "unused deployments": lambda n: job(
        more="deployments:\n" + many(n, "- {name: d#, taskRoles: {nobody#: {preCommands: [date]}}}\n")
    ),
    "hived roles that are not there": lambda n: job(
        more="extras:\n  hivedScheduler:\n    taskRoles:\n" + many(n, "      nobody#: {skuNum: 1}\n")
    ),
    "plugins for roles that are not there": lambda n: job(
        more="extras:\n  com.microsoft.pai.runtimeplugin:\n" + many(n, "  - {plugin: ssh, taskroles: [worker#]}\n")
    ),
    "plugins with wrong parameters": lambda n: job(
        more="extras:\n  com.microsoft.pai.runtimeplugin:\n" + many(n, "  - {plugin: ssh, parameters: [1]}\n")
    ),
    "options that are not there": lambda n: job(more="extras:\n  pailot:\n" + many(n, "    option#: 1\n")),
    "templates where none are rendered": lambda n: job(
        more="extras:\n  pailot:\n    environment:\n" + many(n, "      V#: <% $parameters.x %>\n")
    ),
    "passwords in clear": lambda n: job(commands="\n" + many(n, "    - curl https://me:secret#@example.com/\n")),
    # Many problems on one line.
    "unused parameters on one line": lambda n: job(parameters="  {" + many(n, "name#: 1, ") + "}\n"),
    "unknown keys on one line": lambda n: "{protocolVersion: 2, " + many(n, "unheardOf#: 1, ") + "}",
    "keys without a value": lambda n: job(parameters="  {" + many(n, "name#, ") + "}\n"),
    "empty tags": lambda n: job(commands='["' + "<%%>" * n + '"]'),
    "tags that are not closed": lambda n: job(commands='["' + "<%" * n + '"]'),
    "unresolved tags": lambda n: job(commands='["' + many(n, "<% $parameters.n# %>") + '"]'),
    "unresolved tags, each in a command": lambda n: job(commands="\n" + many(n, "    - echo <% $parameters.n# %>\n")),
    "unresolved tags beside many names": lambda n: job(
        parameters=many(n, "  name#: 1\n"), commands="\n" + many(n, "    - echo <% $parameters.nam# %>\n")
    ),
    "unresolved tags of a callback": lambda n: job(
        role="    script: p\n",
        prerequisites="- {name: p, type: script, " + START + many(n, "'<% this.parameters.n# %>', ") + "]}]}\n",
    ),
    "tags of plugin keys": lambda n: job(
        role="    script: p\n",
        prerequisites="- {name: p, type: script, plugin: git, repo: x, x: [" + many(n, "'<% $none.n# %>', ") + "]}\n",
    ),
    "a long name in a tag": lambda n: job(parameters="  abc: 1\n", commands='["<% $parameters.' + "a.b" * n + ' %>"]'),
    "tokens that never end": lambda n: job(commands="[" + "eyJ" * n + "]"),
    "tokens of many parts": lambda n: job(commands="[" + "eyJhbGciOiJI." * n + "]"),
    "addresses that never end": lambda n: job(commands="['" + "://a:b" * n + "']"),
    # Secrets.
    "secrets": lambda n: job(secrets="".join(f"  s{number}: '{_secret(number)}'\n" for number in range(n))),
    "secrets, all used": lambda n: job(
        secrets="".join(f"  s{number}: '{_secret(number)}'\n" for number in range(n)),
        commands="\n" + many(n, "    - echo <% $secrets.s# %>\n"),
    ),
    "secrets beside problems": lambda n: job(
        secrets="".join(f"  s{number}: '{_secret(number)}'\n" for number in range(n)), parameters=many(n, "  name#: 1\n")
    ),
    "secrets beside a long line": lambda n: job(
        secrets="".join(f"  s{number}: '{_secret(number)}'\n" for number in range(n)), commands="['<%%>" + "0" * n * 8 + "']"
    ),
    "secrets beside prerequisites": lambda n: job(
        secrets=many(n, "  s#: abcd#\n"),
        role="    prerequisites: [" + many(n, "p#, ") + "]\n",
        prerequisites=many(n, "- {name: p#, type: script, " + START + "date]}]}\n"),
    ),
    "short secrets": lambda n: job(secrets=many(n, "  s#: 'a'\n")),
    "stars as secrets": lambda n: job(secrets=many(n, "  s#: '***'\n"), parameters="  x: '" + "*" * n + "'\n"),
    # Anchors.
    "anchors": lambda n: job(parameters=many(n, "  name#: &a# 1\n")),
    "aliases": lambda n: job(parameters="  first: &a 1\n" + many(n, "  name#: *a\n")),
    "aliases of a long text": lambda n: job(parameters=f"  first: &a {'x' * n * 10}\n" + many(n, "  name#: *a\n")),
    "aliases of a long text that is masked": lambda n: job(
        parameters=f"  first: &a {'x' * n * 10}\n" + many(n, "  name#: *a\n"), secrets="  s: abcdef\n"
    ),
    "aliases of a long name": lambda n: job(
        parameters=f"  first: &a {'x' * n * 10}\n", prerequisites=many(n, "- {name: *a, type: script}\n")
    ),
    "aliases of a long command": lambda n: (
        "protocolVersion: 2\nname: grown\ntype: job\n"
        f"parameters:\n  first: &a {'x' * n * 10}\nprerequisites:\n- {IMAGE}\ntaskRoles:\n" + roles(n, commands="[*a]")
    ),
    "aliases of a long key": lambda n: job(
        parameters="  first: &a {" + "x" * n * 10 + ": 1}\n", more="extras:\n  pailot:\n" + many(n, "    option#: *a\n")
    ),
    # What a few words make large.
    "tags of a long text": lambda n: job(parameters=f"  x: {'x' * n * 10}\n", commands='["' + "<%$parameters.x%>" * n + '"]'),
    "tags of all characters of a text": lambda n: job(
        parameters=f"  x: 'é{'x' * n * 10}'\n", commands='["' + many(n, "<%$parameters.x[#]%>") + '"]'
    ),
    "tags of a long text in a callback": lambda n: job(
        parameters=f"  x: {'x' * n * 10}\n",
        role="    script: p\n",
        prerequisites="- {name: p, type: script, " + START + "'" + "<%$parameters.x%>" * n + "']}]}\n",
    ),
    "tags of a long list": lambda n: job(parameters="  x: [" + "1," * n + "]\n", commands='["' + "<%$parameters.x%>" * n + '"]'),
    "roles": lambda n: f"protocolVersion: 2\nname: grown\ntype: job\nprerequisites:\n- {IMAGE}\ntaskRoles:\n" + roles(n),
    "roles and their prerequisites": lambda n: (
        f"protocolVersion: 2\nname: grown\ntype: job\nprerequisites:\n- {IMAGE}\n{_chain(n)}"
        f"taskRoles:\n{roles(n, more=', script: p0')}"
    ),
    "roles and unknown required ones": lambda n: (
        f"protocolVersion: 2\nname: grown\ntype: job\nprerequisites:\n- {IMAGE}\n- name: p\n  type: script\n  require:\n"
        f"{many(n, '  - nothing#' + chr(10))}taskRoles:\n{roles(n, more=', script: p')}"
    ),
    "roles and plugins": lambda n: (
        f"protocolVersion: 2\nname: grown\ntype: job\nprerequisites:\n- {IMAGE}\ntaskRoles:\n{roles(n)}"
        "extras:\n  com.microsoft.pai.runtimeplugin:\n" + many(n, "  - {plugin: cmd, parameters: {preCommands: [date]}}\n")
    ),
    "a chain of required ones": lambda n: job(role="    script: p0\n", prerequisites=_chain(n)),
    "a chain of required ones with callbacks": lambda n: job(
        role="    script: p0\n", prerequisites=_chain(n, keys=START + "'<% this.parameters.uri %>']}], ")
    ),
    "a circle of required ones": lambda n: job(role="    script: p0\n", prerequisites=_chain(n, back=", require: [p0]")),
    "circles in all directions": lambda n: job(
        role="    prerequisites: [" + many(n, "p#, ") + "]\n",
        prerequisites=many(n, "- {name: p#, type: script, require: [p0, p1, p2]}\n"),
    ),
    "ports": lambda n: job(role="    prerequisites: []\n").replace("gpu: 0}", "gpu: 0, ports: {" + many(n, "p#: 1, ") + "}}"),
    "labels": lambda n: job(more="extras:\n  pailot:\n    labels:\n" + many(n, "      l#: x\n")),
    # Version 1.
    "roles of v1": lambda n: _v1(n, {"command": "date"}),
    "empty commands of v1": lambda n: _v1(n, {"command": " "}),
    "unknown keys of v1": lambda n: _v1(n, {"command": "date", "unheardOf": 1}),
    "shared memory of v1": lambda n: _v1(n, {"command": "date", "memoryMB": 100, "shmMB": 200}),
    "variables of v1": lambda n: _v1(1, {"command": "date"}, jobEnvs={f"V{number}": "<%" for number in range(n)}),
    "ports of v1": lambda n: _v1(1, {"command": "date", "portList": [{"label": f"p{number}"} for number in range(n)]}),
    "ports of v1, twice": lambda n: _v1(1, {"command": "date", "portList": [{"label": "p"} for number in range(n)]}),
}
