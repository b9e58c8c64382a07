"""The kernel's layers round one program: resource limits, Landlock, seccomp, no new privileges.

`Confinement` is prepared once in the worker and applied in each forked child.
"""

import ctypes
import fcntl
import os
import resource
import signal
import stat
import struct
import sys

from evaluators.sandbox.inside import seccomp

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
FS_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many file rights each ABI handles
READ_FILE, READ_DIR = 1 << 2, 1 << 3
MEMORY_BYTES = 512 << 20
MEMORY_WITH_NUMPY_BYTES = 1536 << 20

LINUX = sys.platform.startswith("linux")
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _prctl(option: int, value: int, pointer: object = 0) -> None:
    _check(_libc.prctl(option, value, pointer, 0, 0), f"prctl {option}")


def build_landlock(paths: list[str]) -> int:
    """A ruleset's descriptor: reading beneath `paths` and nothing else. Raises: OSError."""
    if not LINUX:
        raise OSError("there is no Landlock on this system")
    abi = _check(_libc.syscall(LANDLOCK_CREATE, None, 0, 1), "Landlock")
    rights = (1 << FS_RIGHTS.get(abi, 16)) - 1
    attributes = struct.pack("QQQ", rights, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _check(_libc.syscall(LANDLOCK_CREATE, attributes, size, 0), "Landlock ruleset")
    for path in paths:
        _allow_reading(ruleset, path)
    return ruleset


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not there: nothing to allow
    try:
        is_dir = stat.S_ISDIR(os.fstat(fd).st_mode)
        rule = struct.pack("<Qi", READ_FILE | (READ_DIR if is_dir else 0), fd)
        _check(_libc.syscall(LANDLOCK_ADD, ruleset, 1, rule, 0), f"Landlock rule for {path}")
    finally:
        os.close(fd)


def no_new_privileges() -> None:
    """Nothing this process starts can gain rights; seccomp and Landlock require it."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def hide_memory() -> None:
    """No other process of the same user may read this one's memory."""
    if LINUX:
        _prctl(PR_SET_DUMPABLE, 0)


def drop_privileges(uid: int, needed_file: str) -> None:
    """Become `uid` where this process is root.

    Where the interpreter lies under a folder that only root may enter, the user stays and all
    capabilities go instead: a program could not import anything otherwise.
    """
    if os.geteuid() != 0:
        return
    if _readable_as(uid, needed_file):
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    elif LINUX:
        header = struct.pack("Ii", 0x20080522, 0)
        _check(_libc.capset(header, bytes(24)), "dropping capabilities")


def _readable_as(uid: int, path: str) -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            with open(path, "rb"):
                status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


class Confinement:
    """The chosen layers, prepared; `apply()` is called in a child and cannot be undone."""

    def __init__(self, layers: list[str], readable: list[str]):
        self.layers = layers
        self.ruleset = -1
        if "landlock" in layers:  # above the numbers that a child's own descriptors get
            low = build_landlock(readable)
            self.ruleset = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 16)
            os.close(low)
        self._filter = b""
        if "seccomp" in layers:  # all that can be made here, each child need not make again
            instructions = seccomp.build()
            self._instructions = ctypes.create_string_buffer(instructions, len(instructions))
            address = ctypes.addressof(self._instructions)
            self._filter = struct.pack("HxxxxxxP", len(instructions) // 8, address)

    def apply(self, cpu_s: int, memory_bytes: int) -> None:
        """Confine this process for good. Raises: OSError."""
        if LINUX:
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if "rlimits" in self.layers:
            limit(cpu_s, memory_bytes, alone="seccomp" not in self.layers)
        if self.ruleset >= 0 or self._filter:
            no_new_privileges()
        if self.ruleset >= 0:
            _check(_libc.syscall(LANDLOCK_RESTRICT, self.ruleset, 0), "Landlock")
            os.close(self.ruleset)
        if self._filter:
            _prctl(PR_SET_SECCOMP, 2, self._filter)


def limit(cpu_s: int, memory_bytes: int, alone: bool) -> None:
    """Set the resource limits; `alone` also forbids new processes, where no filter does."""
    limits = {"RLIMIT_CPU": cpu_s, "RLIMIT_AS": memory_bytes, "RLIMIT_DATA": memory_bytes,
              "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0, "RLIMIT_NOFILE": 64, "RLIMIT_MEMLOCK": 0,
              "RLIMIT_MSGQUEUE": 0}  # fmt: skip
    if alone:
        limits["RLIMIT_NPROC"] = 0
    for name, value in limits.items():
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            if LINUX:  # macOS refuses some kinds
                raise
