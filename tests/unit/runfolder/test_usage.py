"""What a task used over time: bytes, bounds, and what joining samples keeps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pailot.runfolder import usage
from pailot.runfolder.usage import Peak, Sample

MOMENTS = st.integers(0, 1 << 41).map(lambda each: each / 1000)
WORDS = st.integers(0, (1 << 32) - 1)
SAMPLES = st.builds(
    Sample,
    MOMENTS,
    st.integers(0, 65535),
    MOMENTS,
    WORDS,
    WORDS,
    st.integers(0, 65535),
    st.none() | st.integers(0, 6400).map(float),
    WORDS,
    st.builds(Peak, st.integers(0, 1 << 20).map(lambda each: each / 100), WORDS, WORDS),
)


def series(count: int, attempt: int = 0, begin: float = 1e9, every: float = 5.0) -> list[Sample]:
    """One busy processor, and memory that rises by a KiB a sample."""
    return [Sample(begin + every * n, attempt, every * n, n, n, min(n, 1)) for n in range(count)]


@given(st.lists(SAMPLES, max_size=5))
def test_a_sample_comes_back_as_it_was(samples: list[Sample]) -> None:
    assert usage.unpack(b"".join(map(usage.pack, samples))) == samples


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(data: bytes) -> None:
    assert len(usage.unpack(data)) == len(data) // 48


def test_the_file_is_bounded_and_keeps_what_matters(tmp_path: Path) -> None:
    everything = series(40_000)
    for at in range(0, len(everything), 100):
        usage.append(str(tmp_path), everything[at : at + 100])
        assert (tmp_path / "usage").stat().st_size <= usage.MAX_BYTES
    kept = usage.read(str(tmp_path))
    assert len(kept) > usage.MAX_SAMPLES // 2
    assert kept[0] == everything[0]
    assert kept[-900:] == everything[-900:], "the newest ones are as they were"
    assert max(each.memory_max_kb for each in kept) == 39_999
    spans = [after.at - before.at for before, after in pairwise(kept)]
    assert max(spans) <= 40_000 * 5 / usage.MAX_SAMPLES * 8, "what is old is coarser, not gone"
    assert all(abs(usage.cpus(before, after) - 1) < 1e-6 for before, after in pairwise(kept))
    assert [each.name for each in tmp_path.iterdir()] == ["usage"]


def test_attempts_stay_apart_and_the_oldest_of_very_many_go(tmp_path: Path) -> None:
    for attempt in range(4_000):
        usage.append(str(tmp_path), series(2, attempt, 1e9 + attempt * 10))
    kept = usage.read(str(tmp_path))
    assert (tmp_path / "usage").stat().st_size <= usage.MAX_BYTES
    assert kept[-1].attempt == 3_999
    assert all(each.memory_kb in (0, 1) for each in kept)


def test_half_a_sample_at_the_end_is_cut_off(tmp_path: Path) -> None:
    first, second, third = series(3)
    usage.append(str(tmp_path), [first, second])
    with (tmp_path / "usage").open("ab") as stream:
        stream.write(b"half")
    assert usage.read(str(tmp_path)) == [first, second]
    usage.append(str(tmp_path), [third])
    assert usage.read(str(tmp_path)) == [first, second, third]
    assert usage.latest(str(tmp_path)) == (second, third)


def test_a_link_or_a_pipe_in_its_place_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "usage").symlink_to("/etc/passwd")
    assert usage.read(str(tmp_path)) == []
    usage.append(str(tmp_path), series(2))
    assert not (tmp_path / "usage").is_symlink()
    assert len(usage.read(str(tmp_path))) == 2


def test_few_points_keep_peaks_processor_time_and_attempts() -> None:
    samples = series(1000) + series(1000, 1, 1e9 + 6000)
    samples[500] = samples[500].replace(memory_max_kb=77_777)
    shown = usage.thinned(samples, 50)
    assert 40 <= len(shown) <= 60
    assert max(each.memory_max_kb for each in shown) == 77_777
    assert [each.cpu_seconds for each in shown if each.attempt == 0][-1] == 999 * 5
    assert {each.attempt for each in shown} == {0, 1}
    assert usage.thinned(samples[:10], 50) == samples[:10]
