"""What a report of a problem should say of the machine: versions, processor, BLAS. It names no file and no user."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

# What firstk requires, and packages of extras that change what is computed or how.
PACKAGES = (
    "numpy", "scipy", "scikit-learn", "safetensors", "typer", "tqdm", "threadpoolctl",
    "torch", "numba", "pyarrow", "narwhals", "faiss-cpu", "onnxruntime", "sentence-transformers", "dask",
)  # fmt: skip
# Settings of the environment that change speed or the last digits.
VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE", "ATEN_CPU_CAPABILITY",
    "NUMBA_CPU_NAME", "NUMBA_DISABLE_JIT", "SCIPY_ARRAY_API",
)  # fmt: skip


def environment() -> dict[str, str]:
    """Return versions, processor, threads and BLAS, by name.

    Examples
    --------
    >>> found = environment()
    >>> "numpy" in found and "python" in found and "blas" in found
    True
    """
    found = {"firstk": version_of("firstk"), "python": platform.python_version(), "system": platform.platform()}
    found |= {"processor": processor(), "cores": str(os.cpu_count() or "unknown"), "blas": blas()}
    found |= {name: version for name in PACKAGES if (version := version_of(name)) or name in PACKAGES[:6]}
    return found | {name: os.environ[name] for name in VARIABLES if name in os.environ}


def version_of(package: str) -> str:
    """Return the installed version; empty where the package is not there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def processor() -> str:
    """Return the name of the processor, with the widest vector instructions that it has where the system says so."""
    listing = Path("/proc/cpuinfo")
    if not listing.is_file():
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in listing.read_text("utf-8", "replace").splitlines())
    facts = {name.strip(): value.strip() for name, _, value in lines}
    flags = facts.get("flags", facts.get("Features", "")).split()
    widest = next((flag for flag in ("avx512f", "avx2", "avx", "sve", "asimd", "sse4_2") if flag in flags), "")
    name = facts.get("model name", platform.machine())
    return f"{name} ({widest})" if widest else name


def blas() -> str:
    """Return the libraries of linear algebra that are loaded, with kernels and threads."""
    import numpy as np
    import scipy.linalg  # noqa: F401  # brings its own library
    from threadpoolctl import threadpool_info

    parts = [
        " ".join(str(one[key]) for key in ("internal_api", "version", "architecture") if one.get(key))
        + f", {one['num_threads']} threads"
        for one in threadpool_info()
    ]
    return "; ".join(dict.fromkeys(parts)) or f"numpy {np.__version__}, unknown"
