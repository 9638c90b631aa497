"""Retention: what may go, and going without leaving half of it behind."""

from __future__ import annotations

import os
import sys

from ..lifecycle.states import WAITING
from ..runfolder import layout
from ..runfolder.records import RunState
from ..runfolder.removing import remove_tree
from ..settings import Settings
from ..store import StoreError
from ..store.index import Index, JobRow
from ..store.network_filesystems import index_path
from .queries import open_index, refresh
from .run_folder import JobFolder


def old_runs(*, before: float, keep_last: int) -> list[JobRow]:
    """Finished runs that ended before a moment, but for the latest few."""
    found: list[JobRow] = []
    with open_index() as index:  # on a full disk only one at a time can have it open
        for row in index.unfinished():
            refresh(row, index)  # one whose driver was killed has ended, and its processes with it
        page = index.page(limit=1_000)
        seen = 0
        while page:
            found += [
                row
                for position, row in enumerate(page, seen)
                if position >= keep_last and row.ended is not None and row.ended < before
            ]
            seen += len(page)
            page = index.page(limit=1_000, before=page[-1].id)
    return found


def remove(rows: list[JobRow]) -> int:
    """Take runs out of the index, then remove their folders; return the bytes freed."""
    index = open_index()
    freed = sum(_size(row.folder) for row in rows)
    try:
        index.remove(row.id for row in rows)
        full = False
    except StoreError:
        full = True  # most likely: the disk has no room for the change, and the folders make some
    for row in rows:
        remove_tree(row.folder, ignore_errors=True)
    if full:
        index.remove(row.id for row in rows)
    return freed


def rebuild_index() -> int:
    """Make the index anew from what the folders tell."""
    home = Settings().home
    jobs = os.path.join(home, "jobs")
    rows = []
    for name in sorted(os.listdir(jobs)) if os.path.isdir(jobs) else ():
        folder = JobFolder(os.path.join(jobs, name))
        job, verdict, plan = folder.job(), folder.verdict(), folder.plan()
        if job is None:
            sys.stderr.write(f"pailot: {folder.file(layout.JOB)} is damaged or missing: this run is left out of the index\n")
            continue
        state = RunState.of(folder.path)
        rows.append(
            JobRow(
                id=job.id,
                name=job.name,
                user=job.user,
                state=verdict.state if verdict else state.state or WAITING,
                engine=job.engine,
                folder=folder.path,
                submitted=job.submitted,
                started=verdict.started if verdict else state.started,
                ended=verdict.ended if verdict else None,
                tasks=sum(role["instances"] for role in plan.get("taskRoles", {}).values()),
                retries=verdict.retried if verdict else 0,
                exit_code=verdict.exit_code if verdict else None,
                reason=verdict.reason if verdict else "",
                vc=job.virtual_cluster,
                labels=job.labels or None,
            )
        )
    return Index(index_path(home)).rebuild(rows)


def _size(folder: str) -> int:
    """The bytes of a tree, as far as a path can name what is in it; a folder may be deeper than calls can be nested."""
    total, folders = 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # gone meanwhile
    return total
