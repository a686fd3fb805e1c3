"""The contract of a move: all of `firstk.search.moving` on one page.

A source (`sources`) has `facts`, yields rows (ids, vectors, payloads) by `read`, in the same order each time, and is
closed. A target (`targets`) is begun, takes rows by `write`, which returns them as they will be read back, is finished,
read and closed; the same rows may be written again after an interruption, and are there once. Between them a `Recode`
tells how vectors become codes. Each side is a file or a store, and knows nothing of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from firstk.data import CodeStamp
from firstk.data.files import CodeRecord, is_bit_string, must_be_restored
from firstk.integrations import EncoderLike


@dataclass(frozen=True)
class SourceFacts:
    """What is known of a source before its rows are read.

    Attributes
    ----------
    place : str
        What messages call it, without credentials.
    rows : int
        Those without a usable vector included.
    width : int
        Numbers of a vector.
    ids : str
        "int" or "text".
    vectors : str
        Name of the vectors.
    key : str
        Name of the ids, for a file.
    stamp : CodeStamp or None
        Who made the codes; None for vectors that no encoder of firstk made.
    metric : str or None
        By which the source compares them, where it knows.
    unit : bool
        Whether they are codes that were brought to unit norm.
    held : CodeRecord or None
        What a file says about how its codes are stored.
    short : int or None
        Length of the indexed prefix, in a store that has a longer code for reranking.
    """

    place: str
    rows: int
    width: int
    ids: str
    vectors: str = "vectors"
    key: str = "id"
    stamp: CodeStamp | None = None
    metric: str | None = None
    unit: bool = False
    held: CodeRecord | None = None
    short: int | None = None

    @property
    def coded(self) -> bool:
        """Whether an encoder made them."""
        return self.stamp is not None and not self.stamp.raw

    @property
    def bits(self) -> bool:
        """Whether they are embedded bits of an encoder, which stand for coordinates of their own."""
        return self.coded and self.held is not None and is_bit_string(self.held.precision)

    @property
    def rounded(self) -> bool:
        """Whether what is stored has to be decoded to be codes."""
        return self.held is not None and must_be_restored(self.held.precision)

    @property
    def precision(self) -> str:
        """Name of the precision in which the source keeps them."""
        return "float32" if self.held is None else self.held.precision.name

    @property
    def bytes_per_vector(self) -> int:
        """Bytes of a vector or code in the source; of vectors as float32."""
        return 4 * self.width if self.held is None else self.held.precision.bytes_per_vector(self.width)


@dataclass(frozen=True)
class Recode:
    """What vectors become on the way; None: not said.

    Attributes
    ----------
    encoder : PrefixEncoder or FittedEncoder, optional
        None keeps vectors and codes as they are.
    k : int, optional
        Coordinates to keep, all if not given. In a store, the length of the prefix that is indexed.
    full : int, optional
        In a store, the length of a longer code that reranks. With neither `k` nor `full`, codes of a store that has
        both lengths keep both in another store.
    metric : str
        "cosine", "inner_product", "l2"; "auto" is cosine for what is encoded, and the source's own for what is not.
    precision : str, optional
        Of a file's codes, or of the short codes of a store that offers several.
    bytes_per_vector : int, optional
        In a file: embedded bits of so many bytes.
    """

    encoder: EncoderLike | None = None
    k: int | None = None
    full: int | None = None
    metric: str = "auto"
    precision: str | None = None
    bytes_per_vector: int | None = None


@dataclass(frozen=True)
class Moved:
    """What was done.

    Attributes
    ----------
    source, target : str
        Without credentials.
    rows : int
        In the target, each once.
    written, there_before : int
        By this run, and by earlier ones.
    dropped : int
        Rows left out for NaN.
    width, k : int
        Numbers of a vector in the source, and coordinates of the longest code in the target.
    bytes_per_vector : int
        Of the longest code.
    source_bytes_per_vector : int
        Of a vector or code in the source; of vectors as float32.
    decoded_from : str or None
        The precision of codes that were decoded on the way; None where none were.
    checksum : str
        Of ids and payloads, the same on both sides; empty from file to file, where columns are copied as they are.
    verified : bool
        Whether the target was read back and compared.
    compared : tuple of str
        What of it was compared: "rows", "codes" and, unless both are files, "ids" and "payloads".
    left_out : tuple of str
        Columns that the target's format has no room for.
    seconds : float
    """

    source: str
    target: str
    rows: int
    written: int
    there_before: int
    dropped: int
    width: int
    k: int
    bytes_per_vector: int
    source_bytes_per_vector: int
    decoded_from: str | None
    checksum: str
    verified: bool
    compared: tuple[str, ...]
    left_out: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class MovePlan:
    """What a move would do, from the facts of the source and a sample of its rows; nothing was written.

    Attributes
    ----------
    source, target : str
    rows, width, k : int
    source_bytes, target_bytes : int
        Of vectors and codes, without ids, payloads and indexes.
    sampled : int
        Rows that were read, encoded and, where `writing` is known, written to a scratch place.
    reading, writing : float or None
        Estimated seconds of reading and encoding, and of writing and reading back; None where it was not tried,
        because the target is a server.
    """

    source: str
    target: str
    rows: int
    width: int
    k: int
    source_bytes: int
    target_bytes: int
    sampled: int
    reading: float
    writing: float | None


Progress = Callable[[int], object]
