"""Stamps: which encoder made stored codes, and of whose vectors.

Codes of two encoders have nothing to do with each other, and nothing in the numbers shows it. So whatever stores codes
stores a stamp with them, and whatever compares codes compares the stamps first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from firstk.exceptions import InvalidInputError

# Hexadecimal digits of a fingerprint that are shown.
_SHOWN = 12


@dataclass(frozen=True)
class CodeStamp:
    """Who made codes.

    Attributes
    ----------
    encoder : str
        Fingerprint of all that turns a vector into these codes: codes of equal fingerprint can be compared. "raw
        vectors of p" for vectors that were only cut.
    model : str
        Id of the encoder: the fingerprint of the whole of it, whatever was cut.
    source : str, optional
        Name of the model that made the vectors, as it was saved with the encoder.
    column : str, optional
        The vectors' column.
    rows : str, optional
        Fingerprint of the rows that the encoder was fitted on.

    Examples
    --------
    >>> ours, theirs = CodeStamp("3fa91c", source="minilm"), CodeStamp("77b0e2", source="mpnet")
    >>> print(theirs)
    encoder 77b0e2 of vectors by mpnet
    >>> theirs.check(ours, "docs.parquet", "this model")
    Traceback (most recent call last):
    ...
    firstk.exceptions.InvalidInputError: The codes of docs.parquet were made by encoder 77b0e2 of vectors by mpnet, ...
    """

    encoder: str
    model: str = ""
    source: str | None = None
    column: str | None = None
    rows: str | None = None

    @property
    def raw(self) -> bool:
        """Whether these are vectors that were only cut."""
        return self.encoder.startswith("raw")

    def check(self, other: CodeStamp, mine: str, others: str) -> None:
        """Raise InvalidInputError, which names both, where codes of two stamps cannot be compared."""
        if self.encoder == other.encoder:
            return
        ours, theirs = str(self), str(other)
        if ours == theirs:  # one encoder with other cells, or cut at another length
            ours, theirs = f"{ours} (codes {self.encoder[:_SHOWN]})", f"{theirs} (codes {other.encoder[:_SHOWN]})"
        raise InvalidInputError(
            f"The codes of {mine} were made by {ours}, and those of {others} by {theirs}: they cannot be compared. Use "
            "the encoder they were made with."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the stamp as values that JSON can hold."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def read(cls, found: object) -> CodeStamp:
        """Return the stamp that ``to_dict`` describes; raise ValueError for anything else."""
        if not isinstance(found, Mapping) or not all(isinstance(value, str) for value in found.values()):
            raise ValueError(f"{found!r:.100} is not a stamp")
        known = {name: value for name, value in found.items() if name in cls.__dataclass_fields__}
        return cls(**known)

    def __str__(self) -> str:
        if self.raw:
            return self.encoder
        of = f" of vectors by {self.source}" if self.source else ""
        column = f" (column {self.column!r})" if self.column else ""
        return f"encoder {(self.model or self.encoder)[:_SHOWN]}{of}{column}"
