"""What looks like a credential: by the name it has, by its shape, by its place in an address or a command.

These rules are the only ones in the house. Whatever masks, seals or leaves out asks here: jobs through
`protocol.secrecy`, the environment of a task through `of_environment` and `is_harmless`. Nothing is read or written.
This module travels to the nodes of a cluster: standard library only, Python 3.9.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MIN_CHARACTERS = 4
"""A shorter text cannot be masked in a log without masking half of it."""
MIN_OPAQUE_CHARACTERS = 8
STRONG, WEAK = 2, 1

_STRONG_ENDS = ("PASSWORD", "PASSWD", "PASSPHRASE", "PASSCODE", "SECRET", "SECRETS", "CONNECTION_STRING", "CONNECTIONSTRING")
_WEAK_ENDS = ("TOKEN", "KEY", "PAT", "AUTH", "CREDENTIAL", "CREDENTIALS", "PASS", "PWD", "SIG", "SIGNATURE", "SECRET_KEY_BASE")
_ENDS = (*_STRONG_ENDS, *_WEAK_ENDS)
_OF_WORDS = frozenset("PAD EOS BOS UNK MASK SEP CLS SPECIAL START END STOP IMAGE NEW FIRST LAST NEXT PREV".split())
"""Before `token`: then it is one of a language model."""

_ORDINARY = frozenset("true false none null yes no on off auto default empty undefined required optional prompt".split())
_PATH = r"(?:~|\.{1,2})?/[^+=\s]*|[A-Za-z]:\\\S*|file:\S*"
_HOST = r"(?:localhost|(?:[a-z0-9-]+\.)+[a-z]{2,15}|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\])\.?(?::\d{1,5})?"

_HARMLESS_NAMES = frozenset(
    "PATH HOME PWD OLDPWD SHELL SHLVL USER LOGNAME HOSTNAME LANG LANGUAGE TZ TERM COLORTERM COLUMNS LINES TMPDIR TMP TEMP EDITOR "
    "PAGER DISPLAY NO_COLOR FORCE_COLOR CI _ VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL CONDA_EXE PYTHONPATH "
    "PYTHONHOME PYTHONUNBUFFERED PYTHONHASHSEED PYTHONIOENCODING PYTHONUTF8 PYTHONDONTWRITEBYTECODE PYTHONWARNINGS "
    "LD_LIBRARY_PATH LD_PRELOAD LIBRARY_PATH CPATH MANPATH INFOPATH PKG_CONFIG_PATH MODULEPATH LOADEDMODULES JAVA_HOME "
    "HADOOP_HOME SPARK_HOME HF_HOME TORCH_HOME GOPATH CARGO_HOME MASTER_ADDR MASTER_PORT RANK LOCAL_RANK NODE_RANK WORLD_SIZE "
    "TF_CONFIG TF_CPP_MIN_LOG_LEVEL TOKENIZERS_PARALLELISM GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK".split()
)
_HARMLESS_PREFIXES = (
    "LC_", "XDG_", "PAI_", "FC_", "SLURM_", "CUDA_", "NVIDIA_", "NCCL_", "ROCR_", "HIP_", "OMP_", "KMP_", "GOMP_", "MKL_",
    "OPENBLAS_", "NUMEXPR_", "GLOO_", "UCX_", "OMPI_", "XLA_",
)  # fmt: skip

# Without one of these in small letters no text holds a credential that `in_text` or a name would find.
_HINTS = (
    "pass", "pwd", "secret", "token", "credential", "auth", "key", "signature", "sig=", "connection", "_pat:", "_pat=",
    '_pat"', "_pat'", "bearer ", "akia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "xox", "eyj", "glpat-", "aiza",
    "sk-proj-", "sk-ant-", "hf_",
)  # fmt: skip
_SHAPE_STARTS = ("AKIA", "gh", "xox", "eyJ", "glpat-", "AIza", "sk-", "hf_", "-----")
_VALUE = r"""("[^"\n]*"|'[^'\n]*'|[^\s;&|"'<>`(){}\\]+)"""
# All are linear in the text: what may be long begins where a word does, and stops at what it begins with.
_NAMED = r"(?<![\w.-])([A-Za-z_][\w.-]*)=" + _VALUE
_OPTION = r"(?<![\w-])--([A-Za-z][\w-]*)[ =]" + _VALUE
_QUOTED = r"""["']([A-Za-z_][\w.-]*)["']\s*:\s*["']([^"'\n]+)["']"""
_IN_ADDRESS = r"://([^/\s:@<>'\"$]*):([^@\s/<>$'\"]{3,})@"
_ALONE_IN_ADDRESS = r"://([^/\s:@<>'\"$]{16,})@"
_IN_HEADER = r"\b(?:[Bb]earer|[Bb]asic)\s+([A-Za-z0-9._~+/=-]{8,})"
_SHAPES = (
    r"(?<![\w-])(?:AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9_]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abp]-[A-Za-z0-9-]{10,}|glpat-[\w-]{16,}"
    r"|AIza[\w-]{30,}|sk-(?:proj|ant)-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
)
_KEY_BEGINS, _KEY_ENDS = "PRIVATE KEY-----\n", "-----END "


def strength(name: str) -> int:
    """How surely a name is that of a credential: 0, `WEAK` (the value has to look like one), or `STRONG`.

    >>> [strength(name) for name in ("db_password", "GITHUB_PAT", "accessKey", "MYSQL_PWD", "PWD", "eos_token", "path")]
    [2, 1, 1, 2, 0, 0, 0]
    """
    upper = name.upper()
    if not upper.endswith(_ENDS):
        return 0
    if upper.endswith(_STRONG_ENDS):
        return STRONG
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).upper().replace("-", "_").replace(".", "_").split("_")
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if (last == "PWD" and before in ("", "OLD")) or (last == "TOKEN" and before in _OF_WORDS) or name == "OLDPWD":
        return 0
    if last in ("PWD", "PASS") and before:
        return STRONG if last == "PWD" else WEAK
    return WEAK if last in _WEAK_ENDS or upper.endswith(("APIKEY", "ACCESSKEY", "SSHPASS", "SECRET_KEY_BASE")) else 0


def is_ordinary(value: str) -> bool:
    """Whether a value is none, whatever its name: too short, a switch, a small number, a path, a host, a reference."""
    if len(value) < MIN_CHARACTERS or value.lower() in _ORDINARY or "<%" in value or value[0] == "$" or value.strip("*") == "":
        return True
    if value.replace(".", "", 1).isdigit():
        return len(value) < 6
    return re.fullmatch(f"{_PATH}|{_HOST}", value) is not None


def is_common(value: str) -> bool:
    """Whether a value is likely to stand in a text without meaning itself: a word, a small number, a path, a host."""
    return is_ordinary(value) or (value.isalpha() and len(value) < 12)


def is_opaque(value: str) -> bool:
    """Whether a value looks like no word and no name: letters and digits, or small and capital letters, mixed.

    >>> [is_opaque(value) for value in ("dXNlcjpwYXNz", "s3cr3t-key", "learning-rate", "12345678", "db.example.com")]
    [True, True, False, False, False]
    """
    if len(value) < MIN_OPAQUE_CHARACTERS or is_ordinary(value) or any(character.isspace() for character in value):
        return False
    return bool(re.search("[A-Za-z]", value) and re.search("[0-9]|[a-z][A-Z]", value))


def may_hold(text: str) -> bool:
    """A quick look: False says that no credential is in this text, nor a name of one."""
    if "@" in text and "://" in text:
        return True
    lowered = text.lower()
    for hint in _HINTS:  # noqa: SIM110  # this is asked for every job, and a generator would cost as much again
        if hint in lowered:
            return True
    return False


def of_value(name: str, value: str) -> Iterator[str]:
    """What is secret of a value that has a name: all of it, or what stands in it."""
    if value and _is_credential(strength(name), value):
        yield value
    if may_hold(value):
        yield from in_text(value)


def in_text(text: str) -> Iterator[str]:
    """Credentials in a longer text: in addresses, assignments, options, headers, and those with a shape of their own."""
    for user, password in re.findall(_IN_ADDRESS, text):
        yield from _plain(password)
        if is_opaque(user):
            yield user
    yield from (user for user in re.findall(_ALONE_IN_ADDRESS, text) if is_opaque(user))
    for pattern in (_NAMED, _OPTION, _QUOTED):
        for name, found in re.findall(pattern, text):
            value = found[1:-1] if found[0] in "\"'" else found
            if _is_credential(strength(name), value, among_words=True):
                yield from _plain(value)
    yield from (value for value in re.findall(_IN_HEADER, text) if is_opaque(value))
    yield from re.findall(_SHAPES, text)
    yield from _private_keys(text)


def _private_keys(text: str) -> Iterator[str]:
    """What stands between the first and the last line of a key."""
    at = text.find(_KEY_BEGINS)
    while at >= 0:
        begin = at + len(_KEY_BEGINS)
        end = text.find(_KEY_ENDS, begin)
        if end < 0:
            return
        yield text[begin:end]
        at = text.find(_KEY_BEGINS, end + len(_KEY_ENDS) + len(_KEY_BEGINS))


def of_environment(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The credentials among variables that a task inherits."""
    found: dict[str, None] = {}
    for name, value in variables.items():
        if strength(name) or "://" in value or value.startswith(_SHAPE_STARTS):
            found.update(dict.fromkeys(of_value(name, value)))
    return tuple(found)


def is_harmless(name: str) -> bool:
    """Whether a variable is known to hold no credential, so that a record may keep the value it was inherited with.

    >>> is_harmless("CUDA_VISIBLE_DEVICES"), is_harmless("PAI_TOKEN"), is_harmless("GITHUB_PAT"), is_harmless("ANYTHING")
    (True, False, False, False)
    """
    return name in _HARMLESS_NAMES or (name.startswith(_HARMLESS_PREFIXES) and not strength(name))


def _is_credential(strong: int, value: str, *, among_words: bool = False) -> bool:
    if strong == STRONG:
        return not is_ordinary(value) and (not among_words or len(value) >= 6 or is_opaque(value))
    return strong == WEAK and is_opaque(value)


def _plain(value: str) -> Iterator[str]:
    """A value as it stands in an address, and as it is meant."""
    yield value
    if "%" in value:
        raw = re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes((int(match[1], 16),)), value.encode("utf-8", "replace"))
        meant = raw.decode("utf-8", "replace")
        if len(meant) >= MIN_CHARACTERS:
            yield meant
