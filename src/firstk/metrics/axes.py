"""What each coordinate of a code says by itself, coordinate by coordinate: accuracy or R² of a readout of it alone.

With the mean of abs z_k these say whether magnitude is a sign of usefulness (Talukder et al. 2026 figure 2, panels
iii, v, vi).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from firstk._base.checks import check_matrix, check_same_length
from firstk.exceptions import InvalidInputError
from firstk.metrics._inputs import check_codes, check_label_pair


def axis_probe_accuracy(Z_fit: ArrayLike, y_fit: ArrayLike, Z: ArrayLike, y: ArrayLike) -> np.ndarray:
    r"""Accuracy of a linear probe of each single coordinate.

    The probe is the discriminant rule with class means :math:`m_c`, shares :math:`\pi_c` and one pooled variance
    :math:`s^2` within classes: the class of largest :math:`z m_c / s^2 - m_c^2 / 2 s^2 + \log \pi_c`. Talukder et al.
    2026 fits a logistic regression instead; both have scores linear in z, and this one is solved at once for all axes.

    Parameters
    ----------
    Z_fit : array-like of shape (n, d)
        Code on which the probes are fitted.
    y_fit : array-like of shape (n,)
        Labels; every different value is a class.
    Z : array-like of shape (m, d)
        Code to classify.
    y : array-like of shape (m,)
        Its labels; one that is not in `y_fit` counts as wrong.

    Returns
    -------
    accuracy : ndarray of shape (d,)
        A coordinate that does not vary within any class, or at all, names the most frequent class.

    Examples
    --------
    >>> Z = [[0.1, 1.0], [-0.1, 1.2], [0.1, -1.0], [-0.1, -1.1]]
    >>> axis_probe_accuracy(Z, [0, 0, 1, 1], [[0.3, 0.9], [0.3, -0.9]], [0, 1])
    array([0.5, 1. ])
    """
    owner = "axis_probe_accuracy"
    Z_fit, Z = check_codes(Z_fit, Z, owner, ("Z_fit", "Z"))
    y_fit, y = check_label_pair(y_fit, y, (len(Z_fit), len(Z)), owner, ("y_fit", "y"))
    Z_fit, Z = Z_fit.astype(np.float64), Z.astype(np.float64)
    classes, codes, counts = np.unique(y_fit, return_inverse=True, return_counts=True)
    means = np.zeros((len(classes), Z.shape[1]))
    np.add.at(means, codes, Z_fit)
    means /= counts[:, None]
    within = np.mean((Z_fit - means[codes]) ** 2, axis=0)  # (d,)
    log_shares = np.log(counts / len(codes))
    accuracy = np.empty(Z.shape[1])
    for j, (m, s2) in enumerate(zip(means.T, within, strict=True)):
        slope = m / s2 if s2 > 0 else np.zeros_like(m)
        scores = np.outer(Z[:, j], slope) - slope * m / 2 + log_shares  # (m, C)
        accuracy[j] = np.mean(classes[scores.argmax(axis=1)] == y)
    return accuracy


def axis_readout_r2(Z_fit: ArrayLike, Y_fit: ArrayLike, Z: ArrayLike, Y: ArrayLike) -> np.ndarray:
    r"""R² of the best linear readout, with intercept, of each single coordinate.

    Parameters
    ----------
    Z_fit, Y_fit : array-like of shape (n, d) and (n,) or (n, t)
        Code and targets on which the readouts are fitted.
    Z, Y : array-like of shape (m, d) and (m,) or (m, t)
        Code and targets on which they are scored.

    Returns
    -------
    score : ndarray of shape (d,)
        Errors of all targets together over their variation together.

    Examples
    --------
    >>> Z = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    >>> axis_readout_r2(Z, [3.0, -1.0, 1.0, -3.0], Z, [3.0, -1.0, 1.0, -3.0])
    array([0.8, 0.2])
    """
    owner = "axis_readout_r2"
    Z_fit, Z = check_codes(Z_fit, Z, owner, ("Z_fit", "Z"))
    Y_fit, Y = (
        check_matrix(part.reshape(len(part), -1), owner, "Y").astype(float) for part in map(np.asarray, (Y_fit, Y))
    )
    check_same_length(Z_fit, Y_fit, "Z_fit", "Y_fit", owner)
    check_same_length(Z, Y, "Z", "Y", owner)
    variation = float(np.sum((Y - Y.mean(axis=0)) ** 2))
    if variation == 0:
        raise InvalidInputError(f"{owner} needs targets that vary. Every target is constant over {len(Y)} rows.")
    centre, offset = Z_fit.mean(axis=0, dtype=np.float64), Y_fit.mean(axis=0)
    dZ, errors = Z_fit - centre, Y - offset
    spread = np.sum(dZ**2, axis=0)  # (d,)
    slopes = np.divide(
        dZ.T @ (Y_fit - offset), spread[:, None], where=spread[:, None] > 0, out=np.zeros((len(spread), Y.shape[1]))
    )
    code = Z - centre  # |e - z b|² = |e|² - 2 b.(z^T e) + |z|² |b|², axis by axis
    gains = 2 * np.sum(slopes * (code.T @ errors), axis=1) - np.sum(code**2, axis=0) * np.sum(slopes**2, axis=1)
    return 1 - (np.sum(errors**2) - gains) / variation
