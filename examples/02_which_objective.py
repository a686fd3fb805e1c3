"""
Which objective?
================

What is a good short vector? One that rebuilds the long one (PCA), one that keeps its neighbors, or one that separates
your classes? The same 8 numbers differ by a lot. ``firstk diagnose`` tries all of them on held-out rows of your file.
"""

import matplotlib.pyplot as plt

from firstk import Fisher, PrefixEncoder, Similarity
from firstk.data import load_banking
from firstk.metrics import nearest_neighbor_accuracy

bank = load_banking()
objectives = {
    "dot products": Similarity(keep="dot_products"),
    "reconstruction (PCA)": "reconstruction",
    "neighbors": "similarity",
    "fisher": "fisher",
    "fisher, shrunk": Fisher(shrinkage="auto"),
    "error_bound": "error_bound",
}
scores = {}
for name, objective in objectives.items():
    enc = PrefixEncoder(16, objective=objective).fit(bank.X_train, bank.y_train)
    codes = enc.transform(bank.X_train), enc.transform(bank.X_test)
    scores[name] = nearest_neighbor_accuracy(codes[0], bank.y_train, codes[1], bank.y_test, ks=[8, 16])

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
for i, (at_8, at_16) in enumerate(scores.values()):
    ax.barh(i, at_16, color="C0", alpha=0.35)
    ax.barh(i, at_8, color="C0")
ax.set_yticks(range(len(scores)), scores)
ax.set(xlabel="1-NN accuracy with 8 numbers (dark) and 16 (light)", xlim=(0.5, 1))

# %%
for name, (at_8, at_16) in scores.items():
    print(f"{name:22} {at_8:.3f} {at_16:.3f}")

# %%
# With labels, use them. Without, ``similarity`` keeps neighbors, and plain PCA is a fair start.
