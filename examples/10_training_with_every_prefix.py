"""
Training with every prefix
==========================

Matryoshka learning trains a list of lengths. The losses of firstk take every prefix in one pass, so no list has to be
chosen. A list can be a little ahead at its own lengths, and is behind between them. This example needs torch.
"""

import matplotlib.pyplot as plt

from firstk import PrefixEncoder, SparsePrefix
from firstk.data import load_banking

bank = load_banking()
orderings = {"every prefix": "full_prefix", "a list: 4, 16, 64": SparsePrefix((4, 16, 64))}
ks = (2, 4, 6, 8, 16, 32)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, ordering in orderings.items():
    enc = PrefixEncoder(64, objective="classification", ordering=ordering, random_state=0)
    enc.fit(bank.X_train, bank.y_train)
    curve = enc.curve(bank.X_test, bank.y_test, reference=(bank.X_train, bank.y_train), metric="1nn_accuracy")
    ax.plot(curve.k, curve.score, label=name)
    print(f"{name:18}", ", ".join(f"{curve.at(k):.3f} at {k}" for k in ks))
ax.set(xscale="log", xlabel="k, numbers kept", ylabel="1-NN accuracy")
ax.set_xticks(ks, map(str, ks))
ax.legend()

# %%
# In a model of your own: ``firstk.losses`` (:doc:`/kernels`), or ``FullPrefixLoss`` in place of ``MatryoshkaLoss``
# (:doc:`/sentence-transformers`).
