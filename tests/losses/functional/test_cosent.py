import pytest
import torch

from firstk._base.prefix_weights import resolve_omega
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.losses import FullPrefixCoSENT
from firstk.losses.functional.cosent import cosent, cosent_per_prefix
from losses.functional import loops
from losses.functional.compare import check


def pairs(n, d, levels=None):
    scores = torch.rand(n, dtype=torch.float64) if levels is None else torch.randint(0, levels, (n,)).double()
    return list(torch.randn(2, n, d, dtype=torch.float64)), scores


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("omega", ["uniform", "harmonic", {3: 1.0, 7: 2.0}])
@pytest.mark.parametrize(("n", "d", "levels"), [(5, 8, None), (12, 9, 3), (3, 7, 1), (1, 8, None)])
def test_agrees_with_the_loop(n, d, levels, omega, dtype):
    """With ties, with scores that are all equal (no order to learn: log 1), and with a single pair."""
    tensors, scores = pairs(n, d, levels)
    check(
        lambda a, b: cosent(a, b, scores, omega=omega),
        lambda a, b: loops.cosent(a, b, scores),
        tensors,
        resolve_omega(omega, d).without_first().omega,
        dtype,
    )


def test_per_prefix_and_scale():
    (a, b), scores = pairs(6, 9)
    wanted = torch.stack(loops.cosent(a, b, scores, scale=5.0))
    torch.testing.assert_close(cosent_per_prefix(a, b, scores, scale=5.0), wanted)
    by_default = torch.stack(loops.cosent(a, b, scores, scale=20.0))
    torch.testing.assert_close(cosent_per_prefix(a, b, scores), by_default)
    weights = torch.tensor(resolve_omega("harmonic", 9).without_first().omega)
    torch.testing.assert_close(cosent(a, b, scores), by_default @ weights)


def test_only_the_order_of_scores_counts():
    (a, b), scores = pairs(7, 6)
    torch.testing.assert_close(cosent(a, b, scores), cosent(a, b, 3 * scores.exp() - 8))


def test_large_scale_stays_finite():
    (a, b), scores = pairs(7, 6)
    a.requires_grad_()
    cosent(a, b, scores, scale=1e4).backward()
    assert a.grad.isfinite().all()


def test_refusals():
    (a, b), scores = pairs(4, 3)
    with pytest.raises(InvalidInputError, match="'scale' parameter of cosent must be a positive number"):
        cosent(a, b, scores, scale=0)
    with pytest.raises(InvalidInputError, match="one score per pair"):
        cosent(a, b, scores[:, None])
    with pytest.raises(IllegalCombinationError, match="not a sum over rows"):
        FullPrefixCoSENT(estimator="sampled")
