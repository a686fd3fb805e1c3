"""How each metric judges an encoder: from codes and evidence to scores by row and prefix length.

A judge returns a tally, so that the same pass gives the score and its interval. What is stored (documents, references,
rows that are read out) goes through ``evidence.store``; what asks does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstk import metrics
from firstk._base.checks import check_same_length
from firstk._base.rows import distinct_rows
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics.bootstrap import ExplainedShare, MeanScore, PerRowScores, RankAgreement
from firstk.metrics.ranking import check_scores


def _as_it_is(Z: np.ndarray) -> np.ndarray:
    return Z


@dataclass(frozen=True, eq=False)
class EvaluationData:
    """What an encoder is judged on: rows with a reference set, pairs with scores, or queries with judged documents.

    Attributes
    ----------
    X, y : array-like
        Rows, and their labels or targets.
    X_ref, y_ref : array-like
        Rows to look among, or to fit readouts on.
    left, right, scores : array-like
        Pairs, and how alike they are.
    queries, documents : array-like
    relevance : array-like of int of shape (j, 3)
        Rows (query row, document row, relevance), as `firstk.metrics.ndcg` takes them.
    neighbors : ndarray of shape (n, 10), optional
        The ten full-width neighbors of each row, where they were found before.
    store : callable
        What storage does to codes: the identity, or rounding to some precision and back.
    """

    X: Any = None
    y: Any = None
    X_ref: Any = None
    y_ref: Any = None
    left: Any = None
    right: Any = None
    scores: Any = None
    queries: Any = None
    documents: Any = None
    relevance: Any = None
    neighbors: Any = None
    store: Callable[[np.ndarray], np.ndarray] = _as_it_is

    @property
    def stored(self) -> Any:
        """The rows that would be stored: documents, right sides, references; X where there is nothing else."""
        for rows in (self.documents, self.right, self.X_ref):
            if rows is not None:
                return rows
        return self.X


Judge = Callable[[FittedEncoder, EvaluationData, np.ndarray], PerRowScores]


def _codes(encoder: FittedEncoder, X: Any, side: str = "document") -> np.ndarray:
    """Codes at full width, not normalized: metrics that take cosines do so after each truncation.

    Summed in float64 and then rounded to the precision that is due: sums in float32 would give copies of a row codes
    of other last digits, and copies would no longer tie.
    """
    return encoder.coordinates(X, side=side, owner="curve", exact=True)


def _kept(encoder: FittedEncoder, evidence: EvaluationData, X: Any) -> np.ndarray:
    """Codes as they come back from storage."""
    return evidence.store(_codes(encoder, X))


def _plain(encoder: FittedEncoder, X: Any) -> np.ndarray:
    return encoder.vectors(X, owner="curve")


def _centred(encoder: FittedEncoder, X: Any) -> np.ndarray:
    X = _plain(encoder, X)
    return X - encoder.mean.astype(X.dtype)


def _squares(X: np.ndarray) -> np.ndarray:
    """Squared norms of rows in float64."""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _at(table: np.ndarray, ks: np.ndarray) -> np.ndarray:
    """Columns of the prefix lengths `ks`; by rows in memory, so that a sum over rows does not depend on the others."""
    return table if len(ks) == table.shape[1] else np.take(table, ks - 1, axis=1)


def explained_variance(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Share of the variance that the encoder's own decoder rebuilds."""
    if encoder.decoder is None:
        raise InvalidInputError(
            "The metric 'explained_variance' needs a decoder; use 'readback_variance' for this objective."
        )
    # About the decoder's own origin, which for networks is not quite the mean.
    X = _plain(encoder, evidence.X)
    X = X - (encoder.mean if encoder.origin is None else encoder.origin).astype(X.dtype)
    _check_varies(X, "explained_variance")
    errors = metrics.reconstruction_errors(X, _kept(encoder, evidence, evidence.X), encoder.decoder)
    return ExplainedShare(_at(errors, ks), _squares(X))


def readback_variance(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Share of the variance that the best linear decoder rebuilds."""
    rows = evidence.X if evidence.X_ref is None else evidence.X_ref
    fit = _kept(encoder, evidence, rows), _centred(encoder, rows)
    return _readout(fit, (_kept(encoder, evidence, evidence.X), _centred(encoder, evidence.X)), ks)


def r2(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """R² of the best linear readout of the targets."""
    if encoder.head is not None and encoder.head.classes is not None:
        raise InvalidInputError(
            "The metric 'r2' reads numbers, and this encoder learned labels: use metric='probe_accuracy'."
        )
    return _targets_read_out(evidence, lambda X: _kept(encoder, evidence, X), ks)


def raw_r2(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    """R² of the best linear readout of the vectors."""
    tally = _targets_read_out(evidence, lambda X: _centred(encoder, X), np.array([encoder.p]))
    return float(tally.score()[0])


def _targets_read_out(evidence: EvaluationData, code: Callable[[Any], np.ndarray], ks: np.ndarray) -> PerRowScores:
    X_fit, y_fit = (evidence.X, evidence.y) if evidence.y_ref is None else (evidence.X_ref, evidence.y_ref)
    Y_fit, Y = (_numbers(part).reshape(len(part), -1) for part in (y_fit, evidence.y))
    return _readout((code(X_fit), Y_fit), (code(evidence.X), Y), ks)


def _numbers(y: Any) -> np.ndarray:
    y = np.asarray(y)
    if y.dtype.kind not in "fiub":
        raise InvalidInputError(
            "The metric 'r2' reads numbers, and 'y' holds labels: use metric='probe_accuracy' for those."
        )
    return y.astype(float)


def _readout(fit: tuple[np.ndarray, np.ndarray], new: tuple[np.ndarray, np.ndarray], ks: np.ndarray) -> PerRowScores:
    Y = new[1] - new[1].mean(axis=0, dtype=np.float64)
    errors = metrics.readout_errors(*fit, *new)
    _check_varies(Y, "linear_readout_r2")
    return ExplainedShare(_at(errors, ks), _squares(Y), Y)


def _check_varies(Y: np.ndarray, owner: str) -> None:
    if not Y.any():
        raise InvalidInputError(f"{owner} needs targets that vary. Every target is constant over {len(Y)} rows.")


def neighbor_accuracy(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Accuracy of the nearest reference row."""
    reference = _kept(encoder, evidence, evidence.X_ref), evidence.y_ref
    asking = _codes(encoder, evidence.X), evidence.y
    return MeanScore(metrics.nearest_neighbor_accuracy(*reference, *asking, ks=ks, per_row=True))


def raw_neighbor_accuracy(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    """Accuracy of the nearest reference vector."""
    reference = _plain(encoder, evidence.X_ref), evidence.y_ref
    asking = _plain(encoder, evidence.X), evidence.y
    return float(metrics.nearest_neighbor_accuracy(*reference, *asking, ks=[encoder.p])[0])


def probe_accuracy(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Accuracy of the best least-squares probe."""
    reference = _kept(encoder, evidence, evidence.X_ref), evidence.y_ref
    new = _kept(encoder, evidence, evidence.X), evidence.y
    return MeanScore(_at(metrics.linear_probe_accuracy(*reference, *new, per_row=True), ks))


def raw_probe_accuracy(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    """Accuracy of the best least-squares probe of the vectors."""
    reference = _centred(encoder, evidence.X_ref), evidence.y_ref
    return float(metrics.linear_probe_accuracy(*reference, _centred(encoder, evidence.X), evidence.y)[-1])


def head_accuracy(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Accuracy of the encoder's own head."""
    head = encoder.head
    if head is None or head.classes is None:
        raise InvalidInputError(
            "The metric 'head_accuracy' needs an objective that predicts classes, such as 'fisher'."
        )
    Z, y = _kept(encoder, evidence, evidence.X), np.asarray(evidence.y)
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


def check_known_labels(encoder: FittedEncoder, y: Any) -> None:
    """Refuse labels of which the head knows none: every prefix would score 0, most often for labels of another type."""
    if y is None or encoder.head is None or encoder.head.classes is None:
        return
    given, known = (dict.fromkeys(np.asarray(part).ravel().tolist()) for part in (y, encoder.head.classes))
    if given and not any(label in known for label in given):
        raise InvalidInputError(
            f"The metric 'head_accuracy' needs labels that were fitted, and no label of 'y' was: it has "
            f"{_some(given)}; the classes are {_some(known)}. Give labels of the same type and spelling."
        )


def _some(labels: Iterable[Any]) -> str:
    """Show a few labels, so that their type can be seen."""
    shown = [repr(label) for label in labels]
    return ", ".join(shown[:3]) + (", ..." if len(shown) > 3 else "")


def with_neighbors(encoder: FittedEncoder, evidence: EvaluationData) -> EvaluationData:
    """Add the ten full-width neighbors of each row, which do not depend on the code."""
    if evidence.neighbors is not None:
        return evidence
    alone = evidence.X_ref is None
    reference = evidence.X if alone else evidence.X_ref
    if (among := np.shape(reference)[0] - alone) <= 10:
        raise InvalidInputError(f"The metric 'recall@10' needs more than 10 rows to look among. Got {among}.")
    vectors = _plain(encoder, reference), _plain(encoder, evidence.X)
    return replace(evidence, neighbors=metrics.nearest_neighbors(*vectors, 10, exclude_self=alone))


def recall(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Share of the ten full-width neighbors that are found."""
    truth = with_neighbors(encoder, evidence).neighbors
    alone = evidence.X_ref is None
    codes = _kept(encoder, evidence, evidence.X if alone else evidence.X_ref), _codes(encoder, evidence.X)
    return MeanScore(metrics.neighbor_recall(*codes, truth, exclude_self=alone, ks=ks, per_row=True), out_of=10)


def mixture(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Share of |Y|² + lam |X|² that each prefix explains (Balestriero and LeCun 2024 (3))."""
    of_y, of_x = mixture_parts(encoder, evidence, ks)
    lam = float(encoder.config["settings"]["lam"])
    return ExplainedShare(of_y.errors + lam * of_x.errors, of_y.sizes + lam * of_x.sizes)


def mixture_parts(
    encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray
) -> tuple[ExplainedShare, ExplainedShare]:
    """Both parts of a mixture apart: of the targets, and of the vectors."""
    if encoder.head is None or encoder.decoder is None:
        raise InvalidInputError("The metric 'mixture' belongs to objective 'mixture'.")
    Z, X = _kept(encoder, evidence, evidence.X), _centred(encoder, evidence.X)
    Y = _targets(encoder, evidence.y)
    parts = ((Y, encoder.head.weight), (X, encoder.decoder))
    of_y, of_x = (
        ExplainedShare(_at(metrics.reconstruction_errors(part, Z, A), ks), _squares(part)) for part, A in parts
    )
    return of_y, of_x


def _targets(encoder: FittedEncoder, y: Any) -> np.ndarray:
    """Targets less their training mean; labels become one-hot rows."""
    head = encoder.head
    assert head is not None
    if head.classes is None:
        return np.asarray(y, dtype=float).reshape(len(y), -1) - head.offset
    return (np.asarray(y)[:, None] == head.classes) - head.offset


def scores_differ(evidence: EvaluationData) -> bool:
    """Tell whether pairs are scored, and not all alike."""
    return evidence.scores is not None and len(np.unique(np.asarray(evidence.scores))) > 1


def spearman(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Spearman's correlation of cosine and score."""
    if not scores_differ(evidence):
        raise InvalidInputError("The metric 'spearman' needs scores that differ: use curve_pairs(left, right, scores).")
    left, right = _codes(encoder, evidence.left, "query"), _kept(encoder, evidence, evidence.right)
    cosines = metrics.pair_cosines(left, right, ks=ks)
    return RankAgreement(cosines, check_scores(evidence.scores, len(cosines), "pair_spearman"))


def raw_spearman(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    """Spearman's correlation of the cosine of the vectors and the score."""
    left, right = _plain(encoder, evidence.left), _plain(encoder, evidence.right)
    return float(metrics.pair_spearman(left, right, evidence.scores, ks=[encoder.p])[0])


def positive_recall(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Share of partners among the ten nearest."""
    left, right = _codes(encoder, evidence.left, "query"), _plain(encoder, evidence.right)
    first, which = distinct_rows(right)  # of the vectors: copies of a document are one candidate, as a store has them
    stored = evidence.store(_codes(encoder, right[first])[which])
    return MeanScore(metrics.positive_recall(left, stored, ks=ks, per_row=True))


def raw_positive_recall(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    """Share of partners among the ten nearest vectors."""
    left, right = _plain(encoder, evidence.left), _plain(encoder, evidence.right)
    if (among := len(distinct_rows(right)[0])) <= 10:
        raise InvalidInputError(
            f"The metric 'positive_recall@10' needs more than 10 different right sides. Got {among}."
        )
    return float(metrics.positive_recall(left, right, ks=[encoder.p])[0])


def ndcg(encoder: FittedEncoder, evidence: EvaluationData, ks: np.ndarray) -> PerRowScores:
    """Gain of the ten nearest documents over the largest possible."""
    codes = _kept(encoder, evidence, evidence.documents), _codes(encoder, evidence.queries, "query")
    return MeanScore(metrics.ndcg_per_query(*codes, evidence.relevance, ks=ks)[1])


def raw_ndcg(encoder: FittedEncoder, evidence: EvaluationData) -> float | None:
    """Gain of the ten nearest documents by the vectors as they came."""
    vectors = _plain(encoder, evidence.documents), _plain(encoder, evidence.queries)
    return float(metrics.ndcg(*vectors, evidence.relevance, ks=[encoder.p])[0])
