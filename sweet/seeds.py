"""Seeds derived from seeds, so that each draw has its own and every process the same."""

from __future__ import annotations

import hashlib


def derived_seed(seed: int, *parts: object) -> int:
    """A seed for one draw of what `seed` began: 31 bits, which every engine takes."""
    digest = hashlib.blake2b(repr((seed, *parts)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") & 0x7FFFFFFF
