"""Checkpoints: one file that holds everything a run needs to go on as if it had never stopped.

Tensors go into safetensors, everything else into its header as JSON; nothing is pickled. The file is written under
another name and renamed, so that it is whole whenever it exists.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from firstk._checks import CorruptModel, InvalidInput
from firstk._whole_file import whole_file

FILE = "checkpoint.safetensors"


def flattened(tree: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Return a tree of JSON values with tensors moved to `tensors` and replaced by their names."""
    if isinstance(tree, Tensor):
        tensors[path] = tree.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": path}
    if isinstance(tree, dict):
        return {"dict": [[key, flattened(value, f"{path}.{key}", tensors)] for key, value in tree.items()]}
    if isinstance(tree, (list, tuple)):
        return {"list": [flattened(value, f"{path}.{i}", tensors) for i, value in enumerate(tree)]}
    return {"value": tree}


def unflattened(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """Undo `flattened`."""
    if "tensor" in tree:
        return tensors[tree["tensor"]]
    if "dict" in tree:
        return {key: unflattened(value, tensors) for key, value in tree["dict"]}
    if "list" in tree:
        return [unflattened(value, tensors) for value in tree["list"]]
    return tree["value"]


def fingerprint(plan: Any, seed: int, tensors: dict[str, Tensor]) -> str:
    """Hash what a run depends on: settings, seed, data and start."""
    digest = hashlib.sha256(f"{plan} {seed}".encode())
    for name, part in sorted(tensors.items()):
        digest.update(f"{name} {tuple(part.shape)} {part.dtype}".encode())
        digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def write(folder: str | Path, state: dict[str, Any], mark: str) -> None:
    """Write a checkpoint, whole or not at all."""
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    tree = flattened(state, "state", tensors)
    payload = save(tensors, metadata={"state": json.dumps(tree), "mark": mark})
    with whole_file(Path(folder) / FILE, "A checkpoint", durable=True) as draft:
        draft.write_bytes(payload)


def read(folder: str | Path, mark: str) -> dict[str, Any] | None:
    """Read the checkpoint in a folder; None when there is none. One of another run is refused."""
    from safetensors import SafetensorError, safe_open

    file = Path(folder) / FILE
    if not file.exists():
        return None
    try:
        with safe_open(str(file), framework="pt") as opened:
            metadata = opened.metadata()
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        tree, found = json.loads(metadata["state"]), metadata["mark"]
    except (SafetensorError, ValueError, KeyError, TypeError, OSError) as error:
        raise CorruptModel(f"'{file}' is not a readable checkpoint ({error}). Remove it to start again.") from None
    if found != mark:
        raise InvalidInput(
            f"'{file}' belongs to another run: data, settings, seed or start differ. "
            "Use another folder, or resume=False."
        )
    return unflattened(tree, tensors)
