"""What a user waits for, in bare passes: seconds over those of ``X.T @ X`` of 100,000 x 768 float32 in the same run.

    python -m benchmarks.waiting                     all rows, then the choices of "auto", some minutes
    python -m benchmarks.waiting --only "fit_pairs"  rows whose name holds this text
    python -m benchmarks.waiting --only choices      what "auto" chooses beside the exhaustive way
    python -m benchmarks.waiting --processor         times of the processor on one thread: the machine is busy
    python -m benchmarks.waiting --record            add the rows to results/waiting.json (then benchmarks.record)

Closed forms, curves and starts beside their peers follow; ``python -m benchmarks.funnel`` and ``python -m
benchmarks.large_files`` have the rest. Rows and the bare product take turns, and the best of several rounds counts.
"single fits" is the same fit with its settings given as numbers; "of peer" is the time over that of a plain loop in
torch (benchmarks/training.py). Peak memory is that of a process of its own, beyond the data. The choices need the data
folder (FIRSTK_DATA) for all sets but the digits.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.exhaustive_choice import exhaustive_choice
from benchmarks.harness import best_times, peak, peak_memory, reset_peak
from benchmarks.record import Measured, write
from firstk import Fisher, FunnelIndex, PrefixEncoder, Regression, Similarity
from firstk.objectives import NeighborSimilarity, PairSimilarity
from firstk_papers.datasets import MissingDataError

MODULE = "benchmarks.waiting"
ROWS, WIDTH, CLASSES, PAIRS, DOCUMENTS = 100_000, 768, 100, 20_000, 8_000
ROUNDS = 3
BARE = "bare X.T @ X"
MRL, MRL_BANKING = "MRL list in torch, same epochs", "MRL list in torch, Banking77"


@dataclass(frozen=True)
class Row:
    """Something that a user calls, at most how many bare passes it may take, and two others to compare with.

    `single` is the same with settings as numbers; `peer` is something that it must be faster than.
    """

    run: Callable[[], object]
    at_most: float | None = None
    single: str | None = None
    peer: str | None = None


@cache
def mixing(seed: int, largest: float, smallest: float) -> np.ndarray:
    """Return a matrix that turns noise into vectors with a spectrum."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)))[0]
    return (np.geomspace(largest, smallest, WIDTH)[:, None] * turn).astype(np.float32)


@cache
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Return rows with class means, and labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    means = (0.1 * rng.normal(size=(CLASSES, WIDTH))).astype(np.float32)
    return rng.standard_normal((ROWS, WIDTH), dtype=np.float32) @ mixing(1, 1.0, 0.02) + means[y], y


@cache
def pairs(documents: int = PAIRS) -> tuple[np.ndarray, np.ndarray]:
    """Return queries, which are documents with noise, and their documents; with few documents, several queries each."""
    rng = np.random.default_rng(2)
    stored = rng.standard_normal((documents, WIDTH), dtype=np.float32) @ mixing(1, 1.0, 0.02)
    right = stored[np.arange(PAIRS) % documents]
    return right + rng.standard_normal((PAIRS, WIDTH), dtype=np.float32) @ mixing(3, 0.5, 0.1), right


@cache
def codes() -> np.ndarray:
    """Return codes of the rows, 128 coordinates."""
    return PrefixEncoder(128, verbose=False).fit_transform(rows()[0])


@cache
def targets() -> tuple[np.ndarray, np.ndarray]:
    """Return the rows, and 16 targets that are linear in them but for noise."""
    X = rows()[0]
    rng = np.random.default_rng(4)
    mixed = X @ rng.standard_normal((WIDTH, 16), dtype=np.float32)
    return X, (mixed + rng.standard_normal(mixed.shape, dtype=np.float32)).astype(np.float64)


def contenders() -> dict[str, Row]:
    """Everything that is timed, by name."""
    return {
        "reconstruction, 128": Row(lambda: PrefixEncoder(128).fit(rows()[0])),
        "fisher": Row(lambda: PrefixEncoder(objective=Fisher(shrinkage=0.5)).fit(*rows())),
        'fisher, shrinkage="auto"': Row(
            lambda: PrefixEncoder(objective=Fisher(shrinkage="auto")).fit(*rows()), 6.0, "fisher"
        ),
        "regression, 16 targets": Row(lambda: PrefixEncoder(objective=Regression(shrinkage=0.5)).fit(*targets())),
        'regression, shrinkage="auto"': Row(
            lambda: PrefixEncoder(objective=Regression(shrinkage="auto")).fit(*targets()),
            None,
            "regression, 16 targets",
        ),
        "similarity without pairs": Row(lambda: PrefixEncoder(objective="similarity").fit(rows()[0])),
        'similarity without pairs, shrinkage="auto"': Row(
            lambda: PrefixEncoder(objective=Similarity(shrinkage="auto")).fit(rows()[0]),
            None,
            "similarity without pairs",
        ),
        # A fifth of what it took: 11 passes.
        "FunnelIndex.fit, recall 0.99, 128 coordinates": Row(
            lambda: FunnelIndex.fit(codes(), recall=0.99, n_neighbors=10, verbose=False), at_most=2.2
        ),
        "fit_pairs, settings given": Row(lambda: _similarity(0.5, 0.5).fit_pairs(*pairs())),
        "fit_pairs, defaults": Row(
            lambda: PrefixEncoder(objective="similarity").fit_pairs(*pairs()), 15.0, "fit_pairs, settings given"
        ),
        f"fit_pairs, defaults, {DOCUMENTS:,} documents": Row(
            lambda: PrefixEncoder(objective="similarity").fit_pairs(*pairs(DOCUMENTS)),
            None,
            "fit_pairs, settings given",
        ),
    } | _training()


def _training() -> dict[str, Row]:
    from benchmarks import training

    def made() -> tuple[np.ndarray, np.ndarray]:
        X, y = rows()
        return X[: training.ROWS], y[: training.ROWS]

    def loop(data: Callable[[], tuple[np.ndarray, np.ndarray]], d: int) -> Row:
        return Row(lambda: training.mrl_loop(*data(), d, training.epochs_of(len(data()[0])), 128))

    found = {
        MRL: loop(made, 64),
        "classification, 50,000 rows, defaults": Row(
            lambda: PrefixEncoder(64, objective="classification", random_state=0).fit(*made()), 25.0, peer=MRL
        ),
    }
    try:
        training.banking()
    except MissingDataError:
        return found
    return found | {
        MRL_BANKING: loop(training.banking, 128),
        "classification, Banking77, defaults": Row(
            lambda: PrefixEncoder(objective="classification", random_state=0).fit(*training.banking()), peer=MRL_BANKING
        ),
    }


def _similarity(shrinkage: float, neighbor_weight: float) -> PrefixEncoder:
    return PrefixEncoder(objective=Similarity(shrinkage=shrinkage, neighbor_weight=neighbor_weight))


def _bare() -> object:
    X = rows()[0]
    return X.T @ X


def run(only: str, rounds: int, memory: bool, clock: Callable[[], float]) -> list[Measured]:
    """Print each row in bare passes and in single fits, and return them.

    What is "auto" may take five single fits.
    """
    wanted = {name: row for name, row in contenders().items() if only in name}
    work: dict[str, Callable[[], object]] = {BARE: _bare} | {name: row.run for name, row in wanted.items()}
    for row in wanted.values():  # a single fit takes its turn too
        for other in (row.single, row.peer):
            if other is not None:
                work.setdefault(other, contenders()[other].run)
    for prepare in (rows, pairs, targets, lambda: pairs(DOCUMENTS)):
        prepare()
    seconds = best_times(work, rounds, clock)
    print(f"\n{BARE}, {ROWS:,} x {WIDTH} float32: {seconds[BARE]:.2f} s")
    print(f"  {'':<42}{'seconds':>8}{'passes':>8}{'goal':>8}{'single fits':>13}{'of peer':>9}{'peak MiB':>10}")
    found = []
    for name, row in wanted.items():
        passes = seconds[name] / seconds[BARE]
        single = seconds[name] / seconds[row.single] if row.single else None
        peer = seconds[name] / seconds[row.peer] if row.peer else None
        singles, of_peer = ("" if share is None else f"{share:.2f}" for share in (single, peer))
        goal = "" if row.at_most is None else f"{row.at_most:g}"
        held = f"{peak_memory(MODULE, name):.0f}" if memory else ""
        promises = {
            "passes": (passes, row.at_most),
            "single fits": (single or 0.0, 5.0 if row.single else None),
            "times the peer": (peer or 0.0, 1.0 if row.peer else None),
        }
        asked = {unit: (value, most) for unit, (value, most) in promises.items() if most is not None}
        kept = all(value <= most for value, most in asked.values())
        line = f"  {name:<42}{seconds[name]:>8.2f}{passes:>8.1f}{goal:>8}{singles:>13}{of_peer:>9}{held:>10}"
        print(line if kept else f"{line}  NOT MET", flush=True)
        promised = ", ".join(f"at most {most:g} {unit}" for unit, (_, most) in asked.items())
        facts = {"single_fits": single} if single is not None else {} if peer is None else {"of_peer": peer}
        size = float(held) if held else None
        found.append(
            Measured(name, seconds[name], "", passes, "bare passes", promised, kept if asked else None, size, facts)
        )
    return found


# -- rows of other benchmarks ----------------------------------------------------------------------------------------


def closed_forms(rounds: int, clock: Callable[[], float]) -> list[Measured]:
    """Time PCA and LDA beside scikit-learn's."""
    from benchmarks import core

    runs = core.contenders(*core.images())
    found = []
    for claim, most, peer in ((core.RECONSTRUCTION, 1.0, "PCA(covariance_eigh)"), (core.FISHER, 4.0, "LDA(eigen)")):
        seconds = best_times({name: runs[name] for name in (claim.ours, peer)}, rounds, clock)
        ratio = seconds[peer] / seconds[claim.ours]
        size = peak_memory(core.MODULE, claim.ours)
        row = Measured(
            f"{claim.ours}, 70,000 x 784 float32", seconds[claim.ours], f"the speed of scikit-learn's {peer}", ratio,
            "x", f"at least {most:g}x", ratio >= most, size,
        )  # fmt: skip
        print(f"  {row.name:<46}{row.seconds:>8.2f} s  {ratio:.2f}x {row.peer}, {size:.0f} MiB", flush=True)
        found.append(row)
    return found


def curve_rows(rounds: int, clock: Callable[[], float]) -> list[Measured]:
    """Time the larger curve of `benchmarks.curves`, in bare passes."""
    from benchmarks import curves

    runs = curves.contenders()
    runs[curves.CURVE]()  # what is compiled on first use is no part of the work
    seconds = best_times({name: runs[name] for name in (curves.BARE, curves.CURVE)}, rounds, clock)
    passes = seconds[curves.CURVE] / seconds[curves.BARE]
    name = f"1-NN curve, {curves.QUERIES:,} against {curves.ROWS:,} rows, all {curves.LENGTHS} lengths"
    print(f"  {name:<56}{seconds[curves.CURVE]:>8.2f} s{passes:>8.1f} passes", flush=True)
    goal, met = f"at most {curves.PASSES:g} passes", passes <= curves.PASSES
    return [Measured(name, seconds[curves.CURVE], "", passes, "bare passes", goal, met)]


def starts() -> list[Measured]:
    """Time starts of the package and the command, by the clock."""
    import tempfile
    from pathlib import Path

    from benchmarks import start

    with tempfile.TemporaryDirectory() as folder:
        seconds = best_times(start.contenders(Path(folder), {}), rounds=9)
    found = []
    for name, most in start.AT_MOST.items():
        taken = seconds[name] - (seconds[start.NOTHING] if name == "import firstk" else 0.0)
        print(f"  {name:<46}{taken * 1e3:>6.0f} ms", flush=True)
        found.append(Measured(name, taken, goal=f"at most {most:g} s", met=taken <= most))
    return found


# -- choices ---------------------------------------------------------------------------------------------------------


def _sets() -> dict[str, Callable[[], tuple[Any, Mapping[str, np.ndarray]]]]:
    from firstk.data import load_digits
    from firstk_papers.datasets import load_banking77, load_scifact, load_stsb

    def scifact() -> tuple[Any, Mapping[str, np.ndarray]]:
        sets = load_scifact()
        found = sets.judgements_train[sets.judgements_train[:, 2] > 0]
        return PairSimilarity(), {"left": sets.queries[found[:, 0]], "right": sets.documents[found[:, 1]]}

    def banking() -> dict[str, np.ndarray]:
        sets = load_banking77()
        return {"X": sets.X_train, "y": sets.y_train}

    def banking_pairs() -> tuple[Any, Mapping[str, np.ndarray]]:
        X, y = banking().values()
        order = np.argsort(y, kind="stable")
        before, after = order[:-1], order[1:]
        same = y[before] == y[after]
        return PairSimilarity(), {"left": X[after[same]], "right": X[before[same]]}

    def digits() -> dict[str, np.ndarray]:
        sets = load_digits()
        return {"X": sets.X_train, "y": sets.y_train}

    return {
        "Banking77, fisher": lambda: (Fisher("auto"), banking()),
        "Banking77, neighbors": lambda: (NeighborSimilarity("auto"), {"X": banking()["X"]}),
        "Banking77, pairs of a class": banking_pairs,
        "STS benchmark, scored pairs": lambda: (
            PairSimilarity(),
            dict(zip(("left", "right", "scores"), load_stsb().part("train"), strict=True)),
        ),
        "SciFact, judged pairs": scifact,
        "SciFact, neighbors": lambda: (NeighborSimilarity("auto"), {"X": load_scifact().documents}),
        "digits, fisher": lambda: (Fisher("auto"), digits()),
        "digits, neighbors": lambda: (NeighborSimilarity("auto"), {"X": digits()["X"]}),
    }


def choices() -> bool:
    """Print what "auto" chooses beside the exhaustive way; True where they agree, or tie within a standard error."""
    print('\nWhat "auto" chooses (shrinkage, weight of neighbors), beside all candidates on all folds')
    met = True
    for name, load in _sets().items():
        try:
            objective, columns = load()
        except MissingDataError:
            print(f"  {name:<30} skipped: the data are not here")
            continue
        estimator = PrefixEncoder(objective=objective)
        if "left" in columns:
            estimator.fit_pairs(columns["left"], columns["right"], columns.get("scores"))
        else:
            estimator.fit(columns["X"], columns.get("y"))
        ours, slow = estimator.objective_, exhaustive_choice(objective, columns)
        loss, error = slow.loss(ours)
        kept = ours == slow.chosen or abs(loss) <= error
        met &= kept
        verdict = "same" if ours == slow.chosen else f"loses {loss:.4f}, error {error:.4f}"
        print(
            f"  {name:<30} {_settings(ours)}  {_settings(slow.chosen)}  {verdict}{'' if kept else '  NOT MET'}",
            flush=True,
        )
    return met


def _settings(objective: Any) -> str:
    weight = getattr(objective, "neighbor_weight", None)
    return f"({objective.shrinkage}{'' if weight is None else f', {weight}'})"


def _print_peak(name: str) -> None:
    work = contenders()[name].run
    for prepare in (rows, pairs, targets, lambda: pairs(DOCUMENTS)):
        prepare()
    X, y = rows()
    PrefixEncoder(objective=Fisher(0.5)).fit(X[:2000, :50], y[:2000])  # imports and threads are not what is measured
    _similarity(0.5, 0.5).fit_pairs(X[:2000, :50], X[2000:4000, :50])
    gc.collect()
    before = reset_peak()
    work()
    print(peak() - before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help='part of the name of a row, or "choices"')
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-memory", action="store_true", help="do not measure peak memory")
    parser.add_argument("--section", nargs="*", help='some of "fits", "closed forms", "curves", "start"')
    parser.add_argument("--processor", action="store_true", help="times of the processor, on one thread")
    parser.add_argument("--record", action="store_true", help="add the rows to results/waiting.json")
    parser.add_argument("--peak-of", help="print the peak memory of one row in this process")
    arguments = parser.parse_args()
    if arguments.peak_of:
        _print_peak(arguments.peak_of)
        raise SystemExit(0)
    timer = time.process_time if arguments.processor else time.perf_counter
    parts: dict[str, Callable[[], list[Measured]]] = {
        "fits": lambda: run(arguments.only, arguments.rounds, not arguments.no_memory, timer),
        "closed forms": lambda: closed_forms(2 * arguments.rounds, timer),
        "curves": lambda: curve_rows(arguments.rounds, timer),
        "start": starts,
    }
    kept = True
    with threadpool_limits(1 if arguments.processor else None, "blas"):
        for section, measure in parts.items():
            asked = arguments.section or (["fits"] if arguments.only else list(parts))
            if arguments.only == "choices" or section not in asked:
                continue
            measured = measure()
            kept &= all(row.met is not False for row in measured)
            if arguments.record:
                write(section, measured, "processor" if arguments.processor and section != "start" else "clock")
    if arguments.only == "choices" or not (arguments.only or arguments.section):
        kept &= choices()
    raise SystemExit(0 if kept else 1)
