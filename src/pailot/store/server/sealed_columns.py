"""Mappings that may hold keys and passwords of users: kept sealed once there is a box for them.

What is sealed never begins with a brace, so what a server kept in clear before is known from it.
"""

from __future__ import annotations

import json

from .. import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..secrets import SecretBox
    from .database import Database

COLUMNS = (("users", "username", "extension"), ("storages", "name", "data"))
"""Table, key and column of what is sealed."""
EMPTY = "{}"


def text_of(box: SecretBox | None, table: str, name: str, data: Mapping[str, Any]) -> str:
    """What is kept; nothing is nothing, and needs no key."""
    if not data or box is None:
        return json.dumps(data)
    return box.seal(_owner(table, name), data).decode()


def data_of(box: SecretBox | None, table: str, name: str, text: str) -> dict[str, object]:
    """What `text_of` was given."""
    if text.startswith("{"):
        plain: dict[str, object] = json.loads(text)
        return plain
    if box is None:
        raise StoreError(f"what is kept of {name} in {table} is sealed, and no key is at hand")
    try:
        return box.open(_owner(table, name), text.encode())
    except StoreError:
        raise StoreError(
            f"what is kept of {name} in {table} cannot be opened: damaged, or sealed with a key that is not in {box.file}"
        ) from None


def seal_all(database: Database, box: SecretBox) -> int:
    """Seal with the first key whatever is not; how many. Can be done again after a failure."""
    count = 0
    with database.write() as batch:
        for table, key, column in COLUMNS:
            rows, _ = batch.execute(f"SELECT {key}, {column} FROM {table}")  # noqa: S608  # our own names
            for name, text in rows:
                if text != EMPTY:
                    fresh = text_of(box, table, name, data_of(box, table, name, text))
                    where = f"{key} = ? AND {column} = ?"  # a value that was just changed was sealed just now
                    batch.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (fresh, name, text))  # noqa: S608
                    count += 1
    return count


def in_clear(database: Database) -> bool:
    """Whether a server that sealed nothing yet has left something."""
    return any(
        database.one(f"SELECT 1 FROM {table} WHERE substr({column}, 1, 1) = '{{' AND {column} <> '{EMPTY}'")  # noqa: S608  # our own names
        for table, _, column in COLUMNS
    )


def findings(database: Database, box: SecretBox) -> list[str]:
    """What cannot be opened, a line each."""
    found = []
    for table, key, column in COLUMNS:
        for name, text in database.read(f"SELECT {key}, {column} FROM {table}"):  # noqa: S608  # our own names
            try:
                data_of(box, table, name, text)
            except (StoreError, ValueError) as error:
                found.append(str(error) if isinstance(error, StoreError) else f"{column} of {name} in {table} cannot be read")
    return found


def _owner(table: str, name: str) -> str:
    return f"{table}/{name}"
