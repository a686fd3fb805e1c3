"""The loss alone, on embeddings already computed: FullPrefixLoss against MatryoshkaLoss, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.harness import Claim, duel

BATCH, WIDTH = 256, 384
FIVE = [384, 192, 96, 48, 24]


class Stored(nn.Module):
    """A sentence-transformers module that hands out stored embeddings, so that only the loss is timed."""

    config_keys: tuple[str, ...] = ()

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the embedding that the features hold."""
        return {"sentence_embedding": features["embedding"]}

    def get_embedding_dimension(self) -> int:
        """Return the width of the embeddings."""
        return WIDTH


def contenders() -> dict[str, Callable[[], object]]:
    """Return one step of each loss on the same embeddings."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import losses

    from firstk.integrations.sentence_transformers import FullPrefixLoss

    torch.manual_seed(0)
    pair = [{"embedding": torch.randn(BATCH, WIDTH).requires_grad_()} for _ in range(2)]
    model = SentenceTransformer(modules=[Stored()], device="cpu")
    ranking = losses.MultipleNegativesRankingLoss(model)
    labels = torch.zeros(BATCH)
    steps = {
        "FullPrefixLoss, exact": FullPrefixLoss(model, ranking, log_prefixes="auto"),
        "FullPrefixLoss, exact, nothing logged": FullPrefixLoss(model, ranking),
        "FullPrefixLoss, sampled": FullPrefixLoss(model, ranking, estimator="sampled", log_prefixes="auto"),
        "FullPrefixLoss, sampled, nothing logged": FullPrefixLoss(model, ranking, estimator="sampled"),
        "MatryoshkaLoss, all dims": losses.MatryoshkaLoss(model, ranking, list(range(1, WIDTH + 1))),
        "MatryoshkaLoss, 5 dims": losses.MatryoshkaLoss(model, ranking, FIVE),
        "one full-width loss": ranking,
    }
    return {name: lambda loss=loss: loss(pair, labels).backward() for name, loss in steps.items()}


def table() -> bool:
    """Print both duels; every contender logs what it logs by default."""
    runs = contenders()
    for run in runs.values():
        run()  # the first run compiles
    shape = f"batch {BATCH}, {WIDTH} coordinates"
    claims = (
        Claim(f"exact, {shape}", "FullPrefixLoss, exact", ("MatryoshkaLoss, all dims",), 10),
        Claim(f"sampled, {shape}", "FullPrefixLoss, sampled", ("MatryoshkaLoss, 5 dims",), 1),
    )
    kept = [duel(claim, runs) for claim in claims]
    return all(kept)
