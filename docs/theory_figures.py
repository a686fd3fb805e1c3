"""Draw the pictures of docs/theory.md: ``python docs/make_figures.py symmetry perception``."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from firstk import FullPrefix, Gradient, PrefixEncoder, Unordered
from firstk.data import load_banking, load_digits
from firstk.metrics import first_k_against_best_k, same_axes

DRAWS = 20


def draw_symmetry(path: Path) -> None:
    """Draw what a rotation does to the loss of two coordinates, and to what every prefix of sixteen keeps."""
    digits = load_digits().X_train
    X = digits - digits.mean(axis=0)
    total = np.square(X).sum()
    axes16 = PrefixEncoder(16, objective="reconstruction").fit(X).components_

    def left_out(basis: np.ndarray) -> np.ndarray:
        return 1 - np.cumsum(np.square(X @ basis.T).sum(axis=0)) / total

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    degrees = np.arange(0, 181, 3)
    losses = np.array([left_out(rotation(angle) @ axes16[:2]) for angle in np.radians(degrees)])
    mean = losses.mean(axis=1)
    left.plot(degrees, mean - mean.min(), linewidth=2.4, label="full prefix: mean over k = 1 and 2")
    left.plot(degrees, losses[:, 1] - losses[:, 1].min(), "--", linewidth=1.6, label="k = 2 alone")
    left.set(xlabel="rotation of the first two principal axes, degrees", ylabel="loss above the least, of the variance")
    left.set_xticks([0, 45, 90, 135, 180])
    left.set_ylim(top=1.4 * np.ptp(mean))  # room for the legend
    left.set_title("A rotation costs only where prefixes count", loc="left", fontsize=11)

    every = np.arange(1, 17)
    rng = np.random.default_rng(0)
    mixed = [left_out(orthogonal(16, rng) @ axes16) for _ in range(DRAWS)]
    listed = [left_out(blocks((4, 12), rng) @ axes16) for _ in range(DRAWS)]
    right.plot(every, 1 - left_out(axes16), linewidth=2.4, label="full prefix")
    right.plot(every, 1 - np.mean(listed, axis=0), "-.", linewidth=1.6, label="list of lengths: 4, 16")
    right.plot(every, 1 - np.mean(mixed, axis=0), "--", linewidth=1.6, label="unordered")
    right.set(xlabel="coordinates kept, of 16", ylabel="share of variance kept")
    right.set_xticks([1, 4, 8, 12, 16])
    right.set_title("Codes of equal loss at their own lengths", loc="left", fontsize=11)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9, loc="upper left")
    figure.savefig(path, dpi=130)


def draw_same_axes(path: Path) -> None:
    """Draw correlations of the coordinates of two seeds, and what the first k lose to the best k by a probe."""
    digits = load_digits()
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), layout="constrained")
    solver = Gradient(canonical=False)
    for ax, (name, ordering) in zip(
        axes, {"full prefix": FullPrefix("uniform"), "unordered": Unordered()}.items(), strict=False
    ):
        a, b = (
            PrefixEncoder(12, ordering=ordering, solver=solver, init="random", random_state=s).fit(digits.X_train)
            for s in (0, 1)
        )
        ax.imshow(same_axes(a, b, digits.X_test).correlations, vmin=0, vmax=1)
        ax.set(xlabel="coordinate, seed 1", ylabel="coordinate, seed 0")
        ax.set_title(name, loc="left", fontsize=11)
        train, test = a.transform(digits.X_train), a.transform(digits.X_test)
        scores = first_k_against_best_k(train, digits.y_train, test, digits.y_test)
        axes[2].plot(range(1, 13), scores["probe"] - scores["first"], linewidth=2, label=name)
    axes[2].set(xlabel="k", ylabel="accuracy lost")
    axes[2].set_title("First k against best k, by probe", loc="left", fontsize=11)
    axes[2].grid(alpha=0.3)
    axes[2].legend(fontsize=9)
    figure.savefig(path, dpi=130)


def rotation(angle: float) -> np.ndarray:
    """Return the rotation of the plane by an angle."""
    return np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def orthogonal(d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw an orthogonal matrix uniformly."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diag(R))


def blocks(sizes: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw an orthogonal matrix that mixes coordinates inside blocks only."""
    Q, start = np.zeros((sum(sizes), sum(sizes))), 0
    for size in sizes:
        Q[start : start + size, start : start + size] = orthogonal(size, rng)
        start += size
    return Q


def draw_perception(path: Path) -> None:
    """Draw variance and accuracy against k: axes that keep the most variance, and axes that separate classes."""
    bank = load_banking()
    X, y, X_test, y_test = bank.X_train, bank.y_train, bank.X_test, bank.y_test
    encoders = {
        "reconstruction (PCA)": PrefixEncoder(64, objective="reconstruction").fit(X),
        "classes (error_bound)": PrefixEncoder(64, objective="error_bound").fit(X, y),
    }
    centred = X_test - X.mean(axis=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    every = range(1, 65)
    for (name, enc), style in zip(encoders.items(), ("--", "-"), strict=True):
        basis = np.linalg.qr(enc.components_.T)[0]
        kept = np.cumsum(np.square(centred @ basis).sum(axis=0)) / np.square(centred).sum()
        curve = enc.curve(X_test, y_test, reference=(X, y), metric="1nn_accuracy")
        left.plot(every, kept, style, linewidth=2, label=name)
        right.plot(every, [curve.at(k) for k in every], style, linewidth=2, label=name)
        print(f"{name:24} k = 8: variance {kept[7]:.2f}, 1-NN accuracy {curve.at(8):.3f}")
    left.set(ylabel="share of variance kept", ylim=(0, 1))
    right.set(ylabel="1-NN accuracy", ylim=(0, 1))
    left.set_title("What reconstruction needs", loc="left", fontsize=11)
    right.set_title("What perception needs", loc="left", fontsize=11)
    for axes in (left, right):
        axes.set(xscale="log", xlabel="coordinates kept, of 384", xlim=(1, 64))
        axes.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
        axes.grid(alpha=0.3)
        axes.legend(fontsize=9, loc="upper left" if axes is left else "lower right")
    figure.savefig(path, dpi=130)
