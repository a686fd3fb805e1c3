"""Every command that a command prints runs: those that fit, curve, diagnose, transform and align print, and so on."""

import shlex

import numpy as np
import pytest

from command_line import firstk
from firstk.data import load_banking
from firstk.data.files import write_vectors
from fixtures.made_upgrade import made_upgrade

# What stands for files of the user in a command that is printed.
OWN = {
    "QUERIES": "asked.npz",
    "NEWQUERIES": "asked.npz",
    "TEST": "more.npz",
    "TEST_QUERIES": "asked.npz",
    "TEST_RELEVANCE": "judged.csv",
    "TEST_PAIRS": "judged.csv",
    "MODEL": "model",
}
FIT = ("fit", "store.npz", "-o", "model", "--components", "24")
JUDGED = ("--queries", "asked.npz", "--relevance", "judged.csv")
UPGRADED = ("--queries-old", "q_old.npz", "--queries-new", "q_new.npz", "--relevance", "qrels.csv")
BYTES = ("transform", "model", "store.npz", "--bytes-per-vector", "8", "-o", "bytes.npz")
# Commands one after the other; what the last one prints is run.
CASES = {
    "fit": [FIT],
    "fit, a code of few bytes": [(*FIT, "--bytes-per-vector", "16")],
    "fit, labels": [(*FIT, "--label", "intent", "--objective", "fisher")],
    "fit, nothing held out": [(*FIT, "--held-out", "0")],
    "fit, judged, nothing held out": [(*FIT, *JUDGED, "--held-out", "0")],
    "fit, judged": [(*FIT, *JUDGED, "--objective", "similarity")],
    "fit, store": [(*FIT, "--store", "faiss")],
    "fit, store without a move": [(*FIT, "--store", "elasticsearch", "--bytes-per-vector", "16")],
    "curve": [FIT, ("curve", "model", "more.npz")],
    "curve, store": [FIT, ("curve", "model", "more.npz", "--store", "redis")],
    "curve, judged": [FIT, ("curve", "model", "store.npz", *JUDGED)],
    "diagnose": [("diagnose", "store.npz")],
    "diagnose, store": [("diagnose", "store.npz", "--store", "sqlite")],
    "diagnose, labels": [("diagnose", "store.npz", "--label", "intent")],
    "diagnose, judged": [("diagnose", "store.npz", *JUDGED)],
    "transform, floats": [FIT, ("transform", "model", "store.npz", "-k", "8", "-o", "floats.npz")],
    "transform, int8": [FIT, ("transform", "model", "store.npz", "-k", "8", "--precision", "int8", "-o", "int8.npz")],
    "transform, binary": [("transform", "raw", "store.npz", "-k", "64", "--precision", "binary", "-o", "bits.npz")],
    "transform, bytes": [FIT, BYTES],
    "transform, bytes that are cut": [
        FIT,
        BYTES,
        ("transform", "raw", "bytes.npz", "--bytes-per-vector", "4", "-o", "cut.npz"),
    ],
    "align": [
        ("align", "old.npz", "new.npz", *UPGRADED, "--methods", "procrustes", "--quiet", "-o", "alignment"),
    ],
}


@pytest.fixture
def folder(tmp_path, case):
    """A store of 500 questions, 100 other rows, 60 queries and their judgements; files of an upgrade."""
    bank = load_banking()
    X, y = np.asarray(bank.X)[:660, :96], np.asarray(bank.y)[:660].astype(str)
    ids = np.array([f"id{i}" for i in range(660)])
    parts = {"store": slice(0, 500), "more": slice(500, 600), "asked": slice(600, 660)}
    for name, rows in parts.items():
        write_vectors(tmp_path / f"{name}.npz", X[rows], {"id": ids[rows], "intent": y[rows]})
    near = np.argmax(X[600:660] @ X[:500].T, axis=1)
    lines = [f"{ids[600 + i]},{ids[document]},1" for i, document in enumerate(near)]
    (tmp_path / "judged.csv").write_text("\n".join(["query,document,grade", *lines]) + "\n")
    if case == "align":
        made = made_upgrade(n=400, m=150, pairs=240)
        sides = {"old": (made.old, range(400)), "new": (made.new, made.paired)}
        sides |= {"q_old": (made.queries_old, range(150)), "q_new": (made.asked.queries, range(150))}
        for name, (part, numbers) in sides.items():
            ids = np.array([f"d{i}" for i in numbers])
            write_vectors(tmp_path / f"{name}.npz", part.astype(np.float32), {"id": ids})
        lines = [f"d{q},d{d},{g}" for q, d, g in made.asked.relevance]
        (tmp_path / "qrels.csv").write_text("\n".join(["query,document,grade", *lines]) + "\n")
    return tmp_path


def printed(text):
    """Return the commands in a text, each on a line of its own or after a colon."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("  firstk ")]
    lines += [line.partition("A page to forward: ")[2].partition(". More")[0] for line in text.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("firstk ")]


@pytest.mark.parametrize("case", CASES)
def test_printed_commands_run(folder, case):
    for words in CASES[case]:
        done = firstk(*words, cwd=folder)
        assert done.returncode == 0, done.stderr
    own = OWN | ({"QUERIES": "q_new.npz"} if case == "align" else {})
    coming, ran = printed(done.stdout), set()
    assert coming or case == "transform, floats"
    while coming:
        words = [own.get(word, word) for word in coming.pop(0)]
        if tuple(words) in ran:
            continue
        ran.add(tuple(words))
        again = ["--force"] if words[1] in ("fit", "transform", "report") else []
        done = firstk(*words[1:], *again, cwd=folder)
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr}"
        coming += printed(done.stdout)
