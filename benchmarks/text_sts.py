"""STS benchmark: how much of the full-width Spearman short prefixes keep, by adapters fitted on the training part.

Ours is `PrefixEncoder(objective="similarity", solver="gradient")` with the weights of the prefixes on the lengths that
are judged; the peer is one linear layer of 384 coordinates with a bias, trained by MatryoshkaLoss around CoSENT over
dims 384, 256, 128, 64, 32, 16, 8. Each is given eight settings, the temperature of CoSENT among them. They are compared
on the dev part, by the mean over the lengths that are judged: all with the first seed, the best two with three, and
only the best of these is measured on the test part. The peer also gets its best epoch on dev. Its search sums over the
list by firstk, which gives the same steps sooner; what is found is trained with MatryoshkaLoss itself. A further row
trains the list on mixed scores as ours are.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.text_loss import Stored
from firstk import FullPrefix, PrefixEncoder, Similarity, metrics
from firstk.advice.baselines import baselines_of
from firstk.solvers import Gradient
from firstk_papers.datasets import load_stsb

JUDGED = [8, 16, 32]
DIMS = [384, 256, 128, 64, 32, 16, 8]
# An octave or so around the lengths that are asked for; every octave counts alike.
OMEGA = {k: 1 / k for k in range(6, 65)}
SEEDS, FINALISTS = (0, 1, 2), 2
TEMPERATURES = (0.05, 0.1)
RATES, FIDELITIES = (2e-3, 4e-3), (0.3, 0.5)
STARTS, PEER_RATES = ("identity", "random"), (1e-2, 3e-2)
EPOCHS, BATCH, AVERAGING = 10, 16, 0.998
OURS, PEER, PEER_MIXED = "firstk, trained", "MatryoshkaLoss adapter", "MatryoshkaLoss adapter, mixed scores"
RIVALS = (PEER, "plain truncation", "random dimensions", "PCA")

Pairs = tuple[Tensor, Tensor, Tensor]
Parts = dict[str, Pairs]
Wrap = Callable[[Any, nn.Module], nn.Module]
# Codes of the left and the right sides of pairs.
Encode = Callable[[Tensor, Tensor], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Own:
    """What is chosen on the dev part for firstk: temperature, learning rate, and the weight of the full cosine."""

    temperature: float
    rate: float
    fidelity: float

    def fit(self, parts: Parts, seed: int) -> Encode:
        """Fit on the training part."""
        objective = Similarity(shrinkage=0.9, neighbor_weight=0.0, fidelity=self.fidelity, temperature=self.temperature)
        encoder = PrefixEncoder(
            max(OMEGA),
            objective=objective,
            ordering=FullPrefix(omega=OMEGA),
            solver=Gradient(learning_rate=self.rate),
            random_state=seed,
        ).fit_pairs(*(part.numpy() for part in parts["train"]))
        return lambda left, right: (encoder.encode_query(left.numpy()), encoder.encode_document(right.numpy()))


@dataclass(frozen=True)
class Listed:
    """What is chosen for MatryoshkaLoss: temperature, start and learning rate; `mixed` as `fidelity` above."""

    temperature: float
    start: str
    rate: float
    mixed: float = 0.0
    stock: bool = False

    def fit(self, parts: Parts, seed: int) -> Encode:
        """Train on the training part; weights are averaged over steps, and the best epoch on dev is kept."""
        linear = train(parts, self, seed)

        def encode(left: Tensor, right: Tensor) -> tuple[np.ndarray, np.ndarray]:
            with torch.no_grad():
                return linear(left).numpy(), linear(right).numpy()

        return encode


Setting = Own | Listed


def listed(model: Any, loss: nn.Module) -> nn.Module:
    """Sum a loss over the list of dimensions with firstk: MatryoshkaLoss over seven, several times sooner."""
    from firstk.integrations.sentence_transformers import FullPrefixLoss

    return FullPrefixLoss(model, loss, omega=dict.fromkeys(DIMS, 1.0), log_prefixes=())


def matryoshka(model: Any, loss: nn.Module) -> nn.Module:
    """Sum a loss over the list of dimensions with sentence-transformers."""
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

    return MatryoshkaLoss(model, loss, DIMS)


def mixed_scores(part: Pairs, weight: float) -> Tensor:
    """Return ``(1 - w) s + w cos``, each with mean 0 and variance 1."""
    left, right, scores = part
    own, cosine = ((x - x.mean()) / x.std() for x in (scores, torch.cosine_similarity(left, right)))
    return (1 - weight) * own + weight * cosine


def train(parts: Parts, setting: Listed, seed: int) -> nn.Module:
    """Return the linear layer of the best epoch on dev."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    torch.manual_seed(seed)
    dense = Dense(384, 384, activation_function=None)
    if setting.start == "identity":
        nn.init.eye_(dense.linear.weight)
        nn.init.zeros_(dense.linear.bias)
    model = SentenceTransformer(modules=[Stored(), dense], device="cpu")
    wrap: Wrap = matryoshka if setting.stock else listed
    loss = wrap(model, CoSENTLoss(model, scale=1 / setting.temperature))
    left, right, _ = parts["train"]
    labels = mixed_scores(parts["train"], setting.mixed)
    steps = EPOCHS * (len(left) // BATCH)
    adam = torch.optim.AdamW(dense.parameters(), lr=setting.rate, weight_decay=0.0)
    ramp = torch.optim.lr_scheduler.LambdaLR(adam, lambda t: min(1.0, 10 * (t + 1) / steps) * max(0.0, 1 - t / steps))
    average = torch.optim.swa_utils.get_ema_multi_avg_fn(AVERAGING)
    mean = torch.optim.swa_utils.AveragedModel(dense.linear, multi_avg_fn=average)
    best, kept = -np.inf, mean.module.state_dict()
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(left)).split(BATCH)[: len(left) // BATCH]:
            adam.zero_grad()
            loss([{"embedding": left[rows]}, {"embedding": right[rows]}], labels[rows]).backward()
            adam.step()
            ramp.step()
            mean.update_parameters(dense.linear)
        with torch.no_grad():
            found = spearman(lambda a, b: (mean.module(a).numpy(), mean.module(b).numpy()), parts["dev"]).mean()
        if found > best:
            best, kept = found, {name: value.clone() for name, value in mean.module.state_dict().items()}
    mean.module.load_state_dict(kept)
    return mean.module


def spearman(encode: Encode, part: Pairs) -> np.ndarray:
    """Return the Spearman correlation at the lengths that are judged."""
    left, right, scores = part
    return metrics.pair_spearman(*encode(left, right), scores.numpy(), ks=JUDGED)


def chosen(parts: Parts, settings: Sequence[Setting]) -> Setting:
    """Choose a setting on dev: all with the first seed, the best of them by the mean over seeds."""
    found = np.array([[_dev(parts, setting, SEEDS[0])] for setting in settings])
    last = np.argsort(-found[:, 0])[:FINALISTS]
    means = [np.mean([found[i, 0], *(_dev(parts, settings[i], seed) for seed in SEEDS[1:])]) for i in last]
    return settings[last[int(np.argmax(means))]]


def _dev(parts: Parts, setting: Setting, seed: int) -> float:
    began = time.perf_counter()
    found = float(spearman(setting.fit(parts, seed), parts["dev"]).mean())
    seconds = time.perf_counter() - began
    print(f"  {setting}, seed {seed}: dev {found:.4f}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return found


def adapters(parts: Parts) -> dict[str, np.ndarray]:
    """Return test scores of the trained adapters, a mean over seeds, and say what was chosen."""
    own: Any = chosen(parts, [Own(*each) for each in itertools.product(TEMPERATURES, RATES, FIDELITIES)])
    peer: Any = chosen(parts, [Listed(*each) for each in itertools.product(TEMPERATURES, STARTS, PEER_RATES)])
    rows = {OURS: own, PEER: replace(peer, stock=True), PEER_MIXED: replace(peer, mixed=own.fidelity)}
    found = {}
    for name, setting in rows.items():
        fits = [setting.fit(parts, seed) for seed in SEEDS]
        dev, test = (np.array([spearman(fit, parts[part]) for fit in fits]) for part in ("dev", "test"))
        by_seed = ", ".join(str(each.round(3)) for each in test)
        print(f"  {name}: {setting}, dev {dev.mean(axis=0).round(4)}, test by seed {by_seed}", flush=True)
        found[name] = test.mean(axis=0)
    return found


def closed_forms(sts: Any) -> dict[str, np.ndarray]:
    """Return test scores of what needs no training: the pencil of the pairs, and the four baselines."""
    left, right, scores = sts.part("train")
    pencil = PrefixEncoder(objective="similarity").fit_pairs(left, right, scores)
    found = {"firstk, closed form": np.array(pencil.curve_pairs(*sts.part("test"), ks=JUDGED).score)}
    rows, (a, b, gold) = np.vstack([left, right]), sts.part("test")
    for name, encoder in baselines_of(rows).items():
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
    best = np.max([rows[name] for name in RIVALS], axis=0)
    for k, own, other in zip(JUDGED, rows[OURS], best, strict=True):
        ahead = OURS if own > other else next(name for name in RIVALS if rows[name][JUDGED.index(k)] == other)
        print(f"  k = {k}: ahead {ahead}, {own:.4f} against {other:.4f}")
    met = bool((rows[OURS] > best).all())
    print(f"  {OURS} above {', '.join(RIVALS)} at {JUDGED}: {'met' if met else 'NOT MET'}")
    return met
