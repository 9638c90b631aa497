"""A server that is root and gives each user's tasks to a Unix user: what such a user could do with it."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pailot.jobserver.models import Caller
from pailot.testing.runs import job, role
from tests.integration.test_team import ANN, ROOT, Place, file_there, place, state

if TYPE_CHECKING:
    from pailot.jobserver.service import Team

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of other users")
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


@as_root
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

    way.run(work, PAILOT_UNIX_USERS="ann=nobody", PAILOT_STORAGE_FOLDERS=f"seen={seen}")
    left = list(seen.iterdir())
    kinds = {path.name.partition(".")[0] for path in left}
    assert {"loader", "bash-env", "path-bash"} <= kinds, kinds
    assert {path.name: path.stat().st_uid for path in left if path.stat().st_uid != NOBODY.pw_uid} == {}


@as_root
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


def modes_below(folder: Path) -> dict[str, str]:
    """What others may do with something of ours: nothing is as it should be. What tasks and users bring has modes of its own."""
    found = {}
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in ("work", "tree")]
        for name in (*folders, *files):
            about = os.lstat(os.path.join(parent, name))
            if about.st_mode & 0o077:
                found[os.path.relpath(os.path.join(parent, name), folder)] = oct(stat.S_IMODE(about.st_mode))
    return found


def test_whatever_the_umask_all_that_is_made_is_ours_alone(place: Place) -> None:
    from pailot.testing.runs import Home

    place.home.mkdir(mode=0o755)
    alone = Home(place.folder / "alone")
    (place.folder / "alone" / "home").mkdir()
    before = os.umask(0)
    try:

        async def work(team: Team) -> None:
            await team.submit(ANN, job(role("true", retries=1), name="a", more="secrets: {key: hush-hush}"))
            assert await state(team, "ann~a") == "SUCCEEDED"
            assert modes_below(place.home) == {}

        place.run(work)
        assert alone.run(job(role("true", instances=2))).status == 0
        assert modes_below(alone.folder / "home") == {}
    finally:
        os.umask(before)
        alone.close()


@as_root
def test_users_of_one_group_read_nothing_of_each_other(way: Place) -> None:
    """Two Unix users with the same primary group, as `users` is on many machines."""
    other = pwd.getpwnam("nobody")
    mates = [each.pw_name for each in pwd.getpwall() if each.pw_gid == other.pw_gid and each.pw_uid not in (0, other.pw_uid)]
    if not mates:
        pytest.skip("no other user here has the group of nobody")

    async def work(team: Team) -> None:
        await team.submit(ANN, job(role("echo hush; touch up; while :; do sleep 0.05; done"), name="mine"))
        folder = (await team.get(ANN, "ann~mine")).folder
        await file_there(Path(folder) / "attempts/0/tasks/main-0/work/up")
        inner = f"{folder}/attempts/0"
        files = f"{inner}/peers.json {inner}/attempt.json {inner}/tasks/main-0/attempts/0/* {inner}/tasks/main-0/work/up"
        peek = f"set +e; cat {files} 2>/dev/null; cat {inner}/tasks/main-0/attempts/0/main.sh; ls {inner} {inner}/tasks; true"
        await team.submit(Caller("eve"), job(role(peek), name="peek"))
        assert await state(team, "eve~peek") == "SUCCEEDED"
        log = (await team.log(ROOT, "eve~peek", "main", 0)).read()[0].decode()
        assert log.count("Permission denied") == 3, log
        assert "hush" not in log
        await team.stop(ANN, "ann~mine")
        assert await state(team, "ann~mine") == "STOPPED"

    way.run(work, PAILOT_UNIX_USERS=f"ann=nobody, eve={mates[0]}")


@as_root
def test_the_folder_of_jobs_may_be_a_link_of_the_administrator(way: Place) -> None:
    (way.folder / "large").mkdir(mode=0o711)
    (way.folder / "large/jobs").mkdir(mode=0o700)
    way.home.mkdir(mode=0o700)
    (way.home / "jobs").symlink_to(way.folder / "large/jobs")

    async def work(team: Team) -> None:
        await team.submit(
            ANN, job(role("id -un; touch $PAI_CHECKPOINT_DIR/x; cat $PAI_PEERS_FILE >/dev/null; pwd -P"), name="linked")
        )
        assert await state(team, "ann~linked") == "SUCCEEDED"
        log = (await team.log(ANN, "ann~linked", "main", 0)).read()[0].decode()
        assert log.startswith("nobody\n")
        assert "/large/jobs/" in log

    way.run(work, PAILOT_UNIX_USERS="ann=nobody")


def test_who_kills_his_own_shim_has_a_failed_job_that_is_not_tried_again_for_free(place: Place) -> None:
    async def work(team: Team) -> None:
        await team.submit(ANN, job(role("touch up; until [ -e go ]; do sleep 0.02; done; echo fine"), name="beside"))
        folder = Path((await team.get(ANN, "ann~beside")).folder) / "attempts/0/tasks/main-0/work"
        await file_there(folder / "up")
        await team.submit(ANN, job(role("kill -9 $PPID; sleep 1000"), name="own", job_retries=1))
        assert await state(team, "ann~own") == "FAILED"
        record = await team.get(ANN, "ann~own")
        assert "only its own user" in record.reason
        assert (record.retries, record.attempts) == (1, 2)  # those that the job asks for, and no others
        (folder / "go").touch()
        assert await state(team, "ann~beside") == "SUCCEEDED"

    place.run(work)


@as_root
def test_a_python_that_others_cannot_read_is_named_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from pailot.jobserver.unix_users import UnixUsers, closed_python

    (tmp_path / "closed/python").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "closed/python"))
    told = closed_python(UnixUsers("ann=nobody", lambda _: None))
    assert "cannot read this server's Python" in told
    assert "\n" not in told
    assert closed_python(UnixUsers("", lambda _: None)) == ""
