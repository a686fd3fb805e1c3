"""
Can I truncate OpenAI-style embeddings?
=======================================

Models that were trained for it (Matryoshka) put more into their first numbers. Most were not: there the first k numbers
are as good as any k, and a rotation learned from your own vectors is far ahead. Compare truncation with columns drawn
at random: where the two are equal, the model has no order.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixEncoder
from firstk.data import load_banking
from firstk.metrics import nearest_neighbors, neighbor_recall

bank = load_banking()
X, Q = bank.X_train, bank.X_test
ks = [8, 16, 32, 64, 128, 256]
columns = np.random.default_rng(0).permutation(X.shape[1])
enc = PrefixEncoder(256, objective="similarity").fit(X)
pca = PrefixEncoder(256, objective="reconstruction").fit(X)
truth = nearest_neighbors(X, Q)  # the ten nearest by all numbers
recall = {
    "the first k": neighbor_recall(X, Q, truth, ks=ks),
    "k at random": neighbor_recall(X[:, columns], Q[:, columns], truth, ks=ks),
    "PCA": neighbor_recall(pca.transform(X), pca.transform(Q), truth, ks=ks),
    "firstk, similarity": neighbor_recall(enc.encode_document(X), enc.encode_query(Q), truth, ks=ks),
}

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in recall.items():
    ax.plot(ks, values, marker="o", label=name)
ax.set(xscale="log", xlabel="k, numbers kept", ylabel="recall@10 of exact neighbors")
ax.set_xticks(ks, map(str, ks))
ax.legend()

# %%
for name, values in recall.items():
    print(f"{name:20}", " ".join(f"{value:.3f}" for value in values))

# %%
# These are vectors of all-MiniLM-L6-v2, which was not trained to be cut; no vectors of a commercial service are shipped
# with firstk. Your own file answers for your own model: ``firstk diagnose vectors.parquet``.
