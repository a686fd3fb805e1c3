r"""EmbeddedQuantizer: vectors as strings of bytes of which every prefix is the code for that many bytes.

The bytes do not depend on the metric; what a search computes from them does. Let :math:`\hat z` be the decoded code of
a document and q the code of a query, which stays in floating point. Scores, the higher the better, are

.. math::
   \text{cosine: } \frac{q \cdot \hat z}{|\hat z|}, \qquad
   \text{inner product: } q \cdot \hat z, \qquad
   \text{l2: } 2\, q \cdot \hat z - |\hat z|^2 - \sum_i \operatorname{Var}[z_i - \hat z_i \mid \text{cell}],

the last being :math:`|q|^2` minus the expected squared distance: given the cells, the errors of coordinates have mean
zero and the variance that rows of the fit had there. The subtracted numbers, like the norm, belong to the stored code:
one number a code, computed when codes are loaded. Means of cells are shorter than what they stand for,
so a cosine without the division would prefer documents that happen to lie in outer cells.

**Centred codes.** Where the axes V of an encoder are orthonormal (objectives "reconstruction" and
``Similarity(keep="dot_products")``), cosine and inner product mean those of the *vectors*. Codes that are centred get
their mean m back: :math:`\hat x = m + V^T \hat z` has the coordinates :math:`\hat z + V m` on the axes and the length
of :math:`r = m - V^T V m` off them, and a query has the coordinates :math:`V q` and :math:`q \cdot r / |r|`. So
`decode` adds V m, and one more coordinate, constant, where m is not in the span of the axes; `encode_query` does not
centre. Distances need no mean. Other encoders have a metric of their own (classes, pairs, a network): their codes are
compared as they are, centred, as curves do.

**Axes in sixteen bits.** Orthonormal axes are stored once in two bytes per number and a power of two per axis
(`bytes_in_all`). Bytes, queries and scores are those of the rounded axes, which differ by less than any bits of a code
do. Other axes, whose large numbers may cancel, stay as they are.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.checks import bad_parameter, check_choice, check_matrix, is_int
from firstk.bits.codebooks import EFFORT, MOST_EFFORT
from firstk.bits.embedded import Embedded
from firstk.bits.encoding import encoded
from firstk.exceptions import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from firstk.data.stamp import CodeStamp
    from firstk.encoder.fitted import FittedEncoder

METRICS = ("cosine", "inner_product", "l2")
# Axes are orthonormal, and a mean lies in their span, up to this.
_ORTHONORMAL = 1e-5
# The largest number of a rounded axis, in steps.
_LARGEST = 2**15 - 1


@dataclass(frozen=True, eq=False)
class EmbeddedQuantizer:
    """Vectors as bytes, and bytes as codes.

    ``encoder.quantizer(bytes, metric)`` makes one.

    Attributes
    ----------
    encoder : FittedEncoder
        With the cells; saved, it gives the same quantizer when it is loaded.
    embedded : Embedded
        Codes as bytes, without vectors and metric: which bits and codebooks there are. A
        :class:`firstk.data.precision.Rounded`.
    metric : {"cosine", "inner_product", "l2"}
        What `decode`, `encode_query` and `scores` serve; the bytes are the same for all.

    Examples
    --------
    >>> from firstk import PrefixEncoder
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> quantizer = PrefixEncoder().fit(digits.X_train).quantizer(bytes=16)
    >>> codes = quantizer.encode(digits.X_test)
    >>> codes.shape, quantizer.cut(codes, 4).shape, quantizer.decode(quantizer.cut(codes, 4)).shape
    ((360, 16), (360, 4), (360, 61))
    """

    encoder: FittedEncoder
    embedded: Embedded
    metric: str = "cosine"

    def __post_init__(self) -> None:
        check_choice(self.metric, METRICS, "metric", "quantizer")

    # -- what it is ------------------------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """Bytes of a code."""
        return self.embedded.n_bytes

    @property
    def stored_once(self) -> int:
        """Bytes that any number of codes share: the axes in use and what their bytes stand for.

        Norms, which cosines are divided by, are not stored: they are computed when codes are loaded.
        """
        used = self.embedded.used
        axes = self.encoder.stored_once(used)
        if self._orthonormal:
            axes += len(used) - 2 * int(np.count_nonzero(self.encoder.components[used]))
        return axes + self.embedded.stored_once

    def bytes_in_all(self, rows: int) -> float:
        """Return the bytes of each of so many vectors, with its share of what is stored once.

        A model that serves many stores counts the rows of all of them.

        Examples
        --------
        >>> from firstk import PrefixEncoder
        >>> from firstk.data import load_digits
        >>> quantizer = PrefixEncoder().fit(load_digits().X_train).quantizer(bytes=16)
        >>> round(quantizer.bytes_in_all(1_000)), round(quantizer.bytes_in_all(1_000_000), 2)
        (26, 16.01)
        """
        if not is_int(rows) or rows < 1:
            raise bad_parameter("rows", "bytes_in_all", "an int of at least 1", rows)
        return self.bytes + self.stored_once / rows

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of all that turns a vector into bits: codes of equal fingerprint can be compared, however cut."""
        digest = hashlib.sha256(self.encoder.fingerprint().encode())
        for name, part in sorted(self.embedded.arrays().items()):
            digest.update(f"{name} {part.shape} {part.dtype}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def stamp(self, *, column: str | None = None) -> CodeStamp:
        """Return the stamp of codes of this quantizer, however cut; `column` is that of the vectors."""
        return replace(self.encoder.stamp(column=column), encoder=self.fingerprint)

    def check_codes(self, stamp: CodeStamp | str, whose: str = "the store") -> None:
        """Raise an error for codes that another quantizer made, by the stamp or fingerprint that came with them."""
        own = self.stamp()
        given = type(own)(stamp) if isinstance(stamp, str) else stamp
        if not isinstance(given, type(own)):
            raise bad_parameter("stamp", "a quantizer", "a CodeStamp or the fingerprint in one", stamp)
        given.check(own, whose, "this quantizer")

    # -- vectors to bytes --------------------------------------------------------------------------------------

    def encode(self, X: MatrixLike, *, effort: int = EFFORT) -> np.ndarray:
        """Return vectors as bytes, uint8 of shape (n, bytes); the same for any batches.

        With `effort` from 2 to 8, so many candidates are kept after each byte of codebooks, in place of the nearest
        centroid: the bytes stand for less error, and take longer to find (docs/how-many-bytes.md).
        """
        if not is_int(effort) or not 1 <= effort <= MOST_EFFORT:
            raise bad_parameter("effort", "encode", f"an int in [1, {MOST_EFFORT}] (candidates for a byte)", effort)
        return encoded(self.rounded, self.embedded, X, "EmbeddedQuantizer.encode", effort)

    def cut(self, codes: ArrayLike, bytes: int) -> np.ndarray:
        """Return the first bytes of codes: what the quantizer of so many bytes would have made of the vectors."""
        codes = self.embedded.checked(codes, "cut")
        most = codes.shape[1]
        shorter = self.at(bytes).bytes
        if shorter > most:
            raise InvalidInputError(f"These codes have {most} bytes, and cannot be cut at {shorter}. Encode again.")
        return codes[:, :shorter]

    def at(self, bytes: int | None) -> EmbeddedQuantizer:
        """Return the quantizer of another number of bytes; None: all that the code has."""
        return replace(self, embedded=self.embedded.at(bytes))

    # -- bytes to codes ----------------------------------------------------------------------------------------

    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Return codes as float32 of shape (n, k); their width says how many bytes they have.

        Coordinates without bits are their mean. Centred codes of orthonormal axes have their mean back where the
        metric is not l2 (see this module).
        """
        return self.stored.restore(self.embedded.checked(codes, "decode"))

    @cached_property
    def stored(self) -> Embedded:
        """Codes as bytes that are restored as `decode` does, without the encoder: what a file of codes is told."""
        rest = [] if self._rest is None else [self._rest[1]]
        offset = np.concatenate([self._offset, rest]).astype(np.float32)
        return replace(self.embedded, offset=offset if self._of_vectors else None)

    def encode_query(self, Q: MatrixLike) -> np.ndarray:
        """Return codes of queries, float32 of shape (m, k), whose products with decoded codes are scores.

        For cosines of codes that are compared as they are, coordinates without bits are zero. All documents have the
        same value there, so they do not change which is nearest; but they lengthen queries, some more than others:
        without them cosines of different queries can be compared.
        """
        codes = self.query_encoder.encode(Q, side="query", owner="EmbeddedQuantizer.encode_query")
        return self.coded_only(np.asarray(codes, dtype=np.float32))

    def coded_only(self, queries: np.ndarray) -> np.ndarray:
        """Return codes of queries, (m, k), with coordinates without bits set to zero where `encode_query` does so."""
        if self.metric != "cosine" or self._of_vectors:
            return queries
        coded = np.zeros_like(queries)
        coded[:, self.embedded.used] = queries[:, self.embedded.used]
        return coded

    @cached_property
    def rounded(self) -> FittedEncoder:
        """The encoder whose coordinates the bytes stand for: orthonormal axes in 16 bits (see this module)."""
        if not self._orthonormal:
            return self.encoder
        B = self.encoder.components
        steps = 2.0 ** np.ceil(np.log2(np.abs(B).max(axis=1, keepdims=True) / _LARGEST))
        return replace(self.encoder, components=np.rint(B / steps) * steps)

    @cached_property
    def query_encoder(self) -> FittedEncoder:
        """The encoder of queries; of documents it gives the coordinates that `decode` approximates."""
        if not self._of_vectors:
            return self.rounded
        B = self.rounded.components
        axes = B if self._rest is None else np.vstack([B, self._rest[0]])
        zero = np.zeros(self.encoder.p)
        return type(self.encoder)(axes, np.zeros(len(axes)), zero, zero, record=self.encoder.record)

    @property
    def k(self) -> int:
        """Width of a decoded code: that of the encoder's, and one where the mean is not in the span of its axes."""
        return self.embedded.trees.d + (self._rest is not None)

    def scores(self, queries: ArrayLike, codes: ArrayLike) -> np.ndarray:
        """Return the score of each code for each query, (m, n), the higher the better: a reference for searches.

        Parameters
        ----------
        queries : array of shape (m, k)
            From `encode_query`.
        codes : uint8 array of shape (n, bytes)
            Whole or cut.
        """
        stored = self.embedded.checked(codes, "score")
        queries = check_matrix(queries, "EmbeddedQuantizer.scores", "queries", width=self.k)
        Z, cut = self.decode(stored), self.at(stored.shape[1])
        squares = np.square(Z, dtype=np.float64).sum(axis=1)
        if self.metric == "l2":
            cells = cut.embedded.named_cells(stored)
            for i, table in enumerate(cut.embedded.variances):
                squares += table[cells[:, i]] if len(table) > 1 else table[0]
        return self._scored(queries @ Z.T, squares)

    def exact_scores(self, queries: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return what `scores` would be of codes in floating point, (n, d), as the encoder gives them."""
        full = Z + self._offset
        if self._rest is not None:
            full = np.column_stack([full, np.full(len(full), self._rest[1])])
        return self._scored(queries @ full.T, np.einsum("ij,ij->i", full, full))

    def _scored(self, products: np.ndarray, squares: np.ndarray) -> np.ndarray:
        if self.metric == "inner_product":
            return products
        if self.metric == "l2":
            return np.asarray(2 * products - squares)
        return np.asarray(products / np.where(squares > 0, np.sqrt(squares), 1.0))

    # -- centred codes -----------------------------------------------------------------------------------------

    @cached_property
    def _orthonormal(self) -> bool:
        encoder = self.encoder
        if encoder.network is not None or encoder.normalized:
            return False
        B = encoder.components
        return bool(np.abs(B @ B.T - np.eye(len(B))).max() <= _ORTHONORMAL)

    @property
    def _of_vectors(self) -> bool:
        """Whether scores are those of the vectors, whose mean belongs to them."""
        return self.metric != "l2" and self._orthonormal

    @cached_property
    def _offset(self) -> np.ndarray:
        """What decoding adds: the coordinates of the mean."""
        if not self._of_vectors:
            return np.zeros(self.embedded.trees.d, dtype=np.float32)
        return np.asarray(self.rounded.components @ self.encoder.mean, dtype=np.float32)

    @cached_property
    def _rest(self) -> tuple[np.ndarray, float] | None:
        """The direction of the mean off the axes, and its length there; None where there is none."""
        if not self._of_vectors:
            return None
        mean, B = self.encoder.mean, self.encoder.components
        rest = mean - B.T @ (B @ mean)
        length = float(np.linalg.norm(rest))
        return None if length <= _ORTHONORMAL * np.linalg.norm(mean) else (rest / length, length)
