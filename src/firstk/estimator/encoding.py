"""How a batch of vectors becomes a batch of stored codes: encoded or taken as it is, truncated and rounded.

Documents and queries that are to be compared must be rounded alike, so an encoding can be made like that of a file.
Embedded bits have their length in bytes, and queries of them stay in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from firstk import __version__
from firstk._base.checks import check_choice, check_prefix
from firstk.bits.embedded import Embedded
from firstk.bits.quantizer import METRICS, EmbeddedQuantizer
from firstk.data.files.contract import Batch, CodeRecord, must_be_restored
from firstk.data.files.vector_table import open_vectors
from firstk.data.precision import PRECISIONS, Precision, resolve_precision
from firstk.data.stamp import CodeStamp
from firstk.encoder.code_map import CodeMap
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError

SIDES = ("document", "query")
_OWNER = "transform"
Coder = FittedEncoder | CodeMap


class DescribedVectors(Protocol):
    """What an encoding needs to know of vectors, which a `VectorTable` has, and other sources have too."""

    @property
    def path(self) -> str:
        """What messages call it."""

    @property
    def width(self) -> int:
        """Numbers of a vector."""

    @property
    def vectors(self) -> str:
        """Name of the vectors."""

    @property
    def members(self) -> tuple[str, ...]:
        """Columns that make them up."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """What firstk stored with the rows."""


class Described(NamedTuple):
    """Vectors that no table holds."""

    path: str
    width: int
    vectors: str
    members: tuple[str, ...] = ()
    metadata: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Wish:
    """What was asked for, as `transform_files` takes it; None: not said."""

    k: int | None = None
    side: str | None = None
    precision: str | None = None
    bytes_per_vector: int | None = None
    metric: str | None = None
    like: str | Path | None = None

    @property
    def embedded(self) -> bool:
        """Whether codes are to be embedded bits."""
        return self.bytes_per_vector is not None or self.precision == "embedded"

    def check(self) -> None:
        """Raise InvalidInputError for wishes that exclude each other."""
        given = [name for name in ("k", "precision", "bytes_per_vector", "metric") if getattr(self, name) is not None]
        if self.like is not None and given:
            raise InvalidInputError(
                f"The length and the precision of codes like those of '{self.like}' are in that file. Leave out "
                f"{' and '.join(f'{name}=' for name in given)}, or like=."
            )
        if not self.embedded:
            if self.metric is not None:
                raise InvalidInputError(
                    f"A metric ({self.metric!r}) is chosen for embedded bits only, and these codes are "
                    f"{self.precision or 'float32'}. Leave out metric=, or say how many bytes: "
                    "bytes_per_vector=32."
                )
            return
        if self.k is not None:
            size = "all bytes" if self.bytes_per_vector is None else f"{self.bytes_per_vector} bytes"
            raise InvalidInputError(
                f"Embedded bits of {size} have no k ({self.k}): bits go to the coordinates where they are worth most. "
                "Leave out k=, or bytes_per_vector=."
            )
        if self.precision not in (None, "embedded"):
            check_choice(self.precision, PRECISIONS, "precision", _OWNER)
            raise InvalidInputError(
                f"Codes of {self.bytes_per_vector} bytes are embedded bits, and not {self.precision}, whose bytes "
                "follow from k. Leave out precision=, or give k= in place of the bytes."
            )
        if self.side == "query":
            raise InvalidInputError(
                "Queries (side 'query') are compared with embedded bits in floating point, and not stored as bits. "
                "Write the documents first, and the queries like them: like='short.parquet' side='query'."
            )


@dataclass(frozen=True, eq=False)
class Encoding:
    """How a batch of vectors becomes a batch of codes.

    Attributes
    ----------
    encode : callable (vectors) -> codes
        Before rounding.
    made_by : CodeStamp
        What `encode` is, by which codes of different encoders are told apart.
    k : int
        Coordinates of a code, once it is restored.
    side : str
    precision : Precision
    like : str, optional
        The file whose precision this is.
    metric : str, optional
        What products of queries with restored codes serve, for embedded bits.
    to_bytes : callable (vectors) -> stored codes, optional
        Where that is not rounding what `encode` gives: bits of an encoder's own quantizer, and codes that are cut.
    """

    encode: Callable[[np.ndarray], np.ndarray]
    made_by: CodeStamp
    k: int
    side: str
    precision: Precision
    like: str | None = None
    metric: str | None = None
    to_bytes: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, batch: Batch) -> tuple[np.ndarray, int]:
        """Return codes as they are stored, and how many of their numbers were clipped."""
        if self.to_bytes is not None:
            return self.to_bytes(batch.vectors), 0
        codes = self.encode(batch.vectors)
        return self.precision.quantise(codes), self.precision.clipped(codes)

    @property
    def to_fit(self) -> bool:
        """Whether scales and thresholds have yet to be fitted on codes."""
        return self.like is None and self.to_bytes is None and must_be_restored(self.precision)

    @property
    def in_model(self) -> bool:
        """Whether the model can read the codes without what a file says about them."""
        return self.to_bytes is not None

    def fitted(self, codes: np.ndarray) -> Encoding:
        """Return this encoding with its precision fitted on codes."""
        return replace(self, precision=self.precision.fit(codes))

    def facts(self) -> dict[str, Any]:
        """Return what a file of codes says about itself."""
        facts: dict[str, Any] = {"k": self.k, "side": self.side, "encoder": self.made_by.encoder, "firstk": __version__}
        facts["stamp"] = self.made_by.to_dict()
        if self.metric is not None:
            facts["metric"] = self.metric
        if isinstance(self.precision, Embedded):
            facts["bytes"] = self.precision.bytes_per_vector(self.k)
        return facts


def encoding_of(encoder: Coder | None, table: DescribedVectors, wish: Wish) -> Encoding:
    """Return the encoding that was asked for, of an encoder or (None) of the vectors as they are."""
    wish.check()
    if wish.metric is not None:
        check_choice(wish.metric, METRICS, "metric", _OWNER)
    if wish.like is not None:
        return _like(encoder, table, wish)
    side = check_choice(wish.side or "document", SIDES, "side", _OWNER)
    if encoder is not None:
        _check_width(table, encoder)
        if wish.embedded:
            return _of_quantizer(encoder.quantizer(wish.bytes_per_vector, wish.metric or "cosine"), table.vectors)
    elif wish.embedded:
        if isinstance(held := codes_of(table), CodeRecord):
            return cut_bits(held, wish)
        rounding: Precision = replace(PRECISIONS["embedded"], bytes=wish.bytes_per_vector)  # type: ignore[type-var]
        return replace(_of_floats(None, table, None, side, rounding), metric=wish.metric or "cosine")
    return _of_floats(encoder, table, wish.k, side, resolve_precision(wish.precision or "float32", _OWNER))


def codes_of(table: DescribedVectors) -> CodeRecord | None:
    """Return the record of a table that holds embedded bits; None for any other."""
    record = CodeRecord.read(table.path, table.metadata)
    return record if record is not None and isinstance(record.precision, Embedded) else None


def _of_floats(
    encoder: Coder | None, table: DescribedVectors, k: int | None, side: str, precision: Precision
) -> Encoding:
    """Return the first coordinates of codes, or (without an encoder) of the vectors as they are, rounded."""
    if encoder is None:
        length = check_prefix(k, table.width, _OWNER)
        return Encoding(lambda X: X[:, :length], CodeStamp(f"raw vectors of {table.width}"), length, side, precision)
    length = check_prefix(k, encoder.d, _OWNER)
    return Encoding(
        lambda X: encoder.encode(X, length, side=side, owner=_OWNER),
        encoder.stamp(length, column=table.vectors),
        length,
        side,
        precision,
    )


def _of_quantizer(quantizer: EmbeddedQuantizer, column: str, side: str = "document") -> Encoding:
    """Return documents as bits, or queries as the floating-point codes that are compared with them."""
    bits = side == "document"
    return Encoding(
        quantizer.encode_query,
        quantizer.stamp(column=column),
        quantizer.k,
        side,
        quantizer.stored if bits else PRECISIONS["float32"],
        metric=quantizer.metric,
        to_bytes=quantizer.encode if bits else None,
    )


def cut_bits(held: CodeRecord, wish: Wish) -> Encoding:
    """Return the encoding that takes the first bytes of codes that are embedded bits already."""
    wish.check()
    if wish.metric not in (None, held.metric):
        raise InvalidInputError(
            f"These codes were written for metric {held.metric!r}, and cutting them makes none for {wish.metric!r}. "
            "Leave out metric=, or encode the vectors again."
        )
    assert isinstance(held.precision, Embedded)
    shorter = held.precision.at(wish.bytes_per_vector)
    return Encoding(
        lambda X: X,
        held.stamp,
        held.k,
        held.side,
        shorter,
        metric=held.metric,
        to_bytes=lambda X: np.ascontiguousarray(X[:, : shorter.n_bytes], dtype=np.uint8),
    )


def _like(encoder: Coder | None, table: DescribedVectors, wish: Wish) -> Encoding:
    """Return the encoding of a file that was written before, for more documents or for queries."""
    record = CodeRecord.read(wish.like, open_vectors(wish.like).metadata)
    if record is None:
        raise InvalidInputError(
            f"'{wish.like}' does not say how its codes were made. Give a file that 'firstk transform' wrote as "
            "parquet, arrow, npz or safetensors."
        )
    bits = record.precision if isinstance(record.precision, Embedded) else None
    # Both sides are possible, which matters where they are encoded otherwise.
    why = None
    if bits is not None:
        why = f"'{wish.like}' holds embedded bits: documents like them are bits, and queries stay in floating point."
    elif encoder is not None and not np.array_equal(encoder.mean, encoder.query_mean):
        why = "This encoder was fitted on pairs and centers queries and documents differently."
    if wish.side is None and why is not None:
        raise InvalidInputError(f"{why} Say which these are: side='query' or side='document'.")
    side = check_choice(wish.side or "document", SIDES, "side", _OWNER)
    if encoder is not None:
        _check_width(table, encoder)
    if bits is not None and encoder is not None:
        # The longest that both have: of a file by another model the fingerprint says so.
        quantizer = encoder.quantizer(None, record.metric or "cosine")
        made = _of_quantizer(quantizer.at(min(bits.n_bytes, quantizer.bytes)), table.vectors, side)
    elif bits is not None:
        rounding: Precision = bits if side == "document" else PRECISIONS["float32"]
        made = replace(_of_floats(None, table, None, side, rounding), metric=record.metric)
    else:
        k, longest = record.k, table.width if encoder is None else encoder.d
        if k > longest:
            raise InvalidInputError(
                f"'{wish.like}' holds codes of {k} coordinates, and these have {longest} at most. Use the model that "
                "its codes were made with, and vectors of the same kind."
            )
        made = _of_floats(encoder, table, k, side, record.precision)
    record.stamp.check(made.made_by, f"'{wish.like}'", "these vectors" if encoder is None else "this model")
    return replace(made, like=str(wish.like))


def _check_width(table: DescribedVectors, encoder: Coder) -> None:
    if (held := codes_of(table)) is not None:
        size = held.precision.bytes_per_vector(held.k)
        raise InvalidInputError(
            f"'{table.path}' holds codes already: embedded bits of {size} bytes, of which every prefix is a code. Cut "
            "them without an encoder (the word 'raw' at the command line), by bytes_per_vector=."
        )
    if table.width == encoder.p:
        return
    made = f" (columns {', '.join(table.members[:3])}, ...)" if len(table.members) > 1 else ""
    raise InvalidInputError(
        f"The vectors of '{table.path}' have {table.width} numbers{made}, and the encoder takes {encoder.p}. Give the "
        "vectors that it was fitted on, or name their column with vectors=."
    )
