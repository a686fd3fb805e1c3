"""CodeIndex: a flat search on embedded bytes, with nothing else of the rows in memory.

It adds, removes, searches, cuts, saves and loads; how bytes are searched is in `packing`, `code_scan` and
`_compiled_codes`.
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
from firstk.search.codes import scan as code_scan
from firstk.search.codes.cell_fit import Fit, FitWarning
from firstk.search.codes.packing import packing_of
from firstk.search.codes.rerank import FloatCodes, reranked
from firstk.search.codes.scan import PackedRows, Tables
from firstk.search.funnel.index import SearchResult, checked_threads, over_blocks
from firstk.search.index_file import BYTES_FORMAT, fitting_parts, pack_encoder, read_index, unpack_encoder, write_index
from firstk.search.rows_and_ids import WriteLock, check_stored_ids, known_ids, new_ids

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import nn

    from firstk import PrefixEncoder
    from firstk._base.array_types import MatrixLike
    from firstk.encoder import FittedEncoder

_ENGINES = ("auto", "compiled", "numpy")
# Rows from which the compiled scan is worth loading.
_LARGE = 10_000
# Queries that share a pass over the rows, and tiles that are worth a thread of their own.
_QUERIES, _TILES = 64, 512
# Rows of a shortlist for each neighbor that is asked for, where its length is not given.
_SHORTLIST = 10


@dataclass(frozen=True, eq=False)
class _CodeState:
    """What an index holds at one time. Additions and removals replace it as a whole: a search reads it once."""

    rows: PackedRows
    ids: np.ndarray
    next_id: int
    fit: Fit

    def __len__(self) -> int:
        return len(self.rows)

    def codes_of(self, ids: np.ndarray) -> np.ndarray:
        """Return the bytes of rows by id."""
        order = np.argsort(self.ids)
        return self.rows.codes(order[np.searchsorted(self.ids, ids, sorter=order)])


class CodeIndex:
    """Nearest neighbors by embedded bytes; `CodeIndex.fit` builds one.

    Rows are the bytes of an `EmbeddedQuantizer`, moved so that a byte holds whole coordinates. Queries stay in floating
    point, and a search looks up what every byte adds to their scores, without decoding. All rows are compared: what is
    returned are the best scores there are, summed in float64, and of equal ones those of lower ids. Threads may add,
    remove and search at the same time: a search sees the rows of the moment when it began.

    Attributes
    ----------
    quantizer : EmbeddedQuantizer
    engine : {"auto", "compiled", "numpy"}

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
        rows = PackedRows(packing_of(quantizer.stored, quantizer.metric), codes)
        self._state = _CodeState(rows, ids, next_id, fit or Fit())
        self._writing = WriteLock()

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
        numbers, fit = self._added(codes, ids, "CodeIndex.add", Fit.of(self.quantizer, X, codes))
        if len(codes) and (trouble := fit.trouble(self.quantizer.embedded.expected_error)):
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
        return self._added(stored[:, : self.bytes], ids, "CodeIndex.add_codes", Fit())[0]

    def _added(self, codes: np.ndarray, ids: ArrayLike | None, owner: str, fit: Fit) -> tuple[np.ndarray, Fit]:
        """Add rows and what is known of their errors; return their ids, and the errors of all that were added."""
        with self._writing:
            old = self._state
            numbers = new_ids(ids, len(codes), old.next_id, old.ids, owner)
            next_id = max(old.next_id, int(numbers.max(initial=-1)) + 1)
            joined = np.concatenate([old.ids, numbers])
            self._state = _CodeState(old.rows.appended(codes), joined, next_id, old.fit + fit)
            return numbers, self._state.fit

    def remove(self, ids: ArrayLike) -> None:
        """Remove rows by id: all of them, or none if one is unknown."""
        with self._writing:
            old = self._state
            kept = ~np.isin(old.ids, known_ids(ids, old.ids, "CodeIndex.remove"))
            self._state = replace(old, rows=old.rows.kept(kept), ids=old.ids[kept])

    def cut(self, bytes: int) -> CodeIndex:
        """Return an index of the first bytes of every row, without encoding anything again."""
        if not is_int(bytes) or not 1 <= bytes <= self.bytes:
            raise bad_parameter("bytes", "CodeIndex.cut", f"an int in [1, {self.bytes}] (those of the index)", bytes)
        now = self._state
        codes = now.rows.codes()[:, :bytes]
        return CodeIndex(self.quantizer.at(bytes), codes, now.ids, engine=self.engine, next_id=now.next_id)

    # -- use -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._state.rows)

    def __repr__(self) -> str:
        return f"CodeIndex({len(self)} rows of {self.bytes} bytes, {self.metric})"

    @property
    def bytes(self) -> int:
        """Bytes of a row."""
        return self.quantizer.bytes

    @property
    def metric(self) -> str:
        """The metric of the quantizer."""
        return self.quantizer.metric

    @property
    def ids(self) -> np.ndarray:
        """Ids of the rows, in the order in which they were added."""
        return self._state.ids.copy()

    @property
    def codes(self) -> np.ndarray:
        """The bytes of the rows as the quantizer made them, uint8 of shape (n, bytes)."""
        return self._state.rows.codes()

    def packed(self) -> tuple[PackedRows, np.ndarray]:
        """Return the rows as they are searched, and their ids; for exports."""
        now = self._state
        return now.rows, now.ids

    @property
    def nbytes(self) -> int:
        """Memory of rows and ids."""
        return self._state.rows.nbytes + self._state.ids.nbytes

    def search(
        self,
        Q: MatrixLike,
        n_neighbors: int = 10,
        *,
        rerank: ArrayLike | str | Path | None = None,
        rerank_ids: ArrayLike | None = None,
        shortlist: int | None = None,
        threads: int | None = None,
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
        """
        owner = "CodeIndex.search"
        now = self._state
        n = _checked_count(n_neighbors, "n_neighbors", now, owner)
        threads = checked_threads(threads, owner)
        if rerank is None and (shortlist is not None or rerank_ids is not None):
            raise InvalidInputError(f"{owner} takes 'shortlist' and 'rerank_ids' with 'rerank' only. Give codes to it.")
        # Numbers are encoded in float64; anything else stays as it is, for the encoder's error message.
        numbers: Any = Q if is_sparse(Q) else np.asarray(Q)
        wide = numbers.astype(np.float64) if numbers.dtype.kind in "fiub" else Q
        whole = self.quantizer.query_encoder.encode(wide, side="query", owner=owner)
        queries = self._queries(self.quantizer.coded_only(whole), owner)
        encoding = self.quantizer.encoder.p * self.quantizer.k
        if rerank is None:
            ids, near = self._nearest(now, queries, n, threads)
            work = np.full(len(queries), len(now) * now.rows.packing.planes)
            return SearchResult(ids, self._scores(queries, near), work, len(now) * self.quantizer.k, encoding)
        floats = FloatCodes.of(rerank, rerank_ids, self.quantizer.embedded.trees.d, owner)
        size = (
            min(len(now), _SHORTLIST * n) if shortlist is None else _checked_count(shortlist, "shortlist", now, owner)
        )
        if size < n:
            raise bad_parameter("shortlist", owner, f"an int of at least {n} (the neighbors)", shortlist)
        ids, _ = self._nearest(now, queries, size, threads)
        queries = self._queries(whole, owner)  # codes in floating point have every coordinate
        ids, near = reranked(self.quantizer, floats, queries, ids, now.codes_of, n)
        work = np.full(len(queries), len(now) * now.rows.packing.planes + size * self.quantizer.k)
        return SearchResult(ids, self._scores(queries, near), work, len(now) * self.quantizer.k, encoding)

    def _queries(self, codes: np.ndarray, owner: str) -> np.ndarray:
        """Return codes of queries in float64, of unit norm for cosines.

        They were encoded in float64 and are rounded to float32: products of matrices are not the same in every company,
        and so rounded they are.
        """
        codes = codes.astype(np.float32).astype(np.float64)
        if self.metric != "cosine":
            return codes
        norms = np.sqrt(_squares(codes))
        if (zero := np.flatnonzero(norms == 0)).size:
            raise InvalidInputError(
                f"{owner} with metric 'cosine' takes queries that have a direction; the code of row {zero[0]} of 'Q' "
                "is all zeros. Drop such rows."
            )
        unit: np.ndarray = codes / norms[:, None]
        return unit

    def _nearest(self, now: _CodeState, queries: np.ndarray, size: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and nearness of the `size` nearest rows of each query, nearest first."""
        if self.engine == "compiled":
            require_compiled("search", "A compiled search", "engine='numpy'")
        if self.engine == "compiled" or (self.engine == "auto" and len(now) >= _LARGE and numba_may_compile()):
            from firstk.search.codes._compiled import nearest
        else:
            nearest = code_scan.nearest
        rows, m, tiles = now.rows, len(queries), len(now.rows.tiles)
        step = min(_QUERIES, -(-m // threads))
        blocks = [slice(start, start + step) for start in range(0, m, step)]
        # Where there are fewer blocks of queries than threads, they share the rows of a block.
        parts = max(1, min(threads // len(blocks), tiles // _TILES))
        edges = [tiles * i // parts for i in range(parts + 1)]
        spans = list(pairwise(edges))
        tables = [Tables.of(rows.packing, queries[block]) for block in blocks]
        jobs = [(table, span) for table in tables for span in spans]
        found = over_blocks(lambda job: nearest(rows, job[0], size, now.ids, job[1]), jobs, threads)
        results = []
        for i in range(len(blocks)):
            ids, near = (np.hstack(each) for each in zip(*found[i * parts : (i + 1) * parts], strict=True))
            results.append(code_scan.best(near, ids, size))
        near, ids = (np.concatenate(each) for each in zip(*results, strict=True))
        return ids, near

    def _scores(self, queries: np.ndarray, near: np.ndarray) -> np.ndarray:
        if self.metric == "l2":
            near = np.maximum(_squares(queries)[:, None] - near, 0)
        return near.astype(np.float32)

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
        }
        arrays = {"codes": now.rows.codes(), "ids": now.ids} | pack_encoder(self.quantizer.encoder)
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
            return cls(quantizer, codes, ids, engine=engine, next_id=facts["next_id"], fit=fit)


def _checked_count(value: object, name: str, now: _CodeState, owner: str) -> int:
    if len(now) == 0:
        raise InvalidInputError(f"{owner} needs rows to search, and this index holds none. Add some first.")
    if not is_int(value) or not 1 <= value <= len(now):
        raise bad_parameter(name, owner, f"an int in [1, {len(now)}] (the rows of the index)", value)
    return int(value)


def _squares(codes: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("ij,ij->i", codes, codes))
