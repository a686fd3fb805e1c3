"""A user's file with every documented object: pyright and mypy, both strict, accept it; `test_typed.py` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import firstk
from firstk import (
    MLP,
    Choice,
    Classification,
    ClosedForm,
    CodeIndex,
    Denoising,
    ErrorBound,
    Evaluation,
    Fisher,
    FittedEncoder,
    FullPrefix,
    FunnelIndex,
    GaussianNoise,
    Gradient,
    Masking,
    Mixture,
    Moments,
    MonotoneL1,
    NestedDropout,
    NonuniformL2,
    PairMoments,
    Pairs,
    PrefixAlignment,
    PrefixCurve,
    PrefixEncoder,
    QuasiNewton,
    Reconstruction,
    Regression,
    Rotation,
    Rows,
    Search,
    Similarity,
    SparsePrefix,
    Task,
    UniformL2,
    Unordered,
    Variational,
    allocate,
    diagnose,
    evaluate,
    fit_files,
    image_patches,
    prefix_curve,
    read,
    transform_files,
)
from firstk.contracts import Objective, Ordering, Solver
from firstk.data import load_digits
from firstk.upgrade.contract import AlignmentMethod
from firstk.upgrade.methods import (
    CCA,
    Procrustes,
    ProcrustesRidge,
    ReducedRank,
    Ridge,
    WhitenedRidge,
)

if TYPE_CHECKING:  # it is read, not run
    digits = load_digits()
    X, y = digits.X_train, digits.y_train

    # Objectives, orderings and solvers: by object ...
    objectives: list[Objective] = [
        Reconstruction(),
        Fisher(shrinkage="auto"),
        ErrorBound(),
        Classification(),
        Regression(),
        Similarity(),
        Mixture(),
        Denoising(GaussianNoise(0.1)),
        Denoising(Masking(0.3)),
    ]
    orderings: list[Ordering] = [
        FullPrefix(),
        SparsePrefix([8, 16]),
        Unordered(),
        UniformL2(),
        NonuniformL2(),
        MonotoneL1(),
        NestedDropout(),
        Rotation(),
        Variational(),
    ]
    solvers: list[Solver] = [ClosedForm(), Gradient(), QuasiNewton()]
    methods: list[AlignmentMethod] = [
        CCA(),
        Procrustes(),
        ProcrustesRidge(),
        ReducedRank(),
        Ridge(),
        WhitenedRidge(),
    ]
    for objective in objectives:
        PrefixEncoder(objective=objective)
    for ordering in orderings:
        PrefixEncoder(ordering=ordering)
    for solver in solvers:
        PrefixEncoder(solver=solver)
    for method in methods:
        PrefixAlignment(method=method)
    PrefixEncoder(objective=Fisher(shrinkage=0.1), ordering=SparsePrefix([8, 16]), solver=Gradient(), network=MLP())
    PrefixEncoder(objective=Classification(), ordering=Rotation(), solver=QuasiNewton())

    # ... and by name.
    PrefixEncoder("rank", objective="fisher", ordering="full_prefix", solver="closed_form", verbose=False)
    PrefixAlignment(method="auto")

    # The path of a user: fit, cut, score, save, load.
    encoder = PrefixEncoder(16, objective="fisher").fit(X, y)
    codes: npt.NDArray[np.float64] = encoder[:8].transform(X)
    codes = encoder.transform(X, 4)
    labels = encoder.predict(X, 4)
    chances = encoder.predict_proba(X, 4)
    axes: npt.NDArray[np.float64] = encoder.components_
    mean: npt.NDArray[np.float64] = encoder.mean_
    rows: npt.NDArray[np.float64] = PrefixEncoder().fit(X).inverse_transform(codes)
    curve: PrefixCurve = encoder.curve(digits.X_test, digits.y_test, reference=(X, y))
    smallest: int = curve.smallest(keep=0.9)
    fitted: FittedEncoder = encoder.encoder_
    half: FittedEncoder = fitted[:2]
    loaded = PrefixEncoder.load(encoder.save("model"))
    packed = encoder.quantizer(bytes=4).encode(X)
    scores: PrefixCurve = prefix_curve(fitted, Rows(digits.X_test, digits.y_test, reference=Rows(X, y)))
    sizes = allocate({"title": curve, "body": [0.0, 0.3, 0.5]}, 16).sizes
    patches = image_patches((8, 8), (4, 4))

    # Files.
    task = read("vectors.npy", labels="labels.npy")
    assert task.train is not None
    assert task.held_out is not None
    encoder.fit(task.train)
    table: Evaluation = evaluate(encoder, task.held_out)
    choice: Choice = table.choose(keep=0.95)
    own = Task(Rows(X, y), Rows(digits.X_test, digits.y_test, reference=Rows(X, y)))
    table = evaluate(encoder.fit(own.train), own.held_out)
    from_files = fit_files(PrefixEncoder(), "vectors.npy")
    transform_files(from_files.encoder_, "vectors.npy", "codes.npy", k=8)
    diagnosis = diagnose(X, y)

    # What there is to learn from, and moments.
    PrefixEncoder().fit(Rows(X))
    PrefixEncoder(objective="similarity").fit(Pairs(X[:100], X[100:200]))
    PrefixEncoder(objective="similarity").fit(Search(X[:5], X, np.array([[0, 3, 1]])))
    moments = Moments().update(X)
    pairs = PairMoments().update(X[:100], X[100:200])

    # Retrieval and upgrades.
    found = FunnelIndex.fit(encoder.encode_document(X), recall=0.99).search(encoder.encode_query(X[:5]), 10)
    ids, nearest = found.ids, CodeIndex.fit(X, encoder=encoder, bytes=4).search(X[:5], 10).scores
    alignment = PrefixAlignment(method="cca").fit(X, X @ np.eye(64))
    translated: npt.NDArray[np.float64] = alignment.old_to_new(X)
    version: str = firstk.__version__
