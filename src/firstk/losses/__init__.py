"""Full-prefix losses as `nn.Module`s, for people with their own training loop.

Each module is a function of `firstk.losses.functional` with its options stored: calling it gives the weighted loss of
all d prefixes, `per_prefix` the d separate losses for logging. All of them need the extra 'torch'.
"""

from firstk._base.checks import require

require("torch", "torch", "firstk.losses")

from firstk.losses.classification import (  # noqa: E402
    FullPrefixCrossEntropy,
    FullPrefixFreeHeadCrossEntropy,
)
from firstk.losses.linear import (  # noqa: E402
    FullPrefixFisher,
    FullPrefixFreeHeadRegression,
    FullPrefixReconstruction,
    FullPrefixRegression,
)
from firstk.losses.similarity import (  # noqa: E402
    FullPrefixCoSENT,
    FullPrefixCosineSimilarity,
    FullPrefixInfoNCE,
)

__all__ = [
    "FullPrefixCoSENT",
    "FullPrefixCosineSimilarity",
    "FullPrefixCrossEntropy",
    "FullPrefixFisher",
    "FullPrefixFreeHeadCrossEntropy",
    "FullPrefixFreeHeadRegression",
    "FullPrefixInfoNCE",
    "FullPrefixReconstruction",
    "FullPrefixRegression",
]
