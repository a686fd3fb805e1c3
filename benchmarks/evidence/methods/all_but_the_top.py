"""All but the top (Mu and Viswanath 2018, with PCA as in Raunak et al. 2019): leading components are removed.

Remove the mean and the first components, take principal components of the rest.
"""

from __future__ import annotations

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method, linear, principal_axes


def fit(part: Part, setting: int, seed: int) -> Encode:
    """Return the principal components after the first ones."""
    mean = part.X.mean(axis=0)
    return linear(principal_axes(part.X, mean)[1][setting:], mean)


METHOD = Method("all but the top", fit, settings=(1, 2, 3, 5))
