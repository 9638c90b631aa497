"""Encryption of connections: the certificate of the server, read again when it is renewed."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl

from ..errors import PailotError
from ..jobserver import server_log
from ..lifecycle.waits import capped
from ..values import Value

LOOK_SECONDS = 60.0
"""A renewed certificate is used this long after it was written at the latest."""


class BadCertificate(PailotError):
    """Certificate or key cannot be used."""


class Certificate(Value):
    """The files of a certificate chain and of its key, both in PEM form."""

    certificate: str
    key: str

    def check(self) -> None:
        """Raises BadCertificate with the file that is at fault."""
        for each in (self.certificate, self.key):
            try:
                with open(each, "rb"):
                    pass
            except OSError as error:
                raise BadCertificate(f"cannot read {each}: {error.strerror}") from None
        try:
            self.load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        except (ssl.SSLError, ValueError) as error:
            why = getattr(error, "reason", None) or str(error)
            raise BadCertificate(f"{self.certificate} and {self.key} are no certificate with its key ({why})") from None

    def load(self, context: ssl.SSLContext) -> None:
        """Use the files as they are now for new connections. A key with a password is refused: no person could type it."""
        context.load_cert_chain(self.certificate, self.key, password=b"")

    def versions(self) -> tuple[tuple[int, int], ...]:
        """What changes when one of the files is replaced."""
        found = [os.stat(each) for each in (self.certificate, self.key)]
        return tuple((each.st_mtime_ns, each.st_ino) for each in found)


def certificate(cert: str, key: str) -> Certificate | None:
    """Return the certificate that two settings name, or None where both are empty. Raises BadCertificate."""
    if not cert and not key:
        return None
    if not (cert and key):
        raise BadCertificate("tls_cert and tls_key go together: name both, or none")
    found = Certificate(os.path.abspath(cert), os.path.abspath(key))
    found.check()
    return found


async def follow(found: Certificate, context: ssl.SSLContext, every_seconds: float = LOOK_SECONDS) -> None:
    """Load the certificate again whenever it was renewed; one that cannot be used is reported, and the old one stays."""
    seen = found.versions()
    while True:
        await asyncio.sleep(capped(every_seconds))
        try:
            now = found.versions()
            if now == seen:
                continue
            seen = now
            found.check()
            found.load(context)
        except (OSError, BadCertificate) as error:
            server_log.note(server_log.SERVER, logging.WARNING, "the renewed certificate is not used", error=str(error))
