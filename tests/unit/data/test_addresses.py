"""What an address is, and which of them a job on a server may use."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.data.addresses import check_entries, folder_of, kind_of, literal, parse, refusal, refusal_of_ip, refusal_of_path
from pailot.data.rules import OWN_MACHINE, SCHEMES, Rules
from pailot.data.server_rules import read
from pailot.settings import BadSetting, Settings

SERVER = Rules(server=True, folders=("/srv/data",))
MORE = SERVER.replace(schemes=(*SCHEMES, "zip", "sftp"))

FINE = [
    "http://example.com/x",
    "HTTPS://user:word@example.com:8443/x?y=1#z",
    "https://example.com/a::b",
    "https://[2606:4700::1111]/x",
    "s3://bucket/key",
    "s3a://bucket/key",
    "s3://2130706433/a-bucket-may-be-called-so",
    "oss://bucket/key",
    "gs://bucket/key",
    "az://container/key",
    "hdfs://10.151.40.179:9000/x",
    "hdfs:///default/of/the/site",
    "viewfs://cluster/x",
    "webhdfs://namenode.example:9870/x",
    "/srv/data/x",
    "file:///srv/data/x",
    "file://localhost/srv/data/x",
    "/srv/data/a::b",
]
REFUSED = [
    "local:///etc/shadow",
    "LOCAL:///etc/shadow",
    "memory://x",
    "github://owner:repo@main/file",
    "sftp://example.com/x",
    "ftp://example.com/x",
    "data://text",
    "dir:///etc",
    "simplecache::file:///etc/shadow",
    "filecache::local:///etc/shadow",
    "simplecache::s3://bucket/key",
    "zip://a::s3://bucket/key.zip",
    "dir::file:///etc",
    "s3://bucket/key::file:///etc/shadow",
    "hdfs://namenode/x::local:///etc/shadow",
    " http://example.com/x",
    "http\t://example.com/x",
    "relative/path",
    "~/x",
    "~root/x",
    "file:relative",
    "file:/etc/shadow",
    "file://other.example/etc/shadow",
    "simplecache::/etc/shadow",
    "http:///nohost",
    "://x",
    "",
    "/srv/data/x\ny",
    "/srv/data/\0",
]
NEAR = [
    "127.0.0.1",
    "127.1",
    "127.9.9.9",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "a.localhost",
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "169.254.169.254",
    "2852039166",
    "169.254.1.1",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[ff02::1]",
    "[fd00:ec2::254]",
]


@pytest.mark.parametrize("text", FINE)
def test_what_a_job_on_a_server_may_name(text: str) -> None:
    assert refusal(parse(text), SERVER) == ""


@pytest.mark.parametrize("text", REFUSED)
def test_what_it_may_not(text: str) -> None:
    assert refusal(parse(text), SERVER)


@pytest.mark.parametrize("text", [*REFUSED, *(f"http://{host}/" for host in NEAR)])
def test_on_a_users_own_machine_everything_may_be_named(text: str) -> None:
    assert refusal(parse(text), OWN_MACHINE) == ""


@pytest.mark.parametrize("host", NEAR)
@pytest.mark.parametrize("scheme", ["http", "https", "hdfs", "webhdfs"])
def test_the_server_and_what_only_it_reaches_however_it_is_written(host: str, scheme: str) -> None:
    for text in (f"{scheme}://{host}/x", f"{scheme}://{host}:8080/x", f"{scheme}://example.com@{host}/x"):
        assert refusal(parse(text), SERVER), text


def test_chains_only_of_what_is_allowed() -> None:
    assert refusal(parse("zip://a::s3://bucket/key.zip"), MORE) == ""
    assert refusal(parse("zip://a::sftp://example.com/key.zip"), MORE) == ""
    for text in (
        "zip://a::/srv/data/x.zip",
        "zip::file:///srv/data/x",
        "zip://a::http://example.com/x",
        "zip::local:///srv/data",
    ):
        assert refusal(parse(text), MORE), text
    assert "127.0.0.1" in refusal(parse("zip://a::sftp://127.0.0.1/x"), MORE)


def test_private_networks_and_exceptions() -> None:
    for text in ("http://10.0.0.5/x", "http://192.168.1.1/x", "http://172.20.0.1/x", "http://100.64.0.9/x", "http://[fd12::1]/x"):
        assert refusal(parse(text), SERVER) == ""
        assert "private network" in refusal(parse(text), SERVER.replace(private=False))
    named = SERVER.replace(private=False, addresses=("127.0.0.1:9000", "10.1.0.0/16", "store.example", "[::1]:9000"))
    for host in ("127.0.0.1:9000", "10.1.2.3", "[::ffff:10.1.2.3]", "[::1]:9000"):
        assert refusal(parse(f"http://{host}/x"), named) == "", host
    for host in ("127.0.0.1", "127.0.0.1:9001", "10.2.0.1", "[::1]:1", "127.0.0.2:9000"):
        assert refusal(parse(f"http://{host}/x"), named), host
    assert refusal_of_ip("127.0.0.1", named, host="store.example", port=80) == ""
    assert refusal_of_ip("127.0.0.1", named, host="other.example", port=80)
    assert "one of the server's own" in refusal_of_ip("10.9.9.9", SERVER, host="me.example", own=True)


def test_paths() -> None:
    assert parse("file:///a%20b").path == "/a b"
    assert parse("file://localhost/a").path == "/a"
    assert parse("FILE:///a").is_path
    assert parse("a::b").is_path
    rules = SERVER.replace(folders=("/srv/data", "/srv/data/deep", "/"))
    assert folder_of("/srv/data/deep/x", rules) == "/srv/data/deep"
    assert refusal_of_path("/srv/data", SERVER) == refusal_of_path("/srv/data/x", SERVER) == ""
    for path in ("/srv/database", "/srv", "/", "/etc/shadow"):
        assert "storage_folders" in refusal_of_path(path, SERVER)
    assert refusal(parse("/srv/data"), SERVER.replace(folders=()))


def test_settings() -> None:
    rules = read(Settings({"PAILOT_ALLOWED_SCHEMES": "sftp://, ZIP", "PAILOT_ALLOWED_ADDRESSES": "a.example:80"}, folder="/"))
    assert rules.server
    assert {"sftp", "zip", "http", "s3"} <= set(rules.schemes)
    assert (rules.private, rules.credentials, rules.folders) == (True, False, ())
    for name, value in (
        ("ALLOWED_SCHEMES", "local"),
        ("ALLOWED_SCHEMES", "file://"),
        ("ALLOWED_SCHEMES", "a b"),
        ("ALLOWED_ADDRESSES", "http://x"),
        ("ALLOWED_ADDRESSES", "10.0.0.0/99"),
        ("STORAGE_FOLDERS", "relative"),
    ):
        with pytest.raises(BadSetting, match=name.lower()):
            read(Settings({f"PAILOT_{name}": value}, folder="/"))
    assert check_entries(["10.0.0.1", "10.0.0.0/8", "x.example", "x.example:1", "[::1]:2"]) == ""


PIECES = st.sampled_from(
    [*SCHEMES, "local", "file", "simplecache", "zip", "::", "://", ":", "/", "@", "[", "]", "..", "%", "a", "~"]
)
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=8).map("".join), st.sampled_from([*FINE, *REFUSED]))


@given(TEXTS)
def test_any_text_is_an_address_and_gets_an_answer(text: str) -> None:
    address = parse(text)
    assert address.text == text
    assert isinstance(refusal(address, SERVER), str)
    assert refusal(address, OWN_MACHINE) == ""


@given(TEXTS)
def test_what_is_allowed_is_a_path_of_the_folders_or_of_an_allowed_scheme(text: str) -> None:
    address = parse(text)
    if refusal(address, SERVER):
        return
    if address.is_path:
        assert address.path.startswith("/")
    else:
        assert all(link.scheme in SCHEMES for link in address.links)
        assert text.partition("://")[0].lower() in SCHEMES


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from("dox"))
def test_every_way_to_write_a_number_is_the_same_address(number: int, parts: int, base: str) -> None:
    octets = [number >> shift & 255 for shift in (24, 16, 8, 0)]
    *high, last = [*octets[: parts - 1], int.from_bytes(bytes(octets[parts - 1 :]), "big")]
    written = {"d": "{}", "o": "0{:o}", "x": "0x{:X}"}[base]
    host = ".".join(written.format(each) for each in (*high, last))
    assert literal(host) == IPv4Address(number), host


@given(st.integers(0, 2**32 - 1))
def test_an_address_of_ipv6_is_no_way_round(number: int) -> None:
    inner = IPv4Address(number)
    refused = bool(refusal_of_ip(str(inner), SERVER))
    for outer in (f"::ffff:{inner}", f"64:ff9b::{inner}"):
        assert bool(refusal_of_ip(str(IPv6Address(outer)), SERVER)) is refused, outer


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_every_address_is_of_one_kind(address: IPv4Address | IPv6Address) -> None:
    kind = kind_of(address)
    assert kind
    if address.is_loopback or address.is_link_local or address.is_multicast:
        assert kind not in ("public", "private")
    assert ip_address(str(address)) == address
