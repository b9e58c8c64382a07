"""A seccomp filter in classic BPF: which system calls a program under test may make.

An allowlist. What computing a value needs is there (memory, time, reading, threads); what acts on
the world is not (processes, sockets, signals, writing files). Everything else fails with EPERM.
"""

import errno
import platform
import struct
import sys

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

# System call numbers, (x86_64, aarch64); -1 where the architecture has none.
PLAIN = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, -1), "fstat": (5, 80),
    "lstat": (6, -1), "poll": (7, -1), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66),
    "access": (21, -1), "pipe": (22, -1), "select": (23, -1), "sched_yield": (24, 124),
    "mremap": (25, 216), "madvise": (28, 233), "dup": (32, 23), "dup2": (33, -1),
    "nanosleep": (35, 101), "getitimer": (36, 102), "alarm": (37, -1), "setitimer": (38, 103),
    "getpid": (39, 172), "recvfrom": (45, 207), "exit": (60, 93), "uname": (63, 160),
    "getcwd": (79, 17), "readlink": (89, -1), "gettimeofday": (96, 169), "getrusage": (98, 165),
    "times": (100, 153), "getuid": (102, 174), "getgid": (104, 176), "geteuid": (107, 175),
    "getegid": (108, 177), "getppid": (110, 173), "sigaltstack": (131, 132), "gettid": (186, 178),
    "arch_prctl": (158, -1), "futex": (202, 98), "sched_getaffinity": (204, 123),
    "getdents64": (217, 61), "set_tid_address": (218, 96), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "exit_group": (231, 94),
    "epoll_wait": (232, -1), "epoll_ctl": (233, 21), "newfstatat": (262, 79),
    "readlinkat": (267, 78), "faccessat": (269, 48), "pselect6": (270, 72), "ppoll": (271, 73),
    "set_robust_list": (273, 99), "epoll_pwait": (281, 22), "eventfd2": (290, 19),
    "epoll_create1": (291, 20), "dup3": (292, 24), "pipe2": (293, 59), "getrandom": (318, 278),
    "membarrier": (324, 283), "statx": (332, 291), "rseq": (334, 293), "close_range": (436, 436),
    "faccessat2": (439, 439),
}  # fmt: skip
OPEN, OPENAT = (2, -1), (257, 56)
CLONE, CLONE3 = (56, 220), (435, 435)
IOCTL, FCNTL = (16, 29), (72, 25)
SOCKETPAIR, SENDTO, PRLIMIT64 = (53, 199), (44, 206), (302, 261)

WRITE_FLAGS = 0o3 | 0o100 | 0o1000 | 0o2000 | 0o20000000  # accmode, creat, trunc, append, tmpfile
CLONE_THREAD = 0x10000
FCNTL_SAFE = (0, 1, 2, 3, 4, 1030)  # dup, flags, status; nothing that sends signals
IOCTL_SAFE = (0x5421, 0x5450, 0x5451)  # FIONBIO, FIONCLEX, FIOCLEX

LD, JEQ, JGE, JSET, RET = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL = 0x7FFF0000, 0x80000000
NR, ARCH = 0, 4


def _op(code: int, k: int, jt: int = 0, jf: int = 0) -> bytes:
    return struct.pack("HBBI", code, jt, jf, k)


def _refuse(number: int = errno.EPERM) -> bytes:
    return _op(RET, 0x00050000 | number)


def _low(arg: int) -> bytes:
    return _op(LD, 16 + 8 * arg)


def _high(arg: int) -> bytes:
    return _op(LD, 20 + 8 * arg)


def _when(nr: int, body: list[bytes]) -> list[bytes]:
    """`body` (which must return) for system call `nr`, else go on behind it."""
    return [] if nr < 0 else [_op(JEQ, nr, 0, len(body)), *body]


def _one_of(arg: int, values: tuple[int, ...], otherwise: int) -> list[bytes]:
    n = len(values)
    tests = [_op(JEQ, v, n - i, 0) for i, v in enumerate(values)]
    return [_low(arg), *tests, _refuse(otherwise), _op(RET, ALLOW)]


def _read_only(arg: int) -> list[bytes]:
    allow, refuse = _op(RET, ALLOW), _refuse(errno.EACCES)
    return [_low(arg), _op(JSET, WRITE_FLAGS, 1, 0), allow, refuse]


def _null(arg: int) -> list[bytes]:
    """Allow only a null pointer in `arg`."""
    refuse, allow = _refuse(), _op(RET, ALLOW)
    return [_low(arg), _op(JEQ, 0, 0, 2), _high(arg), _op(JEQ, 0, 1, 0), refuse, allow]


def _socketpair() -> list[bytes]:
    """Only AF_UNIX stream pairs: they have nobody else at the other end (asyncio needs one)."""
    tests = [_low(0), _op(JEQ, 1, 0, 3), _low(1), _op(0x54, 0xF), _op(JEQ, 1, 1, 0)]
    return [*tests, _refuse(), _op(RET, ALLOW)]


def build() -> bytes:
    """The filter's instructions for this machine. Raises: OSError where there can be none."""
    if not sys.platform.startswith("linux"):
        raise OSError("there is no seccomp on this system")
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine())
    if machine not in AUDIT_ARCH:
        raise OSError(f"no system call table for {machine}")
    column = list(AUDIT_ARCH).index(machine)
    code = [_op(LD, ARCH), _op(JEQ, AUDIT_ARCH[machine], 1, 0), _op(RET, KILL), _op(LD, NR)]
    if machine == "x86_64":
        code += [_op(JGE, X32_BIT, 0, 1), _refuse()]
    for numbers in PLAIN.values():
        code += _when(numbers[column], [_op(RET, ALLOW)])
    rules = [
        (OPEN, _read_only(1)), (OPENAT, _read_only(2)),
        (CLONE, [_low(0), _op(JSET, CLONE_THREAD, 1, 0), _refuse(), _op(RET, ALLOW)]),
        (CLONE3, [_refuse(errno.ENOSYS)]),  # the C library then falls back to clone
        (IOCTL, _one_of(1, IOCTL_SAFE, errno.ENOTTY)), (FCNTL, _one_of(1, FCNTL_SAFE, errno.EPERM)),
        (SOCKETPAIR, _socketpair()), (SENDTO, _null(4)), (PRLIMIT64, _null(2)),
    ]  # fmt: skip
    for numbers, body in rules:
        code += _when(numbers[column], body)
    return b"".join([*code, _refuse()])
