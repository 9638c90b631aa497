"""Ports: where they are looked for, and what keeps one from being given."""

from __future__ import annotations

import fcntl
import os
import pickle
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.engines.preparation.ports import NoPorts, Ports, PortTaken
from pailot.runtime.locks import Locks
from pailot.runtime.ports import HIGHEST, LOWEST, _ranges, port_ranges


@given(st.integers(1, 65535), st.integers(1, 65535))
def test_ports_come_from_outside_the_ephemeral_range_as_long_as_there_are_some(low: int, high: int) -> None:
    low, high = sorted((low, high))
    ranges = _ranges(low, high)
    numbers = [port for ports in ranges for port in ports]
    assert len(set(numbers)) == len(numbers)
    assert all(LOWEST <= port <= HIGHEST for port in numbers)
    outside = [port for port in numbers if not low <= port <= high]
    assert numbers[: len(outside)] == outside
    assert len(numbers) >= 2000
    assert len(outside) == len(numbers) or len(outside) < 2000


def test_this_machine_has_a_range() -> None:
    with open("/proc/sys/net/ipv4/ip_local_port_range") as stream:
        low, high = map(int, stream.read().split())
    assert port_ranges() == _ranges(low, high)


def test_ports_are_all_different_and_can_be_bound_at_once() -> None:
    ports = Ports()
    taken = ports.take(50) + ports.take(50)
    assert len(set(taken)) == 100
    for port in taken:
        with socket.create_server(("", port)):
            pass
    ports.close()


def test_two_runs_in_one_process_share_nothing(span: Callable[[int], range]) -> None:
    small = [span(40)]
    one, other = Ports(small), Ports(small)
    assert not set(one.take(10)) & set(other.take(10))
    one.close()
    other.close()


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, ""), (socket.AF_INET6, "::1")])
def test_a_port_on_which_somebody_listens_is_not_given(family: socket.AddressFamily, address: str) -> None:
    try:
        listener = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    with listener:
        port = listener.getsockname()[1]
        ports = Ports([range(port, port + 1)])
        with pytest.raises(NoPorts, match="needs 1 ports, but only 0 are free"):
            ports.take(1)
        with pytest.raises(PortTaken, match=f"port {port} is in use by another program") as caught:
            ports.take_exactly(port)
        assert (caught.value.port, caught.value.words) == (port, "is in use by another program")
    ports.close()


def test_when_there_are_too_few_none_is_kept(span: Callable[[int], range]) -> None:
    ports = span(15)
    small = [ports[:10], ports[10:]]
    one, other = Ports(small), Ports(small)
    with pytest.raises(NoPorts, match="needs 16 ports, but only 15 are free"):
        one.take(16)
    assert sorted(other.take(15)) == [*ports]
    with pytest.raises(NoPorts):
        one.take(1)
    other.close()
    assert len(one.take(15)) == 15
    one.close()


def test_exact_ports_are_these_or_none(span: Callable[[int], range]) -> None:
    one, other = Ports(), Ports()
    first, _, third, last = span(4)
    assert one.take_exactly(third, 2) == [third, last]
    with pytest.raises(PortTaken, match=f"port {third} is reserved by another run of Pailot on this machine"):
        other.take_exactly(first, 4)
    assert one.take_exactly(first, 2) == [first, first + 1]
    with pytest.raises(PortTaken, match=f"port {last} is needed twice by this job"):
        one.take_exactly(last)
    with pytest.raises(PortTaken, match="port 65536 does not exist"):
        one.take_exactly(65535, 2)
    one.close()
    assert len(other.take_exactly(first, 4)) == 4
    other.close()


def test_the_error_travels() -> None:
    error = pickle.loads(pickle.dumps(PortTaken(80, "is busy")))
    assert (error.port, error.words, str(error)) == (80, "is busy", "port 80 is busy")


def test_no_more_ports_are_looked_at_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    take = Locks.take

    def recorded(locks: Locks, number: int) -> bool:
        asked.append(number)
        return take(locks, number)

    monkeypatch.setattr(Locks, "take", recorded)
    ports = Ports()
    taken = ports.take(5_000)
    assert len(set(taken)) == 5_000
    assert len(asked) == len(set(asked))
    assert asked[-1] == taken[-1]
    ports.close()


def _whole_file(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    return descriptor


@pytest.mark.parametrize("what", ["a lock over all of it", "a lock over all ports", "a FIFO", "a folder", "a link"])
def test_a_stranger_who_spoils_the_shared_file_takes_no_ports_from_others(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAILOT_LOCKS", str(tmp_path / "locks"))
    Ports().close()
    shared = tmp_path / "locks" / "ports"
    held = -1
    if what == "a lock over all of it":
        held = _whole_file(shared)
    elif what == "a lock over all ports":
        held = os.open(shared, os.O_RDWR)
        fcntl.fcntl(held, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, LOWEST, HIGHEST - LOWEST + 1, 0))
    else:
        shared.unlink()
        {"a FIFO": os.mkfifo, "a folder": os.mkdir, "a link": lambda path: os.symlink("/dev/null", path)}[what](shared)
    one, other = Ports(), Ports()
    assert one.problem.count("\n") == 0
    assert str(shared) in one.problem
    assert not set(one.take(500)) & set(other.take(500))
    one.close()
    other.close()
    if held >= 0:
        os.close(held)
        assert Ports().problem == ""


def test_the_many_ports_of_one_large_run_are_not_taken_for_a_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAILOT_LOCKS", str(tmp_path / "locks"))
    one = Ports([range(LOWEST, LOWEST + 12_000)])
    for port in range(LOWEST, LOWEST + 12_000):
        one._locks.take(port)
    other = Ports()
    assert (other.problem, len(other.take(10))) == ("", 10)
    one.close()
    other.close()
