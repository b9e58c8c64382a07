"""Models are loaded by one thread at a time."""

from __future__ import annotations

import threading

LOADING = threading.RLock()
"""Held while a model is loaded, or a library that imports transformers is imported: another thread
that does the same meanwhile finds half a library, or gets a model without its weights."""
