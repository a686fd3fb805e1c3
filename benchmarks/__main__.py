"""Run every benchmark: ``python -m benchmarks``; the exit code says whether every promise was kept."""

from benchmarks import core, curves

raise SystemExit(0 if all([core.run(), curves.run()]) else 1)
