"""Where a fitted PrefixEncoder can go: one method a program, each a door to :mod:`firstk.integrations`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from firstk.estimator._attributes import FittedAttributes


class Exports(FittedAttributes):
    """Methods that hand the ``encoder_`` of an estimator to other programs."""

    def to_onnx(self, path: str | Path) -> Path:
        """Write the encoder as one ONNX file; see :func:`firstk.integrations.onnx.export`."""
        from firstk.integrations import onnx

        return onnx.export(self, path)

    def to_faiss(self, k: int | None = None, index: str = "Flat", **settings: Any) -> Any:
        """Build a faiss index that takes raw vectors; see :func:`firstk.integrations.faiss.to_faiss`."""
        from firstk.integrations import faiss

        return faiss.to_faiss(self, k, index, **settings)
