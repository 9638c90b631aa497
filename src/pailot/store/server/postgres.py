"""PostgreSQL, for servers that keep their database elsewhere. Needs psycopg, of the extra `postgres`."""

from __future__ import annotations

from functools import lru_cache

from ...install_lines import install_line
from .. import StoreError
from .database import IDLE_CONNECTIONS, TAKEN, Database, Duplicate, checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import psycopg

    from .database import Row

CONNECT_SECONDS = 10
LOCK_SECONDS = 10
CLAIM_SECONDS = 5
"""As long as a connection of a server that was killed may still be there."""
KEEPALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
"""PostgreSQL gives up the connection of a server whose machine was cut off, and with it the lock, after 25 seconds."""
CLAIM = 0x7061696C6F74
DUPLICATE = "23505"
LOCKED = "55P03"


class PostgreSQL(Database):
    """A database of a PostgreSQL server; a lost connection is made anew with the next call."""

    kind = "postgresql"

    def __init__(self, url: str) -> None:
        super().__init__()
        self._psycopg = _psycopg()
        self._url = url
        self.place = _without_password(self._psycopg, url)
        self._free: list[psycopg.Connection[Row]] = []
        self._claimed = False
        self._writer = self._connect()

    def _connect(self) -> psycopg.Connection[Row]:
        try:
            connection: psycopg.Connection[Row] = self._psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                options=f"-c lock_timeout={LOCK_SECONDS * 1000} -c client_min_messages=warning {KEEPALIVE}",
                application_name="pailot",
                client_encoding="utf8",
            )
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                connection.close()
                raise StoreError(f"{self.place}: the database keeps texts as {encoding}; make one with the encoding UTF8")
        except self._psycopg.Error as error:
            raise self._said(error) from None
        return connection

    def claim(self) -> None:
        """The lock belongs to the connection that writes, and is taken again with each new one."""
        self._claimed = True
        self._take(self._writer)

    def _take(self, connection: psycopg.Connection[Row]) -> None:
        try:
            connection.execute(f"SET lock_timeout = {CLAIM_SECONDS * 1000:.0f}")
            connection.execute("SELECT pg_advisory_lock(%s)", (CLAIM,))
            connection.execute("RESET lock_timeout")
        except self._psycopg.Error as error:
            connection.close()
            if error.sqlstate == LOCKED:
                if self._fence:
                    self._lose()
                self.close()
                raise StoreError(TAKEN.format(self.place)) from None
            raise self._said(error) from None

    def stream(self, sql: str, values: Sequence[Any] = (), size: int = 5_000) -> Iterator[list[Row]]:
        connection = self._borrow()
        try:
            with connection.transaction(), connection.cursor(name="pailot_stream") as cursor:
                cursor.itersize = size
                cursor.execute(_translated(sql), tuple(map(checked, values)))
                while rows := cursor.fetchmany(size):
                    yield rows
        except self._psycopg.Error as error:
            raise self._said(error) from None
        finally:
            self._give_back(connection)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                for connection in (*self._free, self._writer):
                    connection.close()
                self._free.clear()

    def version(self) -> int:
        if self.one("SELECT to_regclass('pailot_form') IS NOT NULL") == (True,):
            row = self.one("SELECT version FROM pailot_form")
            return int(row[0]) if row else 0
        return 0

    def set_version(self, version: int) -> None:
        self._execute("CREATE TABLE IF NOT EXISTS pailot_form (version BIGINT NOT NULL)", ())
        self._execute("DELETE FROM pailot_form", ())
        self._execute("INSERT INTO pailot_form (version) VALUES (?)", (version,))

    def words(self, sql: str) -> str:
        return (
            sql.replace("NUMBER PRIMARY KEY", "BIGINT PRIMARY KEY").replace("BLOB", "BYTEA").replace("TEXT", 'TEXT COLLATE "C"')
        )

    def _borrow(self, *, fresh: bool = False) -> psycopg.Connection[Row]:
        if self._closed:
            raise StoreError(f"{self.place}: the store is closed")
        while not fresh and self._free:
            try:
                connection = self._free.pop()
            except IndexError:
                break  # another thread was faster
            if not connection.closed:
                return connection
        return self._connect()

    def _give_back(self, connection: psycopg.Connection[Row]) -> None:
        if len(self._free) < IDLE_CONNECTIONS:
            self._free.append(connection)
            if not self._closed:
                return
        connection.close()

    def _read(self, sql: str, values: Row) -> list[Row]:
        for again in (True, False):
            connection = self._borrow(fresh=not again)
            try:
                return connection.execute(_translated(sql), values).fetchall()
            except self._psycopg.Error as error:
                if not (again and connection.closed):  # else the server was started anew, or the network was gone
                    raise self._said(error) from None
            finally:
                self._give_back(connection)
        raise AssertionError

    def _begin(self) -> None:
        for again in (True, False):
            new = self._writer.closed
            if new:
                self._writer = self._connect()
                if self._claimed:
                    self._take(self._writer)
            try:
                self._writer.execute("BEGIN")
            except self._psycopg.Error as error:
                if not (again and self._writer.closed):
                    raise self._said(error) from None
            else:
                if new:  # while a connection lives it holds the lock, and no other server can have been there
                    self._check_fence()
                return

    def _commit(self) -> None:
        try:
            self._writer.execute("COMMIT")
        except self._psycopg.Error as error:
            self._rollback()
            raise self._said(error) from None

    def _rollback(self) -> None:
        try:
            self._writer.execute("ROLLBACK")
        except self._psycopg.Error:
            pass  # the failure itself is told

    def _execute(self, sql: str, values: Row) -> tuple[list[Row], int]:
        self._check_whole()
        try:
            cursor = self._writer.execute(_translated(sql), values)
            return cursor.fetchall() if cursor.description else [], cursor.rowcount
        except self._psycopg.Error as error:
            if error.sqlstate == DUPLICATE:
                raise Duplicate(str(error)) from None
            raise self._fail(error) from None

    def _execute_many(self, sql: str, rows: list[Row]) -> None:
        self._check_whole()
        try:
            with self._writer.cursor() as cursor:
                cursor.executemany(_translated(sql), rows)
        except self._psycopg.Error as error:
            raise self._fail(error) from None

    def _fail(self, error: psycopg.Error) -> StoreError:
        said = self._said(error)
        if self._writer.closed and self._depth:
            self._broken = said
        return said

    def _said(self, error: psycopg.Error) -> StoreError:
        return StoreError(f"{self.place}: {_reason(error)}")


@lru_cache(maxsize=512)
def _translated(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def _reason(error: psycopg.Error) -> str:
    text = " ".join(str(error).split())
    kind = error.sqlstate or ""
    if kind == "53100":
        return "the disk of the database is full"
    if kind in ("25006", "42501"):
        return f"cannot be written: {text}"
    if kind == LOCKED:
        return f"others have kept the database locked for {LOCK_SECONDS} s"
    if not kind or kind.startswith(("08", "57P")):
        return f"the database does not answer: {text}"
    return f"cannot be read or written: {text}"


def _without_password(module: Any, url: str) -> str:
    try:
        parts = module.conninfo.conninfo_to_dict(url)
    except module.Error as error:
        raise StoreError(f"the address of the database is not understood: {' '.join(str(error).split())}") from None
    host = str(parts.get("host", ""))
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{host}{port}/{parts.get('dbname', '')}"


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise StoreError(f"for PostgreSQL install psycopg: {install_line('postgres')}") from None
    return psycopg
