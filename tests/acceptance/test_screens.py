"""What a person sees of a run on a real terminal: during and after, narrow and wide."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest

from pailot.testing.runs import Home, job, role

from .screens import Screen

WIDTHS = pytest.mark.parametrize("columns", [80, 200])


def begin(home: Home, text: str, columns: int, *words: str, **environment: str) -> Screen:
    (home.cwd / "job.yaml").write_text(text)
    known = {key: value for key, value in home.environment.items() if key not in ("NO_COLOR", "TERM")}
    return Screen([*(words or home.command)], home.cwd, known | {"HERE": str(home.cwd)} | environment, columns)


def go(home: Home, name: str = "go") -> None:
    (home.cwd / name).touch()


def wait(name: str = "go") -> str:
    """Until the test says so; each of several tasks works in a folder of its own."""
    return f'until [ -e "$HERE/{name}" ]; do sleep 0.02; done'


@WIDTHS
def test_an_unfinished_line_stays(home: Home, columns: int) -> None:
    screen = begin(home, job(role(f"printf 'loading data ... '; {wait()}; echo done; printf 'no end'")), columns)
    screen.until(lambda lines: "loading data ..." in lines)
    screen.until(lambda lines: "loading data ..." in lines)
    go(home)
    lines = screen.end()
    assert "loading data ... done" in lines
    assert "no end" in lines
    assert re.match(r"pailot: demo SUCCEEDED after", lines[lines.index("no end") + 1])


@WIDTHS
def test_a_progress_bar_of_one_task_is_seen(home: Home, columns: int) -> None:
    screen = begin(home, job(role(f"printf '10%%\\r40%%'; {wait()}; printf '\\r100%%\\n'")), columns)
    screen.until(lambda lines: "40%" in lines)
    go(home)
    lines = screen.end()
    assert "100%" in lines
    assert "40%" not in lines


@WIDTHS
def test_progress_bars_of_several_tasks_keep_their_names(home: Home, columns: int) -> None:
    bars = f"printf 'epoch 1 10%%\\repoch 1 40%%'; {wait()}; printf '\\repoch 1 100%%\\nend\\r\\n'"
    screen = begin(home, job(role(bars, "worker", instances=2), role(f"echo up; {wait()}", "server")), columns)
    bar = re.compile(r"\[worker:[01]\] epoch 1 40%")
    screen.until(lambda lines: "[server:0] up" in lines and any(map(bar.fullmatch, lines)))
    colours = {screen.colour_of("[worker:"), screen.colour_of("[server:0]")}
    assert len(colours) == 2
    assert "default" not in colours
    go(home)
    lines = screen.end()
    for index in (0, 1):
        assert f"[worker:{index}] epoch 1 100%" in lines
        assert f"[worker:{index}] end" in lines
    assert not any("40%" in line for line in lines)


def test_wide_characters_and_long_lines_fit_and_are_whole_in_the_end(home: Home) -> None:
    wide = "漢字" * 40
    commands = f"printf '{wide}'; {wait()}; echo; echo {'x' * 200}"
    screen = begin(home, job(role(commands, instances=2)), 80)
    lines = screen.until(lambda lines: any("漢" in line for line in lines))
    shown = [line for line in lines if "漢" in line]
    assert len(shown) == 1  # on one line of the screen
    go(home)
    text = "".join(screen.end()).replace(" ", "")
    assert text.count("x" * 200) == 2
    assert text.count("漢字") == 80


def test_a_narrower_window_gets_a_shorter_line(home: Home) -> None:
    roles = (role(wait(), "a_role_with_a_long_name"), role(wait(), "another_role_with_a_long_name"))
    screen = begin(home, job(*roles), 120)
    screen.until(lambda lines: any("another_role_with_a_long_name 1/1" in line for line in lines))
    screen.resize(40)
    screen.until(lambda lines: any(re.fullmatch(r"demo · \d+ s · .{15,31}", line) for line in lines[-1:]))
    go(home)
    screen.end()


def test_no_colours_where_none_are_wanted_and_no_cursor_moves_on_a_dumb_terminal(home: Home) -> None:
    text = job(role("echo one; printf two", instances=2))
    screen = begin(home, text, 80, NO_COLOR="1")
    screen.end()
    assert b"\x1b[3" not in screen.data
    screen = begin(home, text, 80, TERM="dumb")
    screen.end()
    assert b"\x1b" not in screen.data


def test_the_status_line_says_that_it_is_stopping(home: Home) -> None:
    screen = begin(home, job(role(f"trap '{wait()}; exit 1' TERM; echo up; {wait('never')}")), 80)
    screen.until(lambda lines: "up" in lines)
    screen.process.send_signal(signal.SIGINT)
    screen.until(lambda lines: any(re.match(r"demo · \d+ s · stopping, 1 of 1 running", line) for line in lines))
    go(home)
    screen.end(status=3)


def test_logs_that_are_followed_look_the_same(home: Home, tmp_path: Path) -> None:
    bars = f"printf 'a line\\n10%%\\r40%%'; {wait()}; printf '\\r100%%\\n'"
    (home.cwd / "job.yaml").write_text(job(role(bars, "worker"), role(bars, "server")))
    home.run((home.cwd / "job.yaml").read_text(), "--detach", HERE=str(home.cwd))
    words = [*home.command[:-2], "logs", "-f", "demo"]
    screen = begin(home, (home.cwd / "job.yaml").read_text(), 80, *words)
    bar = re.compile(r"\[(worker|server):0\] 40%")
    both = {"[worker:0] a line", "[server:0] a line"}
    screen.until(lambda lines: both <= set(lines) and any(map(bar.fullmatch, lines)))
    assert screen.colour_of("[worker:0]") != screen.colour_of("[server:0]")
    go(home)
    lines = screen.end()
    assert sorted(line for line in lines if "%" in line) == ["[server:0] 100%", "[worker:0] 100%"]


@pytest.mark.parametrize(
    ("columns", "titles"),
    [(60, "NAME STATE TOOK ID"), (80, "NAME STATE SUBMITTED TOOK ID"), (200, "NAME STATE TASKS RETRIES SUBMITTED TOOK ID")],
)
def test_ps_does_not_wrap_in_a_narrow_window(home: Home, columns: int, titles: str) -> None:
    long = "a-job-with-a-name-that-is-quite-as-long-as-a-job-may-have-it"
    for name in (long, "short"):
        assert home.run(job(role("true"), name=name)).status == 0
    titles_line, short, cut_off = begin(home, "", columns, sys.executable, "-m", "pailot", "ps").end()
    assert titles_line.split() == titles.split()
    assert short.startswith("short ")
    assert long.startswith(cut_off.split()[0].rstrip("…"))
