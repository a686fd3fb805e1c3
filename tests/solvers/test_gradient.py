"""The one training loop: hooks in order, stopping, tracing, checkpoints, interruption, divergence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from firstk import MLP, Fisher, Gradient, PrefixEncoder, Similarity, SparsePrefix, UniformL2, Unordered
from firstk._base.linalg import shrunk
from firstk.data import load_digits
from firstk.exceptions import IllegalCombinationError, InvalidInputError, TrainingDivergedError, TrainingWarning
from firstk.metrics import mean_principal_angles, paired_cosines
from firstk.solvers.gradient import checkpoint as _checkpoint

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def classified(digits, solver, **kwargs):
    objective = kwargs.pop("objective", "classification")
    enc = PrefixEncoder(8, objective=objective, solver=solver, random_state=3, **kwargs)
    return enc.fit(digits.X_train, digits.y_train)


def same_bytes(a, b):
    assert a.encoder_.components.tobytes() == b.encoder_.components.tobytes()
    assert a.encoder_.head.weight.tobytes() == b.encoder_.head.weight.tobytes()
    if a.encoder_.network is not None:
        for name, part in a.encoder_.network.arrays().items():
            assert part.tobytes() == b.encoder_.network.arrays()[name].tobytes()


def timeless(trace):
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in trace]


def die_after(monkeypatch, checkpoints):
    """Stop the process, as far as training can tell, right after this many checkpoints."""
    real, written = _checkpoint.write, []

    def dying(*args):
        real(*args)
        written.append(1)
        if len(written) == checkpoints:
            raise SystemExit

    monkeypatch.setattr(_checkpoint, "write", dying)


@pytest.mark.parametrize(("scored", "turned"), [(True, True), (False, False)])
def test_scored_pairs_are_trained_in_white_coordinates_that_favour_no_direction(monkeypatch, scored, turned):
    """Adam sees coordinates, not directions: with scores no coordinate is a quiet direction alone."""
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(300, 40)) * np.logspace(0, -3, 40) for _ in range(2))
    scores = rng.permutation(300) if scored else None
    tasks, train = [], Gradient.train

    def watched(self, task, *rest):
        tasks.append(task)
        return train(self, task, *rest)

    monkeypatch.setattr(Gradient, "train", watched)
    objective = Similarity(shrinkage=0.9, neighbor_weight=0.0)
    PrefixEncoder(2, objective=objective, solver=Gradient(epochs=1), random_state=0).fit_pairs(left, right, scores)
    R = tasks[0].model.encoder.R.double().numpy()
    St = (np.cov(left.T, bias=True) + np.cov(right.T, bias=True)) / 2
    np.testing.assert_allclose(R.T @ shrunk(St, 0.9, 40) @ R, np.eye(40), atol=1e-5)
    variances = np.diag(R.T @ St @ R)
    assert (variances.max() < 20 * variances.min()) == turned


def test_the_hooks_are_called_in_their_order():
    calls = []

    class Watched(Unordered):
        def perturb(self, view):
            calls.append("perturb")
            return view.code

        def penalty(self, view):
            calls.append("penalty")
            return 0.0

        def correct(self, view):
            assert view.model.encoder.C.grad is not None
            calls.append("correct")

        def retract(self, view):
            calls.append("retract")

    X = np.random.default_rng(0).normal(size=(40, 5))
    PrefixEncoder(2, ordering=Watched(), solver=Gradient(epochs=2, optimizer="adam"), random_state=0).fit(X)
    assert calls == ["perturb", "penalty", "correct", "retract"] * 2


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_same_seed_same_bytes_and_another_seed_other_bytes(digits, network):
    solver = Gradient(epochs=2)
    first, second = (classified(digits, solver, network=network) for _ in range(2))
    same_bytes(first, second)
    other = PrefixEncoder(8, objective="classification", solver=solver, network=network, random_state=4)
    other.fit(digits.X_train, digits.y_train)
    assert not np.array_equal(other.encoder_.head.weight, first.encoder_.head.weight)


@pytest.mark.parametrize("network", ["linear", "mlp"])
def test_resume_gives_the_bytes_of_an_uninterrupted_run(digits, network, tmp_path, monkeypatch):
    """Checkpoints of a run that is stopped dead after its third one: nothing is left to tidy up."""
    whole = classified(digits, Gradient(epochs=6), network=network)
    with monkeypatch.context() as patched:
        die_after(patched, 3)
        with pytest.raises(SystemExit):
            classified(digits, Gradient(epochs=6, checkpoint=tmp_path), network=network)
    resumed = classified(digits, Gradient(epochs=6, checkpoint=tmp_path, resume=True), network=network)
    same_bytes(whole, resumed)
    assert timeless(resumed.trace_) == timeless(whole.trace_)


def test_a_run_that_is_over_is_not_taken_up_again(digits, tmp_path):
    settings = {"patience": 2, "validation": 0.2, "epochs": 300, "learning_rate": 0.05, "schedule": "constant"}
    whole = classified(digits, Gradient(checkpoint=tmp_path, **settings))
    assert whole.encoder_.record.ended == "no better validation loss"
    again = classified(digits, Gradient(checkpoint=tmp_path, resume=True, **settings))
    same_bytes(whole, again)
    assert again.encoder_.record == whole.encoder_.record
    assert timeless(again.trace_) == timeless(whole.trace_)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "lbfgs"])
def test_full_batch_runs_resume_to_the_same_bytes(digits, tmp_path, monkeypatch, optimizer):
    def fit(epochs, **kwargs):
        solver = Gradient(optimizer=optimizer, epochs=epochs, schedule="constant", checkpoint_every=5, **kwargs)
        enc = PrefixEncoder(4, solver=solver, init="random", random_state=0).fit(digits.X_train)
        return enc.components_.tobytes(), timeless(enc.trace_)

    whole = fit(20)
    with monkeypatch.context() as patched:
        die_after(patched, 2)  # after ten of twenty steps
        with pytest.raises(SystemExit):
            fit(20, checkpoint=tmp_path)
    assert fit(20, checkpoint=tmp_path, resume=True) == whole


@pytest.mark.full  # in one process, the test above
def test_a_killed_process_resumes_to_the_same_bytes(tmp_path):
    """SIGKILL in the middle of training, then the same command again."""
    script = textwrap.dedent(
        f"""
        import sys, time
        import numpy as np
        from firstk import Gradient, PrefixEncoder
        from firstk.data import load_digits
        from firstk.solvers.gradient import checkpoint as _checkpoint
        digits = load_digits()
        slow = sys.argv[1] == "slow"
        if slow:
            real = _checkpoint.write
            def write(*args):
                real(*args)
                print("written", flush=True)
                time.sleep(0.2)
            _checkpoint.write = write
        solver = Gradient(epochs=12, checkpoint={str(tmp_path)!r}, resume=True)
        enc = PrefixEncoder(6, objective="classification", solver=solver, random_state=0)
        enc.fit(digits.X_train, digits.y_train)
        print(enc.components_.tobytes().hex())
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script, "slow"], stdout=subprocess.PIPE, text=True)
    for _ in range(4):
        assert process.stdout.readline() == "written\n"
    process.kill()
    process.wait()
    assert (tmp_path / _checkpoint.FILE).exists()
    done = subprocess.run([sys.executable, "-c", script, "fast"], capture_output=True, text=True, check=True)
    digits = load_digits()
    whole = PrefixEncoder(6, objective="classification", solver=Gradient(epochs=12), random_state=0)
    whole.fit(digits.X_train, digits.y_train)
    assert done.stdout.splitlines()[-1] == whole.components_.tobytes().hex()


def test_a_checkpoint_of_another_run_is_refused(digits, tmp_path):
    classified(digits, Gradient(epochs=1, checkpoint=tmp_path))
    with pytest.raises(InvalidInputError, match=r"belongs to another run.*another folder"):
        classified(digits, Gradient(epochs=2, checkpoint=tmp_path, resume=True))
    (tmp_path / _checkpoint.FILE).write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        classified(digits, Gradient(epochs=1, checkpoint=tmp_path, resume=True))


def test_a_run_without_a_seed_cannot_be_taken_up_again(digits, tmp_path):
    enc = PrefixEncoder(2, solver=Gradient(epochs=3, checkpoint=tmp_path, resume=True))
    with pytest.raises(InvalidInputError, match=r"resume=True\) needs a random_state"):
        enc.fit(digits.X_train)
    enc.set_params(random_state=0).fit(digits.X_train)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_keeps_the_best_state_and_says_so(digits):
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.warns(TrainingWarning, match=r"interrupted at epoch \d+ of 100000; the best state so far is kept"):
        enc = classified(digits, Gradient(epochs=100_000))
    assert time.perf_counter() - began < 20
    assert signal.getsignal(signal.SIGINT) is before
    assert enc.score(digits.X_test, digits.y_test) > 0.85
    assert enc.encoder_.record.ended == "interrupted"


def test_a_diverging_run_names_the_learning_rate(digits):
    solver = Gradient(optimizer="sgd", learning_rate=10.0, precondition=False, whiten=False)
    with pytest.raises(TrainingDivergedError, match=r"learning rate 10 of optimizer 'sgd' is too large: try .*=1\)"):
        PrefixEncoder(4, solver=solver, init="random", random_state=0).fit(digits.X_train)


def test_the_start_of_a_diverging_run_is_its_first_loss(digits):
    """The mean of a first epoch that has gone astray would say nothing."""
    first = classified(digits, Gradient(epochs=1, learning_rate=1e-12)).trace_[0]["loss"]
    with pytest.raises(TrainingDivergedError, match=r"from [\d.]+ at the start") as refused:
        classified(digits, Gradient(optimizer="sgd", learning_rate=1e6))
    assert float(str(refused.value).split("from ")[1].split()[0]) == pytest.approx(first, rel=0.2)


@pytest.mark.parametrize(("row", "why"), [(0.0, "rank 3: 1 all zero"), (1.0, "rank 3: some are combinations")])
def test_a_start_with_rows_that_are_zero_or_alike_is_refused(digits, row, why):
    start = np.eye(4, 64, k=20)
    start[3] = row * start[2]
    with pytest.raises(InvalidInputError, match=f"rows of the 'init' of PrefixEncoder must be independent. Got {why}"):
        PrefixEncoder(4, solver=Gradient(epochs=3), init=start).fit(digits.X_train)


def test_patience_stops_and_keeps_the_best_state(digits):
    solver = Gradient(patience=3, validation=0.2, epochs=500, learning_rate=0.05, schedule="constant")
    enc = classified(digits, solver)
    assert enc.encoder_.record.ended == "no better validation loss"
    assert enc.encoder_.record.epochs < 500
    best = [entry["best_validation"] for entry in enc.trace_]
    assert best == sorted(best, reverse=True)
    assert best[-1] == best[-4] < best[0]


def test_the_trace_falls_and_can_be_plotted(digits):
    solver = Gradient(epochs=100)
    enc = PrefixEncoder(4, solver=solver, init="random", random_state=0).fit(digits.X_train)
    assert [entry["epoch"] for entry in enc.trace_] == [1, *range(10, 101, 10)]
    assert enc.trace_[-1]["loss"] < enc.trace_[0]["loss"]
    assert enc.trace_[-1]["axis_distance"] < 0.5 * enc.trace_[0]["axis_distance"]
    assert enc.trace_[-1]["subspace_distance"] < 0.5 * enc.trace_[0]["subspace_distance"]
    assert PrefixEncoder(4).fit(digits.X_train).trace_ == []


@pytest.mark.parametrize(("every", "epochs"), [({}, [1, 2, 3, 4, 5, 6, 7]), ({"trace_every": 3}, [1, 3, 6])])
def test_with_batches_the_trace_has_every_epoch_or_every_so_many(digits, every, epochs):
    enc = classified(digits, Gradient(epochs=7, **every))
    assert [entry["epoch"] for entry in enc.trace_] == epochs


def test_what_is_watched_joins_the_trace_and_cannot_change_the_run(digits):
    def watch(B, A):
        size = float(np.sum(B * A.T))
        B[:], A[:] = 0, 0
        return {"agreement": size}

    def fitted(watch):
        solver = Gradient(epochs=30, watch=watch)
        return PrefixEncoder(4, solver=solver, init="random", random_state=0).fit(digits.X_train)

    plain, watched = fitted(None), fitted(watch)
    np.testing.assert_array_equal(plain.components_, watched.components_)
    assert all(3 < entry["agreement"] < 5 for entry in watched.trace_)  # B A is near the identity of width 4
    assert "agreement" not in plain.trace_[0]


def test_fewer_rows_than_columns_are_watched_in_their_own_coordinates(digits):
    shapes = set()
    solver = Gradient(epochs=3, watch=lambda B, A: shapes.add((B.shape, A.shape)) or {})
    PrefixEncoder(4, solver=solver, init="random", random_state=0).fit(digits.X_train[:20])
    assert shapes == {((4, 64), (64, 4))}


def test_what_is_watched_must_be_matrices(digits):
    solver = Gradient(epochs=3, watch=lambda B, A: {})
    with pytest.raises(IllegalCombinationError, match=r"watch.*nonlinear network"):
        PrefixEncoder(4, network="mlp", solver=solver).fit(digits.X_train)
    with pytest.raises(InvalidInputError, match="'watch' parameter of Gradient"):
        PrefixEncoder(4, solver=Gradient(watch=3)).fit(digits.X_train)
    with pytest.raises(InvalidInputError, match="'canonical' parameter of Gradient"):
        PrefixEncoder(4, solver=Gradient(canonical="no")).fit(digits.X_train)


@pytest.mark.parametrize("found", [0.5, None, {"size": "large"}])
def test_what_is_watched_must_be_named_numbers(digits, found):
    with pytest.raises(InvalidInputError, match=r"watch=\.\.\.\) must return \{name: number\}. Got"):
        PrefixEncoder(4, solver=Gradient(epochs=3, watch=lambda B, A: found), init="random").fit(digits.X_train)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused(digits):
    with pytest.raises(InvalidInputError, match=r"device='cuda' cannot be used here: .*Use 'auto' or 'cpu'"):
        PrefixEncoder(4, solver=Gradient(epochs=3), device="cuda").fit(digits.X_train)


def test_a_code_as_it_was_learned_is_the_canonical_one_before_blocks_are_turned(digits):
    """A list of lengths leaves blocks free: as learned they are mixed, the spans at the lengths are the same."""

    def fitted(canonical):
        solver = Gradient(epochs=300, canonical=canonical)
        enc = PrefixEncoder(6, ordering=SparsePrefix([3, 6]), solver=solver, init="random", random_state=0)
        return enc.fit(digits.X_train)

    learned, canonical = fitted(False), fitted(True)
    pca = PrefixEncoder(6).fit(digits.X_train).components_
    assert paired_cosines(canonical.decoder_.T, pca).min() > 0.99
    assert paired_cosines(learned.decoder_.T, pca).min() < 0.9
    np.testing.assert_allclose(mean_principal_angles(learned.decoder_.T, canonical.decoder_.T)[[2, 5]], 0, atol=1e-4)
    code = [enc.transform(digits.X_test) @ enc.decoder_.T for enc in (learned, canonical)]
    np.testing.assert_allclose(*code, atol=1e-5)  # a product of small blocks, turned and turned back


def test_a_discriminant_code_as_it_was_learned_has_no_rule_for_classes(digits):
    solver = Gradient(epochs=20, canonical=False, whiten=False)
    enc = PrefixEncoder(3, objective=Fisher(shrinkage=0.1), solver=solver, init="random", random_state=0)
    enc.fit(digits.X_train, digits.y_train)
    assert enc.encoder_.head is None
    assert not hasattr(enc, "predict")


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "lbfgs"])
def test_every_optimizer_lowers_the_loss_from_moments(digits, optimizer):
    solver = Gradient(optimizer=optimizer, epochs=20 if optimizer == "lbfgs" else 200)
    enc = PrefixEncoder(4, solver=solver, init="random", random_state=0).fit(digits.X_train)
    assert enc.optimality_gap_ < 0.01


def test_the_cost_of_a_step_on_moments_does_not_depend_on_n(digits):
    """The task holds no rows at all, and partial_fit with the gradient solver gives what fit gives."""
    kwargs = {"solver": Gradient(epochs=50), "init": "random", "random_state": 0}
    whole = PrefixEncoder(4, **kwargs).fit(digits.X_train)
    stream = PrefixEncoder(4, **kwargs).partial_fit(digits.X_train[:600]).partial_fit(digits.X_train[600:])
    np.testing.assert_allclose(stream.components_, whole.components_, atol=1e-4)  # float32 products, other blocks


@pytest.mark.parametrize("kwargs", [{"objective": "classification"}, {"network": "mlp"}])
def test_training_that_needs_rows_refuses_a_stream_at_once_and_harms_nothing(digits, kwargs):
    X, y = digits.X_train[:300], digits.y_train[:300]
    enc, other = (PrefixEncoder(4, solver=Gradient(epochs=1), random_state=0, **kwargs).fit(X, y) for _ in range(2))
    before = enc.transform(X)
    needs_rows = r"needs the rows themselves.*fit\(X, y\)"
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as raised:
        enc.partial_fit(X, y)
    assert re.search(f"partial_fit with .*{needs_rows}", str(raised.value.__cause__))
    with pytest.raises(IllegalCombinationError, match=f"merge with .*{needs_rows}"):
        enc.merge(other)
    np.testing.assert_array_equal(enc.transform(X), before)
    new = PrefixEncoder(4, **kwargs)
    assert not hasattr(new, "partial_fit")  # as scikit-learn asks
    assert not hasattr(new, "n_features_in_")


def test_training_on_pairs_refuses_a_stream_at_once(digits):
    X = digits.X_train[:300]
    with pytest.raises(IllegalCombinationError, match=r"partial_fit_pairs with .*needs the rows themselves"):
        PrefixEncoder(4, objective="similarity", solver="gradient").partial_fit_pairs(X, X + 1)


def test_clipping_bounds_a_step(digits):
    """With rate 1 and no momentum a step is as long as its gradient; uniform l2 leaves the weights as they come."""
    start = np.eye(4, 64, k=20)

    def moved(clip):
        solver = Gradient(epochs=2, optimizer="sgd", learning_rate=1.0, momentum=0.0, clip=clip)
        enc = PrefixEncoder(4, ordering=UniformL2(5.0), solver=solver, init=start, random_state=0).fit(digits.X_train)
        return np.linalg.norm(enc.components_ - start)

    assert 0 < moved(1e-3) <= 1e-3 * (1 + 1e-9)  # the best state is that before the second step
    assert moved(1e-2) > 2e-3


def test_weights_count_as_repetitions(digits):
    """Weight zero on half the rows is as if they were not there, on moments; on rows they are never drawn."""
    X, y = digits.X_train, digits.y_train
    weight = (np.arange(len(X)) % 2).astype(float)
    kwargs = {"solver": Gradient(epochs=50), "init": "random", "random_state": 0}
    weighted = PrefixEncoder(4, **kwargs).fit(X, sample_weight=weight)
    halved = PrefixEncoder(4, **kwargs).fit(X[weight > 0])
    np.testing.assert_allclose(weighted.components_, halved.components_, atol=1e-4)
    wrong = np.where(weight > 0, y, (y + 1) % 10)
    enc = PrefixEncoder(9, objective="classification", random_state=0).fit(X, wrong, sample_weight=weight)
    assert enc.score(X[weight > 0], y[weight > 0]) > 0.9


def test_rows_with_weights_are_held_out_by_weight(digits, monkeypatch):
    """Nines weigh nothing and fives three times as much, in training and among the rows that judge it."""
    tasks, train = [], Gradient.train
    monkeypatch.setattr(Gradient, "train", lambda self, task, *rest: tasks.append(task) or train(self, task, *rest))
    y = digits.y_train
    weight = np.where(y == 9, 0.0, np.where(y == 5, 3.0, 1.0))
    enc = PrefixEncoder(6, objective="classification", network="mlp", solver=Gradient(epochs=2), random_state=0)
    enc.fit(digits.X_train, y, sample_weight=weight)
    held, rows = (np.bincount(part["label"], minlength=10) for part in (tasks[0].held, tasks[0].rows))
    given = np.bincount(y, minlength=10) - rows  # what was held out, before it was drawn by weight
    expected = given * [1, 1, 1, 1, 1, 3, 1, 1, 1, 0]
    assert held[9] == 0 < given[9]
    assert held.sum() == given.sum() == round(0.1 * len(y))
    np.testing.assert_allclose(held, expected * held.sum() / expected.sum(), atol=0.25 * held[5])
    kinds = np.array([1, 1, 1, 1, 1, 3, 1, 1, 1, 0.0])
    np.testing.assert_array_equal(tasks[0].weight, kinds[tasks[0].rows["label"]])


def test_a_share_that_cannot_be_held_out_is_refused():
    solver = Gradient(validation=0.01, patience=2)
    with pytest.raises(
        InvalidInputError, match=r"0.01 of 40 rows, 0 of them.*solver=Gradient\(validation=0, patience=N"
    ):
        PrefixEncoder(2, network="mlp", solver=solver).fit(np.random.default_rng(0).normal(size=(40, 5)))
    few, rows = np.arange(40) < 3, np.random.default_rng(0).normal(size=(40, 5))
    with pytest.raises(InvalidInputError, match="Got 3 of them, 0 held out"):
        PrefixEncoder(2, network="mlp", random_state=1).fit(rows, sample_weight=few)


def test_settings_that_mean_nothing_are_refused():
    for bad, match in [
        ({"optimizer": "newton"}, "'optimizer'"),
        ({"learning_rate": 0}, "'learning_rate' .* a positive number"),
        ({"epochs": 1.5}, "'epochs' .* a positive int"),
        ({"batch_size": "half"}, "'batch_size'"),
        ({"momentum": 1.0}, "'momentum'"),
        ({"clip": -1.0}, "'clip'"),
        ({"trace_every": 0}, "'trace_every' .* a positive int or 'auto'"),
        ({"patience": 3, "validation": 0}, "patience needs a validation loss, and no rows are held out"),
        ({"resume": True}, "needs checkpoint"),
        ({"optimizer": "lbfgs", "batch_size": 10}, "same loss at every step"),
    ]:
        with pytest.raises(ValueError, match=match):
            PrefixEncoder(2, solver=Gradient(**bad)).fit(np.eye(5))


def test_progress_shows_loss_and_time_left(digits, capsys):
    classified(digits, Gradient(epochs=60), verbose=True)  # a bar is drawn ten times a second at most
    shown = capsys.readouterr().err
    assert "training" in shown
    assert "loss" in shown


def test_progress_counts_epochs(digits, monkeypatch):
    bars, counted = pytest.importorskip("tqdm.auto"), []
    monkeypatch.setattr(bars.tqdm, "update", lambda bar, n=1: counted.append(bar.desc))
    classified(digits, Gradient(epochs=3), verbose=True)
    assert counted.count("training") == 3


def test_networks_trained_in_threads_draw_by_their_own_seed():
    """Dropout draws from torch's global generator, of which all threads have one."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 6)), np.arange(120) % 3
    enc = PrefixEncoder(
        2, objective="classification", network=MLP((8,), dropout=0.3), solver=Gradient(epochs=3), random_state=0
    )
    before = torch.get_rng_state()
    alone = enc.fit(X, y).transform(X[:2])
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: clone(enc).fit(X, y).transform(X[:2]), range(8)))
    for code in codes:
        np.testing.assert_array_equal(code, alone)
    np.testing.assert_array_equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("batch_size", ["auto", 10])
def test_the_loss_of_the_trace_is_the_mean_loss_of_the_prefixes(batch_size):
    X = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(6, 0, -1)
    solver = Gradient(epochs=1, learning_rate=1e-12, batch_size=batch_size)
    enc = PrefixEncoder(4, solver=solver, random_state=0).fit(X)
    spectrum = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    assert enc.trace_[0]["loss"] == pytest.approx((spectrum.sum() - np.cumsum(spectrum)[:4]).mean(), rel=1e-6)


def test_a_run_ends_when_fifty_steps_moved_the_loss_by_less_than_the_tolerance(digits):
    slow = Gradient(optimizer="sgd", epochs=120, learning_rate=1e-9, tolerance=1e-3, whiten=False, precondition=False)
    enc = PrefixEncoder(4, solver=slow, init="random", random_state=0).fit(digits.X_train)
    losses = [entry["loss"] for entry in enc.trace_]
    assert losses[-1] < losses[0]
    assert (enc.encoder_.record.ended, enc.encoder_.record.epochs) == ("converged", 51)


def test_a_checkpoint_of_other_moments_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 5))
    solver = Gradient(epochs=4, checkpoint=tmp_path, checkpoint_every=2, resume=True, whiten=False, precondition=False)
    start = np.eye(2, 5)
    PrefixEncoder(2, solver=solver, init=start, random_state=0).fit(X)
    with pytest.raises(InvalidInputError, match="another"):
        PrefixEncoder(2, solver=solver, init=start, random_state=0).fit(2 * X)
