"""
How many dimensions do I need?
==============================

Fit once, and read it off a curve: the score of every prefix, next to that of all numbers. Here 384 numbers of a
sentence embedding have to find a question of the same intent (77 of them).
"""

import matplotlib.pyplot as plt

from firstk import PrefixEncoder
from firstk.data import load_banking

bank = load_banking()
X, y, X_test, y_test = bank.X_train, bank.y_train, bank.X_test, bank.y_test

enc = PrefixEncoder(64, objective="error_bound").fit(X, y)
pca = PrefixEncoder(64, objective="reconstruction").fit(X)
curve = enc.curve(X_test, y_test, reference=(X, y), confidence=0.95)
of_pca = pca.curve(X_test, y_test, reference=(X, y), metric="1nn_accuracy")

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(curve.k, curve.score, label="firstk, error_bound")
ax.plot(of_pca.k, of_pca.score, label="PCA")
ax.axhline(curve.input_score, color="grey", linewidth=0.8, label="all 384 numbers")
ax.set(xscale="log", xlabel="k, numbers kept", ylabel="1-NN accuracy")
ax.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
ax.legend()

# %%
# The smallest k for a share of the score of all numbers. A share below that of the raw vectors is often enough:
for share in (0.9, 0.95, 0.99):
    print(f"{share:.0%}: k = {curve.smallest(keep=share, relative_to='input')}")

# %%
# The curve was evaluated on test questions, and k was read off the same questions: that flatters k a little. The
# command ``firstk fit`` holds out rows, takes that optimism off, and says how sure it is (:doc:`/choosing-k`).
