"""The first process of a task's container: a script for whatever /bin/sh the image has, using only what is built into it.

It does what the shim says and tells how that went, through FIFOs in the task's folder, which is mounted. So nothing
depends on the engine's daemon once the container runs, and a container whose shim has died ends by itself: the pipe
from the shim is then at its end.

Words from the shim, a line each: `run NAME` a script, `keep` what runs now, `left` asks how many other processes there
are, `term` and `kill` send them a signal, `file NAME END` is followed by lines for a file in memory up to the line END,
`bye` is the end. Answers: `hello SHELL`, `ended NAME STATUS HOW KILLS`, `left NUMBER`; and `over`, at an end of its own.
A signal from outside (`docker kill -s`) does the same: SIGTERM as `term`, SIGUSR1 as `kill`.
"""

from __future__ import annotations

IN_MEMORY = "memory-"
"""Before the name of a script: the way to one that lies in the container's memory."""

SCRIPT = r"""
here=$1 memory=$2 work=$3
exec 5<>"$here/control" 3<"$here/control" 5>&- || exit 125
exec 5<>"$here/events" 4>"$here/events" 5>&- || exit 125
kept= runner= listener= found=

shell=
for path in /bin/bash /usr/bin/bash /usr/local/bin/bash; do
  [ -n "$shell" ] || [ ! -x "$path" ] || shell=$path
done
kind=bash
if [ -z "$shell" ]; then
  shell=/bin/sh kind=posix
  if (set -o pipefail) 2>/dev/null; then kind=sh; fi
fi

# Every other process but those that are kept, with their children. Small numbers come first: a shell must hear of a
# signal before its child dies of it, or it would take that for a failure.
d='[0-9]'
others() {
  found= apart=" 1 $listener $runner $kept "
  for path in /proc/$d /proc/$d$d /proc/$d$d$d /proc/$d$d$d$d /proc/$d$d$d$d$d /proc/$d$d$d$d$d$d /proc/$d$d$d$d$d$d$d; do
    pid=${path#/proc/}
    case $apart in *" $pid "*) continue;; esac
    { IFS= read -r stat <"$path/stat"; } 2>/dev/null || continue
    stat=${stat##*) }
    case $stat in Z*|X*) continue;; esac
    stat=${stat#* }
    case " $kept " in *" ${stat%% *} "*) apart="$apart$pid "; continue;; esac
    found="$found $pid"
  done
}

tell_others() {
  others
  for pid in $found; do kill -"$1" "$pid" 2>/dev/null; done
}

kill_others() {
  rounds=0
  while [ $rounds -lt 20 ]; do
    tell_others KILL
    [ -n "$found" ] || return 0
    rounds=$((rounds + 1))
  done
}

# How often the kernel killed a process because the container used more memory than it may.
count_kills() {
  kills=0
  for path in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r "$path" ] || continue
    while read -r key value; do
      [ "$key" != oom_kill ] || kills=$value
    done <"$path"
  done
}

run_script() {
  trap : TERM HUP INT USR1
  name=$1 script=$here/$1.sh variables=$here/$1.env
  [ ! -e "$memory/$name.env" ] || variables=$memory/$name.env
  [ ! -e "$memory/$name.sh" ] || script=$memory/$name.sh
  [ ! -e "$here/memory-$name.sh" ] || script=$here/memory-$name.sh
  if [ "$kind" = posix ]; then
    script=${script%.sh}.posix.sh
  fi
  # What a shell says of a child that a signal killed goes there: it tells SIGKILL from `exit 137`.
  exec 2>"$here/$name.how" 3<&-
  (
    . "$variables"
    cd "$work" || exit 126
    exec "$shell" "$script"
  ) </dev/null >"$here/stdout.pipe" 2>"$here/stderr.pipe" 4>&-
  status=$? how=exit
  exec 2>/dev/null
  if [ -s "$here/$name.how" ]; then how=signal; fi
  count_kills
  printf '%s %s %s\n' "$status" "$how" "$kills" >"$here/$name.end"
  printf 'ended %s %s %s %s\n' "$name" "$status" "$how" "$kills" >&4
}

remember() { printf '%s\n%s\n' "$runner" "$kept" >"$here/inside"; }

listen() {
  trap : TERM HUP INT USR1
  read -r listener rest </proc/self/stat
  while IFS= read -r line <&3; do
    case $line in
      "run "*) run_script "${line#run }" & runner=$!; remember;;
      keep) others; kept="$kept $found"; remember;;
      left)
        others; set -- $found
        printf 'left %s\n' "$#" >&4;;
      term) tell_others TERM;;
      kill) kill_others;;
      "file "*)
        line=${line#file }
        umask 077
        while IFS= read -r text <&3 && [ "$text" != "${line#* }" ]; do printf '%s\n' "$text"; done >"$memory/${line%% *}"
        umask 022;;
      bye) return;;
    esac
  done
}

from_outside() {
  { read -r runner; read -r kept; } <"$here/inside" 2>/dev/null
  if [ "$1" = TERM ]; then : >"$here/told"; tell_others TERM; else kill_others; fi
}

: >"$here/inside"
listen &
listener=$!
trap 'from_outside TERM' TERM
trap 'from_outside KILL' USR1
printf 'hello %s\n' "$kind" >&4
while kill -0 "$listener" 2>/dev/null; do wait "$listener"; done
# Who kills this process from outside leaves it no time for that.
printf 'over\n' >&4
"""
