"""
Tune frozen embeddings on 500 pairs
===================================

No labels and no training loop: 500 pairs of questions that mean the same are enough to turn stored embeddings towards
your task, by a closed form. Pairs say what is alike; vectors without pairs say where neighbors are.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixEncoder
from firstk.data import load_banking
from firstk.metrics import nearest_neighbor_accuracy

bank = load_banking()
rng = np.random.default_rng(0)
left = rng.choice(len(bank.X_train), 500, replace=False)
right = np.array([rng.choice(np.flatnonzero((bank.y_train == bank.y_train[i]) & (np.arange(2999) != i))) for i in left])

ks = [4, 8, 16, 32, 64]
tuned = PrefixEncoder(64, objective="similarity").fit_pairs(bank.X_train[left], bank.X_train[right])
untuned = PrefixEncoder(64, objective="reconstruction").fit(bank.X_train)
scores = {}
for name, enc in (("500 pairs, fit_pairs", tuned), ("PCA", untuned)):
    stored, asked = enc.transform(bank.X_train), enc.transform(bank.X_test)
    scores[name] = nearest_neighbor_accuracy(stored, bank.y_train, asked, bank.y_test, ks=ks)
raw = nearest_neighbor_accuracy(bank.X_train, bank.y_train, bank.X_test, bank.y_test, ks=[384])[0]

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in scores.items():
    ax.plot(ks, values, marker="o", label=name)
ax.axhline(raw, color="grey", linewidth=0.8, label="all 384 numbers")
ax.set(xscale="log", xlabel="k, numbers kept", ylabel="1-NN accuracy")
ax.set_xticks(ks, map(str, ks))
ax.legend()

# %%
for name, values in scores.items():
    print(f"{name:22}", " ".join(f"{value:.3f}" for value in values))
print(f"{'all 384 numbers':22} {raw:.3f}")
