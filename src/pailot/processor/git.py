"""Code from a git repository. A token is on no command line, in no file, and in no word of ours."""

from __future__ import annotations

import os
import re
import subprocess
from base64 import b64encode
from urllib.parse import unquote

from ..values import Value
from .errors import InvalidProcessor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

KEYS = ("repo", "branch", "commit", "token", "username", "password", "source_dir")
_LOGIN = re.compile(r"(https?://)([^/@]*)@")


class Repository(Value):
    """A repository by its address, which may be shown, and the login for it, which may not."""

    address: str
    user: str
    password: str


def check(source: Mapping[str, Any]) -> None:
    """Refuse what cannot be a git source."""
    unknown = sorted(map(str, set(source) - set(KEYS)))
    if unknown or not source.get("repo"):
        words = f"'{unknown[0]}' is not known" if unknown else "'repo' is missing"
        raise InvalidProcessor(f"a git source has repo, branch, commit, token (or username, password), source_dir: {words}")
    for key in KEYS:
        value = source.get(key)
        if value is None:
            continue
        if not isinstance(value, str) or "\0" in value or (value.startswith("-") and key in ("repo", "branch", "commit")):
            raise InvalidProcessor(f"a git source's {key} should be a text, and no option")
    found = repository(source)
    if found.password and not found.address.startswith(("https://", "http://")):
        raise InvalidProcessor(f"a token or password is for repositories at https://, not for {found.address}")


def repository(source: Mapping[str, Any]) -> Repository:
    """Where it is; a login in the address itself is taken out of it."""
    address = str(source["repo"])
    login = _LOGIN.match(address)
    user, _, password = login[2].partition(":") if login else ("", "", "")
    address = _LOGIN.sub(r"\1", address, count=1)
    password = source.get("token") or source.get("password") or unquote(password)
    return Repository(address, source.get("username") or unquote(user) or "x-access-token", password)


def describe(source: Mapping[str, Any]) -> dict[str, str]:
    """What may be known of it."""
    named = {"Uri": repository(source).address, "Branch": source.get("branch"), "Commit": source.get("commit")}
    return {key: value for key, value in {**named, "SourceDir": source.get("source_dir")}.items() if value}


def clone(source: Mapping[str, Any], folder: str) -> str:
    """Clone a repository into a folder; the path of the code in it."""
    wanted = repository(source)
    environment = _environment(wanted)

    def git(*words: str) -> None:
        try:
            done = subprocess.run(
                ["git", *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise InvalidProcessor("a git source needs git: sudo apt-get install git") from None
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["git failed"])[-1]
            hidden = last.replace(wanted.password, "***") if wanted.password else last
            raise InvalidProcessor(f"the code of {wanted.address} cannot be fetched: {hidden}")

    branch = ["--branch", str(source["branch"])] if source.get("branch") else []
    depth = [] if source.get("commit") else ["--depth", "1"]
    git("clone", "--quiet", *depth, *branch, "--", wanted.address, folder)
    if source.get("commit"):
        git("-C", folder, "checkout", "--quiet", "--detach", str(source["commit"]))
    path = os.path.realpath(os.path.join(folder, source.get("source_dir") or "."))
    if not f"{path}/".startswith(f"{os.path.realpath(folder)}/") or not os.path.exists(path):
        raise InvalidProcessor(f"there is no '{source.get('source_dir')}' in {wanted.address}")
    return path


def _environment(wanted: Repository) -> dict[str, str]:
    """Nobody is asked anything, nothing is traced, and the login is for this server alone."""
    noisy = ("GIT_TRACE", "GIT_CURL_VERBOSE", "GIT_CONFIG_", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    found = {name: value for name, value in os.environ.items() if not name.startswith(noisy)}
    found |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "LC_ALL": "C"}
    if not wanted.password:
        return found
    login = b64encode(f"{wanted.user}:{wanted.password}".encode()).decode()
    server = "/".join(wanted.address.split("/")[:3])
    return found | {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": f"http.{server}/.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {login}",
        "GIT_CONFIG_KEY_1": "credential.helper",
        "GIT_CONFIG_VALUE_1": "",
    }
