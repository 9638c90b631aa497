"""What tests share: how many random inputs they try, OpenPAI's own libraries, real job files."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.support.oracle import ROOT, Oracle
from tests.support.postgres import ENABLE, Postgres, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

settings.register_profile("default", deadline=None, max_examples=60, derandomize=False, print_blob=True)
settings.register_profile("soak", settings.get_profile("default"), max_examples=1_000)
settings.register_profile("examples", phases=[Phase.explicit])  # nothing random: what is covered does not depend on luck
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


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
