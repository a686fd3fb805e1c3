"""What the verdict says between staying and translating, and what is true, for a case of `benchmarks.upgrade`.

`evaluate_upgrade` sees the store, the pairs and judged queries that are not of the test part, with its usual methods,
and `verdict_of` says stay or translate, or "undecided", which is to stay until more is known. Then both are scored on
the test part: staying, and the translation that was recommended, method and form. Regret is what the better of the two
scores more there than what the verdict said. A verdict is wrong by more than its interval where the regret is larger
than the interval of the gain allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.upgrade.cases import Case, scores, test_queries, vectors
from benchmarks.upgrade.options import Fits
from firstk import Rows, Search
from firstk.upgrade import UpgradeData, evaluate_upgrade, verdict_of
from firstk.upgrade.evaluate import compared
from firstk.upgrade.records import TRANSLATE
from firstk_papers.datasets import data_folder, load_banking77, load_scifact

QUERIES = {"scifact": ("retrieval-scifact/scifact", "Q"), "banking77": ("banking77/banking77", "X_test")}


@dataclass(frozen=True)
class Row:
    """One upgrade: the gain that was expected of translating, what was said, and scores of the test part."""

    gain: float
    low: float
    high: float
    action: str
    translation: str
    stay: float
    translate: float

    @property
    def regret(self) -> float:
        """What the better of both scores more than what was recommended."""
        return max(self.stay, self.translate) - (self.translate if self.action == TRANSLATE else self.stay)

    @property
    def beyond(self) -> bool:
        """Whether the verdict was wrong by more than its interval allows."""
        return self.regret > max(-self.low if self.action == TRANSLATE else self.high, 0.0)


def known_part(case: Case) -> UpgradeData:
    """Return what is known of an upgrade: the store, the pairs, and judged queries that are not of the test part."""
    (store, asked), (store_new, asked_new) = (
        (vectors(case.data, model)[0], _queries(case.data, model)) for model in (case.old, case.new)
    )
    rest = np.setdiff1d(np.arange(len(asked)), test_queries()[case.data])
    rows = np.sort(case.rows)
    return UpgradeData(store, store_new[rows], rows, _asked(case.data, rest, asked_new[rest], store), asked[rest])


def _queries(data: str, model: str) -> np.ndarray:
    """Return the vectors of all queries of a set."""
    file, name = QUERIES[data]
    with np.load(data_folder() / f"{file}_{model}.npz") as arrays:
        return arrays[name].astype(np.float32)


def _asked(data: str, rows: np.ndarray, queries: np.ndarray, store: np.ndarray) -> Search | Rows:
    """Return some queries with what answers them: rows of the same intent, or those that were judged."""
    if data == "banking77":
        sets = load_banking77()
        return Rows(queries, sets.y_test[rows], reference=Rows(store, sets.y_train))
    sets = load_scifact()
    table = np.concatenate([sets.judgements_train, sets.judgements_test])
    table = table[np.isin(table[:, 0], rows)]
    return Search(queries, store, np.column_stack([np.searchsorted(rows, table[:, 0]), table[:, 1:]]))


def row(case: Case, fits: Fits) -> Row:
    """Let the verdict be made without the test part, and score both options on it."""
    result = evaluate_upgrade(known_part(case), re_embedding=False, learning=False, estimator=fits.estimator)
    report = result.report
    gain = report.cross_fitted_gain or report.pools[0].translation.gain
    assert gain is not None
    store, queries = vectors(case.data, case.old)
    translated = compared(report.translation, result.alignment, store, vectors(case.data, case.new)[1])
    return Row(
        round(gain.value, 5),
        round(gain.low, 5),
        round(gain.high, 5),
        verdict_of(report).action,
        report.translation.form,
        round(float(scores(case.data, store, queries).mean()), 5),
        round(float(scores(case.data, *translated).mean()), 5),
    )
