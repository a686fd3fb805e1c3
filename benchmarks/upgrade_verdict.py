"""The verdict of an upgrade between staying and translating, against what the test part says afterwards.

    python -m benchmarks.upgrade_verdict                      36 rows, some minutes on one core
    python -m benchmarks.upgrade_verdict --set banking77 --pairs 500

For each ordered pair of MiniLM, potion and mpnet, on SciFact (nDCG@10) and Banking77 (accuracy of the nearest
neighbor), from 500, 1,000 and 3,000 pairs: `evaluate_upgrade` sees the store, the pairs and judged queries of the
training part (of Banking77, 1,000 training rows that are taken out of the store), and `verdict_of` says stay or
translate. Then both are scored on the test part. Regret is what the better of the two scores more there than the one
that was recommended. Rows are also marked where the verdict was wrong by more than its interval: where the regret is
larger than the interval of the gain allows. The exit code is 1 where the mean regret exceeds 0.01, or where a row is
so marked.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from firstk.data import load_banking77, load_scifact
from firstk.data.folder import data_folder
from firstk.evaluation.upgrade import UpgradeData, evaluate_upgrade, verdict_of
from firstk.evaluation.upgrade.records import STAY, TRANSLATE, Estimate
from firstk.evaluation.upgrade.searches import searches_in

MODELS = ("minilm", "potion", "mpnet")
PAIRS = (500, 1000, 3000)
PROMISED = 0.01
# Training rows of Banking77 that serve as judged queries.
JUDGED_ROWS = 1000


@dataclass(frozen=True)
class Row:
    """One upgrade: what was known, what was said, and what the test part says."""

    name: str
    action: str
    gain: Estimate
    stay: float
    translate: float

    @property
    def regret(self) -> float:
        """What the better of both scores more than what was recommended."""
        chosen = self.stay if self.action == STAY else self.translate
        return max(self.stay, self.translate) - chosen

    @property
    def beyond(self) -> bool:
        """Whether the verdict was wrong by more than its interval allows."""
        room = self.gain.high if self.action == STAY else -self.gain.low
        return self.regret > max(room, 0.0)


def vectors_of(folder: str, file: str, *names: str) -> list[np.ndarray]:
    """Read arrays of one model as float32."""
    with np.load(data_folder() / folder / file) as arrays:
        return [arrays[name].astype(np.float32) for name in names]


def scifact(old: str, new: str, pairs: int) -> tuple[UpgradeData, UpgradeData]:
    """Return what is known of an upgrade of SciFact, and the same with the test part's judgements."""
    sets = load_scifact()
    (D_old, Q_old), (D_new, Q_new) = (
        vectors_of("retrieval-scifact", f"scifact_{model}.npz", "D", "Q") for model in (old, new)
    )
    rows = np.sort(np.random.default_rng(pairs).choice(len(D_old), pairs, replace=False))
    known, test = (
        UpgradeData(D_old, D_new[rows], rows, Q_old, Q_new, relevance)
        for relevance in (sets.judgements_train, sets.judgements_test)
    )
    return known, test


def banking77(old: str, new: str, pairs: int) -> tuple[UpgradeData, UpgradeData]:
    """Return what is known of an upgrade of Banking77, and the whole training part searched by the test part."""
    sets = load_banking77()
    (X_old, T_old), (X_new, T_new) = (
        vectors_of("banking77", f"banking77_{model}.npz", "X_train", "X_test") for model in (old, new)
    )
    y, y_test = sets.y_train, sets.y_test
    order = np.random.default_rng(0).permutation(len(y))
    asked, store = np.sort(order[:JUDGED_ROWS]), np.sort(order[JUDGED_ROWS:])
    rows = np.sort(np.random.default_rng(pairs).choice(len(store), pairs, replace=False))
    known = UpgradeData(
        X_old[store], X_new[store[rows]], rows, X_old[asked], X_new[asked], same_label(y[asked], y[store]),
        metric="1nn_accuracy",
    )  # fmt: skip
    test = UpgradeData(
        X_old, X_new[store[rows]], store[rows], T_old, T_new, same_label(y_test, y), metric="1nn_accuracy"
    )
    return known, test


def same_label(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Return judgements by which documents of a query's own label are relevant."""
    query, document = np.nonzero(queries[:, None] == documents[None, :])
    return np.column_stack([query, document, np.ones(len(query), dtype=np.int64)])


SETS = {"scifact": scifact, "banking77": banking77}


def row(name: str, old: str, new: str, pairs: int) -> Row:
    """Let the verdict be made from the training part, and score both options on the test part."""
    known, test = SETS[name](old, new, pairs)
    result = evaluate_upgrade(known, methods=(), shares=())
    verdict = verdict_of(result.report)
    gain = result.report.pools[0].find(TRANSLATE).gain
    searches = searches_in(test, np.arange(len(test.old)))
    stay = searches.scores(test.old, searches.query_vectors("old")).mean()
    code, asked = result.alignment.encode_old(test.old), result.alignment.encode_new(searches.query_vectors("new"))
    translate = searches.scores(code, asked).mean()
    return Row(f"{name}, {old} to {new}, {pairs:,} pairs", verdict.action, gain, float(stay), float(translate))


def rows(name: str | None, pairs: int | None) -> Iterator[Row]:
    """Yield all rows that are asked for."""
    for one in SETS:
        for old, new in permutations(MODELS, 2):
            for n in PAIRS:
                if name in (None, one) and pairs in (None, n):
                    yield row(one, old, new, n)


def main() -> int:
    """Print a row for each upgrade, the mean regret, and whether the promises are kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS)
    parser.add_argument("--pairs", type=int, choices=PAIRS)
    given = parser.parse_args()
    print(f"{'upgrade':<42}{'said gain (95 %)':>26}  {'verdict':<10}{'stay':>7}{'translate':>11}{'regret':>9}")
    found = []
    for one in rows(given.set, given.pairs):
        found.append(one)
        said = f"{one.gain.value:+.3f} ({one.gain.low:+.3f} to {one.gain.high:+.3f})"
        mark = "   beyond its interval" if one.beyond else ""
        print(
            f"{one.name:<42}{said:>26}  {one.action:<10}{one.stay:>7.3f}{one.translate:>11.3f}{one.regret:>9.4f}{mark}",
            flush=True,
        )
    regret, beyond = np.mean([one.regret for one in found]), sum(one.beyond for one in found)
    best = np.array([max(one.stay, one.translate) for one in found])
    always = {kind: float(np.mean(best - [getattr(one, kind) for one in found])) for kind in (STAY, TRANSLATE)}
    kept = bool(regret <= PROMISED and not beyond)
    print(f"\nmean regret of the verdict {regret:.4f}", end="; ")
    print(f"of always staying {always[STAY]:.4f}, of always translating {always[TRANSLATE]:.4f}")
    print(f"wrong by more than its interval: {beyond} of {len(found)}")
    print(f"promised: mean regret of at most {PROMISED}, none beyond its interval: {'met' if kept else 'NOT MET'}")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
