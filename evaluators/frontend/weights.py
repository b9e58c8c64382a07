"""Where CLIP's weights are: a file that was named, or the Hugging Face hub's, once fetched."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sweet.errors import ConfigError, EvaluatorError
from sweet.loading import LOADING
from sweet.settings import ClipSettings

REACH_S = 5.0  # how long the hub is waited for
HUB_REPOS = {("ViT-B-32", "openai"): "timm/vit_base_patch32_clip_224.openai"}
"""What open_clip's own table says of the default: known without importing it."""
HUB_CONFIG = "open_clip_config.json"
HUB_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")


class WeightsMissing(EvaluatorError):
    """CLIP's weights can't be had on this machine."""


def brings_weights(settings: ClipSettings) -> bool:
    """Whether the model's name is a folder's or a repository's (`local-dir:…`, `hf-hub:…`)."""
    return ":" in settings.model


def given_file(settings: ClipSettings) -> Path | None:
    """The checkpoint that the settings name. Raises: ConfigError where it is not there."""
    if not settings.weights:
        return None
    path = Path(settings.weights).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"SWEET_CLIP__WEIGHTS={settings.weights}: no such file. Name a checkpoint that "
            "open_clip reads, or leave it out for the hub's."
        )
    return path


def evaluator_name(settings: ClipSettings) -> str:
    """What rewards say gave them; a file of one's own is told from others by its content."""
    if brings_weights(settings):
        return f"clip:{settings.model}"
    path = given_file(settings)
    if path is None:
        return f"clip:{settings.model}/{settings.pretrained}"
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"clip:{settings.model}/{path.stem}@{digest[:8]}"


def checkpoint(settings: ClipSettings) -> Path:
    """The file with the weights: the one given, the hub's in its cache, or fetched now.

    Raises: WeightsMissing, ConfigError.
    """
    if given := given_file(settings):
        return given
    repo, files = hub_files(settings)
    if cached := cached_weights(settings):
        return cached
    _check_reachable(repo)
    import huggingface_hub

    why = ""
    for name in files:
        try:
            return Path(huggingface_hub.hf_hub_download(repo, name))
        except Exception as e:  # whatever its transports raise
            why = f"{type(e).__name__}: {str(e).splitlines()[0]}"
    raise WeightsMissing(f"The hub gave no weights of {repo} ({why}). {how_to_get(repo)}.")


def cached_weights(settings: ClipSettings) -> Path | None:
    """The hub's weights in the local cache; None where they are not there."""
    from huggingface_hub import try_to_load_from_cache

    repo, files = hub_files(settings)
    cached = (try_to_load_from_cache(repo, name) for name in files)
    return next((Path(path) for path in cached if isinstance(path, str)), None)


def hub_files(settings: ClipSettings) -> tuple[str, Sequence[str]]:
    """The hub repository that open_clip has for the settings, and the names its file may have.

    Raises: ConfigError.
    """
    if known := HUB_REPOS.get((settings.model, settings.pretrained)):
        return known, HUB_FILES
    open_clip = open_clip_library()

    repo, file = os.path.split(tag_settings(settings).get("hf_hub", ""))
    if not repo:
        tags = open_clip.list_pretrained_tags_by_model(settings.model)
        raise ConfigError(
            f"SWEET_CLIP__PRETRAINED={settings.pretrained!r}: the hub has no such weights for "
            f"{settings.model}. It has {', '.join(tags) or 'none'}; or name a file with "
            "SWEET_CLIP__WEIGHTS."
        )
    return repo, (file,) if file else HUB_FILES


def check_repo(settings: ClipSettings) -> None:
    """Raises: WeightsMissing where the model is a repository that can't be reached now."""
    from huggingface_hub import try_to_load_from_cache

    prefix, _, repo = settings.model.partition(":")
    if prefix == "hf-hub" and not isinstance(try_to_load_from_cache(repo, HUB_CONFIG), str):
        _check_reachable(repo)


def _check_reachable(repo: str) -> None:
    """Raises: WeightsMissing where the hub does not answer; its own client would retry long."""
    import httpx
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise WeightsMissing(f"The hub is switched off (HF_HUB_OFFLINE). {how_to_get(repo)}.")
    try:
        httpx.head(constants.ENDPOINT, timeout=REACH_S)
    except httpx.HTTPError as e:
        raise WeightsMissing(
            f"The hub at {constants.ENDPOINT} does not answer ({type(e).__name__}). "
            f"{how_to_get(repo)}."
        ) from e


def how_to_get(repo: str) -> str:
    """What to do for weights that are not here."""
    return f"`hf download {repo}` fetches them; or name a file with SWEET_CLIP__WEIGHTS"


def open_clip_library() -> Any:
    """open_clip, which takes seconds to import, transformers among them."""
    with LOADING:
        import open_clip
    return open_clip


def tag_settings(settings: ClipSettings) -> Mapping[str, Any]:
    """How pictures are prepared and which activation is used for a name of weights."""
    open_clip = open_clip_library()

    if settings.model not in open_clip.list_models():
        raise ConfigError(
            f"SWEET_CLIP__MODEL={settings.model!r}: open_clip has no such model. It has "
            f"{', '.join(open_clip.list_models()[:8])}, … (open_clip.list_models() lists all)."
        )
    return open_clip.get_pretrained_cfg(settings.model, settings.pretrained) or {}
