"""`ssh`: log in to tasks, and between the tasks of a job without a password.

Nothing outside the task's own folder is touched: no key, no configuration of the user or the system.
`ssh ROLE-INDEX`, `scp` and `sftp` work through wrappers that are first on the PATH of the task.
"""

from __future__ import annotations

from ...protocol.model import EXIT, START
from ...runfolder.plan import Provision
from .plugin_api import PluginError, Steps, on, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEFAULT_BARRIER_MINUTES = 30
BARRIER_EXIT_CODE = 10

_SERVER = """\
sshd=$(PATH="$PATH:/usr/sbin:/sbin"; command -v sshd || true)
if [ -z "$sshd" ] || ! command -v ssh-keygen >/dev/null; then
  echo "ssh: there is no sshd or no ssh-keygen here, so nobody can log in to this task" >&2
else
  PAI_SSH_DIR=$(mktemp -d)
  export PAI_SSH_DIR
  umask_before=$(umask)
  umask 077
  ssh-keygen -q -t ed25519 -N '' -f "$PAI_SSH_DIR/host_key"
  : >"$PAI_SSH_DIR/authorized_keys"
{authorize}
  # Only PAM lets a locked account in with its key; it asks more of a container than most have, so it is used for that alone.
  pam=no
  if [ "$(id -u)" -eq 0 ]; then
    case $(getent shadow "$(id -un)" 2>/dev/null | cut -d: -f2) in '!'*) pam=yes ;; esac
    mkdir -p /run/sshd
  fi
  cat >"$PAI_SSH_DIR/sshd_config" <<END
Port $PAI_CONTAINER_SSH_PORT
HostKey $PAI_SSH_DIR/host_key
AuthorizedKeysFile $PAI_SSH_DIR/authorized_keys
PidFile $PAI_SSH_DIR/sshd.pid
PasswordAuthentication no
StrictModes no
UsePAM $pam
Subsystem sftp internal-sftp
END
  umask "$umask_before"
  "$sshd" -f "$PAI_SSH_DIR/sshd_config"
fi"""

_PEERS = """\
if [ -n "${PAI_SSH_DIR:-}" ]; then
  for peer in ${PAI_TASK_ROLE_INSTANCES//,/ }; do
    role=${peer%:*} index=${peer#*:}
    address=PAI_HOST_IP_${role}_$index port=PAI_PORT_LIST_${role}_${index}_ssh names="$role-$index"
    for name in ${PAI_TASK_ROLE_LIST//,/ }; do
      plain=${name,,}
      [ "${plain//[^a-z0-9]/}" != "$role" ] || [ "$name" = "$role" ] || names="$names $name-$index"
    done
    printf 'Host %s\\n  HostName %s\\n  Port %s\\n' "$names" "${!address}" "${!port%%,*}"
  done >"$PAI_SSH_DIR/config"
  cat >>"$PAI_SSH_DIR/config" <<END
Host *
  IdentityFile $PAI_JOB_SSH_KEY
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
END
  mkdir -p "$PAI_SSH_DIR/bin"
  for name in ssh scp sftp; do
    if program=$(command -v $name); then
      printf '#!/bin/sh\\nexec "%s" -F "%s" "$@"\\n' "$program" "$PAI_SSH_DIR/config" >"$PAI_SSH_DIR/bin/$name"
      chmod +x "$PAI_SSH_DIR/bin/$name"
    fi
  done
  export PATH="$PAI_SSH_DIR/bin:$PATH"
fi"""

_BARRIER = """\
deadline=$((SECONDS + {seconds}))
for peer in ${{PAI_TASK_ROLE_INSTANCES//,/ }}; do
  until ssh -o ConnectTimeout=5 -o BatchMode=yes "${{peer%:*}}-${{peer#*:}}" true </dev/null 2>/dev/null; do
    if [ $SECONDS -ge $deadline ]; then
      echo "ssh: $peer cannot be reached within {minutes} minutes" >&2
      exit {code}
    fi
    sleep 0.5
  done
done"""

_STOP = """\
if [ -n "${PAI_SSH_DIR:-}" ]; then
  [ ! -s "$PAI_SSH_DIR/sshd.pid" ] || kill "$(cat "$PAI_SSH_DIR/sshd.pid")" 2>/dev/null || true
  rm -rf "$PAI_SSH_DIR"
fi"""


def plugin(
    *,
    jobssh: Any = False,
    sshbarrier: Any = False,
    sshbarrierTimeout: Any = None,  # noqa: N803  # the file's own spelling
    userssh: Any = None,
    callbacks: Any = (),
    failurePolicy: str = "fail",  # noqa: N803  # the file's own spelling
    **_: Any,
) -> Steps:
    """Start an ssh server for the owner's key, and for the other tasks of the job if `jobssh`."""
    between_tasks = _true(jobssh)
    user_key = _user_key(userssh)
    if not between_tasks and not user_key:
        return Steps(tuple(callbacks))
    authorize = []
    if between_tasks:
        authorize.append('  cat "$PAI_JOB_SSH_KEY.pub" >>"$PAI_SSH_DIR/authorized_keys"')
    if user_key:
        authorize.append(f'  echo {quote(user_key)} >>"$PAI_SSH_DIR/authorized_keys"')
    commands = [_SERVER.format(authorize="\n".join(authorize))]
    if between_tasks:
        commands.append(_PEERS)
        if _true(sshbarrier):
            minutes = _minutes(sshbarrierTimeout)
            commands.append(_BARRIER.format(seconds=minutes * 60, minutes=minutes, code=BARRIER_EXIT_CODE))
    key = (Provision("ssh-key", variable="PAI_JOB_SSH_KEY"),) if between_tasks else ()
    return Steps((on(START, commands, failurePolicy), on(EXIT, [_STOP], "ignore"), *callbacks), key)


def _true(value: Any) -> bool:
    return value is True or value == "true"


def _user_key(userssh: Any) -> str:
    if userssh is None:
        return ""
    if not isinstance(userssh, dict) or not isinstance(userssh.get("value", ""), str):
        raise PluginError("'userssh' should be a mapping with 'type' and 'value', the public key", "userssh")
    key: str = userssh.get("value", "")
    return key.strip()


def _minutes(value: Any) -> int:
    if value is None:
        return DEFAULT_BARRIER_MINUTES
    if not str(value).isdecimal() or int(value) < 1:
        raise PluginError("'sshbarrierTimeout' should be a number of minutes, at least 1", "sshbarrierTimeout")
    return int(value)
