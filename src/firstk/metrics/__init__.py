"""Metrics of codes that are cut anywhere: of axes and subspaces, and of tasks at every prefix length.

`subspace` compares bases without regard to the order of axes, `order` axis by axis; `task`, `neighbors` and
`ranking` return one score for every prefix length from one encode, `bootstrap` the interval in which it lies; `task`
also scores single coordinates; `mined` finds partners where there are no judgements. `prefix_curve` takes an encoder
and data to a curve by any metric in `METRICS`. Held-out splits, baselines and reports live in `evaluation`.
"""

from firstk.metrics.bootstrap import ExplainedShare, MeanScore, RankAgreement, bootstrap_interval
from firstk.metrics.curve import METRICS, EvaluationData, prefix_curve
from firstk.metrics.mined import MinedPartners, half_whitening, mined_judgements, mined_partners
from firstk.metrics.neighbors import (
    nearest_neighbor_accuracy,
    nearest_neighbors,
    neighbor_recall,
    partner_ndcg,
    positive_recall,
)
from firstk.metrics.order import max_cosines, paired_cosines
from firstk.metrics.ranking import ndcg, ndcg_per_query, pair_cosines, pair_spearman
from firstk.metrics.subspace import axis_distance, mean_principal_angles, principal_angles, subspace_distance
from firstk.metrics.task import (
    axis_probe_accuracy,
    axis_readout_r2,
    explained_variance,
    linear_probe_accuracy,
    linear_readout_r2,
    readout_errors,
    reconstruction_errors,
)

__all__ = [
    "METRICS",
    "EvaluationData",
    "ExplainedShare",
    "MeanScore",
    "MinedPartners",
    "RankAgreement",
    "axis_distance",
    "axis_probe_accuracy",
    "axis_readout_r2",
    "bootstrap_interval",
    "explained_variance",
    "half_whitening",
    "linear_probe_accuracy",
    "linear_readout_r2",
    "max_cosines",
    "mean_principal_angles",
    "mined_judgements",
    "mined_partners",
    "ndcg",
    "ndcg_per_query",
    "nearest_neighbor_accuracy",
    "nearest_neighbors",
    "neighbor_recall",
    "pair_cosines",
    "pair_spearman",
    "paired_cosines",
    "partner_ndcg",
    "positive_recall",
    "prefix_curve",
    "principal_angles",
    "readout_errors",
    "reconstruction_errors",
    "subspace_distance",
]
