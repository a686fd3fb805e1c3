"""``firstk curve`` from end to end: on files, with what it prints checked against the same in Python."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest

import command_line
from firstk import Evaluation, PrefixCurve, PrefixEncoder, Rows, SparsePrefix
from firstk.data import load_digits
from firstk.data.precision import PRECISIONS
from firstk.metrics.curve import METRICS

N_QUERIES = 40


def firstk(*arguments, folder, check=True):
    """Run the command line in `folder`; what it printed, and its exit code."""
    done = command_line.firstk(*arguments, cwd=folder)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def digits():
    return load_digits()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, digits):
    """Files of digits: two parts, labels apart, pairs, judged documents, and two models."""
    path = tmp_path_factory.mktemp("curve")
    np.savez(path / "train.npz", pixels=digits.X_train, label=digits.y_train)
    np.savez(path / "test.npz", pixels=digits.X_test, label=digits.y_test)
    np.savez(path / "renamed.npz", X=digits.X_train, digit=digits.y_train)
    np.save(path / "test.npy", digits.X_test)
    np.save(path / "labels.npy", digits.y_test)
    left = np.arange(100)
    right = np.roll(left, 1)
    score = (digits.y_test[left] == digits.y_test[right]) + 0.01 * left
    rows = zip(left, right, score, strict=True)
    (path / "pairs.csv").write_text("left,right,score\n" + "".join(f"{a},{b},{s}\n" for a, b, s in rows))
    ids = np.array([f"d{i}" for i in range(len(digits.X_train))])
    np.savez(path / "documents.npz", pixels=digits.X_train, name=ids)
    names = np.array([f"q{i}" for i in range(N_QUERIES)])
    np.savez(path / "queries.npz", pixels=digits.X_test[:N_QUERIES], name=names)
    judged = [(q, d, 2) for q in range(N_QUERIES) for d in np.flatnonzero(digits.y_train == digits.y_test[q])[:30]]
    (path / "rows.csv").write_text("query,document,grade\n" + "".join(f"{q},{d},{g}\n" for q, d, g in judged))
    (path / "named.csv").write_text("query,document\n" + "".join(f"q{q},d{d}\n" for q, d, _ in judged))
    PrefixEncoder(objective="fisher").fit(digits.X_train, digits.y_train).save(path / "fisher")
    PrefixEncoder(16).fit(digits.X_train).save(path / "pca")
    return path


@pytest.fixture(scope="module")
def fisher(folder):
    return PrefixEncoder.load(folder / "fisher")


def found(folder, *arguments):
    return json.loads(firstk("curve", *arguments, "--json", folder=folder).stdout)


def test_curve_with_a_reference_is_that_of_python(folder, digits, fisher):
    out = found(folder, "fisher", "test.npz", "--label", "label", "--reference", "train.npz")
    reference = (digits.X_train, digits.y_train)
    expected = fisher.curve(digits.X_test, digits.y_test, reference=reference, confidence=0.95)
    assert PrefixCurve.from_dict(out["curve"]) == expected
    assert out["judged"] == "Evaluated on 360 rows of test.npz, against 1,437 rows of train.npz."
    assert {name: ks["best"] for name, ks in out["smallest"].items()} == {
        f"{share:g}": expected.smallest(share, "best") for share in (0.9, 0.95, 0.99)
    }
    assert out["smallest"]["0.95"]["input"] == expected.smallest(0.95)
    assert out["smallest"]["0.99"]["input"] is None  # out of reach
    baselines = {curve["label"]: PrefixCurve.from_dict(curve) for curve in out["baselines"]}
    assert set(baselines) == {"PCA", "uncentred SVD", "plain truncation", "random dimensions"}
    pca = (
        PrefixEncoder()
        .fit(digits.X_train)
        .curve(digits.X_test, digits.y_test, reference=reference, metric="1nn_accuracy")
    )
    assert baselines["PCA"].at(4) == pca.at(4)


def test_a_process_of_its_own_says_the_same(folder):
    arguments = ["curve", "fisher", "test.npz", "--label", "label", "--metric", "head_accuracy", "--json"]
    done = subprocess.run([sys.executable, "-m", "firstk", *arguments], capture_output=True, text=True, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == firstk(*arguments, folder=folder).stdout


def test_text_has_the_table_the_smallest_k_and_what_is_saved(folder, fisher):
    text = firstk(
        "curve", "fisher", "test.npz", "--label", "label", "--reference", "train.npz", "--keep", "0.95",
        "--rows", "10000000", folder=folder,
    ).stdout  # fmt: skip
    assert "95 % interval" in text
    assert "plain truncation" in text
    lines = text.splitlines()
    # A baseline does the same in fewer bytes here, and that is the advice, with the commands.
    start = r"Use (PCA|uncentred SVD), embedded bits: 3 bytes a vector instead of 256. They keep "
    code = re.match(start, lines[0])[1]
    objective = {"PCA": "reconstruction", "uncentred SVD": "similarity --preserve dot_products"}[code]
    assert lines[1].startswith("Measured: 1nn_accuracy 0.9")
    assert lines[1].endswith(" 10,000,000 vectors take 30.0 MB instead of 2.56 GB.")
    assert "This model needs more bytes for that, or keeps less in as many: " in lines[2]
    by = {"PCA": "pca", "uncentred SVD": "svd"}[code]
    assert f"  firstk fit train.npz --objective {objective} -o {by}" in lines
    assert f"  firstk transform {by} train.npz --bytes-per-vector 3 -o short.npz" in lines
    assert any(line.startswith("embedded bits: ") for line in lines)
    assert "1nn_accuracy: share of rows whose nearest reference row, by cosine, has their label." in lines
    own = firstk(
        "curve", "fisher", "test.npz", "--label", "label", "--reference", "train.npz", "--keep", "0.9", "--precision", "float32,float16,int8,int4,binary", folder=folder,
    ).stdout.splitlines()  # fmt: skip
    assert own[0].startswith("Store ")
    k, precision = re.search(r"Store (\d+) coordinates as (\w+):", own[0]).groups()
    assert f"  firstk transform fisher train.npz -k {k} --precision {precision} -o short.npz" in own


def test_without_a_reference_a_part_of_the_file_is_held_out(folder, digits, fisher):
    from firstk.estimator.fit_files import draw

    out = found(folder, "fisher", "train.npz", "--label", "label")
    parts = draw(len(digits.X_train), 0.2, 0)
    assert out["judged"].startswith("Evaluated on 287 rows of train.npz that are held out (drawn at random, seed 0")
    X, y = digits.X_train, digits.y_train
    expected = fisher.curve(X[parts.held], y[parts.held], reference=(X[parts.reference], y[parts.reference]))
    assert PrefixCurve.from_dict(out["curve"]) == expected
    assert out["baselines"] == []


def test_the_held_out_part_is_the_one_that_fit_holds_out(folder, digits, tmp_path):
    firstk("fit", folder / "train.npz", "--objective", "fisher", "--label", "label", "-o", "model", folder=tmp_path)
    fitted = PrefixEncoder.load(tmp_path / "model")
    out = found(tmp_path, "model", folder / "train.npz", "--label", "label")
    stored = fitted.encoder_.record.curve
    assert out["curve"]["score"] == pytest.approx(list(stored.score))


@pytest.fixture(scope="module")
def fitted(folder, tmp_path_factory):
    """A folder with models that the command fitted on train.npz: by default, by another draw, and on all rows."""
    home = tmp_path_factory.mktemp("fitted")
    draws = {"usual": (), "other": ("--seed", 5, "--held-out", 0.1), "all": ("--held-out", 0)}
    for name, options in draws.items():
        arguments = ("fit", folder / "train.npz", "--objective", "fisher", "--label", "label", *options, "-o", name)
        firstk(*arguments, folder=home)
    return home


@pytest.mark.parametrize("metric", ["head_accuracy", "1nn_accuracy", "recall@10"])
@pytest.mark.parametrize(("model", "share", "seed"), [("usual", 0.2, 0), ("other", 0.1, 5)])
def test_every_metric_is_evaluated_on_rows_that_the_fit_held_out(folder, digits, fitted, metric, model, share, seed):
    from firstk.estimator.fit_files import draw

    out = found(
        folder, fitted / model, "train.npz", "--label", "label", "--metric", metric,
    )  # fmt: skip
    X, y, parts = digits.X_train, digits.y_train, draw(len(digits.X_train), share, seed)
    reference = (X[parts.reference], y[parts.reference])
    expected = PrefixEncoder.load(fitted / model).curve(
        X[parts.held], y[parts.held], reference=reference, metric=metric
    )
    assert PrefixCurve.from_dict(out["curve"]) == expected
    assert f"that are held out (drawn at random, seed {seed}, as" in out["judged"]
    assert out["judged"].endswith(f"The model was fitted on the other {len(X) - len(parts.held):,}.")
    assert out["notes"] == []


def test_rows_of_a_fit_are_told_whatever_the_pieces_in_which_they_are_read(folder, fitted, monkeypatch):
    monkeypatch.setattr("firstk.estimator.fit_files.chunk_rows", lambda width: 2)  # some chunks are held out as a whole
    out = found(folder, fitted / "usual", "train.npz", "--label", "label", "--metric", "head_accuracy")
    assert out["curve"]["n_evaluated"] == 287


def test_the_vectors_alone_tell_the_rows_of_a_fit_without_labels(folder, fitted):
    firstk("fit", folder / "train.npz", "--label", "label", "--components", 4, "-o", "plain", folder=fitted)
    for label in ((), ("--label", "label")):
        out = found(folder, fitted / "plain", "train.npz", *label, "--metric", "explained_variance")
        assert out["curve"]["n_evaluated"] == 287
        assert len(out["baselines"]) == 4  # there are rows to fit them on


def test_rows_that_were_dropped_do_not_hide_the_rows_of_a_fit(digits, tmp_path):
    holes = digits.X_train.copy()
    holes[::100, 0] = np.nan
    np.savez(tmp_path / "holes.npz", pixels=holes, label=digits.y_train)
    named = ("holes.npz", "--label", "label", "--nan", "drop")
    firstk("fit", *named, "--objective", "fisher", "-o", "model", folder=tmp_path)
    out = found(tmp_path, "model", *named, "--metric", "head_accuracy")
    assert "that are held out" in out["judged"]


@pytest.mark.parametrize("metric", ["head_accuracy", "1nn_accuracy"])
def test_a_note_says_that_all_rows_were_fitted_on(folder, fitted, metric):
    out = found(folder, fitted / "all", "train.npz", "--label", "label", "--metric", metric)
    assert "fitted on 1,437 rows of train.npz" in out["notes"][0]
    assert "Evaluate on other rows." in out["notes"][0]


def test_a_note_says_that_rows_were_fitted_on_where_a_reference_asks_for_all(folder, fitted):
    arguments = (fitted / "usual", "train.npz", "--label", "label", "--reference", "test.npz")
    assert "Without --reference the 287 others are used." in found(folder, *arguments)["notes"][0]


def test_a_head_needs_no_reference_and_says_so(folder):
    arguments = ("fisher", "test.npz", "--label", "label", "--metric", "head_accuracy")
    out, plain = found(folder, *arguments, "--reference", "train.npz"), found(folder, *arguments)
    assert out["notes"][0].startswith("--reference is not used: head_accuracy looks at no other rows.")
    assert out["judged"] == plain["judged"] == "Evaluated on 360 rows of test.npz."
    assert out["curve"] == plain["curve"]


@pytest.mark.parametrize("metric", ["1nn_accuracy", "recall@10"])
def test_no_row_is_its_own_neighbor(folder, metric):
    arguments = ("fisher", "test.npz", "--label", "label", "--metric", metric)
    plain = found(folder, *arguments)
    for same in ("test.npz", "./test.npz", folder / "test.npz"):
        out = found(folder, *arguments, "--reference", same)
        assert "--reference is not used: it is test.npz itself" in out["notes"][0]
        assert out["curve"] == plain["curve"]


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_rows_that_both_files_share_are_counted(folder, digits, tmp_path, kind):
    X, y = np.vstack([digits.X_train, digits.X_test[:7]]), np.append(digits.y_train, digits.y_test[:7])
    np.savez(tmp_path / "both.npz", pixels=X.astype(kind), label=y)
    arguments = ("fisher", "test.npz", "--label", "label", "--reference")
    assert found(folder, *arguments, tmp_path / "both.npz")["notes"][0].startswith(
        "7 of the rows evaluated are in both.npz"
    )
    assert found(folder, *arguments, "train.npz")["notes"] == []


def test_a_part_of_the_held_out_rows_is_enough(folder, fitted):
    out = found(folder, fitted / "usual", "train.npz", "--label", "label", "--most", "50")
    assert out["curve"]["n_evaluated"] == 50


def test_labels_in_a_file_of_their_own(folder):
    column = found(folder, "fisher", "test.npz", "--label", "label", "--metric", "head_accuracy")
    file = found(folder, "fisher", "test.npy", "--label", "labels.npy", "--metric", "head_accuracy")
    assert column["curve"] == file["curve"]
    assert column["notes"] == ["Baselines have no head_accuracy; --metric probe_accuracy compares them."]


def test_rows_beyond_the_limit_are_drawn(folder, digits):
    limits = ("--metric", "explained_variance", "--most", "100")
    out = found(folder, "pca", "test.npz", *limits)
    assert out["judged"] == "Evaluated on 100 of 360 rows (drawn at random, seed 0) of test.npz."
    rows = np.sort(np.random.default_rng(0).choice(360, size=100, replace=False))
    expected = PrefixEncoder.load(folder / "pca").curve(digits.X_test[rows])
    assert out["curve"]["score"] == pytest.approx(expected.score, abs=1e-6)


def test_baselines_of_explained_variance_fill_in_the_mean(folder, digits):
    out = found(folder, "pca", "test.npz", "--reference", "train.npz", "--metric", "explained_variance")
    curves = {curve["label"]: PrefixCurve.from_dict(curve) for curve in out["baselines"]}
    X = digits.X_test - digits.X_train.mean(axis=0)
    first = np.sum(X[:, :16] ** 2) / np.sum(X**2)
    assert curves["plain truncation"].at(16) == pytest.approx(first, abs=1e-4)
    assert curves["PCA"].at(8) == pytest.approx(PrefixCurve.from_dict(out["curve"]).at(8), abs=1e-5)


def test_precisions_and_the_choice(folder, fisher, digits):
    arguments = ("fisher", "test.npz", "--label", "label", "--reference", "train.npz")
    out = found(folder, *arguments, "--precision", "all", "--keep", "0.95", "--rows", "1000")
    table = Evaluation.from_dict(out["precisions"])
    assert table.precisions == tuple(PRECISIONS)
    best = table.choose(keep=0.95)
    chosen = {name: out["chosen"][name] for name in ("k", "precision", "bytes", "score")}
    assert chosen == {"k": best.k, "precision": best.precision, "bytes": best.bytes, "score": best.score}
    assert out["chosen"]["bytes_saved"] == 1000 * (256 - best.bytes)
    few = found(folder, *arguments, "--precision", "int8,float16", "--bytes-per-vector", "8")["chosen"]
    assert (few["precision"], few["k"]) == ("int8", 8)
    fixed = found(folder, *arguments, "-k", "5")["chosen"]
    assert (fixed["k"], fixed["precision"], fixed["bytes"]) == (5, "float32", 20)


def test_of_a_list_only_its_lengths_are_chosen(folder, digits, tmp_path):
    PrefixEncoder(16, ordering=SparsePrefix([2, 5, 10])).fit(digits.X_train).save(tmp_path / "listed")
    arguments = (tmp_path / "listed", "test.npz")
    out = found(folder, *arguments, "--keep", "0.8", "--precision", "int8,float32")
    assert {ks["best"] for ks in out["smallest"].values()} == {10}
    assert out["chosen"] is None  # ten coordinates keep less than 80 % of the variance
    offers = [point for point in out["precisions"]["offers"] if not point["code"]]
    assert {point["k"] for point in offers if point["precision"] != "embedded"} == {2, 5, 10}
    few = (*arguments, "--bytes-per-vector", "30", "--precision")
    assert found(folder, *few, "float16,int8")["chosen"]["k"] == 10
    # Bits go to all coordinates, whatever the order within a part of the list.
    assert found(folder, *few, "embedded")["chosen"]["precision"] == "embedded"
    assert found(folder, *arguments, "-k", "7")["chosen"]["k"] == 7
    text = firstk("curve", *arguments, "--keep", "0.6", folder=folder).stdout
    assert "lengths of the ordering's list alone (2, 5, 10)" in text


def test_latency_is_measured_over_the_stated_rows(folder):
    arguments = ("fisher", "test.npz", "--label", "label", "--reference", "train.npz", "--rows", "2000")
    out = found(folder, *arguments, "--latency", "10000")
    assert out["precisions"]["n_searched"] == 2000
    assert out["chosen"]["seconds"] > 0
    assert out["chosen"]["k"] == 9  # everything is quick enough, so the best is chosen
    done = firstk("curve", *arguments, "--latency", "1e-9", folder=folder, check=False)
    assert done.returncode == 1
    assert "No operating point is within 1e-09 ms a search" in done.stderr


def test_what_cannot_be_chosen_is_refused_after_the_table(folder):
    arguments = (
        "curve", "fisher", "test.npz", "--label", "label", "--keep", "1", "--precision", "binary",
    )  # fmt: skip
    text = firstk(*arguments, folder=folder, check=False)
    assert text.returncode == 1
    assert text.stderr.startswith(
        "firstk: No code of this model as binary keeps 100 % of the raw vectors' 1nn_accuracy"
    )
    assert "best score for its size" in text.stdout
    record = firstk(*arguments, "--json", folder=folder, check=False)
    assert record.returncode == 1
    out = json.loads(record.stdout)
    assert out["chosen"] is None
    assert out["refused"] == record.stderr.strip().removeprefix("firstk: ")


def test_pairs(folder, digits):
    arguments = (
        "curve",
        "pca",
        "test.npz",
        "--pairs",
        "pairs.csv:left,right,score",
        "--metric",
        "spearman",
        "--id",
        "#",
    )
    done = firstk(*arguments, "--json", folder=folder, check=False)
    # These scores have little to do with the vectors, and that is said; the curve is there all the same.
    assert done.returncode == 1
    assert "Check the inputs" in done.stderr
    out = json.loads(done.stdout)
    left = np.arange(100)
    right = np.roll(left, 1)
    score = (digits.y_test[left] == digits.y_test[right]) + 0.01 * left
    enc = PrefixEncoder.load(folder / "pca")
    expected = enc.curve_pairs(digits.X_test[left], digits.X_test[right], score, confidence=0.95)
    assert out["metric"] == "spearman"
    np.testing.assert_allclose(out["curve"]["score"], expected.score, atol=1e-9)
    assert [curve["label"] for curve in out["baselines"]] == ["plain truncation", "random dimensions"]
    assert "give rows to fit them on with --reference" in out["notes"][0]
    more = json.loads(firstk(*arguments, "--reference", "train.npz", "--json", folder=folder, check=False).stdout)
    assert len(more["baselines"]) == 4


@pytest.mark.parametrize(
    "files",
    [("documents.npz", "--queries", "queries.npz"), ("documents.npz", "--queries", "queries.npz")],
    ids=["store first", "queries first"],
)
@pytest.mark.parametrize("judgements", [("rows.csv", "--id", ":row"), ("named.csv", "--id", "name")])
def test_judged_documents(folder, digits, files, judgements):
    out = found(folder, "pca", *files, "--relevance", *judgements)
    judged = [
        (q, d, 1) for q in range(N_QUERIES) for d in np.flatnonzero(digits.y_train == digits.y_test[q])[:30].tolist()
    ]
    expected = PrefixEncoder.load(folder / "pca").curve_search(digits.X_test[:N_QUERIES], digits.X_train, judged)
    assert out["metric"] == "ndcg@10"
    np.testing.assert_allclose(out["curve"]["score"], expected.score, atol=1e-12)
    assert out["judged"].startswith(
        "Evaluated on 40 queries of queries.npz with 1,200 judgements, among 1,437 documents"
    )
    assert len(out["baselines"]) == 4


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_plot_is_written_whole(folder, tmp_path, ending):
    picture = tmp_path / f"curve.{ending}"
    firstk(
        "curve", "fisher", "test.npz", "--label", "label", "--reference", "train.npz", "--precision", "int8",
        "--plot", picture, folder=folder,
    )  # fmt: skip
    assert picture.read_bytes()[:5] in (b"<?xml", b"\x89PNG\r", b"%PDF-")
    assert [file.name for file in tmp_path.iterdir()] == [picture.name]
    if ending == "svg":
        assert "bytes per vector" in picture.read_text()


def test_help_names_every_metric(folder):
    from firstk.cli.curve import MetricName

    named = MetricName.__metadata__[0].help.split(";")[0].split(", ")
    assert sorted(named) == sorted(METRICS)
    assert "Example: firstk curve" in firstk("curve", "--help", folder=folder).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fisher", "test.npz"), "needs labels or targets: name their column with --label"),
        (("fisher", "test.npz", "--label", "intent"), "intent"),
        (("fisher", "missing.npz", "--label", "label"), "missing.npz"),
        (("nothing", "test.npz", "--label", "label"), "nothing"),
        (("fisher", "empty.npz", "--label", "label"), "empty"),
        (("fisher", "wide.npz", "--label", "label"), "has vectors of 65 numbers, and this model takes 64"),
        (("fisher", "test.npz", "--label", "label", "--reference", "wide.npz"), "'wide.npz' has vectors of 65 numbers"),
        (("fisher", "nan.npz", "--label", "label"), "NaN"),
        (("fisher", "test.npz", "--label", "label", "--metric", "beauty"), "'--metric' parameter of firstk curve"),
        (("fisher", "test.npz", "--label", "label", "--metric", "ndcg@10"), "judged documents: --relevance"),
        (("fisher", "test.npz", "--label", "label", "--metric", "spearman"), "pairs: --pairs"),
        (("fisher", "test.npz", "--label", "label", "--keep", "1.5"), r"'--keep' parameter"),
        (("fisher", "test.npz", "--label", "label", "--relative-to", "last"), "'--relative-to'"),
        (("fisher", "test.npz", "--label", "label", "--precision", "int2"), "'--precision'"),
        (("fisher", "test.npz", "--label", "label", "--confidence", "95"), "'--confidence'"),
        (("fisher", "test.npz", "--label", "label", "--latency", "-1"), "'--latency'"),
        (("fisher", "test.npz", "--label", "label", "-k", "10"), "an int in [1, 9]"),
        (("fisher", "test.npz", "--label", "label", "--plot", "curve.gif"), "A figure ends in .svg, .png, .pdf"),
        (("fisher", "test.npz", "--label", "label", "--plot", "no/curve.svg"), "folder that exists"),
        (("fisher", "test.npy", "--label", "labels.npy", "--reference", "train.npz"), "--reference-labels"),
        (
            ("fisher", "test.npz", "--label", "label", "--reference", "renamed.npz"),
            "has no column 'label'. It has: 'X', 'digit'. If its labels have another name, give them as "
            "--reference-labels renamed.npz:COLUMN.",
        ),
        (("pca", "test.npz", "--documents", "documents.npz"), "belong to --relevance"),
        (("pca", "test.npz", "--queries", "queries.npz"), "--queries belong to --relevance or --pairs"),
        (("pca", "test.npz", "--id", ":row"), "--by-row belong to --relevance or --pairs"),
        (
            (
                *("pca", "test.npz", "--queries", "documents.npz", "--queries", "queries.npz"),
                "--relevance",
                "rows.csv",
            ),
            "leave one of both out",
        ),
        (("pca", "documents.npz", "--queries", "queries.npz", "--relevance", "named.csv"), "with --id"),
        (("pca", "queries.npz", "--relevance", "rows.csv"), "has no column of ids"),
        (("pca", "queries.npz", "--relevance", "rows.csv", "--id", ":row"), "and 'queries.npz' has rows 0 to 39"),
        (("pca", "documents.npz", "--relevance", "rows.csv"), "Say --id :row if they are row numbers"),
        (
            ("pca", "documents.npz", "--relevance", "rows.csv", "--id", ":row", "--metric", "r2"),
            "goes with --metric ndcg",
        ),
        (("pca", "queries.npz", "--relevance", "rows.csv:query,documents"), "documents"),
        (("pca", "test.npz", "--pairs", "pairs.csv", "--id", ":row", "--metric", "recall@10"), "is not one of pairs"),
        (
            ("pca", "test.npz", "--pairs", "pairs.csv", "--id", ":row", "--metric", "mrr@10"),
            "is one of relevant documents",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_1(folder, digits, arguments, sentence):
    np.savez(folder / "wide.npz", pixels=np.ones((20, 65), dtype=np.float32), label=np.arange(20) % 2)
    np.savez(folder / "empty.npz", pixels=np.ones((0, 64), dtype=np.float32), label=np.arange(0))
    holes = digits.X_test.copy()
    holes[3, 0] = np.nan
    np.savez(folder / "nan.npz", pixels=holes, label=digits.y_test)
    done = firstk("curve", *arguments, folder=folder, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_rows_with_nan_are_dropped_on_request(folder, digits):
    holes = digits.X_test.copy()
    holes[3, 0] = np.nan
    np.savez(folder / "holes.npz", pixels=holes, label=digits.y_test)
    arguments = ("pca", "holes.npz", "--nan", "drop")
    assert found(folder, *arguments, "--metric", "explained_variance")["judged"].startswith("Evaluated on 359 ")
    assert "against 287 others of it" in found(folder, *arguments)["judged"]


@pytest.mark.parametrize(
    "arguments", [("fisher",), ("fisher", "test.npz", "-k", "0"), ("fisher", "test.npz", "--beauty")]
)
def test_wrong_usage_exits_with_2(folder, arguments):
    assert firstk("curve", *arguments, folder=folder, check=False).returncode == 2


def test_banking77(data_folder, tmp_path):
    """The real thing, at a few rows: a file of embeddings, another to look among."""
    from firstk_papers.datasets import load_banking77

    data = load_banking77()
    names = np.array(data.class_names)
    np.savez(tmp_path / "train.npz", vector=data.X_train[::5], intent=names[data.y_train[::5]])
    np.savez(tmp_path / "test.npz", vector=data.X_test[::10], intent=names[data.y_test[::10]])
    PrefixEncoder(objective="fisher").fit(data.X_train[::5], data.y_train[::5]).save(tmp_path / "model")
    out = found(
        tmp_path, "model", "test.npz", "--label", "intent", "--reference", "train.npz", "--precision", "int8,binary"
    )
    curve, table = PrefixCurve.from_dict(out["curve"]), Evaluation.from_dict(out["precisions"])
    assert curve.at(32) > 0.7
    assert abs(table.choose(k=64, precision="int8").score - curve.at(64)) < 0.02
    assert table.choose(k=64, precision="binary").score > 0.6


def test_labels_by_which_an_accuracy_says_nothing_are_remarked_upon():
    from firstk.advice.files import EvaluationInput, _about_labels

    def notes(y):
        return _about_labels(EvaluationInput(Rows(np.ones((8, 2)), np.asarray(y)), "1nn_accuracy", "", None, 4))

    assert "one label" in notes(["a"] * 8)[0]
    assert "--metric r2" in notes(np.arange(8) / 7)[0]
    assert "--metric r2" not in notes(list("abcdefgh"))[0]
    assert notes([0, 1] * 4) == ()
