"""The paper's own results, to be shown beneath ours: not measured here.

Source: arXiv:2503.15478 (v1), its main table and its ablations. In percent; n is the paper's number
of test tasks, 1,000 of backend programming and 500 of frontend design. `win_rate` is against
GPT-4o's pages. It gives no intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

BACKEND_N, FRONTEND_N = 1000, 500


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A method's results in the paper; None where it gives none."""

    method: str
    tests_passed: float | None = None
    success: float | None = None
    cosine: float | None = None
    win_rate: float | None = None


PAPER = (
    PaperRow("single turn: Llama-3.1-8B", 11.8, 6.9, 63.1, 13.6),
    PaperRow("single turn: Llama-3.1-70B", 24.2, 14.8, 61.8, 13.2),
    PaperRow("single turn: o1-mini", 22.4, 13.1, 70.2, 23.8),
    PaperRow("single turn: GPT-4o", 27.6, 16.2, 68.6, 23.8),
    PaperRow("Llama-3.1-70B", 48.0, 35.0, 73.7, 39.8),
    PaperRow("GPT-4o", 54.6, 40.4, 78.1, 50.0),
    PaperRow("o1-mini", 43.2, 30.3, 77.5, 47.2),
    PaperRow("Llama-3.1-8B", 34.2, 22.4, 72.4, 33.8),
    PaperRow("Llama-3.1-8B + rejection fine-tuning", 40.9, 28.2, 75.2, 38.6),
    PaperRow("Llama-3.1-8B + multi-turn DPO", 48.0, 34.4, 76.9, 42.8),
    PaperRow("Llama-3.1-8B + SWEET-RL", 56.8, 40.4, 77.7, 48.2),
    PaperRow("SWEET-RL without hidden information", 44.0, 31.2),
    PaperRow("SWEET-RL with a value head", 45.3, 36.2),
    PaperRow("SWEET-RL without length normalisation", 4.2, 3.6),
    PaperRow("Llama-3.1-70B + rejection fine-tuning", 45.5, 31.9),
    PaperRow("Llama-3.1-70B + multi-turn DPO", 56.7, 41.8),
    PaperRow("Llama-3.1-70B + SWEET-RL", 60.2, 45.6),
)
