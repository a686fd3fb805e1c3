"""What would destroy files, and labels that cannot be learned from: one sentence each, and nothing is changed."""

from pathlib import Path

import numpy as np
import pytest

from firstk import PrefixEncoder
from firstk._base.atomic_file import _MODEL_MARKS, atomic_file
from firstk.advice.inputs import read_rows
from firstk.cli.fit import fit
from firstk.cli.transform import transform
from firstk.data.files import open_vectors, write_vectors
from firstk.data.precision import PRECISIONS
from firstk.encoder.storage.folder import FORMAT
from firstk.exceptions import InvalidInputError, MissingExtraError

X = np.random.default_rng(0).normal(size=(40, 3))


def test_nothing_is_written_into_a_saved_model(tmp_path):
    PrefixEncoder(2).fit(X).save(tmp_path / "m")
    before = (tmp_path / "m" / "model.safetensors").read_bytes()
    assert any(FORMAT.encode() in mark for mark in _MODEL_MARKS)
    for name in ("model.safetensors", "new.npy"):
        with pytest.raises(InvalidInputError, match="lies in the folder of a saved model"):
            write_vectors(tmp_path / "m" / name, X)
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == before
    PrefixEncoder.load(tmp_path / "m")


def test_a_file_of_another_kind_is_not_replaced(tmp_path):
    (tmp_path / "data.parquet").write_text("rows")
    with (
        pytest.raises(InvalidInputError, match=r"does not end in \.html"),
        atomic_file(tmp_path / "data.parquet", "A report", kinds=(".html",)),
    ):
        pass
    assert (tmp_path / "data.parquet").read_text() == "rows"


@pytest.mark.parametrize("name", ["int8", "binary"])
def test_codes_beyond_float32_are_refused(name):
    with pytest.raises(InvalidInputError, match=r"Scale the vectors before the fit\.$"):
        PRECISIONS[name].fit(X * 1e60)


def test_labels_that_are_no_labels(tmp_path):
    write_vectors(tmp_path / "a.npz", X, {"t": X[:, 0]}, name="e")
    with pytest.raises(InvalidInputError, match="labels cannot be the vectors"):
        read_rows(tmp_path / "a.npz", label="e")
    with pytest.raises(InvalidInputError, match="numbers with fractions"):
        PrefixEncoder(objective="fisher").fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match="one label a row"):
        PrefixEncoder(objective="fisher").fit(X, np.zeros((40, 2), int))
    with pytest.raises(InvalidInputError, match="--label"):
        fit(str(tmp_path / "a.npz"), tmp_path / "m", objective="fisher")
    np.savez(tmp_path / "short.npz", e=X, y=np.arange(39))
    with pytest.raises(InvalidInputError, match=r"'y' has shape \(39,\), and 'e' has 40 rows"):
        read_rows(tmp_path / "short.npz", label="y")


def test_a_file_of_a_few_rows_is_no_data_set(tmp_path):
    write_vectors(tmp_path / "few.npy", X[:11])
    with pytest.raises(
        InvalidInputError, match=r"^9 rows are too few.* at least 10 rows \(those held out are not count"
    ):
        fit(tmp_path / "few.npy", out=tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_several_labels_a_row_are_fitted_as_numbers(tmp_path):
    write_vectors(tmp_path / "a.npz", X, {"a": (X[:, 0] > 0) * 1, "b": (X[:, 1] > 0) * 1}, name="e")
    with pytest.raises(InvalidInputError, match=r"several labels a row \(multilabel\).*objective='regression'"):
        fit(str(tmp_path / "a.npz"), tmp_path / "m", objective="fisher", label="a,b")
    fit(str(tmp_path / "a.npz"), tmp_path / "m", objective="regression", label="a,b")
    assert PrefixEncoder.load(tmp_path / "m").predict(X).shape == (40, 2)


def test_a_missing_label_is_named_by_its_row(tmp_path):
    (tmp_path / "a.csv").write_text("x0,x1,label\n1,2,7\n3,4,\n5,6,8\n")
    with pytest.raises(InvalidInputError, match=r"takes a label or target for every row.*\(row 1\)"):
        read_rows(tmp_path / "a.csv", label="label")


def test_csv_with_a_slip(tmp_path):
    (tmp_path / "slip.csv").write_text("x0,x1,x2\n" + "1,2,3\n" * 20 + "1,2,oops\n")
    with pytest.raises(InvalidInputError, match="row 20 of column 'x2' holds 'oops'"):
        open_vectors(tmp_path / "slip.csv")


def test_the_folder_itself_is_no_name(tmp_path, monkeypatch):
    write_vectors(tmp_path / "a.npy", X)
    PrefixEncoder(2).fit(X).save(tmp_path / "m")
    monkeypatch.chdir(tmp_path)
    for name in (".", "..", "/"):
        with pytest.raises(InvalidInputError, match=r"is the current folder or one above it\. Name a folder in it"):
            fit("a.npy", Path(name), quiet=True)
        with pytest.raises(InvalidInputError, match=f"'{name}' is there already. Choose another name"):
            transform(Path("m"), "*.npy", Path(name), quiet=True)


def test_an_extra_can_be_installed_from_a_clone():
    assert "pip install '.[tables]'" in str(MissingExtraError("pyarrow", "tables", "Reading parquet"))


def test_a_fit_says_how_many_rows_it_dropped(tmp_path, capsys):
    bad = X.copy()
    bad[[3, 9], 0] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    fit(str(tmp_path / "bad.npy"), tmp_path / "m", nan="drop", quiet=True)
    assert "2 rows with NaN, infinity or missing numbers were left out." in capsys.readouterr().out


def test_one_is_no_plural(tmp_path, capsys):
    bad = X.copy()
    bad[3, 0] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    fit(str(tmp_path / "bad.npy"), tmp_path / "m", components=1, nan="drop", quiet=True)
    transform(tmp_path / "m", str(tmp_path / "bad.npy"), tmp_path / "codes.npy", nan="drop", quiet=True)
    said = capsys.readouterr().out
    assert "1 coordinate of" in said
    assert "1 row with NaN, infinity or missing numbers was left out." in said
    assert "1 coordinate as float32, 4 bytes each" in said
    assert "1 vector with NaN, infinity or missing numbers was left out." in said
