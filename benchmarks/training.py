"""Data, peers and quality of the rows of `benchmarks.waiting` that train: classification with default settings.

    python -m benchmarks.training     1-NN curves of the defaults on rows held out, beside long training

The peer in time is the plain loop of MRL in torch: a linear encoder, one head for each of the lengths 2, 4, ..., d, the
sum of their cross-entropies, AdamW, with the epochs and the batch size of the fit. It has no moments, no start and no
canonical form to compute. Settings were chosen on rows held out of Banking77's training split.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.waiting import rows
from firstk import Gradient, PrefixEncoder
from firstk.objectives import Classification
from firstk_papers.datasets import MissingDataError

ROWS, HELD_OUT, LENGTHS = 50_000, 8_000, (4, 8, 16, 32)
# As before the number of epochs depended on the number of rows.
LONG = Gradient(epochs=25, learning_rate=3e-2)
# 1-NN may differ by this much from long training on the made rows.
TOLERANCE = 0.003


def mrl_loop(X: np.ndarray, y: np.ndarray, d: int, epochs: int, batch: int) -> None:
    """Train a linear encoder and the heads of lengths 2, 4, ..., d, as one would write it in torch."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    lengths = [2**i for i in range(1, d.bit_length()) if 2**i <= d]
    data, labels = torch.from_numpy(X), torch.from_numpy(y)
    encoder = nn.Linear(X.shape[1], d)
    heads = nn.ModuleList(nn.Linear(k, int(y.max()) + 1) for k in lengths)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *heads.parameters()], lr=1e-3)
    for _ in range(epochs):
        order = torch.randperm(len(data))
        for start in range(0, len(data) - batch + 1, batch):
            part = order[start : start + batch]
            z = encoder(data[part])
            losses = [F.cross_entropy(head(z[:, :k]), labels[part]) for k, head in zip(lengths, heads, strict=True)]
            optimizer.zero_grad()
            (sum(losses) / len(losses)).backward()  # type: ignore[union-attr]
            optimizer.step()


def epochs_of(n: int) -> int:
    """Return the default number of epochs of classification on so many rows."""
    from firstk.solvers.gradient.losses.cross_entropy import CrossEntropy

    per_epoch = n // CrossEntropy.batch_size
    return min(CrossEntropy.epochs, max(CrossEntropy.fewest_epochs, -(-CrossEntropy.enough_steps // per_epoch)))


def banking() -> tuple[np.ndarray, np.ndarray]:
    """Return the training split of Banking77, with classes as integers."""
    from firstk_papers.datasets import load_banking77

    sets = load_banking77()
    return sets.X_train, np.unique(sets.y_train, return_inverse=True)[1]


def curve(
    solver: Gradient | str, seed: int, X: np.ndarray, y: np.ndarray, held: np.ndarray, d: int | None
) -> list[float]:
    """Return 1-NN accuracy (cosine) of held-out rows at each length."""
    train = np.setdiff1d(np.arange(len(X)), held)
    encoder = PrefixEncoder(d, objective=Classification(), solver=solver, random_state=seed).fit(X[train], y[train])
    stored, asked = (encoder.transform(X[part]).astype(np.float32) for part in (train[:20_000], held))
    found = []
    for k in LENGTHS:
        a, b = (part[:, :k] / np.linalg.norm(part[:, :k], axis=1, keepdims=True) for part in (stored, asked))
        nearest = np.concatenate([(b[i : i + 500] @ a.T).argmax(1) for i in range(0, len(b), 500)])
        found.append(float(np.mean(y[train[:20_000]][nearest] == y[held])))
    return found


def quality(seeds: int) -> bool:
    """Print the curves of the defaults beside those of long training; True where they agree."""
    X, y = rows()
    sets = {"made rows": (X[: ROWS + HELD_OUT], y[: ROWS + HELD_OUT], np.arange(ROWS, ROWS + HELD_OUT), 64, 1)}
    try:
        X, y = banking()
        held = np.random.default_rng(7).permutation(len(X))[:2000]
        sets["Banking77, 2,000 training rows held out"] = (X, y, held, None, seeds)
    except MissingDataError:
        print("Banking77 skipped: the data are not here")
    met = True
    for name, (X, y, held, d, count) in sets.items():
        ours, long = (np.array([curve(s, seed, X, y, held, d) for seed in range(count)]) for s in ("auto", LONG))
        spread = np.full(len(LENGTHS), TOLERANCE)
        if count > 1:  # two standard errors of the difference of the means
            error = np.hypot(ours.std(0, ddof=1), long.std(0, ddof=1)) / count**0.5
            spread = np.maximum(spread, 2 * error)
        kept = bool(np.all(ours.mean(0) >= long.mean(0) - spread))
        met &= kept
        print(f"\n{name}, 1-NN at {LENGTHS}, {count} seed(s)")
        for label, part in (("defaults", ours), ("25 epochs at 0.03", long)):
            print(f"  {label:<20}" + "".join(f"{value:8.4f}" for value in part.mean(0)))
        print(f"  within {spread.round(4).tolist()}: {'met' if kept else 'NOT MET'}", flush=True)
    return met


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="seeds on Banking77")
    raise SystemExit(0 if quality(parser.parse_args().seeds) else 1)
