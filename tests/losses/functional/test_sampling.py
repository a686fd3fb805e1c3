"""The sampled estimator: draws, and unbiasedness of value and gradient at a stated confidence.

Each z-score below is that of a mean of independent draws; under the claim it exceeds 4.5 in absolute value
with probability 7e-6. Seeds are fixed, so the tests are deterministic; the confidence says how surprised to
be when a change of code makes one fail. The same scores against a wrong omega exceed 4.5:
the tests have power.
"""

import numpy as np
import pytest
import torch

from firstk._base.prefix_weights import resolve_omega
from firstk.losses.functional.contrastive import info_nce
from firstk.losses.functional.cosine import cosine_similarity
from firstk.losses.functional.cross_entropy import cross_entropy
from firstk.losses.functional.reconstruction import reconstruction
from firstk.losses.functional.regression import regression
from firstk.losses.functional.sampling import cut, draw_prefixes, draw_weights

D = torch.float64
CPU = torch.device("cpu")
LIMIT = 4.5


def cases():
    z, head, bias = torch.randn(12, 6, dtype=D), torch.randn(4, 6, dtype=D), torch.randn(4, dtype=D)
    labels = torch.randint(0, 4, (12,))
    labels[3] = -100
    q, p, x = torch.randn(3, 12, 6, dtype=D)
    options = {"class_weight": torch.rand(4, dtype=D) + 0.5, "label_smoothing": 0.1}
    return {
        "cross_entropy": (lambda z, w, **o: cross_entropy(z, w, labels, bias, **options, **o), (z, head)),
        "info_nce": (lambda q, p, **o: info_nce(q, p, x, temperature=0.3, **o), (q, p)),
        "info_nce symmetric": (
            lambda q, p, **o: info_nce(q, p, temperature=0.3, symmetric=True, **o),
            (q, p),
        ),
        "info_nce dot": (lambda q, p, **o: info_nce(q, p, temperature=2.0, similarity="dot", **o), (q, p)),
        "cosine": (
            lambda q, p, **o: cosine_similarity(q, p, torch.linspace(-1, 1, 12, dtype=D), **o),
            (q, p),
        ),
        "reconstruction": (lambda z, a, **o: reconstruction(x, z, a, bias[:1].expand(6), **o), (z, p[:6])),
        "regression": (lambda z, w, **o: regression(z, w, q[:, :4], bias, **o), (z, head)),
    }


NAMES = list(cases())


def measured(loss, tensors, **options):
    """Return the loss and its gradients as one vector."""
    leaves = [t.clone().requires_grad_() for t in tensors]
    value = loss(*leaves, **options)
    value.backward()
    return torch.cat([value.detach()[None], *(leaf.grad.flatten() for leaf in leaves)])


def z_scores(samples, wanted, seed=0):
    """Score the value, the projection on the exact gradient, and five random projections of the gradient."""
    directions = torch.randn(6, len(wanted), dtype=D, generator=torch.Generator().manual_seed(seed))
    directions[:, 0] = 0
    directions[0, 1:] = wanted[1:]
    value = torch.zeros(1, len(wanted), dtype=D)
    value[0, 0] = 1
    errors = (samples - wanted) @ torch.cat([value, directions]).t()
    return errors.mean(0) / (errors.std(0) / len(samples) ** 0.5)


@pytest.mark.parametrize("name", NAMES)
def test_sampled_value_and_gradient_are_unbiased(name):
    loss, tensors = cases()[name]
    generator = torch.Generator().manual_seed(1)
    options = {"estimator": "sampled", "generator": generator}
    samples = torch.stack([measured(loss, tensors, omega="harmonic", **options) for _ in range(600)])
    scores = z_scores(samples, measured(loss, tensors, omega="harmonic"))
    assert scores.abs().max() < LIMIT, f"z-scores {scores.tolist()}"
    wrong = z_scores(samples, measured(loss, tensors, omega="reverse_harmonic"))
    assert wrong.abs().max() > LIMIT


@pytest.mark.parametrize("omega", ["uniform", "harmonic", {2: 1.0, 5: 3.0}])
def test_draws_cover_the_batch_evenly(omega):
    weights = resolve_omega(omega, 7)
    draws = draw_prefixes(weights, 41, CPU)
    counts = np.bincount(draws.numpy(), minlength=8)[1:]
    # One point per slice: a prefix covers its share of slices, and part of one at each end.
    assert (np.abs(counts - 41 * weights.omega) < 2).all()
    assert (counts[weights.omega == 0] == 0).all()


def test_each_row_draws_with_probability_omega():
    """Chi-square of one row's draws, 6 degrees of freedom: above 40.5 with probability 4e-7."""
    weights = resolve_omega("harmonic", 7)
    generator = torch.Generator().manual_seed(0)
    first = torch.stack([draw_prefixes(weights, 5, CPU, generator)[0] for _ in range(4000)])
    counts = np.bincount(first.numpy(), minlength=8)[1:]
    expected = 4000 * weights.omega
    assert ((counts - expected) ** 2 / expected).sum() < 40.5
    uniform = 4000 * resolve_omega("uniform", 7).omega
    assert ((counts - uniform) ** 2 / uniform).sum() > 40.5


def test_stratifying_lowers_the_variance():
    """Rows that are alike leave only the draws to vary: stratified draws vary less than independent ones."""
    weights = resolve_omega("uniform", 8)
    gain = torch.arange(9.0)
    generator = torch.Generator().manual_seed(0)
    stratified = [gain[draw_prefixes(weights, 16, CPU, generator)].mean() for _ in range(300)]
    independent = [gain[torch.randint(1, 9, (16,), generator=generator)].mean() for _ in range(300)]
    assert torch.stack(stratified).var() < 0.1 * torch.stack(independent).var()


def test_a_seed_repeats_the_draws():
    weights = resolve_omega("harmonic", 30)
    one, two = (draw_prefixes(weights, 50, CPU, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one, two)


def test_cut_keeps_exactly_the_prefix():
    z = torch.randn(4, 5)
    k = torch.tensor([1, 5, 3, 2])
    found = cut(z, k)
    for i in range(4):
        assert torch.equal(found[i, : k[i]], z[i, : k[i]])
        assert (found[i, k[i] :] == 0).all()


def test_drawn_weights_are_those_given_on_average_and_few():
    weights, source = resolve_omega("harmonic", 40), torch.Generator().manual_seed(0)
    drawn = [draw_weights(weights, 4, source, after=2) for _ in range(4000)]
    assert all(len(each.support) <= 6 for each in drawn)
    omega = np.array([each.omega for each in drawn])
    np.testing.assert_allclose(omega[:, :2], np.broadcast_to(weights.omega[:2], (4000, 2)))
    error = omega[:, 2:].std(0) / 4000**0.5
    assert (np.abs(omega[:, 2:].mean(0) - weights.omega[2:]) < LIMIT * error).all()


def test_drawn_lengths_vary_less_than_one_length_per_row():
    q, p = torch.randn(2, 64, 64, dtype=D)
    exact = measured(info_nce, (q, p))
    source = torch.Generator().manual_seed(0)
    one = [measured(info_nce, (q, p), estimator="sampled", generator=source) for _ in range(40)]
    weights = resolve_omega("harmonic", 64).without_first()
    eight = [measured(info_nce, (q, p), omega=draw_weights(weights, 8, source)) for _ in range(40)]
    apart = [torch.stack(each).sub(exact)[:, 1:].square().sum(1).mean() for each in (one, eight)]
    assert apart[1] < apart[0] / 2


def test_processes_draw_different_lengths(monkeypatch):
    weights, found = resolve_omega("uniform", 512), []
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(torch.distributed, "get_rank", lambda rank=rank: rank)
        torch.manual_seed(5)  # as a trainer seeds every process
        found.append((draw_weights(weights, 8).support.tolist(), draw_prefixes(weights, 16, CPU).tolist()))
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]
