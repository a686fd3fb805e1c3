"""A frozen encoder that can be cut, applied, inverted, saved and loaded, and the linear readout of its prefixes.

It needs numpy and nothing that was used to fit it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from firstk._base.array_types import MatrixLike, SparseMatrix
from firstk._base.arrays import are_hashes, under, within
from firstk._base.checks import bad_parameter, check_choice, check_finite, check_matrix, check_prefix, is_int
from firstk._base.json_records import to_plain
from firstk._base.linalg import signed
from firstk._base.progress import tracked
from firstk._base.rows import Rows, as_dense, is_sparse, projected, unit_rows
from firstk.bits.embedded import Embedded
from firstk.bits.quantizer import METRICS, EmbeddedQuantizer
from firstk.bits.weights import FEWEST_QUERIES, check_tau, document_weights, query_weights
from firstk.data.stamp import CodeStamp
from firstk.encoder.network import Network, restore_mlp
from firstk.encoder.profile import RowProfile
from firstk.encoder.record import FitRecord, ModelShape, read_config
from firstk.encoder.storage.card import model_card
from firstk.encoder.storage.folder import model_files, parse_model, read_model, write_model
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError
from firstk.quality.choice import Choice
from firstk.quality.curve import PrefixCurve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from torch import nn

# In which codes are searched, whatever the objective: curves and precision tables compare codes by cosine after
# truncation, so a store that compared them otherwise would keep another share than was promised. Where the lengths of
# vectors carry meaning (keep="dot_products" of vectors that are not normalized), name the metric of a store explicitly.
SEARCH_METRIC = "cosine"
# Entries of a block while encoding: the centred copy of the input stays this small.
_BLOCK_ENTRIES = 4_000_000
# Share of nonzero numbers below which sparse rows are multiplied as they are.
_SPARSE_SHARE = 0.1
_ARRAYS = ("components", "spectrum", "mean", "query_mean", "decoder", "origin")
_HEAD_ARRAYS = ("weight", "offset", "quadratic")
_OWN_HEADS = ("own_weight", "own_offset")
_LEARNED = "learned"
_PROFILE = "profile"


@dataclass(frozen=True)
class Head:
    """A linear readout of every prefix: ``offset_k + Z[:, :k] @ weight[:, :k].T``, or weights of a prefix's own.

    It leads to targets, or to one score a class. One set of weights serves all prefixes where theory allows it; short
    prefixes may have weights of their own.

    Attributes
    ----------
    weight : ndarray of shape (q, d)
    offset : ndarray of shape (q,)
    quadratic : ndarray of shape (q, d)
        Per-axis constants that a prefix of length k subtracts the first k of; zeros for regression.
    classes : ndarray or None
        Labels, when the readout is an argmax over them.
    own_weight : ndarray of shape (K, q, K) or None
        Weights of the prefixes up to K that have their own: number k - 1 has k columns, the rest are zero.
    own_offset : ndarray of shape (K, q) or None
    """

    weight: np.ndarray
    offset: np.ndarray
    quadratic: np.ndarray
    classes: np.ndarray | None = None
    own_weight: np.ndarray | None = None
    own_offset: np.ndarray | None = None

    @property
    def own(self) -> int:
        """K: the largest prefix length with weights of its own."""
        return 0 if self.own_weight is None else len(self.own_weight)

    def at(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return weight (q, k) and offset (q,) of prefix k."""
        if self.own_weight is not None and self.own_offset is not None and k <= self.own:
            return self.own_weight[k - 1, :, :k], self.own_offset[k - 1]
        return self.weight[:, :k], self.offset - self.quadratic[:, :k].sum(axis=1)

    def scores(self, Z: np.ndarray) -> np.ndarray:
        """Return scores of codes, (n, q); their width is the prefix length.

        Those of classes are in the dtype of the codes; targets are in float64, as their offset may be far from zero.
        """
        weight, offset = self.at(Z.shape[1])
        dtype = np.dtype(np.float64) if self.classes is None else Z.dtype
        scores: np.ndarray = Z.astype(dtype, copy=False) @ weight.T.astype(dtype) + offset.astype(dtype)
        return scores

    def cut(self, k: int) -> Head:
        """Return the readout of a code that ends at k."""
        return replace(
            self,
            weight=self.weight[:, :k],
            quadratic=self.quadratic[:, :k],
            own_weight=None if self.own_weight is None else self.own_weight[:k, :, :k],
            own_offset=None if self.own_offset is None else self.own_offset[:k],
        )

    def scaled(self, factor: np.ndarray) -> Head:
        """Return the readout with column k times factor k."""
        own = None if self.own_weight is None else self.own_weight * factor[: self.own]
        return replace(self, weight=self.weight * factor, own_weight=own)


@dataclass(frozen=True, eq=False)
class FittedEncoder:
    """``z = B (x - mean)``, cut at any k, and brought to unit norm after the cut if `normalized`.

    Attributes
    ----------
    components : ndarray of shape (d, p)
        B; row k is axis k.
    spectrum : ndarray of shape (d,)
        gamma of each axis, descending.
    mean, query_mean : ndarray of shape (p,)
        Subtracted from documents (and everything else), and from queries.
    decoder : ndarray of shape (p, d) or None
    head : Head or None
    normalized : bool
    pinned : int
        How many axes the objective determines; those after it continue by variance.
    record : FitRecord
        How it was fitted: objective, ordering, solver, metric, number of rows.
    network : Network or None
        A network between the centred vector and the code: ``z = B network(x - mean)``, B then of shape (d, width of
        the network's output).
    origin : ndarray of shape (p,) or None
        What decoding adds; None adds the mean.
    cells : Embedded or None
        What bytes stand for, for `quantizer`; None where they have not been fitted, or were not saved.
    sample : mapping or None
        Rows of the fit ("X", maybe "weight"), from which `quantizer` fits cells when it is first asked for, and maybe
        "queries", which say where bits go; not saved.
    learned : ndarray of uint64 or None
        Hashes of the queries and documents in the pairs of the fit, ascending
        (`firstk.moments.fingerprint.pair_hashes`), so that new queries, and searches for new documents, can be told
        from others; of a fit on rows, the lowest hashes of these (`taught_hashes`).
    profile : RowProfile or None
        What the rows of the fit were like under this encoder, with which `check` compares later rows.
    """

    components: np.ndarray
    spectrum: np.ndarray
    mean: np.ndarray
    query_mean: np.ndarray
    decoder: np.ndarray | None = None
    head: Head | None = None
    normalized: bool = False
    pinned: int = 0
    record: FitRecord = field(default_factory=FitRecord)
    network: Network | None = None
    origin: np.ndarray | None = None
    cells: Embedded | None = None
    sample: Mapping[str, Rows] | None = field(default=None, repr=False)
    learned: np.ndarray | None = field(default=None, repr=False)
    profile: RowProfile | None = field(default=None, repr=False)

    @property
    def d(self) -> int:
        """Width of the code."""
        return len(self.components)

    @property
    def p(self) -> int:
        """Width of the input."""
        return self.components.shape[1] if self.network is None else self.network.p

    # -- use -------------------------------------------------------------------------------------------------

    def encode(
        self, X: MatrixLike, k: int | None = None, *, side: str = "document", owner: str = "encode"
    ) -> np.ndarray:
        """Return the first `k` coordinates of the code of each row; float32 in, float32 out."""
        Z, dtype = self._coordinates(X, k, side, owner)
        return (unit_rows(Z, out=Z) if self.normalized else Z).astype(dtype, copy=False)

    def coordinates(
        self,
        X: MatrixLike,
        k: int | None = None,
        *,
        side: str = "document",
        owner: str = "encode",
        exact: bool = False,
    ) -> np.ndarray:
        """Return the code before any normalization; float32 in, float32 out. `exact` sums in float64 in between."""
        return self._coordinates(X, k, side, owner, exact, rounded=True)[0]

    def _coordinates(
        self, X: MatrixLike, k: int | None, side: str, owner: str, exact: bool = False, rounded: bool = False
    ) -> tuple[np.ndarray, DTypeLike]:
        """Return the code, centred and multiplied block by block, and the dtype of the result; `rounded` to that.

        Centring comes before the product because it keeps digits where offsets are large, and after it, in float64,
        where most numbers are zero: offsets of such columns are small. Codes that are divided by their norm are summed
        in float64: where the first coordinates nearly vanish, so does float32's last digit.
        """
        k = check_prefix(k, self.d, owner)
        rows = self._checked(X, owner)
        result = np.float32 if rows.dtype == np.float32 else np.float64
        dtype = np.float64 if self.normalized or exact else result
        B = self.components[:k].T
        mean = self.query_mean if side == "query" else self.mean
        if is_sparse(rows) and self.network is None and rows.nnz < _SPARSE_SHARE * self.p * rows.shape[0]:
            return (rows @ B - mean @ B).astype(result if rounded else dtype), result
        B, mean = B.astype(dtype, copy=False), mean.astype(dtype, copy=False)
        Z = np.empty((rows.shape[0], k), dtype=result if rounded else dtype)
        step = max(1, _BLOCK_ENTRIES // self.p)
        starts = range(0, len(Z), step)
        for start in tracked(starts, len(starts), "encoding", "block"):
            block = as_dense(rows[start : start + step]) - mean
            Z[start : start + step] = (block if self.network is None else self.network(block)) @ B
        return Z, result

    def vectors(self, X: MatrixLike, *, owner: str = "encode") -> np.ndarray:
        """Return the input vectors, checked and dense."""
        return as_dense(self._checked(X, owner))

    def decode(self, Z: ArrayLike, *, owner: str = "decode") -> np.ndarray:
        """Rebuild vectors from the first coordinates of their codes; the width of `Z` is the prefix length."""
        if self.decoder is None:
            raise InvalidInputError(
                f"{owner} has no meaning for objective '{self.record.objective}': it has no decoder."
            )
        codes = check_matrix(Z, owner, "Z")
        k = check_prefix(codes.shape[1], self.d, owner)
        origin = self.mean if self.origin is None else self.origin
        X: np.ndarray = codes @ self.decoder[:, :k].T.astype(codes.dtype) + origin.astype(codes.dtype)
        return X

    def read_out(self, X: MatrixLike, k: int | None = None, *, owner: str = "predict") -> np.ndarray:
        """Return scores of the objective's own head on the first `k` coordinates: targets, or one column a class."""
        if self.head is None:
            raise InvalidInputError(f"{owner} has no meaning for objective '{self.record.objective}': it has no head.")
        return self.head.scores(self.encode(X, k, owner=owner))

    def __getitem__(self, prefix: slice) -> FittedEncoder:
        """Return the encoder of the first k coordinates, sharing memory with this one."""
        if not isinstance(prefix, slice) or prefix.start not in (None, 0) or prefix.step not in (None, 1):
            raise InvalidInputError(
                f"An encoder is cut as encoder[:k]: only prefixes have a meaning. Got [{prefix!r}]."
            )
        k = check_prefix(prefix.stop, self.d, "encoder[:k]")
        return replace(
            self,
            components=self.components[:k],
            spectrum=self.spectrum[:k],
            decoder=None if self.decoder is None else self.decoder[:, :k],
            head=None if self.head is None else self.head.cut(k),
            pinned=min(self.pinned, k),
            # A cut code that is brought to unit norm is another code, with cells of its own.
            cells=None if self.cells is None or self.normalized else self.cells.cut(k),
            profile=None if self.profile is None else self.profile.cut(k),
        )

    def _checked(self, X: MatrixLike, owner: str) -> np.ndarray | SparseMatrix:
        if not is_sparse(X):
            return check_matrix(X, owner, width=self.p)
        matrix: SparseMatrix = X
        if matrix.shape[1] != self.p:
            raise InvalidInputError(f"{owner} takes 'X' with {self.p} columns. Got {matrix.shape[1]}.")
        matrix = matrix.tocsr()
        with np.errstate(invalid="ignore"):  # zero times NaN or infinity is NaN, in the row that holds it
            check_finite((matrix @ np.zeros(self.p))[:, None], owner)
        return matrix

    def from_basis(self, basis: np.ndarray) -> FittedEncoder:
        """Return the encoder in full coordinates, when this one was fitted in those of an orthonormal basis.

        The sign rule applies to full coordinates, so signs are decided again; decoder and head are flipped with them.
        """
        components = self.components @ basis.T
        flip = signed(components)
        return replace(
            self,
            components=components * flip[:, None],
            mean=basis @ self.mean,
            query_mean=basis @ self.query_mean,
            decoder=None if self.decoder is None else basis @ self.decoder * flip,
            head=None if self.head is None else self.head.scaled(flip),
            sample=None if self.sample is None else {**self.sample, **projected({"X": self.sample["X"]}, basis.T)},
        )

    # -- bytes -----------------------------------------------------------------------------------------------

    def quantizer(
        self,
        bytes: int | None = None,
        metric: str = "cosine",
        *,
        rows: MatrixLike | None = None,
        queries: MatrixLike | None = None,
        tau: float | None = None,
        shared_by: int | None = None,
    ) -> EmbeddedQuantizer:
        """Return a quantizer of vectors as bytes that can be cut anywhere; see `EmbeddedQuantizer`.

        Parameters
        ----------
        bytes : int, optional
            Of a stored code; None: all that lower its error, one for each coordinate at most.
        metric : {"cosine", "inner_product", "l2"}
            What searches compute from the bytes; the bytes themselves are the same for all.
        rows : array-like of shape (n, p), optional
            Vectors to fit the cells on, of which a bounded sample is used, in place of those that the encoder has from
            its fit.
        queries : array-like of shape (m, p), optional
            Vectors of queries: bits then go where queries look. Without them, documents stand for queries.
        tau : float, optional
            How much so: errors are weighted by this power of the second moment of each coordinate. If not given,
            chosen on held-out queries, or 1/3 where documents stand for them.
        shared_by : int, optional
            Rows of all stores that will share the model. Cells are then fitted for the fewest bytes in all
            (`EmbeddedQuantizer.bytes_in_all`): only codebooks that so many rows pay for. If not given, what is stored
            once costs nothing. Needs `rows`, or an encoder whose cells have not been asked for.

        Returns
        -------
        EmbeddedQuantizer
            Its `encoder`, when saved, gives the same quantizer again.
        """
        check_choice(metric, METRICS, "metric", "quantizer")
        made, documents = self._with_cells(rows, shared_by)
        assert made.cells is not None
        power = None if tau is None else check_tau(tau)
        quantizer = EmbeddedQuantizer(made, made.cells.at(bytes), metric)
        if queries is not None:
            weights = query_weights(quantizer, queries, documents, power)
        elif power is not None:
            weights = document_weights(made.cells, power)
        else:
            return quantizer
        cells = made.cells.weighted(weights)
        return EmbeddedQuantizer(replace(made, cells=cells), cells.at(bytes), metric)

    def with_cells(self, rows: MatrixLike | None = None) -> FittedEncoder:
        """Return the encoder with its cells, fitted now if they have not been asked for, or on `rows`."""
        return self if self.cells is not None and rows is None else replace(self, cells=self._with_cells(rows)[0].cells)

    def _with_cells(
        self, rows: MatrixLike | None, shared_by: int | None = None
    ) -> tuple[FittedEncoder, MatrixLike | None]:
        """Return the encoder with cells, those it has, or of its sample, or of `rows`; and vectors of documents."""
        if shared_by is not None and (not is_int(shared_by) or shared_by < 1):
            raise bad_parameter("shared_by", "quantizer", "an int of at least 1, or None", shared_by)
        if rows is not None or (shared_by is not None and self.sample is not None):
            from firstk.moments.statistics import lowest_rows  # here, as those who read a model need none of it

            chosen = self.sample if rows is None else lowest_rows({"X": self._checked(rows, "quantizer")})
            assert chosen is not None
            return replace(self, cells=self._cells_of(chosen, shared_by), sample=None), chosen["X"]
        if shared_by is not None:
            raise InvalidInputError(
                "Codebooks are chosen for the rows that share them when they are fitted, and this encoder has no rows "
                "to fit on: quantizer(bytes, rows=X, shared_by=n), with some thousand vectors."
            )
        cells = self.cells if self.cells is not None else self._sampled_cells
        if cells is None:
            raise InvalidInputError(
                f"This encoder of {self.d} coordinates has no cells to put bits into: it was saved without "
                "them, or it was cut and brings codes to unit norm. Fit it again (firstk fit), or give vectors like "
                "those of its fit, some thousand of them: quantizer(bytes, rows=X), or once and for all "
                "FittedEncoder.load(path).with_cells(X).save(path)."
            )
        return replace(self, cells=cells, sample=None), None if self.sample is None else self.sample["X"]

    @cached_property
    def _sampled_cells(self) -> Embedded | None:
        return None if self.sample is None else self._cells_of(self.sample)

    def _cells_of(self, sample: Mapping[str, Rows], shared_by: int | None = None) -> Embedded:
        """Return cells of the codes of some rows, summed in float64: on any processor they are nearly the same.

        Codes that are not searched, because they learned from scored pairs, have no codebooks: the order of all pairs,
        near and far, is kept better without (figures in docs/decisions/bits.md).
        """
        X = sample["X"]

        def rows() -> Any:  # not kept: they are large
            return X.astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)

        weight = sample.get("weight")
        weight = None if weight is None else np.asarray(weight)
        codes, shared = self.encode(rows(), owner="quantizer"), np.inf if shared_by is None else float(shared_by)
        cells = Embedded.fitted(codes, weight, codebooks=self.record.searched, shared_by=shared)
        queries = sample.get("queries")
        if queries is None or np.shape(queries)[0] < FEWEST_QUERIES:
            return cells.weighted(document_weights(cells))
        quantizer = EmbeddedQuantizer(replace(self, cells=cells, sample=None), cells.at(None), SEARCH_METRIC)
        return cells.weighted(query_weights(quantizer, queries, rows(), None))

    def stored_once(self, axes: slice | np.ndarray) -> int:
        """Return the bytes, in float32, of what turns vectors into some coordinates: numbers that are not zero.

        Columns that are kept as they are have one such number for each axis.
        """
        parts = [self.components[axes], self.mean]
        parts += [] if np.array_equal(self.mean, self.query_mean) else [self.query_mean]
        parts += [] if self.network is None else self.network.arrays().values()
        return 4 * sum(int(np.count_nonzero(part)) for part in parts)

    def fingerprint(self, k: int | None = None) -> str:
        """Return a checksum of all that turns a stored vector into its first k coordinates.

        What is subtracted from queries is not among it: codes in a store stay what they are when it changes.
        """
        arrays = {"components": self.components[:k], "mean": self.mean}
        if self.network is not None:
            arrays |= self.network.arrays()
        digest = hashlib.sha256(str(self.normalized).encode())
        for name, array in sorted(arrays.items()):
            digest.update(f"{name} {array.shape} {array.dtype}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def stamp(self, k: int | None = None, *, column: str | None = None) -> CodeStamp:
        """Return the stamp of codes of the first k coordinates; `column` is that of the vectors."""
        record = self.record
        return CodeStamp(self.fingerprint(k), self.fingerprint(), record.source_model, column, record.fingerprint)

    # -- storage ---------------------------------------------------------------------------------------------

    def save(
        self,
        path: str | Path,
        *,
        curve: PrefixCurve | None = None,
        choice: Choice | None = None,
        source_model: str | None = None,
        extra: Mapping[str, str | bytes] | None = None,
    ) -> Path:
        """Write the encoder into the folder `path`, atomically.

        Parameters
        ----------
        path, curve, choice, source_model, extra
            As in :meth:`firstk.PrefixEncoder.save`; :func:`firstk.encoder.storage.folder.read_extra` reads further
            files.
        """
        config, arrays, card = self._stored(curve, choice, source_model)
        return write_model(path, config, arrays, card=card, extra=extra)

    def files(self) -> dict[str, bytes]:
        """Return the contents of the files that `save` writes, by name; `from_files` reads them."""
        config, arrays, card = self._stored(None, None, None)
        return model_files(config, arrays, card=card)

    def _stored(
        self, curve: PrefixCurve | None, choice: Choice | None, source_model: str | None
    ) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
        """Return the config and the arrays to save, and the card; what is not given is as it was loaded."""
        owner, record = "save", self.record
        if curve is not None and not isinstance(curve, PrefixCurve):
            raise bad_parameter("curve", owner, "a PrefixCurve or None", curve)
        if curve is not None and curve.k[-1] > self.d:
            raise bad_parameter("curve", owner, f"a curve of prefixes in [1, {self.d}] (the width)", curve)
        if source_model is not None and (not isinstance(source_model, str) or not source_model.strip()):
            raise bad_parameter("source_model", owner, "the name of a model, or None", source_model)
        if choice is not None and not isinstance(choice, Choice):
            raise bad_parameter("choice", owner, "a Choice or None", choice)
        record = replace(
            record,
            curve=curve or record.curve_up_to(self.d),
            # A choice goes with its curve: one that was loaded says nothing of a new one.
            choice=choice or (record.choice_up_to(self.d) if curve is None else None),
            source_model=source_model or record.source_model,
        )
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        # A number of numpy's, where n_components was one.
        shape = ModelShape(self.d, self.p, int(self.pinned), bool(self.normalized))
        if self.head is not None:
            names = _HEAD_ARRAYS + (_OWN_HEADS if self.head.own else ())
            arrays |= {f"head.{name}": getattr(self.head, name) for name in names}
            shape = replace(shape, classes=None if self.head.classes is None else tuple(self.head.classes.tolist()))
            if shape.classes is not None and not _of_one_kind(shape.classes):
                raise InvalidInputError(
                    "Only labels that are strings, numbers or booleans can be saved, all of one kind. Convert the "
                    "labels first."
                )
        if self.network is not None:
            arrays |= self.network.arrays()
            shape = replace(shape, **self.network.config())
        cells = self.cells if self.cells is not None else self._storable_cells
        if cells is not None:
            arrays |= cells.arrays()
        arrays |= {} if self.learned is None else {_LEARNED: self.learned}
        if self.profile is not None:
            arrays |= under(_PROFILE, self.profile.to_arrays())
        return to_plain(shape) | record.to_dict(), arrays, model_card(shape, record)

    @property
    def _storable_cells(self) -> Embedded | None:
        """The cells of the sample; None where its numbers are too large for them, which is no reason not to save."""
        try:
            return self._sampled_cells
        except InvalidInputError:
            return None

    @classmethod
    def load(cls, path: str | Path, module: nn.Module | None = None) -> FittedEncoder:
        """Read a model folder, checking format, checksum, shapes and numbers; `module` is a custom network's."""
        return cls._restored(*read_model(path), path, module)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], where: str, module: nn.Module | None = None) -> FittedEncoder:
        """Do what `load` does with files in memory; `where` stands for their path in error messages."""
        return cls._restored(*parse_model(files, where), where, module)

    @classmethod
    def _restored(
        cls, config: dict[str, Any], arrays: dict[str, np.ndarray], path: str | Path, module: nn.Module | None
    ) -> FittedEncoder:
        try:
            shape, record = read_config(config, path)
            network, d, p = _restored_network(shape, arrays, module, path), shape.d, shape.p
            own = {name: arrays.pop(name) for name in list(arrays) if name.startswith(("trees.", "codebooks."))}
            try:
                cells = Embedded.from_arrays(own, d) if own else None
            except ValueError as error:
                raise CorruptModelError(f"'{path}' is a damaged firstk model: {error}.") from None
            learned = arrays.pop(_LEARNED, None)
            if learned is not None and not are_hashes(learned):
                raise CorruptModelError(f"'{path}': array '{_LEARNED}' is not an ascending list of hashes of 64 bits.")
            described = within(arrays, _PROFILE)
            arrays = {name: part for name, part in arrays.items() if not name.startswith(f"{_PROFILE}.")}
            _check_arrays(arrays, d, p, path, network)
            head = None
            if "head.weight" in arrays:
                labels, q = shape.classes, len(arrays["head.offset"])
                if labels is not None and len(labels) != q:
                    raise CorruptModelError(f"'{path}' names {len(labels)} classes for a head of {q}.")
                if labels is not None and not _of_one_kind(labels):
                    raise CorruptModelError(
                        f"'{path}' is a damaged firstk model: its classes are not labels of one kind."
                    )
                parts = {name: arrays.get(f"head.{name}") for name in (*_HEAD_ARRAYS, *_OWN_HEADS)}
                head = Head(classes=None if labels is None else np.asarray(labels), **parts)  # type: ignore[arg-type]
            return cls(
                **{name: arrays.get(name) for name in _ARRAYS},  # type: ignore[arg-type]
                head=head,
                normalized=shape.normalized,
                pinned=shape.pinned,
                record=record,
                network=network,
                cells=cells,
                learned=learned,
                profile=RowProfile.from_arrays(described, d, p) if described else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            if isinstance(error, FirstkError):
                raise
            raise CorruptModelError(
                f"'{path}' is a damaged firstk model: config.json and its arrays do not fit ({error!r})."
            ) from None


def check_fitted(encoder: object, owner: str, name: str = "encoder") -> FittedEncoder:
    """Return `encoder` if it is a FittedEncoder, or the one of a fitted estimator; `name` is that of the parameter."""
    found = getattr(encoder, "encoder_", encoder)
    if not isinstance(found, FittedEncoder):
        raise bad_parameter(name, owner, "a FittedEncoder or a fitted PrefixEncoder", encoder)
    return found


def _restored_network(
    shape: ModelShape, arrays: dict[str, np.ndarray], module: nn.Module | None, path: str | Path
) -> Network | None:
    """Take a network's arrays out of `arrays` and rebuild it; None for linear encoders."""
    kind = shape.network
    if module is not None and kind in ("linear", "mlp"):
        raise InvalidInputError(
            f"'{path}' holds a model with {'a linear encoder' if kind == 'linear' else 'an MLP of firstk'}, which "
            "needs no module. Load it without one: PrefixEncoder.load(path)."
        )
    if kind == "linear":
        return None
    own = {name: arrays.pop(name) for name in list(arrays) if name.startswith("body.")}
    if kind == "mlp":
        if shape.layers is None or shape.unit_code is None:
            raise CorruptModelError(f"'{path}' is a damaged firstk model: it does not say what its network is.")
        return restore_mlp(own, path, layers=shape.layers, p=shape.p, normalize=shape.unit_code)
    if kind != "custom":
        raise CorruptModelError(f"'{path}' is a damaged firstk model: it has a network of unknown kind, {kind!r}.")
    if module is None:
        raise InvalidInputError(
            f"'{path}' was fitted with a network of your own, which is not saved as code. Build it again and pass it: "
            "PrefixEncoder.load(path, module=network)."
        )
    from firstk.encoder.torch_network import restore_module

    return restore_module(module, own, shape.p, path)


def _of_one_kind(labels: Sequence[Any]) -> bool:
    """Tell whether labels survive a round trip through an array: strings, or numbers, or booleans."""
    if len({type(label) for label in labels}) != 1 or not isinstance(labels[0], (str, int, float, bool)):
        return False
    return np.asarray(labels).dtype.kind in "Uiufb" and np.asarray(labels).tolist() == list(labels)


def _check_arrays(arrays: Mapping[str, np.ndarray], d: int, p: int, path: str | Path, network: Network | None) -> None:
    """Raise for missing, extra, misshapen or non-finite arrays."""
    width = p if network is None else network.width or arrays["components"].shape[-1]
    shapes: dict[str, tuple[int, ...]] = {"components": (d, width), "spectrum": (d,), "mean": (p,), "query_mean": (p,)}
    shapes |= {"decoder": (p, d), "origin": (p,)}
    q = arrays["head.offset"].shape[0] if "head.offset" in arrays else 0
    heads = {"head.weight": (q, d), "head.offset": (q,), "head.quadratic": (q, d)}
    wanted = {name: shape for name, shape in shapes.items() if name not in ("decoder", "origin") or name in arrays}
    if any(name.startswith("head.") for name in arrays):
        wanted |= heads
    if any(f"head.{name}" in arrays for name in _OWN_HEADS):
        own = min(d, len(arrays.get("head.own_offset", ())))
        wanted |= {"head.own_weight": (own, q, own), "head.own_offset": (own, q)}
    if set(arrays) != set(wanted):
        raise CorruptModelError(
            f"'{path}' holds arrays {sorted(arrays)}; a firstk model of this kind has {sorted(wanted)}."
        )
    for name, shape in wanted.items():
        part = arrays[name]
        if part.shape != shape or part.dtype != np.float64:
            raise CorruptModelError(
                f"'{path}': array '{name}' is {part.dtype}{part.shape}; float64{shape} was expected."
            )
        # The log share of a class without weight is minus infinity; nothing else may be.
        if not (np.isfinite(part) | ((name == "head.offset") & np.isneginf(part))).all():
            raise CorruptModelError(f"'{path}': array '{name}' holds NaN or infinity.")
