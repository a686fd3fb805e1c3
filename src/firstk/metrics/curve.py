"""From an encoder and data to the curve of quality against k: one encode, one sweep, every prefix.

A metric is a scorer found by name; it says what it needs, so that a missing argument gets a clear error message. The
objective names its default.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from threading import Lock
from types import UnionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import (
    bad_parameter,
    check_choice,
    check_prefix,
    check_same_length,
    check_verbose,
    check_weights,
)
from firstk._base.progress import Verbose, showing
from firstk._base.rows import distinct_rows
from firstk.data.task import Data, Pairs, Rows, Search, n_rows
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.exceptions import InvalidInputError
from firstk.metrics import neighbors, ranking, task
from firstk.metrics.bootstrap import (
    ExplainedShare,
    MeanScore,
    PerRowScores,
    RankAgreement,
    bootstrap_interval,
    check_confidence,
)
from firstk.metrics.ranking import check_scores
from firstk.metrics.search import search_per_query
from firstk.quality.curve import PrefixCurve


def _as_it_is(Z: np.ndarray) -> np.ndarray:
    return Z


class Storage(NamedTuple):
    """What a store does to codes, and what is done to the codes of queries before they are compared with stored ones.

    Nothing, or rounding to some precision and back.
    """

    store: Callable[[np.ndarray], np.ndarray] = _as_it_is
    ask: Callable[[np.ndarray], np.ndarray] = _as_it_is


AS_IT_IS = Storage()
_one_at_a_time = Lock()

# Targets that scores hold, the latest first.
_held: deque[weakref.ref[np.ndarray]] = deque(maxlen=8)


@dataclass(frozen=True, eq=False)
class Compared:
    """Vectors as a metric compares them: by the codes of an encoder, stored and asked for, or as they came.

    Attributes
    ----------
    encoder : FittedEncoder
    storage : Storage
    raw : bool
        The vectors as they came: a code whose one prefix is the whole.
    """

    encoder: FittedEncoder
    storage: Storage = AS_IT_IS
    raw: bool = False

    def kept(self, X: ArrayLike, copies: np.ndarray | None = None) -> np.ndarray:
        """Return rows as they come back from storage; with `copies`, as many of each as its number stands there."""
        codes = self.vectors(X) if self.raw else self._codes(X)
        codes = codes if copies is None else codes[copies]
        return codes if self.raw else self.storage.store(codes)

    def asking(self, X: ArrayLike, side: str = "document") -> np.ndarray:
        """Return rows as they are compared with stored ones."""
        return self.vectors(X) if self.raw else self.storage.ask(self._codes(X, side))

    def read(self, X: ArrayLike) -> np.ndarray:
        """Return what readouts are fitted on."""
        return self.centred(X) if self.raw else self.kept(X)

    def vectors(self, X: ArrayLike) -> np.ndarray:
        """Return the vectors as they came."""
        return self.encoder.vectors(X, owner="curve")

    def centred(self, X: ArrayLike) -> np.ndarray:
        """Return the vectors less the mean of the fit."""
        X = self.vectors(X)
        return X - self.encoder.mean.astype(X.dtype)

    def _codes(self, X: ArrayLike, side: str = "document") -> np.ndarray:
        """Codes at full width, not normalized: metrics that take cosines do so after each truncation.

        Summed in float64 and then rounded to the precision that is due: sums in float32 would give copies of a row
        codes of other last digits, and copies would no longer tie.
        """
        return self.encoder.coordinates(X, side=side, owner="curve", exact=True)


# From what is compared, data and prefix lengths to scores by row.
Scorer = Callable[[Compared, Any, np.ndarray], PerRowScores]


def _squares(X: np.ndarray) -> np.ndarray:
    """Squared norms of rows in float64."""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _at(table: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """Columns of the prefix lengths `ks`; by rows in memory, so that a sum over rows does not depend on the others."""
    return table if len(ks) == table.shape[1] else np.take(table, ks - 1, axis=1)


def explained_variance(codes: Compared, data: Rows, ks: np.ndarray) -> PerRowScores:
    """Share of the variance that the encoder's own decoder rebuilds."""
    encoder = codes.encoder
    if encoder.decoder is None:
        raise InvalidInputError(
            "The metric 'explained_variance' needs a decoder; use 'readback_variance' for this objective."
        )
    # About the decoder's own origin, which for networks is not quite the mean.
    X = codes.vectors(data.X)
    X = X - (encoder.mean if encoder.origin is None else encoder.origin).astype(X.dtype)
    _check_varies(X, "explained_variance")
    errors = task.reconstruction_errors(X, codes.kept(data.X), encoder.decoder)
    return ExplainedShare(_at(errors, ks), _squares(X))


def readback_variance(codes: Compared, data: Rows, ks: np.ndarray) -> PerRowScores:
    """Share of the variance that the best linear decoder rebuilds."""
    fit = codes.kept(data.stored), codes.centred(data.stored)
    return _readout(fit, (codes.kept(data.X), codes.centred(data.X)), ks)


def r2(codes: Compared, data: Rows, ks: np.ndarray) -> PerRowScores:
    """R² of the best linear readout of the targets."""
    head = codes.encoder.head
    if head is not None and head.classes is not None:
        raise InvalidInputError(
            "The metric 'r2' reads numbers, and this encoder learned labels: use metric='probe_accuracy'."
        )
    fit = data if data.reference is None or data.reference.y is None else data.reference
    Y_fit, Y = (_numbers(part.y).reshape(part.n, -1) for part in (fit, data))
    return _readout((codes.read(fit.X), Y_fit), (codes.read(data.X), Y), ks)


def _numbers(y: ArrayLike | None) -> np.ndarray:
    y = np.asarray(y)
    if y.dtype.kind not in "fiub":
        raise InvalidInputError(
            "The metric 'r2' reads numbers, and 'y' holds labels: use metric='probe_accuracy' for those."
        )
    return y.astype(float)


def _readout(fit: tuple[np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray], ks: np.ndarray) -> PerRowScores:
    Y = _shared(new[1] - new[1].mean(axis=0, dtype=np.float64))
    whole = len(ks) == 1 and ks[0] == fit[0].shape[1]
    errors = task.readout_errors(*fit, *new, whole=whole)
    _check_varies(new[1] - new[1][:1], "linear_readout_r2")  # exactly 0 where constant, as Y need not be
    return ExplainedShare(errors if whole else _at(errors, ks), _squares(Y), Y)


def _shared(Y: np.ndarray) -> np.ndarray:
    """Return an equal array that a score still holds, where there is one.

    A table of operating points keeps hundreds of scores of the same rows, each with what it explains.
    """
    for reference in tuple(_held):
        other = reference()
        if (
            other is not None
            and other.shape == Y.shape
            and np.array_equal(other[:1], Y[:1])
            and np.array_equal(other, Y)
        ):
            return other
    _held.appendleft(weakref.ref(Y))
    return Y


def _check_varies(Y: np.ndarray, owner: str) -> None:
    if not Y.any():
        raise InvalidInputError(f"{owner} needs targets that vary. Every target is constant over {len(Y)} rows.")


def _reference(data: Rows) -> Rows:
    """Return the labeled rows to look among, which `check_metric` has found there."""
    assert data.reference is not None
    return data.reference


def neighbor_accuracy(codes: Compared, data: Rows, ks: np.ndarray) -> PerRowScores:
    """Accuracy of the nearest reference row."""
    among = _reference(data)
    reference = codes.kept(among.X), np.asarray(among.y)
    asking = codes.asking(data.X), np.asarray(data.y)
    return MeanScore(neighbors.nearest_neighbor_accuracy(*reference, *asking, ks=ks, per_row=True))


def probe_accuracy(codes: Compared, data: Rows, ks: np.ndarray) -> PerRowScores:
    """Accuracy of the best least-squares probe."""
    among = _reference(data)
    reference = codes.read(among.X), np.asarray(among.y)
    new = codes.read(data.X), np.asarray(data.y)
    return MeanScore(_at(task.linear_probe_accuracy(*reference, *new, per_row=True), ks))


def head_accuracy(codes: Compared, data: Rows, ks: np.ndarray) -> PerRowScores:
    """Accuracy of the encoder's own head."""
    head = codes.encoder.head
    if head is None or head.classes is None:
        raise InvalidInputError(
            "The metric 'head_accuracy' needs an objective that predicts classes, such as 'fisher'."
        )
    Z, y = codes.kept(data.X), np.asarray(data.y)
    check_same_length(Z, y, "X", "y", "curve")
    shared = np.tile(head.offset, (len(Z), 1))  # (n, C)
    hits, before = np.empty((len(Z), len(ks)), dtype=bool), 0
    for column, k in enumerate(ks):  # each prefix adds its coordinates to the shared logits of the one before
        new = slice(before, k)
        shared += Z[:, new] @ head.weight[:, new].T - head.quadratic[:, new].sum(axis=1)
        logits = shared if k > head.own else head.scores(Z[:, :k])
        hits[:, column] = head.classes[logits.argmax(axis=1)] == y
        before = k
    return MeanScore(hits)


def check_known_labels(encoder: FittedEncoder, data: Any) -> None:
    """Raise for labels of which the head knows none, most often of another type: every prefix would score 0."""
    if not isinstance(data, Rows) or data.y is None or encoder.head is None or encoder.head.classes is None:
        return
    given, known = (dict.fromkeys(np.asarray(part).ravel().tolist()) for part in (data.y, encoder.head.classes))
    if given and not any(label in known for label in given):
        raise InvalidInputError(
            f"The metric 'head_accuracy' needs labels that were fitted, and no label of 'y' was: it has "
            f"{_some(given)}; the classes are {_some(known)}. Give labels of the same type and spelling."
        )


def _some(labels: Iterable[object]) -> str:
    """Show a few labels, so that their type can be seen."""
    shown = [repr(label) for label in labels]
    return ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")


def full_width_neighbors(encoder: FittedEncoder, data: Rows | Search) -> np.ndarray:
    """Return the ten full-width neighbors of each row or query; found once, as they do not depend on the code."""
    with _one_at_a_time:  # threads that score other codes of the same rows wait for them
        if "neighbors" not in data.memory:
            alone = isinstance(data, Rows) and data.reference is None
            if (among := n_rows(data.stored) - alone) <= 10:
                raise InvalidInputError(f"The metric 'recall@10' needs more than 10 rows to look among. Got {among}.")
            asked = data.X if isinstance(data, Rows) else data.queries
            held, asking = (encoder.vectors(part, owner="curve") for part in (data.stored, asked))
            data.memory["neighbors"] = neighbors.nearest_neighbors(held, asking, 10, exclude_self=alone)
    return np.asarray(data.memory["neighbors"])


def recall(codes: Compared, data: Rows | Search, ks: np.ndarray) -> PerRowScores:
    """Share of the ten full-width neighbors that are found."""
    truth = full_width_neighbors(codes.encoder, data)
    if isinstance(data, Search):
        if any(part is not None for part in (data.query_rows, data.query_field, data.document_field)):
            raise InvalidInputError(
                "The metric 'recall@10' looks among all documents: leave 'query_rows' and the fields of a filter out."
            )
        near = np.column_stack([np.repeat(np.arange(len(truth)), 10), truth.ravel(), np.ones(truth.size, np.int64)])
        return search("recall", 10)(codes, replace(data, relevance=near), ks)
    alone, compared = data.reference is None, (codes.kept(data.stored), codes.asking(data.X))
    return MeanScore(neighbors.neighbor_recall(*compared, truth, exclude_self=alone, ks=ks, per_row=True), out_of=10)


def mixture(codes: Compared, data: Rows, ks: np.ndarray) -> PerRowScores:
    """Share of |Y|² + lam |X|² that each prefix explains (Balestriero and LeCun 2024 (3))."""
    of_y, of_x = mixture_parts(codes, data, ks)
    lam = float(codes.encoder.record.settings["lam"])
    return ExplainedShare(of_y.errors + lam * of_x.errors, of_y.sizes + lam * of_x.sizes)


def mixture_parts(codes: Compared, data: Rows, ks: np.ndarray) -> tuple[ExplainedShare, ExplainedShare]:
    """Both parts of a mixture apart: of the targets, and of the vectors."""
    encoder = codes.encoder
    if encoder.head is None or encoder.decoder is None:
        raise InvalidInputError("The metric 'mixture' belongs to objective 'mixture'.")
    Z, X = codes.kept(data.X), codes.centred(data.X)
    # Targets less their training mean; labels become one-hot rows.
    head, Y = encoder.head, np.asarray(data.y)
    Y = Y.astype(float).reshape(len(Y), -1) if head.classes is None else Y[:, None] == head.classes
    Y = Y - head.offset
    parts = ((Y, encoder.head.weight), (X, encoder.decoder))
    of_y, of_x = (ExplainedShare(_at(task.reconstruction_errors(part, Z, A), ks), _squares(part)) for part, A in parts)
    return of_y, of_x


def spearman(codes: Compared, data: Pairs, ks: np.ndarray) -> PerRowScores:
    """Spearman's correlation of cosine and score."""
    if not data.scored:
        raise InvalidInputError("The metric 'spearman' needs scores that differ: use curve_pairs(left, right, scores).")
    cosines = ranking.pair_cosines(codes.asking(data.left, "query"), codes.kept(data.right), ks=ks)
    return RankAgreement(cosines, check_scores(np.asarray(data.scores), len(cosines), "pair_spearman"))


def positive_recall(codes: Compared, data: Pairs, ks: np.ndarray) -> PerRowScores:
    """Share of partners among the ten nearest."""
    right = codes.vectors(data.right)
    first, which = distinct_rows(right)  # of the vectors: copies of a document are one candidate, as a store has them
    if codes.raw and len(first) <= 10:
        raise InvalidInputError(
            f"The metric 'positive_recall@10' needs more than 10 different right sides. Got {len(first)}."
        )
    left, stored = codes.asking(data.left, "query"), codes.kept(right[first], which)
    return MeanScore(neighbors.positive_recall(left, stored, ks=ks, per_row=True))


def search(measure: str, at: int) -> Scorer:
    """Return the scorer of a measure of `firstk.metrics.search` over the `at` nearest documents.

    Each judged query that counts is scored, by all documents or by those that the filter leaves it.
    """

    def score(codes: Compared, data: Search, ks: np.ndarray) -> PerRowScores:
        documents, queries = codes.kept(data.documents), codes.asking(data.queries, "query")
        weights = check_weights(data.weight, len(queries), "curve", "query_weight")
        judged, values = search_per_query(
            documents, queries, np.asarray(data.relevance), measure, at=at, ks=ks,
            query_rows=data.query_rows, query_field=data.query_field, document_field=data.document_field,
        )  # fmt: skip
        if weights is None:
            return MeanScore(values, rows=judged)
        counts = weights[judged] > 0
        if not counts.any():
            raise InvalidInputError(f"'query_weight' is 0 for all {len(judged)} queries with judgements.")
        return MeanScore(values[counts], weights=weights[judged][counts], rows=judged[counts])

    return score


@dataclass(frozen=True)
class Metric:
    """A way to score prefixes.

    Attributes
    ----------
    score : callable
        From what is compared, data and prefix lengths to scores by row.
    takes : type
        Rows, Pairs or Search; "recall@10" takes Rows and Search.
    needs : tuple of str
        What rows must have besides vectors: "y", "reference".
    raw_constant : float, optional
        The raw vectors' score where it is known without data: they explain themselves.
    of_encoder : bool
        Whether it needs the encoder's own decoder or head, so that raw vectors have no score.
    chance : callable
        From the data to the score of guessing; None where there is nothing to guess.
    """

    score: Scorer
    takes: type[Data] | UnionType
    raw_constant: float | None = None
    of_encoder: bool = False
    chance: Callable[[Any], float | None] = lambda data: None
    needs: tuple[str, ...] = ()

    def raw_rows(self, encoder: FittedEncoder, data: Data) -> PerRowScores | None:
        """Score the vectors as they came, by the same rows and with one column, so that differences are paired.

        None where they have no score by row.
        """
        if self.of_encoder or self.raw_constant is not None:
            return None
        return self.score(Compared(encoder, raw=True), data, np.array([encoder.p]))

    def raw(self, encoder: FittedEncoder, data: Data) -> float | None:
        """Return the score of the vectors as they came; None where that has no meaning."""
        rows = self.raw_rows(encoder, data)
        return self.raw_constant if rows is None else float(rows.score()[0])


def per_row_scores(
    encoder: FittedEncoder, data: Data, metric: str, ks: np.ndarray, storage: Storage = AS_IT_IS
) -> PerRowScores:
    """Score the prefixes `ks` of an encoder by the metric of that name, and keep rows, pairs or queries apart."""
    return METRICS[check_metric(metric, data)].score(Compared(encoder, storage), data, ks)


def prefix_curve(
    encoder: FittedEncoder,
    data: Data,
    metric: str = "auto",
    ks: ArrayLike | None = None,
    *,
    confidence: float | None = None,
    input_score: float | None = None,
    verbose: Verbose = "auto",
) -> PrefixCurve:
    """Score every prefix of an encoder.

    Parameters
    ----------
    encoder : FittedEncoder
        ``PrefixEncoder.encoder_``, or one that was loaded.
    data : Rows, Pairs or Search
        Held-out rows, pairs or queries, for an honest answer.
    metric : str
        A name in `METRICS`, or "auto" for the objective's own.
    ks : sequence of int, optional
        Prefix lengths; all if not given.
    confidence : float in (0, 1), optional
        With it, the curve has the bootstrap interval of every score, over the rows, pairs or queries.
    input_score : float, optional
        The score of the raw vectors, where it was measured on these data before; else it is measured.
    verbose : bool or "auto"
        Show progress; "auto": of what takes long, on a terminal or in a notebook.

    Returns
    -------
    curve : PrefixCurve

    Examples
    --------
    >>> from firstk import PrefixEncoder, prefix_curve
    >>> from firstk.data import load_digits
    >>> from firstk import Rows
    >>> digits = load_digits()
    >>> encoder = PrefixEncoder(16).fit(digits.X_train).encoder_
    >>> data = Rows(digits.X_test, digits.y_test, reference=Rows(digits.X_train, digits.y_train))
    >>> curve = prefix_curve(encoder, data, "1nn_accuracy", ks=[4, 8, 16])
    >>> curve.smallest(keep=0.9)
    8
    """
    encoder = check_fitted(encoder, "prefix_curve")
    check_data(data, "prefix_curve")
    if confidence is not None:
        confidence = check_confidence(confidence, "curve")
    name = settled_metric(encoder, data) if metric == "auto" else metric
    lengths = np.arange(1, encoder.d + 1)
    if ks is not None:
        lengths = np.unique([check_prefix(k, encoder.d, "curve") for k in np.atleast_1d(np.asarray(ks)).tolist()])
    if name == "head_accuracy":
        check_known_labels(encoder, data)
    with showing(check_verbose(verbose, "prefix_curve")):
        rows = per_row_scores(encoder, data, name, lengths)
        raw = METRICS[name].raw(encoder, data) if input_score is None else float(input_score)
    ends = () if confidence is None else bootstrap_interval(rows, confidence)
    low, high = (tuple(end.tolist()) for end in ends) if ends else (None, None)
    details = {}
    if name == "mixture" and isinstance(data, Rows):
        of_y, of_x = mixture_parts(Compared(encoder), data, lengths)
        details = {"explained_variance": of_x.score().tolist(), "r2": of_y.score().tolist()}
    return PrefixCurve(
        k=tuple(lengths.tolist()),
        score=tuple(rows.score().tolist()),
        metric=name,
        input_score=raw,
        label=encoder.record.title,
        n_evaluated=rows.n,
        details=details,
        low=low,
        high=high,
        confidence=confidence,
        supported=encoder.record.supported_up_to(encoder.d),
    )


def check_data(data: Data | None, owner: str) -> Data:
    """Return `data`, which has to have one of the three shapes: an array does not say what its rows are."""
    if data is None:
        raise InvalidInputError(f"{owner} has no data: nothing was held out. Read the task with held_out=0.2, say.")
    if not isinstance(data, Data):
        allowed = "Rows, Pairs or Search, such as Rows(X, y, reference=Rows(X_train, y_train))"
        raise bad_parameter("data", owner, allowed, type(data).__name__)
    return data


def settled_metric(encoder: FittedEncoder, data: Data) -> str:
    """Return the metric that "auto" stands for: that of searches, of pairs, or the objective's own.

    Searches are scored by nDCG@10, or where nothing is judged by recall@10.
    """
    if isinstance(data, Search):
        return "recall@10" if data.relevance is None else SEARCH[0]
    return pair_metric(data) if isinstance(data, Pairs) else encoder.record.metric


def pair_metric(pairs: Pairs) -> str:
    """Return Spearman for scores that differ, recall of partners for positives."""
    return "spearman" if pairs.scored else "positive_recall@10"


def check_metric(metric: str, data: Data) -> str:
    """Return the name of a metric that takes such data; other data raise, with the argument that is missing."""
    name = check_choice(metric, METRICS, "metric", "curve")
    known = METRICS[name]
    if not isinstance(data, known.takes):
        raise InvalidInputError(f"The metric '{name}' needs {_WAYS[known.takes]}.")
    if name in SEARCH and isinstance(data, Search) and data.relevance is None:
        raise InvalidInputError(
            f"The metric '{name}' needs judged documents, and these queries have none: give 'relevance', or "
            "use recall@10."
        )
    have = data if isinstance(data, Rows) else Rows(())
    missing = [need for need in known.needs if getattr(have, need) is None]
    if "y" in known.needs and have.reference is not None and have.reference.y is None and "reference" in known.needs:
        missing.append("reference")
    if missing:
        raise InvalidInputError(f"The metric '{name}' needs {' and '.join(_WAYS[need] for need in missing)}.")
    return name


# How to give what a metric takes.
_WAYS: dict[object, str] = {
    Rows: "rows: use curve(X, ...)",
    Pairs: "pairs: use curve_pairs(left, right, scores)",
    Search: "judged documents: use curve_search(queries, documents, relevance)",
    Rows | Search: "rows, or queries and documents: use curve(X, ...) or curve_search(queries, documents)",
    "y": "y, the labels or targets of X",
    "reference": "reference=(X_train, y_train), the rows to look among and their labels",
}


# Metrics of judged documents, the usual one first.
SEARCH = ("ndcg@10", "mrr@10", "relevant_recall@100")
_LABELS = ("y", "reference")


# -- the score of guessing ------------------------------------------------------------------------------------------


def guessed_label(data: Rows) -> float | None:
    """Return the accuracy of guessing: always the label that is most frequent among the references, or one of them."""
    if data.y is None or data.reference is None or data.reference.y is None:
        return None
    labels, counts = np.unique(np.asarray(data.reference.y), return_counts=True)
    share = np.array([np.mean(np.asarray(data.y) == label) for label in labels])
    return float(max(share[counts.argmax()], share @ counts / counts.sum()))


def no_relation(data: Data) -> float | None:
    """Return 0: the correlation or R² of what has nothing to do with the targets."""
    return 0.0


def random_partner(data: Pairs) -> float | None:
    """Return the chance that ten right sides drawn at random hold the partner."""
    return min(1.0, 10 / n_rows(data.right))


def random_ranking(measure: str, at: int) -> Callable[[Search], float | None]:
    r"""Return what gives the expected score of documents in random order, by a measure of `firstk.metrics.search`.

    Of a query with R relevant documents among N: each of them is at each rank with probability 1 / N, so that nDCG is
    :math:`\sum_{r \le 10} 1 / \log_2(r + 1)` times the mean grade over the largest possible gain, and recall is the
    share of the ranks that are looked at. The first of them is at rank r with probability
    :math:`R / (N - r + 1) \prod_{i < r} (1 - R / (N - i + 1))`, of which MRR is the mean of 1 / r.
    """

    def chance(data: Search) -> float | None:
        relevance = np.asarray(data.relevance)
        relevance = relevance[relevance[:, 2] > 0]
        if not len(relevance):
            return None
        weights = None if data.weight is None else np.asarray(data.weight, dtype=float)
        scores, counts = [], []
        order = np.argsort(relevance[:, 0], kind="stable")
        queries, first = np.unique(relevance[order, 0], return_index=True)
        for query, grades in zip(queries.tolist(), np.split(relevance[order, 2], first[1:]), strict=True):
            among = _candidates(data, query)
            scores.append(_EXPECTED[measure](grades.astype(float), max(among, len(grades)), at))
            counts.append(1.0 if weights is None else float(weights[query]))
        return float(np.average(scores, weights=counts)) if sum(counts) > 0 else None

    return chance


def _candidates(data: Search, query: int) -> int:
    """Return how many documents a query looks among."""
    among = n_rows(data.documents)
    if data.query_field is not None and data.document_field is not None:
        among = int(np.sum(np.asarray(data.document_field) == np.asarray(data.query_field)[query]))
    return among - (data.query_rows is not None and int(np.asarray(data.query_rows)[query]) >= 0)


def _random_ndcg(grades: np.ndarray, n: int, at: int) -> float:
    discounts = 1 / np.log2(np.arange(2, min(at, n) + 2))
    best = np.sort(grades)[::-1][: len(discounts)]
    return float(discounts.sum() * grades.sum() / n / (best @ discounts[: len(best)]))


def _random_mrr(grades: np.ndarray, n: int, at: int) -> float:
    expected, none_before = 0.0, 1.0
    for rank in range(1, min(at, n) + 1):
        here = min(1.0, len(grades) / (n - rank + 1))
        expected += none_before * here / rank
        none_before *= 1 - here
    return expected


def _random_recall(grades: np.ndarray, n: int, at: int) -> float:
    return min(at, n) / n


_EXPECTED = {"ndcg": _random_ndcg, "mrr": _random_mrr, "recall": _random_recall}


METRICS: dict[str, Metric] = {
    "explained_variance": Metric(explained_variance, Rows, raw_constant=1.0),
    "readback_variance": Metric(readback_variance, Rows, raw_constant=1.0),
    "r2": Metric(r2, Rows, chance=no_relation, needs=("y",)),
    "1nn_accuracy": Metric(neighbor_accuracy, Rows, chance=guessed_label, needs=_LABELS),
    "probe_accuracy": Metric(probe_accuracy, Rows, chance=guessed_label, needs=_LABELS),
    "head_accuracy": Metric(head_accuracy, Rows, of_encoder=True, needs=("y",)),
    "recall@10": Metric(recall, Rows | Search, raw_constant=1.0),
    "mixture": Metric(mixture, Rows, of_encoder=True, needs=("y",)),
    "spearman": Metric(spearman, Pairs, chance=no_relation),
    "positive_recall@10": Metric(positive_recall, Pairs, chance=random_partner),
    "ndcg@10": Metric(search("ndcg", 10), Search, chance=random_ranking("ndcg", 10)),
    "mrr@10": Metric(search("mrr", 10), Search, chance=random_ranking("mrr", 10)),
    "relevant_recall@100": Metric(search("recall", 100), Search, chance=random_ranking("recall", 100)),
}
