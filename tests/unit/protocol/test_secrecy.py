"""What is secret in a job, the form in which it is kept, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pailot.protocol import InvalidJob, read
from pailot.protocol.document_secrets import hidden_in_lines
from pailot.protocol.overrides import Override
from pailot.protocol.secrecy import hidden_texts, masked_root, restored, written_texts
from pailot.protocol.templates import replace_secrets
from pailot.protocol.yaml.writer import dump
from pailot.runfolder.masking import text_masker
from pailot.runtime.shim import with_secrets
from pailot.runtime.task_spec import Task

from ...parts.canaries import Canaries, found_in

EXAMPLES = Path(__file__).parents[3] / "examples"
WITHOUT_LIBRARY = sorted(set(EXAMPLES.glob("*/job.yaml")) - {EXAMPLES / "library" / "job.yaml"})


def test_every_canary_is_found_and_the_masked_file_can_be_made_whole_again() -> None:
    made = Canaries()
    job = read(made.job)
    hidden = hidden_texts(job)
    assert set(made.texts.values()) <= set(hidden)
    assert job.origin
    root, written = masked_root(job.origin.document.root, text_masker(hidden), hidden)
    text = dump(root)
    assert found_in((text + repr(written)).encode(), made.texts.values()) == []
    kept = Override(("secrets",), job.secrets.reveal(), "the kept secrets")
    again = read(text, changes=(kept, *restored(written)))
    assert again.origin
    assert again.origin.document.root == job.origin.document.root


@pytest.mark.parametrize(
    "file", sorted(set(EXAMPLES.glob("*/job.yaml")) - {EXAMPLES / "library/job.yaml"}), ids=lambda file: file.parent.name
)
def test_the_examples_hold_no_credential_but_their_secrets(file: Path) -> None:
    assert written_texts(read(file.read_text(), lenient=True, is_plugin=lambda _: True)) == ()


@pytest.mark.parametrize("value", ["true", "1", "/etc/passwords", "db.example.com", "<% $secrets.x %>", ""])
def test_an_ordinary_value_of_a_key_with_such_a_name_is_kept(value: str) -> None:
    text = Canaries().job.replace("cAn4ryZparameter9x", value).replace("  token:", "  x: long-enough-1\n  token:")
    assert value not in written_texts(read(text))


def test_lines_of_a_key_are_hidden_one_by_one() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIabcdef\nghijkl==\n-----END PRIVATE KEY-----\n"
    text = Canaries().job + f"description: {key!r}".replace("'", '"')
    document = read(text).origin.document  # type: ignore[union-attr]  # it was read from a text
    assert {"MIIabcdef", "ghijkl=="} <= set(hidden_in_lines(document.root, document.text))


def test_a_secret_that_holds_the_reference_to_another_is_not_expanded() -> None:
    secrets = {"a": "<% $secrets.b %>", "b": "<% $secrets.a %>"}
    assert replace_secrets("<% $secrets.a %> <% $secrets.b %>", secrets.__getitem__) == "<% $secrets.b %> <% $secrets.a %>"
    fields: dict[str, Any] = {"role": "w", "index": 0, "folder": "", "work_dir": "", "environment": {}, "main": ""}
    task = Task(**fields, secrets={f"<% $secrets.{name} %>": value for name, value in secrets.items()}, hidden=("in-clear",))
    filled, shown = with_secrets(task, "echo <% $secrets.a %> <% $secrets.b %> <% $secrets.c %> in-clear")
    assert filled == "echo <% $secrets.b %> <% $secrets.a %> <% $secrets.c %> in-clear"
    assert shown == "echo <% $secrets.a %> <% $secrets.b %> <% $secrets.c %> ******"


def test_too_many_secrets_are_refused() -> None:
    def with_more(count: int) -> str:
        more = "".join(f"  s{number}: value-{number}\n" for number in range(count))
        return Canaries().job.replace("secrets:\n", f"secrets:\n{more}", 1)

    assert len(hidden_texts(read(with_more(400)))) > 400
    with pytest.raises(InvalidJob, match=r"job-limit.*610 secrets and credentials; at most 500"):
        hidden_texts(read(with_more(600)))
