"""Integration with sentence-transformers: a loss over every prefix for its trainer, and encoders in its stock modules.

Needs the extra "text". Losses without sentence-transformers are in `firstk.losses`.
"""

from firstk._base.checks import require

require("sentence_transformers", "text", "firstk.integrations.sentence_transformers")

from firstk.integrations.sentence_transformers.export import append_encoder, uncentred  # noqa: E402
from firstk.integrations.sentence_transformers.fit import (  # noqa: E402
    FittedSentenceTransformer,
    fit_sentence_transformer,
)
from firstk.integrations.sentence_transformers.losses import FullPrefixLoss, LoggedLoss  # noqa: E402
from firstk.integrations.sentence_transformers.serving import save_for_serving  # noqa: E402

__all__ = [
    "FittedSentenceTransformer",
    "FullPrefixLoss",
    "LoggedLoss",
    "append_encoder",
    "fit_sentence_transformer",
    "save_for_serving",
    "uncentred",
]
