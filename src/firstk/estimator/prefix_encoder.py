"""PrefixEncoder: the scikit-learn estimator.

``__init__`` stores, ``fit`` checks, fitted names end in an underscore. What is fitted is a
:class:`firstk.encoder.fitted.FittedEncoder`; this class checks data for it and follows scikit-learn's conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn import config_context
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array, validate_data

from firstk import objectives
from firstk._base.array_types import MatrixLike, SparseMatrix
from firstk._base.checks import (
    bad_parameter,
    check_choice,
    check_matrix,
    check_verbose,
    check_weights,
    explaining_small_numbers,
    is_int,
    is_share,
)
from firstk._base.progress import Verbose, showing
from firstk._base.rows import sliceable
from firstk.contracts import Objective, ObjectiveName, Ordering, OrderingName, Solver, SolverName, Width
from firstk.data.task import Data, Pairs, Rows, Search
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP
from firstk.encoder.profile import RowProfile
from firstk.estimator._evaluated import Evaluated
from firstk.estimator.checking import NewRows, rows_and_labels
from firstk.estimator.familiar_names import FamiliarNames
from firstk.estimator.fit_profile import ENOUGH, profile_of_fit
from firstk.estimator.nested_parameters import NestedParameters
from firstk.estimator.problem import Problem, pose
from firstk.estimator.saving import SavedModels
from firstk.exceptions import FirstkError, IllegalCombinationError, InvalidInputError, MissingExtraError
from firstk.metrics.judgements import Qrels, judgement_rows
from firstk.metrics.profile import measure_profile
from firstk.metrics.search import check_judgements
from firstk.moments.pairs import PairMoments, check_pairs
from firstk.moments.statistics import RowSample, Statistics, sample_of_documents
from firstk.moments.targets import check_target, one_column

if TYPE_CHECKING:
    import faiss
    import torch
    from numpy.typing import ArrayLike

    from firstk.data.files import VectorTable
    from firstk.encoder.quantizer import EmbeddedQuantizer
    from firstk.estimator.fit_files import Stream

    Method = TypeVar("Method")

    def available_if(check: Callable[[PrefixEncoder], bool]) -> Callable[[Method], Method]:
        """Say of scikit-learn's decorator, which has no types, that a method keeps its own."""

else:
    from sklearn.utils.metaestimators import available_if


def _has_partial_fit(self: PrefixEncoder) -> bool:
    """Tell whether moments of the rows are all that a fit needs; raise the reason where they are not."""
    try:
        problem = self._posed(pairs=False)
    except FirstkError:
        return True  # settings that mean nothing: the method itself raises their error
    try:
        problem.check_streamable("partial_fit")
    except MissingExtraError:
        return True  # likewise
    return True


def _has(part: str) -> Callable[[PrefixEncoder], bool]:
    """Return a check that the objective has a part: "decoder" or "head"."""

    def check(self: PrefixEncoder) -> bool:
        if not self.__sklearn_is_fitted__():
            return objectives.provides(self.objective, part)
        if getattr(self.encoder_, part) is None:
            objective = self.encoder_.config["objective"]
            raise AttributeError(f"Objective '{objective}' has no {part}, so this has no meaning for it.")
        return True

    return check


def _has_probabilities(self: PrefixEncoder) -> bool:
    """Tell whether scores of the head are log-probabilities of classes, up to a constant."""
    if not self.__sklearn_is_fitted__():
        return objectives.gives_probabilities(self.objective)
    objective = self.encoder_.config["objective"]
    if self.encoder_.head is None or not objectives.gives_probabilities(self.objective_):
        raise AttributeError(f"Objective '{objective}' gives no probabilities, so this has no meaning for it.")
    return True


class PrefixEncoder(
    Evaluated, SavedModels, FamiliarNames, ClassNamePrefixFeaturesOutMixin, TransformerMixin, NestedParameters
):
    """Learn a code whose first k coordinates are the best k-dimensional code, for every k at once.

    Parameters
    ----------
    n_components : int, float in (0, 1), "rank" or None
        Width d of the code. A share keeps the fewest coordinates that hold more of the sum of the spectrum: 0.95 keeps
        95 % of the variance with "reconstruction". "rank" keeps all coordinates that carry signal: the numerical rank,
        or C - 1 for "fisher".
        None does too, but from 64 coordinates on rounds down to a multiple of 8, which product quantizers can divide,
        where the coordinates dropped (seven at most) hold at most 0.1 % of the sum of the spectrum. Directions that
        classes or targets determine ("fisher", "classification", "regression") are all kept.
    objective : str or object
        What a good prefix is: "reconstruction", "fisher", "error_bound", "classification", "regression", "similarity",
        "mixture", "denoising", or an object with settings, such as ``Fisher(shrinkage="auto")``.
    ordering : str or object
        How coordinates get their order: "full_prefix", "unordered", "uniform_l2", "nonuniform_l2", "monotone_l1",
        "nested_dropout", "rotation", "variational", or an object such as ``SparsePrefix([8, 16, 32])``.
    solver : str or object
        "auto" takes a closed form whenever there is one, and trains otherwise; "gradient" always trains.
        ``ClosedForm(precision="float64")`` for float32 data whose smallest directions matter; ``Gradient(...)`` for
        settings of training.
    network : str or object
        "linear", "mlp", ``MLP(...)`` or a torch module; closed forms have linear encoders only.
    init : str or array of shape (d, p)
        Weights that training starts from: "auto" (the nearest pencil), "random", "small", or an array of independent
        rows. Networks that are not linear start with their own weights.
    device : str
        Where training runs: "auto", or a device of torch.
    random_state : int, optional
        Seed of training; closed forms draw nothing at random.
    verbose : bool or "auto"
        Show progress of training and of the choice of "auto" settings. "auto" shows what takes longer than two seconds,
        on a terminal or in a notebook.

    Attributes
    ----------
    components_ : ndarray of shape (d, p)
        Axes in order. The largest entry of each is positive.
    mean_ : ndarray of shape (p,)
    spectrum_ : ndarray of shape (d,)
        Eigenvalues of the objective's pencil, descending.
    decoder_ : ndarray of shape (p, d) or None
    classes_ : ndarray of shape (C,)
        Labels in sorted order, where the objective learns labels: the columns of ``predict_proba``.
    encoder_ : FittedEncoder
    objective_ : Objective
        With everything "auto" settled.
    solver_ : str
    n_components_ : int
    n_features_in_ : int

    Examples
    --------
    >>> from firstk import PrefixEncoder
    >>> from firstk.data import load_digits
    >>> digits = load_digits()
    >>> enc = PrefixEncoder(objective="fisher").fit(digits.X_train, digits.y_train)
    >>> enc.transform(digits.X_test).shape, enc[:3].transform(digits.X_test).shape
    ((360, 9), (360, 3))
    >>> curve = enc.curve(digits.X_test, digits.y_test, reference=(digits.X_train, digits.y_train))
    >>> curve.smallest(keep=0.9)
    5
    """

    def __init__(
        self,
        n_components: Width | float = None,
        *,
        objective: ObjectiveName | Objective = "reconstruction",
        ordering: OrderingName | Ordering = "full_prefix",
        solver: SolverName | Solver = "auto",
        network: Literal["linear", "mlp"] | MLP | torch.nn.Module = "linear",
        init: Literal["auto", "random", "small"] | ArrayLike = "auto",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: Verbose = "auto",
    ):
        self.n_components = n_components
        self.objective = objective
        self.ordering = ordering
        self.solver = solver
        self.network = network
        self.init = init
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(
        self, X: MatrixLike | Data | Stream, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> PrefixEncoder:
        """Fit on rows, with labels or targets where the objective needs them; or on what a task learns from.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n, p); or Rows, Pairs, Search or Stream
            Rows; of dask, an array, a data frame, or a bag of batches, each an X, an (X, y) or an (X, y, weight). Or
            ``task.train``: objectives that do not learn from pairs are fitted on the documents of a Search.
        y : array-like of shape (n,) or (n, q), optional
            Labels for "fisher", numbers for "regression", either for "mixture".
        sample_weight : array-like of shape (n,), optional
        """
        if isinstance(X, Data) or (hasattr(X, "chunks") and not hasattr(X, "shape")):
            return self._fit_task(X)  # type: ignore[arg-type]
        problem = self._pose()
        statistics = self._statistics_of_collections(problem, {"X": X, "y": y, "weight": sample_weight}, reset=True)
        if statistics is not None:
            return self._solve(problem, statistics)
        rows = self._checked_rows(problem, X, y, sample_weight, reset=True)
        with explaining_small_numbers(rows["X"]):
            self._hold(*problem.fit(rows))
        return self

    def _fit_task(self, train: Data | Stream) -> PrefixEncoder:
        """Fit on what a task learns from."""
        if isinstance(train, Rows):
            return self.fit(train.X, train.y, train.weight)
        if isinstance(train, Pairs):
            store = None if train.documents is None else sample_of_documents(np.asarray(train.documents))
            return self._fit_pairs(train.left, train.right, train.scores, store)
        if isinstance(train, Search):
            if self.takes_pairs:
                return self.fit_search(train.queries, train.documents, train.relevance)
            return self.fit(train.documents)
        from firstk.estimator.fit_files import fit_stream

        return fit_stream(self, train)

    @property
    def takes_pairs(self) -> bool:
        """Whether the objective learns from pairs where there are any: "similarity", unless it is told what to keep."""
        objective = objectives.resolve(self.objective)
        keeps = getattr(objective, "keep", "neighbors")
        return keeps == "neighbors" and objective.resolved(True).supervision == "pairs"

    @available_if(_has_partial_fit)
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> PrefixEncoder:
        """Take in more rows. Exact: any batching gives what ``fit`` on all rows gives.

        The cost is one pass over the batch; the encoder is solved when it is next asked for. Where training needs the
        rows themselves there is no such method, and a fitted encoder stays as it is.
        """
        self._check_learns_on()
        problem, reset = self._pose(), not self._started()
        problem.check_streamable("partial_fit")  # before rows are taken in that nothing could be solved from
        statistics = self._statistics_of_collections(problem, {"X": X, "y": y, "weight": sample_weight}, reset=reset)
        if statistics is None:
            statistics = problem.accumulate(self._checked_rows(problem, X, y, sample_weight, reset=reset))
        self._take_in(statistics)
        return self

    def fit_pairs(self, left: MatrixLike, right: MatrixLike, scores: ArrayLike | None = None) -> PrefixEncoder:
        """Fit objective "similarity" on pairs.

        Parameters
        ----------
        left, right : array-like of shape (n, p)
            Row i of one is like row i of the other: queries and documents, or two of a kind.
        scores : array-like of shape (n,), optional
            To what degree. None (or equal scores): all are positives.
        """
        return self._fit_pairs(left, right, scores)

    def _fit_pairs(
        self, left: MatrixLike, right: MatrixLike, scores: ArrayLike | None, documents: RowSample | None = None
    ) -> PrefixEncoder:
        """Fit on pairs, of a store of `documents` where these are known."""
        problem = self._pose(pairs=True)
        statistics = self._statistics_of_collections(
            problem, {"left": left, "right": right, "scores": scores}, reset=True
        )
        if statistics is not None:
            return self._solve(problem, statistics)
        self._hold(*problem.fit(self._checked_pairs(left, right, scores, reset=True), documents))
        return self

    def fit_search(
        self,
        queries: MatrixLike,
        documents: MatrixLike,
        relevance: ArrayLike | Qrels,
        *,
        query_ids: ArrayLike | None = None,
        document_ids: ArrayLike | None = None,
    ) -> PrefixEncoder:
        """Fit objective "similarity" on the pairs of a query and a document that is relevant to it.

        Quantizers, and the profile that `check` compares later documents with, are fitted on all documents (a sample of
        at most 8,192), not only on those that are in pairs.

        Parameters
        ----------
        queries, documents : array-like of shape (m, p) and (n, p)
        relevance, query_ids, document_ids
            As in `curve_search`. Documents of relevance 0 or less are not learned from.
        """
        left, right = (np.asarray(part) for part in (queries, documents))
        table = check_judgements(
            judgement_rows(relevance, query_ids, document_ids), len(right), len(left), "PrefixEncoder.fit_search"
        )
        positive = table[table[:, 2] > 0]
        store = sample_of_documents(check_matrix(right, "PrefixEncoder.fit_search"))
        return self._fit_pairs(left[positive[:, 0]], right[positive[:, 1]], None, store)

    def partial_fit_pairs(self, left: MatrixLike, right: MatrixLike, scores: ArrayLike | None = None) -> PrefixEncoder:
        """Take in more pairs; exact but for mined neighbors and "auto" choices, which see a fixed sample."""
        self._check_learns_on()
        problem, reset = self._pose(pairs=True), not self._started()
        problem.check_streamable("partial_fit_pairs")
        statistics = self._statistics_of_collections(
            problem, {"left": left, "right": right, "scores": scores}, reset=reset
        )
        if statistics is None:
            statistics = problem.accumulate(self._checked_pairs(left, right, scores, reset=reset))
        self._take_in(statistics)
        return self

    def merge(self, other: PrefixEncoder) -> PrefixEncoder:
        """Take in what another encoder of the same kind has seen, exactly as if its rows had been seen here."""
        if not isinstance(other, PrefixEncoder) or not other._started() or not self._started():
            raise InvalidInputError(
                "merge takes a PrefixEncoder that has seen data and holds its moments, into another: a fitted one, not "
                "one that was loaded or cut. To send moments to another machine: firstk.integrations.parts."
            )
        if not np.array_equal(getattr(self, "feature_names_in_", ()), getattr(other, "feature_names_in_", ())):
            raise InvalidInputError(
                "merge takes encoders of the same columns in the same order. The column names differ."
            )
        if objectives.resolve(self.objective) != objectives.resolve(other.objective):
            raise InvalidInputError(
                f"merge takes encoders of one objective. Got {self.objective!r} and {other.objective!r}."
            )
        if self._statistics.n_features != other._statistics.n_features:
            widths = f"{self._statistics.n_features} and {other._statistics.n_features}"
            raise InvalidInputError(f"merge takes encoders of one width. Got {widths} columns.")
        self._posed(pairs=self._learns_pairs()).check_streamable("merge")
        self._take_in(other._statistics)
        return self

    def _posed(self, pairs: bool) -> Problem:
        """Resolve the three axes; nothing is drawn at random."""
        width = self.n_components
        named = width is None or (isinstance(width, str) and width == "rank")
        if not named and not is_share(width) and (not is_int(width) or width < 1):
            expected = "a positive int, a share in (0, 1), 'rank' or None"
            raise bad_parameter("n_components", "PrefixEncoder", expected, width)
        return pose(self.objective, self.ordering, self.solver, self.n_components, network=self.network, pairs=pairs)

    def _pose(self, pairs: bool = False) -> Problem:
        """Resolve the three axes, and draw the seed where the solver trains."""
        problem = replace(self._posed(pairs), verbose=check_verbose(self.verbose, "PrefixEncoder"))
        if not problem.solver.trains:
            for name in ("init", "device"):
                check_choice(getattr(self, name), ("auto",), name, "PrefixEncoder with a closed form")
            return problem
        self._check_init(problem)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return replace(problem, init=self.init, device=self.device, seed=seed)

    def _check_init(self, problem: Problem) -> None:
        """Raise for an init that a network cannot take, and for a run that could never find its checkpoint again."""
        linear = isinstance(problem.network, str)
        if not linear and (not isinstance(self.init, str) or self.init not in ("auto", "random")):
            raise IllegalCombinationError(
                f"init={'an array' if not isinstance(self.init, str) else repr(self.init)} with a nonlinear network",
                "a network starts with the weights it was made with",
                "init='auto', and for a start of your own a torch module as network",
            )
        if getattr(problem.solver, "resume", False) and self.random_state is None:
            raise InvalidInputError(
                "Gradient(resume=True) needs a random_state, in the run that is stopped as in the one that goes on: "
                "with random_state=None every run draws a seed of its own. Set PrefixEncoder(random_state=0), say."
            )

    def _started(self) -> bool:
        return hasattr(self, "_statistics")

    def _learns_pairs(self) -> bool:
        return isinstance(self._statistics.moments, PairMoments)

    def _statistics_of_collections(
        self, problem: Problem, columns: Mapping[str, MatrixLike | None], *, reset: bool
    ) -> Statistics | None:
        """Return the statistics of dask collections, accumulated by their workers; None for data in memory."""
        engine = _engine_of(*columns.values())
        if engine is None:
            return None
        statistics: Statistics = engine.accumulate_collections(problem, columns)
        self._note_width(engine.like(next(iter(columns.values())), statistics.n_features), reset=reset)
        return statistics

    def _learn(self, statistics: Statistics) -> PrefixEncoder:
        """Take in statistics that were accumulated elsewhere, of columns without names."""
        self._note_width(np.empty((0, statistics.n_features)), reset=not self._started())
        self._take_in(statistics)
        return self

    def _note_width(self, like: np.ndarray, *, reset: bool) -> None:
        validate_data(self, like, reset=reset, skip_check_array=True)
        self._check_width(like.shape[1])

    def _solve(self, problem: Problem, statistics: Statistics) -> PrefixEncoder:
        """Solve the statistics of all rows, and keep them."""
        with explaining_small_numbers(getattr(statistics.moments, "mean", 0.0)):
            self._encoder = problem.solve(statistics)
        self._statistics = statistics
        return self

    def _hold(self, encoder: FittedEncoder, statistics: Statistics | None) -> None:
        """Keep what a fit gave; of sparse rows that stayed sparse there are no statistics."""
        self._encoder = encoder
        if statistics is not None:
            self._statistics = statistics
        else:
            self.__dict__.pop("_statistics", None)

    def _check_learns_on(self) -> None:
        """Raise an error for an encoder that is fitted and holds no moments."""
        if hasattr(self, "_encoder") and not self._started():
            raise InvalidInputError(
                "This encoder does not hold the moments of its data, so it cannot learn on: it was cut, loaded from a "
                "folder without them, or fitted on a large sparse matrix. Fit a new one; save(path, moments=True) "
                "keeps them with a model."
            )

    def _take_in(self, statistics: Statistics) -> None:
        self._check_learns_on()
        if not self._started():
            self._statistics = statistics
        elif type(self._statistics.moments) is not type(statistics.moments):
            raise InvalidInputError("An encoder learns from rows or from pairs, not from both. Fit two encoders.")
        else:
            self._statistics = self._statistics.merge(statistics)
        self.__dict__.pop("_encoder", None)

    def _checked_rows(
        self, problem: Problem, X: MatrixLike, y: ArrayLike | None, weight: ArrayLike | None, *, reset: bool
    ) -> dict[str, Any]:
        checked = self._checked_input(X, reset=reset)
        n, p = checked.shape
        self._check_width(p)
        rows: dict[str, Any] = {"X": checked, "weight": check_weights(weight, n, type(self).__name__)}
        if problem.objective.supervision != "rows":
            rows["y"] = check_target(y, problem.objective, n)
        return rows

    def _checked_pairs(
        self, left: MatrixLike, right: MatrixLike, scores: ArrayLike | None, *, reset: bool
    ) -> dict[str, Any]:
        (left, L), (right, R) = (_frame_side(side) for side in (left, right))
        L, R, s = check_pairs(L, R, scores, "PrefixEncoder.fit_pairs")
        validate_data(self, left, reset=reset, skip_check_array=True)
        validate_data(self, right, reset=False, skip_check_array=True)
        self._check_width(L.shape[1])
        return {"left": L, "right": R, "scores": s}

    def _check_width(self, p: int) -> None:
        if is_int(self.n_components) and self.n_components > p:
            expected = f"an int in [1, {p}] (the number of columns)"
            raise bad_parameter("n_components", "PrefixEncoder", expected, self.n_components)

    def _profile(self, held_out: Any = None) -> RowProfile | None:
        """Return the profile of the rows of the fit, or of held-out rows where there are enough; found once."""
        if isinstance(held_out, RowProfile):
            return held_out
        encoder = self.encoder_
        X, y = rows_and_labels(held_out, "held_out", "save")
        if X is not None and (rows := self._checked_input(X)).shape[0] >= ENOUGH:
            return NewRows(encoder, owner="save").update(rows, one_column(y)).profile()
        if encoder.profile is None and self._started():
            problem = self._posed(pairs=self._learns_pairs())
            found = profile_of_fit(encoder, problem, self.objective_, self._statistics)
            self._encoder = encoder = replace(encoder, profile=found)
        elif encoder.profile is None and encoder.sample is not None:
            sample = sliceable(encoder.sample["X"])
            found = measure_profile(encoder, sample) if sample.shape[0] >= ENOUGH else None
            self._encoder = encoder = replace(encoder, profile=found)
        return encoder.profile

    # -- what was fitted -------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoder") or self._started()

    @property
    def encoder_(self) -> FittedEncoder:
        """The fitted encoder, solved now if data have come in since."""
        if not hasattr(self, "_encoder"):
            if not self._started():
                raise NotFittedError(
                    "This PrefixEncoder has seen no data yet: call fit, partial_fit or fit_pairs first."
                )
            self._solve(self._pose(pairs=self._learns_pairs()), self._statistics)
        return self._encoder

    @property
    def components_(self) -> np.ndarray:
        """Axes in order, shape (d, p), in float64; codes of float32 rows are float32."""
        if self.encoder_.network is not None:
            raise AttributeError("components_ are the axes of a linear encoder; this one is a network: use transform.")
        return self.encoder_.components

    @property
    def optimality_gap_(self) -> float | None:
        """Share of the possible decrease of the loss that a fit misses; 0 for closed forms, None if unknown."""
        config = self.encoder_.config
        gap: float | None = config.get("optimality_gap", 0.0 if config["solver"] == "closed_form" else None)
        return gap

    @property
    def trace_(self) -> list[dict[str, float]]:
        """History of training: epoch, loss, seconds, distances to a closed form; empty for closed forms."""
        _ = self.encoder_
        return list(self._statistics.derived.get("trace", [])) if hasattr(self, "_statistics") else []

    @property
    def mean_(self) -> np.ndarray:
        """What is subtracted from a vector (from a document, for pairs)."""
        return self.encoder_.mean

    @property
    def spectrum_(self) -> np.ndarray:
        """Eigenvalues of the objective's pencil, descending; "error_bound": by how much coordinates lower the loss."""
        return self.encoder_.spectrum

    @property
    def decoder_(self) -> np.ndarray | None:
        """Decoder of shape (p, d), where the objective has one."""
        return self.encoder_.decoder

    @property
    def solver_(self) -> str:
        """Name of the solver that was used."""
        return str(self.encoder_.config["solver"])

    @property
    def objective_(self) -> Objective:
        """The objective with everything "auto" settled."""
        return objectives.settled(self.objective, self.encoder_.config)

    @property
    def n_components_(self) -> int:
        """Width of the code."""
        return self.encoder_.d

    @property
    def classes_(self) -> np.ndarray:
        """Labels that ``predict`` chooses among, sorted, where the objective learns labels."""
        head = self.encoder_.head
        if head is None or head.classes is None:
            objective = self.encoder_.config["objective"]
            raise AttributeError(f"classes_ are the labels of a classifier; objective '{objective}' learned none here.")
        return head.classes

    @property
    def _n_features_out(self) -> int:
        return self.encoder_.d

    # -- use -------------------------------------------------------------------------------------------------

    def transform(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Encode rows (documents, for pairs); with `k`, only the first k coordinates."""
        if k is not None and _get_output_config("transform", self)["dense"] != "default":
            raise InvalidInputError(
                "transform(X, k) gives arrays. For tables (set_output) cut first: encoder[:k].transform(X)."
            )
        return self._encode(X, k, "document", "PrefixEncoder.transform")

    def encode_document(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Encode documents, the right sides of pairs; the same as ``transform``."""
        return self._encode(X, k, "document", "PrefixEncoder.encode_document")

    def encode_query(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Encode queries, the left sides of pairs, centred by their own mean."""
        return self._encode(X, k, "query", "PrefixEncoder.encode_query")

    def _encode(self, X: MatrixLike, k: int | None, side: str, owner: str) -> np.ndarray:
        encoder, engine = self.encoder_, _engine_of(X)
        if engine is not None:
            validate_data(self, engine.like(X, encoder.p), reset=False, skip_check_array=True)
            codes: np.ndarray = engine.encode(encoder, X, k, side, owner)
            return codes
        with showing(self.verbose):
            return encoder.encode(self._checked_input(X), k, side=side, owner=owner)

    def _checked_input(self, X: MatrixLike, *, reset: bool = False) -> np.ndarray | SparseMatrix:
        """Check type, shape and column names; numbers are checked for NaN where they are first summed or used."""
        if _engine_of(X) is not None:
            raise InvalidInputError(
                "This takes data in memory, where a dask collection may not fit. Take a part of it: X[:n].compute()."
            )
        settings: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": False}
        found = _frame_rows(X)
        if found is None:
            return self._validated(X, reset=reset, accept_sparse="csr", **settings)
        rows, named = found
        if not named:
            return self._validated(rows, reset=reset, **settings)
        validate_data(self, X, reset=reset, skip_check_array=True)  # the names of the columns
        return check_array(rows, estimator=self, **settings)

    def _validated(self, X: MatrixLike, **settings: Any) -> np.ndarray | SparseMatrix:
        with config_context(array_api_dispatch=False):  # arrays of other libraries become numpy's
            checked: np.ndarray | SparseMatrix = validate_data(self, X, **settings)
            return checked

    def __getitem__(self, prefix: slice) -> PrefixEncoder:
        """Return an encoder of the first k coordinates: no refit, no copy of the axes."""
        cut = self.encoder_[prefix]
        short = PrefixEncoder(**self.get_params(deep=False) | {"n_components": cut.d})
        short._adopt(cut, self.n_features_in_, getattr(self, "feature_names_in_", None))
        if hasattr(self, "_sklearn_output_config"):
            short._sklearn_output_config = dict(self._sklearn_output_config)
        return short

    def _adopt(self, encoder: FittedEncoder, p: int, names: ArrayLike | None) -> None:
        self._encoder, self.n_features_in_ = encoder, p
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def quantizer(
        self,
        bytes: int | None = None,
        metric: str = "cosine",
        *,
        rows: MatrixLike | None = None,
        queries: MatrixLike | None = None,
        tau: float | None = None,
    ) -> EmbeddedQuantizer:
        """Return a quantizer of vectors as bytes that can be cut anywhere.

        Parameters are those of :meth:`firstk.encoder.fitted.FittedEncoder.quantizer`.

        Returns
        -------
        EmbeddedQuantizer
            With `encode`, `cut`, `decode`, `encode_query` and `scores`.

        Examples
        --------
        >>> from firstk import PrefixEncoder
        >>> from firstk.data import load_digits
        >>> X = load_digits().X_train
        >>> enc = PrefixEncoder().fit(X)
        >>> codes = enc.quantizer(bytes=16).encode(X)
        >>> bool((codes[:, :8] == enc.quantizer(bytes=8).encode(X)).all())
        True
        """
        given = [None if part is None else self._checked_input(part) for part in (rows, queries)]
        if rows is None:
            self._encoder = self.encoder_.with_cells()  # once, however often quantizers are asked for
        return self.encoder_.quantizer(bytes, metric, rows=given[0], queries=given[1], tau=tau)

    # -- readouts --------------------------------------------------------------------------------------------

    @available_if(_has("decoder"))
    def inverse_transform(self, Z: ArrayLike) -> np.ndarray:
        """Rebuild vectors from codes of any prefix length; where the objective has a decoder."""
        return self.encoder_.decode(Z, owner="PrefixEncoder.inverse_transform")

    @available_if(_has("head"))
    def predict(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Predict labels or targets from the first k coordinates by the objective's own head."""
        scores = self.encoder_.read_out(self._checked_input(X), k, owner="PrefixEncoder.predict")
        head = self.encoder_.head
        assert head is not None
        if head.classes is not None:
            labels: np.ndarray = head.classes[scores.argmax(axis=1)]
            return labels
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @available_if(_has_probabilities)
    def predict_proba(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Predict the probability of each class from the first k coordinates, (n, C); columns as in `classes_`.

        For "classification", softmax of the logits; for "fisher", the posterior of the Gaussian discriminant rule
        behind ``predict``, with the shares of the training rows as priors. Other objectives have none.
        """
        scores = self.encoder_.read_out(self._checked_input(X), k, owner="PrefixEncoder.predict_proba")
        probabilities: np.ndarray = softmax(scores.astype(np.float64), axis=1)
        return probabilities

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the logarithm of ``predict_proba``, without its underflow."""
        scores = self.encoder_.read_out(self._checked_input(X), k, owner="PrefixEncoder.predict_log_proba")
        logarithms: np.ndarray = log_softmax(scores.astype(np.float64), axis=1)
        return logarithms

    @available_if(_has_probabilities)
    def decision_function(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the score of each class from the first k coordinates, (n, C); of two classes the difference, (n,)."""
        scores = self.encoder_.read_out(self._checked_input(X), k, owner="PrefixEncoder.decision_function")
        return scores if scores.shape[1] != 2 else scores[:, 1] - scores[:, 0]

    # -- exports ---------------------------------------------------------------------------------------------

    def to_onnx(self, path: str | Path) -> Path:
        """Write the encoder as one ONNX file; see :func:`firstk.integrations.onnx.export`."""
        from firstk.integrations import onnx

        return onnx.export(self, path)

    def to_faiss(
        self,
        k: int | None = None,
        index: str = "Flat",
        *,
        documents: ArrayLike | VectorTable | None = None,
        ids: ArrayLike | None = None,
        metric: str = "auto",
        side: str | None = None,
        progress: bool = False,
    ) -> faiss.IndexPreTransform:
        """Build a faiss index that takes raw vectors; see :func:`firstk.integrations.faiss.to_faiss`."""
        from firstk.integrations.faiss import to_faiss

        return to_faiss(self, k, index, documents=documents, ids=ids, metric=metric, side=side, progress=progress)

    # -- scikit-learn ----------------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        objective = objectives.PUBLIC.get(self.objective) if isinstance(self.objective, str) else self.objective
        supervision = getattr(objective, "supervision", "rows")
        tags.target_tags.required = supervision not in ("rows", "pairs")
        tags.target_tags.multi_output = supervision in ("targets", "labels or targets")
        tags.target_tags.single_output = True
        if getattr(objective, "probabilities", False):
            tags.classifier_tags = ClassifierTags()  # needed by predict_proba; the estimator stays a transformer
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _frame_rows(X: object) -> tuple[np.ndarray, bool] | None:
    """Return the rows of a data frame or series, and whether columns are their coordinates; None for arrays."""
    series = hasattr(type(X), "to_frame") and hasattr(type(X), "name")
    if not series and not hasattr(type(X), "columns"):
        return None
    from firstk.data.files.vector_table import rows_of

    if not series:
        return rows_of(X)
    found = rows_of(X.to_frame("vectors"))  # type: ignore[attr-defined]
    return found if found is not None and not found[1] else (np.asarray(X), False)  # of numbers: one dimension


def _frame_side(side: MatrixLike) -> tuple[MatrixLike, MatrixLike]:
    """Return what carries the column names of one side of pairs, and its rows."""
    found = _frame_rows(side)
    if found is None:
        return side, side
    rows, named = found
    return (side if named else rows), rows


def _engine_of(*data: object) -> ModuleType | None:
    """Return the integration of collections that are not in memory, recognized by protocol; None for others."""
    if not any(hasattr(part, "__dask_graph__") for part in data):
        return None
    from firstk.integrations import dask

    return dask
