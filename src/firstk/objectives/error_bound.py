"""Error bound: the code with the smallest bound on the error of telling the classes apart, at every prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from firstk.contracts import Conventions, Pencil
from firstk.moments.statistics import Statistics
from firstk.objectives._common import DiscriminantObjective, rows_of
from firstk.objectives.fisher import Fisher


@dataclass(frozen=True)
class ErrorBound(DiscriminantObjective):
    """Smallest Bhattacharyya bound on the Bayes error of each prefix, from moments of the classes.

    For Gaussian classes of one covariance N, whose means lie delta_cc' apart in the first k coordinates (in units of
    N), the error of the best classifier is at most ``sum_{c<c'} sqrt(s_c s_c') exp(-delta_cc'^2 / 8)``, s the shares
    of the classes (Fukunaga 1990, section 3.4, summed over pairs). The loss of prefix k is the logarithm of this bound.

    Fisher's ratio trace adds up delta^2 over all pairs, so that classes which are far apart already pay as much as
    those which are confused. Here a pair counts by how likely it is confused in the prefix at hand. There is no
    pencil for that: :class:`firstk.solvers.QuasiNewton` starts from Fisher's discriminants and rotates them.

    Parameters
    ----------
    shrinkage : float in [0, 1], None or "auto"
        N = (1 - a) Sw + a tr(Sw)/p I. The result depends little on it, so the default is a number; "auto" chooses by
        cross-validated 1-NN accuracy.
    """

    shrinkage: float | Literal["auto"] | None = 0.2

    name: ClassVar[str] = "error_bound"
    conventions: ClassVar[Conventions] = Conventions("metric", "mean", False, "harmonic", "1nn_accuracy")

    @property
    def exact(self) -> bool:
        """Whether the axes of the pencil are the optimum: no, the solver starts from them."""
        return False

    def pencil(self, statistics: Statistics) -> Pencil:
        """Return Fisher's pencil, where the search starts; the head is Fisher's too."""
        self.check_data(statistics)
        return Fisher(self.shrinkage).pencil(statistics)

    def criterion(self, statistics: Statistics, components: np.ndarray) -> PairwiseBound:
        """Return the bound as a function of a rotation of the given axes, which are orthonormal in N."""
        moments = rows_of(statistics)
        present = moments.class_shares > 0
        means = (moments.class_means[present] - moments.mean) @ components.T
        return PairwiseBound(means, moments.class_shares[present])


class PairwiseBound:
    """Logarithm of the Bhattacharyya bound of every prefix of the columns of Q, for classes with these means.

    Parameters
    ----------
    means : ndarray of shape (C, r)
        Means of the classes, in coordinates in which every class has the identity as covariance.
    shares : ndarray of shape (C,)
        Positive, of sum 1.
    """

    def __init__(self, means: np.ndarray, shares: np.ndarray):
        self.means, weights = means, np.sqrt(shares)
        self._log_weights = np.log(np.outer(weights, weights))
        np.fill_diagonal(self._log_weights, -np.inf)

    def losses(self, Q: np.ndarray) -> np.ndarray:
        """Return the logarithm of the bound for the prefixes of length 0 to d, shape (d + 1,)."""
        exponents = self._log_weights.copy()
        losses = [_log_sum(exponents)]
        for z in (self.means @ Q).T:
            exponents -= _squared_differences(z) / 8
            losses.append(_log_sum(exponents))
        return np.array(losses)

    def weighted(self, Q: np.ndarray, omega: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sum over k of ``omega_k loss_k``, and its gradient of the shape of Q.

        With p_k the share of each pair in the bound of prefix k, d loss_k / d delta^2 = -p_k / 8, and the difference
        along coordinate j is part of every prefix from j on: so shares are added up from the last prefix to the first.
        They are computed a second time for that, as keeping C x C numbers for every prefix would take more memory.
        """
        codes, exponents, losses = self.means @ Q, self._log_weights.copy(), []
        for z in codes.T:
            exponents -= _squared_differences(z) / 8
            losses.append(_log_sum(exponents))
        gradient, pairs = np.empty_like(codes), np.zeros_like(exponents)
        for j in reversed(range(len(losses))):
            z = codes[:, j]
            pairs += omega[j] / 2 * np.exp(exponents - losses[j])  # both (c, c') and (c', c) are there
            gradient[:, j] = -(pairs.sum(axis=1) * z - pairs @ z) / 2
            exponents += _squared_differences(z) / 8
        return float(np.dot(omega, losses)), self.means.T @ gradient


def _log_sum(exponents: np.ndarray) -> float:
    """Return the logarithm of the sum of exp over pairs of classes; each pair is there twice."""
    top = exponents.max()
    return float(top + np.log(np.exp(exponents - top).sum() / 2))


def _squared_differences(z: np.ndarray) -> np.ndarray:
    difference: np.ndarray = z[:, None] - z
    return difference * difference
