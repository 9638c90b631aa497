"""Users, groups, tokens, failed log-ins, storages and virtual clusters, as they are kept. The rules are the service's."""

from __future__ import annotations

import json

from . import sealed_columns
from .database import Duplicate
from .models import Failures, Group, NameTaken, Token, User

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...values import Value
    from ..secrets import SecretBox
    from .database import Database, Row

JSON_FIELDS = frozenset(("grouplist", "extension", "claims"))
USER_COLUMNS = ", ".join(User._fields)
GROUP_COLUMNS = ", ".join(Group._fields)
TOKEN_COLUMNS = ", ".join(Token._fields)


class Accounts:
    """`store.accounts`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._box: SecretBox | None = None

    def seal_with(self, box: SecretBox) -> None:
        """From now on extensions of users and storages, which may hold keys and passwords, are sealed; what is there, too."""
        self._box = box
        if sealed_columns.in_clear(self._database):
            sealed_columns.seal_all(self._database, box)

    # Users

    def add_user(self, user: User) -> None:
        """NameTaken if there is one."""
        self._insert("users", user, f"user {user.username} is there already")

    def user(self, username: str) -> User | None:
        row = self._database.one(f"SELECT {USER_COLUMNS} FROM users WHERE username = ?", (username,))  # noqa: S608
        return self._user(row) if row else None

    def users(self) -> list[User]:
        """All of them, by name."""
        found = [self._user(row) for row in self._database.read(f"SELECT {USER_COLUMNS} FROM users")]  # noqa: S608
        return sorted(found, key=lambda user: user.username)

    def count_users(self) -> int:
        row = self._database.one("SELECT count(*) FROM users")
        return row[0] if row else 0

    def update_user(self, username: str, **changes: Any) -> bool:
        """Change some fields; False if there is no such user."""
        return self._update("users", User, "username", username, changes)

    def remove_user(self, username: str) -> bool:
        """The user and its tokens; its jobs stay."""
        with self._database.write() as batch:
            return batch.execute("DELETE FROM users WHERE username = ?", (username,))[1] > 0

    # Identities

    def identity(self, issuer: str, subject: str) -> str | None:
        """Return the user who is this person at an identity provider, or None."""
        row = self._database.one("SELECT username FROM identities WHERE issuer = ? AND subject = ?", (issuer, subject))
        return str(row[0]) if row else None

    def add_identity(self, issuer: str, subject: str, username: str, now: float) -> None:
        """Keep that a person is this user. Raises NameTaken if either is known as another already."""
        with self._database.write() as batch:
            try:
                batch.execute("INSERT INTO identities VALUES (?, ?, ?, ?)", (issuer, subject, username, now))
            except Duplicate:
                raise NameTaken(f"{username} is another person there already") from None

    # Groups

    def add_group(self, group: Group) -> None:
        """NameTaken if there is one."""
        self._insert("user_groups", group, f"group {group.groupname} is there already")

    def group(self, groupname: str) -> Group | None:
        row = self._database.one(f"SELECT {GROUP_COLUMNS} FROM user_groups WHERE groupname = ?", (groupname,))  # noqa: S608
        return _group(row) if row else None

    def groups(self) -> list[Group]:
        """All of them, by name."""
        found = [_group(row) for row in self._database.read(f"SELECT {GROUP_COLUMNS} FROM user_groups")]  # noqa: S608
        return sorted(found, key=lambda group: group.groupname)

    def update_group(self, groupname: str, **changes: Any) -> bool:
        """Change some fields; False if there is no such group."""
        return self._update("user_groups", Group, "groupname", groupname, changes)

    def remove_group(self, groupname: str) -> bool:
        """The group, and its name in the list of every user."""
        with self._database.write() as batch:
            if batch.execute("DELETE FROM user_groups WHERE groupname = ?", (groupname,))[1] == 0:
                return False
            rows, _ = batch.execute("SELECT username, grouplist FROM users")
            for username, grouplist in rows:
                names = json.loads(grouplist)
                if groupname in names:
                    left = json.dumps([name for name in names if name != groupname])
                    batch.execute("UPDATE users SET grouplist = ? WHERE username = ?", (left, username))
        return True

    # Tokens

    def add_token(self, token: Token) -> None:
        """That it was given out; a second time is no error."""
        try:
            self._insert("tokens", token, "")
        except NameTaken:
            pass  # the same claims make the same token

    def token(self, digest: str) -> Token | None:
        row = self._database.one(f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE digest = ?", (digest,))  # noqa: S608
        return _token(row) if row else None

    def tokens(self, username: str) -> list[Token]:
        """Those of a user, the oldest first, expired ones among them."""
        rows = self._database.read(f"SELECT {TOKEN_COLUMNS} FROM tokens WHERE username = ? ORDER BY issued, digest", (username,))  # noqa: S608
        return [_token(row) for row in rows]

    def extend_token(self, digest: str, expires: float) -> None:
        """Move the end of a token."""
        with self._database.write() as batch:
            batch.execute("UPDATE tokens SET expires = ? WHERE digest = ?", (expires, digest))

    def remove_token(self, digest: str) -> bool:
        with self._database.write() as batch:
            return batch.execute("DELETE FROM tokens WHERE digest = ?", (digest,))[1] > 0

    def remove_tokens(self, username: str, kind: str | None = None, *, but: str = "") -> int:
        """All tokens of a user, or those of one kind, but for the one with the digest `but`; how many there were."""
        with self._database.write() as batch:
            if kind is None:
                return batch.execute("DELETE FROM tokens WHERE username = ? AND digest <> ?", (username, but))[1]
            return batch.execute("DELETE FROM tokens WHERE username = ? AND kind = ? AND digest <> ?", (username, kind, but))[1]

    def remove_expired(self, now: float) -> int:
        """Tokens that are of no use any more; how many."""
        with self._database.write() as batch:
            return batch.execute("DELETE FROM tokens WHERE expires <= ?", (now,))[1]

    # Failed log-ins

    def failures(self, who: str) -> Failures:
        """`who` is whatever log-ins are counted by: a name, an address."""
        row = self._database.one("SELECT count, last FROM login_failures WHERE who = ?", (who,))
        return Failures(*row) if row else Failures()

    def note_failure(self, who: str, now: float) -> Failures:
        """One more; the new state."""
        with self._database.write() as batch:
            rows, _ = batch.execute(
                "INSERT INTO login_failures (who, count, last) VALUES (?, 1, ?) ON CONFLICT (who)"
                " DO UPDATE SET count = login_failures.count + 1, last = excluded.last RETURNING count, last",
                (who, now),
            )
        count, last = rows[0]
        return Failures(count, float(last))

    def clear_failures(self, who: str) -> None:
        with self._database.write() as batch:
            batch.execute("DELETE FROM login_failures WHERE who = ?", (who,))

    def note_place(self, who: str, now: float) -> None:
        """That a log-in succeeded: a row without failures."""
        with self._database.write() as batch:
            batch.execute(
                "INSERT INTO login_failures (who, count, last) VALUES (?, 0, ?)"
                " ON CONFLICT (who) DO UPDATE SET last = excluded.last",
                (who, now),
            )

    def knows_place(self, who: str) -> bool:
        return self._database.one("SELECT 1 FROM login_failures WHERE who = ? AND count = 0", (who,)) is not None

    def forget_failures(self, before: float, places_before: float) -> int:
        """Those whose last was before a moment, and places where the last success was; how many."""
        with self._database.write() as batch:
            return batch.execute(
                "DELETE FROM login_failures WHERE (count > 0 AND last < ?) OR (count = 0 AND last < ?)", (before, places_before)
            )[1]

    # Storages and virtual clusters

    def put_storage(self, name: str, data: Mapping[str, Any]) -> None:
        self._put("storages", name, sealed_columns.text_of(self._box, "storages", name, data))

    def storage(self, name: str) -> dict[str, object] | None:
        return self.storages().get(name)

    def storages(self) -> dict[str, dict[str, Any]]:
        """All of them, by name."""
        return {name: sealed_columns.data_of(self._box, "storages", name, text) for name, text in self._all("storages")}

    def remove_storage(self, name: str) -> bool:
        return self._remove("storages", name)

    def put_cluster(self, name: str, data: Mapping[str, Any]) -> None:
        """A virtual cluster made through the API; those of the settings are not kept here."""
        self._put("virtual_clusters", name, json.dumps(data))

    def cluster(self, name: str) -> dict[str, object] | None:
        return self.clusters().get(name)

    def clusters(self) -> dict[str, dict[str, Any]]:
        """All of them, by name."""
        return {name: json.loads(text) for name, text in self._all("virtual_clusters")}

    def remove_cluster(self, name: str) -> bool:
        return self._remove("virtual_clusters", name)

    # Parts

    def _insert(self, table: str, record: Value, taken: str) -> None:
        fields = record._fields
        sql = f"INSERT INTO {table} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))})"  # noqa: S608  # our own names
        key = getattr(record, fields[0])
        values = [self._column(table, key, name, getattr(record, name)) for name in fields]
        with self._database.write() as batch:
            try:
                batch.execute(sql, values)
            except Duplicate:
                raise NameTaken(taken) from None

    def _update(self, table: str, record: type[Value], key: str, name: str, changes: Mapping[str, Any]) -> bool:
        for field in changes:
            if field not in record._fields or field == key:
                raise TypeError(f"{table} have no column {field!r} that can be changed")
        assignments = ", ".join(f"{field} = ?" for field in changes) or f"{key} = {key}"
        values = [self._column(table, name, field, value) for field, value in changes.items()]
        with self._database.write() as batch:
            return batch.execute(f"UPDATE {table} SET {assignments} WHERE {key} = ?", (*values, name))[1] > 0  # noqa: S608

    def _put(self, table: str, name: str, text: str) -> None:
        with self._database.write() as batch:
            batch.execute(
                f"INSERT INTO {table} (name, data) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data",  # noqa: S608
                (name, text),
            )

    def _all(self, table: str) -> list[Row]:
        return sorted(self._database.read(f"SELECT name, data FROM {table}"))  # noqa: S608

    def _remove(self, table: str, name: str) -> bool:
        with self._database.write() as batch:
            return batch.execute(f"DELETE FROM {table} WHERE name = ?", (name,))[1] > 0  # noqa: S608

    def _column(self, table: str, name: str, field: str, value: Any) -> Any:
        if (table, field) == ("users", "extension"):
            return sealed_columns.text_of(self._box, table, name, value)
        return json.dumps(value) if field in JSON_FIELDS else value

    def _user(self, row: Row) -> User:
        username, email, password_hash, grouplist, kept, unix_user, created = row
        extension = sealed_columns.data_of(self._box, "users", username, kept)
        return User(username, email, password_hash, tuple(json.loads(grouplist)), extension, unix_user, created)


def _group(row: Row) -> Group:
    return Group(row[0], row[1], row[2], json.loads(row[3]))


def _token(row: Row) -> Token:
    digest, username, kind, issued, expires, claims = row
    return Token(digest, username, kind, issued, expires, json.loads(claims))
