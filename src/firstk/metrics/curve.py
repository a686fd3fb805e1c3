"""From an encoder and data to the curve of quality against k: one encode, one sweep, every prefix.

A metric is a scorer found by name; it says what it needs, so that a missing argument gets a clear error message. The
objective names its default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import UnionType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import bad_parameter, check_choice, check_prefix, check_verbose
from firstk._base.progress import Verbose, showing
from firstk.data.task import Data, Pairs, Rows, Search, n_rows
from firstk.encoder.fitted import FittedEncoder, check_fitted
from firstk.exceptions import InvalidInputError
from firstk.metrics import scorers
from firstk.metrics.bootstrap import PerRowScores, bootstrap_interval, check_confidence
from firstk.metrics.scorers import AS_IT_IS, Compared, Scorer, Storage
from firstk.quality.curve import PrefixCurve


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
    help : str
        One line for a table.
    raw_constant : float, optional
        The raw vectors' score where it is known without data: they explain themselves.
    of_encoder : bool
        Whether it needs the encoder's own decoder or head, so that raw vectors have no score.
    chance : callable
        From the data to the score of guessing; None where there is nothing to guess.
    """

    score: Scorer
    takes: type[Data] | UnionType
    help: str
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
        scorers.check_known_labels(encoder, data)
    with showing(check_verbose(verbose, "prefix_curve")):
        rows = per_row_scores(encoder, data, name, lengths)
        raw = METRICS[name].raw(encoder, data) if input_score is None else float(input_score)
    ends = () if confidence is None else bootstrap_interval(rows, confidence)
    low, high = (tuple(end.tolist()) for end in ends) if ends else (None, None)
    details = {}
    if name == "mixture" and isinstance(data, Rows):
        of_y, of_x = scorers.mixture_parts(Compared(encoder), data, lengths)
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


def check_data(data: object, owner: str) -> None:
    """Raise InvalidInputError unless `data` has one of the three shapes: an array does not say what its rows are."""
    if data is None:
        raise InvalidInputError(f"{owner} has no data: nothing was held out. Read the task with held_out=0.2, say.")
    if not isinstance(data, Data):
        allowed = "Rows, Pairs or Search, such as Rows(X, y, reference=Rows(X_train, y_train))"
        raise bad_parameter("data", owner, allowed, type(data).__name__)


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
    "explained_variance": Metric(
        scorers.explained_variance,
        Rows,
        "share of the variance that the encoder's own decoder rebuilds",
        raw_constant=1.0,
    ),
    "readback_variance": Metric(
        scorers.readback_variance,
        Rows,
        "share of the variance that the best linear decoder rebuilds",
        raw_constant=1.0,
    ),
    "r2": Metric(
        scorers.r2,
        Rows,
        "R^2 of the best linear readout of the targets",
        chance=no_relation,
        needs=("y",),
    ),
    "1nn_accuracy": Metric(
        scorers.neighbor_accuracy,
        Rows,
        "share of rows whose nearest reference row, by cosine, has their label",
        chance=guessed_label,
        needs=_LABELS,
    ),
    "probe_accuracy": Metric(
        scorers.probe_accuracy,
        Rows,
        "accuracy of the best least-squares probe",
        chance=guessed_label,
        needs=_LABELS,
    ),
    "head_accuracy": Metric(
        scorers.head_accuracy,
        Rows,
        "accuracy of the encoder's own head",
        of_encoder=True,
        needs=("y",),
    ),
    "recall@10": Metric(
        scorers.recall,
        Rows | Search,
        "share of the ten nearest neighbors at full width that are found",
        raw_constant=1.0,
    ),
    "mixture": Metric(
        scorers.mixture,
        Rows,
        "share of targets and vectors explained together",
        of_encoder=True,
        needs=("y",),
    ),
    "spearman": Metric(
        scorers.spearman,
        Pairs,
        "Spearman correlation of cosine and score",
        chance=no_relation,
    ),
    "positive_recall@10": Metric(
        scorers.positive_recall,
        Pairs,
        "share of partners among the ten nearest",
        chance=random_partner,
    ),
    "ndcg@10": Metric(
        scorers.search("ndcg", 10),
        Search,
        "how high the relevant documents stand in the first ten results, from 0 (none there) to 1 (all on top)",
        chance=random_ranking("ndcg", 10),
    ),
    "mrr@10": Metric(
        scorers.search("mrr", 10),
        Search,
        "one over the rank of the first relevant document; 0 if it is not in the first ten results",
        chance=random_ranking("mrr", 10),
    ),
    "relevant_recall@100": Metric(
        scorers.search("recall", 100),
        Search,
        "share of the relevant documents that are in the first hundred results",
        chance=random_ranking("recall", 100),
    ),
}
