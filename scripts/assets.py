"""The files that web pages are rendered with, in place of the network's.

ColBench's pages use Tailwind 2.2.19's stylesheet from a CDN and pictures from a photo service.
Rendering works offline, with this stylesheet and one placeholder picture for both.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import struct
import tarfile
import tempfile
import urllib.request
import zlib
from pathlib import Path

from scripts.system import problem_of

STYLESHEET = "tailwind-2.2.19.min.css"
STYLESHEET_SHA256 = "b6ad97402eddb903e7a5d7a73ee47a679204efbdda4521a391cbad9df509b932"
PICTURE = "placeholder.png"
REGISTRY = "https://registry.npmjs.org"


def prepare_assets(folder: Path) -> str:
    """Why the assets are not all there; empty when they are."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / PICTURE).exists():
            _write(folder / PICTURE, placeholder_png())
        if not _is_stylesheet(folder / STYLESHEET):
            _write(folder / STYLESHEET, _fetch_stylesheet())
    except (OSError, ValueError, KeyError, tarfile.TarError) as e:
        return f"{type(e).__name__}: {e}"
    return ""


def _is_stylesheet(path: Path) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == STYLESHEET_SHA256


def _write(path: Path, data: bytes) -> None:
    aside = path.with_name(f".{path.name}.new")
    aside.write_bytes(data)
    aside.replace(path)


def _fetch_stylesheet() -> bytes:
    """Tailwind's stylesheet out of its npm package. Raises: OSError, ValueError."""
    with tempfile.TemporaryDirectory() as scratch:
        package = Path(scratch) / "tailwindcss-2.2.19.tgz"
        if shutil.which("npm"):
            pack = ["npm", "pack", "tailwindcss@2.2.19", "--silent", "--pack-destination", scratch]
            if problem := problem_of(pack, 120):
                raise OSError(f"npm pack: {problem.splitlines()[-1]}")
        else:
            base = os.environ.get("NPM_CONFIG_REGISTRY", REGISTRY).rstrip("/")
            url = f"{base}/tailwindcss/-/{package.name}"
            with urllib.request.urlopen(url, timeout=60) as answer:
                package.write_bytes(answer.read())
        with tarfile.open(package) as tar:
            member = tar.extractfile("package/dist/tailwind.min.css")
            data = (member or io.BytesIO()).read()
    if hashlib.sha256(data).hexdigest() != STYLESHEET_SHA256:
        raise ValueError("the stylesheet that came is not Tailwind 2.2.19's")
    return data


def placeholder_png(width: int = 640, height: int = 480) -> bytes:
    """A grey picture with a frame and its diagonals, the same pixels on every machine."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)  # PNG: this row is stored unfiltered
        for x in range(width):
            frame = min(x, y, width - 1 - x, height - 1 - y) < 8
            diagonal = abs(x * height - y * width) < 2 * width
            other = abs((width - 1 - x) * height - y * width) < 2 * width
            rows.append(0x9A if frame or diagonal or other else 0xD6)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, greyscale
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
