"""Where the index may live: told from the mounts, as /proc/self/mountinfo lists them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pailot.store import index_path, is_network
from pailot.store.network_filesystems import default_state_folder

MOUNTS = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /home rw,relatime shared:5 - autofs systemd-1 rw,fd=47
31 30 0:41 / /home/ann rw,relatime shared:6 master:2 - nfs4 filer:/home/ann rw,vers=4.2
32 31 254:9 / /home/ann/scratch rw - xfs /dev/vdb rw
33 27 0:42 / /home2 rw - ext4 /dev/vdc rw
34 27 0:43 / /lustre rw - lustre mgs@tcp:/work rw,flock
35 27 0:44 / /gpfs/fs\0401 rw - gpfs fs1 rw
36 27 0:45 / /mnt/a\134040b rw - cifs //server/share rw
37 27 0:46 / /mnt/twice rw - nfs filer:/old rw
38 27 0:47 / /mnt/twice rw - ext4 /dev/vdd rw
39 27 0:48 / /mnt/again rw - ext4 /dev/vde rw
40 39 0:49 / /mnt/again rw - beegfs beegfs_nodev rw
41 27 0:50 / /mnt/ssh rw - fuse.sshfs ann@host: rw
42 27 0:51 / /mnt/rclone rw - fuse.rclone drive: rw
43 27 0:52 / /mnt/crypt rw - fuse.gocryptfs /x rw
44 27 0:53 / /mnt/stick rw - fuseblk /dev/sdb1 rw
45 27 0:54 / /mnt/host rw - 9p host rw
46 27 0:55 / /mnt/ceph rw - ceph 10.0.0.1:/ rw
47 27 0:56 / /afs rw - afs AFS rw
48 27 0:57 / /mnt/smb rw - smb3 //server/x rw
49 27 0:58 / /var/tmp rw - tmpfs tmpfs rw
a broken line
50 27
"""
NETWORK_EVERYWHERE = "1 0 0:1 / / rw - nfs filer:/root rw\n"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/data/pailot", None),
        ("/home/bob/.local", None),
        ("/home/ann", "nfs4"),
        ("/home/ann/.local/share/pailot", "nfs4"),
        ("/home/anna/.local", None),
        ("/home/ann/scratch/pailot", None),
        ("/home2/ann", None),
        ("/lustre/work/ann", "lustre"),
        ("/gpfs/fs 1/ann", "gpfs"),
        (r"/mnt/a\040b/x", "cifs"),
        ("/mnt/twice/x", None),
        ("/mnt/again/x", "beegfs"),
        ("/mnt/ssh/x", "fuse.sshfs"),
        ("/mnt/rclone", "fuse.rclone"),
        ("/mnt/crypt/x", None),
        ("/mnt/stick/x", None),
        ("/mnt/host/x", "9p"),
        ("/mnt/ceph/x", "ceph"),
        ("/afs/cell/x", "afs"),
        ("/mnt/smb/x", "smb3"),
    ],
)
def test_the_longest_mount_decides(path: str, kind: str | None) -> None:
    assert is_network(path, MOUNTS) == kind


def test_a_link_counts_as_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/home/ann/jobs")
    assert is_network(str(tmp_path / "link" / "deep"), MOUNTS) == "nfs4"


def test_this_machine_is_asked_and_a_path_need_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_network("/proc/self") is None
    assert is_network(str(tmp_path / "not" / "yet")) == is_network(str(tmp_path))
    (tmp_path / "mountinfo").write_text(NETWORK_EVERYWHERE)
    monkeypatch.setattr("pailot.store.network_filesystems.MOUNTS", str(tmp_path / "mountinfo"))
    assert is_network(str(tmp_path / "not" / "yet")) == "nfs"
    monkeypatch.setattr("pailot.store.network_filesystems.MOUNTS", "/nowhere")
    assert is_network("/") is None


def test_the_index_is_in_the_home_or_beside_this_machines_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert index_path("/data/pailot", "/state", MOUNTS) == "/data/pailot/index.db"
    first = index_path("/home/ann/pailot", "/state/pailot", MOUNTS)
    second = index_path("/home/ann/other", "/state/pailot", MOUNTS)
    assert first != second
    assert Path(first).parts[:3] == ("/", "state", "pailot")
    assert Path(first).name == "index.db"
    assert len(Path(first).parent.name) == 16
    assert first == index_path("/home/ann/x/../pailot/", "/state/pailot", MOUNTS)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert first == index_path("/home/ann/pailot", mounts=MOUNTS)


def test_the_state_folder_follows_xdg() -> None:
    assert default_state_folder({"XDG_STATE_HOME": "/state"}) == "/state/pailot"
    assert default_state_folder({}) == os.path.expanduser("~/.local/state/pailot")


def test_a_state_folder_on_the_network_is_not_used_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local = tmp_path / "tmp"
    local.mkdir()
    mounts = NETWORK_EVERYWHERE + f"2 1 0:2 / {local} rw - ext4 /dev/vda rw\n"
    monkeypatch.setattr("pailot.store.network_filesystems.LASTING_TEMPORARY", str(local))
    folder = local / f"pailot-{os.geteuid()}"
    for _ in range(2):
        found = Path(index_path("/home/ann/pailot", "/home/ann/state", mounts))
        assert found.parent.parent == folder
        assert folder.stat().st_mode & 0o777 == 0o700

    # Somebody else may have made that folder, to read what we keep or to lead us astray.
    last_resort = ("/", "home", "ann", "state")
    folder.chmod(0o755)
    found = Path(index_path("/home/ann/pailot", "/home/ann/state", mounts))
    assert found.parts[:4] == last_resort
    assert found.parent.name.endswith("-" + os.uname().nodename)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert Path(index_path("/home/ann/pailot", "/home/ann/state", mounts)).parts[:4] == last_resort
    monkeypatch.setattr("pailot.store.network_filesystems.LASTING_TEMPORARY", str(local / "none"))
    assert Path(index_path("/home/ann/pailot", "/home/ann/state", mounts)).parts[:4] == last_resort
    assert Path(index_path("/home/ann/pailot", "/home/ann/state", NETWORK_EVERYWHERE)).parts[:4] == last_resort
