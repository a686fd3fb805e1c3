"""Estimated relevance: whether it picks the encoder that judgements pick, over resampled stores.

    python -m benchmarks.relevance                            six tables, some twenty minutes on one idle core
    python -m benchmarks.relevance --set scifact --model potion --stores 10

A store is a random part of SciFact's documents, with the queries whose relevant documents are all in it, or of the
scored pairs of STS with their sentences. Three encoders are fitted on its rows alone: similarity without pairs, dot
products (uncentered SVD) and PCA. Judgements (nDCG@10, or Spearman) score them at 32 and 64. Each method picks one of
the three without judgements; its regret is what the best of the three scores more. The exit code is 1 where the mean
regret of an estimate exceeds 0.01 on a set.

The exponent of the whitening, its ridge and how mutual partners must be were chosen on SciFact with potion and MiniLM
and on STS with potion, among some dozens of variants. First stores of the other sets had been looked at by then.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.mined import mined_judgements, mined_partners, partner_ndcg
from firstk import Pairs, PrefixEncoder, Rows, Search, Similarity
from firstk.encoder.fitted import FittedEncoder
from firstk.metrics.curve import per_row_scores
from firstk_papers.datasets import data_folder, load_scifact, load_stsb

KS = [32, 64]
PROMISED = 0.01
MODELS = ("potion", "minilm", "mpnet")
# Share of SciFact's documents, or of the pairs of STS (each brings two sentences), in a store.
SHARE = {"scifact": 0.6, "sts": 0.3}
HELD_OUT = 0.2
OBJECTIVES = {
    "similarity": Similarity(),
    "dot products": Similarity(keep="dot_products"),
    "PCA": "reconstruction",
}
FIDELITY, BY_ROWS = "fidelity: recall@10", "estimate: held-out rows"
BY_QUERIES, BY_OTHERS = "estimate: the queries, unjudged", "estimate: other queries"
# Scores of the three encoders at KS, one row an encoder.
Scores = np.ndarray


@dataclass(frozen=True)
class Store:
    """Rows to fit on, what judges the encoders, and queries without judgements, if any."""

    rows: np.ndarray
    judge: Callable[[FittedEncoder], np.ndarray]
    queries: dict[str, np.ndarray]


def vectors_of(folder: str, file: str, name: str) -> np.ndarray:
    """Read the vectors of one model as float32."""
    with np.load(data_folder() / folder / file) as arrays:
        return arrays[name].astype(np.float32)


def scifact_stores(model: str, n_stores: int) -> list[Callable[[], Store]]:
    """Return stores of SciFact: a part of the documents, judged by the queries that it answers in full."""
    sets = load_scifact()
    D, Q = (vectors_of("retrieval-scifact", f"scifact_{model}.npz", name) for name in "DQ")
    judged = np.concatenate([sets.judgements_train, sets.judgements_test])
    judged = judged[judged[:, 2] > 0]

    def store(seed: int) -> Store:
        rng = np.random.default_rng(seed)
        kept = np.sort(rng.choice(len(D), int(SHARE["scifact"] * len(D)), replace=False))
        place = np.full(len(D), -1)
        place[kept] = np.arange(len(kept))
        complete = np.setdiff1d(judged[:, 0], judged[place[judged[:, 1]] < 0, 0])
        own = judged[np.isin(judged[:, 0], complete)]
        relevance = np.stack([np.searchsorted(complete, own[:, 0]), place[own[:, 1]], own[:, 2]], axis=1)
        data = Search(Q[complete], D[kept], relevance)
        others = np.delete(Q, complete, axis=0)
        return Store(
            D[kept],
            lambda encoder: per_row_scores(encoder, data, "ndcg@10", np.array(KS)).score(),
            {BY_QUERIES: Q[complete], BY_OTHERS: others},
        )

    return [lambda seed=seed: store(seed) for seed in range(n_stores)]


def sts_stores(model: str, n_stores: int) -> list[Callable[[], Store]]:
    """Return stores of STS: sentences of a part of the pairs, judged by the scores of these."""
    sets = load_stsb()
    E = vectors_of("stsb", f"stsb_{model}.npz", "E")
    parts = ("train", "dev", "test")
    pairs = np.concatenate([getattr(sets, f"pairs_{part}") for part in parts])
    scores = np.concatenate([getattr(sets, f"scores_{part}") for part in parts])

    def store(seed: int) -> Store:
        rng = np.random.default_rng(seed)
        kept = np.sort(rng.choice(len(pairs), int(SHARE["sts"] * len(pairs)), replace=False))
        left, right = E[pairs[kept]].transpose(1, 0, 2)
        data = Pairs(left, right, scores[kept])
        rows = E[np.unique(pairs[kept])]
        return Store(rows, lambda encoder: per_row_scores(encoder, data, "spearman", np.array(KS)).score(), {})

    return [lambda seed=seed: store(seed) for seed in range(n_stores)]


STORES = {"scifact": scifact_stores, "sts": sts_stores}


def fitted(rows: np.ndarray) -> dict[str, FittedEncoder]:
    """Fit the three encoders."""
    return {
        name: PrefixEncoder(max(KS), objective=objective).fit(rows).encoder_ for name, objective in OBJECTIVES.items()
    }


def scores_in(store: Store, seed: int) -> tuple[Scores, dict[str, Scores]]:
    """Return what judgements say of the encoders of a store, and what each method says without them."""
    whole = fitted(store.rows)
    judged = np.stack([store.judge(encoder) for encoder in whole.values()])
    said = {name: _estimated(whole, store.rows, queries=queries) for name, queries in store.queries.items()}
    order = np.random.default_rng([seed, 1]).permutation(len(store.rows))
    held, kept = (store.rows[part] for part in np.split(order, [int(HELD_OUT * len(order))]))
    partial = fitted(kept)
    said[BY_ROWS] = _estimated(partial, kept, held_out=held)
    data = Rows(held, reference=Rows(kept))
    said[FIDELITY] = np.stack(
        [per_row_scores(each, data, "recall@10", np.array(KS)).score() for each in partial.values()]
    )
    return judged, said


def _estimated(
    encoders: dict[str, FittedEncoder],
    rows: np.ndarray,
    queries: np.ndarray | None = None,
    held_out: np.ndarray | None = None,
) -> Scores:
    """Score encoders without judgements: by documents mined for queries, or by mutual partners of held-out rows."""
    if queries is not None:
        data = Search(queries, rows, mined_judgements(queries, rows))
        return np.stack([per_row_scores(each, data, "ndcg@10", np.array(KS)).score() for each in encoders.values()])
    mined = mined_partners(held_out, rows)
    codes = ((each.coordinates(rows), each.coordinates(held_out[mined.rows])) for each in encoders.values())
    return np.stack([partner_ndcg(*pair, mined.partners, ks=KS) for pair in codes])


def regrets(judged: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Return what the best of the encoders scores more than the one that a method picks: stores by lengths."""
    picked = np.take_along_axis(judged, said.argmax(axis=1)[:, None], axis=1)[:, 0]
    return judged.max(axis=1) - picked


def table(name: str, model: str, n_stores: int) -> bool:
    """Print the regret of each method over the stores of a set; True if that of every estimate is as promised."""
    results = [scores_in(make(), seed) for seed, make in enumerate(STORES[name](model, n_stores))]
    return show(f"{name}, {model}, {'nDCG@10' if name == 'scifact' else 'Spearman'}", results)


def show(title: str, results: list[tuple[Scores, dict[str, Scores]]]) -> bool:
    """Print a table of the scores of the encoders and of the regret of each method."""
    judged = np.array([scores for scores, _ in results])  # stores by encoders by lengths
    print(f"\n{title} at {KS}, {len(results)} stores")
    for i, objective in enumerate(OBJECTIVES):
        behind = judged.max(axis=1) - judged[:, i]
        print(f"  {'always ' + objective:32} {_figures(judged[:, i].mean(axis=0))}   regret {_mean(behind)}")
    kept = True
    for method in (FIDELITY, BY_ROWS, BY_QUERIES, BY_OTHERS):
        if method in results[0][1]:
            said = np.array([scores[method] for _, scores in results])
            kept &= _regret(method, judged, said) or method == FIDELITY
    return kept


def _regret(method: str, judged: np.ndarray, said: np.ndarray) -> bool:
    """Print a method's regret and what it picks; True if the regret is as promised."""
    regret = regrets(judged, said)
    met = bool(regret.mean() <= PROMISED)
    verdict = "" if method == FIDELITY else f"   promised {PROMISED}: {'met' if met else 'NOT MET'}"
    picks = ", ".join(f"{name} {(said.argmax(axis=1) == i).mean():.0%}" for i, name in enumerate(OBJECTIVES))
    print(f"  {method:32} {'':13}   regret {_mean(regret)}   picks {picks}{verdict}")
    return met


def _mean(regret: np.ndarray) -> str:
    return f"{_figures(regret.mean(axis=0))}, mean {regret.mean():.4f}"


def _figures(values: np.ndarray) -> str:
    return " ".join(f"{value:.4f}" for value in values)


def main() -> int:
    """Print a table for each set and model that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=STORES)
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--stores", type=int, default=50)
    given = parser.parse_args()
    kept = [
        table(name, model, given.stores)
        for name in STORES
        for model in MODELS
        if given.set in (None, name) and given.model in (None, model)
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    raise SystemExit(main())
