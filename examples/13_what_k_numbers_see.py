"""
What do k numbers see?
======================

On images a prefix can be looked at: decode the first k coordinates of a digit. The order is by what is left to rebuild,
so the picture sharpens with every coordinate.
"""

import matplotlib.pyplot as plt

from firstk import PrefixEncoder
from firstk.data import load_digits

digits = load_digits()
enc = PrefixEncoder(objective="reconstruction").fit(digits.X_train)
ks = (1, 2, 4, 8, 16, 32)
shown = digits.X_test[:6]

fig, axes = plt.subplots(len(shown), len(ks) + 1, figsize=(7, 6), layout="constrained")
for row, image in zip(axes, shown, strict=True):
    for ax, k in zip(row, ks, strict=False):
        ax.imshow(
            enc[:k].inverse_transform(enc.transform(image[None], k=k)).reshape(8, 8), cmap="gray_r", vmin=0, vmax=1
        )
    row[-1].imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
for ax, title in zip(axes[0], [*(f"k = {k}" for k in ks), "all 64"], strict=True):
    ax.set_title(title, fontsize=9)
for ax in axes.ravel():
    ax.set_axis_off()

# %%
curve = enc.curve(digits.X_test)
print({k: round(curve.at(k), 3) for k in ks}, "of the variance of test digits")
