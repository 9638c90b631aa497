"""One cluster in a folder of its own. Each node, and the control plane, has namespaces of its own; needs root."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pailot.engines.kubernetes.kubeconfig import find_access
from pailot.runtime.kubernetes.access import Access

from . import images
from .certificates import Authority, new_key
from .programs import is_built, program

ENABLE = "make kubernetes"
DEBIAN = {"containerd": "containerd", "runc": "runc", "iptables": "iptables", "ip": "iproute2", "busybox": "busybox-static"}
SERVICES = "10.96"
SYSCTLS = (
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
"""What a kubelet sets for the whole machine; `stop` gives it back."""
SECONDS = 120
CNI = "/usr/lib/cni"
NAMESPACES = ("unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child")

CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/pause:1"
restrict_oom_score_adj = true
disable_hugetlb_controller = true
tolerate_missing_hugetlb_controller = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni}"
conf_dir = "{folder}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def missing() -> str:
    """What keeps a cluster from running here, with the way to enable it; empty if nothing does."""
    if not is_built():
        return f"no Kubernetes: {ENABLE}"
    absent = [package for name, package in DEBIAN.items() if shutil.which(name) is None]
    if absent or not os.path.exists(f"{CNI}/bridge"):
        return f"no Kubernetes: {ENABLE}"
    if os.geteuid() != 0:
        return "a Kubernetes cluster needs root: run the tests as root"
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode:
        return "a Kubernetes cluster needs namespaces, which this machine does not allow: unshare failed"
    return ""


class Cluster:
    """A control plane and nodes n1, n2, ...; addresses are `net`.0.11, .12, ..., those of pods `pods`.11.0/24, ..."""

    def __init__(
        self, folder: Path, *, nodes: int = 1, net: str = "172.31", pods: str = "10.247", lost_seconds: int = 20
    ) -> None:
        self.folder, self.net, self.pods, self.lost_seconds = folder, net, pods, lost_seconds
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.tag = f"{zlib.crc32(str(folder).encode()):08x}"
        self.kubeconfig = folder / "admin.conf"
        self.server = f"https://{net}.0.1:6443"
        self.pki = folder / "pki"

    @property
    def environment(self) -> dict[str, str]:
        """What points programs at the cluster."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    # Up and down

    def start(self) -> None:
        self.pki.mkdir(parents=True)
        authority = Authority(self.pki)
        new_key(self.pki / "accounts.key")
        hosts = ("kubernetes.default.svc", "kubernetes", "localhost", f"{SERVICES}.0.1", f"{self.net}.0.1", "127.0.0.1")
        authority.issue("apiserver", "kube-apiserver", names=hosts)
        authority.issue("apiserver-client", "kube-apiserver-kubelet-client")
        authority.issue("admin", "admin", "system:masters")
        for name in ("kube-controller-manager", "kube-scheduler"):
            authority.issue(name, f"system:{name}")
        for name in self.names:
            authority.issue(name, f"system:node:{name}", "system:nodes", (name, self._address(name)))
        for name in ("admin", "kube-controller-manager", "kube-scheduler", *self.names):
            authority.kubeconfig(self.pki / f"{name}.conf", self.server, name)
        shutil.copy(self.pki / "admin.conf", self.kubeconfig)
        (self.folder / "sysctls").write_text("".join(f"{key} {Path('/proc/sys', key).read_text()}" for key in SYSCTLS))
        self._start_machine("control", self._control_steps())
        control = self.pid("control")
        _call("ip", "link", "add", f"kl{self.tag}", "type", "veth", "peer", "name", "host", "netns", str(control))
        _call("ip", "addr", "add", f"{self.net}.255.1/16", "dev", f"kl{self.tag}")
        _call("ip", "link", "set", f"kl{self.tag}", "up")
        self.wait(lambda: self.inside("control", "ip", "link", "show", "hub", check=False), "the network of the nodes")
        for name in self.names:
            self.start_node(name)
        self.wait(lambda: self.ready_nodes() == self.names, "ready nodes")
        self.wait(lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default") is not None, "the default account")

    def stop(self) -> None:
        for name in (*self.names, "control"):
            self._end(name)
        subprocess.run(["ip", "link", "delete", f"kl{self.tag}"], capture_output=True, check=False)
        self._remove_groups()
        try:
            for line in (self.folder / "sysctls").read_text().splitlines():
                key, value = line.split()
                Path("/proc/sys", key).write_text(value)
        except OSError:
            pass  # it never came that far

    def start_node(self, name: str) -> None:
        """Switch a node on, the first time or after a power cut."""
        for group in [*Path("/sys/fs/cgroup").glob("cgroup.procs"), *Path("/sys/fs/cgroup").glob("*/cgroup.procs")]:
            (group.parent / f"pailot-{self.tag}" / name).mkdir(parents=True, exist_ok=True)
        self.inside("control", "ip", "link", "delete", name, check=False)
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "containerd.sock").unlink(missing_ok=True)
        self._start_machine(name, self._node_steps(name))
        wire = f"{name}x{self.tag}"
        _call("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid(name)))
        _call("ip", "link", "set", wire, "netns", str(self.pid("control")), "name", name)
        self.inside("control", "ip", "link", "set", name, "master", "hub", "up")
        self.inside("control", "ip", "route", "replace", self._pod_network(name), "via", self._address(name))

    def cut_power(self, name: str) -> None:
        """Every process of the node is gone at once."""
        self._end(name)

    def return_power(self, name: str) -> None:
        self.start_node(name)
        self.wait(lambda: name in self.ready_nodes(), f"node {name}")

    def switch_off(self, part: str, machine: str = "control") -> None:
        """Kill a daemon (`kube-apiserver`, `etcd`, `kubelet`, ...); it stays dead until `switch_on`."""
        (self.folder / machine / f"{part}.off").touch()

    def switch_on(self, part: str, machine: str = "control") -> None:
        (self.folder / machine / f"{part}.off").unlink()

    # Talking to it

    def access(self) -> Access:
        return find_access(self.environment)

    def get(self, path: str) -> Any:
        """The JSON at a path of the API as the administrator; None where it is not, or while the API is away."""
        try:
            connection = self.access().connect(10)
        except OSError:
            return None
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            return json.loads(body) if response.status == 200 else None
        except OSError:
            return None
        finally:
            connection.close()

    def ready_nodes(self) -> list[str]:
        found = self.get("/api/v1/nodes") or {"items": []}
        return sorted(
            each["metadata"]["name"]
            for each in found["items"]
            if any((c["type"], c["status"]) == ("Ready", "True") for c in each.get("status", {}).get("conditions", ()))
        )

    def kubectl(self, *words: str, text: str = "") -> str:
        """What kubectl prints; raises where it fails."""
        done = subprocess.run(
            [program("kubectl"), *words],
            env={**os.environ, **self.environment},
            input=text or None,
            stdin=None if text else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def load_image(self, archive: Path) -> None:
        """Give an image to every node, as an archive of `docker save` or `podman save`."""
        for name in self.names:
            socket = str(self.folder / name / "containerd.sock")
            _call("ctr", "--address", socket, "--namespace", "k8s.io", "images", "import", str(archive))

    def inside(self, machine: str, *words: str, check: bool = True) -> str:
        """Run a command in the namespaces of a node, or of `control`."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid(machine)), "-m", "-n", "-u", "-p", *words], capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def wait(self, done: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
        until = time.monotonic() + seconds
        while not done():
            if time.monotonic() > until:
                raise RuntimeError(f"{what}: not within {seconds} s; see the logs in {self.folder}")
            time.sleep(0.05)

    # Its machines

    def pid(self, machine: str) -> int:
        return int((self.folder / machine / "pid").read_text())

    def _address(self, name: str) -> str:
        return f"{self.net}.0.{10 + int(name[1:])}"

    def _pod_network(self, name: str) -> str:
        return f"{self.pods}.{10 + int(name[1:])}.0/24"

    def _start_machine(self, name: str, steps: list[dict[str, Any]]) -> None:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "steps.json").write_text(json.dumps(steps))
        with open(folder / "log", "ab") as log:
            process = subprocess.Popen(
                [*NAMESPACES, sys.executable, "-I", str(Path(__file__).parent / "first_process.py"), "steps.json"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        self.wait(lambda: process.poll() is not None or children.read_text().strip(), name)
        if process.poll() is not None:
            raise RuntimeError((folder / "log").read_text())
        (folder / "pid").write_text(children.read_text().split()[0])
        (folder / "parent").write_text(str(process.pid))
        _processes[process.pid] = process

    def _end(self, name: str) -> None:
        """SIGKILL to the first process takes all others of its namespace along."""
        folder = self.folder / name
        try:
            pid, parent = self.pid(name), int((folder / "parent").read_text())
            if b"first_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        except (OSError, ValueError):
            return
        process = _processes.pop(parent, None)
        if process is not None:
            process.wait()
        self.wait(lambda: not _lives(pid), f"the end of {name}")
        (folder / "pid").unlink()

    def _remove_groups(self) -> None:
        """Control groups can be removed only when the last process in them is gone."""
        roots = [*Path("/sys/fs/cgroup").glob(f"pailot-{self.tag}"), *Path("/sys/fs/cgroup").glob(f"*/pailot-{self.tag}")]
        until = time.monotonic() + 5
        while any(root.exists() for root in roots) and time.monotonic() < until:
            for root in roots:
                for parent, _, _ in os.walk(root, topdown=False):
                    try:
                        os.rmdir(parent)
                    except OSError:
                        pass  # still in use; the next round
            time.sleep(0.1)

    def _control_steps(self) -> list[dict[str, Any]]:
        pki, api = self.pki, f"{self.net}.0.1"
        commands = ["hostname control", "ip link set lo up", "ip link add hub type bridge", f"ip addr add {api}/16 dev hub"]
        steps: list[dict[str, Any]] = [{"run": each.split()} for each in [*commands, "ip link set hub up"]]
        steps.append({"run": "ip link set host master hub up".split(), "tries": 1200})
        etcd = "http://127.0.0.1:2379"
        steps.append(
            _daemon(
                "etcd",
                data_dir="etcd",
                unsafe_no_fsync=True,
                listen_client_urls=etcd,
                advertise_client_urls=etcd,
                log_level="warn",
            )
        )
        steps.append(
            _daemon(
                "kube-apiserver",
                etcd_servers=etcd,
                bind_address="0.0.0.0",
                secure_port=6443,
                advertise_address=api,
                service_cluster_ip_range=f"{SERVICES}.0.0/16",
                authorization_mode="Node,RBAC",
                enable_admission_plugins="NodeRestriction",
                allow_privileged=True,
                default_not_ready_toleration_seconds=5,
                default_unreachable_toleration_seconds=5,
                enable_aggregator_routing=True,
                tls_cert_file=pki / "apiserver.crt",
                tls_private_key_file=pki / "apiserver.key",
                client_ca_file=pki / "ca.crt",
                kubelet_preferred_address_types="InternalIP",
                kubelet_client_certificate=pki / "apiserver-client.crt",
                kubelet_client_key=pki / "apiserver-client.key",
                service_account_issuer="https://kubernetes.default.svc",
                service_account_key_file=pki / "accounts.key",
                service_account_signing_key_file=pki / "accounts.key",
            )
        )
        steps.append({"run": ["bash", "-c", f"exec 3<>/dev/tcp/{api}/6443"], "tries": 1200})
        quick = {"leader_elect": False, "kube_api_qps": 200, "kube_api_burst": 400}
        steps.append(
            _daemon(
                "kube-controller-manager",
                kubeconfig=pki / "kube-controller-manager.conf",
                use_service_account_credentials=True,
                root_ca_file=pki / "ca.crt",
                service_account_private_key_file=pki / "accounts.key",
                node_monitor_grace_period=f"{self.lost_seconds}s",
                **quick,
            )
        )
        steps.append(_daemon("kube-scheduler", kubeconfig=pki / "kube-scheduler.conf", **quick))
        if is_built("coredns"):
            plugin = f"kubernetes cluster.local {{\n  kubeconfig {pki}/admin.conf\n  pods insecure\n }}"
            (self.folder / "Corefile").write_text(f".:53 {{\n bind {api}\n {plugin}\n}}\n")
            steps.append(
                {"daemon": "coredns", "argv": [program("coredns"), "-conf", str(self.folder / "Corefile")], "log": "coredns.log"}
            )
        return steps

    def _node_steps(self, name: str) -> list[dict[str, Any]]:
        folder, address = self.folder / name, self._address(name)
        (folder / "cni").mkdir(exist_ok=True)
        (folder / "containerd.toml").write_text(CONTAINERD.format(folder=folder, cni=CNI))
        (folder / "cni/10-lab.conflist").write_text(json.dumps(self._network(name)))
        (folder / "resolv.conf").write_text(f"nameserver {self.net}.0.1\n")
        (folder / "kubelet.json").write_text(json.dumps(self._kubelet(name)))
        commands = [f"hostname {name}", "ip link set lo up"]
        for each in ("/run", "/var/log", "/var/lib/cni"):
            commands += [f"mkdir -p {each}", f"mount -t tmpfs lab {each}"]
        commands += ["mkdir -p /run/containerd /run/lock", "sysctl -qw net.ipv4.ip_forward=1"]
        steps: list[dict[str, Any]] = [{"run": each.split()} for each in commands]
        steps.append({"run": "ip link show eth0".split(), "tries": 1200})
        others = [f"n{number}" for number in range(1, 10) if f"n{number}" != name]
        commands = [f"ip addr add {address}/16 dev eth0", "ip link set eth0 up", f"ip route add default via {self.net}.0.1"]
        commands += [f"ip route add {self._pod_network(each)} via {self._address(each)}" for each in others]
        # The API's own address among the services is known without kube-proxy, too.
        target = f"-d {SERVICES}.0.1 -p tcp --dport 443 -j DNAT --to {self.net}.0.1:6443"
        commands += [f"iptables -t nat -A {chain} {target}" for chain in ("PREROUTING", "OUTPUT")]
        steps += [{"run": each.split()} for each in commands]
        proxy = _daemon(
            "kube-proxy",
            kubeconfig=self.pki / "admin.conf",
            hostname_override=name,
            conntrack_max_per_core=0,
            conntrack_tcp_timeout_established="0s",
            conntrack_tcp_timeout_close_wait="0s",
            cluster_cidr=f"{self.pods}.0.0/16",
        )
        steps += [proxy, {"daemon": "containerd", "argv": ["containerd", "--config", "containerd.toml"], "log": "containerd.log"}]
        load = ["ctr", "--address", str(folder / "containerd.sock"), "--namespace", "k8s.io", "images", "import"]
        steps += [{"run": [*load, str(images.image(each))], "tries": 1200} for each in images.IMAGES]
        kubelet = {
            "config": "kubelet.json",
            "kubeconfig": self.pki / f"{name}.conf",
            "hostname_override": name,
            "node_ip": address,
        }
        return [*steps, _daemon("kubelet", root_dir=folder / "kubelet", **kubelet)]

    def _network(self, name: str) -> dict[str, Any]:
        addresses = {
            "type": "host-local",
            "ranges": [[{"subnet": self._pod_network(name)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(self.folder / name / "addresses"),
        }
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
        return {
            "cniVersion": "0.4.0",
            "name": "lab",
            "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
        }

    def _kubelet(self, name: str) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.pki / "ca.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "tlsCertFile": str(self.pki / f"{name}.crt"),
            "tlsPrivateKeyFile": str(self.pki / f"{name}.key"),
            "containerRuntimeEndpoint": f"unix://{self.folder}/{name}/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/pailot-{self.tag}/{name}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "podLogsDir": str(self.folder / name / "logs"),
            "resolvConf": str(self.folder / name / "resolv.conf"),
            "clusterDNS": [f"{self.net}.0.1"],
            "clusterDomain": "cluster.local",
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "serializeImagePulls": False,
            "enforceNodeAllocatable": ["pods"],
            "nodeStatusUpdateFrequency": "4s",
            "nodeLeaseDurationSeconds": 8,
            "maxPods": 200,
            "registryPullQPS": 0,
            "eventRecordQPS": 0,
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
            "containerLogMaxSize": "10Mi",
            "containerLogMaxFiles": 2,
        }


_processes: dict[int, subprocess.Popen[bytes]] = {}
_started: dict[int, Cluster] = {}


def _daemon(name: str, **options: Any) -> dict[str, Any]:
    words = [
        f"--{key.replace('_', '-')}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()
    ]
    return {"daemon": name, "argv": [program(name), *words], "log": f"{name}.log"}


def _call(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] not in ("Z", "X")
    except OSError:
        return False


def _free_networks() -> tuple[str, str]:
    """Two bytes each, for machines and for pods, that no other cluster on this machine has."""
    used = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    taken = {int(each) for each in re.findall(r"inet 172\.([0-9]+)\.", used)}
    for number in range(18, 32):
        if number not in taken:
            return f"172.{number}", f"10.{200 + number}"
    raise RuntimeError("no free network for a cluster")


def cluster(nodes: int = 1) -> Cluster:
    """The cluster of that size that all tests share: started at the first call, stopped when they end; skips without one."""
    import pytest

    if nodes not in _started:
        problem = missing()
        if problem:
            pytest.skip(problem)
        net, pods = _free_networks()
        made = Cluster(Path(tempfile.mkdtemp(prefix="pailot-kubernetes-")), nodes=nodes, net=net, pods=pods)
        if not os.environ.get("PAILOT_KEEP_CLUSTER"):  # its logs tell what went wrong
            atexit.register(shutil.rmtree, made.folder, ignore_errors=True)
        atexit.register(made.stop)
        made.start()
        _started[nodes] = made
    return _started[nodes]


def main(words: list[str]) -> int:
    what, folder, *rest = words
    path = Path(folder).absolute()
    if what == "up":
        problem = missing()
        if problem:
            print(problem, file=sys.stderr)
            return 1
        net, pods = _free_networks()
        made = Cluster(path, nodes=int(rest[0]) if rest else 1, net=net, pods=pods)
        path.mkdir(parents=True, exist_ok=True)
        (path / "cluster.json").write_text(json.dumps({"nodes": len(made.names), "net": net, "pods": pods}))
        made.start()
        print(f"export KUBECONFIG={made.kubeconfig}")
        return 0
    found = Cluster(path, **json.loads((path / "cluster.json").read_text()))
    if what == "down":
        found.stop()
        shutil.rmtree(path, ignore_errors=True)
    elif what == "cut":
        found.cut_power(*rest)
    elif what == "return":
        found.return_power(*rest)
    else:
        print("which? up, cut, return or down", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
