"""Full-prefix losses as `nn.Module`s, for training loops of your own; they need the extra 'torch'.

Each module is a function of `firstk.losses.functional` with its options stored: calling it gives the weighted loss of
all d prefixes, `per_prefix` the d separate losses for logging. The training loop of firstk lives in `solvers`.
"""

from firstk._base.checks import require

require("torch", "torch", "firstk.losses")

from firstk.losses.classification import (  # noqa: E402
    FullPrefixCrossEntropy,
    FullPrefixFreeHeadCrossEntropy,
)
from firstk.losses.compatible import (  # noqa: E402
    FullPrefixCompatibility,
    OrthogonalBasis,
    orthogonality_penalty,
)
from firstk.losses.functional.contrastive import false_negatives, gathered  # noqa: E402
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
    FullPrefixMaxSim,
)

__all__ = [
    "FullPrefixCoSENT",
    "FullPrefixCompatibility",
    "FullPrefixCosineSimilarity",
    "FullPrefixCrossEntropy",
    "FullPrefixFisher",
    "FullPrefixFreeHeadCrossEntropy",
    "FullPrefixFreeHeadRegression",
    "FullPrefixInfoNCE",
    "FullPrefixMaxSim",
    "FullPrefixReconstruction",
    "FullPrefixRegression",
    "OrthogonalBasis",
    "false_negatives",
    "gathered",
    "orthogonality_penalty",
]
