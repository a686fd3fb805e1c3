"""The Hessian of the non-uniform l2 objective at its optimum, and the penalties with the best condition number.

Bao et al. 2020 section 4.3.

At B = A^T = (I - Lambda S^-2)^(1/2) U^T the Hessian splits into small blocks, so its extreme eigenvalues are exact.
Bao et al. 2020 (16) minimize a lower bound whose infimum lies on the boundary, where the true condition number is
infinite (docs/theory.md, section 6); here the true condition number is minimized.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import brentq

# Bisection steps for the smallest eigenvalue.
_BISECTIONS = 40


def hessian_extremes(spectrum: np.ndarray, lam: np.ndarray) -> tuple[float, float]:
    """Return the smallest and largest eigenvalue of the Hessian at the optimum of Bao et al. 2020 (3).

    Perturb b_i by e_i and a_i by f_i along u_j. With t_i^2 = 1 - lambda_i / s_i (s the spectrum), second-order terms
    couple (e_ij, f_ij, e_ji, f_ji) only: 4 x 4 blocks for i < j, 2 x 2 blocks for i = j.

    Parameters
    ----------
    spectrum : ndarray of shape (d,)
        The d largest eigenvalues of the second moment, descending.
    lam : ndarray of shape (d,)
        Penalties lambda_1 < ... < lambda_d, each below its eigenvalue.
    """
    s, t = np.asarray(spectrum, dtype=float), np.sqrt(np.maximum(1 - np.asarray(lam) / spectrum, 0.0))
    values = []
    for i in range(len(s)):
        # The quadratic form in (e, f), b = (t + e) u and a = (t + f) u: loss s (1 - (t+e)(t+f))^2 + lam (...).
        size, off = 2 * s[i] * t[i] ** 2 + 2 * lam[i], 2 * s[i] * (2 * t[i] ** 2 - 1)
        values.append(np.linalg.eigvalsh(np.array([[size, off], [off, size]])))
        for j in range(i + 1, len(s)):
            values.append(np.linalg.eigvalsh(_pair_block(s[i], s[j], t[i], t[j], lam[i], lam[j])))
    flat = np.concatenate(values)
    return float(flat.min()), float(flat.max())


def _pair_block(si: float, sj: float, ti: float, tj: float, li: float, lj: float) -> np.ndarray:
    """Return the quadratic form in (e_ij, f_ij, e_ji, f_ji): b_i moves along u_j by e_ij, a_i along u_j by f_ij.

    A B - I to second order has entry (j, i) equal to f_ij t_i + t_j e_ji and (i, j) equal to f_ji t_j + t_i e_ij, and
    (i, i) gains f_ji e_ji, (j, j) gains f_ij e_ij, each times its residual t^2 - 1.
    """
    H = np.zeros((4, 4))
    for v, s in ((np.array([0, ti, tj, 0]), si), (np.array([ti, 0, 0, tj]), sj)):
        H += 2 * s * np.outer(v, v)
    H[2, 3] += 2 * si * (ti**2 - 1)
    H[0, 1] += 2 * sj * (tj**2 - 1)
    H[3, 2], H[1, 0] = H[2, 3], H[0, 1]
    return H + 2 * np.diag([li, li, lj, lj])


def condition_number(spectrum: np.ndarray, lam: np.ndarray) -> float:
    """Return the condition number of the Hessian at the optimum; infinity if it is singular.

    It is the ratio of the convergence rates of gradient descent along the fastest and the slowest direction. Parameters
    as in `hessian_extremes`.

    Examples
    --------
    >>> spectrum, even = np.array([3.0, 2.0, 1.0]), np.array([0.1, 0.3, 0.5])
    >>> best = best_conditioned(spectrum)
    >>> bool(condition_number(spectrum, best) < condition_number(spectrum, even))
    True
    """
    low, high = hessian_extremes(spectrum, lam)
    return high / low if low > 1e-12 * high else float("inf")


def best_conditioned(spectrum: np.ndarray) -> np.ndarray:
    """Return the increasing lambda whose Hessian has the largest smallest eigenvalue.

    The largest eigenvalue is near 4 sigma_1^2 for any lambda, so this also minimizes the condition number, to within a
    few per cent for d >= 3. A smallest eigenvalue of mu requires lambda_1 >= mu/4, lambda_d <= sigma_d^2 - mu/4, and a
    minimum gap between lambda_{k-1} and lambda_k; the conditions on axes that are not adjacent then hold as well. So
    the smallest lambdas for a given mu follow one from another, and mu is found by bisection. If eigenvalues of the
    spectrum are equal, no lambda can separate their axes, and the range of Talukder et al. 2026 table 1 is used.
    """

    def chain(mu: float) -> np.ndarray | None:
        """Return the smallest lambdas for which no eigenvalue is below mu; None if there are none."""
        lam = [mu / 4]
        for before, s in itertools.pairwise(spectrum):

            def short(value: float, before: float = before, s: float = s) -> float:
                ti, tj = np.sqrt(1 - lam[-1] / before), np.sqrt(1 - value / s)
                return mu - float(np.linalg.eigvalsh(_pair_block(before, s, ti, tj, lam[-1], value))[0])

            most = s - mu / 4
            if most <= lam[-1] or short(most) > 0:
                return None
            lam.append(float(brentq(short, lam[-1], most, xtol=1e-12 * s)))
        return np.array(lam)

    last = float(spectrum[-1])
    best, low, high = np.linspace(last / 18, last / 2, len(spectrum)), 0.0, 2 * last
    for _ in range(_BISECTIONS):
        mu = (low + high) / 2
        found = chain(mu)
        if found is None:
            high = mu
        else:
            best, low = found, mu
    return best
