"""Every setting, said once. The environment (`PAILOT_<NAME>`) wins over `pailot.toml`, that over the default.

`pailot.toml` is looked for in the current directory, then in the user's configuration folder.
"""

from __future__ import annotations

import os
import pwd

from .errors import PailotError, suggestion
from .values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Setting(Value):
    """One setting: its name, what it means, how a text becomes its value."""

    name: str
    doc: str
    default: Any
    kind: str = "text"


RATE_LIMITS = "all=600/60, list=120/60, submit=3600/3600, check=600/60"
"""OpenPAI's: everything 600 a minute for an address, job lists 120 a minute and submissions 3600 an hour for a user."""

SETTINGS = (
    Setting("home", "Folder for everything Pailot keeps.", None),
    Setting("library", "Folders and URLs with prerequisite files, looked through in this order.", (), "list"),
    Setting(
        "log_rotate_mb", "Size at which a task's log goes on in a new file, the oldest being dropped; 0 for never.", 0, "number"
    ),
    Setting("library_writers", "Who adds new names to a server's library: admins, or users.", "admins"),
    Setting("data_cache", "Folder for data sets of the library that jobs share; empty: one of Pailot's own.", ""),
    Setting(
        "data_cache_mb", "Size to which data sets that no job uses are removed, the longest unused first.", 100_000, "number"
    ),
    Setting("data_cache_user", "With unix_users: the Unix user that fetches data sets for all; empty: each has a copy.", ""),
    Setting("library_cache_seconds", "How long a prerequisite from a URL is used without asking again.", 3600, "number"),
    Setting("cpus", "CPUs that this machine has for jobs: auto, or a number.", "auto", "amount"),
    Setting("memory_mb", "Memory that this machine has for jobs, in MB: auto, or a number.", "auto", "amount"),
    Setting("gpus", "GPUs that jobs may use: auto, none, a number, or a list of indexes or UUIDs.", "auto", "amount"),
    Setting("open", "Everyone with an account sees config, logs and events of all jobs, as with OpenPAI.", False, "flag"),
    Setting("rate_limits", "How often a client may ask the server; 'off' for no limits.", RATE_LIMITS),
    Setting("trusted_proxies", "Addresses of proxies that are believed whom they ask for (X-Forwarded-For).", (), "list"),
    Setting("tls_cert", "Certificate chain of the server, in PEM form; empty: connections are not encrypted.", ""),
    Setting("tls_key", "Key of that certificate, in PEM form, without a password.", ""),
    Setting("public_url", "Address by which browsers reach the server; empty: the one of each request.", ""),
    Setting("password_login", "Whether users may log in with a password; off: at the identity provider only.", True, "flag"),
    Setting("oidc_issuer", "Identity provider (OpenID Connect) at which users log in: https://login.example.org.", ""),
    Setting("oidc_name", "Its name on the page: 'Sign in with NAME'; empty: the host of the issuer.", ""),
    Setting("oidc_client_id", "Name by which the provider knows the server.", ""),
    Setting("oidc_client_secret", "Secret that goes with it; empty: none, or that of oidc_client_secret_file.", ""),
    Setting("oidc_client_secret_file", "File with that secret.", ""),
    Setting("oidc_scopes", "What the provider is asked to tell, besides openid.", ("profile", "email"), "list"),
    Setting("oidc_username_claim", "Claim with the user's name; of a mail address the part before the @.", "preferred_username"),
    Setting("oidc_groups_claim", "Claim with the names of the user's groups.", "groups"),
    Setting("oidc_groups", "Virtual clusters by the provider's group: a table of names or lists of names.", {}, "table"),
    Setting("oidc_admin_groups", "Groups at the provider whose members are administrators.", (), "list"),
    Setting("oidc_allowed_groups", "Groups at the provider whose members may sign in; empty: all its users.", (), "list"),
    Setting(
        "oidc_accounts", "First sign-in: create (a new account), link (or the one of that name), existing (only that).", "create"
    ),
    Setting("oidc_hosts", "Hosts besides the issuer's that the server asks on behalf of the provider.", (), "list"),
    Setting("oidc_redirects", "Addresses of OpenPAI's clients that get a token in their query after a sign-in.", (), "list"),
    Setting("cors", "Addresses of web pages that may call the server, or '*' for all.", (), "list"),
    Setting(
        "audit_file_mb", "Size at which the audit log goes on in a new file; ten old ones are kept; 0: one file.", 50, "number"
    ),
    Setting("log_level", "From which level a server and its keeper write lines: debug, info, warning or error.", "warning"),
    Setting("log_format", "How they write them: text, or json (one object a line; the access log, too).", "text"),
    Setting("access_log", "File for a line about each request; '-' for standard error, empty for none.", ""),
    Setting("v1_succeeded_state", "The word of version 1 for a job that succeeded; stock luigi wants SUCCEED.", "SUCCEEDED"),
    Setting("v1_anonymous_read", "Whether version 1 tells jobs without a token: on, off, or auto (on for loopback).", "auto"),
    Setting(
        "virtual_clusters",
        "Virtual clusters: guaranteed shares, and what each user may have at once: research:cpus=8:gpus=2:user_jobs=4.",
        (),
        "list",
    ),
    Setting("sku_types", "Kinds of cells that jobs may name: a table of {cpu, memoryMB, gpu, virtualClusters}.", {}, "table"),
    Setting("database", "Where a server keeps its jobs: a path, or postgresql://user@host/name.", ""),
    Setting("keep_days", "Days that a server keeps a finished job, its folder included; 0 for ever.", 180, "number"),
    Setting("smtp", "Mail server for notices about jobs: smtp://user:password@host:port, or smtps://.", ""),
    Setting("mail_from", "Sender of these mails.", ""),
    Setting("webhook", "Address that gets each notice about a job as JSON.", ""),
    Setting("webhook_secret", "Secret that signs each message to the webhook; empty: they are not signed.", ""),
    Setting("webhook_template", "What the webhook understands: pailot, slack, teams, dingtalk or feishu.", "pailot"),
    Setting("unix_users", "Whose processes tasks are: empty for the server's own, 'same', or user=unixuser, …", ""),
    Setting("mounts", "Where file systems and data sets are, by their ids: a table of paths and URIs.", {}, "table"),
    Setting("instance_types", "Resources by the name of a machine type: a table of {cpu, memoryMB, gpu}.", {}, "table"),
    Setting("experiments", "Where the artifacts of an experiment go, by its id: a table of URIs.", {}, "table"),
    Setting("default_fs_uri", "What $PAI_DEFAULT_FS_URI stands for in Luigi tasks; a folder in home by default.", ""),
    Setting("luigi_stop_on_interrupt", "Whether a Luigi worker that is interrupted stops the jobs it waits for.", True, "flag"),
    Setting("slurm_partitions", "Slurm's partition for a virtual cluster: 'default=main, vision=gpu'.", (), "list"),
    Setting("slurm_priorities", "QOS or nice value for a priority class: 'prod=qos:high, oppo=nice:500'.", (), "list"),
    Setting("slurm_options", "More options for each job, as sbatch takes them: '--account=vision'.", (), "list"),
    Setting(
        "slurm_shape", "One allocation of equal slots (flat), one component a role (het), or what fits better (auto).", "auto"
    ),
    Setting("slurm_container", "What runs images on the nodes: apptainer, podman, docker, or words with {image}.", ""),
    Setting(
        "slurm_shared_home", "Whether the nodes see PAILOT_HOME and the current directory: yes, no, or auto (find out).", "auto"
    ),
    Setting(
        "slurm_secrets_in_spool",
        "Whether secrets may go, in the batch script, to nodes that do not see the home; root and SlurmUser can read them.",
        False,
        "flag",
    ),
    Setting("slurm_node_folder", "Where nodes that do not see the home keep a job's files; empty: $TMPDIR, or /tmp.", ""),
    Setting("slurm_fetch_seconds", "How long such a job waits at its end for its logs and records to be fetched.", 300, "number"),
    Setting("slurm_poll_seconds", "How long Slurm is not asked at most; what happens is mostly seen without.", 15, "number"),
    Setting("kubernetes_context", "Context of the kubeconfig; empty: its current one, or the account of the pod.", ""),
    Setting("kubernetes_namespace", "Namespace of the jobs; empty: that of the context.", ""),
    Setting("kubernetes_gpu_resource", "What the cluster calls a GPU.", "nvidia.com/gpu"),
    Setting("kubernetes_gpu_label", "Label of nodes that says which GPUs they have, for gpuType.", "nvidia.com/gpu.product"),
    Setting("kubernetes_infiniband", "What the cluster calls an InfiniBand device: 'rdma/hca'; empty: there is none.", ""),
    Setting("kubernetes_node_selector", "Labels that nodes for jobs must have: 'pool=batch, vision:pool=gpu'.", (), "list"),
    Setting(
        "kubernetes_tolerations",
        "Taints that jobs accept: KEY, KEY=VALUE or VC:KEY=VALUE:EFFECT.",
        (),
        "list",
    ),
    Setting("kubernetes_annotations", "More annotations of pods: NAME=VALUE.", (), "list"),
    Setting("kubernetes_queues", "Kueue's LocalQueue for a virtual cluster: 'default=main, vision=gpu'.", (), "list"),
    Setting("kubernetes_priorities", "PriorityClass for a priority class: 'prod=high, oppo=low'.", (), "list"),
    Setting("kubernetes_image_pull", "When nodes pull images: IfNotPresent, Always or Never.", "IfNotPresent"),
    Setting("kubernetes_pull_secrets", "Secrets of the namespace with the credentials of registries.", (), "list"),
    Setting("kubernetes_service_account", "Account of the pods; they get no token of it.", ""),
    Setting("kubernetes_restricted", "Whether pods obey Pod Security 'restricted': not root, no rights to gain.", False, "flag"),
    Setting("kubernetes_user", "User and group number of tasks, '1000:1000'; empty: the image's.", ""),
    Setting("kubernetes_storages", "Volumes for the storages that jobs name: NAME=CLAIM.", (), "list"),
    Setting("kubernetes_checkpoints", "Claim of a volume that keeps checkpoints over the attempts of a job.", ""),
    Setting("kubernetes_fetch_seconds", "How long a task that ended waits for its logs to be fetched.", 300, "number"),
    Setting("kubernetes_start_seconds", "How long a pod may fail to get its image before the job fails.", 60, "number"),
    Setting("openpai_server", "Server that the engine openpai hands jobs to; empty: that of pailot login.", ""),
    Setting("openpai_token", "Token for that server; empty: that of pailot login.", ""),
    Setting("code_limit_mb", "Largest code folder that can be sent along with a job, compressed.", 200, "number"),
    Setting("code_quota_mb", "Room on the server for the code that a user has sent, unpacked; 0 for no bound.", 20_000, "number"),
    Setting("code_quota_files", "Files and folders of it; 0 for no bound.", 1_000_000, "number"),
    Setting("task_sessions", "Shells, forwarded connections and copies that a user of a server may have at once.", 20, "number"),
    Setting("task_session_idle_minutes", "How long a shell or forwarded connection may be silent before it ends.", 60, "number"),
    Setting("copy_limit_mb", "Most that one `pailot cp` may write to a task of a server.", 100_000, "number"),
    Setting("container_command", "Docker, Podman or nerdctl by name or path; empty: the first that answers.", ""),
    Setting("container_network", "Network of containers: host, or bridge (one a job, ports published).", "host"),
    Setting("container_user", "Who a task is in its container: caller (files are yours) or root.", "caller"),
    Setting("container_mounts", "More folders for containers: /FOLDER, /FOLDER:/INSIDE or /FOLDER:/INSIDE:ro.", (), "list"),
    Setting("image_pull", "When images are pulled: missing, always or never.", "missing"),
    Setting("storage_folders", "Folders for the storages that jobs name: NAME=/FOLDER.", (), "list"),
    Setting("allowed_schemes", "More kinds of addresses that jobs of a server may name: 'sftp, zip'.", (), "list"),
    Setting("allowed_addresses", "Hosts near the server that its jobs may name: HOST, HOST:PORT or NETWORK.", (), "list"),
    Setting("private_networks", "Whether a server fetches from private networks for jobs.", True, "flag"),
    Setting("storage_credentials", "Whether a server uses its own credentials to fetch and publish for jobs.", False, "flag"),
)


MOST = 1_000_000_000
"""Of any number: more days, seconds or megabytes than that are a slip."""


class BadSetting(PailotError):
    """A setting that cannot be understood."""


class Settings:
    """The settings in force."""

    def __init__(self, environment: Mapping[str, str] | None = None, folder: str = ".") -> None:
        environment = os.environ if environment is None else environment
        from_file, file = _read_file(environment, folder)
        known = {setting.name for setting in SETTINGS}
        for name in from_file:
            if name not in known:
                raise BadSetting(f"{file}: there is no setting '{name}'{suggestion(name, known)}")
        self._values: dict[str, Any] = {}
        for setting in SETTINGS:
            variable = f"PAILOT_{setting.name.upper()}"
            if environment.get(variable):
                self._values[setting.name] = _from_text(setting, environment[variable], variable)
            elif setting.name in from_file:
                self._values[setting.name] = _from_toml(setting, from_file[setting.name], file)
            else:
                self._values[setting.name] = setting.default
        self._environment = environment

    @property
    def home(self) -> str:
        """Folder for everything Pailot keeps."""
        return os.path.abspath(os.path.expanduser(self._values["home"] or _xdg(self._environment, "DATA", ".local/share")))

    @property
    def cache(self) -> str:
        """Folder for what can be fetched again."""
        return _xdg(self._environment, "CACHE", ".cache")

    @property
    def data_folder(self) -> str:
        """Folder for data sets of the library, with one folder for each kind of credentials that they were fetched with."""
        named = str(self._values["data_cache"])
        return os.path.abspath(os.path.expanduser(named)) if named else os.path.join(self.cache, "data")

    @property
    def own_data_folder(self) -> str:
        """Where a user's own runs share data sets, fetched with what that user may read."""
        return os.path.join(self.data_folder, "own")

    @property
    def data_bytes(self) -> int:
        """To how much of it what no job uses is removed."""
        return int(self._values["data_cache_mb"] * 1_000_000)

    def __getitem__(self, name: str) -> Any:
        """The value of a setting by its name."""
        return self._values[name]

    @property
    def library(self) -> tuple[str, ...]:
        return tuple(self._values["library"])

    @property
    def mounts(self) -> Mapping[str, Any]:
        """Where file systems and data sets are, by their ids."""
        table: dict[str, Any] = self._values["mounts"]
        return table

    @property
    def default_fs_uri(self) -> str:
        """What $PAI_DEFAULT_FS_URI stands for."""
        return str(self._values["default_fs_uri"] or os.path.join(self.home, "fs")).rstrip("/")

    @property
    def log_rotate_mb(self) -> float:
        return float(self._values["log_rotate_mb"])

    @property
    def library_cache_seconds(self) -> float:
        return float(self._values["library_cache_seconds"])


def split_list(text: str) -> list[str]:
    """'a, https://b' as its parts; commas, since addresses hold colons."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _xdg(environment: Mapping[str, str], kind: str, fallback: str) -> str:
    base = environment.get(f"XDG_{kind}_HOME") or os.path.join(os.path.expanduser("~"), fallback)
    return os.path.join(base, "pailot")


def _read_file(environment: Mapping[str, str], folder: str) -> tuple[dict[str, object], str]:
    for candidate in (os.path.join(folder, "pailot.toml"), os.path.join(_xdg(environment, "CONFIG", ".config"), "pailot.toml")):
        try:
            stream = open(candidate, "rb")  # noqa: SIM115  # closed below; most often there is none
        except OSError:
            continue
        import tomllib

        with stream:
            try:
                return tomllib.load(stream), candidate
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise BadSetting(f"{candidate}: {error}") from None
    return {}, ""


def _from_text(setting: Setting, text: str, where: str) -> Any:
    if setting.kind == "list":
        return split_list(text)
    if setting.kind == "number":
        try:
            return _bounded(float(text), where)
        except ValueError:
            raise BadSetting(f"{where}: should be a number, is {text!r}") from None
    if setting.kind == "amount":
        return text.strip() or setting.default
    if setting.kind == "flag":
        if text.lower() not in _FLAGS:
            raise BadSetting(f"{where}: should be on or off, is {text!r}")
        return _FLAGS[text.lower()]
    if setting.kind == "table":
        import json

        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise BadSetting(f"{where}: should be a JSON object, is {text!r}")
        _check_finite(value, where)
        return value
    return text


_FLAGS = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


def _from_toml(setting: Setting, value: Any, file: str) -> Any:
    wanted: dict[str, tuple[type, ...]] = {
        "amount": (int, str, list),
        "list": (list,),
        "number": (int, float),
        "text": (str,),
        "flag": (bool,),
        "table": (dict,),
    }
    if not isinstance(value, wanted[setting.kind]) or isinstance(value, bool) != (setting.kind == "flag"):
        raise BadSetting(f"{file}: '{setting.name}' should be a {setting.kind}, is {value!r}")
    if setting.kind == "amount":
        return "".join(f"{each}," for each in value) if isinstance(value, list) else str(value)
    if setting.kind == "number":
        return _bounded(value, f"{file}: '{setting.name}'")
    if setting.kind == "table":
        _check_finite(value, f"{file}: '{setting.name}'")
    return value


def _bounded(value: Any, where: str) -> Any:
    if not 0 <= value <= MOST:
        raise BadSetting(f"{where}: should be between 0 and {MOST}, is {value}")
    return value


def _check_finite(value: Any, where: str) -> None:
    """Whatever is in a table can be written as JSON again."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_finite(each, where)
    elif isinstance(value, float) and not abs(value) < float("inf"):
        raise BadSetting(f"{where}: {value} is no finite number")


def current_user() -> str:
    """The name of the current user, in the form that a job's owner may have."""
    user = os.environ.get("LOGNAME") or os.environ.get("USER") or ""
    if not user:
        try:
            user = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            user = f"uid{os.getuid()}"
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in user)
