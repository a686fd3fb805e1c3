"""
How dense a list of lengths?
============================

A Matryoshka model is good at the lengths of its list. Where will you cut? If that is not known, every prefix costs no
more. The closed form of firstk has no list: here, what is lost between the entries of one.
"""

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixEncoder
from firstk.data import load_banking
from firstk.metrics import nearest_neighbor_accuracy

bank = load_banking()
enc = PrefixEncoder(64, objective="error_bound").fit(bank.X_train, bank.y_train)
Z, Q = enc.transform(bank.X_train), enc.transform(bank.X_test)
ks = np.arange(1, 65)


def shuffled_within(Z, ends, seed=0):
    """Turn the coordinates between two entries of a list: at its entries, all stays as it was."""
    rng, starts = np.random.default_rng(seed), (0, *ends[:-1])
    turned = [Z[:, a:b] @ np.linalg.qr(rng.normal(size=(b - a, b - a)))[0] for a, b in zip(starts, ends, strict=True)]
    return np.hstack(turned)


fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, ends in (("every length", tuple(range(1, 65))), ("list 4, 16, 64", (4, 16, 64)), ("list 64", (64,))):
    scores = nearest_neighbor_accuracy(
        shuffled_within(Z, ends), bank.y_train, shuffled_within(Q, ends), bank.y_test, ks=ks
    )
    ax.plot(ks, scores, label=name)
    print(f"{name:15}", {int(k): round(float(scores[k - 1]), 3) for k in (4, 8, 12, 16, 32, 64)})
ax.set(xscale="log", xlabel="k, numbers kept", ylabel="1-NN accuracy")
ax.legend()

# %%
# A loss over a list cannot tell apart the coordinates between two of its entries: any rotation of them costs it
# nothing. Training chooses one of these rotations by chance, as is done here on purpose.
