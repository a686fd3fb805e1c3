"""Run every benchmark: ``python -m benchmarks``; the exit code says whether every promise was kept.

``python -m benchmarks.bytes`` is not among them: it takes hours; nor is ``benchmarks.stores``, which compares no speed.
Each runs in a process of its own: the losses are measured on one thread, the rest on all of them.
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
        "relevance",
        "advice",
        "diagnose",
        "scale",
        "heads",
        "waiting",
    )
]
raise SystemExit(max(codes))
