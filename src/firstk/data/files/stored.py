"""Codes in fewer bits: what is written beside them, so that whoever reads the file gets numbers back.

int8 and binary codes mean nothing without their scale and means. These travel in the metadata of the file, under one
key, as JSON; a reader that finds them restores float32.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from firstk._base.json_records import strict_json
from firstk.data.precision import Precision, read_precision
from firstk.exceptions import InvalidInputError

KEY = "firstk"
# How the precisions that must be restored are stored.
_STORED = {"int8": np.dtype(np.int8), "binary": np.dtype(np.uint8)}


def described(facts: Mapping[str, object], precision: Precision) -> dict[str, str]:
    """Return the metadata of a file of codes."""
    return {KEY: json.dumps(dict(facts) | {"stored": precision.record()})}


def must_be_restored(precision: Precision) -> bool:
    """Tell whether codes of this precision need what is written beside them."""
    return precision.name in _STORED


class Restoring:
    """Turn stored codes into numbers, as the metadata of their file tells; numbers are left as they are."""

    def __init__(self, path: object, metadata: Mapping[str, str], width: int, dtype: np.dtype):
        self.width, self.dtype, self._precision = width, dtype, None
        if KEY not in metadata:
            return
        try:
            facts = strict_json(metadata[KEY])
            precision, k = read_precision(facts["stored"]), int(facts["k"])
        except (ValueError, KeyError, TypeError):
            raise InvalidInputError(
                f"'{path}' says that firstk wrote it, and not how: its metadata is damaged. Write it again."
            ) from None
        if must_be_restored(precision):
            if precision.bytes_per_vector(k) != width:
                raise InvalidInputError(
                    f"'{path}' holds {width} numbers a row; {precision.name} codes of {k} were expected."
                )
            self.width, self.dtype, self._precision = k, np.dtype(np.float32), precision

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Return what the stored numbers mean."""
        if self._precision is None:
            return vectors
        return self._precision.restore(vectors.astype(_STORED[self._precision.name]))
