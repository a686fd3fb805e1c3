"""Run every benchmark: ``python -m benchmarks``; the exit code says whether every promise was kept.

Each runs in a process of its own: the losses are measured on one thread, the rest on all of them.
"""

import subprocess
import sys

codes = [
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
    for name in (
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
        "waiting",
    )
]
raise SystemExit(max(codes))
