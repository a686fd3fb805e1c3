"""What codes are worth: scores with their draws, and the choice among them.

Records and one rule, without encoders and data: a saved model, a page and a command read the same numbers here, and get
the same choice. How codes are scored is in `advice` and `metrics`; the sentences are in `words`.
"""

from __future__ import annotations

from firstk.quality.paired import (
    CONFIDENCE,
    DEVIATIONS,
    DRAWS,
    ROUNDING,
    TOLERANCE,
    Difference,
    interval,
    select,
)

__all__ = ["CONFIDENCE", "DEVIATIONS", "DRAWS", "ROUNDING", "TOLERANCE", "Difference", "interval", "select"]
