"""Whether the process that a row names still lives, and is still the same one."""

from __future__ import annotations

import psutil

_SAME_S = 1.0  # a moment's difference that clocks may make


def born(process_id: int) -> float | None:
    """When a process began, in seconds since this machine did; None where there is none.

    Counted from the start of the machine, it stays the same when the clock is set.
    """
    try:
        process = psutil.Process(process_id)
        with process.oneshot():
            if process.status() == psutil.STATUS_ZOMBIE:  # dead, only not yet waited for
                return None
            return process.create_time() - psutil.boot_time()
    except (psutil.NoSuchProcess, ValueError):
        return None
    except psutil.AccessDenied:
        return 0.0


def is_running(process_id: int, began: float | None = None) -> bool:
    """Whether a process of that number lives on this machine.

    With `began` it must be the one that began then: numbers are used again.
    """
    found = born(process_id) if process_id else None
    return found is not None and (began is None or abs(found - began) < _SAME_S)
