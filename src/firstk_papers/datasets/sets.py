"""Containers of sentence pairs and of retrieval judgements; `firstk.data` has those of images and labelled vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstk_papers.frame.checks import check_choice


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Pairs of embedded sentences with similarity scores, in three parts.

    Attributes
    ----------
    name : str
    vectors : ndarray of shape (n, p), float32
        One row per distinct sentence.
    pairs_train, pairs_dev, pairs_test : ndarray of shape (m, 2), int64
        Rows of `vectors`.
    scores_train, scores_dev, scores_test : ndarray of shape (m,), float32
        0 (unrelated) to 5 (same meaning).
    genres_train, genres_dev, genres_test : ndarray of shape (m,), str
    """

    name: str
    vectors: np.ndarray
    pairs_train: np.ndarray
    pairs_dev: np.ndarray
    pairs_test: np.ndarray
    scores_train: np.ndarray
    scores_dev: np.ndarray
    scores_test: np.ndarray
    genres_train: np.ndarray
    genres_dev: np.ndarray
    genres_test: np.ndarray

    def part(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (left, right, scores) of "train", "dev" or "test", as `fit_pairs` takes them."""
        check_choice(name, ("train", "dev", "test"), "name", "ScoredPairs.part")
        pairs = getattr(self, f"pairs_{name}")
        return self.vectors[pairs[:, 0]], self.vectors[pairs[:, 1]], getattr(self, f"scores_{name}").copy()


@dataclass(frozen=True, eq=False)
class RetrievalSet:
    """Embedded documents and queries, with relevance judgements.

    Attributes
    ----------
    name : str
    documents, queries : ndarray of shape (n, p), float32
    judgements_train, judgements_test : ndarray of shape (m, 3), int64
        Query row, document row, relevance. The two parts share no query.
    document_ids, query_ids : ndarray of str
        Identifiers of the rows in the source.
    """

    name: str
    documents: np.ndarray
    queries: np.ndarray
    judgements_train: np.ndarray
    judgements_test: np.ndarray
    document_ids: np.ndarray
    query_ids: np.ndarray

    def test_queries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of (seen, unseen) test queries.

        A test query is *seen* if one of its relevant documents is also relevant to a training query: a model
        fitted on the training judgements can score there by memorizing documents. Tables of retrieval quality
        should report the two separately.
        """
        train = self.judgements_train[self.judgements_train[:, 2] > 0]
        test = self.judgements_test[self.judgements_test[:, 2] > 0]
        everyone = np.unique(test[:, 0])
        seen = np.unique(test[np.isin(test[:, 1], train[:, 1]), 0])
        return seen, np.setdiff1d(everyone, seen)
