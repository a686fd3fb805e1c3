"""
Do two seeds find the same axes?
================================

Five autoencoders are trained from random starts, with every prefix in the loss and with the full width alone, and left
as learned. Full prefix ends in one basis. The unordered loss ends in one subspace, in another basis for each seed.
"""

from itertools import combinations

import matplotlib.pyplot as plt

from firstk import FullPrefix, Gradient, PrefixEncoder, Unordered
from firstk.data import load_digits
from firstk.metrics import same_axes

digits = load_digits()
orderings = {"full prefix": FullPrefix("uniform"), "unordered": Unordered()}
solver = Gradient(canonical=False)  # the canonical form would sort the unordered fits afterwards
fits = {
    name: [
        PrefixEncoder(12, ordering=ordering, solver=solver, init="random", random_state=seed).fit(digits.X_train)
        for seed in range(5)
    ]
    for name, ordering in orderings.items()
}

# %%
# Ten pairs of seeds each, compared on test rows.
fig, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
for ax, (name, runs) in zip(axes, fits.items(), strict=True):
    found = [same_axes(a, b, digits.X_test) for a, b in combinations(runs, 2)]
    least = min(pair.levels["axes"].value for pair in found)
    print(f"{name:12} {sorted({pair.verdict for pair in found})}, least mean correlation {least:.2f}")
    ax.imshow(found[0].correlations, vmin=0, vmax=1)
    ax.set(title=name, xlabel="coordinate, seed 1", ylabel="coordinate, seed 0")
