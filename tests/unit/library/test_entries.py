"""Files of a library: what they are, what is refused, and that nothing that parses can do harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.library.entries import MOST_BYTES, describe, read_entry, size_in_bytes
from pailot.library.places import LibraryError, read_index
from pailot.protocol import InvalidJob, read
from pailot.protocol.references import LATEST, is_reference, newest, split, version_of, version_order

DATA = "name: mnist\ntype: data\nversion: 2\nplugin: fetch\nuri: [https://data.example/mnist.tgz]\nsize: 1.5 GB\n"
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def codes(text: str, *, shared: bool = False) -> list[str]:
    with pytest.raises(InvalidJob) as found:
        read_entry(text, "x.yaml", shared=shared)
    return [each.code for each in found.value.problems if each.is_error]


def test_a_data_set_has_a_version_and_a_size() -> None:
    entry = read_entry(DATA)
    assert (entry.name, entry.type, entry.version, entry.size) == ("mnist", "data", "2", 1_500_000_000)
    assert entry.uri == ("https://data.example/mnist.tgz",)
    assert entry.matches("MNIST example", "data")
    assert not entry.matches("mnist cifar")
    assert not entry.matches("mnist", "script")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("name: x\ntype: dta\n", "bad-value"),
        ("name: x\ntype: script\nplugin: fech\n", "unknown-plugin"),
        (DATA.replace("version: 2", "version: ../../etc"), "bad-value"),
        (DATA.replace("1.5 GB", "plenty"), "bad-value"),
        ("name: x\ntype: job\nprotocolVersion: 2\n", "missing-key"),
        ("[", "yaml-syntax"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, code: str) -> None:
    assert code in codes(text)


@pytest.mark.parametrize(
    "more",
    [
        "uri: ['https://me:hunter22secret@data.example/x']",
        "token: ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "callbacks: [{event: containerStart, commands: ['curl --password s3cr3t-word9 x']}]",
    ],
)
def test_no_secret_gets_into_a_shared_library(more: str) -> None:
    text = f"name: x\ntype: data\n{more}\n"
    assert read_entry(text).name == "x"
    assert codes(text, shared=True) == ["library-secret"]


def test_a_template_has_no_values_for_its_secrets() -> None:
    job = (
        "protocolVersion: 2\nname: t\ntype: job\nsecrets: {key: '%s'}\nprerequisites: [{name: i, type: dockerimage, uri: x}]\n"
        "taskRoles: {a: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0},"
        " commands: ['echo <%% $secrets.key %%>']}}\n"
    )
    assert read_entry(job % "", shared=True).type == "job"
    assert codes(job % "hunter2", shared=True) == ["library-secret"]


def test_versions_are_ordered_as_people_do() -> None:
    assert sorted(["10", LATEST, "9", "1.2", "1.10", "2024-02"], key=version_order) == [
        "1.2",
        "1.10",
        "9",
        "10",
        "2024-02",
        LATEST,
    ]
    assert newest([]) == ""


@given(st.text(max_size=40))
def test_a_reference_leads_to_no_other_folder(text: str) -> None:
    if is_reference(text):
        name, version = split(text)
        assert name
        assert not set("/\\\0") & set(text)
        assert not text.startswith(".")
        assert f"{name}@{version}" == text if "@" in text else version == ""


@given(st.lists(st.text(max_size=12), max_size=6))
def test_versions_of_any_text_have_an_order(versions: list[str]) -> None:
    assert newest(versions) in (versions or [""])
    assert version_order(newest(versions)) == max(map(version_order, versions), default=version_order(""))


@given(ANY)
def test_a_size_is_bytes_or_nothing(value: object) -> None:
    found = size_in_bytes(value)
    assert found is None or 0 <= found <= MOST_BYTES


@given(st.integers(0, MOST_BYTES))
def test_a_number_of_bytes_is_itself(count: int) -> None:
    assert size_in_bytes(count) == size_in_bytes(str(count)) == count


@given(ANY)
def test_whatever_a_file_holds_can_be_described(root: object) -> None:
    entry = describe(root, "x")
    assert entry.name == "x"
    assert isinstance(entry.to_json(), dict)
    entry.matches("a b")


@given(
    st.text(max_size=200)
    | st.lists(st.dictionaries(st.sampled_from(["name", "version", "type", "size"]), ANY), max_size=4).map(repr)
)
def test_any_text_is_an_index_or_an_error(text: str) -> None:
    try:
        found = read_index(text, "https://data.example")
    except LibraryError:
        return
    assert all(is_reference(f"{each.name}@{each.version}") for each in found)


JOB = """\
protocolVersion: 2
name: j
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian}
%s
taskRoles:
  w:
    dockerImage: image
    prerequisites: [%s]
    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}
    commands: [echo]
"""
SHELF = {
    "mnist": "{name: mnist, type: data, version: 3}",
    "mnist@2": "{name: mnist, type: data, version: 2}",
    "needs": "{name: needs, type: script, require: ['mnist@2']}",
}


def used(names: str, own: str = "") -> list[tuple[str, str]]:
    library = lambda name: (SHELF[name], name) if name in SHELF else None  # noqa: E731
    job = read(JOB % (own, names), library=library)
    return [(each.name, version_of(each.fields)) for each in job.task_roles["w"].prerequisites if each.type != "dockerimage"]


def test_a_role_names_a_version() -> None:
    assert used("mnist") == [("mnist", "3")]
    assert used("mnist@2") == [("mnist", "2")]
    assert used("needs") == [("mnist", "2"), ("needs", LATEST)]
    assert used("mnist@7", "  - {name: mnist, type: data, version: 7}") == [("mnist", "7")]


@pytest.mark.parametrize("names", ["mnist, mnist@2", "needs, mnist", "mnist, needs"])
def test_two_versions_in_one_role_are_an_error(names: str) -> None:
    with pytest.raises(InvalidJob, match="versions") as found:
        used(names)
    assert [each.code for each in found.value.problems if each.is_error] == ["ambiguous-prerequisite"]


def test_a_version_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InvalidJob, match="there is no prerequisite 'mnist@9'"):
        used("mnist@9")
