"""Every reader on the real files: shapes, counts and checksums as their origin states them."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from scipy.stats import spearmanr

from firstk.exceptions import InvalidInputError
from firstk_papers.datasets import load_banking77, load_cifar10, load_fashion_mnist, load_mnist, load_scifact, load_stsb

MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def read(loader, data_folder, subfolder):
    if not (data_folder / subfolder).is_dir():
        pytest.skip(f"needs {subfolder}/ in the data folder")
    return loader(data_folder)


@pytest.fixture(scope="module")
def mnist(data_folder):
    return read(load_mnist, data_folder, "mnist")


@pytest.fixture(scope="module")
def fashion(data_folder):
    return read(load_fashion_mnist, data_folder, "fashion-mnist")


@pytest.fixture(scope="module")
def cifar(data_folder):
    return read(load_cifar10, data_folder, "cifar10")


@pytest.fixture(scope="module")
def banking(data_folder):
    return read(load_banking77, data_folder, "banking77")


@pytest.fixture(scope="module")
def stsb(data_folder):
    return read(load_stsb, data_folder, "stsb")


@pytest.fixture(scope="module")
def scifact(data_folder):
    return read(load_scifact, data_folder, "retrieval-scifact")


def stored(X):
    """Return the bytes from which float pixels came."""
    return np.rint(X * 255).astype(np.uint8)


def md5(*chunks):
    return hashlib.md5(b"".join(chunks), usedforsecurity=False).hexdigest()


def test_mnist_content_has_the_published_checksums(mnist):
    """The floats lose nothing: header and bytes are rebuilt from them."""
    header = struct.pack(">4I", 0x803, 60000, 28, 28)
    assert md5(header, stored(mnist.X_train).tobytes()) == "6bbc9ace898e44ae57da46a324031adb"
    header = struct.pack(">4I", 0x803, 10000, 28, 28)
    assert md5(header, stored(mnist.X_test).tobytes()) == "2646ac647ad5339dbf082846283269ea"
    labels = mnist.y_train.astype(np.uint8).tobytes(), mnist.y_test.astype(np.uint8).tobytes()
    assert md5(struct.pack(">2I", 0x801, 60000), labels[0]) == "a25bea736e30d166cdddb491f175f624"
    assert md5(struct.pack(">2I", 0x801, 10000), labels[1]) == "27ae3e4e09519cfbb04c329615203637"


def test_mnist_shapes_and_counts(mnist):
    assert (mnist.X_train.shape, mnist.X_test.shape) == ((60000, 784), (10000, 784))
    assert mnist.X_train.dtype == np.float32
    assert mnist.image_shape == (28, 28)
    assert np.bincount(mnist.y_train).tolist() == MNIST_TRAIN
    assert np.bincount(mnist.y_test).tolist() == MNIST_TEST
    assert len(mnist.X) == len(mnist.y) == 70000


def test_fashion_mnist(fashion):
    assert (fashion.X_train.shape, fashion.X_test.shape) == ((60000, 784), (10000, 784))
    assert np.bincount(fashion.y_train).tolist() == [6000] * 10
    assert np.bincount(fashion.y_test).tolist() == [1000] * 10
    assert fashion.X_train.mean(dtype=np.float64) == pytest.approx(0.28604, abs=5e-6)
    assert fashion.X_train.std(dtype=np.float64) == pytest.approx(0.35302, abs=5e-6)
    assert fashion.class_names[9] == "Ankle boot"


def test_cifar10(cifar):
    digests = [hashlib.sha256(stored(X).tobytes()).hexdigest() for X in (cifar.X_train, cifar.X_test)]
    assert digests == [
        "a0c3f56e83393dc3ce00170dc278be6b3e1e90d344dae8e38980107cb3f11e38",
        "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
    ]
    assert (cifar.X_train.shape, cifar.X_test.shape) == ((15000, 3072), (10000, 3072))
    assert cifar.image_shape == (32, 32, 3)
    assert np.bincount(cifar.y_train).tolist() == [1500] * 10
    assert np.bincount(cifar.y_test).tolist() == [1000] * 10
    assert cifar.class_names[6] == "frog"


def test_banking77(banking):
    assert (banking.X_train.shape, banking.X_test.shape) == ((10003, 384), (3080, 384))
    assert banking.X_train.dtype == np.float32
    counts = np.bincount(banking.y_train)
    assert (len(counts), counts.min(), counts.max()) == (77, 35, 187)
    assert np.bincount(banking.y_test).tolist() == [40] * 77
    assert banking.class_names[0] == "card_arrival"
    np.testing.assert_allclose(np.linalg.norm(banking.X_train, axis=1), 1, atol=1e-3)


@pytest.mark.full
def test_banking77_accuracy_of_a_logistic_regression(banking):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=20, max_iter=300).fit(banking.X_train, banking.y_train)
    assert model.score(banking.X_test, banking.y_test) == pytest.approx(0.9318, abs=0.002)


@pytest.mark.parametrize(("part", "n", "expected"), [("dev", 1500, 0.8672), ("test", 1379, 0.8203)])
def test_stsb_spearman(stsb, part, n, expected):
    left, right, scores = stsb.part(part)
    assert len(left) == len(right) == len(scores) == n
    assert left.dtype == scores.dtype == np.float32
    assert spearmanr((left * right).sum(axis=1), scores).statistic == pytest.approx(expected, abs=1e-4)


def test_stsb_shapes(stsb):
    assert stsb.vectors.shape == (15487, 384)
    assert stsb.pairs_train.shape == (5749, 2)
    assert 0 <= stsb.scores_train.min() <= stsb.scores_train.max() <= 5
    assert "main-captions" in stsb.genres_test
    scores = stsb.part("train")[2]
    scores[:] = -1  # a part is a copy
    assert stsb.scores_train.min() >= 0
    with pytest.raises(InvalidInputError, match=r"'name' parameter of ScoredPairs.part"):
        stsb.part("validation")


def test_scifact(scifact):
    assert (scifact.documents.shape, scifact.queries.shape) == ((5183, 384), (1109, 384))
    train, test = scifact.judgements_train, scifact.judgements_test
    assert (train.shape, test.shape) == ((919, 3), (339, 3))
    assert (len(np.unique(train[:, 0])), len(np.unique(test[:, 0]))) == (809, 300)
    assert not np.intersect1d(train[:, 0], test[:, 0]).size
    assert set(train[:, 2].tolist()) == {1}
    assert (scifact.document_ids[0], scifact.query_ids[0]) == ("4983", "0")


def test_scifact_seen_and_unseen_queries(scifact):
    seen, unseen = scifact.test_queries()
    assert (len(seen), len(unseen)) == (196, 104)


def test_scifact_ndcg(scifact):
    q, d, _ = scifact.judgements_test.T
    rows = np.unique(q)
    ranking = (-(scifact.queries[rows] @ scifact.documents.T)).argsort(axis=1)[:, :10]
    gains = 1 / np.log2(np.arange(2, 12))
    scores = []
    for row, ranked in zip(rows, ranking, strict=True):
        relevant = d[q == row]
        scores.append(gains[np.isin(ranked, relevant)].sum() / gains[: len(relevant)].sum())
    assert np.mean(scores) == pytest.approx(0.6451, abs=1e-4)


def test_two_reads_give_the_same_bytes_in_separate_memory(data_folder, stsb):
    again = load_stsb(data_folder)
    assert again.vectors.tobytes() == stsb.vectors.tobytes()
    assert not np.shares_memory(again.vectors, stsb.vectors)
