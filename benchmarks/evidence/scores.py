"""Scores of codes: by row, query or pair, one column for each length, so that they can be resampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import xlogy

from benchmarks.evidence.data import Encode
from firstk.metrics.bootstrap import MeanScore, RankAgreement

FEW_SHOT, DRAWS, SEED = 8, 10, 42  # of classification in mteb


def unit(Z: np.ndarray) -> np.ndarray:
    """Return rows of norm 1, in single precision; a zero row stays."""
    Z = np.asarray(Z, dtype=np.float32)
    return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows to search among and rows to classify, with labels."""

    reference: np.ndarray
    reference_labels: np.ndarray
    queries: np.ndarray
    labels: np.ndarray


def nearest(encode: Encode, part: Labelled, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return whether the nearest row by cosine has the right label.

    Codes of the rows that ask are those of the stored ones, but are not stored themselves: "row" instead of "document".
    """
    hits = []
    for k in ks:
        rows, asked = unit(encode(part.reference, k, "document")), unit(encode(part.queries, k, "row"))
        found = np.concatenate([(block @ rows.T).argmax(axis=1) for block in np.array_split(asked, 4)])
        hits.append(part.reference_labels[found] == part.labels)
    return {"all": MeanScore(np.stack(hits, axis=1))}


def few_shot(
    encode: Encode, part: Labelled, ks: tuple[int, ...], scale: Callable[[np.ndarray], np.ndarray] = unit
) -> dict[str, Any]:
    """Return the share of ten draws in which logistic regression on 8 rows of each class has the right label.

    The protocol of classification in mteb, with its draws. Codes are scaled to norm 1 first, which mteb leaves to the
    model: methods differ in scale, and the regularization is the same for all.
    """
    from sklearn.linear_model import LogisticRegression

    values = []
    for k in ks:
        rows, asked = (scale(encode(X, k, "document")) for X in (part.reference, part.queries))
        hits = [
            LogisticRegression(max_iter=100).fit(rows[few], part.reference_labels[few]).predict(asked) == part.labels
            for few in few_rows(part.reference_labels)
        ]
        values.append(np.mean(hits, axis=0))
    return {"all": MeanScore(np.stack(values, axis=1))}


def few_rows(labels: np.ndarray) -> Iterator[np.ndarray]:
    """Return the rows of each draw of mteb: the first 8 of a class, after one more shuffle with the same seed."""
    order = np.arange(len(labels))
    for _ in range(DRAWS):
        np.random.RandomState(SEED).shuffle(order)
        first = np.sort(np.concatenate([np.flatnonzero(labels[order] == c)[:FEW_SHOT] for c in np.unique(labels)]))
        yield order[first]


def linear(encode: Encode, part: Labelled, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return whether logistic regression on all rows has the right label."""
    from sklearn.linear_model import LogisticRegression

    hits = []
    for k in ks:
        rows, asked = (unit(encode(X, k, "document")) for X in (part.reference, part.queries))
        fitted = LogisticRegression(C=10.0, max_iter=200).fit(rows, part.reference_labels)
        hits.append(fitted.predict(asked) == part.labels)
    return {"all": MeanScore(np.stack(hits, axis=1))}


@dataclass(frozen=True, eq=False)
class Clustered:
    """V-measure of clusters (n, K) and labels, of rows that may be drawn several times."""

    clusters: np.ndarray
    labels: np.ndarray

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.labels)

    def score(self) -> np.ndarray:
        """Return the V-measure of each length."""
        return self.resampled(np.ones((self.n, 1)))[0]

    def resampled(self, counts: np.ndarray) -> np.ndarray:
        """Return the V-measure of resampled rows, whose clusters stay as they are."""
        classes = int(self.labels.max()) + 1
        shares = counts / counts.sum(axis=0)
        return np.stack([_v_measure(column, self.labels, column * classes + self.labels, shares)
                         for column in self.clusters.T], axis=1)  # fmt: skip


def _v_measure(clusters: np.ndarray, labels: np.ndarray, both: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the harmonic mean of homogeneity and completeness, 2 I / (H of clusters + H of classes), of each draw."""
    of_clusters, of_classes, joint = (_entropy(groups, shares) for groups in (clusters, labels, both))
    sizes = of_clusters + of_classes
    return np.where(sizes > 0, 2 * (sizes - joint) / np.where(sizes > 0, sizes, 1.0), 1.0)


def _entropy(groups: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the entropy of groups in each draw, from the shares (n, B) of their rows."""
    found, members = np.unique(groups, return_inverse=True)
    sums = csr_matrix((np.ones(len(members)), (members, np.arange(len(members)))), (len(found), len(members))) @ shares
    return -xlogy(sums, sums).sum(axis=0)


def clusters(encode: Encode, part: Labelled, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return clusters of the queries' codes by k-means, as many as there are classes; the references are not used."""
    from sklearn.cluster import KMeans

    classes, labels = np.unique(part.labels, return_inverse=True)
    means = KMeans(len(classes), n_init=1, max_iter=100, random_state=0)
    found = [means.fit_predict(unit(encode(part.queries, k, "document"))) for k in ks]
    return {"all": Clustered(np.stack(found, axis=1), labels)}


def spearman(encode: Encode, part: tuple[np.ndarray, np.ndarray, np.ndarray], ks: tuple[int, ...]) -> dict[str, Any]:
    """Return cosines of pairs beside their scores."""
    left, right, scores = part
    cosines = [
        (unit(encode(left, k, "query")) * unit(encode(right, k, "document"))).sum(axis=1) for k in ks
    ]  # fmt: skip
    return {"all": RankAgreement(np.stack(cosines, axis=1).astype(np.float64), np.asarray(scores, dtype=np.float64))}


@dataclass(frozen=True, eq=False)
class Search:
    """Documents, queries, and the relevant documents of each query; which queries have a document learned from."""

    documents: np.ndarray
    queries: np.ndarray
    relevant: tuple[dict[int, float], ...]
    seen: np.ndarray | None = None


def ndcg(encode: Encode, part: Search, ks: tuple[int, ...]) -> dict[str, Any]:
    """Return nDCG@10 of every query, and of those with seen and with unseen documents apart."""
    values = []
    for k in ks:
        documents, asked = unit(encode(part.documents, k, "document")), unit(encode(part.queries, k, "query"))
        scores = asked @ documents.T
        best = np.argpartition(-scores, 10, axis=1)[:, :10]
        order = np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)
        values.append([_ndcg(found, judged) for found, judged in zip(order, part.relevant, strict=True)])
    table = np.array(values).T
    found = {"all": MeanScore(table)}
    if part.seen is not None:
        found |= {"seen": MeanScore(table[part.seen]), "unseen": MeanScore(table[~part.seen])}
    return found


def _ndcg(found: np.ndarray, judged: dict[int, float]) -> float:
    discounts = 1 / np.log2(np.arange(2, 12))
    ideal = np.sort(list(judged.values()))[::-1][:10]
    gained = np.array([judged.get(int(row), 0.0) for row in found])
    return float(gained @ discounts[: len(gained)]) / float(ideal @ discounts[: len(ideal)])
