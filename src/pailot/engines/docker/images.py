"""The images of a job: there before anything starts, pulled where they may be, with the job's own credentials."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from glob import glob

from ...runfolder.removing import remove_tree
from ..contract import EngineError
from .container_cli import PODMAN, config_folder, first_that_answers, last_line
from .settings import ALWAYS, NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...job_values import Auth
    from ...planning import Plan
    from .container_cli import Program

_PREFIX = "pailot-auth-"
DOCKER_HUB = "https://index.docker.io/v1/"


class ImageError(EngineError):
    """An image cannot be had."""


def all_here(plan: Plan, programs: Sequence[Program]) -> Program | None:
    """The first engine, if it says at once that it has every image of a job."""
    images = {role.image.uri for role in plan.roles.values()}
    return programs[0] if all(programs[0].has_image(image) for image in images) else None


def bring(
    plan: Plan,
    logins: Mapping[str, Auth],
    programs: Sequence[Program],
    policy: str,
    say: Callable[[str], None],
    owner: int,
) -> Program:
    """Every image of a job on this machine, or an error that says which cannot be had; returns the engine that has them.

    `logins` are the credentials for the images of roles; `owner` is the process that calls `sweep`, whatever becomes of this one.
    """
    images = list(dict.fromkeys(role.image.uri for role in plan.roles.values()))
    program, answer = first_that_answers(programs, ["image", "inspect", "--format", "ok", *images])
    there = answer.returncode == 0
    for image in images:
        if policy != ALWAYS and (there or program.run("image", "inspect", "--format", "ok", image).returncode == 0):
            continue
        if policy == NEVER:
            raise ImageError(f"there is no image '{image}' here, and image_pull is 'never'; {program.name} pull {image}")
        role = next(role for role in plan.roles.values() if role.image.uri == image)
        _pull(program, image, logins.get(role.name), say, owner)
    return program


def sweep(owner: int) -> None:
    """Remove folders with credentials that a killed process has left: those of an owner, and of owners that are gone."""
    for folder in glob(os.path.join(_memory(), f"{_PREFIX}*")):
        number = os.path.basename(folder).removeprefix(_PREFIX).partition("-")[0]
        if number == str(owner) or (number.isdecimal() and not os.path.exists(f"/proc/{number}")):
            _remove(folder)


def registry_of(image: str) -> str:
    """The registry that an image's name leads to."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else ""


def _pull(program: Program, image: str, auth: Auth | None, say: Callable[[str], None], owner: int) -> None:
    import subprocess

    say(f"pulling the image {image}")
    folder = _private_config(program, image, auth, owner) if auth else ""
    words, variables = _with_config(program, folder)
    try:
        process = subprocess.Popen(
            [program.path, *words, image],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **variables},
        )
        assert process.stdout
        said = ""
        for line in process.stdout:
            said = (said + line)[-20_000:]
            step = _progress(line)
            if step:
                say(f"{image}: {step}")
        status = process.wait()
        process.stdout.close()
    finally:
        if folder:
            _remove(folder)
    if status:
        program.check_daemon(said)
        secret = auth.password if auth else ""
        why = last_line(said.replace(secret, "******") if secret else said)
        who = f" as '{auth.username}'" if auth else ""
        raise ImageError(f"the image '{image}' cannot be pulled{who}: {why}")


def _progress(line: str) -> str:
    """The steps worth telling among what an engine prints."""
    line = line.strip()
    wanted = ("Download complete", "Pull complete", "Copying blob", "Status:", "Trying to pull")
    return line if any(words in line for words in wanted) else ""


def _private_config(program: Program, image: str, auth: Auth, owner: int) -> str:
    """A folder in memory, for us alone, with the user's configuration and the job's credentials in it."""
    from tempfile import mkdtemp

    sweep(0)
    folder = mkdtemp(prefix=f"{_PREFIX}{owner}-", dir=_memory())
    ours = config_folder()
    config: dict[str, object] = {}
    if program.kind != PODMAN:
        try:
            with open(os.path.join(ours, "config.json"), encoding="utf-8") as stream:
                config = json.load(stream)
            if os.path.isdir(os.path.join(ours, "contexts")):
                os.symlink(os.path.join(ours, "contexts"), os.path.join(folder, "contexts"))
        except (OSError, ValueError):
            config = {}
    for key in ("credsStore", "credHelpers", "auths"):
        config.pop(key, None)
    token = b64encode(f"{auth.username}:{auth.password}".encode()).decode()
    config["auths"] = {place: {"auth": token} for place in _places(image, auth)}
    with open(os.path.join(folder, "config.json"), "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        json.dump(config, stream)
    return folder


def _memory() -> str:
    from tempfile import gettempdir

    folder = "/dev/shm"  # noqa: S108  # nothing lies on a disk; mkdtemp makes it ours alone
    return folder if os.access(folder, os.W_OK) else gettempdir()


def _places(image: str, auth: Auth) -> Iterator[str]:
    """The names under which a client looks for the credentials of a registry."""
    for each in dict.fromkeys((auth.registry, registry_of(image))):
        name = each.removeprefix("https://").removeprefix("http://").rstrip("/")
        if name:
            yield name
        if name in ("", "docker.io", "index.docker.io", "index.docker.io/v1", "registry-1.docker.io"):
            yield DOCKER_HUB
            yield "docker.io"


def _with_config(program: Program, folder: str) -> tuple[list[str], dict[str, str]]:
    if not folder:
        return ["pull"], {}
    if program.kind == PODMAN:
        return ["pull", "--authfile", os.path.join(folder, "config.json")], {}
    return ["pull"], {"DOCKER_CONFIG": folder}


def _remove(folder: str) -> None:
    remove_tree(folder, ignore_errors=True)
