"""Full prefix by gradient: every estimator and the paper's retraction end at the principal axes, in order."""

import numpy as np
import pytest

from firstk import Classification, FullPrefix, Gradient, PrefixEncoder
from firstk.exceptions import IllegalCombinationError
from firstk.metrics import paired_cosines

pytest.importorskip("torch")


@pytest.mark.parametrize("omega", ["uniform", "harmonic", "reverse_harmonic", [1.0, 2.0, 0.5, 1.0]])
def test_any_positive_omega_ends_at_the_principal_axes(known, omega):
    enc = PrefixEncoder(4, ordering=FullPrefix(omega), solver="gradient", init="random", random_state=1).fit(known.X)
    assert paired_cosines(enc.components_, known.axes).min() > 0.9999
    assert enc.optimality_gap_ < 1e-8
    np.testing.assert_allclose(enc.spectrum_, known.spectrum, rtol=1e-4)


def test_the_canonical_form_is_that_of_the_closed_form(known):
    trained = PrefixEncoder(4, solver="gradient", init="random", random_state=1).fit(known.X)
    solved = PrefixEncoder(4).fit(known.X)
    np.testing.assert_allclose(trained.components_, solved.components_, atol=1e-4)
    np.testing.assert_allclose(trained.decoder_, solved.decoder_, atol=1e-4)


def test_the_retraction_keeps_the_decoder_orthonormal_from_the_first_step(known):
    ordering = FullPrefix(orthonormal_decoder=True)
    for steps in (1, 400):
        solver = Gradient(epochs=steps, whiten=False, precondition=False, optimizer="adam", learning_rate=0.01)
        enc = PrefixEncoder(4, ordering=ordering, solver=solver, init="random", random_state=0).fit(known.X)
        np.testing.assert_allclose(enc.decoder_.T @ enc.decoder_, np.eye(4), atol=1e-8)
    assert enc.optimality_gap_ < 0.05


def test_sampled_prefixes_find_the_same_axes(known):
    solver = Gradient(batch_size=256, epochs=300, learning_rate=0.02)
    ordering = FullPrefix(estimator="sampled")
    enc = PrefixEncoder(4, ordering=ordering, solver=solver, init="random", random_state=0).fit(known.X)
    assert enc.encoder_.record.estimator == "sampled"
    assert paired_cosines(enc.components_, known.axes).min() > 0.99


def test_auto_says_which_estimator_it_took(known):
    few, many = (
        PrefixEncoder(d, objective=Classification(0.5), solver=Gradient(epochs=1), random_state=0) for d in (4, 12)
    )
    few.fit(known.X, np.arange(2000) % 3)
    many.fit(np.vstack([known.X, known.X + 0.1]), np.arange(4000) % 1500)
    assert few.encoder_.record.estimator == "exact"
    assert many.encoder_.record.estimator == "sampled"


def test_prefixes_cannot_be_drawn_for_a_loss_that_is_no_sum_over_rows(known):
    enc = PrefixEncoder(2, objective="fisher", ordering=FullPrefix(estimator="sampled"), solver="gradient")
    with pytest.raises(IllegalCombinationError, match=r"not a sum over rows.*Instead: an exact ordering"):
        enc.fit(known.X, np.arange(2000) % 4)
