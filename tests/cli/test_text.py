"""Commands that the command line prints for what it recommends."""

from firstk.cli._text import commands_for
from firstk.encoder.recommendation import OperatingPoint


def test_a_baseline_is_fitted_for_as_many_bytes_as_were_asked_for():
    point, judged = OperatingPoint(40, "int8", 40, 0.9, code="PCA"), {"--queries": "q.npy", "--relevance": "r.csv"}
    fit, transform = commands_for(point, "model", "rows.npy", {}, judged, 64)
    assert fit.startswith("firstk fit rows.npy --objective reconstruction")
    assert fit.endswith("--queries q.npy --relevance r.csv --bytes-per-vector 64 -o pca")
    assert transform == "firstk transform pca rows.npy -k 40 --precision int8 -o short.npz"
    without, _ = commands_for(point, "model", "rows.npy", {})
    assert "--bytes-per-vector" not in without
