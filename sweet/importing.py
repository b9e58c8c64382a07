"""Libraries that only one thread at a time may begin to import."""

from __future__ import annotations

import threading

ONE_IMPORT = threading.RLock()
"""Held where transformers, or what imports it, is imported in the midst of a run: a thread that
asks for a part of it while another one still reads it is told that there is none."""
