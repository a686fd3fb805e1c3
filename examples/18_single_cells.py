"""
Single cells: from one ``obsm`` to another
==========================================

Single-cell data come as AnnData: cells with a matrix of coordinates in ``obsm``, such as principal components of gene
counts, and annotations in ``obs``. An encoder takes one entry of ``obsm`` and gives another, whose first k columns are
the best k for telling the annotated types apart. The cells here are drawn; a real ``adata`` has the same attributes.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from firstk import PrefixEncoder
from firstk.metrics import nearest_neighbor_accuracy

# %%
# Counts of 500 genes in 3,000 cells of eight types. Types differ in a few genes that are expressed weakly; a program
# that all types share, such as the cell cycle, varies more.
rng = np.random.default_rng(0)
types = rng.integers(0, 8, 3000)
markers = np.where(rng.random((8, 500)) < 0.04, rng.normal(0, 1.2, (8, 500)), 0)
programs = rng.normal(size=(3000, 12)) @ rng.normal(0, 0.12, (12, 500))
counts = rng.poisson(np.exp(-1 + markers[types] + programs))
logged = np.log1p(1e3 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
adata = SimpleNamespace(obs={"cell_type": types}, obsm={"X_pca": PCA(50, random_state=0).fit_transform(logged)})

# %%
# Two thirds of the cells are annotated; the encoder learns from them and encodes all.
known = np.arange(3000) < 2000
encoder = PrefixEncoder(7, objective="fisher").fit(adata.obsm["X_pca"][known], adata.obs["cell_type"][known])
adata.obsm["X_firstk"] = encoder.transform(adata.obsm["X_pca"])
print(adata.obsm["X_firstk"].shape)

# %%
# The type of the nearest annotated cell, for cells that were not annotated, in the first k columns of either.
fig, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
for name, label in (("X_pca", "principal components"), ("X_firstk", "first k")):
    Z, y = adata.obsm[name], adata.obs["cell_type"]
    accuracy = nearest_neighbor_accuracy(Z[known], y[known], Z[~known], y[~known])
    ax.plot(np.arange(1, len(accuracy) + 1), accuracy, label=label)
    print(f"{name:8} k = 7: {accuracy[6]:.2f}, all {len(accuracy)}: {accuracy[-1]:.2f}")
ax.set(xlabel="k", ylabel="accuracy of the nearest cell")
ax.legend()
