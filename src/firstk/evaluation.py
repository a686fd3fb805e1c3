"""From an encoder and data to the curve of quality against k: one encode, one sweep, every prefix.

A metric is a function of an encoder and what it is judged on, found by name; it says what it needs, so that a missing
argument is a sentence. The objective names its default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstk import metrics
from firstk._checks import InvalidInput, check_choice
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


@dataclass(frozen=True, eq=False)
class Judgement:
    """Scores at the asked-for prefix lengths, the same metric of the raw vectors, and anything worth keeping."""

    scores: np.ndarray
    input_score: float | None
    details: dict[str, Any] = field(default_factory=dict)


Judge = Callable[[FittedEncoder, Evidence, np.ndarray], Judgement]


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
    name = encoder.config.get("metric", "explained_variance") if metric == "auto" else metric
    judge, needs, _ = METRICS[check_choice(name, METRICS, "metric", "curve")]
    _check_needs(evidence, needs, name)
    lengths = np.arange(1, encoder.d + 1) if ks is None else np.asarray(ks, dtype=int)
    result = judge(encoder, evidence, lengths)
    rows = evidence.X if evidence.X is not None else evidence.left
    return PrefixCurve(
        k=lengths.tolist(),  # type: ignore[arg-type]
        score=np.asarray(result.scores, dtype=float).tolist(),  # type: ignore[arg-type]
        metric=name,
        input_score=result.input_score,
        label=str(encoder.config.get("objective", "")),
        n_evaluated=int(np.shape(rows)[0]),
        details=result.details,
    )


def _check_needs(evidence: Evidence, needs: tuple[str, ...], name: str) -> None:
    """Refuse missing evidence with the argument that would bring it."""
    ways = {
        "y": "y, the labels or targets of X",
        "X_ref": "reference=(X_train, y_train), the rows among which neighbours are looked for",
        "y_ref": "reference=(X_train, y_train), with the labels of the reference rows",
        "left": "pairs: use curve_pairs(left, right, scores)",
        "X": "rows: use curve(X, ...)",
    }
    missing = [need for need in needs if getattr(evidence, need) is None]
    if missing:
        raise InvalidInput(f"The metric '{name}' needs {' and '.join(ways[need] for need in missing)}.")


def _codes(encoder: FittedEncoder, X: Any, side: str = "document") -> np.ndarray:
    """Codes at full width, not normalised: metrics that take cosines do so after each truncation."""
    return encoder.coordinates(X, side=side, owner="curve")


def _plain(encoder: FittedEncoder, X: Any) -> np.ndarray:
    return encoder.vectors(X, owner="curve")


def _centred(encoder: FittedEncoder, X: Any) -> np.ndarray:
    X = _plain(encoder, X)
    return X - encoder.mean.astype(X.dtype)


def _explained_variance(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    if encoder.decoder is None:
        raise InvalidInput("The metric 'explained_variance' needs a decoder; use 'readback_variance' for this objective.")
    X = _centred(encoder, evidence.X)
    scores = metrics.explained_variance(X, _codes(encoder, evidence.X), encoder.decoder)
    return Judgement(scores[ks - 1], 1.0)


def _readback_variance(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    rows = evidence.X if evidence.X_ref is None else evidence.X_ref
    fit = _codes(encoder, rows), _centred(encoder, rows)
    scores = metrics.linear_readout_r2(*fit, _codes(encoder, evidence.X), _centred(encoder, evidence.X))
    return Judgement(scores[ks - 1], 1.0)


def _r2(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    X_fit, y_fit = (evidence.X, evidence.y) if evidence.y_ref is None else (evidence.X_ref, evidence.y_ref)
    Y_fit, Y = (np.asarray(part, dtype=float).reshape(len(part), -1) for part in (y_fit, evidence.y))
    scores = metrics.linear_readout_r2(_codes(encoder, X_fit), Y_fit, _codes(encoder, evidence.X), Y)
    raw = metrics.linear_readout_r2(_centred(encoder, X_fit), Y_fit, _centred(encoder, evidence.X), Y)
    return Judgement(scores[ks - 1], float(raw[-1]))


def _neighbour_accuracy(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    y_ref, y = evidence.y_ref, evidence.y
    scores = metrics.nearest_neighbour_accuracy(
        _codes(encoder, evidence.X_ref), y_ref, _codes(encoder, evidence.X), y, ks=ks
    )
    raw = metrics.nearest_neighbour_accuracy(
        _plain(encoder, evidence.X_ref), y_ref, _plain(encoder, evidence.X), y, ks=[encoder.p]
    )
    return Judgement(scores, float(raw[0]), {"similarity": "cosine"})


def _probe_accuracy(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    y_ref, y = evidence.y_ref, evidence.y
    scores = metrics.linear_probe_accuracy(_codes(encoder, evidence.X_ref), y_ref, _codes(encoder, evidence.X), y)
    raw = metrics.linear_probe_accuracy(_centred(encoder, evidence.X_ref), y_ref, _centred(encoder, evidence.X), y)
    return Judgement(scores[ks - 1], float(raw[-1]))


def _head_accuracy(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    head = encoder.head
    if head is None or head.classes is None:
        raise InvalidInput("The metric 'head_accuracy' needs an objective that predicts classes, such as 'fisher'.")
    Z, y = _codes(encoder, evidence.X), np.asarray(evidence.y)
    logits = np.tile(head.offset, (len(Z), 1))  # (n, C)
    correct = np.empty(encoder.d)
    for j in range(encoder.d):  # a rank-one update a prefix, as in the all-prefix cross-entropy
        logits += np.outer(Z[:, j], head.weight[:, j]) - head.quadratic[:, j]
        correct[j] = np.mean(head.classes[logits.argmax(axis=1)] == y)
    return Judgement(correct[ks - 1], None)


def _recall(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    alone = evidence.X_ref is None
    reference = evidence.X if alone else evidence.X_ref
    at = min(10, np.shape(reference)[0] - alone)
    if at < 1:
        raise InvalidInput("The metric 'recall@10' needs at least two rows to look for neighbours among.")
    truth = metrics.nearest_neighbours(_plain(encoder, reference), _plain(encoder, evidence.X), at, exclude_self=alone)
    scores = metrics.neighbour_recall(
        _codes(encoder, reference), _codes(encoder, evidence.X), truth, exclude_self=alone, ks=ks
    )
    return Judgement(scores, 1.0, {"neighbours": at, "similarity": "cosine", "among_themselves": alone})


def _mixture(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    """Share of |Y|^2 + lam |X|^2 that each prefix explains (002 (3)), and both parts apart."""
    if encoder.head is None or encoder.decoder is None:
        raise InvalidInput("The metric 'mixture' belongs to objective 'mixture'.")
    Z, X, Y = _codes(encoder, evidence.X), _centred(encoder, evidence.X), _targets(encoder, evidence.y)
    lam = float(encoder.config.get("settings", {}).get("lam", 1.0))
    of_x = metrics.explained_variance(X, Z, encoder.decoder)[ks - 1]
    of_y = metrics.explained_variance(Y, Z, encoder.head.weight)[ks - 1]
    size_y, size_x = float(np.sum(Y**2)), lam * float(np.sum(np.square(X, dtype=float)))
    scores = (size_y * of_y + size_x * of_x) / (size_y + size_x)
    return Judgement(scores, None, {"explained_variance": of_x.tolist(), "r2": of_y.tolist()})


def _targets(encoder: FittedEncoder, y: Any) -> np.ndarray:
    """Targets less their training mean; labels become one-hot rows."""
    head = encoder.head
    assert head is not None
    if head.classes is None:
        return np.asarray(y, dtype=float).reshape(len(y), -1) - head.offset
    return (np.asarray(y)[:, None] == head.classes) - head.offset


def _pair_agreement(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    """Spearman for scores that differ, recall@10 for positives."""
    scores = evidence.scores
    scored = scores is not None and len(np.unique(np.asarray(scores))) > 1
    return (_spearman if scored else _positive_recall)(encoder, evidence, ks)


def _spearman(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    if evidence.scores is None:
        raise InvalidInput("The metric 'spearman' needs scores: use curve_pairs(left, right, scores).")
    left, right = _codes(encoder, evidence.left, "query"), _codes(encoder, evidence.right)
    scores = metrics.pair_spearman(left, right, evidence.scores)
    raw = metrics.pair_spearman(_plain(encoder, evidence.left), _plain(encoder, evidence.right), evidence.scores)
    return Judgement(scores[ks - 1], float(raw[-1]), {"metric": "spearman"})


def _positive_recall(encoder: FittedEncoder, evidence: Evidence, ks: np.ndarray) -> Judgement:
    left, right = _codes(encoder, evidence.left, "query"), _codes(encoder, evidence.right)
    scores = metrics.positive_recall(left, right, ks=ks)
    raw = metrics.positive_recall(_plain(encoder, evidence.left), _plain(encoder, evidence.right), ks=[encoder.p])
    return Judgement(scores, float(raw[0]), {"metric": "positive_recall@10"})


# name: (judge, what it needs, one line of help)
METRICS: dict[str, tuple[Judge, tuple[str, ...], str]] = {
    "explained_variance": (_explained_variance, ("X",), "share of the variance that the encoder's decoder rebuilds"),
    "readback_variance": (_readback_variance, ("X",), "share of the variance that the best linear decoder rebuilds"),
    "r2": (_r2, ("X", "y"), "R^2 of the best linear readout of the targets"),
    "1nn_accuracy": (_neighbour_accuracy, ("X", "y", "X_ref", "y_ref"), "accuracy of the nearest reference row, cosine"),
    "probe_accuracy": (_probe_accuracy, ("X", "y", "X_ref", "y_ref"), "accuracy of the best least-squares probe"),
    "head_accuracy": (_head_accuracy, ("X", "y"), "accuracy of the encoder's own head"),
    "recall@10": (_recall, ("X",), "share of the ten full-width neighbours that are found"),
    "mixture": (_mixture, ("X", "y"), "share of targets and vectors explained together"),
    "pair_agreement": (_pair_agreement, ("left", "right"), "Spearman for scored pairs, recall@10 for positives"),
    "spearman": (_spearman, ("left", "right"), "Spearman correlation of cosine and score"),
    "positive_recall@10": (_positive_recall, ("left", "right"), "share of partners among the ten nearest"),
}
