"""Mined partners against loops over rows, and the rank at which codes find them."""

import numpy as np
import pytest
from benchmarks.mined import half_whitening, mined_judgements, mined_partners, partner_ndcg

from firstk.exceptions import InvalidInputError
from firstk.metrics import ndcg


def rows(seed, n=60, p=6):
    rng = np.random.default_rng(seed)
    spread = np.geomspace(8.0, 0.5, p)
    return rng.normal(size=(n, p)) * spread + 2.0


def half_whitened_cosine(x, y, documents):
    """The definition: x^T S^(-1/2) y over the norms, with S the ridged covariance of documents of length 1."""
    unit = np.array([d / np.linalg.norm(d) for d in documents])
    centered = unit - unit.mean(axis=0)
    S = sum(np.outer(c, c) for c in centered) / len(centered)
    S = 0.9 * S + 0.1 * np.trace(S) / len(S) * np.eye(len(S))
    values, vectors = np.linalg.eigh(S)
    metric = sum(np.outer(v, v) / np.sqrt(value) for value, v in zip(values, vectors.T, strict=True))
    return x @ metric @ y / np.sqrt((x @ metric @ x) * (y @ metric @ y))


def partners_by_loop(X, X_ref=None):
    """Five nearest references of each row; kept where fewer than five others are nearer to the reference."""
    references = X if X_ref is None else X_ref
    found = {}
    for i, x in enumerate(X):
        cosines = np.array([half_whitened_cosine(x, r, references) for r in references])
        if X_ref is None:
            cosines[i] = -np.inf
        for best in np.argsort(-cosines)[:5].tolist():
            others = [j for j in range(len(references)) if j != best and (X_ref is not None or j != i)]
            nearer = [half_whitened_cosine(references[j], references[best], references) > cosines[best] for j in others]
            if sum(nearer) < 5:
                found.setdefault(i, []).append(best)
    return found


def test_half_whitening_is_the_fourth_root_of_the_inverse_of_the_ridged_covariance():
    X = rows(0)
    W = half_whitening(X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    S = np.cov(unit.T, bias=True)
    S = 0.9 * S + 0.1 * np.trace(S) / len(S) * np.eye(len(S))
    np.testing.assert_allclose(W @ W @ W @ W @ S, np.eye(len(S)), atol=1e-9)
    np.testing.assert_allclose(W, W.T, atol=1e-12)


def test_lengths_of_documents_do_not_count():
    X = rows(1)
    scaled = X * np.geomspace(1e-3, 1e3, len(X))[:, None]
    np.testing.assert_allclose(half_whitening(scaled), half_whitening(X), rtol=1e-9)
    np.testing.assert_array_equal(mined_partners(scaled).partners, mined_partners(X).partners)


def test_a_column_without_variance_is_not_blown_up():
    X = np.column_stack([rows(2), np.zeros(60)])
    W = half_whitening(X)
    assert np.isfinite(W).all()
    # The ridge bounds the weight of a dead direction by (1 / 0.1)^(1/4) times that of one of mean variance.
    assert W[-1, -1] <= 10**0.25 * np.median(np.linalg.eigvalsh(half_whitening(X[:, :-1]))) * 1.5


@pytest.mark.parametrize("alone", [True, False])
def test_partners_are_those_of_the_loop(alone):
    X, X_ref = rows(3, n=30), None if alone else rows(4, n=35)
    mined = mined_partners(X, X_ref)
    expected = partners_by_loop(X, X_ref)
    assert mined.rows.tolist() == sorted(expected)
    for row, partners in zip(mined.rows.tolist(), mined.partners, strict=True):
        assert partners[partners >= 0].tolist() == expected[row]
    assert (mined.partners < 0).any()


def test_partners_among_the_rows_themselves_are_mutual():
    mined = mined_partners(rows(5))
    partners = dict(zip(mined.rows.tolist(), mined.partners.tolist(), strict=True))
    assert all(row in partners[other] for row, others in partners.items() for other in others if other >= 0)


def test_a_copy_is_no_partner():
    X = rows(6)
    mined = mined_partners(np.concatenate([X, X[:5]]))
    for row, partners in zip(mined.rows % 60, mined.partners, strict=True):
        assert row not in partners[partners >= 0] % 60


def test_judgements_are_the_nearest_documents_of_the_loop():
    documents, queries = rows(7), rows(8, n=15)
    judgements = mined_judgements(queries, documents)
    nearest = [np.argmax([half_whitened_cosine(q, d, documents) for d in documents]) for q in queries]
    np.testing.assert_array_equal(judgements, np.stack([np.arange(15), nearest, np.ones(15, dtype=int)], axis=1))


def test_gain_of_a_partner_is_that_of_the_loop_over_prefixes():
    Z_ref, Z = rows(9), rows(10, n=20)
    rng = np.random.default_rng(0)
    partners = np.array([rng.choice(len(Z_ref), 3, replace=False) for _ in Z])
    partners[5:, 2] = -1
    partners[10:, 0] = -1
    values = partner_ndcg(Z_ref, Z, partners, per_row=True)
    for k in range(1, Z.shape[1] + 1):
        for i, z in enumerate(Z):
            cosines = Z_ref[:, :k] @ z[:k] / np.linalg.norm(Z_ref[:, :k], axis=1)
            if k == 1:
                cosines = np.sign(cosines)
            order = np.argsort(-cosines, kind="stable").tolist()
            ranks = [1 + order.index(partner) for partner in partners[i] if partner >= 0]
            best = sum(1 / np.log2(rank + 1) for rank in range(1, len(ranks) + 1))
            gain = sum(1 / np.log2(rank + 1) for rank in ranks if rank <= 10)
            assert values[i, k - 1] == pytest.approx(gain / best)
    np.testing.assert_allclose(partner_ndcg(Z_ref, Z, partners), values.mean(axis=0))


def test_with_one_relevant_document_it_is_ndcg():
    Z_ref, Z = rows(11), rows(12, n=20)
    judgements = mined_judgements(Z, Z_ref)
    np.testing.assert_allclose(partner_ndcg(Z_ref, Z, judgements[:, 1]), ndcg(Z_ref, Z, judgements))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: half_whitening(np.ones((5, 3))), "rows of different directions"),
        (lambda: mined_partners(rows(0, n=6)), "more than 6 rows"),
        (lambda: mined_partners(np.repeat(rows(0, n=20), 6, axis=0)), "Drop copies"),
        (lambda: mined_judgements(rows(0), rows(0, p=5)), "columns"),
        (lambda: partner_ndcg(rows(0), rows(1), [99] * 60), "partners"),
        (lambda: partner_ndcg(rows(0), rows(1), [-1] * 60), "at least one partner"),
    ],
)
def test_bad_input_raises(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
