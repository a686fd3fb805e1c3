"""STS benchmark: how much of the full-width Spearman short prefixes keep, by adapters fitted on the training part.

The trained adapters are one linear layer of 384 coordinates, trained by the same loop with the same inner loss
(CoSENT); they differ in the sum over prefixes. Each gets its settings and its epoch from the dev part, by the mean
over the lengths that are judged, and three seeds. FullPrefixLoss is trained on scores into which the cosine of the full
vectors is mixed, to a degree chosen on dev. The search for MatryoshkaLoss sums over its list by firstk, which gives
the same steps sooner; what is found is trained with MatryoshkaLoss itself. A further row trains the list on the
mixed scores.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.text_loss import Stored
from firstk import PrefixEncoder, metrics
from firstk.baselines import BASELINES
from firstk.data import load_stsb

JUDGED = [8, 16, 32]
DIMS = [384, 256, 128, 64, 32, 16, 8]
# An octave or so around the lengths that are asked for; every octave counts alike.
OMEGA = {k: 1 / k for k in range(6, 65)}
SEEDS = (0, 1, 2)
EPOCHS, BATCH, AVERAGING = 10, 16, 0.998
OURS, PEER, PEER_MIXED = "FullPrefixLoss adapter", "MatryoshkaLoss adapter", "MatryoshkaLoss adapter, mixed scores"


@dataclass(frozen=True)
class Setting:
    """What is chosen on the dev part: the start, the learning rate, and how much of the full cosine is mixed in."""

    start: str = "identity"
    rate: float = 1e-2
    mixed: float = 0.0


@dataclass(frozen=True, eq=False)
class Run:
    """Spearman at 8, 16 and 32 on the dev and the test part, at the epoch that is best on dev."""

    dev: np.ndarray
    test: np.ndarray


Parts = dict[str, tuple[Tensor, Tensor, Tensor]]
Wrap = Callable[[Any, nn.Module], nn.Module]


def full_prefix(model: Any, loss: nn.Module) -> nn.Module:
    """Sum a loss over prefixes with firstk."""
    from firstk.integrations.sentence_transformers import FullPrefixLoss

    return FullPrefixLoss(model, loss, omega=OMEGA, log_prefixes=())


def listed(model: Any, loss: nn.Module) -> nn.Module:
    """Sum a loss over the list of dimensions with firstk: MatryoshkaLoss over seven, several times sooner."""
    from firstk.integrations.sentence_transformers import FullPrefixLoss

    return FullPrefixLoss(model, loss, omega=dict.fromkeys(DIMS, 1.0), log_prefixes=())


def matryoshka(model: Any, loss: nn.Module) -> nn.Module:
    """Sum a loss over the list of dimensions with sentence-transformers."""
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

    return MatryoshkaLoss(model, loss, DIMS)


def train(parts: Parts, wrap: Wrap, setting: Setting, seed: int) -> Run:
    """Train one adapter; weights are averaged over steps, and the best epoch on dev is kept."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    torch.manual_seed(seed)
    dense = Dense(384, 384, activation_function=None)
    if setting.start == "identity":
        nn.init.eye_(dense.linear.weight)
        nn.init.zeros_(dense.linear.bias)
    model = SentenceTransformer(modules=[Stored(), dense], device="cpu")
    loss = wrap(model, CoSENTLoss(model))
    left, right, scores = parts["train"]
    labels = scores / 5 + setting.mixed * (left * right).sum(1)
    steps = EPOCHS * (len(left) // BATCH)
    adam = torch.optim.AdamW(dense.parameters(), lr=setting.rate, weight_decay=0.0)
    ramp = torch.optim.lr_scheduler.LambdaLR(adam, lambda t: min(1.0, 10 * (t + 1) / steps) * max(0.0, 1 - t / steps))
    mean = torch.optim.swa_utils.AveragedModel(
        dense, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(AVERAGING)
    )
    best: Run | None = None
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(left)).split(BATCH)[: len(left) // BATCH]:
            adam.zero_grad()
            loss([{"embedding": left[rows]}, {"embedding": right[rows]}], labels[rows]).backward()
            adam.step()
            ramp.step()
            mean.update_parameters(dense)
        dev, test = (spearman(mean.module.linear, parts[part]) for part in ("dev", "test"))
        if best is None or dev.mean() > best.dev.mean():
            best = Run(dev, test)
    assert best is not None
    print(
        f"  {wrap.__name__}, seed {seed}, {setting}: dev {best.dev.mean():.4f}, test {best.test.round(4)}",
        file=sys.stderr,
        flush=True,
    )
    return best


@torch.no_grad()
def spearman(linear: nn.Module, part: tuple[Tensor, Tensor, Tensor]) -> np.ndarray:
    """Return the Spearman correlation of a linear adapter at the lengths that are judged."""
    left, right, scores = part
    return metrics.pair_spearman(linear(left).numpy(), linear(right).numpy(), scores.numpy(), ks=JUDGED)


def chosen(parts: Parts, wrap: Wrap, settings: Iterable[Setting]) -> Setting:
    """Choose a setting on dev with the first seed."""
    return max(settings, key=lambda setting: train(parts, wrap, setting, SEEDS[0]).dev.mean())


def adapters(parts: Parts) -> dict[str, np.ndarray]:
    """Return test scores of the trained adapters, a mean over seeds, and say what was chosen."""
    mixtures = itertools.product((1e-2, 3e-2), (0.5, 0.75, 1.0))
    own = chosen(parts, full_prefix, [Setting(rate=rate, mixed=mixed) for rate, mixed in mixtures])
    grid = [Setting(start, rate) for start, rate in itertools.product(("identity", "random"), (3e-3, 1e-2, 3e-2))]
    peer = chosen(parts, listed, grid)
    given_the_same = replace(peer, mixed=own.mixed)
    found = {}
    for name, wrap, setting in (
        (OURS, full_prefix, own),
        (PEER, matryoshka, peer),
        (PEER_MIXED, listed, given_the_same),
    ):
        runs = [train(parts, wrap, setting, seed) for seed in SEEDS]
        dev = np.mean([run.dev for run in runs])
        print(f"  {name}: {setting}, dev {dev:.4f}, test by seed " + ", ".join(str(run.test.round(3)) for run in runs))
        found[name] = np.mean([run.test for run in runs], axis=0)
    return found


def closed_forms(sts: Any) -> dict[str, np.ndarray]:
    """Return test scores of what needs no training: the pencil of the pairs, and the four baselines."""
    left, right, scores = sts.part("train")
    pencil = PrefixEncoder(objective="similarity").fit_pairs(left, right, scores)
    found = {"firstk, closed form": np.array(pencil.curve_pairs(*sts.part("test"), ks=JUDGED).score)}
    rows, (a, b, gold) = np.vstack([left, right]), sts.part("test")
    for name, build in BASELINES.items():
        encoder = build(rows)
        found[name] = metrics.pair_spearman(encoder.encode(a), encoder.encode(b), gold, ks=JUDGED)
    return found


def table() -> bool:
    """Print Spearman on the test part and the share of the full width; tell whether ours keeps the largest."""
    sts = load_stsb()
    names = ("train", "dev", "test")
    parts: Parts = {name: tuple(torch.tensor(np.float32(x)) for x in sts.part(name)) for name in names}  # type: ignore[misc]
    left, right, gold = sts.part("test")
    full = float(metrics.pair_spearman(left, right, gold, ks=[left.shape[1]])[0])
    print(f"\nSTS benchmark, test part, Spearman at {JUDGED} of 384 coordinates; all of them plain: {full:.4f}")
    rows = adapters(parts) | closed_forms(sts)
    print(f"  {'':<38}{'Spearman':<22}share of the full width")
    for name, scores in rows.items():
        print(f"  {name:<38}{' '.join(f'{x:.3f}' for x in scores):<22}{' '.join(f'{x / full:.1%}' for x in scores)}")
    rivals = [PEER, "plain truncation", "random dimensions", "PCA"]
    met = all((rows[OURS] > rows[name]).all() for name in rivals)
    print(f"  {OURS} above {', '.join(rivals)} at {JUDGED}: {'met' if met else 'NOT MET'}")
    return met
