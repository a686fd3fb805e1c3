"""``firstk fit --append``: tomorrow's rows are added to a saved model, exactly and with its settings."""

from __future__ import annotations

import json

import numpy as np
import pytest

from command_line import firstk
from firstk import PrefixEncoder
from firstk.data import load_digits
from firstk.data.files import write_vectors
from firstk.encoder.storage.folder import EVALUATION
from firstk.estimator.fit_files import draw


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("append")
    digits = load_digits()
    for name, rows in (("old", slice(0, 1000)), ("new", slice(1000, None))):
        write_vectors(home / f"{name}.npz", digits.X[rows], {"label": digits.y[rows], "size": digits.X[rows].sum(1)})
    fitted = firstk(
        "fit", "old.npz", "--objective", "fisher", "--set", "objective.shrinkage=0.1", "--label", "label",
        "--held-out", "0", "--set", "save.source_model=pixels", "-o", "kept", "--set", "save.moments=true", cwd=home,
    )  # fmt: skip
    assert fitted.returncode == 0, fitted.stderr
    assert firstk("fit", "old.npz", "-o", "bare", "--held-out", "0", cwd=home).returncode == 0
    return home


def test_rows_are_added_exactly(home):
    done = firstk("fit", "new.npz", "--append", "kept", "--label", "label", "-o", "more", "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    digits = load_digits()
    held = 1000 + draw(len(digits.X) - 1000, 0.2).held
    seen = np.delete(np.arange(len(digits.X)), held)
    wanted = PrefixEncoder(objective="fisher").set_params(objective=PrefixEncoder.load(home / "kept").objective)
    wanted.fit(digits.X[seen], digits.y[seen])
    found = PrefixEncoder.load(home / "more")
    np.testing.assert_allclose(found.components_, wanted.components_, atol=1e-4)  # products of float32 rows
    record = found.encoder_.record
    assert record.data_fingerprint == wanted.encoder_.record.data_fingerprint
    assert (record.rows, record.settings["shrinkage"], record.source_model) == (len(seen), 0.1, "pixels")
    said = json.loads(done.stdout)
    assert (said["rows"], said["held_out"]) == (len(seen), len(held))
    assert f"{len(seen) - 1000} rows added to the 1,000 of kept: {len(seen):,} in all" in done.stderr
    assert f'"rows fitted on": {len(seen)}' in (home / "more" / EVALUATION).read_text()


def test_the_files_of_a_model_that_grew_are_known(home):
    """Evaluation on a file takes the rows that were held out of it, whichever fit it was part of."""
    grown = firstk("fit", "new.npz", "--append", "kept", "--label", "label", "--seed", "3", "-o", "grown", cwd=home)
    assert grown.returncode == 0, grown.stderr
    held = firstk("curve", "grown", "new.npz", "--label", "label", cwd=home).stdout
    assert "Evaluated on 159 rows of new.npz that are held out" in held
    said = [firstk("curve", model, "old.npz", "--label", "label", cwd=home) for model in ("grown", "kept")]
    assert said[0].returncode == said[1].returncode
    assert said[0].stderr.replace("grown", "kept") == said[1].stderr
    assert "fitted on" in said[0].stderr + said[0].stdout


def test_a_model_that_grew_can_grow_again(home):
    for base, out in (("kept", "once"), ("once", "twice")):
        done = firstk("fit", "new.npz", "--append", base, "--label", "label", "--held-out", "0", "-o", out, cwd=home)
        assert done.returncode == 0, done.stderr
    assert PrefixEncoder.load(home / "twice").encoder_.record.rows == 1000 + 2 * 797


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--objective", "reconstruction"],
            "--objective reconstruction contradicts 'kept', which was fitted with fisher",
        ),
        (
            ["--set", "objective.shrinkage=0.5"],
            "--set objective.shrinkage 0.5 contradicts 'kept', which was fitted with 0.1",
        ),
        (["--set", "objective.lam=2"], "'lam' is not a setting of this objective"),
        (["--components", "3"], "Leave --components out"),
        (["--set", "ordering=sparse_prefix:2,4"], "Leave --set ordering out"),
        (["--set", "solver=gradient"], "Leave --set solver out"),
        (["--set", "network=mlp"], "Leave --set network out"),
    ],
)
def test_options_that_contradict_the_model(home, options, said):
    done = firstk("fit", "new.npz", "--append", "kept", "--label", "label", "-o", "none", *options, cwd=home)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (home / "none").exists()


def test_what_similarity_preserves_is_a_setting_of_the_model(home):
    done = firstk(
        "fit", "old.npz", "--objective", "similarity", "--set", "objective.keep=dot_products", "--held-out", "0",
        "--set", "save.moments=true", "-o", "dots", cwd=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = firstk("fit", "new.npz", "--append", "dots", "--set", "objective.keep=neighbors", "-o", "none", cwd=home)
    assert "--set objective.keep neighbors contradicts 'dots', which was fitted with dot_products" in done.stderr
    done = firstk("fit", "new.npz", "--append", "dots", "-o", "more-dots", "--held-out", "0", cwd=home)
    assert done.returncode == 0, done.stderr


def test_options_that_repeat_the_model(home):
    done = firstk(
        "fit", "new.npz", "--append", "kept", "--label", "label", "--objective", "fisher",
        "--set", "objective.shrinkage=0.1",
        "--set", "ordering=full_prefix", "--set", "solver=closed_form", "--held-out", "0", "-o", "repeated", cwd=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("base", "options", "said"),
    [
        ("bare", [], "saved without the moments of its 1,000 rows"),
        ("kept", [], "learns from labels: name their column with --label"),
        ("nowhere", [], "nowhere"),
        ("kept", ["--label", "label", "--pairs", "0,1"], "pairs"),
    ],
)
def test_what_cannot_be_added_to(home, base, options, said):
    done = firstk("fit", "new.npz", "--append", base, "-o", "none", *options, cwd=home)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (home / "none").exists()


def test_moments_of_a_trained_fit_are_of_no_use(home):
    done = firstk(
        "fit",
        "old.npz",
        "--objective",
        "classification",
        "--label",
        "label",
        "--set",
        "save.moments=true",
        "-o",
        "none",
        "-o",
        "none",
        cwd=home,
    )
    assert done.returncode != 0
    assert "--set save.moments has no use for this fit" in done.stderr
    assert not (home / "none").exists()
