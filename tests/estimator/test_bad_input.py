"""One table of bad input: each case raises an error of the right kind, with a message that says why.

An error is firstk's own (a ValueError too) or one of scikit-learn's: ValueError and NotFittedError. Anything else, such
as a LinAlgError, an IndexError or a KeyError out of the inside, fails the case.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import warnings

import numpy as np
import pytest
from safetensors.numpy import load, save
from scipy import sparse
from sklearn.exceptions import NotFittedError

from firstk import (
    Denoising,
    Fisher,
    FittedEncoder,
    FullPrefix,
    Mixture,
    PrefixEncoder,
    Regression,
    Similarity,
    diagnose,
)
from firstk.exceptions import (
    CorruptModelError,
    FewRowsWarning,
    FirstkError,
    IllegalCombinationError,
    InvalidInputError,
    LabelsWarning,
    MissingExtraError,
    RankWarning,
)
from sealing import seal
from slow_reference import correlated, frozen

N, P = 40, 5
RNG = np.random.default_rng(0)
X = correlated(RNG, N, P) + 1.0
Y = np.arange(N) % 3
T = X @ RNG.standard_normal((P, 2)) + RNG.standard_normal((N, 2))
R = 0.5 * X + RNG.standard_normal((N, P))
S = RNG.uniform(0, 1, N)
frozen(X, Y, T, R, S)


def put(value, rows=(7,), base=X):
    spoiled = base.copy()
    spoiled[list(rows), 2] = value
    return spoiled


def fit(rows=X, y=None, d=None, **parameters):
    return lambda: PrefixEncoder(d, **parameters).fit(rows, y)


def fit_pairs(left=X, right=R, scores=S, d=None, objective="similarity", **parameters):
    return lambda: PrefixEncoder(d, objective=objective, **parameters).fit_pairs(left, right, scores)


def fitted(**parameters):
    return PrefixEncoder(3, **parameters).fit(X)


UNSEEN = "has seen no data yet: call fit, partial_fit or fit_pairs first"
CASES = {
    # -- numbers that are none
    "NaN": (fit(put(np.nan)), r"^fit takes finite numbers; 'X' has NaN or infinity in 1 of 40 rows \(row 7\)"),
    "infinity": (fit(put(np.inf)), r"'X' has NaN or infinity in 1 of 40 rows \(row 7\)"),
    "minus infinity": (fit(put(-np.inf)), r"'X' has NaN or infinity in 1 of 40 rows \(row 7\)"),
    "infinities that cancel": (fit(put([np.inf, -np.inf], (3, 9))), r"in 2 of 40 rows \(row 3, 9\)"),
    "many NaN": (fit(put(np.nan, range(10))), r"in 10 of 40 rows \(row 0, 1, 2, 3, 4, \.\.\.\)"),
    "NaN in float32": (fit(put(np.nan).astype(np.float32)), "NaN or infinity in 1 of 40 rows"),
    "NaN with labels": (fit(put(np.nan), Y, objective="fisher"), "NaN or infinity in 1 of 40 rows"),
    "NaN in a wide matrix": (fit(put(np.nan, (1,))[:4]), "NaN or infinity in 1 of 4 rows"),
    "NaN in a sparse matrix": (fit(sparse.csr_matrix(put(np.nan))), "NaN or infinity"),
    "NaN while encoding": (
        lambda: fitted().transform(put(np.nan)),
        r"'X' has NaN or infinity in 1 of 40 rows \(row 7\)",
    ),
    "NaN while encoding sparse": (
        lambda: fitted().transform(sparse.csr_matrix(put(np.nan))),
        r"NaN or infinity in 1 of 40 rows \(row 7\)",
    ),
    "NaN while decoding": (lambda: fitted().inverse_transform(np.full((2, 3), np.nan)), "'Z' has NaN or infinity"),
    "NaN in targets": (fit(X, put(np.nan, base=X), objective="regression"), "takes finite targets; 'y' has NaN"),
    "NaN in labels": (fit(X, np.where(Y == 0, np.nan, Y), objective="fisher"), "NaN"),
    "NaN in pairs": (fit_pairs(right=put(np.nan, base=R)), "'right' has NaN or infinity in 1 of 40 rows"),
    "NaN in scores": (fit_pairs(scores=np.where(S > 0.5, S, np.nan)), "'scores' has NaN or infinity"),
    "numbers too large for float32": (fit((X * 1e38).astype(np.float32)), "infinity|too large for their precision"),
    "numbers whose squares overflow": (fit(X * 1e200), "too large"),
    "strings": (fit(np.array([["a", "b"]] * N)), "could not convert string to float|takes numbers"),
    "strings in pairs": (fit_pairs(left=np.array([["a"] * P] * N)), "takes numbers; 'left' holds something else"),
    "objects": (fit(np.array([["a", None]] * N, dtype=object)), "could not convert string to float"),
    "complex": (fit(X + 1j), "Complex data not supported|takes real numbers"),
    "complex pairs": (fit_pairs(left=X + 1j), "takes real numbers; 'left' holds complex ones"),
    "sparse pairs": (fit_pairs(left=sparse.csr_matrix(X)), "takes|dense"),
    # -- shapes
    "one dimension": (fit(X[0]), "Expected 2D array, got 1D array instead|two-dimensional 'X'"),
    "three dimensions": (fit(X[None]), "Found array with dim 3|two-dimensional 'X'"),
    "a number": (fit(3.0), "Expected 2D array, got scalar array instead|two-dimensional 'X'"),
    "no rows": (fit(X[:0]), r"0 sample\(s\)|at least one row"),
    "no columns": (fit(X[:, :0]), r"0 feature\(s\)|at least one row and one column"),
    "no sparse rows": (fit(sparse.csr_matrix((0, P))), r"0 sample\(s\)|at least one row"),
    "one row": (fit(X[:1]), "at least two rows|every column is constant|n_samples = 1"),
    "None": (fit(None), "Expected 2D array|got None|array"),
    "another width": (lambda: fitted().transform(X[:, :4]), "X has 4 features, but PrefixEncoder is expecting 5"),
    "another width, frozen": (lambda: fitted().encoder_.encode(X[:, :4]), "takes 'X' with 5 columns. Got 4"),
    "another width, frozen, sparse": (
        lambda: fitted().encoder_.encode(sparse.csr_matrix(X[:, :4])),
        "takes 'X' with 5 columns. Got 4",
    ),
    "too wide a code": (
        lambda: fitted().inverse_transform(np.ones((2, 4))),
        r"must be an int in \[1, 3\] \(the fitted",
    ),
    "weights of another length": (
        lambda: PrefixEncoder().fit(X, sample_weight=np.ones(3)),
        "must be 40 finite numbers",
    ),
    "negative weights": (lambda: PrefixEncoder().fit(X, sample_weight=-np.ones(N)), "Got -1 at row 0"),
    "weights of zero": (lambda: PrefixEncoder().fit(X, sample_weight=np.zeros(N)), "not all zero. Got 40 zeros"),
    "weights that are words": (lambda: PrefixEncoder().fit(X, sample_weight=["a"] * N), "'sample_weight' of"),
    # -- data without an answer
    "constant columns": (fit(np.ones((N, P)) * 3.3), "every column is constant"),
    "constant columns, offset": (fit(np.full((N, P), 1e8 + 0.1)), "every column is constant"),
    "constant columns, wide": (fit(np.full((3, P), 0.1)), "every column is constant"),
    "constant columns with labels": (fit(np.ones((N, P)), Y, objective="fisher"), "variation within classes|constant"),
    "constant columns, regression": (fit(np.ones((N, P)), T, objective="regression"), "every column is constant"),
    "constant targets": (fit(X, np.ones(N), objective="regression"), "unrelated to the data"),
    "constant pairs": (
        fit_pairs(np.ones((N, P)), np.ones((N, P)), objective=Similarity(shrinkage=0.5, neighbor_weight=0.0)),
        "constant",
    ),
    "auto with one document": (fit_pairs(right=np.ones((N, P))), "needs at least 5 different right sides. Got 1: set"),
    "one class": (fit(X, np.zeros(N, int), objective="fisher"), r"needs at least two classes. Got 1 class \(.*0"),
    "one class with weight": (
        lambda: PrefixEncoder(objective="fisher").fit(X, Y, sample_weight=(Y == 1) * 1.0),
        "needs at least two classes",
    ),
    "one class, auto": (fit(X, np.zeros(N, int), objective="classification"), "^Classification needs at least two"),
    "all classes of one, auto": (
        fit(X, np.arange(N), objective="classification"),
        r"^Classification needs variation.*\(40 rows, 40 classes\)",
    ),
    "one class, mixture": (fit(X, np.zeros(N, int), objective="mixture"), "Mixture with labels needs at least two"),
    "all classes of one": (
        fit(X, np.arange(N), objective="fisher"),
        r"variation within classes, and every class here is a single point \(40 rows, 40 classes\)",
    ),
    # -- y
    "no labels": (
        fit(X, objective="fisher"),
        "requires y to be passed, but the target y is None: it learns from labels",
    ),
    "no targets": (fit(X, objective="regression"), "requires y to be passed, but the target y is None"),
    "no y": (fit(X, objective="mixture"), "requires y to be passed, but the target y is None"),
    "labels of another length": (fit(X, Y[:-1], objective="fisher"), "as many rows in 'X' as in 'y'. Got 40 and 39"),
    "targets of another length": (
        fit(X, T[:-1], objective="regression"),
        "as many rows in 'X' as in 'y'. Got 40 and 39",
    ),
    "continuous labels": (fit(X, T[:, 0], objective="fisher"), "Unknown label type: continuous"),
    "labels in two columns": (fit(X, T.round(), objective="fisher"), "should be a 1d array"),
    "several labels a row": (
        fit(X, (T > 0).astype(int), objective="fisher"),
        r"several labels a row \(multilabel\): shape \(40, 2\). .*MultiLabelBinarizer.*'mixture' with y.astype",
    ),
    "lists of labels": (fit(X, [["a"], ["b", "c"]] * 20, objective="fisher"), "multilabel.*lists of different lengths"),
    "lists of as many labels": (fit(X, [["a", "b"]] * N, objective="classification"), "multilabel"),
    "sets of labels": (fit(X, [{1, 2}] * N, objective="fisher"), "multilabel.*a list or set for each row"),
    "several labels a row, mixture": (fit(X, T > 0, objective="mixture"), r"y.astype\(float\)"),
    "targets that are words": (
        fit(X, np.array(["a"] * N), objective="regression"),
        "takes one or two dimensions of numbers as targets. Got <U1.*For classes, use objective 'fisher'",
    ),
    "targets in three dimensions": (
        fit(X, np.zeros((N, 1, 1)), objective="regression"),
        "takes one or two dimensions of numbers as targets",
    ),
    # -- pairs
    "pairs of different widths": (fit_pairs(right=R[:, :3]), "takes 'right' with 5 columns. Got 3"),
    "pairs of different lengths": (fit_pairs(right=R[:-1]), "as many rows in 'left' as in 'right'. Got 40 and 39"),
    "scores of another length": (fit_pairs(scores=S[:-1]), r"one score a pair: shape \(40,\). Got shape \(39,\)"),
    "scores that are words": (fit_pairs(scores=["a"] * N), "takes numbers; 'scores' holds something else"),
    "no pairs": (fit_pairs(X[:0], R[:0], None), "at least one row and one column in 'left'"),
    "pairs for rows": (
        fit_pairs(objective="reconstruction"),
        "'reconstruction' on pairs is not possible: it learns from",
    ),
    "pairs for labels": (fit_pairs(objective="fisher"), "it learns from rows with labels, not from pairs"),
    # -- k and n_components
    **{
        f"k = {k!r}": (
            lambda k=k: fitted().transform(X, k),
            r"The 'k' parameter of PrefixEncoder.transform must be an int in \[1, 3\] \(the fitted dimension\). Got",
        )
        for k in (0, -1, 1.5, True, 4, "2", np.float64(2.0))
    },
    "k of predict": (
        lambda: PrefixEncoder(objective="fisher").fit(X, Y).predict(X, k=3),
        r"'k' parameter of PrefixEncoder.predict must be an int in \[1, 2\]",
    ),
    "k of encode_query": (lambda: fitted().encode_query(X, 0), "'k' parameter of PrefixEncoder.encode_query"),
    "cutting too long": (lambda: fitted()[:4], r"must be an int in \[1, 3\] \(the fitted dimension\). Got 4"),
    "cutting nothing": (lambda: fitted()[:0], r"must be an int in \[1, 3\]"),
    "cutting from the end": (lambda: fitted()[:-1], r"must be an int in \[1, 3\] .* Got -1"),
    "k of a curve": (lambda: fitted().curve(X, ks=[1, 9]), r"'k' parameter of curve must be an int in \[1, 3\]"),
    **{
        f"n_components = {d!r}": (
            fit(d=d),
            r"The 'n_components' parameter of PrefixEncoder must be a positive int, a share in .0, 1., 'rank' or",
        )
        for d in (0, -1, 1.5, True, "3")
    },
    "n_components beyond the columns": (
        fit(d=6),
        r"'n_components' parameter .* \[1, 5\] \(the number of columns\). Got 6",
    ),
    # -- names
    "unknown objective": (
        fit(objective="entropy"),
        "'objective' parameter of PrefixEncoder must be one of 'reconstruction'",
    ),
    "objective of a strange kind": (fit(objective=3), "'objective' parameter of PrefixEncoder must be one of"),
    "objective as a class": (fit(objective=Fisher), "'objective' parameter of PrefixEncoder must be one of"),
    "unknown ordering": (fit(ordering="random"), "'ordering' parameter of PrefixEncoder must be one of 'full_prefix'"),
    "unknown solver": (
        fit(solver="annealing"),
        "'solver' parameter of PrefixEncoder must be one of 'auto', 'closed_form'",
    ),
    "unknown network": (
        fit(network="mlp", solver="closed_form"),
        "network=MLP.* is not possible: closed forms exist for linear encoders only",
    ),
    "unknown init": (fit(init="warm"), "'init' parameter of PrefixEncoder with a closed form must be one of 'auto'"),
    "unknown device": (fit(device="cuda:7"), "'device' parameter of PrefixEncoder with a closed form must be one of"),
    "unknown metric": (lambda: fitted().curve(X, metric="beauty"), "'metric' parameter of curve must be one of '1nn"),
    "unknown omega": (fit(ordering=FullPrefix(omega="steep")), "'omega' parameter of FullPrefix"),
    "omega of another length": (fit(ordering=FullPrefix(omega=[1.0, 2.0])), "'omega' parameter of FullPrefix"),
    "unknown estimator": (
        fit(ordering=FullPrefix(estimator="wild")),
        "'estimator' parameter of FullPrefix must be one of",
    ),
    # -- settings
    "shrinkage above one": (
        fit(X, Y, objective=Fisher(1.1)),
        r"'shrinkage' parameter of Fisher must be None, 'auto' or",
    ),
    "shrinkage NaN": (fit(X, Y, objective=Fisher(np.nan)), "'shrinkage' parameter of Fisher"),
    "shrinkage True": (fit(X, T, objective=Regression(True)), "'shrinkage' parameter of Regression"),
    "negative lambda": (
        fit(X, T, objective=Mixture(-1.0)),
        "'lam' parameter of Mixture must be a finite number that is not",
    ),
    "infinite lambda": (fit(X, T, objective=Mixture(np.inf)), "'lam' parameter of Mixture"),
    "noise by name": (fit(objective=Denoising("gaussian")), "'noise' parameter of Denoising must be GaussianNoise"),
    "auto with few pairs": (
        lambda: PrefixEncoder(objective="similarity").fit_pairs(X[:19], X[1:20]),
        "needs at least 20 rows or pairs. Got 19",
    ),
    # -- too early, and without what is needed
    "transform before fit": (lambda: PrefixEncoder().transform(X), UNSEEN),
    "curve before fit": (lambda: PrefixEncoder().curve(X), UNSEEN),
    "save before fit": (lambda: PrefixEncoder().save("model"), UNSEEN),
    "cut before fit": (lambda: PrefixEncoder()[:2], UNSEEN),
    "decode before fit": (lambda: PrefixEncoder().inverse_transform(X), UNSEEN),
    "a curve without labels": (
        lambda: PrefixEncoder(objective="fisher").fit(X, Y).curve(X),
        "metric '1nn_accuracy' needs y, .* and reference=",
    ),
    "a curve without reference": (
        lambda: PrefixEncoder(objective="fisher").fit(X, Y).curve(X, Y),
        r"needs reference=\(X_train, y_train\)",
    ),
    "a curve of equal scores": (
        lambda: (
            PrefixEncoder(objective=Similarity(shrinkage=0.5, neighbor_weight=0.0))
            .fit_pairs(X, R)
            .curve_pairs(X, R, np.ones(N), metric="spearman")
        ),
        "'spearman' needs scores that differ",
    ),
    "a curve of variance without decoder": (
        lambda: PrefixEncoder(objective="fisher").fit(X, Y).curve(X, metric="explained_variance"),
        "needs a decoder; use 'readback_variance'",
    ),
    "a curve of heads without head": (
        lambda: fitted().curve(X, Y, metric="head_accuracy"),
        "an objective that predicts",
    ),
    "a curve of rows without rows": (
        lambda: fitted().curve_pairs(X, R, metric="explained_variance"),
        "needs rows: use",
    ),
    "a curve of pairs without pairs": (lambda: fitted().curve(X, metric="spearman"), "needs pairs: use curve_pairs"),
    "a mixture's curve of something else": (
        lambda: fitted().curve(X, Y, metric="mixture"),
        "belongs to objective 'mixture'",
    ),
    "recall of one row": (
        lambda: PrefixEncoder(objective="similarity").fit(X).curve(X[:1]),
        "needs more than 10 rows to look among. Got 0",
    ),
    "recall among ten": (lambda: PrefixEncoder().fit(X).curve(X[:11][:10], metric="recall@10"), "Got 9"),
    "positives among few": (
        lambda: PrefixEncoder(2).fit(X).curve_pairs(X[:8], X[:8]),
        "more than 10 different right sides. Got 8",
    ),
    "r2 of labels": (
        lambda: PrefixEncoder(2).fit(X).curve(X, np.array(["a", "b"] * 200)[: len(X)], metric="r2"),
        "reads numbers, and 'y' holds labels",
    ),
    "r2 of an encoder that learned labels": (
        lambda: PrefixEncoder(objective="fisher").fit(X, Y).curve(X, Y, metric="r2"),
        "this encoder learned labels",
    ),
    **{
        f"labels of bytes, {kind}": (
            fit(X, np.array([b"a", b"b"], dtype=kind)[Y % 2], objective="fisher"),
            r"takes labels that are text or numbers, and 'y' holds bytes .* Decode them first",
        )
        for kind in ("S1", object)
    },
    **{
        f"labels that end in NUL, {type(kind([])).__name__}": (
            fit(X, kind([("a", "a\0")[label % 2] for label in Y]), objective="fisher"),
            r"text that does not end in a NUL character, which numpy would drop. Got 'a\\x00' at row \d+",
        )
        for kind in (list, lambda labels: np.array(labels, dtype=object))
    },
    "labels of 100 bits": (
        fit(X, np.array([10**30 + int(label) for label in Y], dtype=object), objective="fisher"),
        r"whole numbers of 64 bits, and 'y' holds others \(Unknown label type: int\)",
    ),
    "complex labels": (fit(X, Y * 1j, objective="fisher"), "Complex data not supported: give real parts"),
    "labels of two kinds": (
        lambda: PrefixEncoder(objective="fisher").fit(X, np.array(["a", 1] * len(X), dtype=object)[: len(X)]),
        "labels of one kind",
    ),
    "a missing label": (
        lambda: PrefixEncoder(objective="fisher").fit(X, np.array(["a", None] * len(X), dtype=object)[: len(X)]),
        "have none: Input y contains NaN or None",
    ),
    "a reference of three": (
        lambda: PrefixEncoder(objective="fisher").fit(X, Y).curve(X, Y, reference=(X, Y, Y)),
        "must be X or .X, y.",
    ),
    **{
        f"numbers of {scale}, {objective}": (
            lambda scale=scale, objective=objective: PrefixEncoder(objective=objective).fit(X * scale, Y),
            r"numbers too small for their precision: scale the columns up first. The largest is \d.\de-\d+",
        )
        for scale, objective in ((1e-160, "reconstruction"), (1e-300, "reconstruction"), (1e-300, "fisher"))
    },
    "numbers of 1e-300 in a stream": (
        lambda: PrefixEncoder().partial_fit(X * 1e-300).components_,
        r"numbers too small for their precision: scale the columns up first. The largest is \d.\de-\d+",
    ),
    "weights of 1e-300": (
        lambda: PrefixEncoder().fit(X, sample_weight=np.full(N, 1e-300)),
        "weights too small for their precision: the largest is 1.0e-300. Divide all weights by it",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")
def test_bad_input_raises_an_error_with_a_message(case):
    act, message = CASES[case]
    with pytest.raises((ValueError, FirstkError, NotFittedError), match=message) as caught:
        act()
    kind = caught.type
    assert issubclass(kind, (FirstkError, NotFittedError)) or kind is ValueError, kind
    assert not issubclass(kind, (UnicodeError, np.linalg.LinAlgError))


@pytest.mark.parametrize("case", ["unknown network", "pairs for rows", "pairs for labels"])
def test_illegal_combinations_name_the_way_out(case):
    act, _ = CASES[case]
    with pytest.raises(IllegalCombinationError, match=r" is not possible: .*\. Instead: .*\."):
        act()


# -- input that is awkward and has an answer -----------------------------------------------------------------------


def test_some_constant_columns_are_left_out():
    rows = X.copy()
    rows[:, 1] = 1e8 + 0.1
    enc = PrefixEncoder().fit(rows)
    assert enc.n_components_ == P - 1
    assert np.abs(enc.components_[:, 1]).max() < 1e-12
    fisher = PrefixEncoder(4, objective=Fisher(None)).fit(rows, Y)
    assert not fisher.components_[:, 1].any()
    assert np.isfinite(fisher.transform(rows)).all()


def test_a_column_that_is_constant_inside_every_class_is_left_out_of_fisher():
    rows = np.column_stack([X, Y.astype(float)])  # tells the classes apart perfectly: a ratio of infinity
    enc = PrefixEncoder(objective="fisher").fit(rows, Y)
    assert np.isfinite(enc.components_).all()
    assert np.isfinite(enc.spectrum_).all()


def test_collinear_columns_are_cut_to_the_rank():
    rows = np.hstack([X, X @ np.ones((P, 3))])
    assert PrefixEncoder().fit(rows).n_components_ == P
    for objective, y in (("reconstruction", None), (Fisher(None), Y), ("regression", T)):
        with pytest.warns(
            RankWarning, match="n_components=8 was requested, but the data have numerical rank 5: 5 comp"
        ):
            enc = PrefixEncoder(8, objective=objective).fit(rows, y)
        assert enc.n_components_ == 5
        assert np.isfinite(enc.transform(rows)).all()


def test_fewer_rows_than_columns_are_cut_to_the_rank():
    with pytest.warns(RankWarning, match="the data have numerical rank 3: 3 components are kept"):
        enc = PrefixEncoder(5).fit(X[:4])
    assert enc.n_components_ == 3


def test_several_labels_are_learned_as_numbers():
    labels = T > 0
    for objective in ("regression", "mixture"):
        assert PrefixEncoder(objective=objective).fit(X, labels.astype(float)).predict(X).shape == labels.shape


@pytest.mark.parametrize("kind", [int, np.uint8, bool])
def test_classes_given_as_targets_are_named(kind):
    with pytest.warns(LabelsWarning, match=r"look like classes.*'fisher' or .*y.astype\(float\)"):
        PrefixEncoder(objective="regression").fit(X, Y.astype(kind))


def test_quantities_are_not_taken_for_classes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (Y.astype(float), np.arange(N) * 7, T, (T > 0).astype(int)):
            PrefixEncoder(objective="regression").fit(X, y)
        PrefixEncoder(objective="mixture").fit(X, Y)


def test_a_fit_on_a_few_rows_warns():
    with pytest.warns(FewRowsWarning, match="^9 rows are too few to learn from.*Fit on at least 10 rows"):
        PrefixEncoder().fit(X[:9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enc = PrefixEncoder()
        for first in range(0, 12, 3):  # what counts is all rows together
            enc.partial_fit(X[first : first + 3])
        assert enc.transform(X).shape == (N, P)


def test_targets_far_from_zero_keep_their_digits_in_float32():
    y = X[:, 0] + 1e9
    enc = PrefixEncoder(objective="regression").fit(X, y)
    assert np.abs(enc.predict(X.astype(np.float32)) - y).max() < 1e-4  # float32 alone rounds to 64


def test_a_sparse_matrix_is_named_where_a_dense_one_is_needed():
    with pytest.raises(
        InvalidInputError, match=r"diagnose takes a dense 'X', and this one is sparse. Pass X.toarray\(\)"
    ):
        diagnose(sparse.csr_array(X))


def test_rows_are_not_taken_in_where_nothing_could_train_on_them(monkeypatch):
    enc = PrefixEncoder(2, solver="gradient")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="Training by gradient needs the package 'torch'"):
        enc.partial_fit(X)
    assert not hasattr(enc, "n_features_in_")


@pytest.mark.parametrize("kind", [int, float, bool])
def test_objects_that_are_numbers_are_numbers(kind):
    """A column of whole numbers with holes comes as objects, also when its holes have been dropped."""
    labels = np.array([kind(label % 2) for label in Y], dtype=object)
    encoder = PrefixEncoder(objective="fisher").fit(X, labels)
    assert encoder.classes_.tolist() == [kind(0), kind(1)]
    assert encoder.classes_.dtype.kind == np.dtype(kind).kind


def test_a_class_of_one_is_a_class():
    y = np.where(np.arange(N) == 5, 9, Y)
    enc = PrefixEncoder(objective="fisher").fit(X, y)
    assert enc.n_components_ == 3
    assert enc.encoder_.head.classes.tolist() == [0, 1, 2, 9]
    assert np.isfinite(enc.transform(X)).all()


@pytest.mark.parametrize("offset", [1e6, 1e10])
def test_huge_offsets_have_an_answer(offset):
    moved = X + offset
    enc, plain = PrefixEncoder().fit(moved), PrefixEncoder().fit(moved - offset)
    assert enc.n_components_ == P
    np.testing.assert_allclose(enc.spectrum_, plain.spectrum_, rtol=1e-9)
    np.testing.assert_allclose(enc.transform(moved), plain.transform(moved - offset), atol=offset * 1e-14 + 1e-9)


@pytest.mark.parametrize("objective", ["reconstruction", "fisher", "mixture"])
def test_columns_that_float32_can_hardly_tell_from_constant_ones_get_a_true_sentence(objective):
    """Sixteenths about a million: float32 holds them exactly, in steps of a sixteenth."""
    rows = np.random.default_rng(0).integers(0, 17, (N, P)) / 16 + 1e6
    labels = np.arange(N) % 3
    with pytest.raises(
        InvalidInputError, match=r"ten roundings of their float32 numbers.*about its mean 1e\+06.*float64"
    ):
        PrefixEncoder(2, objective=objective).fit(rows.astype(np.float32), labels)
    assert PrefixEncoder(2, objective=objective).fit(rows, labels).n_components_ == 2
    assert PrefixEncoder(2, objective=objective).fit((rows - 1e6).astype(np.float32), labels).n_components_ == 2


def test_equal_scores_are_positives():
    enc = PrefixEncoder(objective=Similarity(shrinkage=0.5, neighbor_weight=0.0)).fit_pairs(X, R, np.full(N, 3.0))
    other = PrefixEncoder(objective=Similarity(shrinkage=0.5, neighbor_weight=0.0)).fit_pairs(X, R)
    np.testing.assert_allclose(enc.components_, other.components_, atol=1e-12)


def test_large_but_finite_numbers_are_taken():
    enc = PrefixEncoder().fit(X * 1e100)
    np.testing.assert_allclose(np.abs(enc.components_), np.abs(PrefixEncoder().fit(X).components_), atol=1e-9)


# -- models on disk ------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    return PrefixEncoder(objective="fisher").fit(X, Y).save(tmp_path / "model")


def rewrite(model, change_arrays=None, change_config=None):
    """Change a model and make its checksums right again, so that only the change itself is wrong."""
    arrays = dict(load((model / "model.safetensors").read_bytes()))
    config = json.loads((model / "config.json").read_text())
    if change_arrays:
        arrays = {name: np.ascontiguousarray(part) for name, part in change_arrays(arrays).items()}
    payload = save(arrays)
    config["files"]["model.safetensors"] = hashlib.sha256(payload).hexdigest()
    (model / "model.safetensors").write_bytes(payload)
    seal(model, change_config(config) if change_config else config)


def truncate(model):
    file = model / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-9])


def flip(model):
    file = model / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)


def foreign_tensors(model):
    payload = b"not safetensors at all"
    config = json.loads((model / "config.json").read_text())
    config["files"]["model.safetensors"] = hashlib.sha256(payload).hexdigest()
    seal(model, config)
    (model / "model.safetensors").write_bytes(payload)


def replaced_by_a_file(model):
    shutil.rmtree(model)
    model.write_text("a file")


def without(name):
    return lambda model: rewrite(model, change_config=lambda c: {k: v for k, v in c.items() if k != name})


def setting(**values):
    return lambda model: rewrite(model, change_config=lambda c: c | values)


def arrays(**values):
    return lambda model: rewrite(model, lambda a: a | {name.replace("__", "."): part for name, part in values.items()})


CORRUPT = {
    "missing folder": (shutil.rmtree, "is not a firstk model: there is no config.json in it"),
    "a file": (replaced_by_a_file, "is not a firstk model: there is no config.json in it"),
    "truncated": (truncate, "does not match the checksum in config.json: it is damaged"),
    "one bit flipped": (flip, "does not match the checksum in config.json: it is damaged"),
    "no tensors": (lambda m: (m / "model.safetensors").unlink(), "has no readable model.safetensors"),
    "foreign tensors": (foreign_tensors, "is not a safetensors file"),
    "no config": (lambda m: (m / "config.json").unlink(), "there is no config.json in it"),
    "half a config": (lambda m: (m / "config.json").write_text('{"format": '), "is not readable JSON"),
    "config of bytes": (lambda m: (m / "config.json").write_bytes(b"\xff\xfe\x00"), "is not readable JSON"),
    "config of another library": (
        lambda m: (m / "config.json").write_text('{"model_type": "bert"}'),
        "does not say format 'firstk-encoder'",
    ),
    "config that is a list": (lambda m: (m / "config.json").write_text("[1, 2]"), "does not say format"),
    "version of the future": (setting(format_version=99), "has format version 99; this firstk reads version 1"),
    "no version": (without("format_version"), "has format version None"),
    "no width": (without("d"), "damaged firstk model"),
    "another width": (setting(d=7), "array 'components' is|damaged|do not fit"),
    "width of words": (setting(d="two"), "damaged firstk model"),
    "no classes": (without("classes"), "damaged firstk model"),
    "too few classes": (setting(classes=[0, 1]), "names 2 classes for a head of 3"),
    "classes of objects": (setting(classes=[{}, [], None]), "damaged|classes"),
    "no objective": (without("objective"), "config.json cannot be read .*Missing: objective"),
    "unknown objective": (setting(objective="entropy"), "its settings cannot be read"),
    "unknown setting": (setting(settings={"colour": 1}), "its settings cannot be read"),
    "bad setting": (setting(settings={"shrinkage": 7}), "its settings cannot be read"),
    "unknown ordering": (setting(ordering="random"), "its settings cannot be read"),
    "no solver": (without("solver"), "config.json cannot be read .*Missing: solver"),
    "no metric": (without("metric"), "config.json cannot be read .*Missing: metric"),
    "NaN array": (arrays(mean=np.full(P, np.nan)), "array 'mean' holds NaN or infinity"),
    "infinite head": (arrays(head__offset=np.full(3, np.inf)), "array 'head.offset' holds NaN or infinity"),
    "wrong shape": (arrays(mean=np.zeros(P + 1)), r"array 'mean' is float64\(6,\); float64\(5,\) was expected"),
    "wrong dtype": (arrays(mean=np.zeros(P, np.float32)), r"array 'mean' is float32\(5,\)"),
    "extra array": (arrays(surprise=np.zeros(2)), "holds arrays .*surprise"),
    "missing array": (
        lambda m: rewrite(m, lambda a: {k: v for k, v in a.items() if k != "spectrum"}),
        "a firstk model of this kind has .*spectrum",
    ),
    "half a head": (
        lambda m: rewrite(m, lambda a: {k: v for k, v in a.items() if k != "head.offset"}),
        "holds arrays|damaged",
    ),
    "scalar head": (arrays(head__offset=np.float64(1.0).reshape(())), "damaged|head"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_corrupt_models_raise_an_error_with_a_message(model, case):
    spoil, message = CORRUPT[case]
    spoil(model)
    with pytest.raises(CorruptModelError, match=message) as caught:
        PrefixEncoder.load(model)
    assert str(model) in str(caught.value)


def test_the_untouched_rewrite_loads(model):
    """The tool of the table above does no harm of its own."""
    before = PrefixEncoder.load(model).components_
    rewrite(model)
    np.testing.assert_array_equal(PrefixEncoder.load(model).components_, before)


@pytest.mark.parametrize("case", ["truncated", "NaN array", "missing array", "version of the future"])
def test_the_frozen_encoder_raises_too(model, case):
    spoil, message = CORRUPT[case]
    spoil(model)
    with pytest.raises(CorruptModelError, match=message):
        FittedEncoder.load(model)


def foreign_folder(tmp_path, files):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.tex": "years of work"},
        {"config.json": '{"model_type": "bert"}', "weights.bin": "dear"},
        {"config.json": "not json"},
        {"config.json": '{"format": "firstk-encoder"}', "notes.txt": "mine"},
    ],
    ids=["files", "another library's model", "a config of unknown kind", "a model and notes"],
)
def test_saving_over_a_foreign_folder_raises_and_harms_nothing(tmp_path, files):
    folder = foreign_folder(tmp_path, files)
    with pytest.raises(
        InvalidInputError, match=r"holds something that is not a firstk model. Choose an empty or new one"
    ):
        fitted().save(folder)
    assert {file.name: file.read_text() for file in folder.iterdir()} == files


def test_saving_over_a_file_raises(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"A model is a folder, and .* is a file. Choose another name"):
        fitted().save(tmp_path / "file")
    with pytest.raises(InvalidInputError, match="Cannot write a model to"):
        fitted().save(tmp_path / "file" / "below")


def test_saving_into_an_empty_or_new_folder_is_fine(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "new" / "deeper"):
        assert PrefixEncoder.load(fitted().save(path)).n_components_ == 3


def test_labels_that_are_not_plain_cannot_be_saved(tmp_path):
    labels = np.array([np.datetime64("2020-01-01"), np.datetime64("2021-01-01")])[np.arange(N) % 2]
    enc = PrefixEncoder(objective="fisher")
    try:
        enc.fit(X, labels)
    except ValueError:
        return  # an error at once is as good
    with pytest.raises(InvalidInputError, match="Only labels that are strings, numbers or booleans can be saved"):
        enc.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
