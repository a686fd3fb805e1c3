"""Two models of the same made-up texts, and a small alignment that tests can reason about."""

from __future__ import annotations

import numpy as np

from firstk.evaluation.upgrade import UpgradeData


class Rotation:
    """Orthogonal Procrustes between centered vectors of two widths, as plainly as it can be written."""

    method_, choice_ = "rotation", None

    def fit(self, old, new):
        self.means = old.mean(axis=0), new.mean(axis=0)
        U, self.sizes, Vt = np.linalg.svd((old - self.means[0]).T @ (new - self.means[1]), full_matrices=False)
        self.U, self.V = U, Vt.T
        return self

    def encode_old(self, X, k=None):
        return ((X - self.means[0]) @ self.U)[:, :k]

    def encode_new(self, Q, k=None):
        return ((Q - self.means[1]) @ self.V)[:, :k]

    def old_to_new(self, X):
        return self.encode_old(X) @ self.V.T + self.means[1]

    def new_to_old(self, Q):
        return self.encode_new(Q) @ self.U.T + self.means[0]


def rotation(method, random_state):
    assert method in ("auto", "rotation")
    return Rotation()


def made_texts(n, m, *, seed=0, latent=12):
    """Return texts, and queries each of which is about one of the first texts."""
    rng = np.random.default_rng(seed)
    texts = rng.normal(size=(n, latent))
    queries = texts[:m] + 0.25 * rng.normal(size=(m, latent))
    return texts, queries


def made_upgrade(n=600, m=150, *, pairs=None, old_noise=0.3, new_noise=0.1, widths=(16, 24), seed=0, **given):
    """Return the data of an upgrade: both models see the texts, through noise of their own."""
    rng = np.random.default_rng(seed + 1)
    texts, queries = made_texts(n, m, seed=seed)
    sides = []
    for width, noise in zip(widths, (old_noise, new_noise), strict=True):
        A = np.linalg.qr(rng.normal(size=(width, texts.shape[1])))[0]
        sides.append([part @ A.T + noise * rng.normal(size=(len(part), width)) for part in (texts, queries)])
    (old, queries_old), (new, queries_new) = sides
    rows = np.arange(n) if pairs is None else np.sort(rng.choice(n, pairs, replace=False))
    judged = np.column_stack([np.arange(m), np.arange(m), np.ones(m, dtype=int)])
    values = {"queries_old": queries_old, "queries_new": queries_new, "relevance": judged} | given
    return UpgradeData(old, new[rows], rows, **values)
