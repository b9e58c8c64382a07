"""How this process takes memory from the system, which the C library reads when it begins."""

from __future__ import annotations

import os
import sys

# Pages are given back late and taken in large pieces: a round on a CPU took a quarter less time.
MALLOC = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


def keep_memory() -> None:
    """Begin this command anew, with memory that is kept for reuse; on Linux, and once."""
    if sys.platform == "linux" and not MALLOC.keys() <= os.environ.keys():
        command = [sys.executable, *sys.orig_argv[1:]]
        os.execve(sys.executable, command, {**MALLOC, **os.environ})
