"""Metrics of codes that are cut anywhere: of axes and subspaces, and of tasks at every prefix length.

`subspace` compares bases without regard to the order of axes, `order` axis by axis, `same_axes` two fits by their codes
of the same rows; `task`, `neighbors`, `ranking` and
`search` return one score for every prefix length from one encode, `bootstrap` the interval in which it lies; `task`
also scores single coordinates; `late_interaction` compares documents of several vectors. `prefix_curve` takes an
encoder and data to a curve by any metric in `METRICS`; `make_scorer` turns one into a scorer for scikit-learn's
searches; `threshold` says what cosines of codes mean for raw vectors. Held-out splits, baselines and reports live in
the room `advice`.
"""

from firstk.metrics.bootstrap import ExplainedShare, MeanScore, RankAgreement, bootstrap_interval, resampled_scores
from firstk.metrics.curve import METRICS, prefix_curve
from firstk.metrics.judgements import as_text
from firstk.metrics.late_interaction import max_sim
from firstk.metrics.neighbors import (
    nearest_neighbor_accuracy,
    nearest_neighbors,
    neighbor_recall,
    positive_recall,
)
from firstk.metrics.order import max_cosines, paired_cosines
from firstk.metrics.ranking import pair_cosines, pair_spearman
from firstk.metrics.same_axes import basis_kurtosis, first_k_against_best_k, same_axes
from firstk.metrics.search import check_judgements, mrr, ndcg, relevant_recall, search_per_query
from firstk.metrics.sklearn_scorer import make_scorer
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
from firstk.metrics.threshold import Calibration, Threshold, calibration, matched_threshold

__all__ = [
    "METRICS",
    "Calibration",
    "ExplainedShare",
    "MeanScore",
    "RankAgreement",
    "Threshold",
    "as_text",
    "axis_distance",
    "axis_probe_accuracy",
    "axis_readout_r2",
    "basis_kurtosis",
    "bootstrap_interval",
    "calibration",
    "check_judgements",
    "explained_variance",
    "first_k_against_best_k",
    "linear_probe_accuracy",
    "linear_readout_r2",
    "make_scorer",
    "matched_threshold",
    "max_cosines",
    "max_sim",
    "mean_principal_angles",
    "mrr",
    "ndcg",
    "nearest_neighbor_accuracy",
    "nearest_neighbors",
    "neighbor_recall",
    "pair_cosines",
    "pair_spearman",
    "paired_cosines",
    "positive_recall",
    "prefix_curve",
    "principal_angles",
    "readout_errors",
    "reconstruction_errors",
    "relevant_recall",
    "resampled_scores",
    "same_axes",
    "search_per_query",
    "subspace_distance",
]
