"""Is everything there, and does it fit together? For `pailot serve --check`."""

from __future__ import annotations

import json
import os

from .. import StoreError
from . import sealed_columns
from .models import label_mark, tag_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..secrets import SecretBox
    from . import ServerStore
    from .database import Database

MOST = 20
"""Findings of one kind that are told; more of them tell nothing new."""
KEY_CHECK = "key_check"
TEXTS = {
    "jobs": ("id", ("tags", "labels", "more")),
    "users": ("username", ("grouplist",)),
    "user_groups": ("groupname", ("extension",)),
    "tokens": ("digest", ("claims",)),
    "virtual_clusters": ("name", ("data",)),
    "outbox": ("number", ("payload",)),
    "job_events": ("number", ("data",)),
    "library": ("name", ("about",)),
}


def verify(store: ServerStore, box: SecretBox | None = None) -> list[str]:
    """Everything that is wrong, a line each; nothing where all is well. Changes nothing."""
    database = store.database
    found = [*_database(database)]
    if found:
        return found  # what a damaged database says about the rest is worth nothing
    for kind in (_texts(database), _marks(database), _jobs(database), _groups(store), _secrets(store, box) if box else iter(())):
        for number, line in enumerate(kind):
            if number == MOST:
                found.append("… and more of the same kind")
                break
            found.append(line)
    return found


def _database(database: Database) -> Iterator[str]:
    if database.kind != "sqlite":
        return  # PostgreSQL checks its pages and its keys itself
    for (line,) in database.read("PRAGMA integrity_check"):
        if line != "ok":
            yield f"{database.place}: {line}"
    for table, row, parent, _ in database.read("PRAGMA foreign_key_check"):
        yield f"{database.place}: row {row} of {table} belongs to a row of {parent} that is not there"


def _texts(database: Database) -> Iterator[str]:
    for table, (key, columns) in TEXTS.items():
        for rows in database.stream(f"SELECT {key}, {', '.join(columns)} FROM {table}"):  # noqa: S608  # our own names
            for name, *texts in rows:
                for column, text in zip(columns, texts, strict=True):
                    try:
                        if text is not None:
                            json.loads(text)
                    except ValueError:
                        yield f"{column} of {name} in {table} cannot be read"


def _marks(database: Database) -> Iterator[str]:
    """Tags and labels stand in two places."""
    there: dict[int, set[str]] = {}
    for rows in database.stream("SELECT number, mark FROM job_marks"):
        for number, mark in rows:
            there.setdefault(number, set()).add(mark)
    for rows in database.stream("SELECT number, id, tags, labels FROM jobs"):
        for number, id, tags, labels in rows:
            try:
                wanted = {*map(tag_mark, json.loads(tags or "[]"))}
                wanted |= {label_mark(key, value) for key, value in json.loads(labels or "{}").items()}
            except ValueError:
                continue  # told before
            if wanted != there.get(number, set()):
                yield f"job {id}: its tags and labels are not those that it is found by"


def _jobs(database: Database) -> Iterator[str]:
    for (id,) in database.read("SELECT id FROM jobs WHERE NOT EXISTS (SELECT 1 FROM job_texts t WHERE t.number = jobs.number)"):
        yield f"job {id}: its file and its plan are missing"
    for rows in database.stream("SELECT id, state, started, ended, folder FROM jobs"):
        for id, state, started, ended, folder in rows:
            final = state in ("STOPPED", "SUCCEEDED", "FAILED")
            if final and ended is None:
                yield f"job {id}: is {state} but has no time of its end"
            if not final and ended is not None:
                yield f"job {id}: is {state} but has a time of its end"
            if folder and started is not None and not os.path.isdir(folder):
                yield f"job {id}: its folder {folder} is gone"


def _groups(store: ServerStore) -> Iterator[str]:
    groups = {group.groupname for group in store.accounts.groups()}
    for username, grouplist in store.database.read("SELECT username, grouplist FROM users ORDER BY username"):
        for name in json.loads(grouplist):
            if name not in groups:
                yield f"user {username}: is in group {name}, which is not there"


def _secrets(store: ServerStore, box: SecretBox) -> Iterator[str]:
    try:
        if store.meta.get(KEY_CHECK) is not None:  # else no server has come that far, and nothing is to be changed here
            check_key(store, box)
    except StoreError as error:
        yield str(error)
        return
    for rows in store.database.stream("SELECT id, secrets FROM job_texts JOIN jobs USING (number) WHERE secrets IS NOT NULL"):
        for id, kept in rows:
            try:
                box.open(id, bytes(kept))
            except StoreError as error:
                yield str(error)
    yield from sealed_columns.findings(store.database, box)


def check_key(store: ServerStore, box: SecretBox) -> None:
    """Is this the key that this server seals with? The first time it is remembered (not the key, a text sealed with it)."""
    kept = store.meta.get(KEY_CHECK)
    if kept is None:
        kept = store.meta.first(KEY_CHECK, box.check_value())
    if not box.fits(kept):
        raise StoreError(f"{box.file}: this is not the key that the secrets of this server are sealed with; put that one back")


def reseal(store: ServerStore, box: SecretBox) -> int:
    """Seal all secrets with the first key; how many. Can be done again after a failure."""
    check_key(store, box)
    count, last = sealed_columns.seal_all(store.database, box), 0
    while True:
        rows = store.database.read(
            "SELECT number, id, secrets FROM job_texts JOIN jobs USING (number)"
            " WHERE secrets IS NOT NULL AND number > ? ORDER BY number LIMIT 500",
            (last,),
        )
        if not rows:
            break
        fresh = [(box.reseal(id, bytes(kept)), number) for number, id, kept in rows]
        with store.batch() as batch:
            batch.execute_many("UPDATE job_texts SET secrets = ? WHERE number = ?", fresh)
        last = rows[-1][0]
        count += len(rows)
    store.meta.set(KEY_CHECK, box.check_value())
    return count
