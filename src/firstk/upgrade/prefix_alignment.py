"""PrefixAlignment: the estimator that aligns the vectors of an old model and a new one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from firstk._base import arrays
from firstk._base.array_types import MatrixLike
from firstk._base.checks import (
    UnsavedMember,
    bad_parameter,
    check_matrix,
    check_verbose,
    check_weights,
    class_path,
    is_int,
)
from firstk._base.json_records import from_plain, settings_of, to_plain
from firstk._base.progress import Verbose, progress_bar
from firstk._base.rows import is_sparse
from firstk.encoder import read_extra_bytes
from firstk.exceptions import AlignmentWarning, CorruptModelError, InvalidInputError
from firstk.moments import CrossMoments, check_two_sides, chunk_rows
from firstk.upgrade.auto import AlignmentChoice, choose
from firstk.upgrade.contract import AlignmentMethod, MethodName
from firstk.upgrade.fitted import FittedAlignment
from firstk.upgrade.methods import AUTO, REGISTRY, Procrustes, ProcrustesRidge, resolve, restore
from firstk.upgrade.methods.procrustes import rotation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_OWNER = "PrefixAlignment"
MOMENTS = "moments.safetensors"


@dataclass(frozen=True, eq=False)
class _Solved:
    """What a fit leaves."""

    alignment: FittedAlignment
    method: AlignmentMethod
    choice: AlignmentChoice | None


class PrefixAlignment(BaseEstimator):
    """Align the vectors of two models, from rows that embed the same texts.

    Gives one ordered code of both models, whose first k coordinates are what they agree on most, and translations
    from either space into the other.

    Parameters
    ----------
    n_components : int, optional
        Width of the shared code; all coordinates if not given.
    method : str or object
        "procrustes", "ridge", "procrustes_ridge", "reduced_rank", "cca", "whitened_ridge", or an object with settings,
        such as ``CCA(shrinkage=0.3)``: closed forms all, which draw nothing at random. "auto" chooses among them and
        their settings on held-out pairs; the settings of a named method are chosen alike.
    verbose : bool or "auto"
        Show progress. "auto" shows what takes longer than two seconds, on a terminal or in a notebook.

    Attributes
    ----------
    alignment_ : FittedAlignment
        What was fitted, numpy only.
    n_components_ : int
    spectrum_ : ndarray of shape (d,)
        Agreement of each coordinate, descending.
    method_ : AlignmentMethod
        With everything "auto" settled.
    choice_ : AlignmentChoice or None
        What "auto" tried, with scores and errors, and why it chose what it chose; None where nothing was to choose.
    n_pairs_ : int

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> texts = rng.normal(size=(300, 8))
    >>> old, new = texts @ rng.normal(size=(8, 6)), texts @ rng.normal(size=(8, 10))
    >>> alignment = PrefixAlignment(method="cca").fit(old[:200], new[:200])
    >>> alignment.encode_old(old[200:], k=4).shape, alignment.encode_new(new[200:], k=4).shape
    ((100, 4), (100, 4))
    >>> alignment.old_to_new(old[200:]).shape
    (100, 10)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        method: MethodName | AlignmentMethod = "auto",
        verbose: Verbose = "auto",
    ):
        self.n_components = n_components
        self.method = method
        self.verbose = verbose

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(self, old: MatrixLike, new: MatrixLike, sample_weight: ArrayLike | None = None) -> PrefixAlignment:
        """Fit on pairs: row i of both is the same text.

        Parameters
        ----------
        old, new : array-like, memory map or dask array of shape (n, p) and (n, q)
            Vectors of the old model and of the new one. Rows of memory maps are read in blocks.
        sample_weight : array-like of shape (n,), optional
        """
        methods = self._methods()
        statistics = self._accumulated(old, new, sample_weight, "fit")
        self._solve(methods, statistics)
        self._statistics = statistics  # after it: a fit that fails leaves what was there before
        return self

    def partial_fit(self, old: MatrixLike, new: MatrixLike, sample_weight: ArrayLike | None = None) -> PrefixAlignment:
        """Take in more pairs. Exact: any batching gives what ``fit`` on all pairs gives.

        The cost is one pass over the batch; the alignment is solved when it is next asked for.
        """
        self._check_learns_on()
        return self._learn(self._accumulated(old, new, sample_weight, "partial_fit"))

    def merge(self, other: PrefixAlignment) -> PrefixAlignment:
        """Take in what another alignment has seen, exactly as if its pairs had been seen here."""
        self._check_learns_on()
        if not isinstance(other, PrefixAlignment) or not hasattr(other, "_statistics"):
            raise InvalidInputError(
                "merge takes a PrefixAlignment that has seen data and holds its moments: a fitted one, not one that "
                "was cut, or loaded without moments."
            )
        return self._learn(other._statistics)

    def _learn(self, statistics: CrossMoments) -> PrefixAlignment:
        if not hasattr(self, "_statistics"):
            self._statistics = CrossMoments()
        self._statistics.merge(statistics)
        if hasattr(self, "_solved"):
            del self._solved
        return self

    def _accumulated(
        self, old: MatrixLike, new: MatrixLike, sample_weight: ArrayLike | None, what: str
    ) -> CrossMoments:
        """Return the statistics of pairs: block by block, or by the workers of dask."""
        owner = f"PrefixAlignment.{what}"
        sides: Any = (old, new)
        if any(hasattr(side, "__dask_graph__") for side in sides):
            from firstk.integrations import dask

            return dask.accumulate_paired(sides[0], sides[1], sample_weight, owner)
        return accumulate(old, new, sample_weight, owner, check_verbose(self.verbose, _OWNER))

    def _solve(self, methods: list[AlignmentMethod], moments: CrossMoments) -> None:
        moments.check_enough("PrefixAlignment.fit")
        verbose = check_verbose(self.verbose, _OWNER)
        choice, method = None, methods[0]
        unit_old, unit_new = moments.unit_norms
        if len(methods) > 1 or len(method.candidates()) > 1:
            method, choice = choose(methods, moments, moments.sample, unit=unit_new, verbose=verbose)
        if not moments.correlated or (choice is not None and choice.at_chance):
            what = "their cross-covariance is no larger than that of unrelated rows would be"
            if choice is not None and choice.at_chance:
                what = (
                    f"on held-out pairs a text finds its own row at a mean reciprocal rank of {choice.own:.3f}, and in "
                    f"a random order at {choice.chance:.3f}"
                )
            _warn(
                f"Old and new vectors do not seem to be of the same texts: {what}. Check that row i of both is the "
                "same text, in the same order; or give more pairs."
            )
        solution = method.solve(moments)
        if method.name in (Procrustes.name, ProcrustesRidge.name):
            rank, most = round(np.square(rotation(moments)[0]).sum()), min(moments.p, moments.q)
            if rank < most:
                _warn(
                    f"A rotation of {most} directions was asked for, and {moments.rows:,} pairs determine {rank} of "
                    "them. What vectors have in the others is left out: give more pairs, or leave out columns that are "
                    "constant."
                )
        width = len(solution.spectrum)
        if self.n_components is not None and self.n_components > width:
            allowed = f"an int in [1, {width}] (what the two models share) or None"
            raise bad_parameter("n_components", _OWNER, allowed, self.n_components)
        config = {
            "method": method.name,
            "settings": settings_of(method),
            "own_class": None if REGISTRY.registered(method) else class_path(method),
            "pairs": moments.rows,
            "choice": None if choice is None else to_plain(choice),
        }
        solution = solution.cut(self.n_components or width)
        self._solved = _Solved(FittedAlignment(solution, unit_old, unit_new, config), method, choice)

    def _methods(self) -> list[AlignmentMethod]:
        if self.n_components is not None and (not is_int(self.n_components) or self.n_components < 1):
            raise bad_parameter("n_components", _OWNER, "a positive int or None", self.n_components)
        auto = isinstance(self.method, str) and self.method == "auto"
        return [resolve(method) for method in AUTO] if auto else [resolve(self.method)]

    # -- state -----------------------------------------------------------------------------------------------

    def _check_learns_on(self) -> None:
        """Raise for an alignment that holds no moments."""
        if hasattr(self, "_solved") and not hasattr(self, "_statistics"):
            raise InvalidInputError(
                "This PrefixAlignment was cut, or loaded without its moments, and cannot learn on. Save it with "
                "moments=True, or fit it again."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solved") or hasattr(self, "_statistics")

    def _solved_now(self) -> _Solved:
        """Return what was solved, solving it now if pairs have come in since."""
        if not hasattr(self, "_solved"):
            if not hasattr(self, "_statistics"):
                raise NotFittedError("This PrefixAlignment has seen no pairs yet: call fit or partial_fit first.")
            self._solve(self._methods(), self._statistics)
        return self._solved

    @property
    def alignment_(self) -> FittedAlignment:
        """The fitted alignment."""
        return self._solved_now().alignment

    @property
    def method_(self) -> AlignmentMethod:
        """The method, with everything "auto" settled."""
        return self._solved_now().method

    @property
    def choice_(self) -> AlignmentChoice | None:
        """What "auto" tried, and what it chose."""
        return self._solved_now().choice

    @property
    def n_components_(self) -> int:
        """Width of the shared code."""
        return self.alignment_.d

    @property
    def spectrum_(self) -> np.ndarray:
        """Agreement of each coordinate, descending."""
        return self.alignment_.spectrum

    @property
    def n_pairs_(self) -> int:
        """Number of pairs seen."""
        return int(self.alignment_.config["pairs"])

    # -- use -------------------------------------------------------------------------------------------------

    def encode_old(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the first `k` coordinates of the shared code of old vectors; all if not given.

        Compare codes of both sides by cosine. They are not scaled to unit norm, so they can be cut further.
        """
        return self.alignment_.encode_old(X, k)

    def encode_new(self, Q: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the first `k` coordinates of the shared code of new vectors; all if not given."""
        return self.alignment_.encode_new(Q, k)

    def old_to_new(self, X: MatrixLike) -> np.ndarray:
        """Translate old vectors into the space of the new model, with unit norm where its vectors have."""
        return self.alignment_.old_to_new(X)

    def new_to_old(self, Q: MatrixLike) -> np.ndarray:
        """Translate new vectors into the space of the old model, with unit norm where its vectors have."""
        return self.alignment_.new_to_old(Q)

    def __getitem__(self, prefix: slice) -> PrefixAlignment:
        """Return an alignment whose shared code is the first k coordinates: no refit. Translations stay."""
        cut = self.alignment_[prefix]
        short = PrefixAlignment(**self.get_params(deep=False) | {"n_components": cut.d})
        short._solved = replace(self._solved_now(), alignment=cut)
        return short

    # -- storage ---------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None, moments: bool = False) -> Path:
        """Write the alignment into the folder `path`, atomically: config.json, model.safetensors and README.md.

        Parameters
        ----------
        path : path
            A new or empty folder, or one that holds a firstk model, which is replaced.
        extra : mapping of str or bytes, optional
            What further files hold, by name.
        moments : bool
            Keep the moments of the pairs and their sample too, so that a loaded alignment can learn on.
        """
        fitted = self.alignment_
        if moments:
            self._check_learns_on()
            extra = dict(extra or {}) | {MOMENTS: arrays.to_bytes(self._statistics.to_arrays())}
        return fitted.save(path, extra=extra)

    @classmethod
    def load(cls, path: str | Path) -> PrefixAlignment:
        """Read an alignment from a folder. Nothing is unpickled; a damaged or foreign folder raises CorruptModelError.

        The loaded object has the method that was chosen, with its settings, as its parameter.
        """
        fitted = FittedAlignment.load(path)
        config = fitted.config
        try:
            choice = config.get("choice")
            record = None if choice is None else from_plain(AlignmentChoice, choice)
            own = config.get("own_class")
            method: Any = UnsavedMember("method", str(own)) if own else restore(config["method"], config["settings"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CorruptModelError(
                f"'{path}' is a damaged firstk alignment: its settings cannot be read ({error})."
            ) from None
        loaded = cls(method=method)
        loaded._solved = _Solved(fitted, method, record)
        payload = read_extra_bytes(path, MOMENTS)
        if payload is not None:
            stored, _ = arrays.from_bytes(payload, f"'{Path(path) / MOMENTS}'", "Save the alignment again.")
            loaded._statistics = CrossMoments.from_arrays(stored)
        return loaded


def accumulate(
    old: MatrixLike,
    new: MatrixLike,
    sample_weight: ArrayLike | None = None,
    owner: str = "accumulate",
    verbose: Verbose = False,
) -> CrossMoments:
    """Return the statistics of pairs, read in blocks of rows."""
    sides: list[Any] = []
    for name, side in (("old", old), ("new", new)):
        if is_sparse(side):
            raise InvalidInputError(
                f"{owner} takes dense vectors, and '{name}' is a sparse matrix. Give {name}.toarray(), or project it "
                "to fewer columns first."
            )
        # What can be read in blocks of rows stays as it is; slices of a frame may go by its labels.
        blocks = hasattr(side, "shape") and hasattr(side, "__getitem__") and not hasattr(side, "iloc")
        sides.append(side if blocks and side.shape else check_matrix(side, owner, name))  # type: ignore[union-attr]
    old, new = sides
    if len(old.shape) != 2 or len(new.shape) != 2 or len(old) != len(new) or 0 in (*old.shape, *new.shape):
        check_two_sides(old, new, owner)
    n = len(old)
    weight = check_weights(sample_weight, n, owner)
    whole, step = CrossMoments(), chunk_rows(old.shape[1] + new.shape[1])
    with progress_bar(n, "reading pairs", "row", verbose) as done:
        for start in range(0, n, step):
            rows = slice(start, start + step)
            part = None if weight is None else weight[rows]
            try:
                if part is None or part.any():
                    whole.merge(CrossMoments.sampled(old[rows], new[rows], part, owner))
            except InvalidInputError:
                check_two_sides(old, new, owner)  # names rows by their number in the whole
                raise
            done(min(step, n - start))
    return whole


def _warn(message: str) -> None:
    warnings.warn(message, AlignmentWarning, stacklevel=5)
