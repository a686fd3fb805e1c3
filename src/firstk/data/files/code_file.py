"""A file of codes that firstk wrote: what is in it, its codes as they are stored, and what they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from firstk.bits.embedded import Embedded
from firstk.data.files.contract import CodeRecord, stored_type, unreadable
from firstk.data.files.vector_table import VectorTable, open_vectors


@dataclass(frozen=True, eq=False)
class CodeFile:
    """Codes in a file, or in a folder of shards.

    Attributes
    ----------
    table : VectorTable
    record : CodeRecord
        What the file says about itself: `precision`, `metric` and `encoder`, the fingerprint of what made the codes.

    Examples
    --------
    >>> import tempfile
    >>> from firstk import PrefixEncoder, transform_files
    >>> from firstk.data import load_digits
    >>> from firstk.data.files import write_vectors
    >>> X = load_digits().X_test
    >>> encoder = PrefixEncoder().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_vectors(f"{folder}/vectors.npy", X)
    ...     _ = transform_files(encoder, f"{folder}/vectors.npy", f"{folder}/short.npz", bytes_per_vector=8)
    ...     file = open_codes(f"{folder}/short.npz")
    ...     codes = file.codes()
    >>> codes.shape, codes.dtype, file.decode(codes[:, :4]).shape
    ((360, 8), dtype('uint8'), (360, 55))
    """

    table: VectorTable
    record: CodeRecord

    @property
    def bytes(self) -> int:
        """Bytes of a code."""
        held = self.record.precision
        return self.table.facts.width if isinstance(held, Embedded) else held.bytes_per_vector(self.record.k)

    def codes(self) -> np.ndarray:
        """Return the codes as they are stored."""
        return self.table.as_stored().read(()).vectors.astype(stored_type(self.record.precision), copy=False)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Return what codes stand for, as float32; embedded bits may have been cut."""
        return self.record.precision.restore(codes)

    def facts(self) -> dict[str, Any]:
        """Return what is in the file, as values that JSON can hold."""
        return {
            "path": self.table.path,
            "rows": self.table.rows,
            "vectors": self.table.vectors,
            "columns": list(self.table.columns),
            "precision": self.record.precision.name,
            "k": self.record.k,
            "bytes_per_vector": self.bytes,
            "side": self.record.side,
            "metric": self.record.metric,
            "encoder": self.record.encoder,
            "stamp": self.record.stamp.to_dict(),
        }

    def __str__(self) -> str:
        facts = self.facts()
        what = f"codes of {self.record.k} coordinates as {facts['precision']}"
        if isinstance(self.record.precision, Embedded):
            used = len(self.record.precision.at(self.bytes).used)
            what = f"embedded bits of {used} coordinates, which can be cut after any byte"
        lines = [
            f"{facts['path']} holds {facts['rows']:,} {facts['side']} codes in column {facts['vectors']!r}: {what}, "
            f"{self.bytes} bytes each.",
            f"Other columns: {', '.join(facts['columns']) or 'none'}.",
            f"Made by {self.record.stamp}.",
        ]
        if self.record.stamp.rows:
            lines.append(f"That encoder was fitted on {self.record.stamp.rows}.")
        if facts["metric"] is not None:
            lines.append(f"Scores are for metric {facts['metric']}.")
        return "\n".join(lines)


def open_codes(path: str | Path) -> CodeFile:
    """Open a file of codes; raise InvalidInputError for one that does not say how its codes were made."""
    table = open_vectors(path)
    record = CodeRecord.read(path, table.metadata)
    if record is None:
        raise unreadable(
            path,
            "it does not say how its codes were made",
            "Give a file that 'firstk transform' wrote as parquet, arrow, npz or safetensors",
        )
    return CodeFile(table, record)
