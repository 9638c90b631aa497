"""The library of a server, as it is kept: entries by name and version, and the texts of their files by SHA-256."""

from __future__ import annotations

import json

from .models import LibraryRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .database import Database

COLUMNS = ", ".join(LibraryRow._fields)
ABOUT = LibraryRow._fields.index("about")


class LibraryRows:
    """`store.library`. The rules are the service's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[LibraryRow]:
        """Every entry, by name and version."""
        rows = self._database.read(f"SELECT {COLUMNS} FROM library")  # noqa: S608  # our own names
        found = [LibraryRow(*(json.loads(value) if at == ABOUT else value for at, value in enumerate(row))) for row in rows]
        return sorted(found, key=lambda row: (row.name, row.version))

    def texts(self) -> dict[str, str]:
        """The texts of all entries by their SHA-256; not those of entries that are gone."""
        rows = self._database.read("SELECT digest, text FROM library_texts WHERE digest IN (SELECT digest FROM library)")
        return dict(rows)

    def text(self, digest: str) -> str | None:
        """One text, also of an entry that is gone."""
        row = self._database.one("SELECT text FROM library_texts WHERE digest = ?", (digest,))
        return row[0] if row else None

    def put(self, row: LibraryRow, text: str) -> None:
        """Keep an entry; one of the same name and version is replaced, and its uses count on. All versions have one owner."""
        with self._database.write() as batch:
            found, _ = batch.execute("SELECT uses, used FROM library WHERE name = ? AND version = ?", (row.name, row.version))
            if found:
                row = row.replace(uses=found[0][0], used=found[0][1])
            values = tuple(json.dumps(row.about) if name == "about" else getattr(row, name) for name in LibraryRow._fields)
            marks = ", ".join("?" for _ in values)
            batch.execute(
                "INSERT INTO library_texts (digest, text, retired) VALUES (?, ?, NULL)"
                " ON CONFLICT (digest) DO UPDATE SET retired = NULL",
                (row.digest, text),
            )
            batch.execute("DELETE FROM library WHERE name = ? AND version = ?", (row.name, row.version))
            batch.execute(f"INSERT INTO library ({COLUMNS}) VALUES ({marks})", values)  # noqa: S608
            batch.execute("UPDATE library SET owner = ? WHERE name = ?", (row.owner, row.name))

    def remove(self, name: str, version: str | None = None) -> int:
        """One version, or all; how many there were."""
        with self._database.write() as batch:
            if version is None:
                return batch.execute("DELETE FROM library WHERE name = ?", (name,))[1]
            return batch.execute("DELETE FROM library WHERE name = ? AND version = ?", (name, version))[1]

    def note_uses(self, used: Iterable[tuple[str, str]], now: float) -> None:
        """A job was submitted that uses these, as (name, version)."""
        with self._database.write() as batch:
            for name, version in used:
                batch.execute("UPDATE library SET uses = uses + 1, used = ? WHERE name = ? AND version = ?", (now, name, version))

    def drop_texts(self, now: float, before: float) -> int:
        """Mark texts that no entry has any more, and drop those marked before a moment; how many went."""
        unused = "digest NOT IN (SELECT digest FROM library)"
        with self._database.write() as batch:
            batch.execute(f"UPDATE library_texts SET retired = ? WHERE retired IS NULL AND {unused}", (now,))  # noqa: S608
            return batch.execute(f"DELETE FROM library_texts WHERE retired < ? AND {unused}", (before,))[1]  # noqa: S608

    def totals(self) -> tuple[int, int]:
        """Texts that are kept, and their characters."""
        row = self._database.one("SELECT count(*), coalesce(sum(length(text)), 0) FROM library_texts")
        return (int(row[0]), int(row[1])) if row else (0, 0)
