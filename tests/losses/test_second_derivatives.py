"""Second derivatives: they raise an error, or they are right. A penalty that has no gradient is not an option."""

import pytest
import torch

from firstk.exceptions import IllegalCombinationError
from firstk.losses import (
    FullPrefixCompatibility,
    FullPrefixCoSENT,
    FullPrefixCosineSimilarity,
    FullPrefixCrossEntropy,
    FullPrefixFisher,
    FullPrefixFreeHeadCrossEntropy,
    FullPrefixFreeHeadRegression,
    FullPrefixInfoNCE,
    FullPrefixReconstruction,
    FullPrefixRegression,
)

N, D, C, P = 24, 6, 3, 8
_random = torch.Generator().manual_seed(0)


def _normal(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=_random)


Z, OTHER, X, HEAD, DECODER, B = _normal(N, D), _normal(N, D), _normal(N, P), _normal(C, D), _normal(P, D), _normal(D, P)
LABELS, SCORES = torch.arange(N) % C, torch.linspace(0, 1, N, dtype=torch.float64)
SW, SB, ST = (part.t() @ part / len(part) for part in (X, X[:2], X[2:]))
HEADS = FullPrefixFreeHeadCrossEntropy([2, D], C).double()
OWN = FullPrefixCrossEntropy(n_classes=C).double()

# name: (loss of one tensor, which is differentiated, and a generator of draws; that tensor)
LOSSES = {
    "cross_entropy": (lambda z, _: FullPrefixCrossEntropy()(z, HEAD, LABELS), Z),
    "cross_entropy of the head": (lambda w, _: FullPrefixCrossEntropy()(Z, w, LABELS), HEAD),
    "cross_entropy, torch": (lambda z, _: FullPrefixCrossEntropy(backend="torch")(z, HEAD, LABELS), Z),
    "cross_entropy, few": (lambda z, _: FullPrefixCrossEntropy({D: 1})(z, HEAD, LABELS), Z),
    "cross_entropy, smoothed": (lambda z, _: FullPrefixCrossEntropy(label_smoothing=0.1)(z, HEAD, LABELS), Z),
    "cross_entropy, own heads": (lambda z, _: OWN(z, HEAD, LABELS), Z),
    "cross_entropy, sampled": (
        lambda z, source: FullPrefixCrossEntropy(estimator="sampled", generator=source)(z, HEAD, LABELS),
        Z,
    ),
    "free heads": (lambda z, _: HEADS(z, LABELS), Z),
    "info_nce": (lambda z, _: FullPrefixInfoNCE(temperature=0.5)(z, OTHER), Z),
    "info_nce of documents": (lambda p, _: FullPrefixInfoNCE(temperature=0.5, symmetric=True)(Z, p), OTHER),
    "info_nce of temperature": (
        lambda t, _: FullPrefixInfoNCE(temperature=t)(Z, OTHER),
        torch.tensor(0.5, dtype=torch.float64),
    ),
    "info_nce, dot": (lambda z, _: FullPrefixInfoNCE(similarity="dot", temperature=0.5)(z, OTHER), Z),
    "info_nce, sampled": (
        lambda z, source: FullPrefixInfoNCE(estimator="sampled", generator=source, temperature=0.5)(z, OTHER),
        Z,
    ),
    "cosine": (lambda z, _: FullPrefixCosineSimilarity()(z, OTHER, SCORES), Z),
    "cosent": (lambda z, _: FullPrefixCoSENT(scale=2.0)(z, OTHER, SCORES), Z),
    "compatibility": (lambda z, _: FullPrefixCompatibility()(z, OTHER), Z),
    "reconstruction": (lambda z, _: FullPrefixReconstruction()(X, z, DECODER), Z),
    "reconstruction of the decoder": (lambda w, _: FullPrefixReconstruction()(X, Z, w), DECODER),
    "reconstruction, sampled": (
        lambda z, source: FullPrefixReconstruction(estimator="sampled", generator=source)(X, z, DECODER),
        Z,
    ),
    "reconstruction from moments": (lambda b, _: FullPrefixReconstruction().from_moments(ST, b, DECODER), B),
    "regression": (lambda z, _: FullPrefixRegression()(z, HEAD, X[:, :C]), Z),
    "free_head": (lambda z, _: FullPrefixFreeHeadRegression()(z, X[:, :C]), Z),
    "fisher": (lambda b, _: FullPrefixFisher(shrinkage=0.1)(b, SW, SB), B),
    "fisher from codes": (lambda z, _: FullPrefixFisher().from_codes(z, LABELS), Z),
}


def _penalty(loss, at, *, create_graph):
    """Return the squared norm of the gradient of a loss."""
    value = loss(at, torch.Generator().manual_seed(1))
    (gradient,) = torch.autograd.grad(value, at, create_graph=create_graph)
    return gradient.square().sum()


@pytest.mark.parametrize("name", LOSSES)
def test_second_derivatives_raise_or_are_right(name):
    loss, start = LOSSES[name]
    at = start.clone().requires_grad_()
    try:
        (found,) = torch.autograd.grad(_penalty(loss, at, create_graph=True), at)
    except IllegalCombinationError as error:
        assert "second derivative" in str(error)  # noqa: PT017
        return
    along, step = torch.sin(torch.arange(at.numel(), dtype=at.dtype)).view_as(at), 1e-5
    ends = [_penalty(loss, (start + sign * step * along).requires_grad_(), create_graph=False) for sign in (1, -1)]
    torch.testing.assert_close((found * along).sum(), (ends[0] - ends[1]) / (2 * step), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("name", ["cross_entropy", "info_nce", "cosent", "reconstruction", "fisher from codes"])
def test_exact_losses_raise(name):
    loss, start = LOSSES[name]
    at = start.clone().requires_grad_()
    penalty = _penalty(loss, at, create_graph=True)
    with pytest.raises(IllegalCombinationError, match="second derivative"):
        (loss(at, None) + penalty).backward()


@pytest.mark.parametrize("name", LOSSES)
def test_torch_func_grad_is_autograd(name):
    loss, start = LOSSES[name]
    at = start.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(at, torch.Generator().manual_seed(1)), at)
    found, value = torch.func.grad_and_value(lambda x: loss(x, torch.Generator().manual_seed(1)))(start)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(value, loss(start, torch.Generator().manual_seed(1)), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["cross_entropy", "info_nce", "cosent", "reconstruction", "fisher from codes"])
def test_torch_func_raises_for_the_second_derivative(name):
    loss, start = LOSSES[name]
    with pytest.raises(IllegalCombinationError, match="second derivative"):
        torch.func.grad(lambda x: torch.func.grad(lambda y: loss(y, None))(x).square().sum())(start)


@pytest.mark.parametrize("name", ["cross_entropy", "info_nce", "cosent", "reconstruction", "fisher from codes"])
def test_vmap_raises(name):
    loss, start = LOSSES[name]
    with pytest.raises(IllegalCombinationError, match="vmap over a full-prefix loss"):
        torch.func.vmap(lambda x: loss(x, None))(start.expand(2, *start.shape))


def test_vmap_over_a_loss_of_plain_operations():
    stacked = torch.stack([Z, OTHER])
    found = torch.func.vmap(torch.func.grad(lambda z: FullPrefixCosineSimilarity()(z, X[:, :D], SCORES)))(stacked)
    for z, gradient in zip(stacked, found, strict=True):
        own = z.clone().requires_grad_()
        (expected,) = torch.autograd.grad(FullPrefixCosineSimilarity()(own, X[:, :D], SCORES), own)
        torch.testing.assert_close(gradient, expected)
