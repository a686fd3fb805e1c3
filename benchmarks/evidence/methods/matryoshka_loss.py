"""An adapter trained with MatryoshkaLoss of sentence-transformers: one linear layer on stored vectors.

Around CoSENT for scored pairs, around MultipleNegativesRankingLoss for positives.
"""

from __future__ import annotations

import torch
from torch import nn

from benchmarks.evidence.data import Encode, Part
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.methods.training import LENGTHS, encode_with, train


def fit(part: Part, setting: float, seed: int) -> Encode:
    """Train the layer, which starts at the identity; the setting is the learning rate."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.losses import (
        CoSENTLoss,
        MatryoshkaLoss,
        MultipleNegativesRankingLoss,
    )

    from benchmarks.text_loss import Stored

    assert part.pairs is not None
    left, right, scores = part.pairs
    torch.manual_seed(seed)
    width = left.shape[1]
    dense = Dense(width, width, activation_function=None)
    nn.init.eye_(dense.linear.weight)
    nn.init.zeros_(dense.linear.bias)
    model = SentenceTransformer(modules=[Stored(), dense], device="cpu")
    inner = MultipleNegativesRankingLoss(model) if scores is None else CoSENTLoss(model)
    matryoshka = MatryoshkaLoss(model, inner, [width, *(k for k in reversed(LENGTHS) if k < width)])
    a, b = (torch.tensor(side, dtype=torch.float32) for side in (left, right))
    labels = None if scores is None else torch.tensor(scores, dtype=torch.float32)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        given = None if labels is None else labels[rows]
        return matryoshka([{"embedding": a[rows]}, {"embedding": b[rows]}], given)

    train(dense.parameters(), len(a), loss, setting)
    return encode_with(dense.linear)


METHOD = Method("MatryoshkaLoss adapter", fit, settings=(3e-3, 1e-2, 3e-2), needs="pairs", trained=True, draws=3)
