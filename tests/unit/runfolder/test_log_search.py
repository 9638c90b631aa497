"""Finding lines in the logs of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pailot.runfolder import log_search, logs
from pailot.runfolder.log_search import BadPattern, Hit, Wanted, is_quick, search


def run_folder(path: Path, *texts: bytes, rotate: int = 0) -> str:
    """A run with one task, and the number of its attempts."""
    for number, text in enumerate(texts):
        folder = path / "attempts" / "0" / "tasks" / "w-0" / "attempts" / str(number)
        folder.mkdir(parents=True)
        writer = logs.LogWriter(str(folder), (), rotate, fresh=True)
        writer.write("stdout", text)
        writer.close()
    return str(path)


def hits(run: str, pattern: str, **more: object) -> list[Hit]:
    return [each for each in search(run, {"w": 1}, Wanted(pattern, **more)) if isinstance(each, Hit)]  # type: ignore[arg-type]  # by name


def test_lines_are_found_with_their_place(tmp_path: Path) -> None:
    run = run_folder(tmp_path, b"one\nTWO two\nthree\n", b"another two")
    found = hits(run, "two")
    assert [(each.task_attempt, each.line, each.offset, each.match, each.text) for each in found] == [
        (0, 2, 4, 4, "TWO two"),
        (1, 1, 0, 8, "another two"),
    ]
    assert found[0].at is not None
    assert found[0].stderr is False
    assert [(each.match, each.text) for each in hits(run, "two", case=True)] == [(8, "TWO two"), (8, "another two")]
    assert [each.text for each in hits(run, "^t.*e$", regex=True)] == ["three"]
    assert hits(run, "two", task_attempt=1) == found[1:]
    assert hits(run, "two", role="x") == hits(run, "two", attempt=3) == hits(run, "two", index=9) == []


def test_letters_beyond_ascii(tmp_path: Path) -> None:
    run = run_folder(tmp_path, "Größe ÜBER\n训练完成 done\n".encode())
    assert [each.text for each in hits(run, "über")] == ["Größe ÜBER"]
    assert [each.text for each in hits(run, "训练完成 DONE")] == ["训练完成 done"]
    assert hits(run, "über", case=True) == []
    assert (is_quick(Wanted("über")), is_quick(Wanted("训练")), is_quick(Wanted("a", regex=True))) == (False, True, False)
    (found,) = hits(run, "über")
    assert found.match == len("Größe ".encode())


def test_a_line_of_megabytes_is_one_hit_and_shown_in_part(tmp_path: Path) -> None:
    long = b"x" * 3_000_000 + b"needle" + b"y" * 3_000_000 + b"needle"
    run = run_folder(tmp_path, b"first\n" + long + b"\nlast needle\n")
    for regex in (False, True):
        first, second = hits(run, "needle", regex=regex)
        assert (first.line, first.offset, first.match, first.cut) == (2, 6, 3_000_006, True)
        assert "needle" in first.text
        assert len(first.text) <= log_search.LONGEST_TEXT
        assert (second.line, second.text, second.cut) == (3, "last needle", False)


@pytest.mark.parametrize("at", [(1 << 20) - 3, (1 << 20) - 6, (1 << 20), (1 << 21) - 3])
def test_what_lies_over_the_end_of_a_block_is_found(tmp_path: Path, at: int) -> None:
    run = run_folder(tmp_path, b"x" * at + b"needle")
    (found,) = hits(run, "needle")
    assert (found.offset, found.match, found.line) == (0, at, 1)


def test_a_log_whose_beginning_is_gone_has_no_line_numbers(tmp_path: Path) -> None:
    run = run_folder(tmp_path, b"".join(b"line %04d\n" % each for each in range(1000)), rotate=1000)
    found = hits(run, "line 0")
    assert found[-1].text == "line 0999"
    assert {each.line for each in found} == {None}
    assert all(each.offset % 10 == 0 for each in found[1:])


@pytest.mark.parametrize("text", ["", "x" * 1001, "a\nb"])
def test_a_text_that_cannot_be_searched_for(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadPattern):
        search(str(tmp_path), {"w": 1}, Wanted(text))


@pytest.mark.parametrize("pattern", ["(", "a{99999999999}", "(" * 490 + ")" * 490, "(?P<a>x)(?P<a>y)"])
def test_an_expression_that_cannot_be_read(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(BadPattern):
        search(str(tmp_path), {"w": 1}, Wanted(pattern, regex=True))


LINES = st.lists(st.text("ab\r é", max_size=8), max_size=12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
@given(LINES, st.text("abé", min_size=1, max_size=3), st.booleans(), st.booleans(), st.integers(1, 40))
def test_the_same_lines_as_python_finds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], needle: str, case: bool, regex: bool, block: int
) -> None:
    run = run_folder(tmp_path_factory.mktemp("run"), "\n".join(lines).encode())
    before = log_search.BLOCK_BYTES
    log_search.BLOCK_BYTES = block
    try:
        found = hits(run, needle, case=case, regex=regex)
    finally:
        log_search.BLOCK_BYTES = before
    wanted = re.compile(re.escape(needle), 0 if case else re.IGNORECASE)
    expected = [(number, line) for number, line in enumerate(lines, 1) if wanted.search(line)]
    assert [(each.line, each.text) for each in found] == expected
    begins = [len("\n".join(lines[: number - 1]).encode()) + (number > 1) for number, _ in expected]
    assert [each.offset for each in found] == begins


def test_values_come_back_as_they_were() -> None:
    wanted = Wanted("x", regex=True, role="w", index=2, attempt=1)
    assert Wanted.from_json(wanted.to_json()) == wanted
    hit = Hit("w", 0, 0, 1, 5, 6, None, None, None, "text", cut=True)
    assert Hit.from_json(hit.to_json()) == hit
