"""Checkpoints: one file with everything needed to continue a run as if it had never stopped.

Tensors are stored as arrays and everything else as JSON, in the file format of moments: without pickle, with an
atomic write and a checksum that is verified on reading.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from firstk.exceptions import CorruptModelError
from firstk.moments.checkpoint import Checkpoint

FILE = "checkpoint.safetensors"
# Dtypes that numpy has too; tensors of other dtypes are stored as bytes.
_SHARED = (torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
           torch.bool)  # fmt: skip


def flattened(tree: Any, path: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return a tree of JSON values with tensors moved to `arrays` and replaced by their names."""
    if isinstance(tree, Tensor):
        part = tree.detach().cpu().contiguous()
        if part.dtype in _SHARED:
            arrays[path] = part.numpy()
            return {"tensor": path}
        arrays[path] = part.reshape(-1).view(torch.uint8).numpy()
        return {"tensor": path, "dtype": str(part.dtype).removeprefix("torch."), "shape": list(part.shape)}
    if isinstance(tree, dict):
        return {"dict": [[key, flattened(value, f"{path}.{key}", arrays)] for key, value in tree.items()]}
    if isinstance(tree, (list, tuple)):
        return {"list": [flattened(value, f"{path}.{i}", arrays) for i, value in enumerate(tree)]}
    return {"value": tree}


def unflattened(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Undo `flattened`."""
    if "tensor" in tree:
        part = torch.from_numpy(np.array(arrays[tree["tensor"]]))  # a copy: the array read is read-only
        return part.view(getattr(torch, tree["dtype"])).reshape(tree["shape"]) if "dtype" in tree else part
    if "dict" in tree:
        return {key: unflattened(value, arrays) for key, value in tree["dict"]}
    if "list" in tree:
        return [unflattened(value, arrays) for value in tree["list"]]
    return tree["value"]


def fingerprint(plan: Any, seed: int, tensors: dict[str, Tensor]) -> str:
    """Hash everything a run depends on: settings, seed, data and initial weights."""
    digest = hashlib.sha256(f"{plan} {seed}".encode())
    for name, part in sorted(tensors.items()):
        digest.update(f"{name} {tuple(part.shape)} {part.dtype}".encode())
        digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def job(mark: str) -> dict[str, str]:
    """Return the description of the run that a checkpoint records, from `fingerprint`."""
    return {"data, settings, seed and start": mark}


def write(folder: str | Path, state: dict[str, Any], mark: str) -> None:
    """Write a checkpoint atomically."""
    arrays: dict[str, np.ndarray] = {}
    tree = flattened(state, "state", arrays)
    Checkpoint(Path(folder) / FILE, job(mark)).write(arrays, tree)


def read(folder: str | Path, mark: str) -> dict[str, Any] | None:
    """Read the checkpoint in a folder, or None if there is none; raise an error if it is of another run."""
    found = Checkpoint(Path(folder) / FILE, job(mark), resume=True).read()
    if found is None:
        return None
    arrays, tree = found
    try:
        state = unflattened(tree, arrays)
        if not isinstance(state, dict):
            raise TypeError("no mapping")
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise misfit(folder, error) from None
    return state


def misfit(folder: str | Path, error: Exception) -> CorruptModelError:
    """Build the error for a checkpoint whose content is not a state of the run."""
    why = str(error).partition("\n")[0][:200]
    return CorruptModelError(f"'{Path(folder) / FILE}' does not fit this run ({why}). Remove it to start again.")
