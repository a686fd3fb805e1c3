"""How a batch of vectors becomes a batch of stored codes: encoded or taken as it is, truncated and rounded.

Documents and queries that are to be compared must be rounded alike, so an encoding can be made like that of a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from firstk import __version__
from firstk._base.checks import check_choice, check_prefix
from firstk.data.files.contract import Batch, CodeRecord, must_be_restored
from firstk.data.files.opening import VectorTable, open_vectors
from firstk.data.precision import Precision, resolve_precision
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError

SIDES = ("document", "query")
_OWNER = "transform"


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a batch of vectors becomes a batch of codes.

    Attributes
    ----------
    encode : callable (vectors) -> codes
        Before rounding.
    made_by : str
        What `encode` is, by which codes of different encoders are told apart.
    k : int
    side : str
    precision : Precision
    like : str, optional
        The file whose precision this is.
    """

    encode: Callable[[np.ndarray], np.ndarray]
    made_by: str
    k: int
    side: str
    precision: Precision
    like: str | None = None

    def __call__(self, batch: Batch) -> tuple[np.ndarray, int]:
        """Return codes as they are stored, and how many of their numbers were clipped."""
        codes = self.encode(batch.vectors)
        return self.precision.quantise(codes), self.precision.clipped(codes)

    @property
    def to_fit(self) -> bool:
        """Whether scales and thresholds have yet to be fitted on codes."""
        return self.like is None and must_be_restored(self.precision)

    def fitted(self, codes: np.ndarray) -> Encoding:
        """Return this encoding with its precision fitted on codes."""
        return replace(self, precision=self.precision.fit(codes))

    def facts(self) -> dict[str, Any]:
        """Return what a file of codes says about itself."""
        return {"k": self.k, "side": self.side, "encoder": self.made_by, "firstk": __version__}


def encoding_of(
    encoder: FittedEncoder | None,
    table: VectorTable,
    *,
    k: int | None,
    side: str | None,
    precision: str | None,
    like: str | Path | None,
) -> Encoding:
    """Return the encoding that was asked for, of an encoder or (None) of the vectors as they are."""
    record = None if like is None else _record_of(like, k, precision)
    if record is not None:
        k = _checked_length(record, encoder, table, like)
    rounding = record.precision if record is not None else resolve_precision(precision or "float32", _OWNER)
    if encoder is None:
        made = _of_vectors(table, k, side, rounding)
    else:
        made = _of_encoder(encoder, table, k, _settled_side(encoder, side, like), rounding)
    if record is not None and record.encoder != made.made_by:
        raise InvalidInputError(
            f"The codes of '{like}' were made by another encoder, and cannot be compared with codes of this one. Use "
            "the model that they were made with ('raw' for vectors that were only truncated)."
        )
    return replace(made, like=None if like is None else str(like))


def _of_vectors(table: VectorTable, k: int | None, side: str | None, precision: Precision) -> Encoding:
    length = check_prefix(k, table.width, _OWNER)
    side = check_choice(side or "document", SIDES, "side", _OWNER)
    return Encoding(lambda X: X[:, :length], f"raw vectors of {table.width}", length, side, precision)


def _of_encoder(encoder: FittedEncoder, table: VectorTable, k: int | None, side: str, precision: Precision) -> Encoding:
    length = check_prefix(k, encoder.d, _OWNER)
    _check_width(table, encoder)
    return Encoding(
        lambda X: encoder.encode(X, length, side=side, owner=_OWNER),
        encoder.fingerprint(length),
        length,
        side,
        precision,
    )


def _record_of(like: str | Path, k: int | None, precision: str | None) -> CodeRecord:
    if k is not None or precision is not None:
        raise InvalidInputError(
            f"The length and the precision of codes like those of '{like}' are in that file. Leave out 'k' (-k) and "
            "'precision' (--precision), or 'like' (--like)."
        )
    record = CodeRecord.read(like, open_vectors(like).metadata)
    if record is None:
        raise InvalidInputError(
            f"'{like}' does not say how its codes were made. Give a file that 'firstk transform' wrote as parquet, "
            "arrow, npz or safetensors."
        )
    return record


def _checked_length(record: CodeRecord, encoder: FittedEncoder | None, table: VectorTable, like: object) -> int:
    longest = table.width if encoder is None else encoder.d
    if record.k > longest:
        raise InvalidInputError(
            f"'{like}' holds codes of {record.k} coordinates, and these have {longest} at most. Use the model that its "
            "codes were made with, and vectors of the same kind."
        )
    return record.k


def _settled_side(encoder: FittedEncoder, side: str | None, like: object) -> str:
    """Return the side to encode; both are possible after --like, which matters where their means differ."""
    if side is None and like is not None and not np.array_equal(encoder.mean, encoder.query_mean):
        raise InvalidInputError(
            "This encoder was fitted on pairs and centers queries and documents differently. Say which these are: "
            "side='query' (--side query) or side='document' (--side document)."
        )
    return check_choice(side or "document", SIDES, "side", _OWNER)


def _check_width(table: VectorTable, encoder: FittedEncoder) -> None:
    if table.width == encoder.p:
        return
    made = f" (columns {', '.join(table.members[:3])}, ...)" if len(table.members) > 1 else ""
    raise InvalidInputError(
        f"The vectors of '{table.path}' have {table.width} numbers{made}, and the encoder takes {encoder.p}. Give the "
        "vectors that it was fitted on, or name their column with vectors= (--vectors)."
    )
