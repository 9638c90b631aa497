"""Every engine of ours passes the suite that `pailot.testing` offers to authors of engines."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest

from pailot.testing import EngineConformance, Place
from pailot.testing.runs import role


class TestEngines(EngineConformance):
    """With the fixture `engine` of conftest.py: each engine in turn."""

    def test_the_command_that_failed_is_named(self, place: Place) -> None:
        if place.engine.traits.takes_job_file:
            pytest.skip("the other cluster runs its tasks, and tells their exit codes only")
        text = place.job(
            role("echo a\necho <% $secrets.token %>; <% $parameters.main %>", listed="bad"),
            prerequisites=(
                "  - name: bad\n    type: script\n    callbacks:\n"
                "      - {event: containerStart, commands: ['echo <% $secrets.token %>', '<% $parameters.start %>']}\n"
                "      - {event: containerExit, commands: ['true', '<% $parameters.exit %>']}"
            ),
            more="secrets: {token: hunter2-hunter2-hunter2}\nparameters: {start: 'true', main: 'true', exit: 'true'}",
        )
        for options, words in {
            "main=false": "command 1 of main, line 2: 'echo <% $secrets.token %>; false' exited with 1",
            "start=exit 3": "command 2 of containerStart of bad: 'exit 3' exited with 3",
            "exit=exit 5": "containerExit of bad exited with 5",
        }.items():
            done = place.run(text, "--quiet", "--set", f"parameters.{options}")
            assert done.status == 1
            named = [line for line in done.err.splitlines() if re.match(r"pailot: \S+:\d+: ", line)]
            assert [line.partition(": ")[2].partition(": ")[2] for line in named] == [words], done.err
            assert named[0].removeprefix("pailot: ") in place.pailot("why", "demo").out.splitlines()
            (task,) = place.show()["taskRoles"]["main"]["tasks"]
            assert task["failedCommand"] == named[0].removeprefix("pailot: ")
            assert "hunter2" not in done.out + done.err

    def test_what_is_printed_has_its_time_and_what_is_used_is_measured(self, place: Place) -> None:
        text = place.job(role("echo one; sleep 6; echo two >&2; sleep 1"))
        assert place.run(text).status == 0
        lines = place.pailot("logs", "demo", "-t").lines
        (task,) = json.loads(place.pailot("top", "demo", "--json").out)
        if place.engine.traits.takes_job_file:
            assert lines == ["- - one", "- - two"], "the other cluster tells no times, and that is said"
            return
        times = [datetime.fromisoformat(line.split()[0]) for line in lines]
        assert [line.split()[1:] for line in lines] == [["stdout", "one"], ["stderr", "two"]]
        assert 5 <= (times[1] - times[0]).total_seconds() <= 12
        assert task["peak"]["peakMemoryMB"] > 0
        assert task["peak"]["peakCpus"] is not None, "a sample was taken while it ran"
        assert len(place.pailot("logs", "demo", "--grep", "^t.o$").lines) == 1
