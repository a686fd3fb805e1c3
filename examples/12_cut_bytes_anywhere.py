"""
Cut bytes anywhere
==================

Embedded bits order the bits of all numbers by what they are worth. One stored string can be cut after any byte: keep 16
bytes in memory and 48 on disk, of the same code, without encoding again.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import CodeIndex, PrefixEncoder
from firstk.data import load_banking

bank = load_banking()
enc = PrefixEncoder(objective="reconstruction").fit(bank.X_train)
index = CodeIndex.fit(bank.X_train, encoder=enc, bytes=48, metric="cosine")
unit = [A / np.linalg.norm(A, axis=1, keepdims=True) for A in (bank.X_test, bank.X_train)]
truth = np.argsort(-(unit[0] @ unit[1].T), axis=1)[:, :10]

sizes, recall = (4, 8, 12, 16, 24, 32, 40, 48), []
for size in sizes:
    found = index.cut(size).search(bank.X_test, 10)
    recall.append(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.ids, truth, strict=True)]))

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(sizes, recall, marker="o")
ax.set(xlabel="bytes per vector, cut from one string of 48", ylabel="recall@10 of exact neighbors", xticks=sizes)

# %%
for size, value in zip(sizes, recall, strict=True):
    print(f"{size:2} bytes instead of 1,536: recall@10 {value:.3f}")
