"""CSR (Wen et al. 2025) on frozen vectors: the sparse autoencoder and CSRLoss of sentence-transformers, by bytes.

Of 4,096 features, a stored code keeps the largest ones. Each costs 12 bits for its number and 8 for its value, so that
codes are compared with others of as many bytes. Positives of the contrastive part are a row of the same class, the
other side of a pair, or, where there is neither, the row itself.
"""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.methods.training import train

FEATURES, ACTIVE, INDEX_BITS, VALUE_BITS, EPOCHS = 4096, 32, 12, 8, 8
# Scored pairs are positives from this grade on, of 0 to 5.
POSITIVE = 4.0
_TRAINED: dict[tuple[str, float, int], tuple[torch.nn.Module, float]] = {}


def active(size: int) -> int:
    """Return how many features so many bytes hold."""
    return max(1, size * 8 // (INDEX_BITS + VALUE_BITS))


def positives(part: Part, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and their positives."""
    rng, mate = np.random.default_rng(seed), np.arange(len(part.X))
    for c in [] if part.y is None else np.unique(part.y):
        members = np.flatnonzero(part.y == c)
        mate[members] = rng.permutation(members)
    left, right = part.X, part.X[mate]
    if part.pairs is not None:
        a, b, scores = part.pairs
        near = np.ones(len(a), dtype=bool) if scores is None else scores >= POSITIVE * np.max(scores) / 5
        left, right = np.concatenate([left, a[near]]), np.concatenate([right, b[near]])
    return left, right


def _trained(part: Part, gamma: float, seed: int) -> tuple[torch.nn.Module, float]:
    """Return the autoencoder, and the largest value to store."""
    from sentence_transformers.sparse_encoder import SparseEncoder
    from sentence_transformers.sparse_encoder.losses import CSRLoss
    from sentence_transformers.sparse_encoder.modules import SparseAutoEncoder

    from benchmarks.text_loss import Stored

    torch.manual_seed(seed)
    left, right = (torch.tensor(side, dtype=torch.float32) for side in positives(part, seed))
    coder = SparseAutoEncoder(left.shape[1], hidden_dim=FEATURES, k=ACTIVE)
    coder.pre_bias.data = left.mean(0)
    loss = CSRLoss(SparseEncoder(modules=[Stored(), coder], device="cpu"), gamma=gamma)

    def total(rows: torch.Tensor) -> torch.Tensor:
        parts = loss([{"embedding": left[rows]}, {"embedding": right[rows]}])
        return torch.stack(list(parts.values())).sum()

    train(coder.parameters(), len(left), total, 1e-3, EPOCHS)
    coder.eval()
    return coder, float(np.quantile(_features(coder, part.X[:1000], 1), 1 - 0.1 / FEATURES))


def _features(coder: torch.nn.Module, X: np.ndarray, k: int) -> np.ndarray:
    with torch.inference_mode():
        blocks = [
            coder({"sentence_embedding": rows}, max_active_dims=k)["sentence_embedding"]
            for rows in torch.tensor(X, dtype=torch.float32).split(1000)
        ]
    found: np.ndarray = torch.cat(blocks).numpy()
    return found


def fit(part: Part, setting: tuple[float, int], seed: int) -> Encode:
    """Train with a weight of the contrast, once for each; rows that ask have so many times the stored features."""
    gamma, more = setting
    key = (part.digest(), gamma, seed)
    if key not in _TRAINED:
        _TRAINED[key] = _trained(part, gamma, seed)
    coder, largest = _TRAINED[key]
    step = largest / (2**VALUE_BITS - 1)

    def encode(X: np.ndarray, size: int, side: str) -> np.ndarray:
        if side != "document":
            return _features(coder, X, more * active(size))
        return np.minimum(np.rint(_features(coder, X, active(size)) / step), 2**VALUE_BITS - 1) * step

    return encode


METHOD = Method(
    "CSR", fit, settings=((0.1, 1), (0.1, 4), (1.0, 1), (1.0, 4)), trained=True, draws=3, version=2, unit="bytes"
)  # fmt: skip
