"""Run every benchmark: ``python -m benchmarks``; the exit code says whether every promise was kept.

``python -m benchmarks.bytes`` and ``python -m benchmarks.upgrade`` are not among them: they take hours; nor is
``benchmarks.stores``, which compares no speed. Each runs in a process of its own: losses are measured on one thread,
the rest on all of them.
"""

import subprocess
import sys

codes = [
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
    for name in (
        "start",
        "core",
        "curves",
        "losses",
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
]
raise SystemExit(max(codes))
