"""``firstk info``: what is in a saved model, or in a file of codes."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from firstk.cli._options import JsonOption
from firstk.data.remote import explained_reading, place_of

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


def info(
    model_or_codes: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL|CODES",
            help="Folder that 'firstk fit' or 'firstk align' wrote, or file that 'firstk transform' wrote. Without it: "
            "versions, processor and BLAS, for a report of a problem.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is in a saved model, and check its files.

    It shows the objective, the ordering, the widths, the number of rows that were seen, the curve at a few k, the
    smallest k, the bytes of a vector, and where the vectors come from. A file that is missing, or is not what was
    saved, gives exit code 1. Of a file of codes it shows how they are stored and what made them; of an alignment, what
    it translates and the verdict on it.
    """
    import json

    if model_or_codes is None:
        found_here = environment()
        typer.echo(
            json.dumps(found_here, indent=2) if as_json else "\n".join(f"{k}: {v}" for k, v in found_here.items())
        )
        return
    place = place_of(model_or_codes)
    with explained_reading(place):
        is_file = place.is_file()
    if is_file:
        from firstk.data.files import open_codes

        file = open_codes(model_or_codes)
        typer.echo(json.dumps(file.facts(), indent=2, ensure_ascii=False) if as_json else str(file))
        return
    from firstk.encoder.storage.folder import is_alignment, read_extra
    from firstk.encoder.storage.info import model_info

    if is_alignment(model_or_codes):
        from firstk import PrefixAlignment

        alignment = PrefixAlignment.load(model_or_codes).alignment_
        record = read_extra(model_or_codes, "upgrade.json")
        facts = {"alignment": str(model_or_codes), **alignment.facts()}
        facts["report"] = None if record is None else json.loads(record)
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else str(alignment))
        return
    found = model_info(model_or_codes)
    typer.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.whole:
        raise typer.Exit(1)


def environment() -> dict[str, str]:
    """Return what a report of a problem should say of the machine: versions, processor, BLAS; no file and no user."""
    import numpy as np
    import scipy.linalg  # noqa: F401  # brings its own library
    from threadpoolctl import threadpool_info

    def version_of(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return ""

    blas = (
        " ".join(str(one[key]) for key in ("internal_api", "version", "architecture") if one.get(key))
        + f", {one['num_threads']} threads"
        for one in threadpool_info()
    )
    found = {"firstk": version_of("firstk"), "python": platform.python_version(), "system": platform.platform()}
    found |= {
        "processor": _processor(),
        "cores": str(os.cpu_count() or "unknown"),
        "blas": "; ".join(dict.fromkeys(blas)) or f"numpy {np.__version__}, unknown",
    }
    found |= {name: version for name in PACKAGES if (version := version_of(name)) or name in PACKAGES[:6]}
    return found | {name: os.environ[name] for name in VARIABLES if name in os.environ}


def _processor() -> str:
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
