"""Credentials in every place where a job can hold one, and the search for them in everything that is kept or shown."""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path

CANARY = "cAn4ry/+{place}'9x"
"""Signs that JSON, YAML, addresses and shells write in different ways are in it."""
PLAIN = "cAn4ryZ{place}9x"
"""For places where such signs would mean something else."""

JOB = """\
protocolVersion: 2
name: {name}
type: job
secrets:
  token: "{secret}"
parameters:
  db_password: "{parameter}"
  mirror: https://robot:{address}@data.example/set
  signed: https://data.example/x?X-Amz-Date=20260101&X-Amz-Signature={signed}
prerequisites:
  - name: image
    type: dockerimage
    uri: {image}
    auth: {{username: ann, password: "{registry}", registryuri: registry.example}}
  - name: set
    type: script
    api_key: {field}
    callbacks:
      - event: containerStart
        commands: ["export GIVEN_PASSWORD={callback}; echo start {callback}"]
      - event: containerExit
        commands: ["echo exit {callback}"]
taskRoles:
  main:
    dockerImage: image
    prerequisites: [set]
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands:
      - echo "secret '<% $secrets.token %>'" | tee /dev/stderr
      - MYSQL_PWD={assigned} env | grep -c MYSQL_PWD={assigned}
      - echo "parameter <% $parameters.db_password %> mirror <% $parameters.mirror %> signed <% $parameters.signed %>"
      - echo "registry {registry} field {field} environment $DB_PASSWORD $DATABASE_URL"
      - printf '%s' "$DB_PASSWORD" | base64
      - env
      - test "$(printf %s "$DB_PASSWORD" | wc -c)" = {length}; {end}
extras:
  pailot:
    environment:
      DB_PASSWORD: "{environment}"
      DATABASE_URL: postgresql://ann:{url}@db.example/x
      PRICE: "12"
    labels: {{kind: canary}}
"""
_PLACES = "parameter address signed registry field callback assigned environment url".split()


class Canaries:
    """A job full of credentials."""

    def __init__(self, name: str = "canaries", *, image: str = "debian", end: str = "true", registry: str = "") -> None:
        self.texts = {place: PLAIN.format(place=place) for place in _PLACES} | {"secret": CANARY.format(place="secret")}
        if registry:
            self.texts["registry"] = registry
        length = len(self.texts["environment"])
        self.job = JOB.format(name=name, image=image, end=end, length=length, **self.texts)

    def inherited(self) -> dict[str, str]:
        """Credentials in the shell that a job is started from."""
        names = "GITHUB_PAT MYSQL_PWD SSH_PASSPHRASE HF_CREDENTIALS GH_AUTH db_password ANY_NAME_AT_ALL".split()
        made = {name: PLAIN.format(place=name.replace("_", "")) for name in names}
        made["DATABASE_DSN"] = f"postgresql://ann:{PLAIN.format(place='DATABASEDSN')}@db.example/x"
        return made


def forms(text: str) -> Iterator[bytes]:
    """A text as programs write it."""
    raw = text.encode()
    yield raw
    yield json.dumps(text)[1:-1].encode()
    yield urllib.parse.quote(text, safe="").encode()
    yield urllib.parse.quote_plus(text).encode()
    for before in ("", "x", "xx"):  # alone, and inside of a longer text
        coded = base64.b64encode(before.encode() + raw)
        yield coded[4 if before else 0 : len(coded) - 4]


def found_in(data: bytes, texts: Iterable[str]) -> list[str]:
    """The texts that stand in it in any form."""
    return [text for text in texts if any(form in data for form in forms(text))]


def found_below(folder: Path, texts: Iterable[str], *, without: Iterable[Path] = ()) -> dict[str, list[str]]:
    """Files of a folder that hold one of them; databases are also searched row by row."""
    texts, left_out, held = list(texts), set(without), {}
    for path in folder.rglob("*"):
        if not path.is_file() or path in left_out:
            continue
        data = path.read_bytes()
        if data.startswith(b"SQLite format 3"):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
                data += "\n".join(connection.iterdump()).encode()
        if found := found_in(data, texts):
            held[str(path)] = found
    return held
