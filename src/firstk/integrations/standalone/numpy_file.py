"""An encoder as a Python file of some lines that needs numpy alone, with its arrays in an npz file beside it."""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base.atomic_file import atomic_file
from firstk.exceptions import InvalidInputError
from firstk.integrations._codes import EncoderLike, exportable

_PROGRAM = '''"""Codes of vectors of {p} numbers: their first k coordinates, k from 1 to {d}. Written by firstk."""
from pathlib import Path

import numpy as np

with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as _file:
    _A = dict(_file)


def encode(X, k={d}, query=False):
    """Return float32 codes of the rows of X, (n, {p}) to (n, k); queries may have a mean of their own."""
    if not 1 <= k <= {d}:
        raise ValueError(f"k must be from 1 to {d}, got {{k}}")
    X = np.atleast_2d(np.asarray(X, np.float64))
    if X.ndim != 2 or X.shape[1] != {p} or not np.isfinite(X).all():
        raise ValueError(f"X must be finite numbers of shape (n, {p}), got shape {{X.shape}}")
    Z = X - _A["query_mean" if query else "mean"]
{network}    Z = Z @ _A["components"][:k].T
{unit}    return Z.astype(np.float32)
'''
_NETWORK = """    for i in range({layers}):
        Z = Z @ _A[f"weight{{i}}"].T + _A[f"bias{{i}}"]
        Z = np.maximum(Z, 0) if i < {last} else Z
{unit}"""
_UNIT = "    Z /= np.where((norm := np.linalg.norm(Z, axis=1, keepdims=True)) > 0, norm, 1)\n"


def to_numpy(encoder: EncoderLike, path: str | Path) -> Path:
    """Write ``path``, which ends in .py, and the arrays next to it, in a file that ends in .npz.

    ``encode(X, k, query=False)`` of that file gives the codes of the library, to 1e-5 and better.
    """
    owner = "to_numpy"
    found, network = exportable(encoder, owner)
    file = Path(path)
    if file.suffix != ".py" or not file.stem.isidentifier() or keyword.iskeyword(file.stem):
        raise InvalidInputError(
            f"A numpy export is a Python file that can be imported: its name is an identifier and ends in .py. Got "
            f"'{file.name}'."
        )
    arrays = {"components": found.components, "mean": found.mean, "query_mean": found.query_mean}
    layers = ""
    if network is not None:
        for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            arrays |= {f"weight{i}": weight, f"bias{i}": bias}
        count = len(network.weights)
        layers = _NETWORK.format(layers=count, last=count - 1, unit=_UNIT if network.normalize else "")
    program = _PROGRAM.format(p=found.p, d=found.d, network=layers, unit=_UNIT if found.normalized else "")
    exact: dict[str, Any] = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
    archive = atomic_file(file.with_suffix(".npz"), "An archive of arrays", kinds=(".npz",))
    with archive as temporary, temporary.open("wb") as stream:
        np.savez(stream, **exact)
    with atomic_file(file, "A Python file", kinds=(".py",)) as temporary:
        temporary.write_text(program, "utf-8")
    return file
