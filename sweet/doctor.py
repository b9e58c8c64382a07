"""What works on this machine, found by doing it, and what to do about what does not.

Each probe runs in a process of its own with a time limit: a library that crashes or hangs costs
its own line and nothing else. `python -m sweet.doctor NAME` is such a process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from sweet.errors import SweetError
from sweet.probes import PROBES, Check, Probe


def examine(probes: Sequence[Probe] = PROBES) -> list[Check]:
    """What every probe found, in their order. Never raises for what is found."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return [check for found in pool.map(_examine_apart, probes) for check in found]


def is_healthy(checks: Sequence[Check]) -> bool:
    """Whether everything works that the studio cannot do without."""
    return all(check.state == "works" for check in checks if check.needed)


def as_text(checks: Sequence[Check]) -> str:
    """The checks for a person: a line each, and below it what to do."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        lines.append(f"{check.state:8} {check.name:{width}}  {check.detail}")
        if check.todo:
            lines.append(f"{'':8} {'':{width}}  → {check.todo}")
    return "\n".join(lines)


def _examine_apart(probe: Probe) -> list[Check]:
    """What a probe found in a process of its own; its death or silence is a finding."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sweet.doctor", probe.name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        out, err = process.communicate(timeout=probe.timeout_s)
        found = json.loads(out.splitlines()[-1])
        return [Check(**check) for check in found]
    except subprocess.TimeoutExpired:
        died = f"no answer after {probe.timeout_s:g} s"
    except (ValueError, IndexError, TypeError):
        died = (err.strip().splitlines() or [f"it ended with status {process.returncode}"])[-1]
    finally:
        _end(process)
    todo = f"`{Path(sys.executable).name} -m sweet.doctor {probe.name}` shows more"
    return [Check(probe.name, "broken", died, todo, probe.needed)]


def _end(process: subprocess.Popen[str]) -> None:
    """End the probe and whatever it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def main(name: str) -> None:
    """Run one probe here and print what it found as one line of JSON."""
    probe = next(probe for probe in PROBES if probe.name == name)
    try:
        found = probe.run()
    except SweetError as e:
        found = Check(name, "broken", str(e), "correct it and ask again", probe.needed)
    checks = found if isinstance(found, list) else [found]
    print(json.dumps([asdict(check) for check in checks]))


if __name__ == "__main__":
    main(sys.argv[1])
