"""From an encoder and data to the curve of quality against k: one encode, one sweep, every prefix.

A metric is a function of an encoder and what it is judged on, found by name; it says what it needs, so that a missing
argument is a sentence. The objective names its default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk import metrics
from firstk._checks import InvalidInput, check_choice, check_prefix, check_same_length
from firstk.fitted import FittedEncoder
from firstk.records import PrefixCurve


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an encoder is judged on: rows with labels or targets and a reference set, or pairs with scores."""

    X: Any = None
    y: Any = None
    X_ref: Any = None
    y_ref: Any = None
    left: Any = None
    right: Any = None
    scores: Any = None


Judge = Callable[[FittedEncoder, Evidence, np.ndarray], np.ndarray]
Raw = Callable[[FittedEncoder, Evidence], float | None]


@dataclass(frozen=True)
class Metric:
    """A way to judge prefixes.

    Attributes
    ----------
    judge : callable
        From an encoder, evidence and prefix lengths to scores.
    raw : callable
        The same metric of the vectors as they came; None where that has no meaning.
    needs : tuple of str
        Fields of the evidence that must be there.
    help : str
        One line for a table.
    """

    judge: Judge
    raw: Raw
    needs: tuple[str, ...]
    help: str


def prefix_scores(encoder: FittedEncoder, evidence: Evidence, metric: str, ks: np.ndarray) -> np.ndarray:
    """Score the prefixes `ks` of an encoder by the metric of that name."""
    chosen = METRICS[check_choice(metric, METRICS, "metric", "curve")]
    _check_needs(evidence, chosen.needs, metric)
    return np.asarray(chosen.judge(encoder, evidence, ks), dtype=float)


def prefix_curve(encoder: FittedEncoder, evidence: Evidence, metric: str = "auto", ks: Any = None) -> PrefixCurve:
    """Judge every prefix of an encoder.

    Parameters
    ----------
    encoder : FittedEncoder
    evidence : Evidence
    metric : str
        A name in `METRICS`, or "auto" for the objective's own.
    ks : sequence of int, optional
        Prefix lengths; all if not given.
    """
    name = settled_metric(encoder, evidence) if metric == "auto" else metric
    lengths = _checked_lengths(ks, encoder.d)
    scores = prefix_scores(encoder, evidence, name, lengths)
    rows = evidence.X if evidence.X is not None else evidence.left
    return PrefixCurve(
        k=tuple(lengths.tolist()),
        score=tuple(scores.tolist()),
        metric=name,
        input_score=METRICS[name].raw(encoder, evidence),
        label=str(encoder.config.get("objective", "")),
        n_evaluated=int(np.shape(rows)[0]),
        details=_parts(encoder, evidence, lengths) if name == "mixture" else {},
    )


def settled_metric(encoder: FittedEncoder, evidence: Evidence) -> str:
    """Return the objective's own metric; of pairs, Spearman where scores differ, recall where all are positives."""
    name = str(encoder.config["metric"])
    return pair_metric(evidence) if name == "pair_agreement" else name


def pair_metric(evidence: Evidence) -> str:
    """Return Spearman for scores that differ, recall of partners for positives."""
    return "spearman" if _scores_differ(evidence) else "positive_recall@10"


def _checked_lengths(ks: Any, d: int) -> np.ndarray:
    if ks is None:
        return np.arange(1, d + 1)
    return np.unique([check_prefix(k, d, "curve") for k in np.atleast_1d(np.asarray(ks)).tolist()])


def _scores_differ(evidence: Evidence) -> bool:
    return evidence.scores is not None and len(np.unique(np.asarray(evidence.scores))) > 1


def _check_needs(evidence: Evidence, needs: tuple[str, ...], name: str) -> None:
    """Refuse missing evidence with the argument that would bring it."""
    ways = {
        "y": "y, the labels or targets of X",
        "X_ref": "reference=(X_train, y_train), the rows to look among and their labels",
        "y_ref": "reference=(X_train, y_train), the rows to look among and their labels",
        "left": "pairs: use curve_pairs(left, right, scores)",
        "right": "pairs: use curve_pairs(left, right, scores)",
        "X": "rows: use curve(X, ...)",
    }
    missing = dict.fromkeys(ways[need] for need in needs if getattr(evidence, need) is None)
    if missing:
        raise InvalidInput(f"The metric '{name}' needs {' and '.join(missing)}.")


def _codes(encoder: FittedEncoder, X: Any, side: str = "document") -> np.ndarray:
    """Codes at full width, not normalised: metrics that take cosines do so after each truncation."""
    return encoder.coordinates(X, side=side, owner="curve")


def _plain(encoder: FittedEncoder, X: Any) -> np.ndarray:
    return encoder.vectors(X, owner="curve")


def _centred(encoder: FittedEncoder, X: Any) -> np.ndarray:
    X = _plain(encoder, X)
    return X - encoder.mean.astype(X.dtype)


def _one(encoder: FittedEncoder, evidence: Evidence) -> float | None:
    return 1.0


def _none(encoder: FittedEncoder, evidence: Evidence) -> float | None:
    return None


def _explained_variance(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    if encoder.decoder is None:
        raise InvalidInput(
            "The metric 'explained_variance' needs a decoder; use 'readback_variance' for this objective."
        )
    # About the decoder's own origin, which for networks is not quite the mean.
    X = _plain(encoder, evidence.X)
    X = X - (encoder.mean if encoder.origin is None else encoder.origin).astype(X.dtype)
    return metrics.explained_variance(X, _codes(encoder, evidence.X), encoder.decoder)[ks - 1]


def _readback_variance(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    rows = evidence.X if evidence.X_ref is None else evidence.X_ref
    fit = _codes(encoder, rows), _centred(encoder, rows)
    return metrics.linear_readout_r2(*fit, _codes(encoder, evidence.X), _centred(encoder, evidence.X))[ks - 1]


def _numbers(y: Any) -> np.ndarray:
    y = np.asarray(y)
    if y.dtype.kind not in "fiub":
        raise InvalidInput(
            "The metric 'r2' reads numbers, and 'y' holds labels: use metric='probe_accuracy' for those."
        )
    return y.astype(float)


def _readout(evidence: Evidence, code: Callable[[Any], np.ndarray]) -> np.ndarray:
    X_fit, y_fit = (evidence.X, evidence.y) if evidence.y_ref is None else (evidence.X_ref, evidence.y_ref)
    Y_fit, Y = (_numbers(part).reshape(len(part), -1) for part in (y_fit, evidence.y))
    return metrics.linear_readout_r2(code(X_fit), Y_fit, code(evidence.X), Y)


def _r2(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    if encoder.head is not None and encoder.head.classes is not None:
        raise InvalidInput(
            "The metric 'r2' reads numbers, and this encoder learned labels: use metric='probe_accuracy'."
        )
    return _readout(evidence, lambda X: _codes(encoder, X))[ks - 1]


def _raw_r2(encoder: FittedEncoder, evidence: Evidence) -> float | None:
    return float(_readout(evidence, lambda X: _centred(encoder, X))[-1])


def _neighbour_accuracy(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    reference = _codes(encoder, evidence.X_ref), evidence.y_ref
    return metrics.nearest_neighbour_accuracy(*reference, _codes(encoder, evidence.X), evidence.y, ks=ks)


def _raw_neighbour_accuracy(encoder: FittedEncoder, evidence: Evidence) -> float | None:
    reference = _plain(encoder, evidence.X_ref), evidence.y_ref
    return float(
        metrics.nearest_neighbour_accuracy(*reference, _plain(encoder, evidence.X), evidence.y, ks=[encoder.p])[0]
    )


def _probe_accuracy(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    reference = _codes(encoder, evidence.X_ref), evidence.y_ref
    return metrics.linear_probe_accuracy(*reference, _codes(encoder, evidence.X), evidence.y)[ks - 1]


def _raw_probe_accuracy(encoder: FittedEncoder, evidence: Evidence) -> float | None:
    reference = _centred(encoder, evidence.X_ref), evidence.y_ref
    return float(metrics.linear_probe_accuracy(*reference, _centred(encoder, evidence.X), evidence.y)[-1])


def _head_accuracy(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    head = encoder.head
    if head is None or head.classes is None:
        raise InvalidInput("The metric 'head_accuracy' needs an objective that predicts classes, such as 'fisher'.")
    Z, y = _codes(encoder, evidence.X), np.asarray(evidence.y)
    check_same_length(Z, y, "X", "y", "curve")
    logits = np.tile(head.offset, (len(Z), 1))  # (n, C)
    correct = np.empty(encoder.d)
    for j in range(encoder.d):  # a rank-one update a prefix, as in the all-prefix cross-entropy
        logits += np.outer(Z[:, j], head.weight[:, j]) - head.quadratic[:, j]
        correct[j] = np.mean(head.classes[logits.argmax(axis=1)] == y)
    return correct[ks - 1]


def _recall(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    alone = evidence.X_ref is None
    reference = evidence.X if alone else evidence.X_ref
    at, among = 10, np.shape(reference)[0] - alone
    if among <= at:
        raise InvalidInput(f"The metric 'recall@10' needs more than {at} rows to look among. Got {among}.")
    truth = metrics.nearest_neighbours(_plain(encoder, reference), _plain(encoder, evidence.X), at, exclude_self=alone)
    codes = _codes(encoder, reference), _codes(encoder, evidence.X)
    return metrics.neighbour_recall(*codes, truth, exclude_self=alone, ks=ks)


def _mixture(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    """Share of |Y|^2 + lam |X|^2 that each prefix explains (002 (3))."""
    parts = _parts(encoder, evidence, ks)
    X, Y = _centred(encoder, evidence.X), _targets(encoder, evidence.y)
    size_x = float(encoder.config["settings"]["lam"]) * float(np.sum(np.square(X, dtype=float)))
    size_y = float(np.sum(Y**2))
    return (size_y * np.array(parts["r2"]) + size_x * np.array(parts["explained_variance"])) / (size_y + size_x)


def _parts(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> dict[str, list[float]]:
    """Both parts of a mixture apart: of the targets, and of the vectors."""
    if encoder.head is None or encoder.decoder is None:
        raise InvalidInput("The metric 'mixture' belongs to objective 'mixture'.")
    Z, X, Y = _codes(encoder, evidence.X), _centred(encoder, evidence.X), _targets(encoder, evidence.y)
    of_y = metrics.explained_variance(Y, Z, encoder.head.weight)
    return {
        "explained_variance": metrics.explained_variance(X, Z, encoder.decoder)[ks - 1].tolist(),
        "r2": of_y[ks - 1].tolist(),
    }


def _targets(encoder: FittedEncoder, y: Any) -> np.ndarray:
    """Targets less their training mean; labels become one-hot rows."""
    head = encoder.head
    assert head is not None
    if head.classes is None:
        return np.asarray(y, dtype=float).reshape(len(y), -1) - head.offset
    return (np.asarray(y)[:, None] == head.classes) - head.offset


def _check_scored(evidence: Evidence) -> Any:
    if not _scores_differ(evidence):
        raise InvalidInput("The metric 'spearman' needs scores that differ: use curve_pairs(left, right, scores).")
    return evidence.scores


def _spearman(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    left, right = _codes(encoder, evidence.left, "query"), _codes(encoder, evidence.right)
    return metrics.pair_spearman(left, right, _check_scored(evidence), ks=ks)


def _raw_spearman(encoder: FittedEncoder, evidence: Evidence) -> float | None:
    left, right = _plain(encoder, evidence.left), _plain(encoder, evidence.right)
    return float(metrics.pair_spearman(left, right, evidence.scores, ks=[encoder.p])[0])


def _positive_recall(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> np.ndarray:
    left, right = _codes(encoder, evidence.left, "query"), _codes(encoder, evidence.right)
    return metrics.positive_recall(left, right, ks=ks)


def _raw_positive_recall(encoder: FittedEncoder, evidence: Evidence) -> float | None:
    left, right = _plain(encoder, evidence.left), _plain(encoder, evidence.right)
    if (among := len(np.unique(right, axis=0))) <= 10:
        raise InvalidInput(f"The metric 'positive_recall@10' needs more than 10 different right sides. Got {among}.")
    return float(metrics.positive_recall(left, right, ks=[encoder.p])[0])


_WITH_REFERENCE = ("X", "y", "X_ref", "y_ref")
METRICS: dict[str, Metric] = {
    "explained_variance": Metric(
        _explained_variance, _one, ("X",), "share of the variance that the encoder's own decoder rebuilds"
    ),
    "readback_variance": Metric(
        _readback_variance, _one, ("X",), "share of the variance that the best linear decoder rebuilds"
    ),
    "r2": Metric(_r2, _raw_r2, ("X", "y"), "R^2 of the best linear readout of the targets"),
    "1nn_accuracy": Metric(
        _neighbour_accuracy,
        _raw_neighbour_accuracy,
        _WITH_REFERENCE,
        "accuracy of the nearest reference row, cosine",
    ),
    "probe_accuracy": Metric(
        _probe_accuracy, _raw_probe_accuracy, _WITH_REFERENCE, "accuracy of the best least-squares probe"
    ),
    "head_accuracy": Metric(_head_accuracy, _none, ("X", "y"), "accuracy of the encoder's own head"),
    "recall@10": Metric(_recall, _one, ("X",), "share of the ten full-width neighbours that are found"),
    "mixture": Metric(_mixture, _none, ("X", "y"), "share of targets and vectors explained together"),
    "spearman": Metric(_spearman, _raw_spearman, ("left", "right"), "Spearman correlation of cosine and score"),
    "positive_recall@10": Metric(
        _positive_recall, _raw_positive_recall, ("left", "right"), "share of partners among the ten nearest"
    ),
}
