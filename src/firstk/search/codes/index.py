"""CodeIndex: a flat search on embedded bytes, with nothing else of the rows in memory.

How bytes are searched is in `packing` and `scan`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.checks import (
    bad_parameter,
    check_choice,
    check_verbose,
    is_int,
    numba_may_compile,
    require_compiled,
)
from firstk._base.progress import Verbose, showing
from firstk._base.rows import is_sparse
from firstk.bits import METRICS, EmbeddedQuantizer
from firstk.data import CodeStamp
from firstk.encoder import check_fitted
from firstk.exceptions import InvalidInputError
from firstk.search.codes import scan
from firstk.search.codes.cell_fit import Fit, FitWarning
from firstk.search.codes.packing import Packing
from firstk.search.codes.rerank import FloatCodes, reranked
from firstk.search.index_file import BYTES_FORMAT, fitting_parts, pack_encoder, read_index, unpack_encoder, write_index
from firstk.search.row_index import (
    IndexState,
    RowIndex,
    RowsAndIds,
    SearchResult,
    calibration_facts,
    check_stored_ids,
    checked_count,
    checked_threads,
    new_ids,
    over_blocks,
    read_calibration,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import nn

    from firstk import PrefixEncoder
    from firstk._base.array_types import MatrixLike
    from firstk.encoder import FittedEncoder

_ENGINES = ("auto", "compiled", "numpy")
# Rows from which the compiled scan is worth loading.
_LARGE = 10_000
# Queries of a block, whose tables are in memory together, and rows that are worth a thread of their own.
_QUERIES, _ROWS = 64, 16_384
# Rows of a shortlist for each neighbor that is asked for, where its length is not given.
_SHORTLIST = 10


@dataclass(frozen=True, eq=False)
class _CodeState(IndexState):
    """What an index holds at one time: columns "packed", "ids" and, unless scores need none, "norms"."""

    fit: Fit


class CodeIndex(RowIndex):
    """Nearest neighbors by embedded bytes; `CodeIndex.fit` builds one.

    Rows are the bytes of an `EmbeddedQuantizer`, moved so that a byte holds whole coordinates. Queries stay in floating
    point, and a search looks up what every byte adds to their scores, without decoding. All rows are compared: what is
    returned are the best scores there are, summed in float64, and of equal ones those of lower ids. Threads may add,
    remove and search at the same time: a search sees the rows of the moment when it began.

    Attributes
    ----------
    quantizer : EmbeddedQuantizer
    engine : {"auto", "compiled", "numpy"}
    packing : Packing
        How rows are kept: see `packed`.

    Examples
    --------
    >>> from firstk import PrefixEncoder
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> index = CodeIndex.fit(digits.X_train, encoder=PrefixEncoder().fit(digits.X_train), bytes=16)
    >>> index, index.search(digits.X_test, 10).ids.shape
    (CodeIndex(1437 rows of 16 bytes, cosine), (360, 10))
    """

    def __init__(
        self,
        quantizer: EmbeddedQuantizer,
        codes: np.ndarray,
        ids: np.ndarray,
        *,
        engine: str = "auto",
        next_id: int = 0,
        fit: Fit | None = None,
    ):
        self.quantizer, self.engine = quantizer, engine
        self.packing = Packing.of(quantizer.stored, quantizer.metric)
        store = RowsAndIds(self._columns(codes) | {"ids": ids})
        super().__init__(_CodeState(store, next_id, fit or Fit()))

    # -- building ------------------------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        X: MatrixLike,
        *,
        encoder: PrefixEncoder | FittedEncoder,
        bytes: int | None = 32,
        metric: str = "cosine",
        ids: ArrayLike | None = None,
        engine: str = "auto",
        verbose: Verbose = "auto",
    ) -> CodeIndex:
        """Encode vectors as bytes and build an index of them.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Vectors of the rows.
        encoder : PrefixEncoder or FittedEncoder
            Its quantizer encodes rows as documents here and in `add`, and queries as queries in `search`; saved with
            the index.
        bytes : int or None
            Of each row; None: all that lower the error of the codes.
        metric : {"cosine", "inner_product", "l2"}
            See :mod:`firstk.bits.quantizer` for what is compared.
        ids : array-like of int, optional
            One for each row; 0 to n - 1 if not given.
        engine : {"auto", "compiled", "numpy"}
            "compiled" needs numba; "auto" takes it for large stores where it is installed. Results are the same.
        verbose : bool or "auto"
            Show progress; "auto": of what takes long, on a terminal or in a notebook.
        """
        owner = "CodeIndex.fit"
        check_choice(metric, METRICS, "metric", owner)
        check_choice(engine, _ENGINES, "engine", owner)
        with showing(check_verbose(verbose, owner)):
            quantizer = check_fitted(encoder, owner).quantizer(bytes, metric)
            codes = quantizer.encode(X)
        numbers = new_ids(ids, len(codes), 0, np.empty(0, np.int64), owner)
        return cls(quantizer, codes, numbers, engine=engine, next_id=int(numbers.max()) + 1)

    @classmethod
    def from_codes(
        cls,
        codes: ArrayLike,
        quantizer: EmbeddedQuantizer,
        *,
        ids: ArrayLike | None = None,
        stamp: CodeStamp | str | None = None,
        engine: str = "auto",
    ) -> CodeIndex:
        """Build an index of stored bytes.

        Parameters
        ----------
        codes : uint8 array of shape (n, bytes)
            From `quantizer.encode`, whole or cut: the index has as many bytes as they have.
        quantizer : EmbeddedQuantizer
        ids : array-like of int, optional
        stamp : CodeStamp or str, optional
            That of the codes, or their fingerprint, as it was stored with them: ``open_codes(path).record.stamp``.
            Codes of another encoder raise an error that names both.
        engine : {"auto", "compiled", "numpy"}
        """
        owner = "CodeIndex.from_codes"
        check_choice(engine, _ENGINES, "engine", owner)
        if not isinstance(quantizer, EmbeddedQuantizer):
            raise bad_parameter("quantizer", owner, "an EmbeddedQuantizer: encoder.quantizer(bytes)", quantizer)
        if stamp is not None:
            quantizer.check_codes(stamp, "the rows")
        stored = quantizer.embedded.checked(codes, "search")
        numbers = new_ids(ids, len(stored), 0, np.empty(0, np.int64), owner)
        highest = int(numbers.max()) if len(numbers) else -1
        return cls(quantizer.at(stored.shape[1]), stored, numbers, engine=engine, next_id=highest + 1)

    def add(self, X: MatrixLike, ids: ArrayLike | None = None) -> np.ndarray:
        """Encode vectors, add them and return their ids.

        Warns (`FitWarning`) where the rows added so far no longer fit the cells: where their quantization error is more
        than 1.5 times that of the rows that the cells were fitted on.
        """
        codes = self.quantizer.encode(X)
        numbers = self._added(codes, ids, "CodeIndex.add", Fit.of(self.quantizer, X, codes))
        if len(codes) and (trouble := self._state.fit.trouble(self.quantizer.embedded.expected_error)):
            warnings.warn(trouble, FitWarning, stacklevel=2)
        return numbers

    def add_codes(
        self, codes: ArrayLike, ids: ArrayLike | None = None, *, stamp: CodeStamp | str | None = None
    ) -> np.ndarray:
        """Add stored bytes, as many for each row as the index has or more, and return their ids."""
        if stamp is not None:
            self.quantizer.check_codes(stamp, "the rows")
        stored = self.quantizer.at(None).embedded.checked(codes, "search")
        if stored.shape[1] < self.bytes:
            raise InvalidInputError(
                f"CodeIndex.add_codes takes codes of {self.bytes} bytes or more, as this index has. Got "
                f"{stored.shape[1]}: cut the index, or encode the rows again."
            )
        return self._added(stored[:, : self.bytes], ids, "CodeIndex.add_codes", Fit())

    def _added(self, codes: np.ndarray, ids: ArrayLike | None, owner: str, fit: Fit) -> np.ndarray:
        """Add rows and what is known of their errors; return their ids."""
        columns = self._columns(codes)
        return self._append(ids, len(codes), owner, lambda old: (columns, replace(old, fit=old.fit + fit)))

    def _columns(self, codes: np.ndarray) -> dict[str, np.ndarray]:
        packed = self.packing.packed(codes)
        return {"packed": packed} | ({} if self.metric == "inner_product" else {"norms": self.packing.norms(packed)})

    def cut(self, bytes: int) -> CodeIndex:
        """Return an index of the first bytes of every row, without encoding anything again."""
        if not is_int(bytes) or not 1 <= bytes <= self.bytes:
            raise bad_parameter("bytes", "CodeIndex.cut", f"an int in [1, {self.bytes}] (those of the index)", bytes)
        now = self._state
        codes = self.packing.unpacked(now.store["packed"])[:, :bytes]
        return CodeIndex(self.quantizer.at(bytes), codes, now.store["ids"], engine=self.engine, next_id=now.next_id)

    # -- use -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"CodeIndex({len(self)} rows of {self.bytes} bytes, {self.metric})"

    @property
    def bytes(self) -> int:
        """Bytes of a row."""
        return self.quantizer.bytes

    @property
    def metric(self) -> str:  # type: ignore[override]
        """The metric of the quantizer."""
        return self.quantizer.metric

    @property
    def encoder(self) -> FittedEncoder:  # type: ignore[override]
        """The encoder of the quantizer."""
        return self.quantizer.encoder

    @property
    def codes(self) -> np.ndarray:
        """The bytes of the rows as the quantizer made them, uint8 of shape (n, bytes)."""
        return self.packing.unpacked(self._state.store["packed"])

    def packed(self) -> scan.PackedRows:
        """Return the rows as they are searched; for exports."""
        store = self._state.store
        norms = None if self.metric == "inner_product" else store["norms"]
        return scan.PackedRows(store["packed"], store["ids"], norms, self.metric == "cosine")

    @property
    def nbytes(self) -> int:
        """Memory of rows and ids."""
        return self._state.store.nbytes

    def search(
        self,
        Q: MatrixLike,
        n_neighbors: int = 10,
        *,
        rerank: ArrayLike | str | Path | None = None,
        rerank_ids: ArrayLike | None = None,
        shortlist: int | None = None,
        threads: int | None = None,
        calibrated: bool = False,
    ) -> SearchResult:
        """Find the rows of the best scores for each query.

        Parameters
        ----------
        Q : array-like of shape (m, p)
            Vectors of the queries.
        n_neighbors : int
        rerank : array, or path of an .npy file, of shape (N, k), optional
            Codes of rows in floating point, ``encoder.encode(X, k)``: they replace the first k coordinates of a
            shortlist, which is then scored again. A file is mapped, and only the rows of shortlists are read.
        rerank_ids : array-like of N ints, optional
            Ids of the rows of `rerank`; 0 to N - 1 if not given.
        shortlist : int, optional
            Rows that are scored again; ten for each neighbor if not given.
        threads : int, optional
            Number of threads that share queries and rows; all cores if not given. Results do not depend on it.
        calibrated : bool
            Return estimates of the raw vectors' cosines as scores, by what `calibrate` has learned.
        """
        owner = "CodeIndex.search"
        rows = self.packed()
        n = checked_count(n_neighbors, "n_neighbors", len(rows), owner)
        threads = checked_threads(threads, owner)
        if rerank is None and (shortlist is not None or rerank_ids is not None):
            raise InvalidInputError(f"{owner} takes 'shortlist' and 'rerank_ids' with 'rerank' only. Give codes to it.")
        if calibrated and rerank is not None:
            raise InvalidInputError(f"{owner} calibrates scores of its own bytes. Leave 'rerank' or 'calibrated' out.")
        # Numbers are encoded in float64; anything else stays as it is, for the encoder's error message.
        numbers: Any = Q if is_sparse(Q) else np.asarray(Q)
        wide = numbers.astype(np.float64) if numbers.dtype.kind in "fiub" else Q
        whole = self.quantizer.query_encoder.encode(wide, side="query", owner=owner)
        queries, size, floats = self._queries(self.quantizer.coded_only(whole), owner), n, None
        if rerank is not None:
            floats = FloatCodes.of(rerank, rerank_ids, self.quantizer.embedded.trees.d, owner)
            wished = min(len(rows), _SHORTLIST * n) if shortlist is None else shortlist
            if (size := checked_count(wished, "shortlist", len(rows), owner)) < n:
                raise bad_parameter("shortlist", owner, f"an int of at least {n} (the neighbors)", shortlist)
        near, ids = self._nearest(rows, queries, size, threads)
        spent = len(rows) * self.packing.planes
        if floats is not None:
            queries = self._queries(whole, owner)  # codes in floating point have every coordinate
            order = np.argsort(rows.ids)

            def codes_of(ids: np.ndarray) -> np.ndarray:
                return self.packing.unpacked(rows.packed[order[np.searchsorted(rows.ids, ids, sorter=order)]])

            near, ids = reranked(self.quantizer, floats, queries, ids, codes_of, n)
            spent += size * self.quantizer.k
        if self.metric == "l2":
            near = np.maximum(np.einsum("ij,ij->i", queries, queries)[:, None] - near, 0)
        work, encoding = np.full(len(queries), spent), self.quantizer.encoder.p * self.quantizer.k
        return SearchResult(ids, self._shown(near, calibrated, owner), work, len(rows) * self.quantizer.k, encoding)

    def _queries(self, codes: np.ndarray, owner: str) -> np.ndarray:
        """Return codes of queries in float64, of unit norm for cosines.

        They were encoded in float64 and are rounded to float32: products of matrices are not the same in every company,
        and so rounded they are.
        """
        codes = codes.astype(np.float32).astype(np.float64)
        if self.metric != "cosine":
            return codes
        norms = np.sqrt(np.einsum("ij,ij->i", codes, codes))
        if (zero := np.flatnonzero(norms == 0)).size:
            raise InvalidInputError(
                f"{owner} with metric 'cosine' takes queries that have a direction; the code of row {zero[0]} of 'Q' "
                "is all zeros. Drop such rows."
            )
        unit: np.ndarray = codes / norms[:, None]
        return unit

    def _nearest(
        self, rows: scan.PackedRows, queries: np.ndarray, size: int, threads: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return nearness and ids of the `size` nearest rows of each query, nearest first."""
        if self.engine == "compiled":
            require_compiled("search", "A compiled search", "engine='numpy'")
        if self.engine == "compiled" or (self.engine == "auto" and len(rows) >= _LARGE and numba_may_compile()):
            from firstk.search.codes._compiled import nearest
        else:
            nearest = scan.nearest
        step = min(_QUERIES, -(-len(queries) // threads))
        blocks = [self.packing.tables(queries[start : start + step]) for start in range(0, len(queries), step)]
        # Where there are fewer blocks of queries than threads, they share the rows of a block.
        parts = max(1, min(threads // len(blocks), len(rows) // _ROWS))
        edges = [len(rows) * i // parts for i in range(parts + 1)]
        jobs = [(block, rows.part(*span)) for block in blocks for span in pairwise(edges)]
        found = over_blocks(lambda job: nearest(job[1], *job[0], size), jobs, threads)
        merged = []  # the nearest of all parts, block by block
        for i in range(0, len(found), parts):
            near, ids = (np.hstack(each) for each in zip(*found[i : i + parts], strict=True))
            merged.append(scan.best(near, ids, size))
        near, ids = (np.concatenate(each) for each in zip(*merged, strict=True))
        return near, ids

    # -- storage -------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write bytes, ids and encoder into one file, atomically."""
        now = self._state
        facts = {
            "bytes": self.bytes,
            "metric": self.metric,
            "engine": self.engine,
            "next_id": now.next_id,
            "fingerprint": self.quantizer.fingerprint,
            "stamp": self.quantizer.stamp().to_dict(),
            "fit": now.fit.to_dict(),
            "calibration": calibration_facts(self),
        }
        arrays = {"codes": self.packing.unpacked(now.store["packed"]), "ids": now.store["ids"]}
        arrays |= pack_encoder(self.quantizer.encoder)
        return write_index(path, facts, arrays, BYTES_FORMAT)

    @classmethod
    def load(cls, path: str | Path, module: nn.Module | None = None) -> CodeIndex:
        """Read a saved index, checking format, checksum, shapes and fingerprint; `module` is a custom network's."""
        facts, arrays = read_index(path, BYTES_FORMAT)
        with fitting_parts(path):
            encoder = unpack_encoder(arrays, f"{path}/encoder", module)
            if encoder is None:
                raise InvalidInputError("it has no encoder")
            quantizer = encoder.quantizer(facts["bytes"], facts["metric"])
            quantizer.check_codes(facts["fingerprint"])
            codes, ids = arrays["codes"], arrays["ids"]
            if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != quantizer.bytes:
                raise InvalidInputError(f"codes are {codes.dtype}{codes.shape}, and {quantizer.bytes} bytes expected")
            check_stored_ids(ids, len(codes), facts["next_id"])
            engine = check_choice(facts["engine"], _ENGINES, "engine", "CodeIndex")
            fit = Fit.from_dict(facts["fit"])
            index = cls(quantizer, codes, ids, engine=engine, next_id=facts["next_id"], fit=fit)
            index.calibration = read_calibration(facts)
            return index
