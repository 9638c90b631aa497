"""167 real job files: upstream's verdict and, where accepted, byte-equal entry points."""

from __future__ import annotations

import json
from pathlib import Path

from pailot.loading import read_job
from pailot.planning import plan
from pailot.protocol import InvalidJob

# The only files we answer differently, and the decision behind each.
REFUSED_BY_US = {
    "pai-history__src__kube-runtime__test__sshd_test_job.yaml_8d085ba0.yaml": (
        "unknown-plugin",
        "a plugin that does not exist ('sshd' was renamed to 'ssh') is an error, not a failure at run time",
    ),
    "pai__src__rest-server__test__protocolSecret.js__protocolYAMLs_2.yaml": (
        "template-unresolved",
        "a reference to a secret that the job does not have is an error, not a literal password",
    ),
}


def test_every_file_gets_upstreams_verdict_and_entry_points(corpus: Path) -> None:
    expected = json.loads((corpus / "expected.json").read_text())
    assert len(expected) == 167
    different: dict[str, str] = {}
    for file, upstream in expected.items():
        text = (corpus / file).read_text()
        try:
            made = plan(read_job(text, file))
        except InvalidJob as invalid:
            codes = {problem.code for problem in invalid.problems if problem.is_error}
            assert codes, file
            if upstream["status"] == 202:
                different[file] = codes.pop()
            continue
        assert upstream["status"] == 202, file
        assert {name: role.entrypoint for name, role in made.roles.items()} == upstream["entrypoints"], file
        assert made.name == upstream["name"]
    assert different == {file: code for file, (code, _) in REFUSED_BY_US.items()}


def test_registry_credentials_render_as_upstream_does(corpus: Path) -> None:
    from pailot.protocol.js_semantics import to_string
    from pailot.protocol.templates import Renderer

    expected = json.loads((corpus / "expected.json").read_text())
    seen = 0
    for file, upstream in expected.items():
        if upstream["status"] != 202 or not upstream["auth"] or file in REFUSED_BY_US:
            continue
        job = read_job((corpus / file).read_text(), file)
        for each in job.prerequisites:
            if each.auth is None:
                continue
            clear = Renderer({"$revealed": job.secrets.reveal()}, {})
            shown = {
                key: to_string(clear.render(value.replace("$secrets", "$revealed"))) for key, value in each.fields["auth"].items()
            }
            assert shown == upstream["auth"][each.name]
            seen += 1
    assert seen


def test_real_files_are_read_by_the_quick_reader(corpus: Path) -> None:
    from pailot.protocol.yaml.fast_path import NotPlainLines, read_lines
    from pailot.protocol.yaml.parser import Parser

    quick = total = 0
    for file in sorted(corpus.glob("*.yaml")):
        text = file.read_text().replace("\r\n", "\n")
        text = text if text.endswith("\n") else text + "\n"
        total += 1
        try:
            value = read_lines(text, Parser(text))
        except NotPlainLines:
            continue
        quick += 1
        assert value == Parser(text).document(), file.name
    assert quick > total / 2
