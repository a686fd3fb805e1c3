"""What stores make of codes: rounded prefixes, embedded bits, product quantizers; each array is encoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.checks import require
from firstk._base.concurrency import cores, ordered_map
from firstk._base.rows import unit_rows
from firstk.bits.embedded import Embedded
from firstk.data.files import open_vectors
from firstk.data.files.contract import CodeRecord
from firstk.data.precision import Precision
from firstk.data.task import Data
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.curve import Storage
from firstk.metrics.neighbors import nearest_neighbors, neighbor_recall

# Bytes of a code of a product quantizer: one for each group of columns.
QUANTIZER_SIZES = (8, 16, 32, 48, 64, 96, 128)
# Rows that a product quantizer learns from: faiss itself takes no more than 256 for each of its 256 centers. With fewer
# than eight for each, it memorizes the rows.
MOST_LEARNED, FEWEST_LEARNED = 256 * 64, 256 * 8
# Rounds of k-means, instead of faiss' 25: the error of rows falls by less than 1 % after the tenth, and accuracy not at
# all (docs/decisions/quality.md), while training takes longer than all else that is measured of a quantizer.
ROUNDS = 10
# Rows that scales and thresholds are fitted on at most, evenly spaced: as many as `firstk transform` takes.
FITTED_ROWS = 65_536
# Rows that are turned into what is stored, or back, at a time.
_BLOCK = 4096


class EncodedOnce:
    """An encoder that encodes each array of some data once, and cuts the codes for every prefix length after that.

    It answers as the encoder itself does; arrays that are not of the data are encoded each time.
    """

    def __init__(self, encoder: FittedEncoder, data: Data):
        self.encoder, self.whole, self.arrays = encoder, encoder, data.arrays
        self.codes: dict[tuple[int, str], np.ndarray] = {}
        self.lock = Lock()  # threads that want the same codes wait for them

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)

    def __getitem__(self, prefix: slice) -> EncodedOnce:
        cut = object.__new__(EncodedOnce)
        cut.__dict__ |= self.__dict__ | {"encoder": self.encoder[prefix]}
        return cut

    def coordinates(self, X: MatrixLike, k: int | None = None, *, side: str = "document", **more: Any) -> np.ndarray:
        """Return the code before any normalization, cut from the codes at full width; summed in float64."""
        at = next((i for i, array in enumerate(self.arrays) if array is X), None)
        if at is None or k is not None:
            return self.encoder.coordinates(X, k, side=side, **more)
        with self.lock:
            if (at, side) not in self.codes:
                self.codes[at, side] = self.whole.coordinates(X, side=side, **more | {"exact": True})
        return self.codes[at, side][:, : self.encoder.d]


# -- rounded prefixes --------------------------------------------------------------------------------------------


def rounded_storages(
    encoder: EncodedOnce, precision: Precision, Z: np.ndarray, ks: Sequence[int], *, signs: bool, ask: bool
) -> Iterator[tuple[Sequence[int], Storage]]:
    """Yield prefix lengths that are rounded alike, and what storage in the precision does to their codes.

    Parameters
    ----------
    encoder : EncodedOnce
    precision : Precision
        Not fitted.
    Z : ndarray of shape (n, d)
        Codes that are stored.
    ks : sequence of int
        Ascending.
    signs : bool
        Compare bits as an index of bits does, by Hamming distance: the cosine of signs.
    ask : bool
        Queries are rounded as well.
    """

    def as_stored(codes: np.ndarray) -> np.ndarray:
        return unit_rows(codes).astype(codes.dtype) if encoder.normalized else codes

    def storage(fitted: Precision) -> Storage:
        def rounded(codes: np.ndarray) -> np.ndarray:
            found = fitted.quantise(as_stored(codes))
            if not signs:
                return fitted.restore(found)
            bits = np.unpackbits(found, axis=1, count=codes.shape[1])
            return 2.0 * bits.astype(np.float32) - 1.0

        stored = partial(_by_blocks, rounded)
        return Storage(stored, stored) if ask else Storage(stored)

    Z = Z[:: -(-len(Z) // FITTED_ROWS)]
    if encoder.normalized:  # after each cut, so that no two lengths are rounded alike
        runs: Iterable[tuple[Sequence[int], Precision]] = (([k], precision.fit(as_stored(Z[:, :k]))) for k in ks)
    elif signs:  # a sign depends on the mean of its own coordinate alone
        runs = [(ks, precision.fit(Z[:, : ks[-1]]))]
    else:
        runs = shared_roundings(precision, Z, ks)
    for lengths, fitted in runs:
        yield lengths, storage(fitted)


def _by_blocks(work: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Return what is made of rows, each by itself: by blocks, which take little memory, on all cores."""
    blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)] or [rows]
    found = None
    for i, part in enumerate(ordered_map(work, blocks, cores())):
        if found is None:
            found = np.empty((len(rows), *part.shape[1:]), part.dtype)
        found[i * _BLOCK : i * _BLOCK + len(part)] = part
    assert found is not None
    return found


def shared_roundings(precision: Precision, Z: np.ndarray, ks: Sequence[int]) -> Iterator[tuple[list[int], Precision]]:
    """Yield runs of prefix lengths, ascending, each with the precision fitted on codes of its longest.

    Rounding acts on each coordinate apart. What is fitted before it may not: the one scale of int8 codes is that of the
    largest entry among the coordinates kept. Where the rounding of a prefix is that of a longer one, cut, so are its
    codes, and one sweep scores both.

    Examples
    --------
    >>> from firstk.data.precision import PRECISIONS
    >>> Z = np.array([[1.0, -0.5, 2.0], [0.5, 0.25, -1.0]])
    >>> [ks for ks, _ in shared_roundings(PRECISIONS["int8"], Z, [1, 2, 3])]
    [[1, 2], [3]]
    """
    fitted = [precision.fit(Z[:, :k]) for k in ks]
    run: list[int] = []
    for k, short, long in zip(ks, fitted, [*fitted[1:], None], strict=False):
        run.append(k)
        longer: Mapping[str, Any] = {} if long is None else long.record()
        cut = long is not None and all(
            longer[name][: len(value)] == value if isinstance(value, list) else longer[name] == value
            for name, value in short.record().items()
        )
        if not cut:
            yield run, short
            run = []


# -- bytes -------------------------------------------------------------------------------------------------------


class BitStrings:
    """An encoder whose stored codes are embedded bits: one string, from which every number of bytes is cut.

    What a search computes is what is scored: documents go through bits, queries stay in floating point. Metrics that
    compare nothing read the decoded code.

    Parameters
    ----------
    encoder : FittedEncoder
    data : Rows, Pairs or Search
    compares : bool
        Whether codes are compared by cosine; otherwise they are read as coordinates.
    rows : array of shape (n, p), optional
        Rows to fit the cells on, for a baseline that has none.

    Raises
    ------
    InvalidInputError
        If the encoder has no cells for bits, or too little for a byte.
    """

    def __init__(self, encoder: FittedEncoder, data: Data, *, compares: bool, rows: MatrixLike | None = None):
        self.quantizer = encoder.quantizer(None, "cosine" if compares else "l2", rows=rows)
        # Codes in floating point, as queries are compared: what bits stand for, before they are rounded.
        self.asking = EncodedOnce(self.quantizer.query_encoder, data)
        self._bits: dict[tuple[object, ...], tuple[np.ndarray, np.ndarray]] = {}
        self._lock = Lock()

    def storage(self, size: int) -> Storage:
        """Return what so many bytes do to stored codes, and what is left of queries."""
        return Storage(
            lambda Z: _by_blocks(self.quantizer.decode, self._whole(Z)[:, :size]), self.quantizer.at(size).coded_only
        )

    def _whole(self, Z: np.ndarray) -> np.ndarray:
        """Return the bits of codes, at all bytes; those of one array are made once for all sizes."""
        offset, d = self.quantizer.stored.offset, self.quantizer.embedded.trees.d

        def bits(rows: np.ndarray) -> np.ndarray:
            codes = rows if offset is None else rows[:, :d] - offset[:d]
            return self.quantizer.embedded.quantise(unit_rows(codes) if self.quantizer.encoder.normalized else codes)

        place = (Z.__array_interface__["data"][0], Z.shape, Z.strides, Z.dtype)
        with self._lock:
            if place not in self._bits:
                self._bits[place] = Z, _by_blocks(bits, Z)  # with Z, lest another array take its place
            return self._bits[place][1]


def product_quantizers(rows: np.ndarray, seed: int = 0) -> Iterator[tuple[int, Storage]]:
    """Yield product quantizers of unit vectors, as faiss trains them: their bytes, and what storage makes of vectors.

    Nothing where faiss is not installed, and of fewer than 2,048 rows.
    """
    n, p = rows.shape
    if n < FEWEST_LEARNED or find_spec("faiss") is None:
        return
    faiss = require("faiss", "faiss", "A product quantizer")
    picked = np.random.default_rng(seed).permutation(n)[:MOST_LEARNED]
    sample = np.ascontiguousarray(unit_rows(rows[np.sort(picked)]), dtype=np.float32)
    for size in QUANTIZER_SIZES:
        if p % size or size >= p:
            continue
        quantizer = faiss.ProductQuantizer(p, size, 8)
        quantizer.cp.min_points_per_centroid = 1  # no warning for each group of columns where rows are few
        quantizer.cp.niter = ROUNDS
        quantizer.train(sample)

        def stored(Z: np.ndarray, quantizer: Any = quantizer) -> np.ndarray:
            unit = np.ascontiguousarray(unit_rows(Z), dtype=np.float32)
            return np.asarray(quantizer.decode(quantizer.compute_codes(unit)))

        yield size, Storage(stored)


# Rows that are read back, and the fewest of which neighbors are worth a number.
MOST_ROWS, FEWEST_ROWS = 2000, 50
NEIGHBORS = 10


class ReadBack(NamedTuple):
    """The share of the ten nearest neighbors that are found, and among how many rows."""

    kept: float
    rows: int


def read_back(
    encoder: FittedEncoder | None, source: str | Path, written: str | Path, *, vectors: str | None = None
) -> ReadBack | None:
    """Read the first codes of a file, and look for the neighbors that their vectors have among themselves.

    Codes are as they are stored; queries are the codes of the same rows in floating point, compared by cosine.

    Parameters
    ----------
    encoder : FittedEncoder or None
        The one that the codes are of; None for the vectors as they are.
    source, written : path
        The file of vectors, and that of their codes, in the same order.
    vectors : str, optional
        The vector column of `source`.

    Returns
    -------
    found : ReadBack or None
        None of fewer than 50 rows, of codes for another metric, and of a file from which the codes cannot be told
        without help.
    """
    table = open_vectors(source, vectors, nan="drop")
    codes = None
    for column in (table.vectors, None):  # it has the name that the vectors had, where the format has names
        with suppress(InvalidInputError):
            codes = open_vectors(written, column) if codes is None else codes
    if codes is None:
        return None
    record = CodeRecord.read(written, codes.metadata)
    if record is not None and record.metric not in (None, "cosine"):
        return None
    X = next(iter(table.batches(MOST_ROWS, ()))).vectors
    Z = next(iter(codes.batches(MOST_ROWS, ()))).vectors
    n = min(len(X), len(Z))
    if n < FEWEST_ROWS:
        return None
    X, Z = np.asarray(X[:n], dtype=np.float32), np.asarray(Z[:n], dtype=np.float32)
    k = Z.shape[1]
    if encoder is None:
        asked = X[:, :k]
    elif record is not None and isinstance(record.precision, Embedded):
        asked = encoder.quantizer(record.precision.n_bytes).encode_query(X)
    else:
        asked = encoder.coordinates(X, k)
    truth = nearest_neighbors(X, X, NEIGHBORS, exclude_self=True)
    kept = neighbor_recall(Z, asked, truth, ks=[k], exclude_self=True)
    return ReadBack(float(kept[-1]), n)
