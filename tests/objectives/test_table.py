"""The normative table (docs/theory.md, section 7): a golden number and every attribute for each closed-form line.

The numbers were obtained once, without firstk, as ``scipy.linalg.eigh(M, N)`` of the pencils that `hand_built` builds
row by row from `fixed_data`: gamma descending, and the first axis with its largest entry positive. They are stored so
that a change of convention (1/n, scaling, sign, shrinkage) cannot pass unseen in both places at once.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from firstk import (
    Denoising,
    Fisher,
    GaussianNoise,
    Masking,
    Mixture,
    PrefixEncoder,
    Reconstruction,
    Regression,
    Similarity,
)
from firstk.objectives import DotProducts, NeighborSimilarity, PairSimilarity, Projections, Variance


def fixed_data():
    """Forty rows of four columns with labels, targets, partners and scores; RandomState's stream never changes."""
    rng = np.random.RandomState(0)
    X = rng.randn(40, 4) @ np.array([[2.0, 0, 0, 0], [0.5, 1.5, 0, 0], [0, 0.3, 1.0, 0], [0.2, 0, 0.1, 0.5]]) + [
        1,
        -2,
        0.5,
        3,
    ]
    y = np.arange(40) % 3
    X = X + np.array([[0, 0, 0, 0], [1, -1, 0, 0.5], [-0.5, 0, 1, 0.2]])[y]
    Y = X @ rng.randn(4, 2) + rng.randn(40, 2)
    partner = 0.6 * X + 0.8 * rng.randn(40, 4)
    scores = np.sum((X - X.mean(axis=0)) * (partner - partner.mean(axis=0)), axis=1) + rng.randn(40)
    return X, y, Y, partner, scores


def hand_built():
    """The pencils of the table, built by loops over rows and not by firstk: name -> (M, N)."""
    X, y, Y, R, s = fixed_data()
    n, p = X.shape
    eye = np.eye(p)
    Xc, Yc, Rc = X - X.mean(axis=0), Y - Y.mean(axis=0), R - R.mean(axis=0)
    St = sum(np.outer(x, x) for x in Xc) / n
    Sxy = sum(np.outer(x, t) for x, t in zip(Xc, Yc, strict=True)) / n
    Sw = sum(np.outer(x - X[y == c].mean(axis=0), x - X[y == c].mean(axis=0)) for x, c in zip(X, y, strict=True)) / n
    both = (St + sum(np.outer(x, x) for x in Rc) / n) / 2
    positive = sum(np.outer(a, b) for a, b in zip(Xc, Rc, strict=True)) / n
    scored = sum(w * np.outer(a, b) for w, a, b in zip(s - s.mean(), Xc, Rc, strict=True)) / n
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    near = X[(unit @ unit.T - 9 * np.eye(n)).argmax(axis=1)]
    mined = Xc.T @ (near - near.mean(axis=0)) / n
    same_patch = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    return {
        "reconstruction": (St, eye),
        "fisher": (St - Sw, Sw),
        "fisher, shrinkage 0.3": (St - Sw, 0.7 * Sw + 0.3 * np.trace(Sw) / p * eye),
        "fisher, reconstruction 0.4": (
            0.6 * (St - Sw) + 0.4 * np.trace(St - Sw) / np.trace(St) * St,
            0.6 * (0.9 * Sw + 0.1 * np.trace(Sw) / p * eye) + 0.4 * np.trace(Sw) / p * eye,
        ),
        "regression": (Sxy @ Sxy.T, St),
        "pairs, scored": ((scored + scored.T) / 2, 0.1 * both + 0.9 * np.trace(both) / p * eye),
        "pairs, positives": ((positive + positive.T) / 2, both),
        "neighbors": ((mined + mined.T) / 2, 0.5 * St + 0.5 * np.trace(St) / p * eye),
        "dot products": (X.T @ X / n, eye),
        "variance": (St, eye),
        "mixture, lambda 0.5": (Sxy @ Sxy.T + 0.5 * St @ St, St),
        "denoising, gaussian 0.7": (St @ St, St + 0.49 * eye),
        "denoising, masking 0.5": (0.25 * St @ St, np.where(eye == 1, 0.5, 0.25) * St),
        "denoising, one of two patches": (0.25 * St @ St, 0.5 * same_patch * St),
    }


GOLDEN = {
    "reconstruction": (
        [7.2160396762, 3.4316175568, 0.58371331267, 0.2619085534],
        [0.9928822783, 0.11570380967, -0.017167239793, 0.022420877458],
    ),
    "fisher": (
        [1.3111981777, 0.49794920618],
        [-0.33535276993, 0.097681080754, 1.0356981201, -0.60448092918],
    ),
    "fisher, shrinkage 0.3": (
        [0.9961605892, 0.26576796799],
        [-0.40781377766, 0.22642777849, 0.57566316559, -0.15597994864],
    ),
    "fisher, reconstruction 0.4": (
        [0.79805059414, 0.29218305764, 0.061347683309, 0.037411254439],
        [0.45678027668, -0.24831869789, -0.41855761533, 0.096867403797],
    ),
    "regression": (
        [26.665968944, 2.637235977],
        [0.37400708259, 0.017329458077, 0.15807068922, -0.20865914491],
    ),
    "pairs, scored": (
        [13.463092444, 1.5027200745, 0.086504921973],
        [0.59438740815, -0.10762134052, -0.17208909978, 0.14171849894],
    ),
    "pairs, positives": (
        [0.81489647853, 0.73840079329, 0.61732776327, 0.37620964912],
        [0.39853505245, -0.030873644969, -0.30728085823, 0.13808325686],
    ),
    "neighbors": (
        [1.2515566739, 0.85828967728, 0.20065589882],
        [0.42114929465, 0.15878632506, 0.016682009258, 0.0098691426805],
    ),
    "dot products": (
        [21.498110393, 6.5834123683, 2.3255057505, 0.51878710571],
        [0.449405728, -0.52976847826, 0.13308624057, 0.7068719146],
    ),
    "variance": (
        [7.2160396762, 3.4316175568, 0.58371331267, 0.2619085534],
        [0.60579129871, 0.070594835515, -0.010474317769, 0.013679741063],
    ),
    "mixture, lambda 0.5": (
        [30.180304705, 3.7531565576, 0.83177023172, 0.28461297585],
        [0.37386447789, 0.021867182964, 0.1410566736, -0.18398052975],
    ),
    "denoising, gaussian 0.7": (
        [6.7571970553, 3.0028422929, 0.31732980058, 0.091229299142],
        [0.3576696904, 0.041680415379, -0.006184218891, 0.0080767564032],
    ),
    "denoising, masking 0.5": (
        [3.6667460493, 1.9481641107, 0.20671458249, 0.11929840734],
        [0.51475421141, 0.12759294403, -0.048037779592, 0.16310193655],
    ),
    "denoising, one of two patches": (
        [3.6715990681, 2.3971832136, 0.1858711727, 0.1020328841],
        [0.52230789744, 0.0049697166065, -0.11473497802, 0.32330263701],
    ),
}

OBJECTIVES = {  # name -> objective, what it is fitted on
    "reconstruction": ("reconstruction", "rows"),
    "fisher": (Fisher(None), "labels"),
    "fisher, shrinkage 0.3": (Fisher(shrinkage=0.3), "labels"),
    "fisher, reconstruction 0.4": (Fisher(shrinkage=0.1, reconstruction=0.4), "labels"),
    "regression": ("regression", "targets"),
    "pairs, scored": (Similarity(shrinkage=0.9, neighbor_weight=0.0), "scores"),
    "pairs, positives": (Similarity(shrinkage=None, neighbor_weight=0.0), "pairs"),
    "neighbors": ("similarity", "rows"),
    "dot products": (Similarity(keep="dot_products"), "rows"),
    "variance": (Similarity(keep="variance"), "rows"),
    "mixture, lambda 0.5": (Mixture(lam=0.5), "targets"),
    "denoising, gaussian 0.7": (Denoising(GaussianNoise(0.7)), "rows"),
    "denoising, masking 0.5": ("denoising", "rows"),
    "denoising, one of two patches": (Denoising(Masking(0.5, (0, 0, 1, 1), exact=True)), "rows"),
}


def fitted(name):
    objective, on = OBJECTIVES[name]
    X, y, Y, R, s = fixed_data()
    enc = PrefixEncoder(objective=objective)
    if on in ("scores", "pairs"):
        return enc.fit_pairs(X, R, s if on == "scores" else None)
    return enc.fit(X, {"rows": None, "labels": y, "targets": Y}[on])


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_numbers(name):
    spectrum, first = GOLDEN[name]
    enc = fitted(name)
    np.testing.assert_allclose(enc.spectrum_, spectrum, rtol=1e-9)
    np.testing.assert_allclose(enc.components_[0], first, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_numbers_are_those_of_the_pencil(name):
    spectrum, _ = GOLDEN[name]
    M, N = hand_built()[name]
    values = scipy.linalg.eigh(M, N, eigvals_only=True)[::-1]
    np.testing.assert_allclose(values[: len(spectrum)], spectrum, rtol=1e-9)


LINES = {  # scaling, centring, normalized after truncation, omega, metric of the curve
    Reconstruction: ("orthonormal", "mean", False, "uniform", "explained_variance"),
    Fisher: ("metric", "mean", False, "uniform", "1nn_accuracy"),
    Regression: ("metric", "mean", False, "harmonic", "r2"),
    PairSimilarity: ("metric", "sides", True, "harmonic", "pair_agreement"),
    NeighborSimilarity: ("metric", "mean", True, "harmonic", "recall@10"),
    Projections: ("projection", "none", True, "harmonic", "recall@10"),
    DotProducts: ("orthonormal", "none", False, "uniform", "recall@10"),
    Variance: ("power", "mean", True, "harmonic", "recall@10"),
    Mixture: ("metric", "mean", False, "uniform", "mixture"),
    Denoising: ("metric", "mean", False, "uniform", "readback_variance"),
}


@pytest.mark.parametrize("objective", LINES)
def test_the_line_of_the_table(objective):
    line = objective.conventions
    assert (line.scaling, line.centring, line.normalized, line.omega, line.metric) == LINES[objective]


def test_default_shrinkages():
    assert Fisher().shrinkage == "auto"
    assert Regression().shrinkage is None
    assert Similarity().resolved(pairs=True) == PairSimilarity(
        shrinkage="auto", neighbor_weight="auto", fidelity=0.5, temperature=0.05
    )
    assert Similarity().resolved(pairs=False) == NeighborSimilarity(shrinkage=0.5)
    assert Similarity(keep="dot_products").resolved(pairs=False) == DotProducts()
    assert Similarity(keep="projections").resolved(pairs=False) == Projections(shrinkage=0.5)
    assert Similarity(keep="variance").resolved(pairs=False) == Variance(power=0.5)
    for objective in (Reconstruction(), DotProducts(), Variance(), Mixture(), Denoising()):
        assert not hasattr(objective, "shrinkage")


@pytest.mark.parametrize("name", GOLDEN)
def test_the_encoder_does_what_its_line_says(name):
    """Scaling, centring and normalization as the line has them, seen from outside."""
    enc = fitted(name)
    X, _, _, R, _ = fixed_data()
    _, N = hand_built()[name]
    line = enc.objective_.conventions
    B = enc.components_
    metric = np.eye(4) if line.scaling == "orthonormal" else N
    if line.scaling == "power":
        B = B * enc.spectrum_[:, None] ** (enc.objective_.power / 2)
    np.testing.assert_allclose(B @ metric @ B.T, np.eye(len(B)), atol=1e-10)
    zero = np.zeros(4)
    documents, queries = {"mean": (X, X), "none": ([zero], [zero]), "sides": (R, X)}[line.centring]
    np.testing.assert_allclose(enc.mean_, np.mean(documents, axis=0), atol=1e-12)
    np.testing.assert_allclose(enc.encoder_.query_mean, np.mean(queries, axis=0), atol=1e-12)
    norms = np.linalg.norm(enc.transform(X, 2), axis=1)
    assert np.allclose(norms, 1.0) == line.normalized


def test_default_metrics_of_pairs():
    X, _, _, R, s = fixed_data()
    scored, positive = fitted("pairs, scored"), fitted("pairs, positives")
    assert scored.curve_pairs(X, R, s).metric == "spearman"
    assert positive.curve_pairs(X, R).metric == "positive_recall@10"
    assert positive.curve_pairs(X, R, np.ones(40)).metric == "positive_recall@10"
