"""From an encoder and data to the curve of quality against k: one encode, one sweep, every prefix.

A metric is a judge found by name; it says what it needs, so that a missing argument is a sentence. The objective names
its default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk._base.checks import check_choice, check_prefix
from firstk.encoder.curve import PrefixCurve, supported_lengths
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics import scorers as judges
from firstk.metrics.bootstrap import PerRowScores, bootstrap_interval, check_confidence
from firstk.metrics.scorers import EvaluationData, Judge, scores_differ

__all__ = [
    "METRICS",
    "EvaluationData",
    "Metric",
    "check_metric",
    "pair_metric",
    "prefix_curve",
    "prefix_scores",
    "settled_metric",
]

Raw = Callable[[FittedEncoder, EvaluationData], float | None]


@dataclass(frozen=True)
class Metric:
    """A way to judge prefixes.

    Attributes
    ----------
    judge : callable
        From an encoder, evidence and prefix lengths to a tally of scores.
    raw : callable
        The same metric of the vectors as they came; None where that has no meaning.
    needs : tuple of str
        Fields of the evidence that must be there.
    help : str
        One line for a table.
    prepare : callable
        Adds to the evidence what depends on it alone, for those who judge many encoders.
    """

    judge: Judge
    raw: Raw
    needs: tuple[str, ...]
    help: str
    prepare: Callable[[FittedEncoder, EvaluationData], EvaluationData] = lambda _, evidence: evidence


def prefix_scores(encoder: FittedEncoder, evidence: EvaluationData, metric: str, ks: np.ndarray) -> np.ndarray:
    """Score the prefixes `ks` of an encoder by the metric of that name."""
    return np.asarray(_tally(encoder, evidence, metric, ks).score(), dtype=float)


def prefix_curve(
    encoder: FittedEncoder,
    evidence: EvaluationData,
    metric: str = "auto",
    ks: Any = None,
    *,
    confidence: float | None = None,
) -> PrefixCurve:
    """Judge every prefix of an encoder.

    Parameters
    ----------
    encoder : FittedEncoder
    evidence : EvaluationData
    metric : str
        A name in `METRICS`, or "auto" for the objective's own.
    ks : sequence of int, optional
        Prefix lengths; all if not given.
    confidence : float in (0, 1), optional
        With it, the curve has the bootstrap interval of every score, over the rows, pairs or queries it is judged on.
    """
    if confidence is not None:
        confidence = check_confidence(confidence, "curve")
    name = settled_metric(encoder, evidence) if metric == "auto" else metric
    lengths = _checked_lengths(ks, encoder.d)
    if name == "head_accuracy":
        judges.check_known_labels(encoder, evidence.y)
    tally = _tally(encoder, evidence, name, lengths)
    ends = () if confidence is None else bootstrap_interval(tally, confidence)
    low, high = (tuple(end.tolist()) for end in ends) if ends else (None, None)
    return PrefixCurve(
        k=tuple(lengths.tolist()),
        score=tuple(tally.score().tolist()),
        metric=name,
        input_score=METRICS[name].raw(encoder, evidence),
        label=str(encoder.config.get("objective", "")),
        n_evaluated=tally.n,
        details=_parts(encoder, evidence, lengths) if name == "mixture" else {},
        low=low,
        high=high,
        confidence=confidence,
        supported=supported_lengths(encoder.config, encoder.d),
    )


def settled_metric(encoder: FittedEncoder, evidence: EvaluationData) -> str:
    """Return the objective's own metric; of pairs, Spearman where scores differ, recall where all are positives."""
    name = str(encoder.config["metric"])
    return pair_metric(evidence) if name == "pair_agreement" else name


def pair_metric(evidence: EvaluationData) -> str:
    """Return Spearman for scores that differ, recall of partners for positives."""
    return "spearman" if scores_differ(evidence) else "positive_recall@10"


def check_metric(metric: Any, evidence: EvaluationData) -> str:
    """Return the name of a metric for which the evidence suffices."""
    name = check_choice(metric, METRICS, "metric", "curve")
    _check_needs(evidence, METRICS[name].needs, name)
    return name


def _tally(encoder: FittedEncoder, evidence: EvaluationData, metric: str, ks: np.ndarray) -> PerRowScores:
    return METRICS[check_metric(metric, evidence)].judge(encoder, evidence, ks)


def _parts(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> dict[str, list[float]]:
    of_y, of_x = judges.mixture_parts(encoder, evidence, ks)
    return {"explained_variance": of_x.score().tolist(), "r2": of_y.score().tolist()}


def _checked_lengths(ks: Any, d: int) -> np.ndarray:
    if ks is None:
        return np.arange(1, d + 1)
    return np.unique([check_prefix(k, d, "curve") for k in np.atleast_1d(np.asarray(ks)).tolist()])


def _check_needs(evidence: EvaluationData, needs: tuple[str, ...], name: str) -> None:
    """Refuse missing evidence with the argument that would bring it."""
    ways = {
        "y": "y, the labels or targets of X",
        "X_ref": "reference=(X_train, y_train), the rows to look among and their labels",
        "y_ref": "reference=(X_train, y_train), the rows to look among and their labels",
        "left": "pairs: use curve_pairs(left, right, scores)",
        "right": "pairs: use curve_pairs(left, right, scores)",
        "queries": "judged documents: use curve_search(queries, documents, relevance)",
        "documents": "judged documents: use curve_search(queries, documents, relevance)",
        "relevance": "judged documents: use curve_search(queries, documents, relevance)",
        "X": "rows: use curve(X, ...)",
    }
    missing = dict.fromkeys(ways[need] for need in needs if getattr(evidence, need) is None)
    if missing:
        raise InvalidInputError(f"The metric '{name}' needs {' and '.join(missing)}.")


def _one(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    return 1.0


def _none(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    return None


_WITH_REFERENCE = ("X", "y", "X_ref", "y_ref")
METRICS: dict[str, Metric] = {
    "explained_variance": Metric(
        judges.explained_variance, _one, ("X",), "share of the variance that the encoder's own decoder rebuilds"
    ),
    "readback_variance": Metric(
        judges.readback_variance, _one, ("X",), "share of the variance that the best linear decoder rebuilds"
    ),
    "r2": Metric(judges.r2, judges.raw_r2, ("X", "y"), "R^2 of the best linear readout of the targets"),
    "1nn_accuracy": Metric(
        judges.neighbor_accuracy,
        judges.raw_neighbor_accuracy,
        _WITH_REFERENCE,
        "accuracy of the nearest reference row, cosine",
    ),
    "probe_accuracy": Metric(
        judges.probe_accuracy, judges.raw_probe_accuracy, _WITH_REFERENCE, "accuracy of the best least-squares probe"
    ),
    "head_accuracy": Metric(judges.head_accuracy, _none, ("X", "y"), "accuracy of the encoder's own head"),
    "recall@10": Metric(
        judges.recall,
        _one,
        ("X",),
        "share of the ten full-width neighbors that are found",
        prepare=judges.with_neighbors,
    ),
    "mixture": Metric(judges.mixture, _none, ("X", "y"), "share of targets and vectors explained together"),
    "spearman": Metric(
        judges.spearman, judges.raw_spearman, ("left", "right"), "Spearman correlation of cosine and score"
    ),
    "positive_recall@10": Metric(
        judges.positive_recall, judges.raw_positive_recall, ("left", "right"), "share of partners among the ten nearest"
    ),
    "ndcg@10": Metric(
        judges.ndcg,
        judges.raw_ndcg,
        ("queries", "documents", "relevance"),
        "gain of the ten nearest documents over the largest possible",
    ),
}
