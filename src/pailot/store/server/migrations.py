"""The steps by which the server's database came to its present form.

SQLite counts them in `PRAGMA user_version`, PostgreSQL in the one row of `pailot_form`. A step that was released is
never changed: a new form is a new step at the end. `BLOB` and `NUMBER` are put into PostgreSQL's words there.
"""

from __future__ import annotations

from .. import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .database import Database

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    # 1: the first form. A job is known to the world by its id and to other tables by its number, which only grows.
    (
        """
        CREATE TABLE jobs (
            number NUMBER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            username TEXT NOT NULL,
            name TEXT NOT NULL,
            submitted DOUBLE PRECISION NOT NULL,
            vc TEXT NOT NULL,
            state TEXT NOT NULL,
            execution_type TEXT NOT NULL,
            priority TEXT,
            started DOUBLE PRECISION,
            ended DOUBLE PRECISION,
            attempts BIGINT NOT NULL,
            retries BIGINT NOT NULL,
            user_retries BIGINT NOT NULL,
            platform_retries BIGINT NOT NULL,
            exit_code BIGINT,
            reason TEXT NOT NULL,
            tasks BIGINT NOT NULL,
            roles BIGINT NOT NULL,
            gpus BIGINT NOT NULL,
            cpus DOUBLE PRECISION NOT NULL,
            memory_mb BIGINT NOT NULL,
            folder TEXT NOT NULL,
            engine TEXT NOT NULL,
            submit_from TEXT NOT NULL,
            code TEXT,
            tags TEXT,
            labels TEXT,
            more TEXT,
            UNIQUE (username, name)
        )
        """,
        "CREATE INDEX jobs_unfinished ON jobs (number) WHERE state NOT IN ('STOPPED', 'SUCCEEDED', 'FAILED')",
        "CREATE INDEX jobs_by_name ON jobs (name, number)",
        "CREATE INDEX jobs_by_end ON jobs (ended)",
        "CREATE INDEX jobs_by_code ON jobs (code) WHERE code IS NOT NULL",
        """
        CREATE TABLE job_texts (
            number BIGINT PRIMARY KEY REFERENCES jobs (number) ON DELETE CASCADE,
            config TEXT NOT NULL,
            plan TEXT NOT NULL,
            secrets BLOB
        )
        """,
        "CREATE INDEX job_texts_sealed ON job_texts (number) WHERE secrets IS NOT NULL",
        # Tags as 't:tag', labels as 'l:[key, value]'.
        """
        CREATE TABLE job_marks (
            mark TEXT NOT NULL,
            number BIGINT NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
            PRIMARY KEY (mark, number)
        )
        """,
        "CREATE INDEX job_marks_by_job ON job_marks (number)",
        """
        CREATE TABLE job_events (
            number BIGINT NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
            sequence BIGINT NOT NULL,
            data TEXT NOT NULL,
            PRIMARY KEY (number, sequence)
        )
        """,
        """
        CREATE TABLE users (
            username TEXT PRIMARY KEY,
            email TEXT NOT NULL,
            password_hash TEXT NOT NULL,
            grouplist TEXT NOT NULL,
            extension TEXT NOT NULL,
            unix_user TEXT,
            created DOUBLE PRECISION NOT NULL
        )
        """,
        """
        CREATE TABLE user_groups (
            groupname TEXT PRIMARY KEY,
            description TEXT NOT NULL,
            external_name TEXT NOT NULL,
            extension TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE tokens (
            digest TEXT PRIMARY KEY,
            username TEXT NOT NULL REFERENCES users (username) ON DELETE CASCADE,
            kind TEXT NOT NULL,
            issued DOUBLE PRECISION NOT NULL,
            expires DOUBLE PRECISION,
            claims TEXT NOT NULL
        )
        """,
        "CREATE INDEX tokens_by_user ON tokens (username)",
        "CREATE INDEX tokens_by_end ON tokens (expires) WHERE expires IS NOT NULL",
        "CREATE TABLE login_failures (who TEXT PRIMARY KEY, count BIGINT NOT NULL, last DOUBLE PRECISION NOT NULL)",
        "CREATE TABLE storages (name TEXT PRIMARY KEY, data TEXT NOT NULL)",
        "CREATE TABLE virtual_clusters (name TEXT PRIMARY KEY, data TEXT NOT NULL)",
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        """
        CREATE TABLE outbox (
            number NUMBER PRIMARY KEY,
            job TEXT NOT NULL,
            kind TEXT NOT NULL,
            payload TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            due DOUBLE PRECISION NOT NULL,
            attempts BIGINT NOT NULL,
            error TEXT NOT NULL
        )
        """,
        "CREATE INDEX outbox_by_due ON outbox (due)",
        """
        CREATE TABLE code_blobs (
            digest TEXT PRIMARY KEY,
            size BIGINT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            used DOUBLE PRECISION NOT NULL
        )
        """,
        "CREATE INDEX code_blobs_by_use ON code_blobs (used)",
    ),
    # 2: whose account a person of an identity provider has.
    (
        """
        CREATE TABLE identities (
            issuer TEXT NOT NULL,
            subject TEXT NOT NULL,
            username TEXT NOT NULL REFERENCES users (username) ON DELETE CASCADE,
            created DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (issuer, subject),
            UNIQUE (issuer, username)
        )
        """,
        "CREATE INDEX identities_by_user ON identities (username)",
    ),
    # 3: the library. A text stays for a while when its entry goes: jobs that were submitted with it can run again.
    (
        """
        CREATE TABLE library_texts (
            digest TEXT PRIMARY KEY,
            text TEXT NOT NULL,
            retired DOUBLE PRECISION
        )
        """,
        """
        CREATE TABLE library (
            name TEXT NOT NULL,
            version TEXT NOT NULL,
            type TEXT NOT NULL,
            owner TEXT NOT NULL,
            about TEXT NOT NULL,
            digest TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            updated DOUBLE PRECISION NOT NULL,
            uses BIGINT NOT NULL,
            used DOUBLE PRECISION,
            PRIMARY KEY (name, version)
        )
        """,
    ),
)


def migrate(database: Database, steps: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the database to the newest form; each step happens wholly or not at all. SQLite's file is copied before."""
    copied = database.version() == 0  # there is nothing to copy yet
    while True:
        version = database.version()
        _check_not_newer(database, version, steps)
        if version == len(steps):
            return
        if not copied:
            database.keep_copy(version)
            copied = True
        with database.write() as batch:
            if database.version() != version:
                continue  # another process was faster
            for statement in steps[version]:
                batch.execute(database.words(statement))
            database.set_version(version + 1)


def check_form(database: Database, steps: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """StoreError unless it has the newest form; nothing is changed."""
    version = database.version()
    _check_not_newer(database, version, steps)
    if not version:
        raise StoreError(f"{database.place}: holds nothing of a server; pailot serve fills it")
    if version < len(steps):
        raise StoreError(f"{database.place}: has the older form {version}; the next start brings it to form {len(steps)}")


def _check_not_newer(database: Database, version: int, steps: Sequence[Sequence[str]]) -> None:
    if version > len(steps):
        raise StoreError(
            f"{database.place}: written by a newer Pailot (form {version}, this one knows {len(steps)}); upgrade Pailot"
        )
