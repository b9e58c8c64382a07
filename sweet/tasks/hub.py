"""Files of the Hugging Face hub's datasets, fetched with a progress bar and resumed when cut off.

`hf_hub_download` throws a half-fetched file away when its process ends; here the part stays and
the next call goes on from it.
"""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path

import httpx
from huggingface_hub import get_hf_file_metadata, hf_hub_url
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status
from tqdm import tqdm

ATTEMPTS = 5
TIMEOUT_S = 30


def fetch(dataset: str, file: str, folder: Path, *, endpoint: str | None = None) -> Path:
    """The file's path below `folder`; nothing is downloaded that is there already.

    Raises: whatever httpx, the hub's client or the disk raise, and OSError for a file that came
    damaged.
    """
    url = hf_hub_url(dataset, file, repo_type="dataset", endpoint=endpoint)
    about = get_hf_file_metadata(url, endpoint=endpoint)
    etag = re.sub(r"\W", "", about.etag or "")
    if about.size is None or not etag:
        raise OSError("the hub names neither size nor version of the file")
    target = folder / etag[:16] / Path(file).name
    if not target.exists():
        part = target.with_name(f"{target.name}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        with tqdm(total=about.size, unit="B", unit_scale=True, desc=file) as bar:
            _download(url, part, about.size, bar)
        _verify(part, about.size, etag)
        part.replace(target)
    return target


def _download(url: str, part: Path, size: int, bar: tqdm) -> None:
    """Append to `part` until it is whole; gives up after five attempts that brought nothing."""
    failures = 0
    while (before := _size(part)) < size:
        try:
            _stream(url, part, bar)
        except (httpx.TransportError, httpx.StreamError):
            failures = 0 if _size(part) > before else failures + 1
            if failures >= ATTEMPTS:
                raise
            time.sleep(failures)
        else:
            if _size(part) <= before:
                raise OSError(f"the hub sent nothing after byte {before:,} of {size:,}")


def _stream(url: str, part: Path, bar: tqdm) -> None:
    have = _size(part)
    headers = build_hf_headers() | {"Accept-Encoding": "identity", "Range": f"bytes={have}-"}
    with httpx.stream(
        "GET", url, headers=headers, follow_redirects=True, timeout=TIMEOUT_S
    ) as response:
        hf_raise_for_status(response)
        goes_on = response.status_code == httpx.codes.PARTIAL_CONTENT
        bar.update((have if goes_on else 0) - bar.n)
        with part.open("ab" if goes_on else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                bar.update(len(chunk))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _verify(part: Path, size: int, etag: str) -> None:
    """The hub's version of a large file is its SHA-256."""
    got = _size(part)
    whole = got == size
    if whole and re.fullmatch(r"[0-9a-f]{64}", etag):
        whole = hashlib.sha256(part.read_bytes()).hexdigest() == etag
    if not whole:
        part.unlink()
        raise OSError(f"the file came damaged ({got:,} of {size:,} bytes); try again")
