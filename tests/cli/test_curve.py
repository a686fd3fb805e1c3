"""``firstk curve`` from end to end: on files, with what it prints checked against the same in Python."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import command_line
from firstk import Choice, Fisher, PrefixCurve, PrefixEncoder, Rows, SparsePrefix
from firstk.advice.inputs import VectorSource
from firstk.advice.read import _about_labels, read_for
from firstk.advice.records import Report
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
    PrefixEncoder(objective=Fisher(None)).fit(digits.X_train, digits.y_train).save(path / "fisher")
    PrefixEncoder(16).fit(digits.X_train).save(path / "pca")
    return path


@pytest.fixture(scope="module")
def fisher(folder):
    return PrefixEncoder.load(folder / "fisher")


def found(folder, *arguments):
    return json.loads(firstk("curve", *arguments, "--json", folder=folder).stdout)


def report(out) -> Report:
    """The report in what --json printed."""
    return Report.from_json(json.dumps(out["report"]))


def choice(out) -> Choice:
    return Choice.from_dict(out["choice"])


def test_curve_with_a_reference_is_that_of_python(folder, digits, fisher):
    out = found(folder, "fisher", "test.npz", "--label", "label", "--reference", "train.npz")
    reference = (digits.X_train, digits.y_train)
    expected = fisher.curve(digits.X_test, digits.y_test, reference=reference, confidence=0.95)
    ours = PrefixCurve.from_dict(out["curve"])
    assert replace(ours, low=expected.low, high=expected.high) == expected
    np.testing.assert_allclose(ours.low, expected.low, atol=0.02)  # of fewer draws
    np.testing.assert_allclose(ours.high, expected.high, atol=0.02)
    assert report(out).held_out == "Evaluated on 360 rows of test.npz, against 1,437 rows of train.npz."
    chosen = choice(out)
    assert chosen == report(out).lead.choose()
    assert chosen.reference_score == expected.input_score
    assert chosen.own is None  # 99 % are out of reach of nine coordinates, and
    assert chosen.advised.reason == "better"
    assert {offer.asked for offer in chosen.offers if offer.reason == "share"} == {0.9, 0.95}
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


def test_a_cut_off_is_that_of_python(folder, digits):
    words = ("curve", "pca", "test.npz:pixels", "--reference", "train.npz:pixels", "-k", "8", "--threshold")
    found = json.loads(firstk(*words, "0.95", "--json", folder=folder).stdout)["threshold"]
    expected = PrefixEncoder.load(folder / "pca").threshold(0.95, 8, digits.X_test, digits.X_train)
    assert (found["cut"], found["misses"], found["codes"]) == (expected.cut, expected.misses, expected.codes)
    refused = firstk(*words, "1.5", folder=folder, check=False)
    assert refused.returncode == 2, "refused before anything is evaluated"
    assert "Invalid value for '--threshold'" in refused.stderr


def test_text_has_the_answer_the_commands_and_the_table(folder):
    arguments = (
        "curve", "fisher", "test.npz", "--label", "label", "--reference", "train.npz", "--rows", "10000000",
    )  # fmt: skip
    lines = firstk(*arguments, "--keep", "0.95", folder=folder).stdout.splitlines()
    # A baseline does the same in fewer bytes here, and that is the advice, with the commands.
    code, size = re.match(
        r"Use (PCA|uncentred SVD), embedded bits: (\d) bytes per vector instead of 256\.", lines[0]
    ).groups()
    assert lines[0].endswith(f" 10,000,000 vectors take {size}0.0 MB instead of 2.56 GB.")
    assert lines[1].startswith("They keep ")
    objective = {"PCA": "reconstruction", "uncentred SVD": "similarity --set objective.keep=dot_products"}[code]
    by = {"PCA": "pca", "uncentred SVD": "svd"}[code]
    start = lines.index(f"  firstk fit train.npz --objective {objective} -o {by}")
    assert lines[start + 1] == f"  firstk transform {by} train.npz --bytes-per-vector {size} -o short.npz"
    assert re.fullmatch(r"1nn_accuracy at k +1 +2 +4 +8 +9", lines[start + 3])
    assert any(re.match(r"  plain truncation( +0\.\d{3}){5}$", line) for line in lines)
    own = firstk(
        *arguments, "--keep", "0.9", "--precision", "float32,float16,int8,int4,binary", "--explain", folder=folder
    )
    own = own.stdout.splitlines()
    k, precision = re.match(r"Store (\d+) coordinates as (\w+):", own[0]).groups()
    assert f"  firstk transform fisher train.npz -k {k} --precision {precision} -o short.npz" in own
    assert any("95 % interval" in line for line in own)
    assert any(line.startswith("embedded bits: ") for line in own)
    assert any(line.startswith("1nn_accuracy: Share of held-out rows whose nearest training row") for line in own)


def test_without_a_reference_a_part_of_the_file_is_held_out(folder, digits, fisher):
    from firstk.estimator.fit_files import draw

    out = found(folder, "fisher", "train.npz", "--label", "label", "--metric", "probe_accuracy")
    parts = draw(len(digits.X_train), 0.2, 0)
    assert report(out).held_out.startswith(
        "Evaluated on 287 rows of train.npz that are held out (drawn at random, seed 0"
    )
    X, y = digits.X_train, digits.y_train
    half = (len(parts.reference) + 1) // 2  # baselines are fitted on the others
    searched = np.sort(np.random.default_rng(0).permutation(parts.reference)[:half])
    reference = (X[searched], y[searched])
    expected = fisher.curve(X[parts.held], y[parts.held], reference=reference, metric="probe_accuracy")
    assert out["curve"]["score"] == pytest.approx(expected.score, abs=1e-12)
    assert "these scores are better than those of new rows" in out["notes"][0]  # the model has seen all of them


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
    assert out["curve"]["score"] == pytest.approx(expected.score, abs=1e-12)
    assert f"that are held out (drawn at random, seed {seed}, as" in report(out).held_out
    assert report(out).held_out.endswith(f"The model was fitted on the other {len(X) - len(parts.held):,}.")
    assert not any("better than those of new rows" in note for note in out["notes"])


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
    assert "that are held out" in report(out).held_out


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
    assert report(out).held_out == report(plain).held_out == "Evaluated on 360 rows of test.npz."
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
    assert not any("rows evaluated are in" in note for note in found(folder, *arguments, "train.npz")["notes"])


def test_labels_in_a_file_of_their_own(folder):
    column = found(folder, "fisher", "test.npz", "--label", "label", "--metric", "head_accuracy")
    file = found(folder, "fisher", "test.npy", "--label", "labels.npy", "--metric", "head_accuracy")
    assert column["curve"] == file["curve"]
    assert column["baselines"] == file["baselines"] == []
    assert column["notes"] == ["Baselines have no head_accuracy; --metric probe_accuracy compares them."]


def test_rows_beyond_the_limit_are_drawn(folder, digits):
    encoder = PrefixEncoder.load(folder / "pca")
    task = read_for(encoder.encoder_, VectorSource(folder / "test.npz"), most=100, metric="explained_variance")
    rows = np.sort(np.random.default_rng(0).choice(360, size=100, replace=False))
    np.testing.assert_array_equal(task.held_out.X, digits.X_test[rows])


def test_baselines_of_explained_variance_fill_in_the_mean(folder, digits):
    out = found(folder, "pca", "test.npz", "--reference", "train.npz", "--metric", "explained_variance")
    curves = {curve["label"]: PrefixCurve.from_dict(curve) for curve in out["baselines"]}
    X = digits.X_test - digits.X_train.mean(axis=0)
    first = np.sum(X[:, :16] ** 2) / np.sum(X**2)
    assert curves["plain truncation"].at(16) == pytest.approx(first, abs=1e-4)
    assert curves["PCA"].at(8) == pytest.approx(PrefixCurve.from_dict(out["curve"]).at(8), abs=1e-5)


def test_precisions_and_the_choice(folder):
    arguments = ("fisher", "test.npz", "--label", "label", "--reference", "train.npz")
    out = found(folder, *arguments, "--precision", "all", "--keep", "0.95", "--rows", "1000")
    lead = report(out).lead
    assert lead.precisions == tuple(PRECISIONS)
    assert choice(out) == lead.choose(keep=0.95)
    assert out["rows"] == 1000
    few = choice(found(folder, *arguments, "--precision", "int8,float16", "--bytes-per-vector", "8"))
    assert (few.point.precision, few.point.k) == ("int8", 8)
    fixed = choice(found(folder, *arguments, "-k", "5")).point
    assert (fixed.k, fixed.precision, fixed.bytes) == (5, "float32", 20)


def test_bits_of_queries_are_a_precision_of_their_own(folder):
    arguments = ("fisher", "test.npz", "--label", "label", "--reference", "train.npz", "-k", "9", "--precision")
    both, plain = (choice(found(folder, *arguments, name)) for name in ("binary/binary", "binary"))
    assert (both.point.queries, plain.point.queries) == ("binary", "float32")
    assert both.point.score < plain.point.score


def test_of_a_list_only_its_lengths_are_chosen(folder, digits, tmp_path):
    PrefixEncoder(16, ordering=SparsePrefix([2, 5, 10])).fit(digits.X_train).save(tmp_path / "listed")
    arguments = (tmp_path / "listed", "test.npz", "--metric", "explained_variance")
    out = found(folder, *arguments, "--keep", "0.8", "--precision", "int8,float32")
    assert choice(out).own is None  # ten coordinates keep less than 80 % of the variance
    assert choice(out).get("most").point.k == 10
    lead = report(out).lead
    assert lead.supported == (2, 5, 10)
    assert {point.k for point in lead.prefixes if point.precision != "float32"} == {2, 5, 10}
    few = (*arguments, "--bytes-per-vector", "30", "--precision")
    assert choice(found(folder, *few, "float16,int8")).point.k == 10
    # Bits go to all coordinates, whatever the order within a part of the list.
    assert choice(found(folder, *few, "embedded")).point.precision == "embedded"
    assert choice(found(folder, *arguments, "-k", "7")).point.k == 7
    text = firstk("curve", *arguments, "--keep", "0.6", "--explain", folder=folder).stdout
    assert "those at which the order is fixed (2, 5, 10)" in text


def test_what_cannot_be_chosen_is_refused_after_the_table(folder):
    arguments = (
        "curve", "fisher", "test.npz", "--label", "label", "--keep", "1", "--precision", "binary",
    )  # fmt: skip
    text = firstk(*arguments, folder=folder, check=False)
    assert text.returncode == 1
    assert text.stderr.startswith(
        "firstk: No code of this model as binary keeps 100 % of the raw vectors' 1nn_accuracy"
    )
    assert "1nn_accuracy at k" in text.stdout
    record = firstk(*arguments, "--json", folder=folder, check=False)
    assert record.returncode == 1
    out = json.loads(record.stdout)
    assert choice(out).own is None
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
        ":row",
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
    assert {curve["label"] for curve in out["baselines"]} == {"plain truncation", "random dimensions"}
    assert any("give rows to fit them on with --reference" in note for note in out["notes"])
    more = json.loads(firstk(*arguments, "--reference", "train.npz", "--json", folder=folder, check=False).stdout)
    assert len(more["baselines"]) == 4


@pytest.mark.parametrize("judgements", [("rows.csv", "--id", ":row"), ("named.csv", "--id", "name")])
def test_judged_documents(folder, digits, judgements):
    out = found(folder, "pca", "documents.npz", "--queries", "queries.npz", "--relevance", *judgements)
    judged = [
        (q, d, 1) for q in range(N_QUERIES) for d in np.flatnonzero(digits.y_train == digits.y_test[q])[:30].tolist()
    ]
    expected = PrefixEncoder.load(folder / "pca").curve_search(digits.X_test[:N_QUERIES], digits.X_train, judged)
    assert out["metric"] == "ndcg@10"
    np.testing.assert_allclose(out["curve"]["score"], expected.score, atol=1e-12)
    assert report(out).held_out.startswith(
        "Evaluated on 40 queries of queries.npz with 1,200 judgements, among 1,437 documents"
    )
    assert len(out["baselines"]) == 4


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_plot_is_written_whole(folder, tmp_path, ending):
    picture = tmp_path / f"curve.{ending}"
    firstk(
        "curve", "fisher", "test.npz", "--label", "label", "--reference", "train.npz", "--precision", "int8",
        "--report", picture, folder=folder,
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
        (("fisher", "test.npz"), "needs labels or targets: name their column or their file with --label"),
        (("fisher", "test.npz", "--label", "intent"), "intent"),
        (("fisher", "missing.npz", "--label", "label"), "missing.npz"),
        (("nothing", "test.npz", "--label", "label"), "nothing"),
        (("fisher", "empty.npz", "--label", "label"), "empty"),
        (("fisher", "wide.npz", "--label", "label"), "has vectors of 65 numbers, and this model takes 64"),
        (("fisher", "test.npz", "--label", "label", "--reference", "wide.npz"), "'wide.npz' has vectors of 65 numbers"),
        (("fisher", "nan.npz", "--label", "label"), "NaN"),
        (("fisher", "test.npz", "--label", "label", "--metric", "beauty"), "--metric must be one of"),
        (("fisher", "test.npz", "--label", "label", "--metric", "ndcg@10"), "judged documents: --relevance"),
        (("fisher", "test.npz", "--label", "label", "--metric", "spearman"), "pairs: --pairs"),
        (("fisher", "test.npz", "--label", "label", "--keep", "1.5"), "--keep must be"),
        (("fisher", "test.npz", "--label", "label", "--precision", "int2"), "--precision must be"),
        (("fisher", "test.npz", "--label", "label", "-k", "10"), "an int in [1, 9]"),
        (("fisher", "test.npz", "--label", "label", "--report", "curve.gif"), "A page ends in .html"),
        (("fisher", "test.npz", "--label", "label", "--report", "no/curve.svg"), "folder that exists"),
        (("fisher", "test.npy", "--label", "labels.npy", "--reference", "train.npz"), "--reference FILE:LABEL"),
        (
            ("fisher", "test.npz", "--label", "label", "--reference", "renamed.npz"),
            "has no column 'label'. It has: 'X', 'digit'. If its labels have another name, give them as "
            "--reference renamed.npz:COLUMN.",
        ),
        (("pca", "test.npz", "--queries", "queries.npz:often"), "belong to --relevance or --pairs"),
        (("pca", "documents.npz", "--queries", "queries.npz", "--metric", "ndcg@10"), "are scored by recall@10"),
        (("pca", "test.npz", "--id", ":row"), "--id :row belong to --relevance or --pairs"),
        (("pca", "documents.npz", "--queries", "queries.npz", "--relevance", "named.csv"), "with --id"),
        (("pca", "queries.npz", "--relevance", "rows.csv"), "has no column of ids"),
        (("pca", "queries.npz", "--relevance", "rows.csv", "--id", ":row"), "and 'queries.npz' has rows 0 to 39"),
        (("pca", "documents.npz", "--relevance", "rows.csv"), "Say --id :row if they are row numbers"),
        (
            ("pca", "documents.npz", "--relevance", "rows.csv", "--id", ":row", "--metric", "r2"),
            "goes with --metric ndcg",
        ),
        (("pca", "queries.npz", "--relevance", "rows.csv:query,documents"), "documents"),
        (
            ("pca", "test.npz", "--pairs", "pairs.csv", "--id", ":row", "--metric", "recall@10"),
            "is not one of scored pairs: use spearman",
        ),
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
    assert report(found(folder, *arguments, "--metric", "explained_variance")).held_out.startswith("Evaluated on 359 ")
    labelled = report(found(folder, *arguments, "--label", "label", "--metric", "1nn_accuracy"))
    assert "against 144 others of it" in labelled.held_out


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
    curve, table = PrefixCurve.from_dict(out["curve"]), report(out).lead
    assert curve.at(32) > 0.7
    assert abs(table.choose(k=64, precision="int8").point.score - curve.at(64)) < 0.02
    assert table.choose(k=64, precision="binary").point.score > 0.6


def test_labels_by_which_an_accuracy_says_nothing_are_remarked_upon():
    def notes(y):
        return _about_labels(Rows(np.ones((8, 2)), np.asarray(y)), "1nn_accuracy")

    assert "one label" in notes(["a"] * 8)[0]
    assert "metric='r2'" in notes(np.arange(8) / 7)[0]
    assert "metric='r2'" not in notes(list("abcdefgh"))[0]
    assert notes([0, 1] * 4) == []


def test_another_encoder_is_compared_on_the_same_rows(folder, fisher):
    fisher.save(folder / "other")
    arguments = ("curve", "fisher", "test.npz", "--label", "label", "--compare", "other")
    assert "Shared with other: axes. Mean correlation by axes 1.000" in firstk(*arguments, folder=folder).stdout
    assert found(folder, *arguments[1:])["same_axes"]["verdict"] == "axes"
    assert "Mean correlation" not in firstk(*arguments[:-2], folder=folder).stdout
