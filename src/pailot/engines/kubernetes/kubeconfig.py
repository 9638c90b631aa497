"""How to log in to a cluster: a list of kubeconfig files, or the account of the pod that this process runs in."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from urllib.parse import quote, unquote, urlsplit

from ...client.proxy import is_direct
from ...errors import suggestion
from ...runtime.kubernetes.access import Access, FixedLogin, Login, Proxy, TokenFileLogin, bearer, in_cluster
from ...runtime.kubernetes.login_error import LoginError
from .exec_login import API_VERSIONS, MODES, ExecLogin, ExecProgram
from .kubeconfig_file import Cluster, Context, KubeconfigFile, User, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeVar

    Named = TypeVar("Named", Cluster, Context, User)

PROXY_PORTS = {"http": 80, "socks5": 1080, "socks5h": 1080}
PROXY_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def find_access(environment: Mapping[str, str], *, context: str = "", namespace: str = "") -> Access:
    """Return the access to the cluster that the environment names.

    `KUBECONFIG` is a list of files (default: `~/.kube/config`). Without any file, a pod uses its own account. `context`
    and `namespace` replace what the files say.

    Raises:
        LoginError: there is no cluster to log in to, or a file says something that is not supported.
    """
    paths = kubeconfig_paths(environment)
    files = [found for found in map(read_file, paths) if found is not None]
    if any(each.contexts or each.clusters for each in files):
        access = access_of(files, environment, context)
    else:
        account = in_cluster(environment)
        if account is None:
            raise LoginError(f"there is no Kubernetes cluster: no {' or '.join(paths)}, and this is no pod; set KUBECONFIG")
        if context:
            raise LoginError(f"there is no context '{context}': this is a pod without a kubeconfig")
        access = account
    return access.replace(namespace=namespace) if namespace else access


def kubeconfig_paths(environment: Mapping[str, str]) -> list[str]:
    """Return the files that `KUBECONFIG` lists, each once, or the default."""
    listed = [each for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    home = environment.get("HOME") or os.path.expanduser("~")
    return list(dict.fromkeys(map(os.path.abspath, listed or [os.path.join(home, ".kube", "config")])))


def access_of(files: Sequence[KubeconfigFile], environment: Mapping[str, str], context: str = "") -> Access:
    """Return the access that a list of files describes. The first file that has a name decides what the name means."""
    listed = ":".join(each.path for each in files)
    contexts = _first(each.contexts for each in files)
    name = context or next((each.current_context for each in files if each.current_context), "")
    if not name:
        known = f"; there is {', '.join(sorted(contexts))}" if contexts else ""
        raise LoginError(f"{listed}: no current-context is set{known}")
    if name not in contexts:
        raise LoginError(f"{listed}: there is no context '{name}'{suggestion(name, contexts)}")
    chosen = contexts[name]
    clusters = _first(each.clusters for each in files)
    if chosen.cluster not in clusters:
        raise LoginError(f"{listed}: context '{name}' names cluster '{chosen.cluster}', which is not there")
    users = _first(each.users for each in files)
    if chosen.user and chosen.user not in users:
        raise LoginError(f"{listed}: context '{name}' names user '{chosen.user}', which is not there")
    cluster, user = clusters[chosen.cluster], users.get(chosen.user, User())
    login = _login(user, chosen.user, cluster, listed)
    _check_server(cluster.server, chosen.cluster, login, listed)
    return Access(
        cluster.server.rstrip("/"),
        login,
        namespace=chosen.namespace or "default",
        authority=cluster.certificate_authority,
        verify=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=_proxy(cluster, environment, listed),
        identity=_identity(user, chosen.user, listed),
        context=name,
        source=listed,
    )


def _first(parts: Iterable[Mapping[str, Named]]) -> dict[str, Named]:
    made: dict[str, Named] = {}
    for each in parts:
        made = {**each, **made}
    return made


def _check_server(server: str, name: str, login: Login, source: str) -> None:
    parts = urlsplit("")
    try:
        parts = urlsplit(server)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and parts.username is None
    except ValueError:
        valid = False
    if not valid:
        raise LoginError(f"{source}: the server of cluster '{name}' is no address; it looks like https://host:6443")
    if parts.scheme == "http" and login.sends_anything():
        raise LoginError(f"{source}: cluster '{name}' is at http://, where credentials would be sent in clear; use https://")


def _login(user: User, name: str, cluster: Cluster, source: str) -> Login:
    ways = {
        "exec": user.exec is not None,
        "token or tokenFile": bool(user.token or user.token_file),
        "username": bool(user.username or user.password),
    }
    used = [way for way, is_used in ways.items() if is_used]
    if user.exec is not None and user.client_certificate:
        used.append("client-certificate")
    if len(used) > 1:
        raise LoginError(f"{source}: user '{name}' has several log-ins ({', '.join(used)}); keep one of them")
    if bool(user.client_certificate) != bool(user.client_key):
        raise LoginError(f"{source}: user '{name}' has a client certificate without its key, or a key without its certificate")
    if user.exec is not None:
        return ExecLogin(_program(user, name, cluster, source))
    if user.token_file:
        return TokenFileLogin(user.token_file, FixedLogin("", user.client_certificate, user.client_key))
    authorization = ""
    if user.token:
        authorization = bearer(user.token, f"user '{name}' of {source}")
    elif user.username or user.password:
        authorization = "Basic " + b64encode(f"{user.username}:{user.password}".encode()).decode()
    return FixedLogin(authorization, user.client_certificate, user.client_key)


def _program(user: User, name: str, cluster: Cluster, source: str) -> ExecProgram:
    asked = user.exec
    assert asked is not None
    if asked.api_version not in API_VERSIONS:
        known = " and ".join(API_VERSIONS)
        raise LoginError(f"{source}: the exec program of user '{name}' has an apiVersion other than {known}")
    mode = asked.interactive_mode or ("IfAvailable" if asked.api_version.endswith("/v1beta1") else "")
    if mode not in MODES:
        raise LoginError(f"{source}: interactiveMode of user '{name}' is none of {', '.join(MODES)}")
    return ExecProgram(
        name,
        asked.api_version,
        asked.command,
        asked.arguments,
        asked.environment,
        asked.install_hint,
        mode,
        _cluster_info(cluster) if asked.provide_cluster_info else "",
    )


def _cluster_info(cluster: Cluster) -> str:
    """Return the cluster as a program that logs in reads it."""
    told: dict[str, object] = {"server": cluster.server}
    if cluster.tls_server_name:
        told["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        told["insecure-skip-tls-verify"] = True
    if cluster.certificate_authority:
        told["certificate-authority-data"] = b64encode(cluster.certificate_authority.read().encode()).decode()
    if cluster.proxy_url:
        told["proxy-url"] = cluster.proxy_url
    told["config"] = json.loads(cluster.exec_config) if cluster.exec_config else None
    return json.dumps(told)


def _identity(user: User, name: str, source: str) -> tuple[tuple[str, str], ...]:
    """Return the headers that name the user whose rights count."""
    if not user.as_user:
        if user.as_uid or user.as_groups or user.as_extra:
            raise LoginError(f"{source}: user '{name}' impersonates a group, uid or extra without a user ('as')")
        return ()
    headers = [("Impersonate-User", user.as_user)]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    headers += [("Impersonate-Group", each) for each in user.as_groups]
    headers += [(f"Impersonate-Extra-{quote(key.lower(), safe='')}", value) for key, value in user.as_extra]
    for _, value in headers:
        if not value.isascii() or not value.isprintable():
            raise LoginError(f"{source}: user '{name}' impersonates a name that no request can carry")
    return tuple(headers)


def _proxy(cluster: Cluster, environment: Mapping[str, str], source: str) -> Proxy | None:
    """Return the proxy that the cluster names, else the one of the environment."""
    if cluster.proxy_url:
        return _parsed_proxy(cluster.proxy_url, f"{source}: proxy-url")
    parts = urlsplit(cluster.server)
    names = PROXY_VARIABLES if parts.scheme == "https" else ("http_proxy",)
    variable = next((each for each in names if environment.get(each)), None)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if variable is None or is_direct(
        parts.hostname or "", port, environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    ):
        return None
    value = environment[variable]
    return _parsed_proxy(value if "://" in value else f"http://{value}", variable)


def _parsed_proxy(address: str, source: str) -> Proxy:
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host:
        raise LoginError(f"{source} is no address of a proxy; it looks like http://HOST:PORT or socks5://HOST:PORT")
    if parts.scheme not in PROXY_PORTS:
        raise LoginError(f"{source} names a proxy by {parts.scheme}://, which is not supported; use http:// or socks5://")
    scheme = "http" if parts.scheme == "http" else "socks5"
    return Proxy(scheme, host, port or PROXY_PORTS[parts.scheme], unquote(parts.username or ""), unquote(parts.password or ""))
