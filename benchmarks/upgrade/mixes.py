"""A store of which a part is embedded anew: how its two kinds of rows are calibrated, and in which order it grows.

    python -m benchmarks.upgrade.mixes                        some minutes on one core

For each ordered pair of MiniLM, potion and mpnet on SciFact, with 3,000 pairs of which 1,000 are held out: nDCG@10
among the held-out rows, by queries that are not of the test part. 20 and 50 % of the rows are embedded anew, and the
rest is translated. Scores of translated rows are taken as they are, matched to the best new scores
(`Calibration.fit`), or regressed on new ones. Rows are chosen by `worth`, at random, or by what their translation
misses, which nobody knows beforehand.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.upgrade.cases import Case, cases
from benchmarks.upgrade.verdict import known_part
from firstk import PrefixAlignment
from firstk._base.rows import unit_rows
from firstk.upgrade.data import Searches, searches_in, split_pairs
from firstk.upgrade.mixing import Calibration, asked_for, cosines, mixed_queries, mixed_rows, worth

PAIRS, SHARES = 3000, (0.2, 0.5)


def regressed(queries: np.ndarray, translated: np.ndarray, new: np.ndarray) -> Calibration:
    """Return the least-squares line from translated scores to new ones, over the fifty best of each query."""
    before, after = (unit_rows(queries) @ unit_rows(rows).T for rows in (translated, new))
    best = np.argsort(-np.maximum(before, after), axis=1)[:, :50]
    x, y = (np.take_along_axis(scores, best, axis=1).ravel() for scores in (before, after))
    slope = np.cov(x, y)[0, 1] / x.var()
    return Calibration(float(y.mean() - slope * x.mean()), float(slope))


CALIBRATIONS = {"as they are": lambda *_: Calibration(), "matched": Calibration.fit, "regressed": regressed}


def mixed(searches: Searches, alignment: PrefixAlignment, order: str, calibration: str, share: float) -> float:
    """Score a mix, calibrated and with its rows chosen by the half of the queries that is not scored."""
    old, new = (searches.document_vectors(model) for model in ("old", "new"))
    queries, translated = searches.query_vectors("new"), alignment.old_to_new(old)
    values = np.empty(len(queries))
    halves = [np.arange(start, len(queries), 2) for start in (0, 1)]
    for part, other in (halves, halves[::-1]):
        keys = {
            "worth": lambda other=other: worth(alignment, old, asked_for(old, searches.query_vectors("old")[other])),
            "lost on the way": lambda: worth(alignment, old),
            "random": lambda: np.random.default_rng(0).random(len(old)),
            "missed (unknown)": lambda: 1 - cosines(translated, new),
        }[order]()
        anew = np.zeros(len(old), dtype=bool)
        anew[np.argsort(-keys, kind="stable")[: round(share * len(old))]] = True
        rows = mixed_rows(translated, new, anew, CALIBRATIONS[calibration](queries[other], translated, new))
        values[part] = searches.part(part).scores(rows, mixed_queries(queries[part]))[:, 0]
    return float(values.mean())


def main() -> None:
    """Print a table for each upgrade, and the means over all."""
    found: dict[tuple[str, str, float], list[float]] = {}
    upgrades: list[Case] = cases(("scifact",), (PAIRS,))
    for case in upgrades:
        data = known_part(case)
        kept, held = split_pairs(PAIRS, 0)
        searches = searches_in(data, np.sort(data.paired[held]))
        assert searches is not None
        alignment = PrefixAlignment(verbose=False).fit(data.old[data.paired[kept]], data.new[kept])
        for order, calibration in (
            *(("worth", calibration) for calibration in CALIBRATIONS),
            *((order, "matched") for order in ("lost on the way", "random", "missed (unknown)")),
        ):
            for share in SHARES:
                score = mixed(searches, alignment, order, calibration, share)
                found.setdefault((order, calibration, share), []).append(score)
        print(f"{case}: {alignment.method_.name}, {len(searches.queries)} queries", flush=True)
    names = " ".join(f"{case.old[:3]}>{case.new[:3]}" for case in upgrades)
    print(f"\n{'rows by':<18}{'scores':<13}{'anew':>5}  {names}   mean")
    for (order, calibration, share), scores in found.items():
        figures = " ".join(f"{score:7.3f}" for score in scores)
        print(f"{order:<18}{calibration:<13}{share:>5.0%}  {figures} {np.mean(scores):7.3f}")


if __name__ == "__main__":
    main()
