"""The packages that a job needs: those of the file in its code first, then those of the argument, which so win a conflict.

In a container they are installed into its Python, which is the job's own. Elsewhere an environment of their own is made,
and kept for the next job that needs the same; never is the user's interpreter touched.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from hashlib import sha256
from importlib.util import find_spec

from ..data.ml_mounts import CONTAINED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HERE, CONTAINER, NODE, SERVER = "here", "container", "node", "server"
"""Where it runs: in processes of this machine, in a container, on a node of a cluster, or wherever a server runs it."""

FILE = "requirements.txt"
_FAILED = '{ echo "the requirements could not be installed" >&2; exit 1; }'
_SAID = 'echo "installing the requirements; this may take a while" >&2'
_PATHS = 'printf \'%s\\n\' {known} >"$(echo "$environment"/lib/python3*/site-packages)/of-the-user.pth"'
_ON_PATHS = re.compile(r"\s*(-r|-c|-e|--requirement|--constraint|--editable|\.|/|~|file:)|.*@\s*(file:|\.|/)")
"""A line that names other files, whose content no name of an environment tells."""

_ENVIRONMENT = """\
{choose}
mkdir -p "${{environment%/*}}"
(
    flock 9 && {{ [ -e "$environment/.complete" ] || {{
        {said} && rm -rf "$environment" && {python} -m venv --system-site-packages {without} "$environment" &&
            {paths} &&
            {install} &&
            touch "$environment/.complete"
    }}; }}
) 9>"$environment.lock" || {failed}
export VIRTUAL_ENV="$environment" PATH="$environment/bin:$PATH\""""


def install(arguments: Sequence[str], file: str | None, place: str, image: str) -> str:
    """The commands that install them; `file` is the text of the file, None where only the task can tell."""
    said = _SAID if arguments or file else f"[ ! -e {FILE} ] || {_SAID}"
    in_image = f"{said}\n{{ {_steps('python3 -m pip', arguments, file)}; }} || {_FAILED}"
    # A user who is not root gets them into the home that the container has for him.
    in_image = f'export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore PATH="$PATH:${{HOME:-}}/.local/bin"\n{in_image}'
    if place == CONTAINER:
        return in_image
    own = _own(arguments, file, place, image)
    if file is None and not arguments:
        own = f"if [ -e {FILE} ]; then\n{own}\nfi"
    if place == HERE:
        return own
    return f'if [ -n "${{{CONTAINED}:-}}" ]; then\n{in_image}\nelse\n{own}\nfi'


def _steps(pip: str, arguments: Sequence[str], file: str | None) -> str:
    pip = f"{pip} --disable-pip-version-check install --quiet"
    steps = [f"{pip} -r {FILE}"] if file else [f"{{ [ ! -e {FILE} ] || {pip} -r {FILE}; }}"] if file is None else []
    return " && ".join([*steps, *([f"{pip} {shlex.join(arguments)}"] if arguments else [])])


def _own(arguments: Sequence[str], file: str | None, place: str, image: str) -> str:
    here = place in (HERE, NODE) and bool(sys.executable)
    known = [path for path in sys.path if path.endswith("site-packages")] if here else []
    ours = place == HERE and _has_pip()  # which then need not be installed into each environment first
    text = "\n".join([sys.version if here else SERVER, sys.executable if here else image, file or "", *arguments])
    if any(_ON_PATHS.match(line) for line in (*(file or "").splitlines(), *arguments)):
        choose = 'environment="$PAI_CHECKPOINT_DIR/environment"'  # for this job alone
    else:
        more = f"-$(cat {FILE} 2>/dev/null | sha256sum | cut -c1-32)" if file is None else ""
        folder = '"${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/pailot/environments/'
        choose = f'environment={folder}{sha256(text.encode()).hexdigest()[:32]}{more}-$(uname -m)"'
    inside = '"$environment/bin/python"'
    python = shlex.quote(sys.executable) if place == HERE and sys.executable else "python3"
    return _ENVIRONMENT.format(
        choose=choose,
        said=_SAID,
        python=python,
        paths=_PATHS.format(known=shlex.join(known)) if known else ":",
        without="--without-pip" if ours else "",
        install=_steps(f"{python} -m pip --python {inside}" if ours else f"{inside} -m pip", arguments, file),
        failed=_FAILED,
    )


def _has_pip() -> bool:
    return find_spec("pip") is not None


def file_in(folder: str) -> str:
    """The text of the requirements file in a folder of code, if there is one."""
    path = os.path.join(folder, FILE)
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()
