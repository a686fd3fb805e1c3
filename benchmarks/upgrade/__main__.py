"""``python -m benchmarks.upgrade``: stay, translate or re-embed; new queries against a store of old vectors.

For each ordered pair of three models, on two sets, with 500, 1,000 and 3,000 pairs: the score of every option on test
queries, with bootstrap intervals. Settings are chosen on held-out pairs. Results are kept in a file while the
benchmark runs, so that it can go on where it was stopped. ``python -m benchmarks.upgrade.scale`` has the timings.

What is required: "auto" at most 0.01 behind the best of Procrustes, ridge and low-rank affine in every row, and ahead
on average; its code at half of its width keeps 95 % of its score in two thirds of the rows. And of the verdict, what
`benchmarks.upgrade.verdict` says.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.upgrade import verdict
from benchmarks.upgrade.cases import DATA, PAIRS, cases, scores
from benchmarks.upgrade.options import FIXED, options
from firstk._base.atomic_file import atomic_file

PEERS = ("procrustes", "ridge", "low_rank_affine")
BEHIND, KEPT, ROWS_KEPT = 0.01, 0.95, 2 / 3
RESAMPLES = 1000
COLUMNS = {
    "stay": "stay", "procrustes": "Procrustes", "ridge": "ridge", "ridge of queries": "ridge (q)",
    "procrustes_ridge": "to rotation", "reduced_rank": "red. rank", "cca": "CCA", "lambda_orthogonal": "lambda",
    "low_rank_affine": "low rank", "low_rank_affine of queries": "low rank (q)", "residual_mlp": "MLP", "auto": "auto",
    "auto, half": "half", "re-embed": "re-embed",
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, print the table, and return whether the requirements hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upgrade", description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA, help="sets of texts")
    parser.add_argument("--pairs", nargs="+", type=int, default=PAIRS, help="numbers of pairs")
    parser.add_argument("--upgrades", nargs="+", metavar="OLD:NEW", help="pairs of models, such as minilm:mpnet")
    parser.add_argument("--fixed", nargs="*", choices=FIXED, default=FIXED, help="methods without settings to choose")
    parser.add_argument("--results", type=Path, help="a JSON file to keep results in, and to go on from")
    asked = parser.parse_args(arguments)
    results = json.loads(asked.results.read_text()) if asked.results and asked.results.exists() else {}
    wanted = [
        case
        for case in cases(tuple(asked.data), tuple(asked.pairs))
        if asked.upgrades is None or f"{case.old}:{case.new}" in asked.upgrades
    ]
    for case in wanted:
        if str(case) not in results:
            results[str(case)] = {
                name: _summary(scores(case.data, store, queries))
                for name, store, queries in options(case, tuple(asked.fixed))
            }
            print(_line(str(case), results[str(case)]), flush=True)
            if asked.results:
                with atomic_file(asked.results, "Results", kinds=(".json",)) as temporary:
                    temporary.write_text(json.dumps(results, indent=1))
    shown = {str(case): results[str(case)] for case in wanted}
    print(table(shown))
    held = required(shown)
    kept = None if asked.results is None else asked.results.with_suffix(".verdict.json")
    return max(held, verdict.run(tuple(asked.data), tuple(asked.pairs), kept))


def _summary(values: np.ndarray) -> list[float]:
    """Return the mean score and its 95 % bootstrap interval over queries."""
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return [float(values.mean()), float(low), float(high)]


def named(options: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return scores by option, with "auto" without what it chose."""
    return {"auto" if name.startswith("auto: ") else name: value for name, value in options.items()}


def _line(title: str, found: dict[str, list[float]]) -> str:
    return f"{title}: " + ", ".join(f"{name} {value[0]:.3f}" for name, value in found.items())


def table(results: dict[str, dict[str, list[float]]]) -> str:
    """Return a table in Markdown: one row a case, the interval below stay, auto and re-embed."""
    rows = {case: named(found) for case, found in results.items()}
    present = [name for name in COLUMNS if any(name in row for row in rows.values())]
    lines = [
        "| " + " | ".join(["case", *(COLUMNS[name] for name in present)]) + " |",
        "|---" * (len(present) + 1) + "|",
    ]
    for case, row in rows.items():
        cells = []
        for name in present:
            if name not in row:
                cells.append("")
                continue
            mean, low, high = row[name]
            cells.append(
                f"{mean:.3f} ({low:.3f} to {high:.3f})" if name in ("stay", "auto", "re-embed") else f"{mean:.3f}"
            )
        lines.append("| " + " | ".join([case, *cells]) + " |")
    return "\n".join(lines)


def required(results: dict[str, dict[str, list[float]]]) -> int:
    """Print whether what is required holds; 0 if all of it does."""
    rows = [named(found) for found in results.values()]
    behind = np.array([max(row[peer][0] for peer in PEERS if peer in row) - row["auto"][0] for row in rows])
    peers = {peer: float(np.mean([row[peer][0] for row in rows])) for peer in PEERS if all(peer in row for row in rows)}
    best, ours = max(peers.values()), float(np.mean([row["auto"][0] for row in rows]))
    kept = np.array([row["auto, half"][0] / max(row["auto"][0], 1e-9) for row in rows])
    checks = {
        f"auto within {BEHIND} of the best of {', '.join(peers)}: {(behind <= BEHIND).sum()} of {len(rows)} rows, at "
        f"worst {behind.max():.4f} behind, on average {-behind.mean():+.4f}": bool((behind <= BEHIND).all()),
        f"auto on average {ours:.4f}, the best peer {best:.4f}": ours > best,
        f"half of the code keeps {KEPT:.0%} in {(kept >= KEPT).sum()} of {len(rows)} rows": (kept >= KEPT).mean()
        >= ROWS_KEPT,
    }
    for text, held in checks.items():
        print(f"{'held' if held else 'MISSED'}: {text}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
