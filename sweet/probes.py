"""What `doctor` tries, each by doing it: a probe returns what it found and what to do about it."""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx

from evaluators.frontend import WeightsMissing, open_clip_model
from evaluators.frontend.weights import (
    brings_weights,
    cached_weights,
    given_file,
    how_to_get,
    hub_files,
)
from evaluators.render import Renderer
from evaluators.render.answers import ASSETS, missing_assets
from evaluators.sandbox import Level, probe_levels
from evaluators.sandbox.levels import LAYERS
from sweet.browser import chromium_path, rendering_problem
from sweet.engines import EMBEDDED_DIRS, open_engine
from sweet.errors import SweetError
from sweet.policy import EnginePolicy
from sweet.settings import EMBEDDED_MODEL, EMBEDDED_WEIGHTS, ModelSettings, load_settings
from sweet.types import Message, Observation, Sampling, TaskKind

State = Literal["works", "missing", "broken"]
VLLM_URL = "http://127.0.0.1:8000"  # where `vllm serve` listens by default
FREE_BYTES = 1 << 30
PAGES_PAGE = "docs/frontend.md"
MODELS_PAGE = "docs/models.md"


@dataclass(frozen=True, slots=True)
class Check:
    """What one probe found. `todo` says what to do where it does not work.

    `needed`: the studio cannot be used without it.
    """

    name: str
    state: State
    detail: str
    todo: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe by name; it returns one check, or several for things with layers."""

    name: str
    run: Callable[[], Check | list[Check]]
    timeout_s: float = 60
    needed: bool = True


def probe_python() -> Check:
    """This Python; an older one would not have come so far."""
    detail = f"{platform.python_version()} on {platform.platform(terse=True)}"
    return Check("python", "works", detail, needed=True)


TORCH = """
import json, torch
a = torch.randn(64, 64, dtype=torch.float64)
assert float((a @ a.inverse()).trace()) > 63.9
import transformers  # fails beside a torch from another index
gpu = ""
if torch.cuda.is_available():
    try:
        a = torch.ones(64, 64, device="cuda")
        assert float((a @ a).sum()) == 64**3
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
        count = torch.cuda.device_count()
        gpu = f"{torch.cuda.get_device_name(0)}, {memory:.0f} GiB, {count} in all"
    except Exception as e:
        gpu = f"broken: {e}"
print(json.dumps([torch.__version__, gpu]))
"""


def probe_torch() -> list[Check]:
    """PyTorch computes, on the GPU too where there is one, and transformers imports beside it."""
    done = subprocess.run([sys.executable, "-c", TORCH], capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        return [Check("torch", "broken", said, "remove .venv, then `make setup`", True)]
    version, gpu = json.loads(done.stdout.splitlines()[-1])
    return [Check("torch", "works", version, needed=True), _gpu(gpu)]


def _gpu(said: str) -> Check:
    if not said:
        return Check("gpu", "missing", "none seen by PyTorch: local models run on the CPU")
    if said.startswith("broken: "):
        todo = "update the GPU's driver to one that fits PyTorch's CUDA"
        return Check("gpu", "broken", _cut(said.removeprefix("broken: ")), todo)
    return Check("gpu", "works", said)


EMBEDDED_TASKS = {
    TaskKind.BACKEND: "Write a function that prices a parcel. The signature is: def price(kg)",
    TaskKind.FRONTEND: "A page about tea with a header and a footer.",
}
EMBEDDED_TODO = f"take a whole copy of the project, or connect a model: {MODELS_PAGE}"


def probe_embedded() -> Check:
    """The embedded models load and say something: one writes functions, the other draws pages."""
    said = []
    for kind, task in EMBEDDED_TASKS.items():
        model = EMBEDDED_WEIGHTS[kind]
        if not (folder := EMBEDDED_DIRS[model]).exists():
            return Check("embedded model", "missing", f"no folder {folder}", EMBEDDED_TODO, True)
        engine = open_engine(ModelSettings(model=model))
        policy = EnginePolicy(EMBEDDED_MODEL, engine, Sampling(max_tokens=64), "plain")
        try:
            action = asyncio.run(policy.act(Observation(kind, task), seed=1))
        except SweetError as e:
            return Check("embedded model", "broken", str(e), EMBEDDED_TODO, True)
        said.append(_cut(action.raw))
    return Check("embedded model", "works", f"it says: {'; '.join(said)}", needed=True)


def probe_chromium() -> Check:
    """Chromium renders a page."""
    try:
        browser = chromium_path()
    except SweetError as e:
        return Check("chromium", "broken", str(e), "unset SWEET_CHROMIUM, or correct it")
    problem = rendering_problem(browser)
    if not problem:
        return Check("chromium", "works", f"{browser or 'Playwright’s own'} rendered a page")
    todo = "`make setup` finds or installs one, or says how; only web pages need it"
    return Check("chromium", "broken" if browser else "missing", problem, todo)


def probe_renderer() -> list[Check]:
    """Web pages are drawn, behind which walls, and with the stylesheet that they ask for."""
    checks = []
    try:
        with Renderer() as renderer:
            walls = renderer.walls
    except SweetError as e:
        checks = [Check("renderer", "broken", str(e), "see the line of chromium")]
    else:
        assert walls is not None
        checks = [Check("renderer", "works", "it drew a page")]
        for name, held, todo in walls.each():
            state: State = "works" if held else "missing"
            detail = "round the browser" if held else "not here"
            checks.append(Check(f"renderer: {name}", state, detail, "" if held else todo))
    if missing := missing_assets():
        checks.append(Check("page assets", "missing", missing, "`make setup` fetches them"))
    else:
        checks.append(Check("page assets", "works", str(ASSETS)))
    return checks


def probe_sandbox() -> list[Check]:
    """The level that programs run at, and each of the sandbox's layers."""
    layers = probe_levels()
    holding = {name for name, works, _ in layers if works}
    level = next(level for level in Level if holding.issuperset(LAYERS[level]))
    checks = [_sandbox_level(level)]
    for name, works, detail in layers:
        todo = "" if works else LAYER_TODO.get(name, "a Linux kernel from 5.13 on has it")
        checks.append(Check(f"sandbox: {name}", "works" if works else "missing", detail, todo))
    return checks


LAYER_TODO = {
    "namespaces": "`sudo apt-get install bubblewrap`; in a container they may be forbidden",
    "user": "it comes with bubblewrap, or where the studio runs as root",
    "worker": "see what it says; nothing can be scored until then",
}


def _sandbox_level(level: Level) -> Check:
    if level is not Level.LIMITS:
        return Check("sandbox", "works", f"level {level}", needed=True)
    todo = "run the studio on Linux, e.g. in a virtual machine or container, to score answers"
    if load_settings().allow_unsafe_exec:
        return Check("sandbox", "broken", "NOT SAFE: answers run with limits only", todo)
    return Check("sandbox", "broken", "only limits here: scoring is refused", todo, needed=True)


def probe_clip() -> Check:
    """The configured CLIP model embeds a picture; weights that are not here are not fetched."""
    name = "clip weights"
    settings = load_settings().clip
    otherwise = "until then pages are scored by visual similarity"
    if not settings.model:
        return Check(name, "missing", f"SWEET_CLIP__MODEL is empty: {otherwise}")
    try:
        if not (brings_weights(settings) or given_file(settings) or cached_weights(settings)):
            todo = f"{how_to_get(hub_files(settings)[0])}; {otherwise}"
            return Check(name, "missing", "not in the Hugging Face cache", todo)
        from PIL import Image

        white = io.BytesIO()
        Image.new("RGB", (64, 64), "white").save(white, "PNG")
        clip = open_clip_model(settings)
        clip.embeddings([white.getvalue()])
    except WeightsMissing as e:
        return Check(name, "missing", str(e), otherwise)
    except SweetError as e:
        return Check(name, "broken", str(e), f"correct SWEET_CLIP__…: {PAGES_PAGE}")
    return Check(name, "works", f"{clip.name} embedded a picture")


def probe_vllm() -> Check:
    """A vLLM server where one is by default."""
    try:
        version = httpx.get(f"{VLLM_URL}/version", timeout=5).json()["version"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as e:
        todo = f"only for models served by vLLM: {MODELS_PAGE}"
        return Check("vllm", "missing", f"nothing at {VLLM_URL} ({type(e).__name__})", todo)
    return Check("vllm", "works", f"{version} at {VLLM_URL}")


def probe_endpoints() -> list[Check]:
    """The configured models at endpoints answer."""
    settings = load_settings()
    roles = {"agent": settings.agent, "simulator": settings.simulator}
    return [_endpoint(role, model) for role, model in roles.items()]


def _endpoint(role: str, model: ModelSettings) -> Check:
    name = f"{role} endpoint"
    if not model.base_url:
        todo = f"to connect a real model: {MODELS_PAGE}"
        return Check(name, "missing", f"none configured; the {role} is {model.model!r}", todo)
    engine = open_engine(model)
    hello = [Message("user", "Say hello.")]
    try:
        said = asyncio.run(engine.complete(hello, Sampling(temperature=0, max_tokens=16)))
    except SweetError as e:
        prefix = f"SWEET_{role.upper()}__"
        todo = f"check {prefix}BASE_URL, {prefix}MODEL and {prefix}API_KEY: {MODELS_PAGE}"
        return Check(name, "broken", str(e), todo, needed=True)
    detail = f"{model.model} at {model.base_url} says: {_cut(said.text)}"
    return Check(name, "works", detail, needed=True)


def probe_data() -> Check:
    """The data folder can be written and has room."""
    folder = load_settings().data
    todo = "free the disk or name another folder: SWEET_DATA=/path/to/folder"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * (1 << 20))
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(folder).free
    except OSError as e:
        return Check("data folder", "broken", f"{folder}: {e.strerror}", todo, True)
    detail = f"{folder}, {free / 2**30:.1f} GiB free"
    if free < FREE_BYTES:
        return Check("data folder", "broken", f"{detail}; it wants 1", todo, True)
    return Check("data folder", "works", detail, needed=True)


def probe_sqlite() -> Check:
    """SQLite has strict tables, full-text search and a write-ahead log in the data folder."""
    folder = load_settings().data
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            db = sqlite3.connect(Path(scratch) / "probe.db")
            mode = db.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            db.execute("CREATE TABLE t (n INTEGER) STRICT")
            db.execute("CREATE VIRTUAL TABLE f USING fts5(text)")
            db.execute("INSERT INTO f VALUES ('it works')")
            hits = db.execute("SELECT count(*) FROM f WHERE f MATCH 'works'").fetchone()[0]
            db.close()
    except sqlite3.Error as e:
        todo = "use a Python with SQLite 3.37 or newer and FTS5 (Debian 12's and python.org's do)"
        return Check("sqlite", "broken", f"{sqlite3.sqlite_version}: {e}", todo, True)
    if (mode, hits) != ("wal", 1):
        todo = "keep the data folder on a local disk: SWEET_DATA=/path/to/folder"
        return Check("sqlite", "broken", f"no write-ahead log here (mode {mode})", todo, True)
    return Check("sqlite", "works", f"{sqlite3.sqlite_version}: strict, FTS5, WAL", needed=True)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 70 else line[:69] + "…")


PROBES = [
    Probe("python", probe_python),
    Probe("torch", probe_torch, 180),
    Probe("embedded", probe_embedded, 180),
    Probe("sandbox", probe_sandbox, 120),
    Probe("sqlite", probe_sqlite),
    Probe("data", probe_data),
    Probe("chromium", probe_chromium, 120, needed=False),
    Probe("renderer", probe_renderer, 180, needed=False),
    Probe("clip", probe_clip, 120, needed=False),
    Probe("vllm", probe_vllm, 30, needed=False),
    Probe("endpoints", probe_endpoints, 300, needed=False),
]
