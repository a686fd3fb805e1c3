"""
Will my model survive binary?
=============================

One bit a number is a 32nd of the bytes. Whether that, four bits, or fewer numbers in more bits is the better use of the
same bytes depends on the vectors: score all of them, next to the raw vectors, before you store any.
"""

import matplotlib.pyplot as plt

from firstk import PrefixEncoder, Rows, evaluate
from firstk.data import load_banking

bank = load_banking()
enc = PrefixEncoder(64, objective="error_bound").fit(bank.X_train, bank.y_train)
data = Rows(bank.X_test, bank.y_test, reference=Rows(bank.X_train, bank.y_train))
table = evaluate(enc, data, ks=[4, 8, 12, 16, 24, 32, 48, 64], sizes=(), baselines=False)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for precision in ("float32", "int8", "int4", "binary"):
    points = [p for p in table.own if p.precision == precision]
    ax.plot(
        [p.bytes for p in points], [p.score for p in points], marker="o", markersize=4, label=f"firstk, {precision}"
    )
raw = {p.precision: p for p in table.points if p.code == "raw vectors" and p.queries == "float32"}
for name in ("int4", "binary"):
    ax.plot(raw[name].bytes, raw[name].score, marker="x", color="black", linestyle="none")
    ax.annotate(f"all 384, {name}", (raw[name].bytes, raw[name].score), xytext=(-6, -14), textcoords="offset points")
ax.axhline(table.input_score, color="grey", linewidth=0.8)
ax.set(xscale="log", xlabel="bytes per vector (1,536 uncut)", ylabel="1-NN accuracy", ylim=(0.4, 0.95))
ax.set_xticks([2, 4, 8, 16, 32, 64, 128, 256], ["2", "4", "8", "16", "32", "64", "128", "256"])
ax.legend()

# %%
print(f"raw vectors, float32: {table.input_score:.3f} in 1,536 bytes; one bit each: {raw['binary'].score:.3f} in 48")
for point in table.own:
    if point.bytes == 8:
        print(f"{point}: {point.score:.3f} in 8 bytes")

# %%
# Bits of the raw vectors survive here, but fewer numbers in four bits each do the same in a sixth of the bytes.
# :doc:`/how-many-bytes` compares with the quantizers of other libraries.
