import pytest
import torch

from firstk._base.prefix_weights import resolve_omega
from firstk.exceptions import InvalidInputError
from firstk.losses.functional.cosine import cosine_similarity, cosine_similarity_per_prefix, prefix_cosines
from losses.functional import loops
from losses.functional.compare import check


def pairs(n, d):
    return list(torch.randn(2, n, d, dtype=torch.float64)), torch.rand(n, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("omega", ["uniform", "harmonic", {3: 1.0, 7: 2.0}])
@pytest.mark.parametrize(("n", "d"), [(5, 8), (1, 9), (40, 60)])
def test_agrees_with_the_loop(n, d, omega, dtype):
    tensors, scores = pairs(n, d)
    check(
        lambda a, b: cosine_similarity(a, b, scores, omega=omega),
        lambda a, b: loops.cosine_similarity(a, b, scores),
        tensors,
        resolve_omega(omega, d).without_first().omega,
        dtype,
    )


def test_one_coordinate_is_constant():
    (a, b), scores = pairs(5, 1)
    a.requires_grad_()
    loss = cosine_similarity(a, b, scores)
    loss.backward()
    torch.testing.assert_close(loss, ((a * b).sign()[:, 0] - scores).square().mean())
    assert a.grad.abs().max() < 1e-12


def test_zero_vectors():
    (a, b), scores = pairs(4, 6)
    a[0], b[1, :3] = 0, 0
    a, b = a.requires_grad_(), b.requires_grad_()
    cosine_similarity(a, b, scores).backward()
    assert a.grad.isfinite().all()
    assert b.grad.isfinite().all()
    assert (prefix_cosines(a, b)[0] == 0).all()


def test_gradcheck():
    (a, b), scores = pairs(4, 6)
    assert torch.autograd.gradcheck(
        lambda a, b: cosine_similarity(a, b, scores), (a.requires_grad_(), b.requires_grad_())
    )


def test_per_prefix():
    (a, b), scores = pairs(6, 9)
    wanted = torch.stack(loops.cosine_similarity(a, b, scores))
    torch.testing.assert_close(cosine_similarity_per_prefix(a, b, scores), wanted)


def test_scores_must_match():
    with pytest.raises(InvalidInputError, match="one score per pair"):
        cosine_similarity(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 1))
    with pytest.raises(InvalidInputError, match=r"as many rows in 'left' as in 'scores'\. Got 2 and 3"):
        cosine_similarity(torch.ones(2, 3), torch.ones(2, 3), torch.ones(3))


def test_both_sides_have_one_width():
    with pytest.raises(InvalidInputError, match=r"takes 'right' with 3 coordinates, as the codes have\. Got 1"):
        cosine_similarity(torch.ones(2, 3), torch.ones(2, 1), torch.ones(2))
