"""Secrets of jobs at rest: sealed with a key that lies outside of everything that is copied or shown.

A key file holds one key per line: the first one seals, all of them open. To change the key, put a new line on top.
"""

from __future__ import annotations

import json
import os
from time import monotonic, sleep

from . import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cryptography.fernet import Fernet, MultiFernet

WAIT_SECONDS = 5.0
CHECKED = b"pailot"


class KeyFile:
    """A file with keys, one a line, that only its owner may read; lines with # are notes."""

    def __init__(self, file: str, kind: str) -> None:
        self.file = file
        self.kind = kind
        """What the keys are for, as messages say it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.file!r})"

    def add_key(self) -> None:
        """Put a new key on top, or make the file: from now on the new key seals, and the old ones still open."""
        if not os.path.exists(self.file):
            self._make_key()
        else:
            self._lines()
            self._replace(self._new_key() + b"\n" + self._read())

    def drop_old_keys(self) -> int:
        """Keep the first key only; how many were dropped. What only they open is lost."""
        lines = self._lines()
        self._replace(lines[0][1] + b"\n")
        return len(lines) - 1

    def _new_key(self) -> bytes:
        raise NotImplementedError

    def _lines(self) -> list[tuple[int, bytes]]:
        """The keys, each with the number of its line; at least one."""
        lines = [(number, line.strip()) for number, line in enumerate(self._read().splitlines(), 1)]
        keys = [(number, line) for number, line in lines if line and not line.startswith(b"#")]
        if not keys:
            raise StoreError(f"{self.file}: holds no key; remove it if nothing was sealed with it, or put the key back")
        return keys

    def _replace(self, content: bytes) -> None:
        temporary = f"{self.file}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            _write_new(temporary, content)
            os.replace(temporary, self.file)
            _sync_folder(os.path.dirname(self.file))
        except OSError as error:
            raise StoreError(f"{self.file}: the key for {self.kind} cannot be changed: {error.strerror}") from None

    def _read(self) -> bytes:
        until = monotonic() + WAIT_SECONDS
        while True:
            try:
                with open(self.file, "rb") as stream:
                    mode = os.fstat(stream.fileno()).st_mode
                    data = stream.read()
            except FileNotFoundError:
                raise StoreError(f"{self.file}: the key is gone, and without it no {self.kind} can be opened") from None
            except OSError as error:
                raise StoreError(f"{self.file}: cannot be read: {error.strerror}") from None
            if data or monotonic() > until:
                break
            sleep(0.01)  # another process is about to write it
        if mode & 0o077:
            try:
                os.chmod(self.file, 0o600)
            except OSError:
                pass  # this file system keeps no modes, or it belongs to another user
        return data

    def _make_key(self) -> None:
        """The first of several processes makes the key, the others use it."""
        key = self._new_key() + b"\n"
        folder = os.path.dirname(self.file)
        temporary = f"{self.file}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                pass
            _write_new(temporary, key)
            try:
                os.link(temporary, self.file)  # whole, or not at all
            except FileExistsError:
                pass
            except OSError:  # this file system has no links
                try:
                    _write_new(self.file, key)
                except FileExistsError:
                    pass
            finally:
                os.unlink(temporary)
            _sync_folder(folder)
        except OSError as error:
            raise StoreError(f"{self.file}: the key for {self.kind} cannot be made: {error.strerror}") from None


class SecretBox(KeyFile):
    """Seals and opens the secrets of jobs with the key in `<home>/keys/secret.key`."""

    def __init__(self, home: str) -> None:
        super().__init__(os.path.join(home, "keys", "secret.key"), "secrets")

    def seal(self, job_id: str, secrets: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> bytes:
        """The secrets, readable only with the key and only as those of this job. The first call makes the key.

        `more` is whatever else of the job has to be kept as safely; `open_all` returns it.
        """
        try:
            plain = json.dumps({"job": job_id, "secrets": dict(secrets), **(more or {})}, separators=(",", ":"))
        except (TypeError, ValueError):
            raise StoreError(f"the secrets of job {job_id} cannot be kept: only texts, numbers, lists and mappings can") from None
        if not os.path.exists(self.file):
            self._make_key()
        return self._keys().encrypt(plain.encode())

    def open(self, job_id: str, data: bytes) -> dict[str, object]:
        """The secrets that `seal` was given for this job."""
        secrets: dict[str, object] = self.open_all(job_id, data)["secrets"]
        return secrets

    def open_all(self, job_id: str, data: bytes) -> dict[str, Any]:
        """All that `seal` was given for this job: the secrets as `secrets`, and what was kept beside them."""
        keys = self._keys()
        from cryptography.fernet import InvalidToken

        try:
            opened: dict[str, Any] = json.loads(keys.decrypt(data))
            owner, secrets = opened.pop("job"), opened["secrets"]
        except (InvalidToken, TypeError, ValueError, KeyError):
            raise StoreError(
                f"the secrets of job {job_id} cannot be opened: damaged, or sealed with a key that is not in {self.file}"
            ) from None
        if owner != job_id or not isinstance(secrets, dict):
            raise StoreError(f"the secrets of job {job_id} cannot be opened: they belong to another job")
        return opened

    def reseal(self, job_id: str, data: bytes) -> bytes:
        """The same secrets of the same job, sealed with the first key."""
        self.open(job_id, data)
        return self._keys().rotate(data)

    def check_value(self) -> str:
        """A text by which `fits` knows the key again. The first call makes the key."""
        if not os.path.exists(self.file):
            self._make_key()
        return self._keys().encrypt(CHECKED).decode()

    def fits(self, check_value: str) -> bool:
        """Whether a key of the file is the one that this value was made with."""
        keys = self._keys()
        from cryptography.fernet import InvalidToken

        try:
            return keys.decrypt(check_value) == CHECKED
        except InvalidToken:
            return False

    def _keys(self) -> MultiFernet:
        fernet, multi_fernet = _fernet()
        keys = []
        for number, line in self._lines():
            try:
                keys.append(fernet(line))
            except ValueError:
                raise StoreError(f"{self.file}:{number}: this line is not a key") from None
        return multi_fernet(keys)

    def _new_key(self) -> bytes:
        return _fernet()[0].generate_key()


def _fernet() -> tuple[type[Fernet], type[MultiFernet]]:
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError:
        raise StoreError("to keep secrets, cryptography is needed: pip install cryptography") from None
    return Fernet, MultiFernet


def _write_new(file: str, data: bytes) -> None:
    """A file that was not there before, on the disk when this returns."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(28, "No space left on device")
        os.fsync(descriptor)
    except BaseException:
        os.unlink(file)
        raise
    finally:
        os.close(descriptor)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
