"""What is shown, where, and of what."""

import numpy as np
import pytest

from firstk import FunnelIndex, PrefixEncoder, Rows, diagnose, prefix_curve
from firstk._base import progress
from firstk._base.concurrency import ordered_map
from firstk._base.progress import showing, tracked
from firstk.search import CodeIndex


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Take everything for long work that somebody looks at; return a function that gives what was shown of it."""
    monkeypatch.setattr(progress, "is_looked_at", lambda: True)
    monkeypatch.setattr(progress, "LONG", -1.0)
    return lambda: capsys.readouterr().err


def rows(n=600, p=24):
    rng = np.random.default_rng(0)
    return (rng.normal(size=(n, p)) * np.geomspace(1, 0.1, p)).astype(np.float32)


def fit_pairs():
    PrefixEncoder(objective="similarity").fit_pairs(rows(), rows() + 0.1)


def curve():
    encoder = PrefixEncoder(8).fit(rows())
    encoder.curve(rows(), np.arange(600) % 5, reference=(rows(), np.arange(600) % 5), metric="1nn_accuracy")


def prefix_curve_alone():
    data = Rows(rows(), np.arange(600) % 5, reference=Rows(rows(), np.arange(600) % 5))
    prefix_curve(PrefixEncoder(8, verbose=False).fit(rows()).encoder_, data, "1nn_accuracy")


def code_index():
    CodeIndex.fit(rows(), encoder=PrefixEncoder(verbose=False).fit(rows()), bytes=4)


@pytest.mark.parametrize(
    ("work", "what"),
    [
        (fit_pairs, ("choosing settings", "finding neighbors", "fold=")),
        (curve, ("evaluating prefixes", "multiplying")),
        (prefix_curve_alone, ("evaluating prefixes",)),
        (lambda: FunnelIndex.fit(rows()), ("planning",)),
        (lambda: FunnelIndex.fit(rows(), schedule=[(4, 50)]).replan(), ("planning",)),
        (code_index, ("training the quantizer", "encoding")),
        (lambda: PrefixEncoder(4).fit(rows()).transform(rows()), ("encoding",)),
        (lambda: diagnose(rows(), compare=False), ("diagnosing", "spectrum")),
    ],
)
def test_long_work_says_what_it_is_doing(terminal, work, what):
    work()
    shown = terminal()
    for words in what:
        assert words in shown


@pytest.mark.parametrize(
    "work",
    [
        lambda: PrefixEncoder(objective="similarity", verbose=False).fit_pairs(rows(), rows() + 0.1).transform(rows()),
        lambda: FunnelIndex.fit(rows(), verbose=False),
        lambda: diagnose(rows(), compare=False, verbose=False),
    ],
)
def test_nothing_is_shown_to_those_who_do_not_want_it(terminal, work):
    work()
    assert terminal() == ""


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LONG", -1.0)
    fit_pairs()
    assert capsys.readouterr().err == ""


def test_work_that_is_not_long_shows_nothing(monkeypatch, capsys):
    monkeypatch.setattr(progress, "is_looked_at", lambda: True)
    with showing("auto"):
        list(tracked(range(5), 5, "working", "step"))
    assert capsys.readouterr().err == ""


def test_threads_of_a_pool_are_silent(terminal):
    def work(item):
        return len(list(tracked(range(3), 3, "inside a thread", "step")))

    with showing("auto"):
        assert list(ordered_map(work, range(4), 2)) == [3] * 4
    assert terminal() == ""


def test_silence_ends_with_the_block(terminal):
    with showing("auto"):
        with showing(False):
            list(tracked(range(3), 3, "hidden", "step"))
        list(tracked(range(3), 3, "shown", "step"))
    found = terminal()
    assert "hidden" not in found
    assert "shown" in found
