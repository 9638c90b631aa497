"""Which file systems are not safe for SQLite, and where the index lives instead.

A database shared by several machines through a network file system loses its locks and its shared
memory. So each machine then keeps an index of its own; the job folders stay where they are.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Also what a virtual machine shares with its host: two kernels see the files, as two machines do.
NETWORK = frozenset(
    "9p acfs afp afs auristorfs beegfs beegfs_nodev ceph cifs coda davfs drvfs dvs fhgfs gfs gfs2 glusterfs gpfs lustre mmfs "
    "ncpfs nfs nfs3 nfs4 ocfs2 orangefs panfs prl_fs pvfs2 quobyte shfs smb2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs".split()
)
# Any other FUSE file system may be a network in disguise (sshfs, rclone, s3fs, gcsfuse, ...).
LOCAL_FUSE = frozenset("bindfs encfs fuse-overlayfs gocryptfs lxcfs mergerfs ntfs ntfs-3g overlayfs unionfs".split())

MOUNTS = "/proc/self/mountinfo"
LASTING_TEMPORARY = "/var/tmp"  # noqa: S108  # only a folder below it that is ours alone is used
ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def is_network(path: str, mounts: str | None = None) -> str | None:
    """The type of the network file system that the path is on (it need not exist yet); None on a local one.

    `mounts` is the text of /proc/self/mountinfo, for tests; where there is none, everything counts as local.
    """
    if mounts is None:
        try:
            os.stat(path)  # lets an automatic mount happen
        except OSError:
            pass  # it will be made later
        try:
            with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as stream:
                mounts = stream.read()
        except OSError:
            return None
    path = os.path.realpath(path)
    longest, kind = -1, ""
    for line in mounts.split("\n"):
        # 36 35 98:0 /root /mount/point rw,noatime shared:1 - type source options
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = fields[4]
        if "\\" in point:
            for escape, character in ESCAPES.items():  # the backslash comes last
                point = point.replace(escape, character)
        # Of two on the same point the later one hides the earlier.
        if len(point) >= longest and (path == point or path.startswith(point.rstrip("/") + "/")):
            longest, kind = len(point), right.split(" ", 1)[0]
    return kind if _crosses_the_network(kind) else None


def index_path(home: str, state_folder: str | None = None, mounts: str | None = None) -> str:
    """The file of the index: in the home, or on this machine's own disk where the home is on a network.

    `state_folder` is Pailot's folder for state (default: `$XDG_STATE_HOME/pailot`, else `~/.local/state/pailot`).
    Where that is on a network too, as on most clusters, it is a folder of the user's in /var/tmp, and as a
    last resort the state folder with this machine's name, so that no two machines ever share a file.
    """
    home = os.path.realpath(home)
    if is_network(home, mounts) is None:
        return os.path.join(home, "index.db")
    import hashlib

    state_folder = state_folder or default_state_folder(os.environ)
    own = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    if is_network(state_folder, mounts) is None:
        return os.path.join(state_folder, own, "index.db")
    folder = os.path.join(LASTING_TEMPORARY, f"pailot-{os.geteuid()}")
    if is_network(folder, mounts) is None and _is_ours_alone(folder):
        return os.path.join(folder, own, "index.db")
    return os.path.join(state_folder, f"{own}-{os.uname().nodename}", "index.db")


def default_state_folder(environment: Mapping[str, str]) -> str:
    """Pailot's folder for what this machine knows, as the XDG rules have it."""
    base = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "pailot")


def _crosses_the_network(kind: str) -> bool:
    if kind == "fuse" or kind.startswith("fuse."):
        return kind.removeprefix("fuse.") not in LOCAL_FUSE
    return kind in NETWORK


def _is_ours_alone(folder: str) -> bool:
    """Make a folder where everybody may write, and make sure that no other user made it before."""
    try:
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        about = os.lstat(folder)
    except OSError:
        return False
    return about.st_mode & 0o170077 == 0o040000 and about.st_uid == os.geteuid()  # a folder, not a link; no one else's
