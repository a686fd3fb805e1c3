"""Sentence embeddings: what short prefixes keep, and what the loss over all of them costs.

    python -m benchmarks.text                   three tables, some minutes
    python -m benchmarks.text --only scifact    one of: sts, loss, scifact

Needs the data folder (FIRSTK_DATA) for `sts` and `scifact`: embeddings of all-MiniLM-L6-v2, 384 coordinates. Settings
are chosen on training and dev parts, never on test. A promise that is not kept makes the exit code 1.
"""

# ruff: noqa: E402 - the number of threads is set before anything that reads it is imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
from collections.abc import Callable

from benchmarks import text_loss, text_scifact, text_sts

TABLES: dict[str, Callable[[], bool]] = {
    "sts": text_sts.table,
    "loss": text_loss.table,
    "scifact": text_scifact.table,
}


def main() -> int:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TABLES)
    only = parser.parse_args().only
    kept = [run() for name, run in TABLES.items() if only in (None, name)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    raise SystemExit(main())
