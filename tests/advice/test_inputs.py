"""Labels and targets from columns or second files, aligned with rows that may have been dropped."""

import numpy as np
import pytest

from firstk.advice.inputs import read_rows
from firstk.data.files import write_vectors
from firstk.exceptions import InvalidInputError

N = 12
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
LABELS = np.array(list("abcabcabcabc"))
HOLES = [2, 7]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"label": LABELS, "t1": np.arange(N), "t2": np.linspace(0, 1, N), "other": X[:, ::-1].copy()}
    write_vectors("a.npz", X, columns, name="e")
    bad = X.copy()
    bad[HOLES, 1] = np.nan
    write_vectors("bad.csv", bad, {"label": LABELS, "grade": np.arange(N)})
    return tmp_path


def test_labels_from_a_column(place):
    rows = read_rows("a.npz", vectors="e", label="label")
    np.testing.assert_array_equal(rows.y, LABELS)
    np.testing.assert_array_equal(rows.X, X)
    assert len(rows.X) == rows.table.rows


def test_several_targets(place):
    rows = read_rows("a.npz", vectors="e", label="t1, t2")
    np.testing.assert_array_equal(rows.y, np.column_stack([np.arange(N), np.linspace(0, 1, N)]))
    with pytest.raises(InvalidInputError, match="must all be numbers"):
        read_rows("a.npz", vectors="e", label="t1,label")


def test_a_label_is_never_a_coordinate(place):
    (place / "plain.csv").write_text("height,width,grade\n1,2,0\n3,4,1\n5,6,0\n")
    rows = read_rows("plain.csv", label="grade")
    np.testing.assert_array_equal(rows.X, [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(rows.y, [0, 1, 0])


@pytest.mark.parametrize("file", ["l.txt", "l.csv", "l.npy", "l.npz:y", "two.csv:y"])
def test_labels_from_a_second_file(place, file):
    (place / "l.txt").write_text("\n".join(LABELS))
    (place / "l.csv").write_text("y\n" + "\n".join(LABELS))
    (place / "two.csv").write_text("y,z\n" + "\n".join(f"{label},1" for label in LABELS))
    np.save("l.npy", LABELS)
    np.savez("l.npz", y=LABELS, z=np.arange(3))
    np.testing.assert_array_equal(read_rows("a.npz", vectors="e", labels=file).y, LABELS)
    kept = np.setdiff1d(np.arange(N), HOLES)
    rows = read_rows("bad.csv", labels=file, nan="drop")
    np.testing.assert_array_equal(rows.y, LABELS[kept])  # dropped rows take their labels with them
    np.testing.assert_array_equal(rows.rows, kept)
    assert rows.table.rows - len(rows.X) == 2


def test_float16_is_widened(place):
    write_vectors("h.npy", X.astype(np.float16))
    assert read_rows("h.npy").X.dtype == np.float32


BAD = [
    ({"label": "intent"}, "has no column 'intent'"),
    ({"label": "label", "labels": "l.csv"}, "not from both"),
    ({"labels": "short.csv"}, "has 2 labels for the 12 rows"),
    ({"labels": "two.csv"}, "Name one: two.csv:y"),
    ({"labels": "two.csv:w"}, "has no column 'w'. It has: 'y', 'z'"),
    ({"labels": "gone.csv"}, "There is no file 'gone.csv'"),
]


@pytest.mark.parametrize(("options", "sentence"), BAD)
def test_labels_that_do_not_fit(place, options, sentence):
    (place / "short.csv").write_text("y\na\nb\n")
    (place / "two.csv").write_text("y,z\na,1\n")
    with pytest.raises(InvalidInputError) as caught:
        read_rows("a.npz", vectors="e", **options)
    assert sentence in str(caught.value)
