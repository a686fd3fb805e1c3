"""Encoders that run without firstk: a short program in another language, with the numbers of the encoder.

Needs no extra. A target is one file and one line in `TARGETS`; ONNX and faiss have files of their own next to this
package, and saved models live in `encoder`.
"""

from __future__ import annotations

from firstk.integrations.standalone.javascript import to_javascript
from firstk.integrations.standalone.numpy_file import to_numpy
from firstk.integrations.standalone.sql import DIALECTS, to_sql

# What writes each target of ``firstk export --to``.
TARGETS = {"numpy": to_numpy, "js": to_javascript, "sql": to_sql}

__all__ = ["DIALECTS", "TARGETS", "to_javascript", "to_numpy", "to_sql"]
