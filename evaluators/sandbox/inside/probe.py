"""Tries each layer in a child of its own and sees whether it holds: by doing, not by asking."""

import os
import socket

from evaluators.sandbox.inside import confine

HELD, OPEN, FAILED = 0, 1, 2
MIB = 1 << 20


def run(config: dict) -> dict:
    """Layer → [whether it holds, what was seen]."""
    return {
        "namespaces": _namespaces(config),
        "user": _user(),
        "landlock": _in_child(lambda: _landlock(config["readable"])),
        "seccomp": _in_child(_seccomp),
        "rlimits": _in_child(_rlimits),
    }


def _in_child(attempt) -> list:
    """Fork, attempt what the layer must forbid, and tell how that went."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status, detail = FAILED, ""
        try:
            detail = attempt()
            status = HELD if detail.startswith("refused") else OPEN
        except BaseException as e:
            detail = f"{type(e).__name__}: {e}"
        finally:
            os.write(write, detail.encode()[:400])
            os._exit(status)
    os.close(write)
    detail = os.read(read, 400).decode(errors="replace")
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    return [status == 0, detail]


def _refused(what: str, attempt) -> str:
    try:
        attempt()
    except (OSError, MemoryError) as e:
        return f"refused: {what} ({type(e).__name__})"
    return f"allowed: {what}"


def _worst(*details: str) -> str:
    return next((d for d in details if d.startswith("allowed")), ", ".join(details))


def _landlock(readable: list[str]) -> str:
    confine.Confinement(["landlock"], readable).apply(10, confine.MEMORY_BYTES)
    return _refused("listing /", lambda: os.listdir("/"))


def _seccomp() -> str:
    confine.Confinement(["seccomp"], []).apply(10, confine.MEMORY_BYTES)
    return _worst(
        _refused("a socket", socket.socket),
        _refused("a signal", lambda: os.kill(os.getpid(), 0)),
        _refused("a new process", _fork),
    )


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _rlimits() -> str:
    confine.Confinement(["rlimits"], []).apply(10, confine.MEMORY_BYTES)
    return _worst(
        _refused("1 GiB of memory", lambda: bytearray(1024 * MIB)),
        _refused("70 open files", lambda: [os.dup(0) for _ in range(70)]),
    )


def _user() -> list:
    if os.geteuid() != 0:
        return [True, f"runs as user {os.geteuid()}"]
    capable = _in_child(lambda: _refused("becoming another user", lambda: os.setuid(1)))
    return [capable[0], f"root without capabilities; {capable[1]}"]


def _namespaces(config: dict) -> list:
    """Compare with the studio's own; without /proc there is nothing to compare, nor a wall."""
    shared = []
    for name, outside in config["namespaces"].items():
        try:
            inside = os.readlink(f"/proc/self/ns/{name}")
        except OSError as e:
            return [False, f"cannot tell: {e}"]
        if inside == outside:
            shared.append(name)
    if shared or not config["namespaces"]:
        return [False, f"shared with the machine: {', '.join(shared) or 'all'}"]
    return [
        True,
        f"own {', '.join(config['namespaces'])}; sees {' '.join(sorted(os.listdir('/')))}",
    ]
