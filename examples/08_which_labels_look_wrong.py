"""
Which labels look wrong?
========================

Rows whose neighbors agree with each other and not with the label are the first to look at. In a short code that was
learned from the labels, neighbors are surer than among raw vectors. Here one label in twenty is made wrong on purpose,
so that we know which.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixEncoder
from firstk.data import load_banking

bank = load_banking()
rng = np.random.default_rng(0)
y = bank.y_train.copy()
wrong = rng.choice(len(y), len(y) // 20, replace=False)
y[wrong] = (y[wrong] + rng.integers(1, 77, len(wrong))) % 77

# Cross-fitted: the code that a row is looked at in was learned from other rows.
fold = rng.integers(0, 5, len(y))
suspicion = np.empty(len(y))
for i in range(5):
    here, rest = fold == i, fold != i
    enc = PrefixEncoder(32, objective="error_bound").fit(bank.X_train[rest], y[rest])
    stored, asked = (
        Z / np.linalg.norm(Z, axis=1, keepdims=True)
        for Z in map(enc.transform, (bank.X_train[rest], bank.X_train[here]))
    )
    nearest = np.argsort(-(asked @ stored.T), axis=1)[:, :10]
    suspicion[here] = np.mean(y[rest][nearest] != y[here][:, None], axis=1)

order = np.argsort(-suspicion, kind="stable")
found = np.cumsum(np.isin(order, wrong)) / len(wrong)
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(np.arange(1, len(y) + 1), found)
ax.axvline(len(wrong), color="grey", linewidth=0.8)
ax.set(xlabel="rows looked at, most suspicious first", ylabel="share of wrong labels found", xlim=(0, 900))

# %%
print(f"{len(wrong)} wrong labels; {found[len(wrong) - 1]:.0%} of them are among the {len(wrong)} most suspicious rows")
print("The first three:")
for row in order[:3]:
    print(
        f"  {bank.texts_train[row]!r} is labelled {bank.class_names[y[row]]}, was {bank.class_names[bank.y_train[row]]}"
    )

# %%
# ``firstk_papers.balestriero2024.label_noise`` estimates how many labels are wrong (:doc:`/reproductions`).
