"""Codes of vectors of another domain than that of the fit: Similarity(keep="projections") beside the default and peers.

    python -m benchmarks.other_domains              MiniLM, a minute
    python -m benchmarks.other_domains --model mpnet

Fitted without labels or pairs on Banking77, on sentences of the STS benchmark or on documents of SciFact, used on one
of the others: test parts, tasks and peers of `benchmarks.evidence`. Shown is each score less the best of the peers that
learn from vectors alone, by test scores at each length: truncation, random dimensions (a mean of five draws), PCA,
whitened PCA, all but the top, each with all its settings, so that the bar is higher than that of a peer chosen on
validation data. Last the sets themselves, for what the codes lose there.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from benchmarks.evidence.data import Task
from benchmarks.evidence.methods import all_but_the_top, pca, random_dimensions, truncation, whitened_pca
from benchmarks.evidence.tasks import TASKS
from firstk import PrefixEncoder, Similarity

KS, DRAWS = (4, 8, 16, 32, 64, 128), 5
MOVED = ("banking77 to scifact", "sts to scifact", "scifact to banking77", "scifact to sts")
OWN = ("banking77 1-NN", "sts", "scifact")
PEERS = (truncation.METHOD, random_dimensions.METHOD, pca.METHOD, whitened_pca.METHOD, all_but_the_top.METHOD)


def scored(task: Task, encode) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return the score of codes on the test part at each length."""
    found: np.ndarray = task.score(encode, task.test.opened(), KS)["all"].score()
    return found


def ours(task: Task, keep: str) -> np.ndarray:
    """Return the score of a code that learned from the vectors alone."""
    fitted = PrefixEncoder(KS[-1], objective=Similarity(keep=keep), verbose=False).fit(task.everything.X).encoder_
    return scored(task, lambda X, k, side: fitted.encode(X, k, side=side))


def best_peer(task: Task) -> np.ndarray:
    """Return the best score of a peer at each length."""
    found = []
    for peer in PEERS:
        for setting in peer.settings:
            runs = [scored(task, peer.fit(task.everything, setting, seed)) for seed in range(min(peer.draws, DRAWS))]
            found.append(np.mean(runs, axis=0))
    best: np.ndarray = np.max(found, axis=0)
    return best


def main() -> int:
    """Print the differences; the exit code is 1 where projections are more than 0.01 behind in another domain."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--only", choices=(*MOVED, *OWN), nargs="*", default=(*MOVED, *OWN))
    given = parser.parse_args()
    print(f"{given.model}: less the best peer at k = {', '.join(map(str, KS))}")
    worst = 0.0
    for name in given.only:
        task = TASKS[name](given.model)
        bar = best_peer(task)
        for keep in ("neighbors", "projections"):
            found = ours(task, keep)
            less = ", ".join(f"{value:+.3f}" for value in found - bar)
            print(f"{name:<22} {keep:<12} {less}   scores {', '.join(f'{value:.3f}' for value in found)}", flush=True)
            if keep == "projections" and name in MOVED:
                worst = min(worst, float((found - bar).min()))
    print(f"projections in other domains: {worst:+.3f} at worst")
    return 0 if worst >= -0.01 else 1


if __name__ == "__main__":
    sys.exit(main())
