"""The Hessian of the non-uniform l2 objective at its optimum, and penalties that condition it best (001 section 4.3).

At B = A^T = (I - Lambda S^-2)^(1/2) U^T the Hessian splits into small blocks, so its extreme eigenvalues are exact.
001 (16) minimises a lower bound whose infimum lies on the boundary, where the true condition number is infinite
(THEORY section 6); here the true one is minimised, inside the range of 000 table 1.
"""

from __future__ import annotations

import numpy as np


def hessian_extremes(spectrum: np.ndarray, lam: np.ndarray) -> tuple[float, float]:
    """Return the smallest and largest eigenvalue of the Hessian of 001 (3) at its optimum, within the subspace.

    Perturb b_i by e_i and a_i by f_i along u_j. With t_i^2 = 1 - lambda_i / s_i (s the spectrum), second-order terms
    couple (e_ij, f_ij, e_ji, f_ji) only: 4 x 4 blocks for i < j, 2 x 2 blocks for i = j.
    """
    s, t = np.asarray(spectrum, dtype=float), np.sqrt(np.maximum(1 - np.asarray(lam) / spectrum, 0.0))
    values = []
    for i in range(len(s)):
        values.append(np.linalg.eigvalsh(_diagonal_block(s[i], t[i], lam[i])))
        for j in range(i + 1, len(s)):
            values.append(np.linalg.eigvalsh(_pair_block(s[i], s[j], t[i], t[j], lam[i], lam[j])))
    flat = np.concatenate(values)
    return float(flat.min()), float(flat.max())


def _diagonal_block(s: float, t: float, lam: float) -> np.ndarray:
    """Second-order form in (e, f), b = (t + e) u and a = (t + f) u: loss s (1 - (t+e)(t+f))^2 + lam (...)."""
    off = 2 * s * (2 * t**2 - 1)
    return np.array([[2 * s * t**2 + 2 * lam, off], [off, 2 * s * t**2 + 2 * lam]])


def _pair_block(si: float, sj: float, ti: float, tj: float, li: float, lj: float) -> np.ndarray:
    """Second-order form in (e_ij, f_ij, e_ji, f_ji): b_i moves along u_j by e_ij, a_i along u_j by f_ij.

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
    """Return the condition number of the Hessian at the optimum; infinity where it is singular."""
    low, high = hessian_extremes(spectrum, lam)
    return high / low if low > 1e-12 * high else float("inf")


def best_conditioned(spectrum: np.ndarray, n_grid: int = 12) -> np.ndarray:
    """Return evenly spaced lambda whose ends, fractions of sigma_d^2, give the smallest condition number."""
    d, last = len(spectrum), float(spectrum[-1])
    fractions = np.linspace(0.02, 0.95, n_grid)
    lines = [np.linspace(lo * last, hi * last, d) for lo in fractions for hi in fractions if hi > lo]
    sample = np.unique(np.linspace(0, d - 1, min(d, 24)).astype(int))  # pairs far apart never decide in large d
    thinned = np.unique(np.concatenate([sample, np.arange(max(d - 8, 0), d), np.arange(min(8, d))]))
    return min(lines, key=lambda lam: condition_number(spectrum[thinned], lam[thinned]))
