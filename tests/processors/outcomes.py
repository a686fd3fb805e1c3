"""Fit and decide on up to four data sets, and write what came out: run once for each kind of processor.

Decisions (ranks, settings left to "auto", recommended lengths and precisions, neighbor lists) must be the same
everywhere; numbers must agree as far as the gaps in the spectrum allow. `compare.py` says what that means.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from firstk import Fisher, PrefixEncoder, Rows, Similarity, evaluate
from firstk.data import load_digits
from firstk.metrics import nearest_neighbors
from firstk.quality.choice import Limits, choose
from firstk_papers.datasets import load_banking77, two_blocks


def low_rank(seed: int = 5, n: int = 400, p: int = 60):
    """Rows of rank 20 with copies, an offset and three classes: ranks and ties are known."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    # Of whole numbers, so that the rows are the same to the last bit, whatever makes the product.
    X = rng.integers(-3, 4, (n, 20)) @ rng.integers(-3, 4, (20, p)) + rng.integers(-9, 9, (3, p))[y] + 100
    X[n // 2 : n // 2 + 50] = X[:50]
    return X.astype(np.float64), y


def data_sets(folder, rows):
    blocks = two_blocks(random_state=0)
    every = len(blocks.X) // rows  # its rows are in the order of their classes
    yield "two_blocks", blocks.X[::every], blocks.y[::every]
    yield "low_rank", *low_rank()
    if folder:
        digits = load_digits()
        yield "digits", np.vstack([digits.X_train, digits.X_test]), np.concatenate([digits.y_train, digits.y_test])
        banking = load_banking77(folder)
        yield "banking77", banking.X_train[:rows], banking.y_train[:rows]


def encoders(X):
    d = min(64, X.shape[1])
    yield "reconstruction", PrefixEncoder(None)
    yield "fisher", PrefixEncoder(None, objective="fisher")
    yield "fisher auto", PrefixEncoder(None, objective=Fisher(shrinkage="auto"))
    yield "neighbors auto", PrefixEncoder(d, objective=Similarity(shrinkage="auto"))
    yield "dot products", PrefixEncoder(d, objective=Similarity(keep="dot_products"))


def recommended(encoder, data):
    """Return in words what is chosen, and what is advised, for shares of the raw and of the best score."""
    table = evaluate(encoder, data, metric="1nn_accuracy")
    advice = [
        choose(table, Limits(keep=keep, relative_to=whole))
        for whole in ("input", "best")
        for keep in (0.8, 0.9, 0.95, 0.99)
    ]
    return np.array([[str(one and one.point) for one in (each.own, each.advised)] for each in advice])


def main(out: Path, folder: str | None = None) -> None:
    """Write all outcomes to `out`; with the real data sets in `folder`, three thousand rows of each set."""
    most, held_out = (3000, 600) if folder else (600, 150)
    arrays = {}
    for name, X, y in data_sets(folder, most):
        for kind in (np.float64, np.float32):
            rows = X.astype(kind)
            order = np.random.default_rng(0).permutation(len(rows))
            held, kept = np.split(order, [min(held_out, len(rows) // 4)])
            key = f"{name}|{kind.__name__}"
            arrays[f"{key}|raw|decision:neighbors"] = nearest_neighbors(rows[kept], rows[held], 10)
            for label, enc in encoders(rows):
                if label.startswith("fisher") and name == "banking77":
                    enc.set_params(n_components=64)
                enc.fit(rows[kept], y[kept])
                stem = f"{key}|{label}"
                curve = enc.curve(rows[held], y[held], reference=(rows[kept], y[kept]), metric="1nn_accuracy")
                arrays[f"{stem}|decision:width"] = np.array([enc.n_components_])
                for whole in ("input", "best"):
                    # 0 for a share that no length keeps.
                    lengths = [k or 0 for k in curve.smallest_lengths(relative_to=whole).values()]
                    arrays[f"{stem}|decision:k of {whole}"] = np.array(lengths)
                data = Rows(rows[held], y[held], reference=Rows(rows[kept], y[kept]))
                arrays[f"{stem}|decision:recommended"] = recommended(enc.encoder_, data)
                arrays[f"{stem}|decision:shrinkage"] = np.array([getattr(enc.objective_, "shrinkage", None) or 0.0])
                arrays[f"{stem}|components"] = enc.components_.astype(np.float64)
                arrays[f"{stem}|spectrum"] = enc.spectrum_.astype(np.float64)
                arrays[f"{stem}|scores"] = np.array(curve.score)
                if kind is np.float64:
                    codes = [enc.transform(rows[part]) for part in (kept, held)]
                    arrays[f"{stem}|decision:neighbors of codes"] = nearest_neighbors(*codes, 10)
    np.savez(out, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
