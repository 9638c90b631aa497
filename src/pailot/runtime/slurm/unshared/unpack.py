"""How what travels is unpacked on a node that sees none of our folders, by nothing but sh and its own Python: texts."""

from __future__ import annotations

FIND = """for python in "$0" python3 python3.13 python3.12 python3.11 python3.10 python3.9 /usr/libexec/platform-python; do
    if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 9))' </dev/null 2>/dev/null; then
        exec "$python" -I -S -B -c "$@"
    fi
done
echo "no Python 3.9 or newer on $(uname -n)" >&2
exit 97"""
"""sh: run a program (the first word) by a Python that is new enough; $0 is the one that is wanted most."""

STEP = """import io, os, sys, tarfile, tempfile
def take(size):
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            sys.exit(96)
        data += piece
    return data
wanted, base, name = sys.argv[1:]
base = base or os.environ.get("TMPDIR") or "/tmp"
os.makedirs(base, exist_ok=True)
root = tempfile.mkdtemp(prefix=name, dir=base)
tarfile.open(fileobj=io.BytesIO(take(int(take(12))))).extractall(root)
os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", os.path.join(root, "code"), "step", wanted, root])
"""
"""Python: what comes first on standard input into a private folder of this node, then be the step."""

DRIVER = """import base64, io, os, sys, tarfile
root, = sys.argv[1:]
tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.stdin.buffer.read()))).extractall(root)
tarfile.open(os.path.join(root, "along.tgz")).extractall(root)
with open(os.path.join(root, ".ready"), "w") as stream:
    stream.write(sys.executable)
os.rename(os.path.join(root, ".ready"), os.path.join(root, "ready"))
os.execv(sys.executable, [sys.executable, "-I", "-S", "-B", root + "/code", "driver", root + "/attempt", root])
"""
"""Python: what stands at the end of the batch script into the driver's folder, then be the driver."""
