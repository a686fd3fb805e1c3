"""Run the numeric tests under the arithmetic of other processors: ``make test-kernels``.

The last bits of a product depend on the kernels that a library picks for the processor it finds. Most libraries let
them be chosen by an environment variable, so that one machine can stand for many. Each variant is one run of pytest in
a process of its own; a variant whose name is not known to the installed library, or that this processor cannot run, is
left out and said to be.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The numeric part of the suite; of the orderings, those with a closed form.
NUMERIC = (
    "tests/properties",
    "tests/processors",
    "tests/moments/test_moments.py",
    "tests/_base/test_linalg.py",
    "tests/metrics",
    "tests/objectives",
    "tests/orderings/test_nonuniform_l2.py",
    "tests/orderings/test_rotation.py",
    "tests/orderings/test_sparse_prefix.py",
    "tests/orderings/test_uniform_l2.py",
    "tests/orderings/test_unordered.py",
    "tests/parity",
    "tests/moments/test_pairs.py",
    "tests/moments/test_row_sample.py",
    "tests/estimator/test_auto.py",
    "tests/metrics/test_curve.py",
    "tests/estimator/test_sklearn.py",
    "tests/solvers/gradient/test_residual_symmetry.py",
    "tests/data/test_precision.py",
    "tests/search",
    "tests/losses/functional",
    "tests/losses/test_losses.py",
    "tests/solvers",
)
# Its quickest files, for every run of the tests.
SHORT = (
    "tests/properties",
    "tests/moments/test_moments.py",
    "tests/_base/test_linalg.py",
    "tests/metrics",
    "tests/objectives/test_fisher.py",
    "tests/objectives/test_reconstruction.py",
    "tests/objectives/test_regression.py",
    "tests/objectives/test_mixture.py",
    "tests/parity",
    "tests/moments/test_pairs.py",
    "tests/moments/test_row_sample.py",
    "tests/data/test_precision.py",
    "tests/solvers/gradient/test_residual_symmetry.py",
    "tests/losses/functional/test_simd.py",
    "tests/losses/functional/test_linear.py",
)

VARIANTS: dict[str, dict[str, str]] = {
    "native": {},
    "two-threads": {"OMP_NUM_THREADS": "2"},
    "openblas-haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "openblas-sandybridge": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "openblas-nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "openblas-prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "aten-avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "aten-default": {"ATEN_CPU_CAPABILITY": "default"},
    # MKL heeds the first two on Intel's processors only, the third on all.
    "mkl-avx2": {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "mkl-sse4": {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "mkl-compatible": {"MKL_CBWR": "COMPATIBLE"},
    "numpy-no-avx512": {"NPY_DISABLE_CPU_FEATURES": "AVX512"},
    "numpy-baseline": {"NPY_DISABLE_CPU_FEATURES": "all"},
    "numba-generic": {"NUMBA_CPU_NAME": "generic"},
    "numba-no-jit": {"NUMBA_DISABLE_JIT": "1"},
}
# Everything older at once, for every run of the tests.
SHORT_VARIANTS: dict[str, dict[str, str]] = {
    "short": {
        "OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "NUMBA_CPU_NAME": "generic",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "MKL_CBWR": "COMPATIBLE",
    },
}  # fmt: skip
EVERY = VARIANTS | SHORT_VARIANTS
# Variables of the caller that would add themselves to a variant.
CHOOSING = sorted({name for settings in EVERY.values() for name in settings} - {"OMP_NUM_THREADS"})
# What a processor must have for a variant, by the names that numpy gives to its features.
NEEDED = {
    ("OPENBLAS_CORETYPE", "Haswell"): "AVX2",
    ("OPENBLAS_CORETYPE", "Sandybridge"): "AVX",
    ("OPENBLAS_CORETYPE", "Nehalem"): "SSE42",
    ("OPENBLAS_CORETYPE", "Prescott"): "SSE3",
    ("ATEN_CPU_CAPABILITY", "avx2"): "AVX2",
    ("MKL_ENABLE_INSTRUCTIONS", "AVX2"): "AVX2",
    ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"): "SSE42",
}


def disabled_features(which: str) -> str:
    """Return the features that numpy chooses by at run time, has here and can do without; its names change.

    numpy refuses to disable what it was built upon, and warns of what the machine lacks.
    """
    from numpy._core import _multiarray_umath as built

    here = [name for name in built.__cpu_dispatch__ if built.__cpu_features__.get(name)]
    if which == "AVX512":
        here = [name for name in here if name.startswith("AVX512") or name == "X86_V4"]
    return " ".join(here)


def missing(settings: dict[str, str]) -> str | None:
    """Return what this machine lacks for a variant, if anything."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    for setting in settings.items():
        feature = NEEDED.get(setting)
        if feature is not None and not features.get(feature):
            return f"this processor has no {feature}"
    disabled = settings.get("NPY_DISABLE_CPU_FEATURES")
    if disabled is not None and not disabled_features(disabled):
        return f"numpy has nothing of {disabled} to disable here"
    return None


def environment(settings: dict[str, str], cache: str) -> dict[str, str]:
    """Return the environment of a run: one thread unless said, and compiled code of its own for another CPU."""
    env = {name: value for name, value in os.environ.items() if name not in CHOOSING}
    env |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "SCIPY_ARRAY_API": "1"} | settings
    if "NPY_DISABLE_CPU_FEATURES" in settings:
        env["NPY_DISABLE_CPU_FEATURES"] = disabled_features(settings["NPY_DISABLE_CPU_FEATURES"])
    if "NUMBA_CPU_NAME" in settings:
        env |= {"NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
    return env


def run(name: str, files: tuple[str, ...], more: list[str], processes: int = 1) -> bool:
    """Run one variant, in some processes, and print its line; what failed follows it."""
    settings = EVERY[name]
    lacking = missing(settings)
    if lacking:
        print(f"{name:<22} left out: {lacking}", flush=True)  # noqa: T201
        return True
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-v", "--no-header", "-p", "no:cacheprovider", *files, *more]
    command += ["-n", str(processes), "--dist", "loadfile"] if processes > 1 else []
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(settings, cache), capture_output=True, text=True, check=False
        )
    said = done.stdout.splitlines()
    counts = re.findall(r"(\d+ (?:passed|failed|errors?|skipped))\b", said[-1] if said else "")
    outcome = "passed" if done.returncode == 0 else "FAILED"
    print(f"{name:<22} {time.perf_counter() - began:6.0f} s  {outcome}: {', '.join(counts)}", flush=True)  # noqa: T201
    if done.returncode != 0:
        print("\n".join(said[-60:]) + done.stderr, flush=True)  # noqa: T201
    return done.returncode == 0


def main() -> int:
    """Run the variants that were asked for; 1 if a test failed in any."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--short", action="store_true", help="one variant on the quickest files")
    parser.add_argument("--only", action="append", choices=EVERY, metavar="NAME", help="this variant; may be repeated")
    parser.add_argument("--list", action="store_true", help="name the variants and what they set")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="variants that run side by side (cores)")
    parser.add_argument("more", nargs="*", help="further arguments of pytest, after --")
    asked = parser.parse_args()
    if asked.list:
        for name, settings in EVERY.items():
            print(f"{name:<22} {' '.join(f'{key}={value}' for key, value in settings.items())}")  # noqa: T201
        return 0
    names = asked.only or list(SHORT_VARIANTS if asked.short else VARIANTS)
    files = SHORT if asked.short else NUMERIC
    with ThreadPoolExecutor(asked.at_once) as pool:
        processes = asked.at_once // len(names)
        passed = list(pool.map(lambda name: run(name, files, asked.more, processes), names))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
