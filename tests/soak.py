"""`make soak`: faults and random inputs, many more of them than in `make test`; about an hour.

    python -m tests.soak [--write] [PART ...]

Each part is printed with what it did and how long it took; `--write` puts that table into bench/RESULTS.md. What fails is
shown as pytest shows it, and ends the whole with status 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "RESULTS.md"
PARTS = {
    "kills": ("one process of a run is killed, 100 times of each kind", "tests/acceptance/test_faults.py"),
    "all-killed": ("driver and all shims are killed at once", "tests/acceptance/test_all_killed.py"),
    "server": ("server, keeper and database are killed under 20 submitters", "tests/acceptance/test_server_crashes.py"),
    "steps": ("a fault in every step of keeper, dispatcher and driver", "tests/acceptance/test_injected_faults.py"),
    "values": ("odd values for ten minutes, beside a neighbour's job", "tests/acceptance/test_odd_values.py"),
    "containers": (
        "Docker's daemon and ours are killed, 20 times of each kind",
        "tests/integration/test_containers.py",
        "-k",
        "killed",
    ),
    "slurm": ("nodes and controller of Slurm crash, 20 times each", "tests/acceptance/test_slurm.py", "-k", "crashes or killed"),
    "properties": ("random inputs for every property", "tests", "-m", "hypothesis", "--numprocesses", "auto"),
}
"""Name: what it is, and what pytest is given for it."""
SOAKING = {"HYPOTHESIS_PROFILE": "soak", "PAILOT_FAULT_REPETITIONS": "100"}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.soak")
    parser.add_argument("--write", action="store_true", help="put the table into bench/RESULTS.md")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"only these: {', '.join(PARTS)}")
    given = parser.parse_args(arguments)
    if wrong := [each for each in given.parts if each not in PARTS]:
        parser.error(f"there is no part {wrong[0]!r}; there are {', '.join(PARTS)}")
    rows, failed = [], False
    for name in given.parts or PARTS:
        what, *words = PARTS[name]
        began = time.monotonic()
        status, closing = run(words)
        failed = failed or status != 0
        rows.append(f"| {name} | {what} | {closing} | {time.monotonic() - began:,.0f} s |")
        print(rows[-1], flush=True)
    if given.write:
        write("\n".join(rows))
    return int(failed)


def run(words: list[str]) -> tuple[int, str]:
    """Run pytest; return its status and its closing line."""
    command = [sys.executable, "-m", "pytest", "-q", *words]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **SOAKING}, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    last = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line if re.search(r"\d+ (passed|failed|error)", line) else last
    found = re.findall(r"\d+ (?:passed|failed|skipped|errors?)", last)
    return process.wait(), ", ".join(found) or "nothing"


def write(rows: str) -> None:
    """Put the rows of the parts that ran into their section; those of other parts stay."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# Results\n"
    before, _, after = text.partition("## Soak\n")
    old, mark, rest = after.partition("\n## ")
    kept = {line.split("|")[1].strip(): line for line in [*old.splitlines(), *rows.splitlines()] if line.startswith("| ")}
    table = "\n".join(kept[name] for name in PARTS if name in kept)
    head = "| part | what | how it ended | time |\n|---|---|---|---|"
    said = f"Last run on {datetime.now(UTC).date()}, {os.cpu_count()} cores: `make soak ARGS=--write`."
    RESULTS.write_text(f"{before.rstrip()}\n\n## Soak\n\n{said}\n\n{head}\n{table}\n{mark}{rest}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
