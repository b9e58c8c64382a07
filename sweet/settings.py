"""Settings: environment variables `SWEET_*`, then `sweet.toml` in the data folder or here.

Each default stands beside its source.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import platformdirs
from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from sweet.errors import ConfigError
from sweet.types import Sampling, TaskKind

EMBEDDED_MODEL = "embedded"
EMBEDDED_WEIGHTS = {TaskKind.BACKEND: EMBEDDED_MODEL, TaskKind.FRONTEND: "embedded-pages"}
"""The embedded model has weights of their own for each kind of tasks; trained versions name them as
their base model."""
EMBEDDED_TOP_P = 0.8
"""A model so small puts a tail of noise under every exact token; `python -m trainer measure`."""


def default_data_dir() -> Path:
    """`SWEET_DATA`, else the platform's user data folder."""
    return Path(os.environ.get("SWEET_DATA") or platformdirs.user_data_dir("sweet-studio"))


class ModelSettings(BaseModel):
    """Where a role's model runs: embedded, a local Hugging Face model, or an endpoint."""

    model: str = EMBEDDED_MODEL
    """"embedded", a Hugging Face id or folder, or the model's name at `base_url`."""
    base_url: str = ""
    """An OpenAI-compatible server, e.g. http://127.0.0.1:8000/v1; empty runs the model here."""
    api_key: str = ""
    temperature: float = Field(1.0, ge=0, le=2)  # arXiv:2503.15478: the agent is sampled at 1
    top_p: float | None = Field(None, gt=0, le=1)
    """None: 0.8 for the embedded model, 1 for every other."""
    max_tokens: int = Field(1024, ge=1)
    timeout_s: float = Field(120, gt=0)

    @property
    def sampling(self) -> Sampling:
        """How the model is sampled; each draw adds its own seed."""
        own = EMBEDDED_TOP_P if self.model in EMBEDDED_WEIGHTS.values() else 1.0
        return Sampling(
            temperature=self.temperature,
            top_p=own if self.top_p is None else self.top_p,
            max_tokens=self.max_tokens,
        )


class SimulatorSettings(ModelSettings):
    """The same for the simulator, which is greedy."""

    temperature: float = Field(0.0, ge=0, le=2)  # arXiv:2503.15478: the simulator is at 0


class JudgeSettings(ModelSettings):
    """The same for the judge, a critic that is asked for scores; greedy, to be repeatable."""

    temperature: float = Field(0.0, ge=0, le=2)


class ClipSettings(BaseModel):
    """The model whose cosine scores web pages."""

    model: str = "ViT-B-32"  # arXiv:2503.15478, section 3
    """A model of open_clip's, `local-dir:FOLDER` or `hf-hub:REPO`; empty: visual similarity."""
    pretrained: str = "openai"  # the same
    """Which of open_clip's weights for that model; with a file, how its pictures are prepared."""
    weights: str = ""
    """A checkpoint file, in place of the hub's."""


class Settings(BaseSettings):
    """The studio's settings. Nested ones use two underscores: SWEET_AGENT__MODEL."""

    model_config = SettingsConfigDict(
        env_prefix="SWEET_", env_nested_delimiter="__", extra="ignore", validate_default=True
    )

    data: Path = Field(default_factory=default_data_dir)
    host: str = "127.0.0.1"
    port: int = Field(7860, ge=0, le=65535)
    agent: ModelSettings = Field(default_factory=ModelSettings)
    simulator: SimulatorSettings = Field(default_factory=SimulatorSettings)
    """The LLM simulator; while its model is "embedded" only the script plays, on Mini tasks."""
    judge: JudgeSettings = Field(default_factory=JudgeSettings)
    """The judge of training and of comparisons; while its model is "embedded" there is none."""
    clip: ClipSettings = Field(default_factory=ClipSettings)
    max_turns: int = Field(10, ge=1, le=50)  # arXiv:2503.15478, section 3
    sandbox_workers: int = Field(1, ge=1, le=64)
    allow_unsafe_exec: bool = False

    @cached_property
    def database(self) -> Path:
        """The SQLite file of the log."""
        return self.data / "sweet.db"

    @classmethod
    def settings_customise_sources(  # type: ignore[override]  # the four sources by name
        cls, settings_cls: type[BaseSettings], **sources: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then sweet.toml."""
        files = [Path("sweet.toml"), default_data_dir() / "sweet.toml"]
        toml = TomlConfigSettingsSource(settings_cls, toml_file=files)
        return (sources["init_settings"], sources["env_settings"], toml)


def load_settings(**overrides: object) -> Settings:
    """The settings of this process. Raises: ConfigError naming each wrong value."""
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as e:
        wrong = "; ".join(
            f"SWEET_{'__'.join(map(str, err['loc'])).upper()} = {err['input']!r}: {err['msg']}"
            for err in e.errors()
        )
        raise ConfigError(f"Settings are wrong: {wrong}") from e
