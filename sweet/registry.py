"""Policy versions on disk, and which one is served.

    policies/v0007/           exactly a PEFT adapter folder, or a whole model's, plus
    policies/v0007/manifest.json   its parent, round, data hash, settings, figures, sha256 of files
    policies/promotions.jsonl      what was promoted and rolled back, a line each

A version is written into a folder aside and renamed, so it is there whole or not at all. It is
never changed afterwards. A version that can't be read is reported; the others are still listed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from sweet.errors import ConfigError, PolicyError
from sweet.settings import EMBEDDED_MODEL, EMBEDDED_WEIGHTS
from sweet.types import PolicyVersion, TaskKind

_MANIFEST = "manifest.json"
_ADAPTER_CONFIG = "adapter_config.json"  # what makes a folder a PEFT adapter
_MODEL_CONFIG = "config.json"  # what makes one a whole model, as transformers saves it
_ID = re.compile(r"v\d{4,}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A trained version and where it came from. `figures` are of the validation tasks."""

    version: PolicyVersion
    round_id: str | None = None
    data_hash: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    figures: Mapping[str, object] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Promotion:
    """A line of the history: `policy_id` was served from `at` on; None means the default again."""

    at: str
    action: str  # "promote" or "rollback"
    policy_id: str | None


class Registry:
    """The versions in `folder`, and the built-in ones that need no folder."""

    def __init__(self, folder: Path, builtin: Sequence[PolicyVersion]) -> None:
        self._folder = folder
        self._builtin = {version.id: version for version in builtin}
        self._promotions = folder / "promotions.jsonl"

    def versions(self) -> list[PolicyVersion]:
        """Every readable version: the built-in ones, then the trained ones, oldest first."""
        trained = (self._try_manifest(id) for id in self._ids())
        return [*self._builtin.values(), *(m.version for m in trained if isinstance(m, Manifest))]

    def broken(self) -> dict[str, str]:
        """The versions that can't be read, and why."""
        tried = {id: self._try_manifest(id) for id in self._ids()}
        return {id: why for id, why in tried.items() if isinstance(why, str)}

    def version(self, policy_id: str) -> PolicyVersion:
        """The version of that id. Raises: PolicyError."""
        if policy_id in self._builtin:
            return self._builtin[policy_id]
        return self.manifest(policy_id).version

    def manifest(self, policy_id: str) -> Manifest:
        """A trained version's manifest. Raises: PolicyError naming what is wrong with it."""
        if policy_id not in self._ids():
            known = ", ".join(v.id for v in self.versions())
            raise PolicyError(f"There is no policy {policy_id!r}. There are: {known}.")
        path = self._folder / policy_id / _MANIFEST
        try:
            return _manifest_of(json.loads(path.read_bytes()), self._folder / policy_id)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
            raise PolicyError(
                f"The manifest of policy {policy_id!r} can't be read ({path}): "
                f"{type(e).__name__}: {e}. Restore the file, or delete the folder."
            ) from e

    def verified(self, policy_id: str) -> PolicyVersion:
        """The version, after comparing its files with their checksums. Raises: PolicyError."""
        if policy_id in self._builtin:
            return self._builtin[policy_id]
        manifest = self.manifest(policy_id)
        found = _checksums(self._folder / policy_id)
        wrong = sorted(n for n, digest in manifest.sha256.items() if found.get(n) != digest)
        if wrong:
            raise PolicyError(
                f"Files of policy {policy_id!r} are missing or damaged: {', '.join(wrong)} "
                f"(in {self._folder / policy_id}). Restore them, or choose another policy."
            )
        below = manifest.version.model_path
        if below and Path(below).name != policy_id:
            self.verified(Path(below).name)
        return manifest.version

    def register(
        self,
        trained: Path,
        base_model: str,
        *,
        model_path: str | None = None,
        parent_id: str | None = None,
        round_id: str | None = None,
        data_hash: str | None = None,
        settings: Mapping[str, object] | None = None,
        figures: Mapping[str, object] | None = None,
        note: str = "",
    ) -> PolicyVersion:
        """A new version made of a copy of the folder `trained`; the next id. Not promoted.

        `trained` is a PEFT adapter folder or a whole model's. `model_path` is the version's folder
        whose whole model an adapter belongs on; without it that is `base_model`.
        Raises: PolicyError where `trained` is neither or can't be copied.
        """
        is_adapter = (trained / _ADAPTER_CONFIG).is_file()
        if not is_adapter and not (trained / _MODEL_CONFIG).is_file():
            raise PolicyError(
                f"{trained} is no PEFT adapter folder (no {_ADAPTER_CONFIG} in it), and no whole "
                f"model's (no {_MODEL_CONFIG})."
            )
        details: dict[str, object] = {
            "parent": parent_id,
            "base_model": base_model,
            "kind": "adapter" if is_adapter else "model",
            "on_model": Path(model_path).name if is_adapter and model_path else None,
            "round": round_id,
            "data_hash": data_hash,
            "settings": dict(settings or {}),
            "figures": dict(figures or {}),
            "note": note,
            "created_at": _now(),
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".new-", dir=self._folder))
        try:
            shutil.copytree(trained, aside, dirs_exist_ok=True)
            return self._publish(aside, details)
        except OSError as e:
            raise PolicyError(f"The new policy version can't be written: {e}") from e
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def promoted(self, *kinds: TaskKind) -> str | None:
        """The id of the version that was promoted last among those that play all these `kinds`.

        None where there is none, or all were rolled back.
        """
        return next((id for id in reversed(self._stack()) if self._plays(id, kinds)), None)

    def promote(self, policy_id: str) -> PolicyVersion:
        """The version, now served. Raises: PolicyError where it is unknown or damaged."""
        version = self.verified(policy_id)
        if self.promoted() != policy_id:
            self._append("promote", policy_id)
        return version

    def rollback(self) -> str | None:
        """The id served after undoing the last promotion; None for the default.

        Raises: ConfigError where nothing was promoted.
        """
        stack = self._stack()
        if not stack:
            raise ConfigError("No policy was promoted, so there is nothing to roll back.")
        before = stack[-2] if len(stack) > 1 else None
        self._append("rollback", before)
        return before

    def history(self) -> list[Promotion]:
        """Every promotion and roll-back, oldest first."""
        try:
            lines = self._promotions.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        history = []
        for number, line in enumerate(lines, start=1):
            try:
                history.append(Promotion(**json.loads(line)))
            except (ValueError, TypeError) as e:
                raise PolicyError(f"Line {number} of {self._promotions} is damaged: {e}") from e
        return history

    def _plays(self, policy_id: str, kinds: Sequence[TaskKind]) -> bool:
        """Whether a version can play; one that can't be read says so where it is asked to."""
        version = self._builtin.get(policy_id)
        if version is None:
            found = self._try_manifest(policy_id)
            if isinstance(found, str):
                return True
            version = found.version
        return all(plays(version, kind) for kind in kinds)

    def _stack(self) -> list[str]:
        stack: list[str] = []
        for promotion in self.history():
            if promotion.action == "rollback":
                stack.pop()
            elif promotion.policy_id:
                stack.append(promotion.policy_id)
        return stack

    def _append(self, action: str, policy_id: str | None) -> None:
        lines = [*self.history(), Promotion(_now(), action, policy_id)]
        self._folder.mkdir(parents=True, exist_ok=True)
        aside = self._promotions.with_suffix(".new")
        _write(aside, "".join(json.dumps(asdict(line)) + "\n" for line in lines))
        aside.replace(self._promotions)

    def _ids(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        names = (p.name for p in self._folder.iterdir() if p.is_dir() and _ID.fullmatch(p.name))
        return sorted(names, key=lambda name: int(name[1:]))

    def _try_manifest(self, policy_id: str) -> Manifest | str:
        try:
            return self.manifest(policy_id)
        except PolicyError as e:
            return str(e)

    def _publish(self, aside: Path, details: dict[str, object]) -> PolicyVersion:
        """Rename `aside` to the next free id; another process may take the same one first."""
        checksums = _checksums(aside)
        while True:
            number = max((int(id[1:]) for id in self._ids()), default=0) + 1
            policy_id = f"v{number:04d}"
            manifest = {"id": policy_id, **details, "sha256": checksums}
            _write(aside / _MANIFEST, json.dumps(manifest, indent=2, default=str) + "\n")
            try:
                aside.rename(self._folder / policy_id)
            except OSError:
                if not (self._folder / policy_id).exists():
                    raise
            else:
                return self.version(policy_id)


def served_for(served: Mapping[TaskKind, str], policy_id: str) -> list[TaskKind]:
    """The kinds of tasks that a version plays now, of what is `served` for each kind."""
    return [kind for kind, id in served.items() if id == policy_id]


def plays(version: PolicyVersion, kind: TaskKind) -> bool:
    """Whether a version was made for tasks of that kind.

    A version of the embedded model is for one kind, by the weights that it was trained from; the
    embedded model itself has weights for each.
    """
    is_embedded = version.base_model in EMBEDDED_WEIGHTS.values() and version.id != EMBEDDED_MODEL
    return not is_embedded or version.base_model == EMBEDDED_WEIGHTS[kind]


def for_kind(version: PolicyVersion, kind: TaskKind) -> PolicyVersion:
    """The version with the base model that it plays tasks of that kind with."""
    if version.id != EMBEDDED_MODEL:
        return version
    return replace(version, base_model=EMBEDDED_WEIGHTS[kind])


def _manifest_of(data: dict, folder: Path) -> Manifest:
    if data["id"] != folder.name:
        raise ValueError(f"it says it is {data['id']!r}")
    is_adapter = data.get("kind", "adapter") == "adapter"
    on_model = data.get("on_model") if is_adapter else folder.name
    if on_model and not _ID.fullmatch(on_model):
        raise ValueError(f"its model is {on_model!r}, which is no version's id")
    version = PolicyVersion(
        id=data["id"],
        base_model=str(data["base_model"]),
        adapter_path=str(folder) if is_adapter else None,
        parent_id=data["parent"],
        note=str(data.get("note", "")),
        created_at=str(data["created_at"]),
        model_path=str(folder.parent / on_model) if on_model else None,
    )
    sha256 = {str(k): str(v) for k, v in data["sha256"].items()}
    return Manifest(
        version,
        data.get("round"),
        data.get("data_hash"),
        dict(data.get("settings") or {}),
        dict(data.get("figures") or {}),
        sha256,
    )


def _checksums(folder: Path) -> dict[str, str]:
    """The sha256 of each file of a version, but of its manifest, by its path in the folder."""
    checksums = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != _MANIFEST:
            with path.open("rb") as file:
                checksums[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return checksums


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
