"""MaxSim at every prefix length against loops over tokens, and rankings that rounding does not decide."""

from __future__ import annotations

import numpy as np
import pytest

from firstk.exceptions import InvalidInputError
from firstk.metrics import late_interaction, max_sim, max_sim_per_query, search_per_query


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


@pytest.mark.parametrize("measure", ["ndcg", "mrr", "recall"])
def test_scores_are_those_of_the_slow_ranking(measure):
    rng = np.random.default_rng(1)
    D, ends = made(rng, 30, 8)
    Q, asked = made(rng, 6, 8)
    judgements = np.array([[0, 3, 1], [0, 7, 2], [2, 1, 1], [5, 29, 1], [5, 2, 0]])
    queries, values = max_sim_per_query(D, ends, Q, asked, judgements, measure, at=4, ks=[1, 3, 8])
    assert queries.tolist() == [0, 2, 5]
    for i, k in enumerate([1, 3, 8]):
        scores = slow(D, ends, Q, asked, k)
        for row, query in enumerate(queries):
            ranked = sorted(range(30), key=lambda d: (-round(scores[query, d], 9), d))[:4]
            gains = {d: g for q, d, g in judgements.tolist() if q == query}
            found = [gains.get(d, 0) for d in ranked]
            if measure == "ndcg":
                best = sum(g / np.log2(r + 2) for r, g in enumerate(sorted(gains.values(), reverse=True)[:4]))
                wanted = sum(g / np.log2(r + 2) for r, g in enumerate(found)) / best
            elif measure == "mrr":
                wanted = next((1 / (r + 1) for r, g in enumerate(found) if g), 0.0)
            else:
                wanted = sum(g > 0 for g in found) / sum(g > 0 for g in gains.values())
            assert values[row, i] == pytest.approx(wanted)


def test_one_token_each_is_search_by_cosine():
    rng = np.random.default_rng(2)
    D, Q = rng.normal(size=(40, 5)), rng.normal(size=(8, 5))
    judgements = np.column_stack([np.arange(8), rng.integers(0, 40, 8), np.ones(8, int)])
    one = max_sim_per_query(D, np.arange(41), Q, np.arange(9), judgements)
    other = search_per_query(D, Q, judgements)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_allclose(one[1], other[1])


def test_equal_documents_tie_and_the_lowest_row_comes_first():
    """Copies with their tokens in another order have other last bits in single precision."""
    rng = np.random.default_rng(3)
    document = rng.normal(size=(9, 16)).astype(np.float32)
    copies = [document[rng.permutation(9)] * scale for scale in (1.0, 3.0, 0.7, 1e-4, 11.0)]
    other = rng.normal(size=(9, 16))
    D = np.concatenate([other, *copies])
    ends = np.arange(0, 9 * 6 + 1, 9)
    Q = document[:4] + rng.normal(size=(4, 16))
    for at in range(1, 6):
        values = max_sim_per_query(D, ends, Q, [0, 4], [[0, at, 1]], "mrr", at=5, ks=[2, 7, 16])[1]
        np.testing.assert_allclose(values, 1 / at)


def test_errors():
    D, Q = np.ones((4, 3)), np.ones((2, 3))
    with pytest.raises(InvalidInputError, match=r"'doc_offsets' from 0 to the number of tokens, 4. Got 0 to 3"):
        max_sim(D, [0, 3], Q, [0, 2])
    with pytest.raises(InvalidInputError, match=r"each document and query has a token\. Number 1 has 0"):
        max_sim(D, [0, 2, 2, 4], Q, [0, 2])
    with pytest.raises(InvalidInputError, match="'query_offsets' as ints of shape"):
        max_sim(D, [0, 4], Q, [0.0, 2.0])
    with pytest.raises(InvalidInputError, match="'measure' parameter"):
        max_sim_per_query(D, [0, 4], Q, [0, 2], [[0, 0, 1]], "map")
