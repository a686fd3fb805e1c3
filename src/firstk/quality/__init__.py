"""What codes are worth: scores with their draws, and the choice among them.

Records and one rule, without encoders and data: a saved model, a page and a command read the same numbers here, and get
the same choice. How codes are scored is in `advice` and `metrics`; the sentences are in `words`.
"""

from __future__ import annotations

from firstk.quality.paired import CONFIDENCE as CONFIDENCE
from firstk.quality.paired import DEVIATIONS as DEVIATIONS
from firstk.quality.paired import DRAWS as DRAWS
from firstk.quality.paired import ROUNDING as ROUNDING
from firstk.quality.paired import TOLERANCE as TOLERANCE
from firstk.quality.paired import Difference as Difference
from firstk.quality.paired import interval as interval
from firstk.quality.paired import select as select
