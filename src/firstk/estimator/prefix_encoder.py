"""PrefixEncoder: the scikit-learn estimator.

``__init__`` stores, ``fit`` checks, fitted names end in an underscore. What is fitted is a
:class:`firstk.encoder.fitted.FittedEncoder`; this class checks data for it and follows scikit-learn's conventions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn import config_context
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array, validate_data

from firstk import objectives, orderings
from firstk._base import arrays
from firstk._base.array_types import MatrixLike, SparseMatrix
from firstk._base.checks import (
    UnsavedMember,
    bad_parameter,
    check_matrix,
    check_prefix,
    check_weights,
    is_int,
)
from firstk._base.progress import Verbose, showing
from firstk._base.rows import as_dense, sliceable
from firstk.contracts import Objective, Ordering, Solver, Width
from firstk.data.task import Data, Pairs, Rows, Search
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP
from firstk.encoder.profile import RowProfile
from firstk.encoder.storage.folder import read_extra_bytes
from firstk.estimator.auto import MOST_ROWS
from firstk.estimator.check import TOLERANCE, CheckReport, NewRows, check_rows, rows_and_labels
from firstk.estimator.familiar_names import FamiliarNames
from firstk.estimator.fit_profile import ENOUGH, profile_of_fit
from firstk.estimator.nested_parameters import NestedParameters, parameters_of, saved_parameters
from firstk.estimator.problem import Problem, pose, settled
from firstk.estimator.query_mean import with_own_mean
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError, MissingExtraError
from firstk.metrics.curve import pair_metric, prefix_curve
from firstk.metrics.judgements import Qrels, judgement_rows
from firstk.metrics.profile import measure_profile
from firstk.metrics.search import check_judgements
from firstk.metrics.sklearn_scorer import score_of_rows
from firstk.metrics.threshold import Threshold, matched_threshold
from firstk.moments.pairs import PairMoments, check_pairs
from firstk.moments.statistics import RowSample, Statistics, lowest_rows, sample_of_documents
from firstk.moments.targets import check_target, one_column
from firstk.objectives import ObjectiveName
from firstk.orderings import OrderingName
from firstk.quality.choice import Choice, Point
from firstk.quality.curve import PrefixCurve
from firstk.quality.paired import CONFIDENCE
from firstk.solvers import SolverName

if TYPE_CHECKING:
    import faiss
    import torch
    from numpy.typing import ArrayLike
    from torch import nn

    from firstk.bits.quantizer import EmbeddedQuantizer
    from firstk.data.files import VectorTable
    from firstk.estimator.fit_files import Stream

    Method = TypeVar("Method")

    def available_if(check: Callable[[PrefixEncoder], bool]) -> Callable[[Method], Method]:
        """Say of scikit-learn's decorator, which has no types, that a method keeps its own."""

else:
    from sklearn.utils.metaestimators import available_if

# File of a model folder that holds the moments of the rows, where they were kept.
MOMENTS = "moments.safetensors"


def _has_partial_fit(self: PrefixEncoder) -> bool:
    """Tell whether moments of the rows are all that a fit needs; raise the reason where they are not."""
    try:
        problem = self.problem()
    except FirstkError:
        return True  # settings that mean nothing: the method itself raises their error
    with suppress(MissingExtraError):  # likewise
        problem.check_streamable("partial_fit")
    return True


def _has(part: str) -> Callable[[PrefixEncoder], bool]:
    """Return a check that the objective has a part: "decoder", "head", or "probabilities" of classes."""

    def check(self: PrefixEncoder) -> bool:
        if not self.__sklearn_is_fitted__():
            return objectives.provides(self.objective, part)
        encoder = self.encoder_
        if part != "probabilities":
            has = getattr(encoder, part) is not None
        else:
            has = encoder.head is not None and objectives.provides(self.objective_, part)
        if not has:
            raise AttributeError(
                f"Objective '{encoder.record.objective}' has no {part}, so this has no meaning for it."
            )
        return True

    return check


class PrefixEncoder(FamiliarNames, ClassNamePrefixFeaturesOutMixin, TransformerMixin, NestedParameters):
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
    7
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
        self,
        X: MatrixLike | Data | Stream,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        queries: ArrayLike | None = None,
    ) -> PrefixEncoder:
        """Fit on rows, with labels or targets where the objective needs them; or on what a task learns from.

        Parameters
        ----------
        X : array-like, sparse matrix or dask collection of shape (n, p); or Rows, Pairs, Search or Stream
            Rows; of dask, an array, a data frame, or a bag of batches, each an X, an (X, y) or an (X, y, weight). Or
            ``task.train``: objectives that do not learn from pairs are fitted on the documents of a Search, and so are
            all of them where nothing is judged.
        y : array-like of shape (n,) or (n, q), optional
            Labels for "fisher", numbers for "regression", either for "mixture".
        sample_weight : array-like of shape (n,), optional
        queries : array-like of shape (m, p), optional
            Queries of a log, which nobody has judged; a hundred or more. Their own mean is subtracted in `encode_query`
            where held-out ones of them then find more of the full-width neighbors, and embedded bits go where
            they look. At most 8,192 of them are kept.
        """
        if isinstance(X, (Rows, Pairs, Search)) and (y is not None or sample_weight is not None):
            raise InvalidInputError(
                "PrefixEncoder.fit takes y and sample_weight with an array: Rows(X, y, weight) holds its own, and "
                "Pairs and Search have none."
            )
        if isinstance(X, Search):
            if X.relevance is None:
                queries = X.queries if queries is None else queries
            elif self.takes_pairs:
                return self.fit_search(X.queries, X.documents, X.relevance)
            X = Rows(X.documents)
        if hasattr(X, "chunks") and not hasattr(X, "shape"):
            from firstk.estimator.fit_files import fit_stream

            return fit_stream(self, X, queries=queries)  # type: ignore[arg-type]
        data = X if isinstance(X, (Rows, Pairs)) else Rows(X, y, sample_weight)  # type: ignore[arg-type]
        return self.fit_problem(self.problem(pairs=isinstance(data, Pairs)).seeded(), data, queries)

    def fit_problem(self, problem: Problem, data: Rows | Pairs, queries: ArrayLike | None = None) -> PrefixEncoder:
        """Fit on rows or pairs by a problem that was made of this encoder: what ``fit`` does after that.

        Parameters
        ----------
        problem : Problem
            As :meth:`problem` makes it, seeded, and maybe with processes that share the rows.
        data : Rows or Pairs
        queries : array-like of shape (m, p), optional
            As in ``fit``.
        """
        given = _checked_data(self, problem, data, reset=True)
        asked = self._sampled_queries(queries)
        if isinstance(given, Statistics):
            given.queries = asked
            self._encoder, self._statistics = problem.solve(given), given
            return self
        documents = None
        if isinstance(data, Pairs) and data.documents is not None:
            documents = sample_of_documents(check_matrix(data.documents, "PrefixEncoder.fit_search"))
        self._encoder, statistics = problem.fit(given, documents, asked)
        self.__dict__.pop("_statistics", None)
        if statistics is not None:  # sparse rows that stayed sparse have none
            self._statistics = statistics
        return self

    @property
    def takes_pairs(self) -> bool:
        """Whether the objective learns from pairs where there are any: "similarity", unless it is told what to keep."""
        objective = objectives.resolve(self.objective)
        keeps = getattr(objective, "keep", "neighbors")
        return keeps == "neighbors" and objective.resolved(True).supervision == "pairs"

    @available_if(_has_partial_fit)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        queries: ArrayLike | None = None,
    ) -> PrefixEncoder:
        """Take in more rows. Exact: any batching gives what ``fit`` on all rows gives.

        The cost is one pass over the batch; the encoder is solved when it is next asked for. Where training needs the
        rows themselves there is no such method, and a fitted encoder stays as it is. Queries may come in any batch.
        """
        return self._learn(Rows(X, y, sample_weight), "partial_fit", queries)  # type: ignore[arg-type]

    def with_queries(self, queries: ArrayLike, rows: MatrixLike | None = None) -> Self:
        """Return this encoder for queries of a log: codes of documents stay as they are, those of queries may change.

        The queries' own mean, shrunken, is subtracted from queries where held-out ones of them then find more of the
        full-width neighbors.

        Parameters
        ----------
        queries : array-like of shape (m, p)
            A hundred or more; at most 8,192 of them are looked at.
        rows : array-like of shape (n, p), optional
            Documents to look among, some thousand; needed where the encoder was loaded, and holds none.

        Examples
        --------
        >>> import numpy as np
        >>> from firstk import PrefixEncoder
        >>> rng = np.random.default_rng(0)
        >>> documents = rng.normal(size=(500, 16)) / np.arange(1, 17)
        >>> queries = documents[:200] + 0.1 * rng.normal(size=(200, 16)) + 1.0
        >>> enc = PrefixEncoder().fit(documents)
        >>> asked = enc.with_queries(queries)
        >>> bool((asked.transform(documents) == enc.transform(documents)).all())
        True
        """
        encoder = self.encoder_
        asked = check_matrix(queries, "with_queries", "queries", width=self.n_features_in_)
        if rows is None and encoder.sample is None:
            raise InvalidInputError(
                "with_queries needs documents to search, and a loaded encoder has none. Give some thousand, "
                "with_queries(queries, rows=X)."
            )
        found = {"X": _checked_rows(self, rows)} if rows is not None else encoder.sample
        assert found is not None
        if self.objective_.conventions.centring != "none":
            documents = as_dense(sliceable(lowest_rows({"X": found["X"]})["X"])[:MOST_ROWS])
            encoder = with_own_mean(encoder, sample_of_documents(asked)["X"], documents)
        return self.with_encoder(encoder)

    def _sampled_queries(self, queries: ArrayLike | None) -> RowSample | None:
        if queries is None:
            return None
        asked = check_matrix(queries, "PrefixEncoder.fit", "queries", width=self.n_features_in_)
        return sample_of_documents(asked)

    def fit_pairs(self, left: MatrixLike, right: MatrixLike, scores: ArrayLike | None = None) -> PrefixEncoder:
        """Fit objective "similarity" on pairs.

        Parameters
        ----------
        left, right : array-like of shape (n, p)
            Row i of one is like row i of the other: queries and documents, or two of a kind.
        scores : array-like of shape (n,), optional
            To what degree. None (or equal scores): all are positives.
        """
        return self.fit(Pairs(left, right, scores))  # type: ignore[arg-type]

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
        return self.fit(Pairs(left[positive[:, 0]], right[positive[:, 1]], documents=right))

    def partial_fit_pairs(self, left: MatrixLike, right: MatrixLike, scores: ArrayLike | None = None) -> PrefixEncoder:
        """Take in more pairs; exact but for mined neighbors and "auto" choices, which see a fixed sample."""
        return self._learn(Pairs(left, right, scores), "partial_fit_pairs")  # type: ignore[arg-type]

    def merge(self, other: PrefixEncoder) -> PrefixEncoder:
        """Take in what another encoder of the same kind has seen, exactly as if its rows had been seen here."""
        if not isinstance(other, PrefixEncoder) or other.learns_from is None or self.learns_from is None:
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
        self.problem(pairs=self.learns_from is Pairs).check_streamable("merge")
        return self._learn(other._statistics, "merge")

    def learn(self, statistics: Statistics, queries: ArrayLike | None = None) -> PrefixEncoder:
        """Take in statistics that were accumulated elsewhere, of columns without names, and queries as ``fit`` does."""
        _note_columns(self, np.empty((0, statistics.n_features)), reset=self.learns_from is None)
        return self._learn(statistics, "learn", queries)

    def _learn(self, data: Rows | Pairs | Statistics, what: str, queries: ArrayLike | None = None) -> PrefixEncoder:
        """Take in data, or statistics of some; the encoder is solved when it is next asked for."""
        self._check_learns_on()
        if not isinstance(data, Statistics):
            problem = self.problem(pairs=isinstance(data, Pairs)).seeded()
            problem.check_streamable(what)  # before rows are taken in that nothing could be solved from
            given = _checked_data(self, problem, data, reset=self.learns_from is None)
            data = given if isinstance(given, Statistics) else problem.accumulate(given)
        if queries is not None:
            data.queries = self._sampled_queries(queries)
        if self.learns_from is None:
            self._statistics = data
        elif type(self._statistics.moments) is not type(data.moments):
            raise InvalidInputError("An encoder learns from rows or from pairs, not from both. Fit two encoders.")
        else:
            self._statistics = self._statistics.merge(data)
        self.__dict__.pop("_encoder", None)
        return self

    def problem(self, *, pairs: bool = False) -> Problem:
        """Return what a fit solves: the three axes, resolved. Nothing is drawn at random, and no data are looked at."""
        return pose(
            self.objective,
            self.ordering,
            self.solver,
            self.n_components,
            network=self.network,
            pairs=pairs,
            init=self.init,
            device=self.device,
            random_state=self.random_state,
            verbose=self.verbose,
        )

    @property
    def learns_from(self) -> type[Rows] | type[Pairs] | None:
        """What the moments are of that this encoder holds, Rows or Pairs; None where it holds none."""
        if not hasattr(self, "_statistics"):
            return None
        return Pairs if isinstance(self._statistics.moments, PairMoments) else Rows

    def _check_learns_on(self) -> None:
        """Raise an error for an encoder that is fitted and holds no moments."""
        if hasattr(self, "_encoder") and self.learns_from is None:
            raise InvalidInputError(
                "This encoder does not hold the moments of its data, so it cannot learn on: it was cut, loaded from a "
                "folder without them, or fitted on a large sparse matrix. Fit a new one; save(path, moments=True) "
                "keeps them with a model."
            )

    def _profile(self, held_out: Any = None) -> RowProfile | None:
        """Return the profile of the rows of the fit, or of held-out rows where there are enough; found once."""
        if isinstance(held_out, RowProfile):
            return held_out
        encoder = self.encoder_
        X, y = rows_and_labels(held_out, "held_out", "save")
        if X is not None and (rows := _checked_rows(self, X)).shape[0] >= ENOUGH:
            return NewRows(encoder, owner="save").update(rows, one_column(y)).profile()
        if encoder.profile is None and self.learns_from is not None:
            problem = self.problem(pairs=self.learns_from is Pairs)
            found = profile_of_fit(encoder, problem, self.objective_, self._statistics)
            self._encoder = encoder = replace(encoder, profile=found)
        elif encoder.profile is None and encoder.sample is not None:
            sample = sliceable(encoder.sample["X"])
            found = measure_profile(encoder, sample) if sample.shape[0] >= ENOUGH else None
            self._encoder = encoder = replace(encoder, profile=found)
        return encoder.profile

    # -- what was fitted -------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoder") or self.learns_from is not None

    @property
    def encoder_(self) -> FittedEncoder:
        """The fitted encoder, solved now if data have come in since."""
        if not hasattr(self, "_encoder"):
            if self.learns_from is None:
                raise NotFittedError(
                    "This PrefixEncoder has seen no data yet: call fit, partial_fit or fit_pairs first."
                )
            self._encoder = self.problem(pairs=self.learns_from is Pairs).seeded().solve(self._statistics)
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
        record = self.encoder_.record
        return 0.0 if record.solver == "closed_form" else record.optimality_gap

    @property
    def trace_(self) -> list[dict[str, float]]:
        """History of training: epoch, loss, seconds, distances to a closed form; empty for closed forms."""
        _ = self.encoder_
        return list(self._statistics.trace) if hasattr(self, "_statistics") else []

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
        return self.encoder_.record.solver

    @property
    def objective_(self) -> Objective:
        """The objective with everything "auto" settled."""
        return settled(self.objective, self.encoder_.record)

    @property
    def n_components_(self) -> int:
        """Width of the code."""
        return self.encoder_.d

    @property
    def classes_(self) -> np.ndarray:
        """Labels that ``predict`` chooses among, sorted, where the objective learns labels."""
        head = self.encoder_.head
        if head is None or head.classes is None:
            objective = self.encoder_.record.objective
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
            return encoder.encode(_checked_rows(self, X), k, side=side, owner=owner)

    def __getitem__(self, prefix: slice) -> Self:
        """Return an encoder of the first k coordinates: no refit, no copy of the axes."""
        short = self.with_encoder(self.encoder_[prefix])
        short.n_components = short.encoder_.d
        return short

    def with_encoder(self, encoder: FittedEncoder) -> Self:
        """Return an estimator with these parameters around another fitted encoder; it holds no moments."""
        other = copy(self)
        other.__dict__.pop("_statistics", None)
        other._encoder, other.n_features_in_ = encoder, encoder.p
        return other

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
        given = [None if part is None else _checked_rows(self, part) for part in (rows, queries)]
        if rows is None and shared_by is None:
            self._encoder = self.encoder_.with_cells()  # once, however often quantizers are asked for
        return self.encoder_.quantizer(bytes, metric, rows=given[0], queries=given[1], tau=tau, shared_by=shared_by)

    # -- readouts --------------------------------------------------------------------------------------------

    @available_if(_has("decoder"))
    def inverse_transform(self, Z: ArrayLike) -> np.ndarray:
        """Rebuild vectors from codes of any prefix length; where the objective has a decoder."""
        return self.encoder_.decode(Z, owner="PrefixEncoder.inverse_transform")

    @available_if(_has("head"))
    def predict(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Predict labels or targets from the first k coordinates by the objective's own head."""
        scores = self.encoder_.read_out(_checked_rows(self, X), k, owner="PrefixEncoder.predict")
        head = self.encoder_.head
        assert head is not None
        if head.classes is not None:
            labels: np.ndarray = head.classes[scores.argmax(axis=1)]
            return labels
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @available_if(_has("probabilities"))
    def predict_proba(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Predict the probability of each class from the first k coordinates, (n, C); columns as in `classes_`.

        For "classification", softmax of the logits; for "fisher", the posterior of the Gaussian discriminant rule
        behind ``predict``, with the shares of the training rows as priors. Other objectives have none.
        """
        scores = self.encoder_.read_out(_checked_rows(self, X), k, owner="PrefixEncoder.predict_proba")
        probabilities: np.ndarray = softmax(scores.astype(np.float64), axis=1)
        return probabilities

    @available_if(_has("probabilities"))
    def predict_log_proba(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the logarithm of ``predict_proba``, without its underflow."""
        scores = self.encoder_.read_out(_checked_rows(self, X), k, owner="PrefixEncoder.predict_log_proba")
        logarithms: np.ndarray = log_softmax(scores.astype(np.float64), axis=1)
        return logarithms

    @available_if(_has("probabilities"))
    def decision_function(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the score of each class from the first k coordinates, (n, C); of two classes the difference, (n,)."""
        scores = self.encoder_.read_out(_checked_rows(self, X), k, owner="PrefixEncoder.decision_function")
        return scores if scores.shape[1] != 2 else scores[:, 1] - scores[:, 0]

    # -- evaluation -----------------------------------------------------------------------------------------

    def curve(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        reference: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
        metric: str = "auto",
        ks: ArrayLike | None = None,
        confidence: float | None = None,
    ) -> PrefixCurve:
        """Score every prefix from one encode.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows to evaluate on; held-out rows, for an honest answer.
        y : array-like, optional
            Their labels or targets, where the metric needs them.
        reference : array-like or tuple (X, y), optional
            Rows among which neighbors are looked for, or on which readouts are fitted.
        metric : str
            "auto": the objective's own. Others: see :data:`firstk.metrics.curve.METRICS`.
        ks : sequence of int, optional
            Prefix lengths; all if not given.
        confidence : float in (0, 1), optional
            Of the bootstrap intervals over rows that the curve then has: 0.95, say.
        """
        if isinstance(reference, tuple) and len(reference) != 2:
            raise bad_parameter("reference", "PrefixEncoder.curve", "X or (X, y)", f"a tuple of {len(reference)}")
        X_ref, y_ref = reference if isinstance(reference, tuple) else (reference, None)
        encoder = self.encoder_
        among = None if X_ref is None else Rows(_checked_rows(self, X_ref), one_column(y_ref))
        data = Rows(_checked_rows(self, X), one_column(y), reference=among)
        return prefix_curve(encoder, data, metric, ks, confidence=confidence, verbose=self.verbose)

    def curve_pairs(
        self,
        left: ArrayLike,
        right: ArrayLike,
        scores: ArrayLike | None = None,
        *,
        metric: str = "auto",
        ks: ArrayLike | None = None,
        confidence: float | None = None,
    ) -> PrefixCurve:
        """Score every prefix on pairs: Spearman when scores differ, recall@10 of partners when they are positives."""
        data = Pairs(left, right, scores)
        metric = pair_metric(data) if metric == "auto" else metric
        return prefix_curve(self.encoder_, data, metric, ks, confidence=confidence, verbose=self.verbose)

    def curve_search(
        self,
        queries: ArrayLike,
        documents: ArrayLike,
        relevance: ArrayLike | Qrels | None = None,
        *,
        query_ids: ArrayLike | None = None,
        document_ids: ArrayLike | None = None,
        metric: str = "auto",
        query_weight: ArrayLike | None = None,
        query_field: ArrayLike | None = None,
        document_field: ArrayLike | None = None,
        ks: ArrayLike | None = None,
        confidence: float | None = None,
    ) -> PrefixCurve:
        """Score every prefix by searches among all documents: by judgements, or without any by full-width neighbors.

        Parameters
        ----------
        queries, documents : array-like of shape (m, p) and (n, p)
        relevance : array-like of shape (j, 3), or mapping, optional
            Rows (query, document, relevance), or of each query a mapping from documents to relevance. None: queries of
            a log, which nobody has judged.
        query_ids, document_ids : array-like of shape (m,) and (n,), optional
            The ids by which `relevance` names queries and documents; without them it names rows.
        metric : {"auto", "ndcg@10", "mrr@10", "relevant_recall@100", "recall@10"}
            "auto": nDCG@10 of judged queries, recall@10 of others.
        query_weight : array-like of shape (m,), optional
            What each query counts in the mean.
        query_field, document_field : array-like of shape (m,) and (n,), optional
            A filter: each query looks among the documents that have its own value of a field.
        ks, confidence
            As in `curve`.
        """
        data = Search(
            queries,
            documents,
            None if relevance is None else judgement_rows(relevance, query_ids, document_ids),
            weight=query_weight,
            query_field=query_field,
            document_field=document_field,
        )
        return prefix_curve(self.encoder_, data, metric, ks, confidence=confidence, verbose=self.verbose)

    def threshold(
        self, cosine: float, k: int | Point, rows: MatrixLike, reference: MatrixLike | None = None
    ) -> Threshold:
        """Return the cut-off on codes that stands for a cosine of the raw vectors.

        Parameters
        ----------
        cosine : float in [-1, 1]
            The cut-off in use on raw vectors.
        k : int or Point
            So many coordinates in float32; or what is stored, as `Choice.point` has it.
        rows : array-like of shape (m, p)
            Held-out rows, whose pairs with each other, or with `reference`, are looked at.
        reference : array-like of shape (n, p), optional
        """
        among = None if reference is None else Rows(reference)  # type: ignore[arg-type]
        return matched_threshold(self, Rows(rows, reference=among), cosine, k)  # type: ignore[arg-type]

    def check(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        k: int | None = None,
        against: ArrayLike | tuple[ArrayLike, ArrayLike | None] | None = None,
        tolerance: float = TOLERANCE,
        confidence: float = CONFIDENCE,
    ) -> CheckReport:
        """Tell whether the first k coordinates still keep of new rows what they kept at the fit.

        The verdict goes by the quality that is lost at k, with its interval: recall@10 against the full vectors, and
        with `y` the objective's own score. Drift of mean and scatter is reported beside it.

        Parameters
        ----------
        X : array-like of shape (n, p)
            New rows, 64 or more.
        y : array-like, optional
            Their labels or targets.
        k : int, optional
            The prefix length in use; the recommended one if not given.
        against : array-like of shape (n, p) or tuple (X, y), optional
            Rows from when the model was fitted, best some that it has not seen. If not given, the profile that was
            saved with the model, or that of rows of the fit.
        tolerance : float in (0, 1)
            Share of the quality at the fit that may be lost.
        confidence : float in (0, 1)
            Of the intervals.

        Returns
        -------
        report : CheckReport
            `report.verdict` is "fine", "unclear" or "refit"; ``print(report)`` says why.

        Examples
        --------
        >>> from firstk import PrefixEncoder
        >>> from firstk.data import load_digits
        >>> digits = load_digits()
        >>> enc = PrefixEncoder().fit(digits.X_train)
        >>> enc.check(digits.X_test[:, ::-1], k=8).verdict
        'refit'
        """
        encoder, target = self.encoder_, one_column(y)
        rows = NewRows(encoder).update(_checked_rows(self, X), target)
        if against is None:
            then = self._profile()
        else:
            X_then, y_then = rows_and_labels(against, "against", "check")
            found = NewRows(encoder).update(_checked_rows(self, X_then), one_column(y_then))
            then = found.profile()
        return check_rows(rows, then, k=k, tolerance=tolerance, confidence=confidence)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        metric: str = "auto",
        k: int | None = None,
    ) -> float:
        """Return one number for the first k coordinates, by a metric that is the same for every objective.

        So that objectives can be compared, as a search does, the metric does not depend on them. Metrics that look for
        neighbors or fit a readout do so among the rows given: these are dealt into parts, and each part is answered by
        the others.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : array-like, optional
            Labels or targets, where the metric needs them.
        sample_weight : array-like of shape (n,), optional
            What each row counts in the score. Neighbors and readouts are of rows that all count the same.
        metric : str
            A metric of rows in :data:`firstk.metrics.METRICS`. "auto" goes by `y` alone: "1nn_accuracy" for labels,
            "r2" for targets (floats, or several columns), "recall@10" without `y`. "head_accuracy" is the accuracy of
            ``predict``, for "fisher" and "classification"; "explained_variance" that of "reconstruction".
        k : int, optional
            Prefix length; the full width if not given.
        """
        k = check_prefix(k, self.encoder_.d, "PrefixEncoder.score")
        data = Rows(_checked_rows(self, X), one_column(y))
        weight = check_weights(sample_weight, data.n, "PrefixEncoder.score")
        return score_of_rows(self.encoder_, replace(data, weight=weight), metric, k)

    # -- storage --------------------------------------------------------------------------------------------

    def save(
        self,
        path: str | Path,
        *,
        curve: PrefixCurve | None = None,
        choice: Choice | None = None,
        source_model: str | None = None,
        extra: Mapping[str, str | bytes] | None = None,
        moments: bool = False,
        held_out: MatrixLike | tuple[MatrixLike, ArrayLike | None] | None = None,
    ) -> Path:
        """Write the encoder into the folder `path`, atomically: config.json, model.safetensors and README.md.

        Parameters
        ----------
        path : path
            A new or empty folder, or one that holds a firstk model, which is replaced.
        curve : PrefixCurve, optional
            Quality against k, kept with the model and shown on its card.
        choice : Choice, optional
            What to store, kept and shown with it: ``evaluation.choose()``.
        source_model : str, optional
            Name of the model that made the vectors.
        extra : mapping of str or bytes, optional
            What further files hold, by name.
        moments : bool
            Keep the moments of the rows too, in moments.safetensors, so that a loaded encoder can learn on: 8 p^2
            bytes, and a sample of the rows themselves, at most 8,192 of them (of pairs, and of the documents of their
            store where it is known, as many each).
        held_out : array-like of shape (n, p), tuple (X, y) or RowProfile, optional
            Rows that the fit has not seen, 256 or more, whose profile is saved, or that profile: `check` later compares
            new rows with it. Without them it is that of rows of the fit. Rows themselves are not saved.
        """
        encoder = self.encoder_
        names = getattr(self, "feature_names_in_", None)
        record = replace(
            encoder.record,
            feature_names=None if names is None else tuple(str(name) for name in names),
            parameters=saved_parameters(self.get_params(deep=False)),
        )
        if MOMENTS in (extra or {}):
            raise InvalidInputError(f"'{MOMENTS}' holds the moments of the rows: write it with moments=True.")
        if moments:
            self._check_learns_on()
            self.problem(pairs=self.learns_from is Pairs).check_streamable("save(moments=True)")
            extra = dict(extra or {}) | {MOMENTS: arrays.to_bytes(self._statistics.to_arrays())}
        profile = self._profile(held_out)
        # Cells that an evaluation asked for are kept by the encoder, and lost with a copy.
        cells = encoder._storable_cells if encoder.cells is None else encoder.cells
        return replace(encoder, record=record, profile=profile, cells=cells).save(
            path, curve=curve, choice=choice, source_model=source_model, extra=extra
        )

    @classmethod
    def load(cls, path: str | Path, module: nn.Module | None = None, *, moments: bool = True) -> Self:
        """Read an encoder from a folder. Nothing is unpickled; a damaged or foreign folder raises CorruptModelError.

        Parameters
        ----------
        path : path
        module : torch module, optional
            For an encoder fitted with a network of your own: a network of the same architecture, into which its state
            is loaded.
        moments : bool
            Read the moments that were saved with the model, if any, so that `partial_fit` can go on; False leaves them
            on the disk.
        """
        encoder = FittedEncoder.load(path, module)
        record, own = encoder.record, encoder.record.own_classes
        try:
            if "objective" not in own:
                objectives.restore(record.objective, record.settings)
            if "ordering" not in own:
                orderings.restore(record.ordering, record.ordering_settings)
            names = record.feature_names
            if names is not None and len(names) != encoder.p:
                raise ValueError(f"feature_names must be {encoder.p} names")
            unsaved = {name: UnsavedMember(name, made_by) for name, made_by in own.items()}
            loaded = cls(**parameters_of(encoder, module) | unsaved)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            why = error if isinstance(error, FirstkError) else repr(error)
            raise CorruptModelError(
                f"'{path}' is a damaged firstk model: its settings cannot be read ({why})."
            ) from None
        for name, made_by in own.items():
            warnings.warn(
                f"The {name} of '{path}' was a {made_by}, a class of your own, which is not saved. The encoder works "
                f"without it; before you fit again, pass it: set_params({name}=...).",
                stacklevel=2,
            )
        loaded = loaded.with_encoder(encoder)
        if names is not None:
            loaded.feature_names_in_ = np.asarray(names, dtype=object)
        payload = read_extra_bytes(path, MOMENTS) if moments else None
        if payload is not None:
            stored, _ = arrays.from_bytes(payload, f"'{Path(path) / MOMENTS}'", "Save the model again.")
            loaded._statistics = Statistics.from_arrays(stored)
            rows, p = loaded._statistics.moments.rows, loaded._statistics.n_features
            if (p, rows) != (encoder.p, record.rows):
                raise CorruptModelError(
                    f"'{Path(path) / MOMENTS}' holds moments of {rows:,} rows of {p} columns, and the encoder was "
                    f"fitted on {record.rows} of {encoder.p}. Save the model again."
                )
        return loaded

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


# -- data as users give them: arrays, sparse matrices, data frames, dask collections ---------------------------------


def _checked_rows(estimator: PrefixEncoder, X: MatrixLike, *, reset: bool = False) -> np.ndarray | SparseMatrix:
    """Check type, shape and column names; numbers are checked for NaN where they are first summed or used.

    Parameters
    ----------
    estimator : PrefixEncoder
    X : array-like, sparse matrix or data frame
    reset : bool
        Whether the estimator takes over width and names of the columns; otherwise they are compared with its own.
    """
    if _engine_of(X) is not None:
        raise InvalidInputError(
            "This takes data in memory, where a dask collection may not fit. Take a part of it: X[:n].compute()."
        )
    settings: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": False}
    frame = _frame_rows(X)
    if frame is not None and frame[1]:
        validate_data(estimator, X, reset=reset, skip_check_array=True)  # the names of the columns
        return check_array(frame[0], estimator=estimator, **settings)
    sparse = {} if frame is not None else {"accept_sparse": "csr"}
    with config_context(array_api_dispatch=False):  # arrays of other libraries become numpy's
        checked: np.ndarray | SparseMatrix = validate_data(
            estimator, X if frame is None else frame[0], reset=reset, **sparse, **settings
        )
        return checked


def _checked_data(
    estimator: PrefixEncoder, problem: Problem, data: Rows | Pairs, *, reset: bool
) -> Rows | Pairs | Statistics:
    """Return checked rows or pairs; of dask collections their statistics, which their workers accumulated.

    Parameters
    ----------
    estimator : PrefixEncoder
    problem : Problem
        That the data are for.
    data : Rows or Pairs
    reset : bool
        As in :func:`_checked_rows`.
    """
    given = data.columns
    if (engine := _engine_of(*given.values())) is not None:
        statistics: Statistics = engine.accumulate_collections(problem, given)
        _note_columns(estimator, engine.like(next(iter(given.values())), statistics.n_features), reset=reset)
        return statistics
    if isinstance(data, Pairs):
        # What carries the names of the columns, and the rows: a frame of one column of vectors has no names for them.
        frames = [_frame_rows(side) for side in (data.left, data.right)]
        L, R = (side if rows is None else rows[0] for side, rows in zip((data.left, data.right), frames, strict=True))
        left, right, scores = check_pairs(L, R, data.scores, "PrefixEncoder.fit_pairs")
        for side, rows, first in zip((data.left, data.right), frames, (reset, False), strict=True):
            columns = side if rows is None or rows[1] else rows[0]
            validate_data(estimator, columns, reset=first, skip_check_array=True)
        _check_width(estimator, left.shape[1])
        return Pairs(left, right, scores)
    X = _checked_rows(estimator, data.X, reset=reset)
    n, p = X.shape
    _check_width(estimator, p)
    weight = check_weights(data.weight, n, type(estimator).__name__)
    y = None if problem.objective.supervision == "rows" else check_target(data.y, problem.objective, n)
    return Rows(X, y, weight)


def _note_columns(estimator: PrefixEncoder, like: Any, *, reset: bool) -> None:
    """Take over width and names of the columns of checked rows, or compare them with those of the estimator."""
    validate_data(estimator, like, reset=reset, skip_check_array=True)
    _check_width(estimator, like.shape[1])


def _check_width(estimator: PrefixEncoder, p: int) -> None:
    if is_int(estimator.n_components) and estimator.n_components > p:
        expected = f"an int in [1, {p}] (the number of columns)"
        raise bad_parameter("n_components", "PrefixEncoder", expected, estimator.n_components)


def _engine_of(*data: object) -> ModuleType | None:
    """Return the integration of collections that are not in memory, recognized by protocol; None for others."""
    if not any(hasattr(part, "__dask_graph__") for part in data):
        return None
    from firstk.integrations import dask

    return dask


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
