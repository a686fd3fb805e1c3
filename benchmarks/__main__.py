"""Run the benchmarks of speed and advice, some hours: ``python -m benchmarks``, or some of them by name.

The exit code says whether every promise was kept. ``bytes``, ``evidence``, ``upgrade`` and ``stores`` are commands of
their own: they take long, or compare no speed. Each benchmark runs in a process of its own: losses are measured on one
thread, the rest on all of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

NAMES = (
    "start",
    "core",
    "curves",
    "losses",
    "authors",
    "files",
    "retrieval",
    "text",
    "labels",
    "relevance",
    "advice",
    "diagnose",
    "scale",
    "heads",
    "waiting",
    "check",
)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no benchmark is called {', '.join(unknown)}: choose from {', '.join(NAMES)}")
    raise SystemExit(
        max(subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode for name in names)
    )
