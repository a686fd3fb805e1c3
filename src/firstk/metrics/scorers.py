"""Scorers: from codes or raw vectors and data to scores by row and prefix length, one function for each metric.

Scores are kept by row, so that one pass gives the score and its interval, and differences to the raw vectors are
paired. What is stored (documents, references, rows that are read out) is asked of `Compared.kept`, queries of `asking`.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_same_length, check_weights
from firstk._base.rows import distinct_rows
from firstk.data.task import Pairs, Rows, Search, n_rows
from firstk.encoder.fitted import FittedEncoder
from firstk.exceptions import InvalidInputError
from firstk.metrics import neighbors, ranking, task
from firstk.metrics.bootstrap import ExplainedShare, MeanScore, PerRowScores, RankAgreement
from firstk.metrics.ranking import check_scores
from firstk.metrics.search import search_per_query


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
