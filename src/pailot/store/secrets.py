"""Secrets of jobs at rest: sealed with a key that lies outside of everything that is copied or shown.

The key file holds one key per line: the first one seals, all of them open. To change the key, put a new line on top.
"""

from __future__ import annotations

import os

from . import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cryptography.fernet import Fernet, MultiFernet

WAIT_SECONDS = 5.0


class SecretBox:
    """Seals and opens the secrets of jobs with the key in `<home>/keys/secret.key`."""

    def __init__(self, home: str) -> None:
        self.file = os.path.join(home, "keys", "secret.key")

    def __repr__(self) -> str:
        return f"SecretBox({self.file!r})"

    def seal(self, job_id: str, secrets: Mapping[str, Any]) -> bytes:
        """The secrets, readable only with the key and only as those of this job. The first call makes the key."""
        import json

        try:
            plain = json.dumps({"job": job_id, "secrets": dict(secrets)}, separators=(",", ":"))
        except (TypeError, ValueError):
            raise StoreError(f"the secrets of job {job_id} cannot be kept: only texts, numbers, lists and mappings can") from None
        if not os.path.exists(self.file):
            self._make_key()
        return self._keys().encrypt(plain.encode())

    def open(self, job_id: str, data: bytes) -> dict[str, Any]:
        """What `seal` was given for this job."""
        import json

        keys = self._keys()
        from cryptography.fernet import InvalidToken

        try:
            opened = json.loads(keys.decrypt(data))
            owner, secrets = opened["job"], opened["secrets"]
        except (InvalidToken, TypeError, ValueError, KeyError):
            raise StoreError(
                f"the secrets of job {job_id} cannot be opened: damaged, or sealed with a key that is not in {self.file}"
            ) from None
        if owner != job_id or not isinstance(secrets, dict):
            raise StoreError(f"the secrets of job {job_id} cannot be opened: they belong to another job")
        return secrets

    def _keys(self) -> MultiFernet:
        fernet, multi_fernet = _fernet()
        lines = [line.strip() for line in self._read().splitlines()]
        keys = []
        for number, line in enumerate(lines, 1):
            if line and not line.startswith(b"#"):
                try:
                    keys.append(fernet(line))
                except ValueError:
                    raise StoreError(f"{self.file}:{number}: this line is not a key") from None
        if not keys:
            raise StoreError(f"{self.file}: holds no key; remove it if nothing was sealed with it, or put the key back")
        return multi_fernet(keys)

    def _read(self) -> bytes:
        from time import monotonic, sleep

        until = monotonic() + WAIT_SECONDS
        while True:
            try:
                with open(self.file, "rb") as stream:
                    mode = os.fstat(stream.fileno()).st_mode
                    data = stream.read()
            except FileNotFoundError:
                raise StoreError(f"{self.file}: the key is gone, and without it no secrets can be opened") from None
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
        fernet, _ = _fernet()
        key = fernet.generate_key() + b"\n"
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
            raise StoreError(f"{self.file}: the key for secrets cannot be made: {error.strerror}") from None


def _fernet() -> tuple[type[Fernet], type[MultiFernet]]:
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError:
        raise StoreError("to keep secrets install cryptography: pip install 'pailot[secrets]'") from None
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
