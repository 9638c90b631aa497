"""What tests share: how many random inputs they try, OpenPAI's own libraries, real job files."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.postgres import ENABLE, Postgres, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent

settings.register_profile("default", deadline=None, max_examples=60, derandomize=False, print_blob=True)
settings.register_profile("soak", settings.get_profile("default"), max_examples=1_000)
settings.register_profile("examples", phases=[Phase.explicit])  # nothing random: what is covered does not depend on luck
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


class Oracle:
    """OpenPAI's YAML reader and template library in a Node.js process; one question at a time."""

    def __init__(self, node: str) -> None:
        self.process = subprocess.Popen(
            [node, ROOT / "bench/upstream/oracle.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """`{"op": "yaml", "text": …}` or `{"op": "render", "template": …, "context": …}`; see bench/upstream/oracle.js."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer.get("error") != "BadRequest", answer
        return answer

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    node = shutil.which("node")
    if not node or not (ROOT / "bench/upstream/node_modules/js-yaml").is_dir():
        pytest.skip("install Node.js and run: make node")
    started = Oracle(node)
    yield started
    started.close()


@pytest.fixture
def span(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], range]]:
    """Gives as many ports in a row, which no other run or test on this machine is given before the test has ended."""
    from pailot.runtime.ports import Ports, PortTaken, port_ranges

    with monkeypatch.context() as without:
        without.delenv("PAILOT_LOCKS", raising=False)  # the folder that all share
        reserved = Ports()

    def find(count: int) -> range:
        ports = max(port_ranges(), key=len)
        while True:
            first = random.choice(ports[:-count])
            try:
                reserved.take_exactly(first, count)
            except PortTaken:
                continue
            return range(first, first + count)

    yield find
    reserved.close()


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real job files, kept outside the repository."""
    folder = ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        pytest.skip("the corpus of real job files is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL of our own."""
    bin = programs()
    if bin is None:
        pytest.skip(ENABLE)
    server = Postgres(bin)
    try:
        server.start()
        yield server
        server.stop()
    finally:
        server.remove()
