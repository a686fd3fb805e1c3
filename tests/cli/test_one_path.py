"""One path: `read`, `fit`, `evaluate`, `choose` in Python give what `firstk fit` prints, on every kind of data."""

import json

import numpy as np
import pytest

from command_line import firstk
from firstk import Choice, Evaluation, PrefixEncoder, evaluate, read
from firstk.advice.records import Report
from firstk.data import load_digits
from firstk.data.files import write_vectors
from firstk.encoder.storage.folder import EVALUATION, read_extra

KINDS = {
    "labels": ("fisher", ["docs.npz", "--label", "label"], {"label": "label"}),
    "vectors alone": ("similarity", ["docs.npz"], {}),
    "scored pairs": (
        "similarity",
        ["docs.npz", "--pairs", "pairs.npz:left,right,score"],
        {"pairs": "pairs.npz:left,right,score"},
    ),
    "judged search": (
        "similarity",
        ["docs.npz", "--queries", "queries.npz", "--relevance", "qrels.csv", "--id", ":row"],
        {"queries": "queries.npz", "relevance": "qrels.csv", "by_row": True},
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits, each with a noisy copy as its query, and pairs of digits that are as alike as their cosine."""
    place, rng, digits = tmp_path_factory.mktemp("path"), np.random.default_rng(0), load_digits()
    X = digits.X[:600]
    write_vectors(place / "docs.npz", X, {"label": digits.y[:600]}, name="pixels")
    write_vectors(place / "queries.npz", X[:200] + 2 * rng.standard_normal((200, 64)), {}, name="pixels")
    lines = [f"{i},{i},2\n{i},{i + 300},1\n" for i in range(1, 200)]
    (place / "qrels.csv").write_text("query,document,grade\n" + "".join(lines))
    right = X[rng.integers(0, 600, 400)]
    unit = [V / np.linalg.norm(V, axis=1, keepdims=True) for V in (X[:400], right)]
    write_vectors(place / "pairs.npz", X[:400], {"right": right, "score": (unit[0] * unit[1]).sum(axis=1)}, name="left")
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_python_and_the_command_give_the_same_numbers(folder, monkeypatch, kind):
    monkeypatch.chdir(folder)
    objective, arguments, names = KINDS[kind]
    done = firstk("fit", *arguments, "--objective", objective, "-o", "model", "--force", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)

    task = read("docs.npz", **names)
    encoder = PrefixEncoder(objective=objective, random_state=0).fit(task.train)
    found = evaluate(encoder, task.held_out)
    choice = found.choose(keep=0.99)

    saved = Report.from_json(read_extra("model", EVALUATION)).lead
    assert [point.key for point in found] == [point.key for point in saved]
    assert [point.score for point in found] == pytest.approx([point.score for point in saved], abs=1e-9)
    commanded = Choice.from_dict(printed["choice"])
    assert [(offer.point.key, offer.reason) for offer in choice.offers] == [
        (offer.point.key, offer.reason) for offer in commanded.offers
    ]
    shares = [[offer.share for offer in made.offers] for made in (choice, commanded)]
    assert shares[0] == pytest.approx(shares[1], abs=1e-9)
    assert str(choice).split(" instead of")[0] == str(commanded).split(" instead of")[0]
    assert Evaluation.from_json(found.to_json()) == found
