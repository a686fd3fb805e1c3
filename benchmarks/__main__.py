"""Run every benchmark: ``python -m benchmarks``."""

from benchmarks import core

raise SystemExit(0 if core.run() else 1)
