"""`docker run --detach` without the program `docker`: the same two questions to the daemon, in a fifth of the CPU time.

Only for the plain words that most containers need. Whoever has others starts the program itself.
"""

from __future__ import annotations

import json
import os
import time

from .quick_socket import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FAILED = 125  # as the program
REMOVE_SECONDS = 60.0
"""How long a daemon that is away is waited for; after that the next job, or `pailot gc`, removes what is left."""
AGAIN_SECONDS = 0.5
_SIZES = {"--memory": "Memory", "--memory-swap": "MemorySwap", "--shm-size": "ShmSize"}


def mount(source: str, target: str = "", *, read_only: bool = False) -> tuple[str, str]:
    """The words that show a file or folder of this machine in the container, by default at the same path."""
    fields = ["type=bind", f"source={source}", f"target={target or source}", *(["readonly"] if read_only else [])]
    return "--mount", ",".join(_field(each) for each in fields)


def mount_target(value: str) -> str:
    """Where in the container the value of a `mount` is shown."""
    import csv  # such a line is only read again where a job names folders of its own

    (fields,) = csv.reader([value])
    return next(each.partition("=")[2] for each in fields if each.startswith("target="))


def _field(text: str) -> str:
    """The engines read these as a line of CSV."""
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text


def body(words: Sequence[str]) -> dict[str, object] | None:
    """What the daemon is asked for by the words of `run`, each option with its value; None if one is not among the plain."""
    host: dict[str, Any] = {"Mounts": []}
    asked: dict[str, Any] = {"HostConfig": host, "Labels": {}, "Env": []}
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "--mount" and '"' not in value:
            host["Mounts"].append(_mount(value))
        elif option in _SIZES and value.endswith("m"):
            host[_SIZES[option]] = int(value[:-1]) << 20
        elif option == "--cpus":
            host["NanoCpus"] = int(value) * 1_000_000_000
        elif option == "--label":
            name, _, text = value.partition("=")
            asked["Labels"][name] = text
        elif option == "--env":
            asked["Env"].append(value)
        elif option == "--user":
            asked["User"] = value
        elif option == "--tmpfs":
            folder, _, options = value.partition(":")
            host["Tmpfs"] = {folder: options}
        elif option == "--log-driver":
            host["LogConfig"] = {"Type": value}
        elif (option, value) == ("--network", "host"):
            host["NetworkMode"] = value
        elif (option, value) == ("--pull", "never"):
            pass  # the daemon does not pull by itself
        else:
            return None
    return asked


def _mount(value: str) -> dict[str, object]:
    fields = dict(each.partition("=")[::2] for each in value.split(","))
    return {
        "Type": fields["type"],
        "Source": fields["source"],
        "Target": fields["target"],
        "ReadOnly": "readonly" in fields,
    }


def run(socket: str, name: str, asked: dict[str, object]) -> int:
    """Make a container and start it; what is wrong goes to standard error. Returns the exit status."""
    status, answer = _ask(socket, f"/containers/create?name={name}", asked)
    if status == 201:
        status, answer = _ask(socket, f"/containers/{json.loads(answer)['Id']}/start", None)
        if status in (204, 304):
            return 0
    os.write(2, _message(answer).encode() + b"\n")
    return FAILED


def remove(socket: str, name: str) -> bool:
    """Remove a container that has ended, with what it had of its own; whether it is gone."""
    return _ask(socket, f"/containers/{name}?force=1&v=1", None, "DELETE")[0] in (204, 404)


def remove_in_time(socket: str, name: str) -> None:
    """`remove`, again and again for a while: the daemon may be away for a moment."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while not remove(socket, name) and time.monotonic() < deadline:
        time.sleep(AGAIN_SECONDS)


def sweep(socket: str, label: str) -> None:
    """Remove all containers with a label that have ended: their shims have all they need from them."""
    from urllib.parse import quote

    wanted = quote(json.dumps({"label": [label], "status": ["exited", "dead"]}))
    status, answer = _ask(socket, f"/containers/json?all=1&filters={wanted}", None, "GET")
    for each in json.loads(answer) if status == 200 else ():
        remove(socket, each["Id"])


def _ask(socket: str, path: str, asked: dict[str, object] | None, method: str = "POST") -> tuple[int, bytes]:
    data = b"" if asked is None else json.dumps(asked).encode()
    head = f"{method} {path} HTTP/1.0\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        try:
            connection.connect(socket)
            connection.sendall(head.encode() + data)
            answer = b""
            while chunk := connection.recv(1 << 16):
                answer += chunk
        finally:
            connection.close()
    except OSError as error:
        return 0, f"Cannot connect to the Docker daemon at {socket}: {error.strerror}".encode()
    if not answer:
        return 0, b"unexpected EOF from the Docker daemon"
    head_, _, rest = answer.partition(b"\r\n\r\n")
    return int(head_.split(b" ", 2)[1]), rest


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode("utf-8", "replace")
