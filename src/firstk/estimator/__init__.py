"""The scikit-learn estimator, and where objective, ordering and solver meet: PrefixEncoder, fit_files, transform_files.

Members of the three axes live in `objectives`, `orderings` and `solvers`, optional packages in `integrations`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from firstk._base.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "firstk.estimator.encoding": ["Described", "Encoding", "Wish", "cut_bits", "encoding_of"],
    },
)

if TYPE_CHECKING:
    from firstk.estimator.encoding import Described as Described
    from firstk.estimator.encoding import Encoding as Encoding
    from firstk.estimator.encoding import Wish as Wish
    from firstk.estimator.encoding import cut_bits as cut_bits
    from firstk.estimator.encoding import encoding_of as encoding_of
