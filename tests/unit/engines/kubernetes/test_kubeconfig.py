"""What kubeconfig files may say. Whatever Pailot does not know is refused in one line, and no value of a file is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pailot.engines.contract import EngineError
from pailot.engines.kubernetes.kubeconfig import access_of, find_access, kubeconfig_paths
from pailot.engines.kubernetes.kubeconfig_file import read_text
from pailot.engines.kubernetes.versions import check_version
from pailot.runtime.kubernetes.login_error import LoginError


def config(user: Any = None, cluster: Any = None, context: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        **more,
    }


def access(found: dict[str, Any], context: str = "") -> Any:
    return access_of([read_text(json.dumps(found), "/home/me/.kube/config")], {}, context)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (config(user={"tokken": "s3cret"}), "'users[0].user.tokken' is a field that Pailot does not know"),
        (config(user={"tokken": "s3cret"}), "did you mean 'token'?"),
        (config(user={"auth-provider": {"name": "gcp"}}), "auth-provider' is not supported: Kubernetes removed it in 1.26"),
        (config(cluster={"tls-min-version": 3}), "'clusters[0].cluster.tls-min-version' is a field that Pailot does not know"),
        (config(context={"color": "red"}), "'contexts[0].context.color' is a field"),
        (config(more=1), "'more' is a field"),
        (config(user={"exec": {"apiVersion": "v1", "command": "x", "timeout": 3}}), "exec.timeout' is a field"),
        (config(user={"exec": {"apiVersion": "v1"}}), "exec' names no command"),
        (config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}), "apiVersion other than"),
        (config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}), "none of Never, IfAvailable"),
        (config(user={"token": "s3cret", "username": "u"}), "several log-ins (token or tokenFile, username)"),
        (config(user={"token": 12345}), "users[0].user.token' is not a text; write it in quotes"),
        (config(user={"token": "a\nb"}), "token' has control characters"),
        (config(user={"client-certificate": "x"}), "certificate without its key"),
        (config(user={"client-key-data": "not base64!"}), "client-key-data' is not base64 of a PEM text"),
        (config(user={"as-groups": ["a"]}), "without a user ('as')"),
        (config(user={"as": "x", "as-user-extra": {"k": "v"}}), "not a mapping to lists of texts"),
        (config(cluster={"insecure-skip-tls-verify": "yes"}), "is neither true nor false"),
        (config(cluster={"server": "c:6443"}), "server of cluster 'c' is no address; it looks like https://host:6443"),
        (config(cluster={"server": "http://c:80"}, user={"token": "s3cret"}), "sent in clear; use https://"),
        (config(cluster={"proxy-url": "ftp://x"}), "by ftp://, which is not supported; use http:// or socks5://"),
        (config(kind="Secret"), "'kind' is not 'Config'"),
        (config(contexts=[]), "there is no context 'x'"),
        (config(**{"current-context": ""}), "no current-context is set; there is x"),
        (config(context={"cluster": "d"}), "names cluster 'd', which is not there"),
        (config(context={"user": "d"}), "names user 'd', which is not there"),
        (config(users=[{"name": "u", "user": {}}] * 2), "'users[1].name' is there twice"),
        (config(users="s3cret"), "'users' is not a list"),
        (config(users=["s3cret"]), "'users[0]' is not a mapping"),
    ],
)
def test_what_is_refused(found: dict[str, Any], message: str) -> None:
    with pytest.raises(LoginError) as caught:
        access(found)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_what_other_programs_keep_in_it_does_not_matter() -> None:
    extensions = [{"name": "minikube", "extension": {"version": "v1"}}]
    found = config(preferences={"colors": True}, extensions=extensions)
    found["clusters"][0]["cluster"] |= {"extensions": extensions, "disable-compression": True}
    found["contexts"][0]["context"]["extensions"] = extensions
    found["users"][0]["user"]["extensions"] = None
    assert access(found).server == "https://c:6443"


def test_not_yaml_is_told_with_its_line() -> None:
    with pytest.raises(LoginError, match=r"^/k: line 2 is not YAML that can be read$"):
        read_text("users: s3cret\n\tx", "/k")


def test_the_first_file_of_a_list_decides(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "config", tmp_path / "b" / "config"
    for each in (first, second):
        each.parent.mkdir()
    first.write_text(
        yaml.safe_dump({"users": [{"name": "u", "user": {"tokenFile": "mine"}}], "current-context": "x", "contexts": None})
    )
    second.write_text(yaml.safe_dump(config(user={"token": "other"}, **{"current-context": "y"})))
    found = find_access({"KUBECONFIG": f"{first}:{tmp_path}/missing::{second}:{second}"})
    assert (found.context, found.server) == ("x", "https://c:6443")
    (first.parent / "mine").write_text("from-a\n")
    assert found.login.headers() == [("Authorization", "Bearer from-a")]


def test_context_and_namespace_may_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(json.dumps(config(contexts=[{"name": "other", "context": {"cluster": "c", "user": "u"}}])))
    found = find_access({"KUBECONFIG": str(tmp_path / "config")}, context="other", namespace="team")
    assert (found.context, found.namespace) == ("other", "team")
    with pytest.raises(LoginError, match="there is no context 'othr'; did you mean 'other'"):
        find_access({"KUBECONFIG": str(tmp_path / "config")}, context="othr")


def test_without_files_and_outside_of_pods_there_is_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(LoginError, match=r"no Kubernetes cluster: no .*/\.kube/config, and this is no pod; set KUBECONFIG"):
        find_access({"HOME": str(tmp_path)})


def test_the_default_file_is_below_the_home(tmp_path: Path) -> None:
    assert kubeconfig_paths({"HOME": "/h"}) == ["/h/.kube/config"]
    assert kubeconfig_paths({"KUBECONFIG": "a:/b:a", "HOME": "/h"}) == [os.path.abspath("a"), "/b"]


@pytest.mark.parametrize(("text", "version"), [("v1.30.0", (1, 30)), ("v1.35.4+k3s1", (1, 35)), ("v2.0.0-alpha", (2, 0))])
def test_versions_that_work(text: str, version: tuple[int, int]) -> None:
    assert check_version(text) == version


@pytest.mark.parametrize(
    ("text", "message"),
    [("v1.29.15", "the cluster has Kubernetes 1.29; Pailot needs 1.30 or newer"), ("OpenPAI\x1b", r"OpenPAI\\x1b': is this Kub")],
)
def test_versions_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        check_version(text)


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("s3cret")
fields = st.sampled_from(
    "name server tls-server-name insecure-skip-tls-verify certificate-authority certificate-authority-data proxy-url extensions "
    "client-certificate client-certificate-data client-key client-key-data token tokenFile as as-uid as-groups as-user-extra "
    "username password exec command args env apiVersion installHint provideClusterInfo interactiveMode cluster user namespace "
    "clusters users contexts current-context kind preferences value unknown".split()
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=4), max_leaves=25
)
named = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("cux")}, optional=dict.fromkeys(("cluster", "user", "context"), anything))
)


def refusal(text: str) -> str:
    """Why a file is refused; empty where it is not."""
    try:
        access_of([read_text(text, "/k")], {})
    except LoginError as error:
        return str(error)
    return ""


named_lists = {"clusters": named, "users": named, "contexts": named, "current-context": scalars}


@given(st.fixed_dictionaries({}, optional=named_lists) | anything)
def test_any_file_is_read_or_refused_in_one_line(found: Any) -> None:
    why = refusal(json.dumps(found))
    assert not why or why.startswith("/k: ") or "no valid token in" in why
    assert why.isprintable()


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert "\n" not in refusal(text)


words = st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=20).map("w".__add__)
styles = st.sampled_from(["'", '"', "|", ">", None])


extras = st.dictionaries(words, st.lists(words, min_size=1, max_size=2), max_size=2)


@given(words, words, st.lists(words, max_size=3), extras, styles)
def test_yaml_of_other_writers_means_the_same(
    token: str, name: str, groups: list[str], extra: dict[str, list[str]], style: str | None
) -> None:
    """PyYAML writes scalars plain, in single or double quotes, literal or folded."""
    found = config(user={"token": token, "as": name, "as-groups": groups, "as-user-extra": extra})
    made = access_of([read_text(yaml.safe_dump(found, default_style=style), "/k")], {})
    assert made.login.headers() == [("Authorization", f"Bearer {token}")]
    assert [value for header, value in made.identity if header == "Impersonate-Group"] == groups
    assert ("Impersonate-User", name) in made.identity
    assert len(made.identity) == 1 + len(groups) + sum(map(len, extra.values()))
