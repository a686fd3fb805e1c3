"""Losses that keep a new model comparable with an old one, for those who train the new model.

The first coordinates of the new code stay those of the old model, and coordinates are appended: a store of old codes
grows by columns, and old codes are found by the first coordinates of new queries. The orthogonal layer follows the idea
of BT^2 (Zhou et al. 2023): a turn loses nothing of a code, and gives old features a basis beside which new ones have
room. The penalty relaxes it as lambda-orthogonality does (arXiv 2509.16664); both are written from the ideas, not from
the authors' code, and differ in form (stated below).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from firstk._base.checks import is_int, is_real
from firstk._base.prefix_weights import OmegaLike
from firstk.exceptions import InvalidInputError
from firstk.losses.base import PrefixLoss
from firstk.losses.functional._inputs import one_node, promoted
from firstk.losses.functional.cosine import prefix_cosines


class OrthogonalBasis(nn.Module):
    """A learned turn of a new code, of which the first coordinates are to be those of the old model.

    Scores of whole codes do not change by a turn, so the new model loses nothing. It starts as the identity.

    Parameters
    ----------
    width : int
        Coordinates of the new code.

    Examples
    --------
    >>> import torch
    >>> basis = OrthogonalBasis(4)
    >>> z = torch.randn(2, 4)
    >>> bool(torch.allclose(basis(z) @ basis(z).T, z @ z.T, atol=1e-5))
    True
    """

    def __init__(self, width: int):
        super().__init__()
        if not is_int(width) or width < 1:
            raise InvalidInputError(f"OrthogonalBasis takes an int of at least 1. Got {width!r}.")
        layer = nn.Linear(width, width, bias=False)
        nn.init.eye_(layer.weight)
        self.turn = nn.utils.parametrizations.orthogonal(layer, orthogonal_map="matrix_exp")

    def forward(self, z: Tensor) -> Tensor:
        """Return codes (n, width) in the learned basis."""
        turned: Tensor = self.turn(z)
        return turned


def orthogonality_penalty(weight: Tensor, lam: float = 0.0) -> Tensor:
    r"""Return :math:`\max(0, \|W^\top W - I\|_F - \lambda)^2`: how far a map is from a turn, beyond a margin.

    For a matrix (q, p) with fewer rows than columns it is the rows that are to be orthonormal. With lam = 0 the map is
    drawn to a turn, with a large one it is free. The paper has the same norm and the same margin behind a smooth
    switch; here the switch is the square of a hinge, whose gradient is continuous too.
    """
    if weight.ndim != 2 or not is_real(lam) or lam < 0:
        raise InvalidInputError(
            f"orthogonality_penalty takes a matrix and lam of at least 0. Got {tuple(weight.shape)} and {lam!r}."
        )
    narrow = weight if weight.shape[0] >= weight.shape[1] else weight.T
    gap = narrow.T @ narrow - torch.eye(narrow.shape[1], dtype=weight.dtype, device=weight.device)
    return torch.relu(gap.square().sum().clamp_min(torch.finfo(weight.dtype).tiny).sqrt() - lam).square()


class FullPrefixCompatibility(PrefixLoss):
    r"""One less the cosine of new and old codes, at every prefix that the old model has.

    :math:`\sum_{j \le k} \omega_j \frac{1}{n} \sum_i (1 - \cos(z_i[:j], o_i[:j]))`, with k the width of the old codes.
    Coordinates of z past k are free: they are what the new model appends. Add it to the loss of the new model.

    Parameters
    ----------
    omega : as in `FullPrefixCrossEntropy`
    """

    def __init__(self, omega: OmegaLike = "uniform"):
        super().__init__(omega, "exact")

    @one_node
    def forward(self, z: Tensor, old: Tensor) -> Tensor:
        """Return the weighted loss of new codes (n, d) with old codes (n, k), k at most d."""
        losses = _one_less_cosine(z, old)
        omega = torch.tensor(self.weights(old.shape[1]).omega, dtype=losses.dtype, device=losses.device)
        return (omega * losses).sum()

    def per_prefix(self, z: Tensor, old: Tensor) -> Tensor:
        """Return the k separate losses, without gradient."""
        with torch.no_grad():
            return _one_less_cosine(z, old)


def _one_less_cosine(z: Tensor, old: Tensor) -> Tensor:
    if z.ndim != 2 or old.ndim != 2 or not len(z) or len(z) != len(old) or not 1 <= old.shape[1] <= z.shape[1]:
        raise InvalidInputError(
            "FullPrefixCompatibility takes new codes (n, d) and old codes (n, k) of the same rows, k at most d. Got "
            f"{tuple(z.shape)} and {tuple(old.shape)}."
        )
    return (1 - prefix_cosines(*promoted(z[:, : old.shape[1]], old.detach()))).mean(0)
