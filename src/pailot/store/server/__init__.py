"""What the server remembers: jobs, accounts, messages, in SQLite or PostgreSQL.

    with ServerStore.open("sqlite:////srv/pailot/server.db") as store:
        store.jobs.add(JobRecord(new_id(), "ann", "train", submitted=time()), config_text, plan_json)
        store.jobs.list(JobQuery(states=("RUNNING",), order="jobName", descending=False, want_total=True))
        with store.batch():                      # one transaction, one wait for the disk
            store.jobs.update(id, state="SUCCEEDED", ended=time())
            store.outbox.add(id, "webhook", payload, time())

Everything here waits for the disk and may be called from any thread. A call inside `batch()` that fails alone
(NameTaken, say) leaves the rest of the batch as it is. Whatever the database cannot do is one line of StoreError.
"""

from __future__ import annotations

from .. import StoreError
from ..index import new_id
from .accounts import Accounts
from .database import SQLite
from .integrity import verify
from .jobs import Jobs
from .library import LibraryRows
from .migrations import check_form, migrate
from .models import (
    APPLICATION,
    BROWSER,
    ORDERS,
    PRIORITIES,
    SESSION,
    BadValue,
    CodeBlob,
    Failures,
    Group,
    JobPage,
    JobQuery,
    JobRecord,
    LibraryRow,
    NameTaken,
    NoSuchRecord,
    Notice,
    Token,
    User,
)
from .postgres import PostgreSQL
from .rest import Code, Events, Meta, Outbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..secrets import SecretBox
    from .database import Batch, Database

__all__ = [
    "APPLICATION",
    "BROWSER",
    "ORDERS",
    "PRIORITIES",
    "SESSION",
    "BadValue",
    "CodeBlob",
    "Failures",
    "Group",
    "JobPage",
    "JobQuery",
    "JobRecord",
    "LibraryRow",
    "NameTaken",
    "NoSuchRecord",
    "Notice",
    "ServerStore",
    "StoreError",
    "Token",
    "User",
    "new_id",
]


class ServerStore:
    """The open database of a server; `open` makes one."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.jobs = Jobs(database)
        self.events = Events(database)
        self.accounts = Accounts(database)
        self.outbox = Outbox(database)
        self.code = Code(database)
        self.library = LibraryRows(database)
        self.meta = Meta(database)

    @classmethod
    def open(cls, where: str, *, alone: bool = False, as_it_is: bool = False) -> ServerStore:
        """A path, `sqlite:///path` or `postgresql://…`; made if it is not there, and brought to the newest form.

        `alone` is for a server: StoreError where another server has it. `as_it_is` is for who only looks: StoreError where it
        has another form.
        """
        database = _connect(where)
        try:
            if alone:
                database.claim()
            if as_it_is:
                check_form(database)
            else:
                migrate(database)
            if alone:
                database.raise_fence()
            return cls(database)
        except BaseException:
            database.close()
            raise

    def __repr__(self) -> str:
        return f"ServerStore({self.place!r})"

    @property
    def place(self) -> str:
        """Where the database is, without any password."""
        return self.database.place

    def batch(self) -> Batch:
        """`with store.batch():` everything written in it by this thread is kept together, or nothing."""
        return self.database.write()

    def hold(self) -> None:
        """Look whether this server still has the database. StoreError where it has not, or cannot be reached."""
        with self.database.write():
            pass

    def verify(self, box: SecretBox | None = None) -> list[str]:
        """Everything that is wrong with what is kept, a line each; with the keys also what is sealed."""
        return verify(self, box)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> ServerStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connect(where: str) -> Database:
    scheme, separator, rest = where.partition("://")
    if not separator:
        return SQLite(where)
    if scheme == "sqlite":
        if not rest.startswith("/") or rest == "/":
            raise StoreError(f"{where}: write sqlite:///path, with four slashes where the path begins at the root")
        return SQLite(rest[1:])
    if scheme in ("postgresql", "postgres"):
        return PostgreSQL(where)
    raise StoreError(f"{scheme}: no such kind of database: write a path, sqlite:///path or postgresql://user@host/name")
