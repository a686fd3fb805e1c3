"""Queries without judgements: their own mean and half-whitened axes, against PCA, SVD and neighbors.

    python -m benchmarks.queries                    three models; writes results/queries.json
    python -m benchmarks.queries --model minilm

SciFact: all documents are fitted on. Queries that share a relevant document, or whose cosine is above 0.7 in this
model, are one group; half of the groups are a log without judgements, and the queries of the other half ask, in turn.
nDCG@10 is by all judgements, recall@10 by the ten nearest documents at full width. STS: the sentences of the training
pairs are fitted on, those on the left of the dev pairs are the log, test pairs are scored by Spearman. Its
sides are alike, so that a mean of queries should change nothing there.

"kept" is what ``fit(X, queries=Q)`` does, which takes the mean only where held-out queries of the log find more. All
settings are the defaults; nothing is chosen here.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from benchmarks.relevance import vectors_of
from firstk import Pairs, PrefixEncoder, Search, Similarity
from firstk.encoder.fitted import FittedEncoder
from firstk.estimator.query_mean import shrunken_mean
from firstk.metrics.curve import per_row_scores
from firstk_papers.datasets import load_scifact, load_stsb

MODELS, KS, SIZES = ("minilm", "mpnet", "potion"), (8, 16, 32, 64, 128), (16, 32, 64)
OBJECTIVES = {
    "PCA": "reconstruction",
    "SVD": Similarity(keep="dot_products"),
    "neighbors": Similarity(),
    "power 0.25": Similarity(keep="variance", power=0.25),
    "half-whitened": Similarity(keep="variance"),
    "power 0.75": Similarity(keep="variance", power=0.75),
}
NEAR, SPLITS = 0.7, 2
RESULTS = Path(__file__).parents[1] / "results" / "queries.json"


def groups_of(queries: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Return the group of each query: those that share a relevant document, or are near, hang together."""
    unit = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    asks = np.zeros((len(queries), judged[:, 1].max() + 1), dtype=np.float32)
    asks[judged[:, 0], judged[:, 1]] = 1
    return np.asarray(connected_components(coo_array((unit @ unit.T > NEAR) | (asks @ asks.T > 0)))[1])


def variants(name: str, encoder: PrefixEncoder, log: np.ndarray) -> dict[str, FittedEncoder]:
    """Return an encoder without queries, with their mean, and as it is kept."""
    plain = encoder.encoder_
    if name == "SVD":  # subtracts nothing
        return {name: plain}
    own = replace(plain, query_mean=shrunken_mean(log, plain.mean))
    return {name: plain, f"{name}, queries' mean": own, f"{name}, kept": encoder.with_queries(log).encoder_}


def bytes_scores(encoder: FittedEncoder, data: Search) -> np.ndarray:
    """Return nDCG@10 of embedded bits of each query, (q, sizes)."""
    found = []
    for size in SIZES:
        quantizer = encoder.quantizer(size)
        scores = quantizer.scores(quantizer.encode_query(data.queries), quantizer.encode(data.documents))
        relevance = np.zeros(scores.shape)
        relevance[tuple(np.asarray(data.relevance)[:, :2].T)] = 1
        top = np.argsort(-scores, axis=1, kind="stable")[:, :10]
        discounts = 1 / np.log2(np.arange(2, 12))
        best = np.cumsum(discounts)[np.minimum(relevance.sum(axis=1), 10).astype(int) - 1]
        found.append(np.take_along_axis(relevance, top, 1) @ discounts / best)
    return np.stack(found, axis=1)


def scifact(model: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the scores of every query: method -> measure -> (queries, lengths)."""
    sets = load_scifact()
    D, Q = (vectors_of("retrieval-scifact", f"scifact_{model}.npz", name) for name in "DQ")
    judged = np.concatenate([sets.judgements_train, sets.judgements_test])
    judged = judged[judged[:, 2] > 0]
    groups = groups_of(Q, judged)
    encoders = {name: PrefixEncoder(max(KS), objective=goal, verbose=False).fit(D) for name, goal in OBJECTIVES.items()}
    scores: dict[str, dict[str, np.ndarray]] = {}
    widths = {"ndcg@10": len(KS), "recall@10": len(KS), "ndcg@10 in bytes": len(SIZES)}
    for seed in range(SPLITS):
        half = np.random.default_rng(seed).permutation(groups.max() + 1)[: (groups.max() + 1) // 2]
        for log in (np.isin(groups, half), ~np.isin(groups, half)):
            held = np.flatnonzero(~log)
            data = Search(Q, D, judged).subset(held)
            asked = np.unique(np.asarray(data.relevance)[:, 0])
            data, held = data.subset(asked), held[asked]
            unjudged = Search(data.queries, D)
            for name, encoder in encoders.items():
                for variant, one in variants(name, encoder, Q[log]).items():
                    into = scores.setdefault(variant, {})
                    found = {
                        "ndcg@10": per_row_scores(one, data, "ndcg@10", np.array(KS)).values,  # type: ignore[attr-defined]
                        "recall@10": per_row_scores(one, unjudged, "recall@10", np.array(KS)).values,  # type: ignore[attr-defined]
                    }
                    if not variant.endswith("mean") and "power" not in variant:
                        found["ndcg@10 in bytes"] = bytes_scores(one, data)
                    for measure, values in found.items():
                        whole = into.setdefault(measure, np.full((len(Q), widths[measure]), np.nan))
                        before = np.where(np.isnan(whole[held]), 0.0, whole[held])
                        whole[held] = before + values / SPLITS
    return {name: {m: v[~np.isnan(v).any(axis=1)] for m, v in of.items()} for name, of in scores.items()}


def sts(model: str) -> dict[str, list[float]]:
    """Return Spearman's correlation on the test pairs at each length."""
    sets = load_stsb()
    E = vectors_of("stsb", f"stsb_{model}.npz", "E")
    rows, log = E[np.unique(sets.pairs_train)], E[sets.pairs_dev[:, 0]]
    data = Pairs(*E[sets.pairs_test].transpose(1, 0, 2), sets.scores_test)
    found = {}
    for name, goal in OBJECTIVES.items():
        encoder = PrefixEncoder(max(KS), objective=goal, verbose=False).fit(rows)
        for variant, one in variants(name, encoder, log).items():
            found[variant] = per_row_scores(one, data, "spearman", np.array(KS)).score().tolist()
    return found


def difference(values: np.ndarray, other: np.ndarray) -> list[list[float]]:
    """Return mean and half width of the 95 % interval of paired differences."""
    ahead = values - other
    half = 1.96 * ahead.std(axis=0) / np.sqrt(len(ahead))
    return [
        [round(float(mean), 4), round(float(width), 4)] for mean, width in zip(ahead.mean(axis=0), half, strict=True)
    ]


def record_of(model: str) -> dict[str, object]:
    """Measure one model, and print it."""
    began = time.process_time()
    searched, pairs = scifact(model), sts(model)
    print(f"\n{model}: k = {KS}; bytes = {SIZES}")
    found: dict[str, object] = {}
    for name, of in searched.items():
        line = {measure: values.mean(axis=0).round(4).tolist() for measure, values in of.items()}
        line["over PCA"] = {measure: difference(values, searched["PCA"][measure]) for measure, values in of.items()}
        found[name] = line | {"sts": np.round(pairs[name], 4).tolist()}
        shown = "  ".join(" ".join(f"{value:.3f}" for value in values.mean(axis=0)) for values in of.values())
        print(f"{name:28} {shown}  STS {' '.join(f'{value:.3f}' for value in pairs[name])}", flush=True)
    return found | {"processor seconds": round(time.process_time() - began, 1)}


def main() -> int:
    """Measure the models that are asked for, and add them to the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, nargs="*", default=MODELS)
    warnings.simplefilter("ignore")
    for model in parser.parse_args().model:
        record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"k": KS, "bytes": SIZES}
        record[model] = record_of(model)
        RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
