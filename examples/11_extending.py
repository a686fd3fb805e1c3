"""
Extending firstk
================

An objective of your own is a class of twenty lines: two matrices made from moments of the data. This one knows how
noisy each column is, and orders directions by signal over noise. It streams, is cut, evaluated and saved like any
other.
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixEncoder
from firstk.contracts import Conventions, Pencil
from firstk.objectives import ClosedFormObjective


@dataclass(frozen=True)
class SignalToNoise(ClosedFormObjective):
    """Largest variance over noise variance: pencil (St, diag(noise))."""

    noise: tuple[float, ...]

    name: ClassVar[str] = "signal_to_noise"
    supervision: ClassVar[str] = "rows"
    conventions: ClassVar[Conventions] = Conventions(
        scaling="metric", centring="mean", normalized=False, omega="uniform", metric="explained_variance"
    )

    @property
    def rotation_free(self):
        return False  # the noise belongs to columns

    def pencil(self, statistics):
        return Pencil(M=statistics.moments.St, N=np.diag(self.noise))

    def decoder(self, statistics, components):
        return np.diag(self.noise) @ components.T


rng = np.random.default_rng(0)
noise = np.linspace(0.1, 6.0, 40)
mixing = rng.normal(size=(3, 40))
hidden = rng.normal(size=(800, 3))
X = hidden @ mixing + rng.normal(size=(800, 40)) * np.sqrt(noise)


def explained(enc):
    """Share of the hidden signal that the first k coordinates tell, by least squares on other rows."""
    shares = []
    for k in range(1, 9):
        Z = enc.transform(X, k=k)
        W = np.linalg.lstsq(Z[:400], hidden[:400], rcond=None)[0]
        shares.append(1 - np.sum((Z[400:] @ W - hidden[400:]) ** 2) / np.sum(hidden[400:] ** 2))
    return shares


fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for name, objective in (("signal_to_noise, our own", SignalToNoise(tuple(noise))), ("PCA", "reconstruction")):
    enc = PrefixEncoder(8, objective=objective).fit(X[:400])
    ax.plot(range(1, 9), explained(enc), marker="o", label=name)
ax.set(xlabel="k, coordinates kept", ylabel="share of the signal")
ax.legend()

# %%
# :doc:`/extending` has orderings, saving, and the suite of tests that an extension can run.
