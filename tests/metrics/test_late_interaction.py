"""MaxSim at every prefix length against loops over tokens."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk.metrics import late_interaction, max_sim


def made(rng, n, d, most=7):
    sizes = rng.integers(1, most + 1, n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return rng.normal(size=(offsets[-1], d)) * np.arange(1, d + 1) ** -0.5, offsets


def slow(D, ends, Q, asked, k):
    """One pair of tokens at a time."""
    out = np.zeros((len(asked) - 1, len(ends) - 1))
    for q in range(len(asked) - 1):
        for d in range(len(ends) - 1):
            for x in Q[asked[q] : asked[q + 1], :k]:
                cosines = []
                for y in D[ends[d] : ends[d + 1], :k]:
                    norms = np.linalg.norm(x) * np.linalg.norm(y)
                    cosines.append(x @ y / norms if norms > 0 else 0.0)
                out[q, d] += max(cosines)
    return out


def test_every_prefix_is_the_sum_of_best_cosines(monkeypatch):
    """In blocks that are smaller than a document, and that hold several."""
    rng = np.random.default_rng(0)
    D, ends = made(rng, 11, 6)
    Q, asked = made(rng, 5, 6, 4)
    D[3] = 0
    wanted = np.stack([slow(D, ends, Q, asked, k) for k in range(1, 7)])
    for tokens in (1, 9, 1000):
        monkeypatch.setattr(late_interaction, "_DOCUMENT_TOKENS", tokens)
        monkeypatch.setattr(late_interaction, "_QUERY_TOKENS", tokens)
        np.testing.assert_allclose(max_sim(D, ends, Q, asked), wanted, atol=2e-5)
    np.testing.assert_allclose(max_sim(D, ends, Q, asked, ks=[2, 5]), wanted[[1, 4]], atol=2e-5)


def test_one_token_each_is_cosine():
    rng = np.random.default_rng(2)
    D, Q = rng.normal(size=(40, 5)), rng.normal(size=(8, 5))
    wanted = Q @ D.T / np.outer(np.linalg.norm(Q, axis=1), np.linalg.norm(D, axis=1))
    np.testing.assert_allclose(max_sim(D, np.arange(41), Q, np.arange(9), ks=[5])[0], wanted, atol=1e-6)


def test_errors():
    D, Q = np.ones((4, 3)), np.ones((2, 3))
    with pytest.raises(InvalidInputError, match=r"'doc_offsets' from 0 to the number of tokens, 4. Got 0 to 3"):
        max_sim(D, [0, 3], Q, [0, 2])
    with pytest.raises(InvalidInputError, match=r"each document and query has a token\. Number 1 has 0"):
        max_sim(D, [0, 2, 2, 4], Q, [0, 2])
    with pytest.raises(InvalidInputError, match="'query_offsets' as ints of shape"):
        max_sim(D, [0, 4], Q, [0.0, 2.0])
