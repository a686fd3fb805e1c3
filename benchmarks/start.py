"""How long a start takes: the package, its help and what is in a model, beside an interpreter that does nothing.

Each start is a process of its own, as a shell makes it; the best of several counts. Where other programs are running,
the time of the processor says more than that of the clock, and stands beside it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.harness import best_times

NOTHING, NUMPY = "python -c pass", "python -c 'import numpy'"
# What is started, and how many seconds it may take; an import beyond those of the interpreter.
AT_MOST = {"import firstk": 0.03, "firstk --help": 0.3, "firstk info MODEL": 0.5}


def contenders(folder: Path, processor: dict[str, float]) -> dict[str, Callable[[], object]]:
    """Return the starts to be timed in turns; a small model is saved in `folder`.

    The least time of the processor of each is written to `processor`.
    """
    from firstk import PrefixEncoder

    model = folder / "model"
    PrefixEncoder(32).fit(np.random.default_rng(0).standard_normal((2_000, 64))).save(model)
    starts = {
        NOTHING: ["-c", "pass"],
        NUMPY: ["-c", "import numpy"],
        "import firstk": ["-c", "import firstk"],
        "firstk --help": ["-m", "firstk", "--help"],
        "firstk info MODEL": ["-m", "firstk", "info", str(model)],
    }

    def start(name: str, arguments: list[str]) -> Callable[[], object]:
        def once() -> None:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            processor[name] = min(processor.get(name, spent), spent)

        return once

    return {name: start(name, arguments) for name, arguments in starts.items()}


def run() -> bool:
    """Print the times, and tell whether each stays below its limit."""
    processor: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        seconds = best_times(contenders(Path(folder), processor), rounds=9)
    met = True
    print("\n" + " " * 28 + "   clock  processor")
    for name, limit in {NOTHING: None, NUMPY: None, **AT_MOST}.items():
        times = [table[name] - (table[NOTHING] if name == "import firstk" else 0.0) for table in (seconds, processor)]
        kept = limit is None or times[0] <= limit
        met &= kept
        promise = "" if limit is None else f"  at most {limit * 1e3:.0f} ms: {'met' if kept else 'NOT MET'}"
        print(f"  {name:<26} {times[0] * 1e3:5.0f} ms {times[1] * 1e3:7.0f} ms{promise}")
    return met


if __name__ == "__main__":
    raise SystemExit(0 if run() else 1)
