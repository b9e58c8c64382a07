"""The bytes between a program's child, its worker and the studio.

A frame is a kind, the test's number, the milliseconds it took, and a body of JSON that only the
studio parses. It holds a value or what went wrong, never a verdict: what was expected is not known
on this side.
"""

import json
import os
import struct
from collections.abc import Iterator

FROM_CHILD = ("confined", "loaded", "value", "raised", "too_big", "missing", "load")
FROM_WORKER = ("timeout", "crash", "not_data", "infra")
KINDS = FROM_CHILD + FROM_WORKER
MAX_FRAME_BYTES = 6 << 20
MAX_TOTAL_BYTES = 16 << 20

_HEADER = struct.Struct("<BIfI")
Frame = tuple[str, int, float, bytes]


def pack(kind: str, index: int, elapsed_ms: float, body: bytes) -> bytes:
    """A frame as bytes."""
    return _HEADER.pack(KINDS.index(kind), index, elapsed_ms, len(body)) + body


def unpack(buffer: bytearray, kinds: tuple[str, ...] = KINDS) -> Iterator[Frame]:
    """The whole frames at the start of `buffer`, which loses them, one by one.

    Raises: ValueError for what is no frame, or one of a kind that the sender may not send.
    """
    while len(buffer) >= _HEADER.size:
        kind, index, elapsed_ms, size = _HEADER.unpack_from(buffer)
        if kind >= len(kinds) or size > MAX_FRAME_BYTES:
            raise ValueError("wrote what is no result")
        end = _HEADER.size + size
        if len(buffer) < end:
            break
        body = bytes(buffer[_HEADER.size : end])
        del buffer[:end]
        yield kinds[kind], index, elapsed_ms, body


def reason(text: str) -> bytes:
    """A body that says what went wrong."""
    return json.dumps(text).encode()


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_message(fd: int, body: bytes) -> None:
    """Send a message whole."""
    write_all(fd, struct.pack("<I", len(body)) + body)


def read_message(fd: int) -> bytes | None:
    """The next message, or None at the end."""
    header = _read_exactly(fd, 4)
    return _read_exactly(fd, struct.unpack("<I", header)[0]) if header else None


def _read_exactly(fd: int, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        piece = os.read(fd, size - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)
