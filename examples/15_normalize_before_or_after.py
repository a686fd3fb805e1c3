"""
Normalize before or after the cut?
==================================

After. A unit vector that is cut has a length of its own, and inner products of such rows favour long ones. Compare by
cosine, or normalize the short vectors again; ``transform(X, k)`` gives codes to compare by cosine.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk.data import load_banking

bank = load_banking()
ks = [8, 16, 32, 64, 128, 256, 384]


def accuracy(k, again):
    stored, asked = bank.X_train[:, :k], bank.X_test[:, :k]
    if again:
        stored, asked = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (stored, asked))
    return np.mean(bank.y_train[(asked @ stored.T).argmax(axis=1)] == bank.y_test)


after, before = ([accuracy(k, again) for k in ks] for again in (True, False))
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(ks, after, marker="o", label="cut, then normalized")
ax.plot(ks, before, marker="o", label="normalized, then cut")
ax.set(xscale="log", xlabel="k, numbers kept", ylabel="1-NN accuracy, inner product")
ax.set_xticks(ks, map(str, ks))
ax.legend()

# %%
for k, a, b in zip(ks, after, before, strict=True):
    print(f"k = {k:3}: {a:.3f} normalized again, {b:.3f} not")
