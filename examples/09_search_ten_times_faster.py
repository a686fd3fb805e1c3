"""
Search ten times faster
=======================

Most rows can be excluded by their first few numbers. A funnel scans a short prefix of all rows, and finishes a
shortlist at full width; it chooses both for the recall that you ask for, and counts the work of every search.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import FunnelIndex, PrefixEncoder
from firstk.data import load_banking

bank = load_banking()
enc = PrefixEncoder(objective="similarity").fit(bank.X_train)
rows, queries = enc.encode_document(bank.X_train), enc.encode_query(bank.X_test)
exact = FunnelIndex.fit(rows, metric="cosine", recall=0.99).search(queries, exact=True).ids

work, recall = [], []
for wanted in (0.8, 0.9, 0.95, 0.99):
    found = FunnelIndex.fit(rows, metric="cosine", recall=wanted).search(queries)
    work.append(found.fraction)
    recall.append(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.ids, exact, strict=True)]))

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(work, recall, marker="o")
ax.set(xlabel="multiply-adds, as a share of brute force", ylabel="recall@10", xlim=(0, None))

# %%
for share, value in zip(work, recall, strict=True):
    print(f"recall {value:.3f} with {share:.1%} of the work: {1 / share:.0f} times less")

# %%
# Work is counted, not timed: 3,000 rows fit into a cache. :doc:`/benchmarks` has times on large stores beside faiss.
