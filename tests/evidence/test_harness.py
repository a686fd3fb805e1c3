"""The harness of `benchmarks.evidence`: a test part is for the last step alone, and a run survives on disk."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.evidence import runs
from benchmarks.evidence.data import Part, PeekedError, Sealed, fitting
from benchmarks.evidence.methods import METHODS, csr, lda, pca, truncation
from benchmarks.evidence.methods.contract import Method
from benchmarks.evidence.record import table_of
from benchmarks.evidence.runs import cached_run, run
from benchmarks.evidence.scores import few_shot, nearest
from benchmarks.evidence.tasks import files

from evidence.made_tasks import drawn, labelled, paired

KS = (2, 4, 8)


def test_a_method_that_opens_the_test_part_fails():
    task, opened = labelled()

    def peeks(part, setting, seed):
        task.test.opened()
        return lambda X, k, side: X[:, :k]

    with pytest.raises(PeekedError, match="while a method was being fitted"):
        run(task, Method("peeks", peeks), KS)
    assert not opened
    run(task, truncation.METHOD, KS)
    assert len(opened) == 1  # sealed again only while something is fitted


def test_a_method_that_opens_it_while_its_settings_are_compared_fails():
    task, opened = labelled()

    def encode(X, k, side):
        task.test.opened()
        return X[:, :k]

    with pytest.raises(PeekedError):
        run(task, Method("peeks later", lambda part, setting, seed: encode), KS)
    assert not opened


def test_files_of_test_parts_cannot_be_read_while_something_is_fitted(tmp_path, monkeypatch):
    (tmp_path / "banking77").mkdir()
    arrays = {"X_train": np.ones((2, 3)), "X_test": np.ones((1, 3)), "y_train": np.zeros(2), "y_test": np.zeros(1)}
    np.savez(tmp_path / "banking77" / "banking77_minilm.npz", **arrays)
    monkeypatch.setenv("FIRSTK_DATA", str(tmp_path))
    with fitting():
        assert files.vectors("banking77", "minilm", "X_train").shape == (2, 3)
        for read in (
            lambda: files.about("banking77", "y_test"),
            lambda: files.vectors("banking77", "minilm", "X_test"),
        ):
            with pytest.raises(PeekedError, match=r"test of banking77_minilm.npz"):
                read()
    assert len(files.about("banking77", "y_test")) == 1


def test_settings_are_chosen_on_validation_rows_for_each_length_and_once_for_ours():
    task, _ = labelled()

    def fit(part, setting, seed):  # the first setting is good at 2 only, the second from 4 on
        good = lambda k: (k < 4) == (setting == "short")  # noqa: E731
        encode = lda.fit(part, 0.5, seed)
        return lambda X, k, side: encode(X, k, side) if good(k) else np.ones((len(X), k))

    peer = run(task, Method("peer", fit, ("short", "long"), needs="labels"), KS)
    assert peer.chosen == ("'short'", "'long'", "'long'")
    ours = run(task, Method("ours", fit, ("short", "long"), needs="labels", ours=True), KS)
    assert ours.chosen == ("'long'",) * 3
    assert ours.score()[0] < peer.score()[0]


def test_scores_are_those_of_the_test_part():
    task, _ = labelled()
    found = run(task, pca.METHOD, (8,))
    X, y = drawn(400, 0)
    Q, wanted = drawn(90, 2)
    codes = [pca.fit(task.everything, eval(found.chosen[0]), 0)(rows, 8, "document") for rows in (X, Q)]
    unit = [Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in codes]
    hits = [y[np.argmax(unit[0] @ q)] == c for q, c in zip(unit[1], wanted, strict=True)]
    assert found.score()[0] == pytest.approx(np.mean(hits))


@pytest.mark.parametrize("task", [labelled()[0], paired(True), paired(False)], ids=["labels", "scores", "search"])
def test_a_run_is_kept_and_read_back(task, tmp_path):
    first = cached_run(task, truncation.METHOD, tmp_path)
    sealed = Sealed(lambda: pytest.fail("the test part was read again"))
    again = cached_run(type(task)(**{**vars(task), "test": sealed}), truncation.METHOD, tmp_path)
    assert again.chosen == first.chosen
    for part in first.test:
        np.testing.assert_array_equal(again.score(part), first.score(part))


@pytest.mark.parametrize("folder", runs.SOURCES["bytes"])
def test_a_run_of_ours_is_made_again_where_the_code_behind_it_has_changed(folder, tmp_path, monkeypatch):
    """The sources of a small package, of which each folder is changed in turn: bytes depend on all of them."""
    for name in runs.SOURCES["bytes"]:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "one.py").write_text("1")
    monkeypatch.setattr("firstk.__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(runs, "code", runs.code.__wrapped__)  # without its cache
    task = labelled()[0]
    methods = {unit: replace(truncation.METHOD, ours=True, unit=unit) for unit in runs.SOURCES}
    before = {unit: runs.kept_at(task, method, tmp_path) for unit, method in methods.items()}
    (tmp_path / folder / "one.py").write_text("2")
    changed = [unit for unit, method in methods.items() if runs.kept_at(task, method, tmp_path) != before[unit]]
    assert changed == (["bytes"] if folder in ("bits", "encoder") else ["coordinates", "bytes"])


def test_tasks_with_the_same_training_part_share_fits():
    task, _ = labelled()
    fits = []

    def fit(part, setting, seed):
        fits.append((len(part.X), setting, seed))
        return lambda X, k, side: X[:, :k]

    method = Method("counted", fit, ("a", "b"), draws=2)
    first, second = run(task, method, KS), run(labelled(few_shot)[0], method, KS)
    assert len(fits) == len(set(fits)) == 3  # two settings with seed 0, of which one serves the test, and seed 1
    assert first.seconds == second.seconds
    other = type(task)(**{**vars(task), "training": Part(task.training.X, 1 - task.training.y)})
    run(other, method, KS)
    assert len(fits) == 5  # other labels: other fits
    runs.forget_fits()
    run(task, method, KS)
    assert len(fits) == 8


@pytest.mark.parametrize("method", [method for method in METHODS if method.unit == "bytes" and method.needs != "pairs"],
                         ids=lambda method: method.name)  # fmt: skip
def test_stored_rows_have_no_more_bits_than_they_are_said_to(method, monkeypatch):
    """Rows that ask stay floats; in one byte there are 256 different stored codes at most, however many rows."""
    if method.trained:
        pytest.importorskip("sentence_transformers")
        monkeypatch.setattr(csr, "FEATURES", 600)
        monkeypatch.setattr(csr, "EPOCHS", 1)
    X, y = drawn(1500, 0)
    for setting in method.settings:
        encode = method.fit(Part(X[:400], y[:400]), setting, 0)
        if method is csr.METHOD:
            stored = encode(X, 8, "document")
            assert ((stored > 0).sum(axis=1) <= 3).all()  # 3 x 20 bits are 60 of 64
            assert len(np.unique(stored)) <= 256
        else:
            assert len(np.unique(encode(X, 1, "document"), axis=0)) <= 256
        assert len(np.unique(encode(X, 8, "row"), axis=0)) > 1000


@pytest.mark.filterwarnings("ignore::firstk.exceptions.RankWarning")
@pytest.mark.parametrize("method", [
    pytest.param(method, id=method.name, marks=[pytest.mark.full] if method.ours and method.trained else [])
    for method in METHODS
])  # fmt: skip
def test_every_method_runs_on_a_small_task(method, monkeypatch):
    """The smoke tier: each method fits, is chosen and is scored, with one seed; training of ours has its own tests."""
    if method.trained:
        pytest.importorskip("torch")
        pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(csr, "FEATURES", 600)
    monkeypatch.setattr(csr, "EPOCHS", 2)
    one = Method(**{**vars(method), "draws": 1, "settings": method.settings[:1]})
    tasks = {"rows": labelled()[0], "labels": labelled()[0], "pairs": paired(False)}
    found = run(tasks[method.needs], one, (4, 16))
    assert np.isfinite(found.score()).all()
    assert found.score()[1] > (0.2 if method.needs != "pairs" else 0.1)  # chance: 0.17 and 0.02


def test_the_record_compares_one_of_ours_that_validation_rows_chose():
    task, _ = labelled()
    good = Method("ours, good", lda.fit, (0.5,), needs="labels", ours=True)
    bad = Method("ours, bad", lambda part, setting, seed: lambda X, k, side: np.ones((len(X), k)), ours=True)
    found = {method: run(task, method, KS) for method in (bad, good, truncation.METHOD)}
    table = table_of(task, found, ["something"])
    assert table["chosen"] == "ours, good"
    assert table["not run"] == ["something"]
    (found,) = table["comparisons"].values()
    assert [one["verdict"] for one in found["truncation"]][1:] == ["ahead", "ahead"]
    assert found["truncation"][2]["low"] > 0
    (raw,) = nearest(lambda X, k, side: X, task.test.opened(), (160,))["all"].score()
    assert table["raw"]["all"] == pytest.approx(raw, abs=1e-4)
