"""Similarity: pairs, neighbors and dot products, each against the slow meaning of what it optimizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from firstk import ClosedForm, Moments, PrefixEncoder, Similarity
from firstk.exceptions import InvalidInputError, RankWarning
from firstk.moments.statistics import PartOf, RowSample, Statistics
from firstk.objectives import Projections, Variance
from firstk.objectives import _mined_pairs as mined_pairs
from firstk.objectives._mined_pairs import mined_agreement
from slow_reference import correlated, cosines, orthonormalized, perturbations, scatter

P = 6


@pytest.fixture(scope="module")
def pairs():
    """Rows that share a hidden part; the score says how much of it, so that M is indefinite as real scores make it."""
    rng = np.random.default_rng(0)
    left = correlated(rng, 300, P) + 2.0
    agree = rng.uniform(-0.3, 1.0, 300)
    right = agree[:, None] * (left - 2.0) + correlated(rng, 300, P) - 1.0
    return left, right, agree + 0.1 * rng.standard_normal(300)


def plain(neighbors=0.0, shrinkage=None):
    return Similarity(shrinkage=shrinkage, neighbor_weight=neighbors)


def centred(left, right):
    return left - left.mean(axis=0), right - right.mean(axis=0)


def metric_of(left, right, shrinkage=None):
    N = (scatter(left) + scatter(right)) / 2
    a = shrinkage or 0.0
    return (1 - a) * N + a * np.trace(N) / len(N) * np.eye(len(N))


def agreement(B, left, right, weights):
    """Mean of weight * <z_k, z'_k> over pairs, encoder by encoder."""
    L, R = (side @ B.swapaxes(-1, -2) for side in centred(left, right))
    return np.mean(np.sum(L * R, axis=-1) * weights, axis=-1)


@pytest.mark.parametrize("shrinkage", [None, 0.4])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("scored", [True, False])
def test_no_perturbation_agrees_better(pairs, shrinkage, k, scored):
    left, right, s = pairs
    enc = PrefixEncoder(objective=plain(shrinkage=shrinkage)).fit_pairs(left, right, s if scored else None)
    weights = s - s.mean() if scored else np.ones(len(s))
    N = metric_of(left, right, shrinkage)
    B = enc.components_[:k]
    np.testing.assert_allclose(B @ N @ B.T, np.eye(k), atol=1e-10)
    best = agreement(B, left, right, weights)
    others = agreement(orthonormalized(perturbations(B, np.random.default_rng(1)), N), left, right, weights)
    assert others.max() <= best + 1e-11
    assert others.min() < best - 1e-3


def test_the_covariance_with_the_score_is_the_cumulative_sum_of_gamma(pairs):
    left, right, s = pairs
    enc = PrefixEncoder(objective=plain()).fit_pairs(left, right, s)
    L = (left - enc.encoder_.query_mean) @ enc.components_.T
    R = (right - enc.mean_) @ enc.components_.T
    for k in range(1, enc.n_components_ + 1):
        products = np.sum(L[:, :k] * R[:, :k], axis=1)
        covariance = np.mean((s - s.mean()) * (products - products.mean()))
        assert covariance == pytest.approx(enc.spectrum_[:k].sum(), abs=1e-11)


def test_random_negatives_cancel(pairs):
    """Contrasting positives with every possible pair of left and right gives the pencil of positives alone."""
    left, right, _ = pairs
    L, R = centred(left, right)
    n = len(L)
    everyone = sum(np.outer(L[i], R.sum(axis=0)) for i in range(n)) / n**2
    np.testing.assert_allclose(everyone, 0.0, atol=1e-13)
    M = L.T @ R / n - everyone
    enc = PrefixEncoder(objective=plain()).fit_pairs(left, right)
    N = metric_of(left, right)
    for v, gamma in zip(enc.components_, enc.spectrum_, strict=True):
        np.testing.assert_allclose((M + M.T) / 2 @ v, gamma * N @ v, atol=1e-11)


@pytest.mark.parametrize("score", [0.0, 1.0, 4.2, -3])
def test_equal_scores_are_positives(pairs, score):
    left, right, _ = pairs
    a = PrefixEncoder(objective=plain()).fit_pairs(left, right, np.full(len(left), score))
    b = PrefixEncoder(objective=plain()).fit_pairs(left, right)
    np.testing.assert_allclose(a.components_, b.components_, atol=1e-12)
    np.testing.assert_allclose(a.spectrum_, b.spectrum_, atol=1e-12)


def test_scores_may_be_moved_and_stretched(pairs):
    left, right, s = pairs
    a = PrefixEncoder(objective=plain()).fit_pairs(left, right, s)
    b = PrefixEncoder(objective=plain()).fit_pairs(left, right, 5 * s + 100)
    np.testing.assert_allclose(b.components_, a.components_, atol=1e-9)
    np.testing.assert_allclose(b.spectrum_, 5 * a.spectrum_, rtol=1e-9)


def test_only_what_agrees_is_kept_and_asking_for_more_warns(pairs):
    left, right, s = pairs
    s = s * np.where(left[:, 0] > 2, 1, -1)  # scores that some directions contradict
    enc = PrefixEncoder(objective=plain()).fit_pairs(left, right, s)
    d = enc.n_components_
    assert 0 < d < P
    assert (enc.spectrum_ > 0).all()
    with pytest.warns(
        RankWarning, match=rf"Only the first {d} coordinates increase the agreement of similar vectors \(gamma > 0\)"
    ):
        longer = PrefixEncoder(P, objective=plain()).fit_pairs(left, right, s)
    assert (longer.spectrum_[d:] <= 1e-12).all()
    np.testing.assert_allclose(longer.components_[:d], enc.components_, atol=1e-10)


def test_each_side_has_its_own_mean_and_codes_have_unit_norm_after_the_cut(pairs):
    left, right, s = pairs
    enc = PrefixEncoder(objective=plain()).fit_pairs(left, right, s)
    for k in (1, 3):
        Q, D = enc.encode_query(left, k), enc.encode_document(right, k)
        L, R = centred(left, right)
        for code, side in ((Q, L), (D, R)):
            expected = side @ enc.components_[:k].T
            expected /= np.linalg.norm(expected, axis=1, keepdims=True)
            np.testing.assert_allclose(code, expected, atol=1e-12)
        np.testing.assert_array_equal(enc.transform(right, k), D)
        np.testing.assert_array_equal(enc[:k].encode_query(left), Q)


def slow_neighbor_pairs(X):
    """Each row beside the other row of largest cosine, one row at a time."""
    partner = []
    for i in range(len(X)):
        cos = [X[i] @ X[j] / np.linalg.norm(X[i]) / np.linalg.norm(X[j]) if j != i else -2 for j in range(len(X))]
        partner.append(int(np.argmax(cos)))
    return np.array(partner)


@pytest.mark.parametrize("shrinkage", ["default", None, 0.2])
def test_neighbors_solve_the_pencil_of_mined_pairs(shrinkage):
    X = correlated(np.random.default_rng(3), 150, P) + 0.5
    partner = X[slow_neighbor_pairs(X)]
    M = scatter(X, partner)
    M = (M + M.T) / 2
    a = {"default": 0.5, None: 0.0}.get(shrinkage, shrinkage)
    N = (1 - a) * scatter(X) + a * np.trace(scatter(X)) / P * np.eye(P)
    enc = PrefixEncoder(objective=Similarity(shrinkage=shrinkage)).fit(X)
    for v, gamma in zip(enc.components_, enc.spectrum_, strict=True):
        np.testing.assert_allclose(M @ v, gamma * N @ v, atol=1e-10)
    B = enc.components_[:2]
    best = agreement(B, X, partner, 1.0)
    others = agreement(orthonormalized(perturbations(B, np.random.default_rng(4)), N), X, partner, 1.0)
    assert others.max() <= best + 1e-11


@pytest.mark.parametrize("solver", ["auto", "gradient"])
@pytest.mark.parametrize(("n", "p"), [(150, P), (30, 40)])
def test_projections_have_the_spans_of_neighbors_and_codes_of_the_vectors_themselves(solver, n, p):
    """Against projections onto each span, one after the other; with fewer rows than columns too."""
    if solver == "gradient":
        pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    X, other = correlated(rng, n, p) + 0.5, correlated(rng, 20, p) - 3.0
    near, enc = (
        PrefixEncoder(3, objective=Similarity(keep=keep), solver=solver, random_state=0, verbose=False).fit(X)
        for keep in ("neighbors", "projections")
    )
    assert not enc.mean_.any()
    assert near.mean_.any()
    np.testing.assert_array_equal(enc.spectrum_, near.spectrum_)
    assert enc.encoder_.normalized
    for k in (1, 2, 3):
        span = near.components_[:k]
        projected = other @ span.T @ np.linalg.solve(span @ span.T, span)
        wanted = projected @ projected.T / np.outer(*[np.linalg.norm(projected, axis=1)] * 2)
        Z = enc.transform(other, k)
        np.testing.assert_allclose(Z @ Z.T, wanted, atol=1e-9)


def test_projections_can_be_saved_and_extended(tmp_path):
    X = correlated(np.random.default_rng(5), 150, P) + 0.5
    enc = PrefixEncoder(2, objective=Similarity(keep="projections", shrinkage=0.3)).fit(X)
    enc.save(tmp_path / "model")
    again = PrefixEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), enc.transform(X))
    assert again.objective_ == Projections(shrinkage=0.3)
    longer = PrefixEncoder(4, objective=enc.objective, solver=ClosedForm(extends=enc)).fit(X)
    np.testing.assert_allclose(longer.components_[:2], enc.components_, atol=1e-12)
    np.testing.assert_allclose(longer.components_ @ longer.components_.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize("solver", ["auto", "gradient"])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("n", "p"), [(150, P), (30, 40)])
def test_variance_has_principal_coordinates_divided_by_powers_of_their_variance(solver, power, n, p):
    """Against numpy's SVD of the centred rows; with fewer rows than columns too."""
    if solver == "gradient":
        pytest.importorskip("torch")
    X = correlated(np.random.default_rng(5), n, p) + 0.5
    objective = Similarity(keep="variance", power=power)
    enc = PrefixEncoder(3, objective=objective, solver=solver, random_state=0, verbose=False).fit(X)
    singular, axes = np.linalg.svd(X - X.mean(axis=0))[1:]
    variance = singular**2 / n
    np.testing.assert_allclose(enc.spectrum_, variance[:3], rtol=1e-6)
    for k in (1, 2, 3):
        principal = (X - X.mean(axis=0)) @ axes[:k].T / variance[:k] ** (power / 2)
        wanted = principal / np.linalg.norm(principal, axis=1, keepdims=True)
        Z = enc.transform(X, k)
        np.testing.assert_allclose(Z @ Z.T, wanted @ wanted.T, atol=1e-6 if solver == "gradient" else 1e-9)
        np.testing.assert_allclose(np.abs(Z), np.abs(wanted), atol=1e-5 if solver == "gradient" else 1e-9)


def test_whitened_variance_leaves_rounding_out():
    """Columns of another unit, one that hardly varies, and a constant one: no direction is made of rounding."""
    X = correlated(np.random.default_rng(5), 150, 5) * [1e6, 1.0, 1.0, 1e-9, 0.0] + 1.0
    with pytest.warns(RankWarning, match="numerical rank 3"):
        enc = PrefixEncoder(5, objective=Similarity(keep="variance", power=1.0)).fit(X)
    np.testing.assert_allclose(enc.encoder_.coordinates(X).var(axis=0), 1.0, rtol=1e-6)


def test_whitened_variance_can_be_saved_streamed_and_extended(tmp_path):
    X = correlated(np.random.default_rng(5), 150, P) + 0.5
    enc = PrefixEncoder(2, objective=Similarity(keep="variance", power=0.3)).fit(X)
    enc.save(tmp_path / "model")
    again = PrefixEncoder.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X), enc.transform(X))
    assert again.objective_ == Variance(power=0.3)
    streamed = PrefixEncoder(2, objective=enc.objective).partial_fit(X[:70]).partial_fit(X[70:])
    np.testing.assert_allclose(streamed.transform(X), enc.transform(X), atol=1e-10)
    whole = PrefixEncoder(4, objective=enc.objective).fit(X)
    longer = PrefixEncoder(4, objective=enc.objective, solver=ClosedForm(extends=enc)).fit(X)
    np.testing.assert_allclose(longer.transform(X), whole.transform(X), atol=1e-9)


def test_copies_of_a_row_are_no_neighbors():
    X = correlated(np.random.default_rng(5), 60, 4)
    mined = mined_agreement(sampled(X=X))
    np.testing.assert_allclose(mined_agreement(sampled(X=np.vstack([X, X[:20]]))), mined, atol=1e-13)


def sampled(**columns):
    """Statistics that hold a sample and no moments."""
    n, p = next(iter(columns.values())).shape
    sample = RowSample(n)
    sample.priority, sample.columns = np.arange(n, dtype=np.uint64), columns
    return Statistics(Moments(), sample, p)


@pytest.mark.parametrize("kind", ["rows", "pairs"])
@pytest.mark.parametrize("share", [0.8, 0.3])
def test_neighbors_of_a_fold_are_mined_in_the_fold(kind, share, monkeypatch):
    """The nearest of a row may all be held out: then it gets the nearest that is not."""
    monkeypatch.setattr(mined_pairs, "LISTED", 2)
    rng = np.random.default_rng(6)
    X = np.vstack([correlated(rng, 120, 5), 3 + 0.01 * rng.normal(size=(40, 5))])  # rows close to many
    columns = {"X": X} if kind == "rows" else {"left": X, "right": X[rng.permutation(len(X))] + 0.1}
    kept = np.flatnonzero(rng.random(len(X)) < share)
    whole, alone = sampled(**columns), sampled(**{name: part[kept] for name, part in columns.items()})
    fold = replace(alone, part_of=PartOf(whole, kept))
    expected = mined_agreement(alone)
    with whole.sharing():
        np.testing.assert_allclose(mined_agreement(fold), expected, atol=1e-12)
    np.testing.assert_allclose(mined_agreement(fold), expected, atol=1e-12)
    rows = (
        X[kept] if kind == "rows" else np.stack([columns["left"][kept], columns["right"][kept]], axis=1).reshape(-1, 5)
    )
    cross = scatter(rows, rows[slow_neighbor_pairs(rows)])
    np.testing.assert_allclose(expected, (cross + cross.T) / 2, atol=1e-12)


def test_neighbors_are_mixed_in_by_weight(pairs):
    left, right, s = pairs
    s = s * np.where(left[:, 0] > 2, 1, -1)  # an indefinite M: its trace says nothing of its size
    both = np.stack([left, right], axis=1).reshape(-1, P)
    mined = scatter(both, both[slow_neighbor_pairs(both)])
    L, R = centred(left, right)
    own = (L * (s - s.mean())[:, None]).T @ R / len(s)
    assert np.linalg.eigvalsh(own + own.T)[0] < -0.03

    def unit(M):
        M = (M + M.T) / 2
        return M / np.abs(np.linalg.eigvalsh(M)).sum()

    for weight in (0.25, 1.0):
        M = (1 - weight) * unit(own) + weight * unit(mined)
        enc = PrefixEncoder(objective=plain(neighbors=weight)).fit_pairs(left, right, s)
        N = metric_of(left, right)
        for v, gamma in zip(enc.components_, enc.spectrum_, strict=True):
            np.testing.assert_allclose(M @ v, gamma * N @ v, atol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("n", [60, 5])
def test_dot_products_keep_the_gram_matrix_best(k, n):
    """Eckart and Young: no other k coordinates leave less of X X^T, and what is left is the tail of the spectrum."""
    rng = np.random.default_rng(6)
    X = correlated(rng, n, P) + 1.0
    enc = PrefixEncoder(objective=Similarity(keep="dot_products")).fit(X)
    assert not enc.mean_.any()
    Z = enc.transform(X, k)
    gram = X @ X.T
    best = np.linalg.norm(gram - Z @ Z.T)
    assert best == pytest.approx(n * np.sqrt(np.sum(enc.spectrum_[k:] ** 2)), abs=1e-9)
    others = X @ perturbations(enc.components_[:k], rng).swapaxes(1, 2)
    errors = np.linalg.norm(gram - others @ others.swapaxes(1, 2), axis=(1, 2))
    assert errors.min() >= best - 1e-9
    svd = np.linalg.svd(X, full_matrices=False)[2]
    assert cosines(enc.components_, svd[: enc.n_components_]).min() > 1 - 1e-9


def test_auto_is_settled_into_numbers_that_can_be_read(pairs):
    left, right, s = pairs
    enc = PrefixEncoder(objective="similarity").fit_pairs(left, right, s)
    settled = enc.objective_
    assert settled.shrinkage in (0.1, 0.3, 0.5, 0.7, 0.9)
    assert settled.neighbor_weight in (0.0, 0.25, 0.5)
    assert len(enc.encoder_.record.auto) == 15
    again = PrefixEncoder(objective=Similarity(shrinkage=settled.shrinkage, neighbor_weight=settled.neighbor_weight))
    np.testing.assert_array_equal(again.fit_pairs(left, right, s).components_, enc.components_)


def test_auto_needs_enough_pairs(pairs):
    left, right, s = (part[:19] for part in pairs)
    with pytest.raises(InvalidInputError, match=r"needs at least 20 rows or pairs. Got 19: set shrinkage"):
        PrefixEncoder(objective="similarity").fit_pairs(left, right, s)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"keep": "angles"},
            "'keep' parameter of Similarity must be one of 'dot_products', 'neighbors', 'projections', 'variance'",
        ),
        ({"power": 1.5}, r"'power' parameter of Similarity must be a number in \[0, 1\]"),
        ({"shrinkage": 1.5}, r"'shrinkage' parameter of Similarity must be None, 'auto' or a number in \[0, 1\]"),
        ({"shrinkage": "much"}, "'shrinkage' parameter of Similarity"),
        (
            {"neighbor_weight": -0.1},
            r"'neighbor_weight' parameter of Similarity must be 'auto' or a number in \[0, 1\]",
        ),
        ({"neighbor_weight": None}, "'neighbor_weight' parameter of Similarity"),
        ({"neighbor_weight": True}, "'neighbor_weight' parameter of Similarity"),
    ],
)
def test_settings_that_mean_nothing(pairs, settings, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        PrefixEncoder(objective=Similarity(**settings)).fit_pairs(*pairs)


def test_too_few_distinct_rows_to_mine():
    with pytest.raises(InvalidInputError, match=r"Mining neighbors needs at least three distinct rows. Got 2"):
        PrefixEncoder(objective="similarity").fit(np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]]))


def test_one_pair_is_too_few():
    with pytest.raises(InvalidInputError, match=r"needs at least two (pairs|rows).* 1"):
        PrefixEncoder(objective=plain()).fit_pairs([[1.0, 2.0]], [[2.0, 1.0]])


def test_training_goes_by_scores_mixed_with_the_full_cosine():
    """A loop over pairs; the scale and the zero of the scores play no part, and neither does the length of vectors."""
    rng = np.random.default_rng(0)
    left, right, scores = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.normal(size=7)
    left[2] = 0.0
    cosines = []
    for x, y in zip(left, right, strict=True):
        size = sum(a * a for a in x) ** 0.5 * sum(b * b for b in y) ** 0.5
        cosines.append(sum(a * b for a, b in zip(x, y, strict=True)) / size if size else 0.0)
    parts = []
    for values in (list(scores), cosines):
        mean = sum(values) / 7
        spread = (sum((value - mean) ** 2 for value in values) / 7) ** 0.5
        parts.append([(value - mean) / spread for value in values])
    expected = [0.7 * s + 0.3 * c for s, c in zip(*parts, strict=True)]
    rows = {"left": left * 4, "right": right, "scores": 5 * scores + 2}
    np.testing.assert_allclose(Similarity(fidelity=0.3).resolved(pairs=True).mixed_scores(rows), expected, atol=1e-12)


def test_equal_cosines_leave_the_scores():
    rows = {"left": np.ones((3, 2)), "right": np.ones((3, 2)), "scores": np.array([0.0, 1.0, 2.0])}
    mixed = Similarity(fidelity=0.5).resolved(pairs=True).mixed_scores(rows)
    np.testing.assert_allclose(mixed, 0.5 * np.array([-1, 0, 1]) * np.sqrt(1.5))


@pytest.mark.parametrize("fidelity", [-0.1, 1.1, "auto", None, float("nan")])
def test_fidelity_is_a_share(fidelity):
    with pytest.raises(ValueError, match="'fidelity' parameter of Similarity"):
        Similarity(fidelity=fidelity).check()


@pytest.mark.parametrize("temperature", [0.0, -1.0, "auto", None, float("nan")])
def test_temperature_is_positive(temperature):
    with pytest.raises(ValueError, match="'temperature' parameter of Similarity"):
        Similarity(temperature=temperature).check()


@pytest.mark.parametrize("temperature", [0.05, 0.2])
def test_losses_of_pairs_divide_cosines_by_the_temperature(temperature):
    torch = pytest.importorskip("torch")
    from firstk._base.prefix_weights import resolve_omega
    from firstk.solvers.gradient.losses import Positives, PrefixSum, ScoredPairLoss

    rng = np.random.default_rng(0)
    left, right = (torch.tensor(rng.normal(size=(6, 3))) for _ in range(2))
    scores = torch.tensor(rng.permutation(np.arange(6.0)))
    prefix_sum = PrefixSum(resolve_omega({3: 1.0}, 3))
    unit = [part / part.norm(dim=1, keepdim=True) for part in (left, right)]
    logits = unit[0] @ unit[1].T / temperature
    own = logits.diagonal()
    wrong = [own[i] - own[j] for i in range(6) for j in range(6) if scores[i] < scores[j]]
    expected = {
        Positives: torch.nn.functional.cross_entropy(logits, torch.arange(6)),
        ScoredPairLoss: torch.log1p(torch.stack(wrong).exp().sum()),
    }
    for kind, value in expected.items():
        found = kind({"temperature": temperature}).loss(None, (left, right), {"scores": scores}, prefix_sum)
        torch.testing.assert_close(found, value)
