"""Quality against bytes per vector: ``python -m benchmarks.bytes``.

Recall@10 of the exact cosine neighbors of the raw vectors, and nDCG@10 or 1-NN accuracy where judgements or labels
exist, at 8 to 96 bytes per vector. Bytes count every number that is stored for a vector; codebooks are reported apart.

- All contenders are fitted on the stored rows. Queries are other rows, and stay float32.
- A contender with settings (bits, dimensions, normalized or not) has them chosen for each half of the queries on the
  other half, among all that need no more bytes. Ours has nothing to choose: one fit, one string, cut.
- Intervals are of differences, by the bootstrap over queries.
- ``--speed`` measures training, encoding and search on 1,000,000 x 768 synthetic rows instead; run it alone.

Scores of earlier runs are read from ``--cache``, for each query, or from the record ``--earlier``, means alone. The
exit code is 1 where a promise is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and faiss: every contender gets one thread

from benchmarks.bytes import faiss_peers, judged, other_peers, ours, tables
from benchmarks.bytes.cases import DATA, MODELS, Case, cases
from benchmarks.bytes.claims import checked
from benchmarks.bytes.results import Line, default_cache, earlier_lines, kept_at, scored, table
from benchmarks.bytes.settings import Setting

QUICK = (8, 16, 32)
Lines: TypeAlias = dict[str, dict[int, Line]]


def settings_of(case: Case, given: argparse.Namespace) -> tuple[list[Setting], set[tuple[str, int]]]:
    """Return the settings to run on a case, and the contenders and bytes that lack one of theirs."""
    asked, lacking = [], set()
    for module in (ours, faiss_peers, other_peers):
        for setting in module.settings(case):
            name = f"{setting.family}, {setting.name}"
            left_out = given.only is not None and not any(part in name for part in given.only)
            left_out |= given.quick and (setting.slow or setting.bytes not in QUICK)
            left_out |= given.cached and setting.cached and not kept_at(case, setting, given.cache).exists()
            if left_out:
                lacking.add((setting.family, setting.bytes))
            else:
                asked.append(setting)
    return asked, lacking


def measured(given: argparse.Namespace) -> bool:
    """Run the cases asked for, print and keep the tables, and return whether no promise was missed."""
    import faiss

    faiss.omp_set_num_threads(1)
    for name in other_peers.missing():
        print(f"{name} is not installed: left out (pip install {name.replace('_', '-')})", file=sys.stderr)
    earlier = json.loads(given.earlier.read_text("utf-8")) if given.earlier else {}
    recall, other, records, raw = {}, {}, {}, {}
    for name, load in cases(given.data, given.models):
        case = load()
        asked, lacking = settings_of(case, given)
        results = [scored(case, setting, given.cache) for setting in asked]
        recall[name] = _with_earlier(table(case, results, lacking), case, "recall@10", earlier)
        records[f"{name} recall@10"] = tables.record(case, "recall@10", recall[name])
        print(f"\n{tables.printed(f'{name}, recall@10', recall[name])}", flush=True)
        if case.other_measure:
            other[name] = _with_earlier(table(case, results, lacking, "other"), case, str(case.other_measure), earlier)
            records[f"{name} {case.other_measure}"] = tables.record(case, case.other_measure, other[name])
            print(f"\n{tables.printed(f'{name}, {case.other_measure}', other[name])}", flush=True)
        raw[name] = tables.raw_record(case)
        if given.record and case.model == "minilm":
            records[f"{name} recall@10"]["every_length"] = ours.every_length(case)
    print(f"\n{tables.others_ahead(records.values())}\n")
    if not given.quick and "minilm" in given.models and {"banking77", "scifact"} <= set(given.data):
        learned = judged.tables()
        print("\n\n".join(judged.printed(one) for one in learned.values()), end="\n\n")
        records.update(learned)
    claims = list(checked(recall, other))
    for one in claims:
        if one.held is not None:
            print(f"{'held' if one.held else 'MISSED'}: {one.claim}: {one.found}")
    if given.record:
        found = {one.claim: one.record() for one in claims if one.held is not None}
        tables.write(given.record, {**records, "raw vectors": raw, "claims": found})
    return all(one.held is not False for one in claims)


def _with_earlier(lines: Lines, case: Case, measure: str, earlier: Mapping[str, Any]) -> Lines:
    """Return lines with those of others that an earlier run has left and this one has not."""
    for one in earlier_lines(len(case.queries), earlier.get(f"{case.name} {measure}", {})):
        lines.setdefault(one.family, {}).setdefault(one.bytes, one)
    return {family: dict(sorted(found.items())) for family, found in lines.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 where a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Banking77 in MiniLM, 8, 16 and 32 bytes, no slow ones")
    parser.add_argument("--data", type=_names(DATA), default=DATA, help=f"of {', '.join(DATA)}")
    parser.add_argument("--models", type=_names(MODELS), default=MODELS, help=f"of {', '.join(MODELS)}")
    parser.add_argument("--only", type=lambda text: text.split(","), help="those whose names hold one of these parts")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder of scores of earlier runs")
    parser.add_argument("--cached", action="store_true", help="leave out others whose scores are not in the cache")
    parser.add_argument("--earlier", type=Path, help="record of an earlier run, for others that this one leaves out")
    parser.add_argument("--record", type=Path, help=f"JSON file to add the tables to, such as {tables.RECORD.name}")
    parser.add_argument("--speed", action="store_true", help="time and memory on 1,000,000 x 768 instead")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of --speed")
    parser.add_argument("--processor", action="store_true", help="times of the processor, on a busy machine")
    given = parser.parse_args(arguments)
    if given.quick:
        given.data, given.models = ("banking77",), ("minilm",)
    if given.speed:
        from benchmarks.bytes import speed

        clock = time.process_time if given.processor else time.perf_counter
        return 0 if speed.measured(given.rows, given.record, clock) else 1
    return 0 if measured(given) else 1


def _names(allowed: tuple[str, ...]):
    def read(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        if unknown := [name for name in names if name not in allowed]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}. Known: {', '.join(allowed)}")
        return names

    return read


if __name__ == "__main__":
    sys.exit(main())
