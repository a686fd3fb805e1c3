"""
More rows than memory
=====================

A closed form needs moments of the data, and moments add up: over batches, processes and machines. The encoder is the
same, for any partition of the rows. Here it is fitted in parts, and its axes are compared with those of one fit.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixEncoder
from firstk.data import load_banking

bank = load_banking()
whole = PrefixEncoder(32, objective="fisher").fit(bank.X_train, bank.y_train)
parts = np.array_split(np.random.default_rng(0).permutation(len(bank.X_train)), 6)
workers = [PrefixEncoder(32, objective="fisher") for _ in range(2)]
for i, rows in enumerate(parts):
    workers[i % 2].partial_fit(bank.X_train[rows], bank.y_train[rows])
merged = workers[0].merge(workers[1])

a, b = (enc.components_ / np.linalg.norm(enc.components_, axis=1, keepdims=True) for enc in (whole, merged))
apart = 1 - np.abs(np.sum(a * b, axis=1))
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.semilogy(np.arange(1, 33), np.maximum(apart, 1e-17), "o", markersize=4)
ax.set(xlabel="axis", ylabel="1 - |cosine|, one fit and six parts", ylim=(1e-17, 1))

# %%
print(f"largest difference: 1 - |cosine| = {apart.max():.0e}")

# %%
# ``firstk fit`` reads files and folders of shards this way, in bounded memory (:doc:`/scale`).
