"""Names that users of scikit-learn's PCA and LDA look for, where they follow from what a fit holds anyway."""

from __future__ import annotations

from typing import Any

import numpy as np

from firstk.encoder.fitted import FittedEncoder
from firstk.moments.moments import Moments
from firstk.moments.statistics import Statistics


class FamiliarNames:
    """Attributes of PCA, TruncatedSVD and LDA, for "reconstruction", "dot_products" and "fisher".

    docs/coming-from-pca-or-lda.md maps them.

    An attribute that the objective does not define, or that a model has lost because it was cut, or saved without its
    moments, does not exist: ``hasattr`` says so.
    """

    encoder_: Any
    _statistics: Statistics

    def _fitted_as(self, name: str, *objectives: str) -> FittedEncoder:
        encoder: FittedEncoder = self.encoder_
        if (found := encoder.record.objective) not in objectives:
            raise AttributeError(f"{name} is defined for {', '.join(objectives)}; this objective is '{found}'.")
        return encoder

    def _moments(self, name: str) -> Moments:
        if not isinstance(moments := getattr(getattr(self, "_statistics", None), "moments", None), Moments):
            raise AttributeError(f"{name} needs the moments of the fit, which this encoder does not hold.")
        return moments

    @property
    def explained_variance_(self) -> np.ndarray:
        """Variance of each coordinate: with n - 1 in the denominator, as PCA has it, or n, as TruncatedSVD has it."""
        variances, n = self._variances("explained_variance_"), self._weight()
        return variances if self.encoder_.record.objective == "dot_products" else variances * (n / (n - 1))

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """Share of each coordinate in the variance, or in that between classes ("fisher")."""
        encoder = self._fitted_as("explained_variance_ratio_", "reconstruction", "dot_products", "fisher")
        if encoder.record.objective != "fisher":
            total = float(self._moments("explained_variance_ratio_").variances().sum())
            return self._variances("explained_variance_ratio_") / total
        if encoder.record.settings["reconstruction"] or encoder.head is None:
            raise AttributeError("explained_variance_ratio_ is defined for Fisher(reconstruction=0).")
        directions = min(len(encoder.head.offset) - 1, encoder.p)
        if encoder.pinned < directions:
            raise AttributeError(f"explained_variance_ratio_ needs all {directions} directions; here are {encoder.d}.")
        shares: np.ndarray = encoder.spectrum[:directions] / encoder.spectrum[:directions].sum()
        return shares

    @property
    def singular_values_(self) -> np.ndarray:
        """Singular values of the rows, centred by "reconstruction" and as they are by "dot_products"."""
        spectrum = self._fitted_as("singular_values_", "reconstruction", "dot_products").spectrum
        return np.sqrt(spectrum * self._weight())

    @property
    def noise_variance_(self) -> float:
        """Mean variance of the directions that are left out, as PCA has it; 0 where none is."""
        held = float(self._fitted_as("noise_variance_", "reconstruction").spectrum.sum())
        n, p = self._weight(), self.encoder_.p
        total = float(self._moments("noise_variance_").variances().sum())
        left_out = min(p, int(n)) - len(self.encoder_.spectrum)
        return max(0.0, total - held) * n / (n - 1) / left_out if left_out > 0 else 0.0

    @property
    def means_(self) -> np.ndarray:
        """Mean of each class, shape (C, p), as LDA has it."""
        self._fitted_as("means_", "fisher")
        self._moments("means_")
        moments = self._statistics.in_full_coordinates().moments
        assert isinstance(moments, Moments)
        return moments.class_means

    @property
    def priors_(self) -> np.ndarray:
        """Share of each class in the rows of the fit; weights of rows change it."""
        self._fitted_as("priors_", "fisher")
        return self._moments("priors_").class_shares

    @property
    def coef_(self) -> np.ndarray:
        """Weights of `decision_function` at full width, of shape (C, p), or (1, p) for two classes."""
        return self._linear_rule("coef_")[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Offsets of `decision_function` at full width, of shape (C,), or (1,) for two classes."""
        return self._linear_rule("intercept_")[1]

    def _variances(self, name: str) -> np.ndarray:
        """Return the variance of each coordinate, with n in the denominator."""
        encoder = self._fitted_as(name, "reconstruction", "dot_products")
        if encoder.record.objective == "reconstruction":
            return encoder.spectrum
        self._moments(name)
        moments = self._statistics.in_full_coordinates().moments
        assert isinstance(moments, Moments)
        # These codes are not centred.
        variances: np.ndarray = encoder.spectrum - np.square(encoder.components @ moments.mean)
        return variances

    def _weight(self) -> float:
        return float(self._moments("The variance of each coordinate").n)

    def _linear_rule(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        encoder = self._fitted_as(name, "fisher")
        if encoder.head is None or encoder.network is not None:
            raise AttributeError(f"{name} is defined for linear encoders with a head.")
        weight = encoder.head.weight @ encoder.components
        offset = encoder.head.offset - encoder.head.quadratic.sum(axis=1) - weight @ encoder.mean
        return (weight, offset) if len(offset) != 2 else (np.diff(weight, axis=0), np.diff(offset))
