"""Noise distributions with known moments, for denoising in closed form.

A noise is described by the second moments G = E[x' x'^T] and S = E[x' x^T], for centered x and its noisy copy x'
(Balestriero and LeCun 2024 section 5.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstk._base.checks import bad_parameter, check_fraction, check_non_negative, is_int
from firstk.exceptions import InvalidInputError


@dataclass(frozen=True)
class GaussianNoise:
    """Independent N(0, sigma^2) noise on each coordinate: G = St + sigma^2 I, S = St."""

    sigma: float = 1.0

    name: ClassVar[str] = "gaussian"
    rotation_free: ClassVar[bool] = True

    def check(self) -> None:
        """Raise an error for a negative sigma."""
        check_non_negative(self.sigma, "sigma", "GaussianNoise")

    def second_moments(self, St: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (G, S)."""
        return St + self.sigma**2 * np.eye(len(St)), St


@dataclass(frozen=True)
class Masking:
    """Replacement of patches of coordinates by their mean; each patch is kept with probability `keep`.

    S = q St; G is q St inside a patch and q^2 St across, for independent patches. With `exact`, a fixed number m of
    the P patches is kept, drawn at random, and the factor across is m (m - 1) / (P (P - 1)).

    Parameters
    ----------
    keep : float in (0, 1], default 0.5
        q, the share of patches kept. With `exact`, keep * P is rounded to the nearest integer.
    patches : sequence of int, optional
        The patch to which each coordinate belongs; None makes each coordinate a patch. See :func:`image_patches`.
    exact : bool, default False
        Keep a fixed number of patches instead of drawing each independently.
    """

    keep: float = 0.5
    patches: Sequence[int] | None = None
    exact: bool = False

    name: ClassVar[str] = "masking"
    rotation_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # Stored as a tuple, so that equal patches compare equal, also after saving and loading.
        if isinstance(self.patches, (list, np.ndarray)):
            object.__setattr__(self, "patches", tuple(np.asarray(self.patches).tolist()))

    def check(self) -> None:
        """Raise an error for a keep rate outside (0, 1], or patches that are not integers."""
        check_fraction(self.keep, "keep", "Masking", open_left=True)
        if self.patches is not None and (np.ndim(self.patches) != 1 or np.asarray(self.patches).dtype.kind not in "iu"):
            raise bad_parameter("patches", "Masking", "one integer per coordinate, or None", self.patches)

    def patch_ids(self, p: int) -> np.ndarray:
        """Return the patch of each of `p` coordinates."""
        ids = np.arange(p) if self.patches is None else np.asarray(self.patches)
        if len(ids) != p:
            raise InvalidInputError(f"Masking was given patches for {len(ids)} coordinates, and the data have {p}.")
        return ids

    def rates(self, p: int) -> tuple[float, float]:
        """Return the probabilities that a coordinate, and that two coordinates of different patches, are kept."""
        if not self.exact:
            return self.keep, self.keep**2
        P = len(np.unique(self.patch_ids(p)))
        m = round(self.keep * P)
        if m == 0:
            raise InvalidInputError(
                f"Masking would keep none of {P} patches at keep={self.keep}: raise it to {1 / P:.3g} or more."
            )
        return m / P, (m * (m - 1) / (P * (P - 1)) if P > 1 else 1.0)

    def second_moments(self, St: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (G, S)."""
        ids = self.patch_ids(len(St))
        one, two = self.rates(len(St))
        return np.where(ids[:, None] == ids, one, two) * St, one * St


def image_patches(image_shape: tuple[int, ...], patch: tuple[int, int]) -> tuple[int, ...]:
    """Return the patch of each pixel, for flattened rows of shape (height, width) or (height, width, channels).

    Patches at the right and lower edge are smaller if the image size is not a multiple of the patch size.

    Examples
    --------
    >>> image_patches((2, 4), (2, 2))
    (0, 0, 1, 1, 0, 0, 1, 1)
    """
    shape: Any = tuple(image_shape)
    if len(shape) not in (2, 3) or not all(is_int(side) and side > 0 for side in shape):
        raise bad_parameter("image_shape", "image_patches", "(height, width) or (height, width, channels)", image_shape)
    if np.shape(patch) != (2,) or not all(is_int(side) and side > 0 for side in patch):
        raise bad_parameter("patch", "image_patches", "(height, width) of a patch, two positive ints", patch)
    height, width, channels = (*shape, 1)[:3]
    rows, columns = np.arange(height) // patch[0], np.arange(width) // patch[1]
    ids = rows[:, None] * (columns[-1] + 1) + columns
    return tuple(np.repeat(ids.ravel(), channels).tolist())


NOISES = {noise.name: noise for noise in (GaussianNoise, Masking)}
