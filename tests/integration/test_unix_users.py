"""A server that is root and gives each user's tasks to a Unix user: what such a user could do with it."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.runs import job, role
from tests.integration.test_team import ANN, Place, place, state

if TYPE_CHECKING:
    from pathlib import Path

    from pailot.jobserver.service import Team

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of other users")
__all__ = ["place"]
NOBODY, GAMES = pwd.getpwnam("nobody"), pwd.getpwnam("games")


@pytest.fixture
def way(place: Place) -> Place:
    """A place that every user can come to."""
    for folder in (place.folder, *place.folder.parents):
        if folder.stat().st_mode & 0o001 == 0 and str(folder).startswith(tempfile.gettempdir() + os.sep):
            folder.chmod(0o711)
    return place


def open_folder(path: Path) -> Path:
    path.mkdir()
    path.chmod(0o777)
    return path


def test_variables_of_a_job_meet_no_process_of_root(way: Place) -> None:
    """The loader, bash, Python and the search for programs all obey variables: each leaves a file, whose owner tells who did."""
    seen, programs = open_folder(way.folder / "seen"), open_folder(way.folder / "programs")
    for name in ("bash", "setpriv", "bwrap", "env", "true", "python3"):
        tool = programs / name
        tool.write_text(f'#!/bin/sh\n: >{seen}/path-{name}.$$\nPATH=/usr/bin:/bin exec {name} "$@"\n')
        tool.chmod(0o755)
    (programs / "startup").write_text(f": >{seen}/bash-env.$BASHPID\n")
    (programs / "sitecustomize.py").write_text(f"import os; open('{seen}/python.%d' % os.getpid(), 'w')\n")
    more = ", ".join(
        f"{key}: '{value}'"
        for key, value in {
            "LD_DEBUG": "statistics",
            "LD_DEBUG_OUTPUT": f"{seen}/loader",
            "BASH_ENV": f"{programs}/startup",
            "ENV": f"{programs}/startup",
            "PYTHONPATH": str(programs),
            "PATH": f"{programs}:/usr/bin:/bin",
        }.items()
    )
    options = f"environment: {{{more}}}, channels: {{outputs: {{o: '{seen}/out'}}, mount: true}}"
    prerequisites = """  - name: setup
    type: script
    callbacks: [{event: taskStarts, commands: ["true"]}, {event: containerExit, commands: ["true"]}]"""

    async def work(team: Team) -> None:
        text = job(
            role("id -un; /usr/bin/python3 -c ''", listed="setup"), name="loud", options=options, prerequisites=prerequisites
        )
        await team.submit(ANN, text)
        assert await state(team, "ann~loud") == "SUCCEEDED"
        assert b"nobody" in (await team.log(ANN, "ann~loud", "main", 0)).read()[0]

    way.run(work, PAILOT_UNIX_USERS="ann=nobody", PAILOT_STORAGE_FOLDERS=str(seen))
    left = list(seen.iterdir())
    kinds = {path.name.partition(".")[0] for path in left}
    assert {"loader", "bash-env", "path-bash"} <= kinds, kinds
    assert {path.name: path.stat().st_uid for path in left if path.stat().st_uid != NOBODY.pw_uid} == {}


def test_the_checkpoint_folder_is_where_the_record_says(way: Place) -> None:
    from pailot.jobserver.errors import Invalid

    treasure = way.folder / "treasure"
    treasure.mkdir(mode=0o700)

    async def work(team: Team) -> None:
        with pytest.raises(Invalid, match="PAI_CHECKPOINT_DIR"):
            await team.submit(ANN, job(role("true"), name="a", options=f"environment: {{PAI_CHECKPOINT_DIR: {treasure}}}"))
        await team.submit(ANN, job(role('stat -c "%U %a" $PAI_CHECKPOINT_DIR; exit 1', retries=1), name="b"))
        await state(team, "ann~b")
        assert (await team.log(ANN, "ann~b", "main", 0)).read()[0] == b"nobody 700\n"

    way.run(work, PAILOT_UNIX_USERS="ann=nobody")
    assert (treasure.stat().st_uid, stat.S_IMODE(treasure.stat().st_mode)) == (0, 0o700)
