"""Synthetic sets with known solutions: axes, their order and their spectrum are returned with the data.

They are the sets of Talukder et al. 2026 (appendix C.2) and Bao et al. 2020 (appendix H.2). All spectra follow the 1/n
convention.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from firstk.exceptions import InvalidInputError

RandomState = int | np.random.Generator | np.random.RandomState | None


@dataclass(frozen=True, eq=False)
class SyntheticSet:
    """Data with the axes that an exact method must find.

    Attributes
    ----------
    X : ndarray of shape (n, p), float64
    y : ndarray of shape (n,), int64, or None
        Class indices, if the set has classes.
    pca_axes : ndarray of shape (p, p)
        Row k is the (k+1)-th eigenvector of the total covariance.
    pca_spectrum : ndarray of shape (p,)
        Its eigenvalues, descending.
    lda_axes : ndarray of shape (C-1, p) or None
        Row k is the (k+1)-th discriminant direction, of unit length.
    lda_spectrum : ndarray of shape (C-1,) or None
        Ratios of between-class to within-class variance, descending.
    """

    X: np.ndarray
    y: np.ndarray | None
    pca_axes: np.ndarray
    pca_spectrum: np.ndarray
    lda_axes: np.ndarray | None = None
    lda_spectrum: np.ndarray | None = None


def two_blocks(
    random_state: RandomState = 0,
    *,
    n_classes: int = 20,
    per_class: int = 500,
    p_noise: int = 50,
    tau_noise: float = 5.0,
    rho_noise: float = 0.9,
    tau_sig: float = 0.1,
    beta_0: float = 1.0,
    rho_sig: float = 0.7,
) -> SyntheticSet:
    r"""Draw the set of Talukder et al. 2026 appendix C.2: variance in one block of columns, classes in the other.

    The first `p_noise` columns have high variance and no class information, the last C - 1 have low variance and all
    the class information, so that the leading axes of PCA and of LDA are orthogonal.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
    n_classes : int
        C of the paper; the signal block has C - 1 columns.
    per_class : int
        Rows per class. Rows are ordered by class.
    p_noise : int
        Columns of the noise block.
    tau_noise, rho_noise : float
        Noise variances are tau_noise^2 rho_noise^(2i), i = 0, 1, ... (Talukder et al. 2026 (35)).
    tau_sig : float
        Standard deviation inside a class, on every signal axis (Talukder et al. 2026 (34)).
    beta_0, rho_sig : float
        Class means are H diag(beta), beta_i = beta_0 rho_sig^i, with H orthonormal columns that sum to zero
        (Talukder et al. 2026 (36)).

    Returns
    -------
    SyntheticSet
        `pca_axes`, `pca_spectrum`, `lda_axes` and `lda_spectrum` are those of the *population* with balanced
        classes: noise variances as above, signal variances beta_i^2/C + tau_sig^2, and Fisher ratios
        (beta_i^2/C)/tau_sig^2 on signal axis i.

    Notes
    -----
    - With the paper's numbers the first 29 axes of PCA are the noise columns of highest variance; after them noise and
      signal columns alternate, so "the PCA and LDA subspaces are orthogonal" holds for prefixes up to 29.
    - A finite sample determines an axis only if its eigenvalue is well separated. The smallest Fisher ratio is
      1.3e-5, far below the (C - 1)/n = 0.0019 expected by chance: LDA of all 10,000 rows has cosine 0.9 or more
      with the population's axes 1 to 8 and below 0.2 from axis 12 on; PCA is equally inaccurate among axes 45 to 57,
      where variances differ by less than 4 %. On those axes, compare a method with PCA or LDA of the same
      sample, not with the population.
    - A rate of 1 (`rho_noise`, `rho_sig`) gives ties, whose axes are in the order of the columns.

    Examples
    --------
    >>> blocks = two_blocks(random_state=0)
    >>> blocks.X.shape
    (10000, 69)
    >>> int(blocks.pca_axes[0].argmax()), int(blocks.lda_axes[0].argmax())
    (0, 50)
    >>> blocks.lda_spectrum[:3].round(3).tolist()
    [5.0, 2.45, 1.2]
    """
    owner = "two_blocks"
    _check_count(n_classes, 2, "n_classes", owner)
    _check_count(per_class, 1, "per_class", owner)
    _check_count(p_noise, 1, "p_noise", owner)
    for name, value in [("tau_noise", tau_noise), ("tau_sig", tau_sig), ("beta_0", beta_0)]:
        _check_positive(value, name, owner)
    for name, value in [("rho_noise", rho_noise), ("rho_sig", rho_sig)]:
        _check_positive(value, name, owner, at_most=1.0)
    rng = _generator(random_state, owner)

    beta = beta_0 * rho_sig ** np.arange(n_classes - 1)  # (36)
    noise_scale = tau_noise * rho_noise ** np.arange(p_noise)  # square root of (35)
    means = _balanced_frame(n_classes, rng) * beta  # (C, C-1)

    y = np.repeat(np.arange(n_classes), per_class)
    noise = rng.standard_normal((len(y), p_noise)) * noise_scale  # (34), left
    signal = means[y] + tau_sig * rng.standard_normal((len(y), n_classes - 1))  # (34), right

    between = beta**2 / n_classes
    variances = np.concatenate([noise_scale**2, between + tau_sig**2])
    order = np.argsort(-variances, kind="stable")
    identity = np.eye(len(variances))
    return SyntheticSet(
        X=np.hstack([noise, signal]),
        y=y,
        pca_axes=identity[order],
        pca_spectrum=variances[order],
        lda_axes=identity[p_noise:],
        lda_spectrum=between / tau_sig**2,
    )


def evenly_spaced(
    random_state: RandomState = 0, *, n: int = 5000, p: int = 1000, low: float = 1.0, high: float = 100.0
) -> SyntheticSet:
    """Build the set of Bao et al. 2020 appendix H.2: singular values evenly spaced from `low` to `high`.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        Draws the left and right singular vectors, uniformly distributed.
    n, p : int
        Rows and columns, n > p.
    low, high : float
        Smallest and largest singular value of the data matrix.

    Returns
    -------
    SyntheticSet
        No classes. `X` has column means of zero, and its singular values and axes are *exactly* those
        returned, not those of a population: the left singular vectors are built orthogonal to the vector
        of ones, so that centering changes nothing. `pca_spectrum` is their squares divided by n; each axis
        has its largest absolute entry positive.

    Notes
    -----
    Bao et al. 2020 give singular values 1, ..., m with m = 1000 in section 7, and 1 to 100 in appendix H.2 for the
    same experiment. The default follows the appendix; `high=1000.0` follows section 7.

    Examples
    --------
    >>> even = evenly_spaced(random_state=0, n=50, p=5, low=1.0, high=9.0)
    >>> np.linalg.svd(even.X, compute_uv=False).round(6).tolist()
    [9.0, 7.0, 5.0, 3.0, 1.0]
    >>> bool(np.allclose(even.pca_spectrum * 50, [81, 49, 25, 9, 1]))
    True
    """
    owner = "evenly_spaced"
    _check_count(p, 1, "p", owner)
    # Centered rows span n - 1 dimensions at most.
    _check_count(n, p + 1, "n", owner)
    _check_positive(low, "low", owner)
    _check_positive(high, "high", owner)
    if low >= high:
        raise _bad_parameter("high", owner, f"larger than 'low' ({low}), or no axis has a known order", high)
    rng = _generator(random_state, owner)

    singular = np.linspace(high, low, p)
    left = rng.standard_normal((n, p))
    left -= left.mean(axis=0)
    left = _orthonormal(left)
    axes = _orthonormal(rng.standard_normal((p, p)))
    peaks = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes *= np.sign(peaks)
    X = (left * singular) @ axes
    X -= X.mean(axis=0)  # removes the rounding error of the means
    return SyntheticSet(X=X, y=None, pca_axes=axes, pca_spectrum=singular**2 / n)


def _balanced_frame(n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Return H of Talukder et al. 2026 (36): (C, C-1), orthonormal columns, each of which sums to zero."""
    G = rng.standard_normal((n_classes, n_classes - 1))
    return _orthonormal(G - G.mean(axis=0))


def _orthonormal(G: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns of G, uniform when G is Gaussian."""
    Q, R = np.linalg.qr(G)
    # The signs that LAPACK chooses on the diagonal of R would otherwise bias the basis.
    return Q * np.sign(np.diag(R))


def _generator(random_state: RandomState, owner: str) -> np.random.Generator:
    """Return a numpy Generator: None is fresh entropy, a Generator is used itself, a RandomState gives the seed."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        allowed = "an int that is not negative, a numpy Generator or RandomState, or None"
        raise _bad_parameter("random_state", owner, allowed, random_state) from None


def _check_count(value: object, least: int, name: str, owner: str) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise _bad_parameter(name, owner, f"an int of at least {least}", value)


def _check_positive(value: Any, name: str, owner: str, at_most: float | None = None) -> None:
    most = np.finfo(float).max if at_most is None else at_most
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) <= most:
        bound = "" if at_most is None else f" and at most {at_most:g}"
        raise _bad_parameter(name, owner, f"a finite number above 0{bound}", value)


def _bad_parameter(name: str, owner: str, allowed: str, value: object) -> InvalidInputError:
    return InvalidInputError(f"The '{name}' parameter of {owner} must be {allowed}. Got {value!r} instead.")
