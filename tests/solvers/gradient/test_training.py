"""What training must reach: closed forms from random starts, and the promised figures on real embeddings."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
import torch

from firstk import Classification, FullPrefix, Gradient, Pairs, PrefixEncoder, Similarity, SparsePrefix
from firstk.advice.baselines import baselines_of
from firstk.data import load_digits
from firstk.metrics import paired_cosines
from firstk.metrics.curve import prefix_curve
from firstk.solvers.gradient import loop
from firstk_papers.datasets import load_banking77, load_fashion_mnist, load_stsb, split, two_blocks

pytest.importorskip("torch")
KS = [4, 8, 16, 32]


@pytest.fixture(scope="module")
def synthetic():
    blocks = two_blocks(random_state=0)
    return split(blocks.X, blocks.y)


@pytest.fixture(scope="module")
def fashion(data_folder):
    images = load_fashion_mnist(data_folder)
    X, y = (np.concatenate([getattr(images, f"{part}_{end}") for end in ("train", "test")]) for part in "Xy")
    data = split(X.reshape(len(X), -1), y)
    return data.X_train, data.y_train


def apart(enc):
    """Axes whose relative gap to both neighbors exceeds 1 %."""
    gaps = -np.diff(enc.spectrum_) / enc.spectrum_[:-1]
    gaps = np.minimum(np.append(gaps, gaps[-1]), np.append(np.inf, gaps))
    return gaps > 0.01


def compared(X, y, d, objective):
    """Train from a random start and return the closed form, cosines with it, and seconds."""
    solved = PrefixEncoder(d + 1 if objective == "reconstruction" else d, objective=objective).fit(X, y)
    began = time.perf_counter()
    trained = PrefixEncoder(d, objective=objective, solver="gradient", init="random", random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    assert trained.optimality_gap_ < 1e-6
    return solved, paired_cosines(trained.components_, solved.components_[:d]), seconds


@pytest.mark.parametrize(("objective", "d"), [("reconstruction", 50), ("fisher", 19)])
def test_synthetic_data_of_000(synthetic, objective, d):
    solved, cosines, _ = compared(synthetic.X_train, synthetic.y_train, d, objective)
    assert apart(solved)[:d].sum() > 0.8 * d
    assert cosines[apart(solved)[:d]].min() > 0.99


@pytest.mark.full
def test_fashion_mnist_reconstruction(fashion):
    solved, cosines, _ = compared(*fashion, 32, "reconstruction")
    assert cosines[apart(solved)[:32]].min() > 0.99


@pytest.mark.full
def test_fashion_mnist_fisher_where_000_falls_short(fashion):
    """Talukder et al. 2026 ends between 0.25 and 0.97 here; the regularisation is the same on both sides (none)."""
    _, cosines, _ = compared(*fashion, 9, "fisher")
    assert cosines.mean() > 0.99
    assert cosines.min() > 0.97


@pytest.fixture(scope="module")
def digits():
    return load_digits()


# -- Banking77 ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def banking(data_folder):
    return load_banking77(data_folder)


def judged(enc, banking):
    reference = (banking.X_train, banking.y_train)
    curve = enc.curve(banking.X_test, banking.y_test, reference=reference, metric="1nn_accuracy", ks=KS)
    return np.array(curve.score)


@pytest.fixture(scope="module")
def full_prefix(banking):
    ordering = FullPrefix(omega="harmonic", estimator="sampled")
    began = time.process_time()
    enc = PrefixEncoder(128, objective="classification", ordering=ordering, random_state=0)
    enc.fit(banking.X_train, banking.y_train)
    return enc, judged(enc, banking), time.process_time() - began


def test_banking77_short_codes_tell_intents_apart(full_prefix):
    enc, scores, _ = full_prefix
    assert enc.encoder_.record.estimator == "sampled"
    assert (scores >= [0.61, 0.85, 0.90, 0.915]).all(), scores


def test_banking77_short_codes_do_not_pay_for_long_ones(full_prefix, banking):
    """With one head for all prefixes it has 0.15, 0.34, 0.56, 0.84 (docs/decisions/solvers.md, "Separate heads")."""
    own = full_prefix[0].curve(banking.X_test, banking.y_test, ks=[2, 3, 4, 8])
    assert own.metric == "head_accuracy"
    assert (np.array(own.score) >= [0.22, 0.49, 0.66, 0.85]).all(), own.score


@pytest.fixture(scope="module")
def against_a_list(banking, full_prefix):
    """Mean scores over three seeds: of the default fit, and of the paper's list from a random start and from ours."""
    objective = Classification(shrinkage=full_prefix[0].objective_.shrinkage)
    listed = SparsePrefix([2, 4, 8, 16, 32, 64, 128])
    fits = (FullPrefix(), "auto"), (listed, "random"), (listed, "auto")

    def scores(ordering, init):
        enc = PrefixEncoder(128, objective=objective, ordering=ordering, init=init)
        seeds = (enc.set_params(random_state=seed).fit(banking.X_train, banking.y_train) for seed in range(3))
        return np.mean([judged(each, banking) for each in seeds], axis=0)

    return [scores(*fit) for fit in fits]


@pytest.mark.full
def test_the_default_fit_goes_higher(against_a_list):
    assert (against_a_list[0] >= [0.62, 0.855, 0.905, 0.918]).all(), against_a_list[0]


@pytest.mark.full
def test_no_worse_than_a_list_from_a_random_start(against_a_list, full_prefix):
    full, listed, _ = against_a_list
    for scores in (full, full_prefix[1]):  # exact and sampled
        assert (scores >= listed - 0.01).all(), (scores, listed)


@pytest.mark.full
def test_a_list_from_our_start_is_ahead_at_four_by_little(against_a_list):
    """Weight on 5, 6 and 7 costs k = 4 something (docs/decisions/solvers.md): 0.011 to 0.015, as sums are rounded.

    A sanity bound, set after the figures were known: differences of means over three seeds are good to about 0.006.
    """
    full, _, listed = against_a_list
    assert (full >= listed - [0.02, 0.016, 0.016, 0.016]).all(), (full, listed)


def test_on_few_rows_a_list_is_ahead_by_little(digits):
    """The three tests above in small: the default fit, a list from a random start and from ours, of 360 digits."""
    ks = [4, 8, 16]

    def scores(ordering, init):
        enc = PrefixEncoder(16, objective=Classification(0.5), ordering=ordering, init=init, solver=Gradient(epochs=10))
        enc.set_params(random_state=0).fit(digits.X_train, digits.y_train)
        reference = (digits.X_train, digits.y_train)
        return np.array(
            enc.curve(digits.X_test, digits.y_test, reference=reference, metric="1nn_accuracy", ks=ks).score
        )

    full, random, ours = (
        scores(*fit)
        for fit in (
            (FullPrefix(), "auto"),
            (SparsePrefix([2, 4, 8, 16]), "random"),
            (SparsePrefix([2, 4, 8, 16]), "auto"),
        )
    )
    assert (full >= [0.79, 0.87, 0.88]).all(), full
    assert (full >= np.maximum(random, ours) - 0.04).all(), (full, random, ours)


# -- STS benchmark -----------------------------------------------------------------------------------------------------


def shares(name, curve, full):
    return f"  {name:<20}" + "".join(f"{score / full:8.3f}" for score in curve.score)


# What all defaults choose takes long to choose: the ordinary run is given it, and ends sooner.
@pytest.mark.parametrize(
    ("d", "objective", "solver"),
    [
        pytest.param(64, Similarity(shrinkage=0.9, neighbor_weight=0.0), Gradient(epochs=4), id="given"),
        pytest.param(128, "similarity", "gradient", id="chosen", marks=pytest.mark.full),
    ],
)
def test_sts_benchmark_from_scored_pairs(data_folder, capsys, d, objective, solver):
    sts = load_stsb(data_folder)
    ks = [8, 16, 32, 64]
    enc = PrefixEncoder(d, objective=objective, solver=solver, random_state=0).fit_pairs(*sts.part("train"))
    curve = enc.curve_pairs(*sts.part("test"), ks=ks)
    left, right, scores = sts.part("test")
    rows = np.concatenate(sts.part("train")[:2])
    lines = [f"share of the full score kept at {ks}", shares("firstk", curve, curve.input_score)]
    for name, baseline in baselines_of(rows).items():
        base = prefix_curve(baseline, Pairs(left, right, scores=scores), "spearman", ks)
        lines.append(shares(name, base, curve.input_score))
        assert (np.array(curve.score) > np.array(base.score)).all()
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    assert (np.array(curve.score) >= [0.69, 0.755, 0.795, 0.817]).all(), curve.score
    assert curve.input_score == pytest.approx(0.820, abs=0.001)


def test_positives_without_scores():
    """Both sides share a quiet signal under loud noise; training sharpens what the pair pencil starts with."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]

    def pairs():
        signal = rng.normal(size=(1000, 6))
        return [np.hstack([signal, 3 * rng.normal(size=(1000, 24))]) @ turn.T for _ in range(2)]

    train, test = pairs(), pairs()
    objective = Similarity(shrinkage=0.1, neighbor_weight=0.0)
    solved = PrefixEncoder(6, objective=objective).fit_pairs(*train).curve_pairs(*test)
    trained = PrefixEncoder(6, objective=objective, solver="gradient", random_state=0).fit_pairs(*train)
    assert trained.solver_ == "gradient"
    assert np.mean(trained.curve_pairs(*test).score) > np.mean(solved.score) + 0.05


@pytest.mark.parametrize(("most", "threads"), [(10**6, 1), (0, 2)])
def test_small_steps_keep_to_one_thread(most, threads, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 6)).astype(np.float32), np.arange(200) % 4
    seen, before = [], torch.get_num_threads()
    real = loop._Run._step
    monkeypatch.setattr(loop, "_SMALL_STEP", most)
    monkeypatch.setattr(loop._Run, "_step", lambda run, i: seen.append(torch.get_num_threads()) or real(run, i))
    torch.set_num_threads(2)
    try:
        PrefixEncoder(3, objective="classification", solver=Gradient(epochs=1), random_state=0).fit(X, y)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {threads}
