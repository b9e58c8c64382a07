"""LoRA adapters on a loaded model: several at once, one of them in force."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

from sweet.errors import PolicyError, boundary

CONFIG_FILE = "adapter_config.json"
WEIGHT_FILES = ("adapter_model.safetensors", "adapter_model.bin")


class AdapterKey(NamedTuple):
    """A version of an adapter folder; a folder written anew is another adapter."""

    folder: str
    modified_ns: int


def find_adapter(folder: str) -> AdapterKey:
    """The folder's current version. Raises: PolicyError when it is no PEFT adapter folder."""
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise PolicyError(f"The adapter folder {folder} was not found.")
    weights = [path / name for name in WEIGHT_FILES if (path / name).is_file()]
    missing = [] if (path / CONFIG_FILE).is_file() else [CONFIG_FILE]
    missing += [] if weights else [WEIGHT_FILES[0]]
    if missing:
        raise PolicyError(
            f"The adapter folder {folder} lacks {' and '.join(missing)}; it must be a folder as "
            "PEFT's save_pretrained writes it."
        )
    return AdapterKey(str(path.resolve()), weights[0].stat().st_mtime_ns)


class Adapters:
    """The adapters loaded on one network; the least used is unloaded when there are too many."""

    def __init__(self, network: Any, device: str, max_loaded: int) -> None:
        self._network = network
        self._device = device
        self._max_loaded = max_loaded
        self._names: OrderedDict[AdapterKey, str] = OrderedDict()
        self._made = 0
        self._peft: Any = None
        self._in_force: AdapterKey | None = None

    def load(self, key: AdapterKey | None, keep: set[AdapterKey | None]) -> list[AdapterKey]:
        """Have an adapter ready; which others were unloaded for it, none of them in `keep`.

        Raises: PolicyError naming the folder.
        """
        if key is None:
            return []
        if key in self._names:
            self._names.move_to_end(key)
            return []
        idle = [k for k in self._names if k not in keep]
        unloaded = idle[: max(0, len(self._names) + 1 - self._max_loaded)]
        for old in unloaded:
            self._unload(old)
        self._made += 1
        name = f"adapter{self._made}"  # PEFT's names may hold no dots, as paths do
        with boundary(PolicyError, f"The adapter {key.folder} could not be loaded"):
            self._read(key, name)
        self._names[key] = name
        return unloaded

    def use(self, key: AdapterKey | None) -> None:
        """Put a loaded adapter, or with None the bare model, in force."""
        if key == self._in_force or self._peft is None:
            return
        if key is None:
            self._peft.base_model.disable_adapter_layers()
        else:
            self._peft.set_adapter(self._names[key], inference_mode=True)
            if self._in_force is None:
                self._peft.base_model.enable_adapter_layers()
        self._in_force = key

    def _read(self, key: AdapterKey, name: str) -> None:
        from peft import PeftConfig, PeftModel, PeftType

        config = PeftConfig.from_pretrained(key.folder)
        if config.peft_type != PeftType.LORA:
            raise PolicyError(
                f"The adapter {key.folder} is of type {config.peft_type}; only LORA is supported."
            )
        config.inference_mode = True
        try:
            if self._peft is None:
                self._peft = PeftModel(self._network, config, adapter_name=name)
                self._peft.base_model.disable_adapter_layers()
            loaded = self._peft.load_adapter(key.folder, name, torch_device=self._device)
            wrong = [*loaded.unexpected_keys, *loaded.missing_keys]
            if wrong:
                raise PolicyError(
                    f"The adapter {key.folder} was made for another model: {len(wrong)} of its "
                    f"weights don't fit, the first is {wrong[0]}."
                )
        except Exception:
            self._discard(name)
            raise
        finally:
            self._restore()

    def _unload(self, key: AdapterKey) -> None:
        if self._in_force == key:
            self.use(None)
        self._discard(self._names.pop(key))
        self._restore()

    def _discard(self, name: str) -> None:
        if self._peft is not None and name in self._peft.peft_config:
            self._peft.delete_adapter(name)

    def _restore(self) -> None:
        """What was in force, after PEFT may have switched adapters by itself."""
        in_force, self._in_force = self._in_force, None
        if self._peft is not None:
            self._peft.base_model.disable_adapter_layers()
        self.use(in_force)
