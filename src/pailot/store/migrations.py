"""The steps by which the index came to its present form.

`PRAGMA user_version` says how many of them a file has behind it. A step that was released is never
changed: a new form is a new step at the end.
"""

from __future__ import annotations

from . import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from sqlite3 import Connection

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    # 1: the first form. Rows lie in the order of their ids, which is the order of time; each index ends with the id.
    (
        """
        CREATE TABLE jobs (
            id TEXT NOT NULL PRIMARY KEY,
            name TEXT NOT NULL,
            user TEXT NOT NULL,
            state TEXT NOT NULL,
            engine TEXT NOT NULL,
            folder TEXT NOT NULL,
            submitted REAL NOT NULL,
            started REAL,
            ended REAL,
            tasks INTEGER NOT NULL,
            retries INTEGER NOT NULL,
            exit_code INTEGER,
            reason TEXT NOT NULL,
            vc TEXT NOT NULL,
            labels TEXT,
            tags TEXT
        ) WITHOUT ROWID
        """,
        "CREATE INDEX jobs_by_name ON jobs (name, user, id)",
        "CREATE INDEX jobs_by_user ON jobs (user, state, id)",
        "CREATE INDEX jobs_by_state ON jobs (state, id)",
        "CREATE INDEX jobs_unfinished ON jobs (name, user, id) WHERE state NOT IN ('STOPPED', 'SUCCEEDED', 'FAILED')",
    ),
)


def migrate(connection: Connection, file: str, steps: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the file to the newest form; each step happens wholly or not at all."""
    while True:
        version = _version(connection)
        if version > len(steps):
            raise StoreError(
                f"{file}: written by a newer Pailot (form {version}, this one knows {len(steps)}); upgrade Pailot to use it"
            )
        if version == len(steps):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:  # else another process was faster
                for statement in steps[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _version(connection: Connection) -> int:
    row: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
    return row[0]
