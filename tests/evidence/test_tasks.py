"""Parts of the tasks: queries are divided once, seen documents are those learned from, moved tasks use two sets."""

import numpy as np
import pytest
from benchmarks.evidence.data import PeekedError, fitting
from benchmarks.evidence.methods import pca
from benchmarks.evidence.runs import run
from benchmarks.evidence.tasks import files, images, out_of_domain, scifact

from evidence.made_tasks import labelled, paired


@pytest.fixture
def made_scifact(tmp_path, monkeypatch):
    """A folder with 60 queries over 50 documents, a few of which are relevant to several queries."""
    rng = np.random.default_rng(0)
    pairs = np.column_stack([np.arange(60), rng.integers(50, size=60), np.ones(60)]).astype(np.int32)
    (tmp_path / "retrieval-scifact").mkdir()
    np.savez(
        tmp_path / "retrieval-scifact" / "scifact_minilm.npz",
        D=rng.standard_normal((50, 8)).astype(np.float16), Q=rng.standard_normal((60, 8)).astype(np.float16),
        qrels_train=pairs[:40], qrels_test=pairs[40:],
    )  # fmt: skip
    monkeypatch.setenv("FIRSTK_DATA", str(tmp_path))
    files._remembered.cache_clear()
    yield pairs
    files._remembered.cache_clear()


def test_queries_are_divided_anew_and_seen_means_learned_from(made_scifact):
    parts = scifact.divided()
    numbers = np.concatenate([part.queries for part in parts])
    assert sorted(numbers.tolist()) == list(range(60))
    assert {len(part.queries) for part in parts} == {24, 12}
    assert any(query >= 40 for query in parts[0].queries)  # of both official parts
    task = scifact.task("minilm")
    search = task.test.opened()
    learned = {int(made_scifact[query, 1]) for query in parts[0].queries}
    wanted = [int(made_scifact[query, 1]) in learned for query in parts[2].queries]
    assert search.seen.tolist() == wanted
    assert 0 < sum(wanted) < len(wanted)
    assert len(task.training.pairs[0]) == 24


def test_judgements_of_the_test_part_cannot_be_read_while_something_is_fitted(made_scifact):
    with fitting(), pytest.raises(PeekedError):
        scifact.divided()


def test_a_moved_task_is_fitted_and_chosen_on_one_set_and_scored_on_the_other():
    fitted, used = labelled()[0], paired(False)
    task = out_of_domain._moved("moved", fitted, used)
    found = run(task, pca.METHOD, (4, 8))
    np.testing.assert_array_equal(found.validation, run(fitted, pca.METHOD, (4, 8)).validation)
    codes = [pca.fit(fitted.everything, eval(setting), 0) for setting in found.chosen]
    wanted = [used.score(codes[j], used.test.opened(), (k,))["all"].score()[0] for j, k in enumerate((4, 8))]
    np.testing.assert_allclose(found.score(), wanted)


@pytest.fixture
def made_images(tmp_path, monkeypatch):
    """A cache with features of 90 images."""
    rng = np.random.default_rng(0)
    arrays = {f"X_{part}": rng.standard_normal((n, 6)) for part, n in (("train", 60), ("test", 30))}
    labels = {f"y_{part}": np.arange(n) % 3 for part, n in (("train", 60), ("test", 30))}
    np.savez(tmp_path / "cifar10_made.npz", **arrays, **labels)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path)
    files._remembered.cache_clear()
    yield arrays
    files._remembered.cache_clear()


def test_features_of_test_images_cannot_be_read_while_something_is_fitted(made_images):
    with fitting():
        task = images.cifar10_nearest("made")
        assert len(task.training.X) == 48
        with pytest.raises(PeekedError):
            task.test.read()
    np.testing.assert_allclose(
        np.sort(task.test.opened().queries[:, 0]), np.sort(made_images["X_test"][:, 0]), rtol=1e-6
    )


def test_pixels_of_test_images_cannot_be_read_while_something_is_fitted(monkeypatch):
    monkeypatch.setattr(files, "_pixels", lambda: pytest.fail("they were read"))
    with fitting(), pytest.raises(PeekedError):
        files.image_vectors("fashion-mnist", "pixels", "test")
