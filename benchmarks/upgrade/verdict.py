"""``python -m benchmarks.upgrade.verdict``: what the verdict says between staying and translating, and what is true.

For each ordered pair of three models, on two sets, with 500, 1,000 and 3,000 pairs: `evaluate_upgrade` sees the store,
the pairs and judged queries that are not of the test part, and `verdict_of` says stay or translate. Then both are
scored on the test part. Regret is what the better of the two scores more there than what was recommended. A row is
marked where the verdict was wrong by more than its interval: where the regret is larger than the interval of the gain
allows.

What is required: a mean regret of at most 0.01, and no row that is wrong by more than its interval.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.upgrade.cases import DATA, PAIRS, Case, cases, scores, test_queries, vectors
from firstk._base.atomic_file import atomic_file
from firstk.data import load_banking77, load_scifact
from firstk.data.folder import data_folder
from firstk.evaluation.upgrade import UpgradeData, evaluate_upgrade, verdict_of
from firstk.evaluation.upgrade.records import STAY, TRANSLATE

PROMISED = 0.01
METRIC = {"scifact": "ndcg@10", "banking77": "1nn_accuracy"}
QUERIES = {"scifact": ("retrieval-scifact/scifact", "Q"), "banking77": ("banking77/banking77", "X_test")}


@dataclass(frozen=True)
class Row:
    """One upgrade: the gain that was expected of translating, what was said, and scores of the test part."""

    gain: float
    low: float
    high: float
    action: str
    method: str
    stay: float
    translate: float

    @property
    def regret(self) -> float:
        """What the better of both scores more than what was recommended."""
        return max(self.stay, self.translate) - (self.stay if self.action == STAY else self.translate)

    @property
    def beyond(self) -> bool:
        """Whether the verdict was wrong by more than its interval allows."""
        return self.regret > max(self.high if self.action == STAY else -self.low, 0.0)


def known_part(case: Case) -> UpgradeData:
    """Return what is known of an upgrade: the store, the pairs, and judged queries that are not of the test part."""
    (store, asked), (store_new, asked_new) = (
        (vectors(case.data, model)[0], _queries(case.data, model)) for model in (case.old, case.new)
    )
    rest = np.setdiff1d(np.arange(len(asked)), test_queries()[case.data])
    rows = np.sort(case.rows)
    return UpgradeData(
        store, store_new[rows], rows, asked[rest], asked_new[rest], _judged(case.data, rest), metric=METRIC[case.data]
    )


def _queries(data: str, model: str) -> np.ndarray:
    """Return the vectors of all queries of a set."""
    file, name = QUERIES[data]
    with np.load(data_folder() / f"{file}_{model}.npz") as arrays:
        return arrays[name].astype(np.float32)


def _judged(data: str, queries: np.ndarray) -> np.ndarray:
    """Return judgements of some queries, numbered from 0; of Banking77, rows of a query's own intent are relevant."""
    if data == "banking77":
        sets = load_banking77()
        query, document = np.nonzero(sets.y_test[queries][:, None] == sets.y_train[None, :])
        return np.column_stack([query, document, np.ones(len(query), dtype=np.int64)])
    sets = load_scifact()
    table = np.concatenate([sets.judgements_train, sets.judgements_test])
    table = table[np.isin(table[:, 0], queries)]
    return np.column_stack([np.searchsorted(queries, table[:, 0]), table[:, 1:]])


def row(case: Case) -> Row:
    """Let the verdict be made without the test part, and score both options on it."""
    result = evaluate_upgrade(known_part(case), methods=("auto",), re_embedding=False, learning=False)
    verdict = verdict_of(result.report)
    expected = result.report.pools[0].find(TRANSLATE)
    assert expected is not None
    assert expected.gain is not None
    store, queries = vectors(case.data, case.old)
    translated = result.alignment.encode_old(store), result.alignment.encode_new(vectors(case.data, case.new)[1])
    return Row(
        expected.gain.value,
        expected.gain.low,
        expected.gain.high,
        verdict.action,
        result.report.method,
        float(scores(case.data, store, queries).mean()),
        float(scores(case.data, *translated).mean()),
    )


def line(title: str, found: Row) -> str:
    """Return one row of the table."""
    said = f"{found.gain:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
    mark = "  beyond its interval" if found.beyond else ""
    return (
        f"{title:<40}{said:>26}  {found.action:<10}{found.stay:>7.3f}{found.translate:>11.3f}{found.regret:>9.4f}  "
        f"{found.method}{mark}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, print a row for each upgrade, and return whether what is required holds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upgrade.verdict", description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA, help="sets of texts")
    parser.add_argument("--pairs", nargs="+", type=int, default=PAIRS, help="numbers of pairs")
    parser.add_argument("--results", type=Path, help="a JSON file to keep results in, and to go on from")
    asked = parser.parse_args(arguments)
    return run(tuple(asked.data), tuple(asked.pairs), asked.results)


def run(data: tuple[str, ...], pairs: tuple[int, ...], results: Path | None) -> int:
    """Print the rows of some sets and numbers of pairs, and return whether what is required holds."""
    kept = json.loads(results.read_text()) if results and results.exists() else {}
    print(f"{'upgrade':<40}{'expected gain (95 %)':>26}  {'verdict':<10}{'stay':>7}{'translate':>11}{'regret':>9}")
    found = {}
    for case in cases(data, pairs):
        title = str(case)
        if title not in kept:
            kept[title] = asdict(row(case))
            if results:
                with atomic_file(results, "Results", kinds=(".json",)) as temporary:
                    temporary.write_text(json.dumps(kept, indent=1))
        found[title] = Row(**kept[title])
        print(line(title, found[title]), flush=True)
    return required(list(found.values()))


def required(rows: list[Row]) -> int:
    """Print whether what is required holds; 0 if all of it does."""
    best = np.array([max(one.stay, one.translate) for one in rows])
    regret = {kind: float(np.mean(best - [getattr(one, kind) for one in rows])) for kind in (STAY, TRANSLATE)}
    ours, beyond = float(np.mean([one.regret for one in rows])), sum(one.beyond for one in rows)
    right = sum(one.regret == 0 for one in rows)
    checks = {
        f"mean regret {ours:.4f}, at most {PROMISED} (always staying {regret[STAY]:.4f}, always translating "
        f"{regret[TRANSLATE]:.4f}); right in {right} of {len(rows)} rows": ours <= PROMISED,
        f"wrong by more than its interval in {beyond} of {len(rows)} rows": not beyond,
    }
    for text, held in checks.items():
        print(f"{'held' if held else 'MISSED'}: {text}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
