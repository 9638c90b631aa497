#!/usr/bin/env bash
# Walks a stranger's path in a clean root folder, and prints the seconds of each step. Needs root.
#   debootstrap --variant=minbase --include=ca-certificates,git,make,python3,python3-venv bookworm /tmp/bookworm
#   tools/stranger.sh /tmp/bookworm
set -euo pipefail
root=${1:?the root folder}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rm -rf "$root/home/stranger"
mkdir -p "$root/home/stranger"
git clone --quiet --no-hardlinks "$here" "$root/home/stranger/pailot"
# How this machine reaches its packages: name server, certificates, pip's own configuration.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
mount -t proc proc "$root/proc"
mount --rbind --make-rslave /dev "$root/dev"
trap 'umount "$root/proc"; umount --lazy "$root/dev"' EXIT
cat >"$root/home/stranger/path.sh" <<'PATH_OF_A_STRANGER'
set -euo pipefail
step() {
    local expected=$1 began=$EPOCHREALTIME status=0
    shift
    bash -c "$*" >/home/stranger/step.log 2>&1 || status=$?
    printf '%6.1f s  %s\n' "$(python3 -c "print($EPOCHREALTIME - $began)")" "$*"
    if [ "$status" != "$expected" ]; then cat /home/stranger/step.log; exit 1; fi
}
cd /home/stranger/pailot
export HOME=/home/stranger PATH=/home/stranger/pailot/.venv/bin:/usr/bin:/bin:/usr/sbin:/sbin
. /etc/os-release && echo "$PRETTY_NAME, $(python3 --version)"
step 0 make run
mkdir ../work && cd ../work
step 0 pailot init
step 0 pailot run job.yaml
sed -i 's/^    commands:.*/&\n      - test -e missing.txt/' job.yaml
step 1 pailot run job.yaml
step 0 "pailot why my-job | grep 'test -e missing.txt'"
touch missing.txt
step 0 pailot run job.yaml
PATH_OF_A_STRANGER
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin PIP_DEFAULT_TIMEOUT=180 PIP_CERT=/etc/ssl/certs/ca-certificates.crt chroot "$root" /bin/bash /home/stranger/path.sh
