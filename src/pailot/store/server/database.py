"""One way to ask two databases. SQLite is here, PostgreSQL in `postgres`.

Writes go through one connection, one thread at a time; every read takes a connection of its own while it lasts.
Statements are written for both: `?` marks a value, and no text in them holds a question mark.
"""

from __future__ import annotations

import fcntl
import math
import os
import sqlite3
import threading
from secrets import token_hex

from .. import StoreError
from ..sqlite_errors import reason
from .models import BadValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, NoReturn

    Row = tuple[Any, ...]

BUSY_SECONDS = 10.0
WRITER_CACHE_KB, READER_CACHE_KB = 2048, 512
"""Pages of the file that a connection keeps to itself; the system keeps the rest, for all of them."""
IDLE_CONNECTIONS = 4
"""Connections that are kept for the next reader; a crowd of readers may have needed more."""
DAMAGED = "the server's database is damaged ({}); put a copy of it back"
LOST = "{}: another server has taken this database over; this one stops"
FENCE = "server"
"""The name in `meta` of the server that writes."""
TAKEN = "{}: another server uses this database already; stop it, or choose another one (setting database)"
INTEGER_LIMIT = 1 << 63


class Duplicate(Exception):
    """A row with this key is there already; the caller knows what that means."""


def checked(value: Any) -> Any:
    """The value, if both databases give it back as it is."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        if "\0" in value:
            raise BadValue(f"a text with a null character cannot be kept: {value[:60]!r}")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadValue(f"a text with half of a character cannot be kept: {value[:60]!r}") from None
        return value
    if isinstance(value, int):
        if not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
            raise BadValue(f"a number of this size cannot be kept: {value}")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadValue(f"this is not a number that can be kept: {value}")
        return value
    raise TypeError(f"{type(value).__name__} is no value of a database")


class Batch:
    """A transaction of this thread; within another one, a part of it that can fail alone."""

    def __init__(self, database: Database, *, one_statement: bool) -> None:
        self.database, self.one_statement = database, one_statement

    def __enter__(self) -> Batch:
        self.database._enter(marked=not (self.one_statement and self.database.statements_fail_alone))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.database._leave(failed=kind is not None)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> tuple[list[Row], int]:
        """The rows that the statement returns, and how many it changed. Raises `Duplicate` for a second row with a key."""
        return self.database._execute(sql, tuple(map(checked, values)))

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """The same statement for many rows."""
        if rows:
            self.database._execute_many(sql, [tuple(map(checked, row)) for row in rows])

    def when_kept(self, work: Callable[[], None]) -> None:
        """Call this once the transaction is durable, before another one begins; never if it failed."""
        self.database._after.append(work)


class Database:
    """What both databases have in common: who writes when, and what follows a commit."""

    kind = ""
    place = ""
    statements_fail_alone = False
    """Whether the transaction goes on after a statement that failed, as if that had not been."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._depth = 0
        self._marks: list[tuple[int, bool]] = []
        """Of each part of the transaction: how many were to be called after it before, and whether it has a savepoint."""
        self._after: list[Callable[[], None]] = []
        self._broken: StoreError | None = None
        self._closed = False
        self._fence = ""
        self.on_lost: Callable[[str], None] = lambda _: None
        """Called with the reason when another server has it: what this process remembers of it is no longer true."""

    def raise_fence(self) -> None:
        """Write down that this server is the one that writes. From now on every transaction of another one before it fails.

        A lock says that no other server is there now. The fence also says that none was there meanwhile.
        """
        fence = token_hex(16)
        with self.write() as batch:
            batch.execute(
                "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (FENCE, fence),
            )
        self._fence = fence

    def _check_fence(self) -> None:
        """At the begin of a transaction: StoreError if another server has written since."""
        if self._fence and self._execute("SELECT value FROM meta WHERE name = ?", (FENCE,))[0] != [(self._fence,)]:
            self._rollback()
            self._lose()

    def _lose(self) -> NoReturn:
        self.close()  # what we remember of it is no longer true
        said = LOST.format(self.place)
        self.on_lost(said)
        raise StoreError(said)

    def claim(self) -> None:
        """Have it for one server alone, until it is closed or its process ends; StoreError where another one has it."""
        raise NotImplementedError

    def write(self, *, one_statement: bool = False) -> Batch:
        """`with database.write() as batch:` everything in it is kept together, or nothing.

        Who executes no more than one statement says so: where that fails alone, it needs no savepoint.
        """
        return Batch(self, one_statement=one_statement)

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Rows; within a transaction of this thread as that one sees them."""
        bound = tuple(map(checked, values))
        if self._owner == threading.get_ident():
            return self._execute(sql, bound)[0]
        return self._read(sql, bound)

    def one(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        rows = self.read(sql, values)
        return rows[0] if rows else None

    def stream(self, sql: str, values: Sequence[Any] = (), size: int = 5_000) -> Iterator[list[Row]]:
        """Many rows, some at a time."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    # For migrations

    def version(self) -> int:
        """How many migrations the database has behind it."""
        raise NotImplementedError

    def set_version(self, version: int) -> None:
        """Within the transaction of the migration."""
        raise NotImplementedError

    def keep_copy(self, version: int) -> None:
        """Before a migration, where the database is ours to copy."""

    def words(self, sql: str) -> str:
        """The definition of a table in this database's words."""
        raise NotImplementedError

    # For Batch

    def _enter(self, *, marked: bool = True) -> None:
        self._lock.acquire()
        try:
            if self._closed:
                raise StoreError(f"{self.place}: the store is closed")
            if self._depth == 0:
                self._after = []
                self._broken = None
                self._begin()
                self._owner = threading.get_ident()
            else:
                self._check_whole()
                if marked:
                    self._execute(f"SAVEPOINT part{self._depth}", ())
                self._marks.append((len(self._after), marked))
            self._depth += 1
        except BaseException:
            self._lock.release()
            raise

    def _leave(self, *, failed: bool) -> None:
        try:
            self._depth -= 1
            if self._depth:
                kept, marked = self._marks.pop()
                if failed:
                    del self._after[kept:]
                    if marked and self._broken is None:
                        self._execute(f"ROLLBACK TO part{self._depth}", ())
                if marked and self._broken is None:
                    self._execute(f"RELEASE part{self._depth}", ())
                return
            self._owner = None
            if failed or self._broken is not None:
                self._rollback()
                broken, self._broken = self._broken, None
                if broken is not None and not failed:
                    raise StoreError(str(broken))
                return
            self._commit()
            after, self._after = self._after, []
            for work in after:
                work()
        finally:
            self._lock.release()

    def _check_whole(self) -> None:
        if self._broken is not None:
            raise StoreError(str(self._broken))

    # For each of the databases

    def _begin(self) -> None:
        raise NotImplementedError

    def _commit(self) -> None:
        raise NotImplementedError

    def _rollback(self) -> None:
        raise NotImplementedError

    def _execute(self, sql: str, values: Row) -> tuple[list[Row], int]:
        raise NotImplementedError

    def _execute_many(self, sql: str, rows: list[Row]) -> None:
        raise NotImplementedError

    def _read(self, sql: str, values: Row) -> list[Row]:
        raise NotImplementedError


class SQLite(Database):
    """A file on this machine, in WAL mode; what was acknowledged survives a power cut."""

    kind = "sqlite"
    statements_fail_alone = True

    def __init__(self, path: str) -> None:
        super().__init__()
        self.place = self.path = path
        self._claim = -1
        self._free: list[sqlite3.Connection] = []
        try:
            os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
            new = not os.path.exists(path)
            self._writer = self._connect(WRITER_CACHE_KB)
            if new:
                os.chmod(path, 0o600)
        except (sqlite3.Error, OSError) as error:
            raise self._said(error) from None

    def claim(self) -> None:
        try:
            self._claim = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._claim)
            self._claim = -1
            raise StoreError(TAKEN.format(self.place)) from None
        except OSError as error:
            raise self._said(error) from None

    def _connect(self, cache_kb: int = READER_CACHE_KB) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA journal_size_limit = 67108864")  # what a long transaction needed is given back
            connection.execute(f"PRAGMA cache_size = -{cache_kb}")
        except BaseException:
            connection.close()
            raise
        return connection

    def stream(self, sql: str, values: Sequence[Any] = (), size: int = 5_000) -> Iterator[list[Row]]:
        connection = self._borrow()
        try:
            cursor = connection.execute(sql, tuple(map(checked, values)))
            while rows := cursor.fetchmany(size):
                yield rows
            cursor.close()
        except sqlite3.Error as error:
            raise self._said(error) from None
        finally:
            self._give_back(connection)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                for connection in (*self._free, self._writer):
                    _close(connection)
                self._free.clear()
                if self._claim >= 0:
                    os.close(self._claim)

    def copy_to(self, file: str) -> None:
        """A copy of the whole database as it is at this moment."""
        try:
            target = sqlite3.connect(file)
            try:
                os.chmod(file, 0o600)
                self._writer.backup(target)
            finally:
                target.close()
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"{file}: the copy cannot be made: {error}") from None

    def version(self) -> int:
        row = self.one("PRAGMA user_version")
        assert row is not None
        return int(row[0])

    def set_version(self, version: int) -> None:
        self._execute(f"PRAGMA user_version = {version}", ())

    def keep_copy(self, version: int) -> None:
        self.copy_to(f"{self.path}.form{version}")

    def words(self, sql: str) -> str:
        return sql.replace("NUMBER PRIMARY KEY", "INTEGER PRIMARY KEY")

    def _borrow(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{self.place}: the store is closed")
        try:
            return self._free.pop()
        except IndexError:
            pass  # all of them are in use
        try:
            return self._connect()
        except sqlite3.Error as error:
            raise self._said(error) from None

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if len(self._free) < IDLE_CONNECTIONS:
            self._free.append(connection)
            if not self._closed:
                return
        _close(connection)

    def _read(self, sql: str, values: Row) -> list[Row]:
        connection = self._borrow()
        try:
            return connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._said(error) from None
        finally:
            self._give_back(connection)

    def _begin(self) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._said(error) from None
        self._check_fence()

    def _commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            self._rollback()
            raise self._said(error) from None

    def _rollback(self) -> None:
        if self._writer.in_transaction:
            try:
                self._writer.execute("ROLLBACK")
            except sqlite3.Error:
                pass  # the failure itself is told

    def _execute(self, sql: str, values: Row) -> tuple[list[Row], int]:
        self._check_whole()
        try:
            cursor = self._writer.execute(sql, values)
            return cursor.fetchall(), cursor.rowcount
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE):
                raise Duplicate(str(error)) from None
            raise self._fail(error) from None
        except sqlite3.Error as error:
            raise self._fail(error) from None

    def _execute_many(self, sql: str, rows: list[Row]) -> None:
        self._check_whole()
        try:
            self._writer.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._fail(error) from None

    def _fail(self, error: sqlite3.Error) -> StoreError:
        """After a failure SQLite may have undone the whole transaction: nothing more of it is kept."""
        said = self._said(error)
        if not self._writer.in_transaction and self._depth:
            self._broken = said
        return said

    def _said(self, error: Exception) -> StoreError:
        return StoreError(f"{self.path}: {reason(error, self.path, busy_seconds=BUSY_SECONDS, damage=DAMAGED)}")


def _close(connection: sqlite3.Connection) -> None:
    try:
        connection.close()
    except sqlite3.Error:
        pass  # what was acknowledged is on the disk
