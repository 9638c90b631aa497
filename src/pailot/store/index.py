"""The index of runs: finds one among a million in well under a millisecond.

The truth about a run is in its job folder. What is here is a copy for finding and listing, so a damaged or
lost index costs nothing but the time to make it anew.

    with Index(path) as index:
        index.add(JobRow(id=new_id(), name="train", user="ann", state="RUNNING", engine="local", folder=..., submitted=...))
        index.page(states=("RUNNING",))
"""

from __future__ import annotations

import fcntl
import os
from _thread import allocate_lock  # documented, and in every Python; `threading` is kept away from quick commands
from time import monotonic, sleep, time_ns

from ..lifecycle.states import JOB_STATES
from ..values import Value
from . import StoreError
from .migrations import migrate

try:  # `sqlite3` around it loads datetime for adapters that we do not use: 2.5 ms, and 0.7 ms without (Python 3.11)
    import _sqlite3 as sqlite3
except ImportError:  # another Python than CPython
    import sqlite3  # type: ignore[no-redef]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeVar

    from ..runfolder.records import VerdictRecord

    Result = TypeVar("Result")

BUSY_SECONDS = 10.0
SHORTEST_PREFIX = 6
SHARED_FILE_BYTES = 32 * 1024
"""What SQLite makes beside the file for those who use it at the same time."""
REBUILD = "pailot gc --rebuild-index"
DAMAGED = f"the index of runs is damaged ({{}}); make it anew with: {REBUILD}"

UNFINISHED = "state NOT IN ('STOPPED', 'SUCCEEDED', 'FAILED')"  # as the partial index says it, word for word

LAST = "\U0010ffff"  # sorts behind every id
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no letter looks like another

_newest_stamp = 0
_left_by_fork: list[sqlite3.Connection] = []  # SQLite forbids even to close what a parent process opened


class JobRow(Value):
    """What the index knows about one run; times are seconds since 1970."""

    id: str
    name: str
    user: str
    state: str
    engine: str
    folder: str
    submitted: float
    started: float | None = None
    ended: float | None = None
    tasks: int = 0
    retries: int = 0
    exit_code: int | None = None
    reason: str = ""
    vc: str = ""
    labels: Mapping[str, str] | None = None
    tags: tuple[str, ...] = ()


class NameInUse(StoreError):
    """A run under this name is still active; `row` is that run."""

    def __init__(self, row: JobRow) -> None:
        self.row = row
        super().__init__(f"job '{row.name}' of {row.user} is still {row.state.lower()} (id {row.id})")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row,)


FIELDS = JobRow._fields
COLUMNS = ", ".join(FIELDS)
JSON_FROM = FIELDS.index("labels")
INSERT = f"INSERT INTO jobs ({COLUMNS}) VALUES ({', '.join('?' * len(FIELDS))})"  # noqa: S608  # our own names

LATEST_OF_USER = f"SELECT {COLUMNS} FROM jobs INDEXED BY jobs_by_name WHERE name = ? AND user = ? ORDER BY id DESC LIMIT 1"  # noqa: S608
# Steps from user to user, however many runs each has.
LATEST_OF_ANY = f"""
    WITH RECURSIVE owner(user) AS (
        SELECT min(user) FROM jobs WHERE name = ?1
        UNION ALL
        SELECT (SELECT min(user) FROM jobs WHERE name = ?1 AND user > owner.user) FROM owner WHERE owner.user IS NOT NULL
    )
    SELECT {COLUMNS} FROM jobs WHERE id = (
        SELECT max((SELECT max(id) FROM jobs WHERE name = ?1 AND user = owner.user)) FROM owner
    )
"""  # noqa: S608
ACTIVE = f"""
    SELECT {COLUMNS} FROM jobs INDEXED BY jobs_unfinished
    WHERE name = ? AND user = ? AND {UNFINISHED} ORDER BY id DESC LIMIT 1
"""  # noqa: S608
ALL_UNFINISHED = f"SELECT {COLUMNS} FROM jobs INDEXED BY jobs_unfinished WHERE {UNFINISHED} ORDER BY id"  # noqa: S608


def new_id() -> str:
    """An id for a run: 16 characters that sort by time; within a process no later one sorts before an earlier one."""
    global _newest_stamp  # noqa: PLW0603  # the order within this process

    # 50 bits of 10 microseconds last until 2326; the first 6 characters change every 10 seconds.
    _newest_stamp = max(time_ns() // 10_000, _newest_stamp + 1)
    number = _newest_stamp << 30 | int.from_bytes(os.urandom(4), "big") >> 2
    return "".join([ALPHABET[number >> shift & 31] for shift in range(75, -1, -5)])


class Index:
    """The runs of one home. Opens its file when first asked; may be used by several threads, and after a fork."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._process = os.getpid()
        self._lock = allocate_lock()

    def __repr__(self) -> str:
        return f"Index({self.path!r})"

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; it is opened again when needed."""
        self._notice_fork()
        with self._lock:
            self._disconnect()

    def exists(self) -> bool:
        """Is there a file? Without one every search finds nothing, and `rebuild` or the first `add` makes it."""
        return os.path.exists(self.path)

    # Writing

    def add(self, row: JobRow, *, exclusive: bool = False) -> None:
        """Remember a run. With `exclusive`, only if no run of that user is active under its name, else NameInUse."""
        values = _to_sql(row)

        def insert(connection: sqlite3.Connection) -> None:
            if exclusive:
                other = connection.execute(ACTIVE, (_text(row.name), _text(row.user))).fetchone()
                if other:
                    raise NameInUse(_from_sql(other))
            try:
                connection.execute(INSERT, values)
            except sqlite3.IntegrityError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
                    raise
                raise StoreError(f"{self.path}: a job with id {row.id} is there already") from None

        self._write(insert)

    def update(self, id: str, **changes: Any) -> bool:
        """Change some fields of a run; False if the index does not know it."""
        unknown = [name for name in changes if name not in FIELDS or name == "id"]
        if unknown:
            raise TypeError(f"a row has no field {unknown[0]!r} that can be changed")
        if not changes:
            return self.get(id) is not None
        _check_state(changes.get("state", JOB_STATES[0]))
        assignments = ", ".join(f"{name} = ?" for name in changes)
        values = (*(_column(name, value) for name, value in changes.items()), _text(id))
        sql = f"UPDATE jobs SET {assignments} WHERE id = ?"  # noqa: S608  # the names were checked
        return self._write(lambda connection: connection.execute(sql, values).rowcount > 0)

    def record_end(self, id: str, verdict: VerdictRecord) -> None:
        """Keep how a run has ended. Where that fails, its folder still says it, and the next look repairs the row."""
        try:
            self.update(
                id,
                state=verdict.state,
                started=verdict.started,
                ended=verdict.ended,
                exit_code=verdict.exit_code,
                reason=verdict.reason,
                retries=verdict.retried,
            )
        except StoreError:
            pass  # a full disk, for instance

    def remove(self, ids: Iterable[str]) -> int:
        """Forget runs; how many there were. Others may write in between when there are many."""
        waiting = [(_text(id),) for id in ids]
        if not self.exists():
            return 0
        return sum(self._remove(waiting[start : start + 1000]) for start in range(0, len(waiting), 1000))

    def rebuild(self, folders: Iterable[JobRow]) -> int:
        """Make the file anew, with these rows; how many. A file in the way is set aside as `<path>.damaged`.

        Other processes see the old index until the new one is complete, then that one.
        """
        self._notice_fork()
        fresh = f"{self.path}.{os.getpid()}.{os.urandom(4).hex()}.new"
        try:
            count = self._guarded(lambda: _fill(fresh, folders))
            with self._lock:
                self._disconnect()
                self._guarded(lambda: _swap(fresh, self.path))
        finally:
            _unlink(fresh, fresh + "-wal", fresh + "-shm")
        return count

    # Finding

    def get(self, id: str) -> JobRow | None:
        """The run with exactly this id."""
        return self._one(f"SELECT {COLUMNS} FROM jobs WHERE id = ?", (_text(id),))  # noqa: S608

    def latest(self, name: str, user: str | None = None) -> JobRow | None:
        """The newest run under a name, of one user or of any."""
        if user is None:
            return self._one(LATEST_OF_ANY, (_text(name),))
        return self._one(LATEST_OF_USER, (_text(name), _text(user)))

    def active(self, name: str, user: str) -> JobRow | None:
        """The run that still holds this name."""
        return self._one(ACTIVE, (_text(name), _text(user)))

    def resolve(self, text: str, user: str | None = None) -> JobRow | None:
        """The run a person means: an id, `user~name` or a name (their newest run), or at least 6 characters an id begins with.

        A name goes before the beginning of an id: the id can always be written longer.
        """
        row = self.get(text)
        owner, tilde, name = text.partition("~")
        if row is None and tilde:
            row = self.latest(name, owner)
        if row is None:
            row = self.latest(text, user)
        if row is None and len(text) >= SHORTEST_PREFIX:
            sql = f"SELECT {COLUMNS} FROM jobs WHERE id > ? AND id < ? ORDER BY id DESC LIMIT 4"  # noqa: S608
            rows = self._read(sql, (_text(text), _text(text + LAST)))
            if len(rows) > 1:
                some = ", ".join(f"{row.id} ({row.name})" for row in rows[:3]) + (", ..." if len(rows) > 3 else "")
                raise StoreError(f"the ids of several jobs begin with '{text}': {some}; write more of it")
            row = rows[0] if rows else None
        return row

    def page(
        self,
        states: Sequence[str] = (),
        name_like: str = "",
        user: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[JobRow]:
        """Runs, newest first: in one of these states, with this text in the name (case ignored), of this user.

        `before` is the id of the last row of the page before.
        """
        if limit <= 0:
            return []
        return self._read(*page_query(states, name_like, user, limit, before))

    def unfinished(self) -> list[JobRow]:
        """Every run that has not ended, oldest first."""
        return self._read(ALL_UNFINISHED, ())

    def count(self) -> int:
        """How many runs there are."""
        if not self.exists():
            return 0
        rows = self._ask(lambda connection: connection.execute("SELECT count(*) FROM jobs").fetchall())
        number: int = rows[0][0]
        return number

    # The file

    def _one(self, sql: str, values: tuple[Any, ...]) -> JobRow | None:
        rows = self._read(sql, values)
        return rows[0] if rows else None

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[JobRow]:
        if not self.exists():
            return []  # looking leaves nothing behind
        return [_from_sql(row) for row in self._ask(lambda connection: connection.execute(sql, values).fetchall())]

    def _write(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def transaction(connection: sqlite3.Connection) -> Result:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
                return result
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

        return self._ask(transaction)

    def _ask(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        self._notice_fork()
        with self._lock:
            return self._guarded(lambda: work(self._connect()))

    def _guarded(self, work: Callable[[], Result]) -> Result:
        """Every failure of the database as one line in our words."""
        try:
            return work()
        except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
            raise  # a mistake of ours, not of the file
        except (sqlite3.Error, OSError) as error:
            self._disconnect()
            from .sqlite_errors import reason

            missing = (sqlite3.SQLITE_ERROR,)  # a table, say
            told = reason(error, self.path, busy_seconds=BUSY_SECONDS, damage=DAMAGED, also_damage=missing)
            raise StoreError(f"{self.path}: {told}") from None

    def _notice_fork(self) -> None:
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = allocate_lock()  # a thread of the parent may have held the other
            if self._connection is not None:
                _left_by_fork.append(self._connection)
                self._connection = None

    def _disconnect(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                connection.close()
            except sqlite3.Error:
                pass  # what was acknowledged is on the disk

    def _connect(self) -> sqlite3.Connection:
        if self._connection is not None:
            if _identity(self.path) == self._file:
                return self._connection
            self._disconnect()  # another process replaced the file
        os.makedirs(os.path.dirname(self.path) or ".", 0o700, exist_ok=True)
        with _Gate(self.path):
            try:
                self._connection = open_file(self.path)
            except (sqlite3.OperationalError, OSError):
                if not _without_space(self.path):
                    raise
                self._connection = open_file(self.path, alone=True)
            self._file = _identity(self.path)
        return self._connection

    def _remove(self, some: list[tuple[Any]]) -> int:
        return self._write(lambda connection: connection.executemany("DELETE FROM jobs WHERE id = ?", some).rowcount)


class _Gate:
    """Only one process at a time opens, creates or replaces the file; once open, SQLite's own locks suffice."""

    def __init__(self, path: str) -> None:
        self.file = path + ".lock"
        self.descriptor = -1

    def __enter__(self) -> None:
        self.descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = monotonic() + BUSY_SECONDS
        try:
            while True:
                try:
                    fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    if monotonic() > until:
                        raise
                except OSError:
                    return  # this file system has no such locks
                sleep(0.002)
        except BaseException:
            os.close(self.descriptor)
            raise

    def __exit__(self, *_: object) -> None:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)  # also for a child that was forked in between
        except OSError:
            pass  # there are no such locks here
        os.close(self.descriptor)


def page_query(
    states: Sequence[str], name_like: str, user: str | None, limit: int, before: str | None
) -> tuple[str, tuple[Any, ...]]:
    """The question behind `Index.page`. Every form of it reads about `limit` rows; only a text in the name is searched for."""
    below = _text(before or LAST)
    states = tuple(dict.fromkeys(states))
    for state in states:
        _check_state(state)
    if name_like:
        # From the newest down until enough are found. The plus signs keep SQLite from sorting all runs of a user instead.
        conditions, values = ["id < ?"], [below]
        if user is not None:
            conditions.append("+user = ?")
            values.append(_text(user))
        if states:
            conditions.append(f"+state IN ({', '.join('?' * len(states))})")
            values.extend(states)
        conditions.append(r"name LIKE ? ESCAPE '\'")
        values.append(_text(f"%{_escaped(name_like)}%"))
        sql = f"SELECT {COLUMNS} FROM jobs WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"  # noqa: S608
        return sql, (*values, limit)
    if user is None and not states:
        return f"SELECT {COLUMNS} FROM jobs WHERE id < ? ORDER BY id DESC LIMIT ?", (below, limit)  # noqa: S608
    # Each state gives its newest; the newest of those are the page.
    first: tuple[Any, ...] = () if user is None else (_text(user),)
    if user is None:
        branch = "SELECT id FROM jobs INDEXED BY jobs_by_state WHERE state = ? AND id < ?"
    else:
        branch = "SELECT id FROM jobs INDEXED BY jobs_by_user WHERE user = ? AND state = ? AND id < ?"
    branch = f"SELECT id FROM ({branch} ORDER BY id DESC LIMIT ?)"  # noqa: S608
    wanted = states or JOB_STATES
    sql = f"SELECT {COLUMNS} FROM jobs WHERE id IN ({' UNION ALL '.join([branch] * len(wanted))}) ORDER BY id DESC LIMIT ?"  # noqa: S608
    return sql, (*(value for state in wanted for value in (*first, state, below, limit)), limit)


def open_file(path: str, *, alone: bool = False) -> sqlite3.Connection:
    """A connection to the file, in its newest form; made if it is not there.

    Who has it `alone` needs no file to share with others, for which a full disk has no room.
    """
    _make_private(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 16777216")  # what a long transaction needed is given back
        migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: str) -> None:
    """Whatever the umask is, the file is ours alone; SQLite makes those beside it with the same mode.

    A file that is there is not opened: to close any descriptor of it would end the locks that other connections of this
    process hold on it, and their writes could be lost.
    """
    if os.path.lexists(path):
        return
    empty = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        os.close(os.open(empty, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            os.link(empty, path)
        finally:
            os.unlink(empty)
    except OSError:
        pass  # another has made it meanwhile; or SQLite says better what is wrong


def _fill(fresh: str, rows: Iterable[JobRow]) -> int:
    """Write a file that no other process sees yet: it needs no care until it is complete."""
    os.makedirs(os.path.dirname(fresh) or ".", 0o700, exist_ok=True)
    _make_private(fresh)
    connection = sqlite3.connect(fresh, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -262144")  # KiB; else the indexes of a million rows are written over and over
        migrate(connection, fresh)
        connection.execute("BEGIN IMMEDIATE")
        # A folder copied by hand may bring an id twice: the later one is kept.
        connection.executemany(INSERT.replace("INSERT", "INSERT OR REPLACE", 1), (_to_sql(row) for row in rows))
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
        count: int = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
    finally:
        connection.close()  # with this, everything is in the one file
    descriptor = os.open(fresh, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return count


def _swap(fresh: str, path: str) -> None:
    with _Gate(path):
        for ending in ("", "-wal", "-shm"):  # the three belong together; who has them open keeps them
            _unlink(f"{path}.damaged{ending}")
            try:
                os.rename(path + ending, f"{path}.damaged{ending}")
            except FileNotFoundError:
                pass
        os.rename(fresh, path)


def _without_space(path: str) -> bool:
    """Whether the disk of an index that is there is full."""
    try:
        return os.path.getsize(path) > 0 and os.statvfs(path).f_bavail * os.statvfs(path).f_frsize < SHARED_FILE_BYTES
    except OSError:
        return False


def _identity(path: str) -> tuple[int, int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _unlink(*files: str) -> None:
    for file in files:
        try:
            os.unlink(file)
        except OSError:
            pass  # it was never made


def _check_state(state: object) -> None:
    if state not in JOB_STATES:
        raise ValueError(f"a job has no state {state!r}")


def _to_sql(row: JobRow) -> tuple[Any, ...]:
    _check_state(row.state)
    return tuple([_column(name, value) for name, value in row.__dict__.items()])


def _column(name: str, value: Any) -> Any:
    if name in ("labels", "tags"):
        if not value:
            return None
        import json

        return json.dumps(dict(value) if name == "labels" else list(value))
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> Any:
    """The text, or its bytes where SQLite would not take it: names of folders may hold anything."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def _from_sql(row: tuple[Any, ...]) -> JobRow:
    values: list[Any] = [value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value for value in row]
    labels, tags = values[JSON_FROM:]
    if labels or tags:
        import json

        labels, tags = json.loads(labels or "null"), json.loads(tags or "[]")
    values[JSON_FROM:] = labels, tuple(tags or ())
    return JobRow(*values)


def _escaped(text: str) -> str:
    for special in "\\%_":
        text = text.replace(special, "\\" + special)
    return text
