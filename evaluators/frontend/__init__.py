"""How close a page is to the one that was wanted.

evaluator.py  FrontendEvaluator: from an answer to a reward, by CLIP or by visual similarity
clip.py       a CLIP model's image side, batched and cached
weights.py    where its weights are
"""

from evaluators.frontend.clip import Clip, open_clip_model
from evaluators.frontend.evaluator import VISUAL, FrontendEvaluator
from evaluators.frontend.weights import WeightsMissing

__all__ = ["VISUAL", "Clip", "FrontendEvaluator", "WeightsMissing", "open_clip_model"]
