"""What of the machine was in use over the last 24 hours."""

from __future__ import annotations

from pathlib import Path

import pytest

from pailot.jobserver.capacity_history import FILE, MINUTES, CapacityHistory, Use


class Machine:
    def __init__(self) -> None:
        self.now = 1_700_000_040.0  # a whole minute
        self.cpus = 0.0

    def look(self) -> Use:
        return Use(self.cpus, self.cpus * 100, 1.0, 2.0, 3.0)

    def history(self, home: Path) -> CapacityHistory:
        return CapacityHistory(str(home), self.look, lambda: self.now)


def test_a_minute_is_the_mean_of_what_was_seen_in_it(tmp_path: Path) -> None:
    machine = Machine()
    history = machine.history(tmp_path)
    for cpus in (1.0, 2.0, 3.0, 8.0, 8.0, 8.0, 5.0):
        machine.cpus = cpus
        history.sample()
        machine.now += 20
    told = history.read(86_400)
    assert [each.use.cpus for each in told] == [2.0, 8.0, 5.0]
    assert [each.at for each in told] == [1_700_000_040, 1_700_000_100, 1_700_000_160]
    assert told[0].use == Use(2.0, 200.0, 1.0, 2.0, 3.0)


def test_it_is_bounded_and_outlives_a_restart(tmp_path: Path) -> None:
    machine = Machine()
    history = machine.history(tmp_path)
    for number in range(MINUTES + 300):
        machine.cpus = float(number)
        history.sample()
        machine.now += 60
    assert (tmp_path / FILE).stat().st_size == MINUTES * 28
    again = machine.history(tmp_path)
    told = again.read(86_400)
    assert len(told) in (MINUTES - 1, MINUTES - 2)
    assert [each.at for each in told] == sorted(each.at for each in told)
    assert told[-1].use.cpus == MINUTES + 298
    assert len(again.read(3600)) in (58, 59, 60)
    machine.now += 5 * 3600  # it was down
    again.sample()
    assert [each.use.cpus for each in again.read(3600)] == [machine.cpus]


@pytest.mark.parametrize("data", [b"", b"x", b"\xff" * 28, b"\x00" * 100_000])
def test_any_file_can_be_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / FILE).write_bytes(data)
    machine = Machine()
    history = machine.history(tmp_path)
    assert history.read(86_400) == []
    history.sample()
    machine.now += 60
    history.sample()
    assert len(history.read(86_400)) == 2


def test_a_disk_that_takes_nothing_does_no_harm(tmp_path: Path) -> None:
    machine = Machine()
    history = machine.history(tmp_path / "gone")
    history.sample()
    machine.now += 60
    history.sample()
    assert len(history.read(86_400)) == 1
