"""A CLIP model's image side, by open_clip: pictures to unit vectors, batched and cached."""

from __future__ import annotations

import hashlib
import io
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evaluators.frontend.weights import (
    WeightsMissing,
    brings_weights,
    check_repo,
    checkpoint,
    evaluator_name,
    open_clip_library,
    tag_settings,
)
from sweet.errors import EvaluatorError, boundary
from sweet.loading import LOADING
from sweet.settings import ClipSettings

if TYPE_CHECKING:
    import torch

KEPT_EMBEDDINGS = 16_384  # of two kilobytes each
BATCH = 32  # pictures in one pass through the model


class Clip:
    """The image side of a CLIP model. Safe from any thread.

    Pictures that are asked for at the same time go through the model together, and none twice.
    """

    def __init__(self, name: str, model: Any, transform: Callable[[Any], torch.Tensor]) -> None:
        self.name = name
        self._model = model
        self._transform = transform
        self._kept: OrderedDict[str, np.ndarray] = OrderedDict()
        self._waiting: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._computing = threading.Lock()

    def cosine(self, one: bytes, other: bytes) -> float:
        """The cosine of two PNG pictures' embeddings; 1 for one picture with itself."""
        first, second = self.embeddings([one, other])
        return round(float(np.clip(first @ second, -1.0, 1.0)), 6)

    def embeddings(self, pngs: Sequence[bytes]) -> list[np.ndarray]:
        """The unit vectors that PNG pictures are for the model."""
        keys = [hashlib.sha256(png).hexdigest() for png in pngs]
        found: dict[str, np.ndarray] = {}
        with self._lock:
            self._take(keys, found)
            self._waiting |= {k: p for k, p in zip(keys, pngs, strict=True) if k not in found}
        while len(found) < len(set(keys)):
            with self._computing:  # who comes in takes along what all others wait for
                with self._lock:
                    self._take(keys, found)
                    left = [(k, p) for k, p in zip(keys, pngs, strict=True) if k not in found]
                    batch = dict((left + list(self._waiting.items()))[:BATCH])
                if left:
                    self._compute(batch)
        return [found[key] for key in keys]

    def _take(self, keys: Sequence[str], found: dict[str, np.ndarray]) -> None:
        for key in keys:
            if key in self._kept:
                self._kept.move_to_end(key)
                found[key] = self._kept[key]

    def _compute(self, batch: Mapping[str, bytes]) -> None:
        try:
            with boundary(EvaluatorError, f"{self.name} could not embed a picture"):
                vectors = self._forward(list(batch.values()))
        finally:
            with self._lock:
                for key in batch:
                    self._waiting.pop(key, None)
        with self._lock:
            self._kept |= dict(zip(batch, vectors, strict=True))
            while len(self._kept) > KEPT_EMBEDDINGS:
                self._kept.popitem(last=False)

    def _forward(self, pngs: Sequence[bytes]) -> np.ndarray:
        import torch
        from PIL import Image

        pictures = [self._transform(Image.open(io.BytesIO(png))) for png in pngs]
        device = next(self._model.parameters()).device
        with torch.inference_mode():
            stacked = torch.stack(pictures).to(device)
            return self._model.encode_image(stacked, normalize=True).float().cpu().numpy()


def open_clip_model(settings: ClipSettings) -> Clip:
    """The model that the settings name, with its weights and its own transforms.

    Raises: WeightsMissing where they can't be had (or no model is named), ConfigError where the
    settings are wrong, EvaluatorError where they can't be loaded.
    """
    if not settings.model:
        raise WeightsMissing("SWEET_CLIP__MODEL is empty.")
    if brings_weights(settings):
        check_repo(settings)
        return _load(settings, None, {})
    found = checkpoint(settings)  # before a library that takes seconds to import
    return _load(settings, found, tag_settings(settings))


def _load(settings: ClipSettings, weights: Path | None, tag: Mapping[str, Any]) -> Clip:
    with LOADING:
        return _loaded(settings, weights, tag)


def _loaded(settings: ClipSettings, weights: Path | None, tag: Mapping[str, Any]) -> Clip:
    open_clip = open_clip_library()
    import torch

    name = evaluator_name(settings)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        model, transform = open_clip.create_model_from_pretrained(
            settings.model,
            str(weights) if weights else None,
            device=device,
            # OpenAI's weights want it, and the configuration "ViT-B-32" does not say so.
            force_quick_gelu=bool(tag.get("quick_gelu")),
            image_mean=tag.get("mean"),
            image_std=tag.get("std"),
            image_interpolation=tag.get("interpolation"),
            image_resize_mode=tag.get("resize_mode"),
        )
    except Exception as e:  # open_clip raises what torch, json and the hub raise
        source = weights or settings.model
        raise EvaluatorError(
            f"{name} could not be loaded from {source}: {type(e).__name__}: {e}. Check "
            "SWEET_CLIP__MODEL and SWEET_CLIP__WEIGHTS, or set SWEET_CLIP__MODEL= to score pages "
            "by their visual similarity."
        ) from e
    return Clip(name, model.eval(), transform)
