"""The embedded set, and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn import datasets

import firstk.data
from firstk.data import load_banking, load_digits
from firstk_papers.datasets import load_banking77


def test_digits_are_those_of_scikit_learn():
    digits, source = load_digits(), datasets.load_digits()
    np.testing.assert_array_equal(digits.X * 16, source.data)
    np.testing.assert_array_equal(digits.y, source.target)
    assert digits.X_train.dtype == np.float32
    assert digits.y_train.dtype == np.int64
    assert digits.image_shape == (8, 8)
    assert digits.class_names[3] == "3"
    assert (digits.X.min(), digits.X.max()) == (0, 1)


def test_the_test_part_has_all_classes_evenly():
    counts = np.bincount(load_digits().y_test)
    assert counts.sum() == 360
    assert counts.min() >= 33


def test_two_calls_share_nothing():
    first = load_digits()
    first.X_train[:] = 9
    assert load_digits().X_train.max() == 1


def test_questions_are_rows_of_the_full_set(data_folder):
    """Row by row: the text, the intent and, up to eight bits a column, the vector of the source."""
    import csv

    bank, full = load_banking(), load_banking77(data_folder)
    scale = np.abs(np.concatenate([bank.X_train, bank.X_test])).max(axis=0) / 127
    for part in ("train", "test"):
        with open(data_folder / "banking77" / f"{part}.csv", encoding="utf-8", newline="") as file:
            source = list(csv.DictReader(file))
        rows = [int(one.removeprefix(f"{part}-")) for one in getattr(bank, f"ids_{part}")]
        X, y, texts = (getattr(bank, f"{name}_{part}") for name in ("X", "y", "texts"))
        assert [" ".join(source[row]["text"].split()) for row in rows] == list(texts)
        assert [source[row]["category"] for row in rows] == [bank.class_names[c] for c in y]
        assert np.all(np.abs(X - getattr(full, f"X_{part}")[rows]) <= 0.501 * scale)


def test_every_intent_has_questions_in_both_parts():
    bank = load_banking()
    assert len(bank.class_names) == 77
    assert np.bincount(bank.y_train).min() == 35
    assert np.array_equal(np.bincount(bank.y_test), np.full(77, 13))
    assert bank.X.shape == (4000, 384)
    assert np.allclose(np.linalg.norm(bank.X, axis=1), 1, atol=2e-3)


def test_embedded_questions_weigh_less_than_three_megabytes_and_name_their_license():
    home = Path(firstk.data.__file__).parent / "banking"
    assert sum(file.stat().st_size for file in home.iterdir()) < 3e6
    assert "CC BY 4.0" in (home / "README.md").read_text("utf-8")
    assert "Banking77" in (Path(__file__).resolve().parents[2] / "NOTICE").read_text("utf-8")


def test_importing_the_package_does_not_import_scikit_learn():
    code = "import sys, firstk.data; sys.exit('sklearn' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_exists_and_is_documented():
    for name in firstk.data.__all__:
        assert getattr(firstk.data, name).__doc__
