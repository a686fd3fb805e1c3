"""
Upgrading a model
=================

The new model is better, and the store is full of old vectors. Stay, translate the old vectors, or embed everything
again? From texts that both have embedded, ``PrefixAlignment`` translates; what that is worth is measured here. It needs
the Banking77 embeddings of two models in the folder FIRSTK_DATA.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixAlignment
from firstk_papers.datasets import data_folder

folder = data_folder() / "banking77"
files = [folder / f"banking77_{name}.npz" for name in ("potion", "mpnet", "minilm")]
if all(file.is_file() for file in files):
    old, new = ({part: np.load(f)[part].astype(np.float32) for part in ("X_train", "X_test")} for f in files[:2])
    labels = {part: np.load(files[2])[part] for part in ("y_train", "y_test")}
    rows = np.random.default_rng(0).choice(len(old["X_train"]), 3000, replace=False)
    alignment = PrefixAlignment(method="ridge").fit(old["X_train"][rows], new["X_train"][rows])

    def accuracy(stored, asked):
        stored, asked = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (stored, asked))
        return np.mean(labels["y_train"][(asked @ stored.T).argmax(axis=1)] == labels["y_test"])

    scores = {
        "stay: old queries, old vectors": accuracy(old["X_train"], old["X_test"]),
        "old vectors, translated": accuracy(alignment.old_to_new(old["X_train"]), new["X_test"]),
        "embed everything again": accuracy(new["X_train"], new["X_test"]),
    }
    fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
    bars = ax.barh(list(scores), list(scores.values()))
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set(xlabel="1-NN accuracy on Banking77", xlim=(0.8, 0.96))
else:
    print("Skipped: the Banking77 embeddings of two models are not in the folder FIRSTK_DATA (see the page on data).")

# %%
# ``firstk align old.parquet new.parquet`` does this on your own files and queries, with intervals and a verdict
# (:doc:`/upgrading`).
