"""The programs of a cluster, built from the Go module proxy into a cache that all checkouts share.

    python -m tests.parts.kubernetes.programs [kube] [coredns] [kwok] [jobset] [kueue]

What is there already is not built again. All of them take about 25 minutes of CPU time, Kubernetes alone 14.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KUBERNETES = "v1.35.4"  # Debian's containerd 1.6 is too old for 1.36
KWOK = "v0.8.0"
COREDNS = "v1.14.7"
JOBSET = "v0.10.1"
KUEUE = "v0.15.0"
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl")
PINS = (
    "github.com/davecgh/go-spew@v1.1.1",
    "github.com/go-openapi/jsonreference@v0.20.2",
    "github.com/pmezard/go-difflib@v1.0.0",
)
"""JobSet asks for newer ones than Kubernetes; with those of Kubernetes nearly all of it is compiled already."""
ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOWORK": "off"}
HERE = Path(__file__).parent


def cache() -> Path:
    """The folder that keeps what was built."""
    given = os.environ.get("PAILOT_KUBERNETES_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pailot/kubernetes"


def program(name: str) -> str:
    return str(cache() / "bin" / name)


def is_built(*names: str) -> bool:
    return all(os.access(program(name), os.X_OK) for name in names or PARTS)


def go(*words: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        ["go", *words], cwd=folder, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def source(module: str) -> Path:
    """The folder with a module's source, `module` as `path@version`."""
    return Path(json.loads(go("mod", "download", "-json", module, folder=Path(tempfile.gettempdir())))["Dir"])


def kubernetes_module(folder: Path) -> None:
    """Write a go.mod whose versions are those that the release of Kubernetes was made with."""
    staged = "v0." + KUBERNETES.removeprefix("v1.")
    text = (source(f"k8s.io/kubernetes@{KUBERNETES}") / "go.mod").read_text()
    lines = ["module lab"]
    lines += re.findall(r"(?m)^(?:go|godebug) .*$", text)
    lines.append(f"require k8s.io/kubernetes {KUBERNETES}")
    for block in re.findall(r"(?ms)^require \(.*?^\)", text):
        lines.append(re.sub(r"(?m) v0\.0\.0(?: .*)?$", f" {staged}", block))
    lines += [f"replace {name} => {name} {staged}" for name in re.findall(r"(?m)^\s*(\S+) => \./staging/", text)]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")


def compile_into(name: str, folder: Path, package: str, flags: str = "") -> None:
    """Build a package; the program appears whole or not at all."""
    made = cache() / "bin" / f".{name}.{os.getpid()}"
    go("build", "-trimpath", "-ldflags", f"-s -w {flags}".strip(), "-o", str(made), package, folder=folder)
    made.rename(cache() / "bin" / name)


def build_kube(folder: Path) -> None:
    real = f"kube-all-{KUBERNETES}"
    if not is_built(real):
        kubernetes_module(folder)
        shutil.copy(HERE / "all_in_one.go", folder / "main.go")
        minor = KUBERNETES.split(".")[1]
        told = {"gitVersion": KUBERNETES, "gitMajor": "1", "gitMinor": minor, "gitTreeState": "clean"}
        packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        flags = " ".join(f"-X {package}.{name}={value}" for package in packages for name, value in told.items())
        compile_into(real, folder, ".", flags)
    for name in ("kube-all", *PARTS):
        link = cache() / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(real)


def build_jobset(folder: Path) -> None:
    kubernetes_module(folder)
    for pin in PINS:
        go("mod", "edit", f"-replace={pin.partition('@')[0]}={pin}", folder=folder)
    go("get", f"sigs.k8s.io/jobset@{JOBSET}", folder=folder)
    compile_into("jobset-manager", folder, "sigs.k8s.io/jobset")


def build_alone(name: str, module: str, package: str, folder: Path) -> None:
    """A program with the versions that its own module chose."""
    shutil.copytree(source(module), folder, dirs_exist_ok=True)
    subprocess.run(["chmod", "-R", "u+w", str(folder)], check=True)
    compile_into(name, folder, package)


def build(what: str) -> None:
    with tempfile.TemporaryDirectory(prefix="pailot-kubernetes-") as made:
        folder = Path(made)
        if what == "kube":
            build_kube(folder)
        elif what == "jobset" and not is_built("jobset-manager"):
            build_jobset(folder)
        elif what == "kwok" and not is_built("kwok"):
            build_alone("kwok", f"sigs.k8s.io/kwok@{KWOK}", "./cmd/kwok", folder)
        elif what == "coredns" and not is_built("coredns"):
            build_alone("coredns", f"github.com/coredns/coredns@{COREDNS}", ".", folder)
        elif what == "kueue" and not is_built("kueue-manager"):
            build_alone("kueue-manager", f"sigs.k8s.io/kueue@{KUEUE}", "./cmd/kueue", folder)


def main(words: list[str]) -> int:
    known = ("kube", "jobset", "coredns", "kwok", "kueue")
    if set(words) - set(known):
        print(f"which? {' '.join(known)}", file=sys.stderr)
        return 2
    if shutil.which("go") is None and not is_built():
        print("Kubernetes is built with Go 1.25 or newer, which is not here", file=sys.stderr)
        return 1
    (cache() / "bin").mkdir(parents=True, exist_ok=True)
    for what in words or known:
        try:
            build(what)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{what} cannot be built: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
