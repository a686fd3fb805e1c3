"""Out of domain: codes fitted on the texts of one set, used on another; settings are chosen on the first."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.evidence import scores
from benchmarks.evidence.data import Sealed, Task
from benchmarks.evidence.tasks import banking77, scifact, sts


class _Chosen:
    """Scores by the measure of the set that was fitted on for validation, and by that of the other for the test."""

    def __init__(self, fitted: Task, used: Task):
        self.fitted, self.used = fitted, used

    def __call__(self, encode, part, ks):
        held, rest = (self.fitted.score, self.used.score)
        return held(encode, part, ks) if part is self.fitted.validation else rest(encode, part, ks)


def _moved(name: str, fitted: Task, used: Task) -> Task:
    return replace(fitted, name=name, measure=used.measure, test=Sealed(used.test.opened), score=_Chosen(fitted, used))


def banking77_to_scifact(model: str) -> Task:
    """Return codes of bank questions, with their labels, used to search scientific abstracts."""
    return _moved("banking77 to scifact", banking77.nearest(model), _without_parts(scifact.task(model)))


def sts_to_scifact(model: str) -> Task:
    """Return codes of scored sentence pairs used to search scientific abstracts."""
    return _moved("sts to scifact", sts.task(model), _without_parts(scifact.task(model)))


def scifact_to_banking77(model: str) -> Task:
    """Return codes of abstracts and judged queries used to classify bank questions."""
    return _moved("scifact to banking77", scifact.task(model), banking77.nearest(model))


def scifact_to_sts(model: str) -> Task:
    """Return codes of abstracts and judged queries used to compare sentences."""
    return _moved("scifact to sts", scifact.task(model), sts.task(model))


def _without_parts(task: Task) -> Task:
    """Return a search without seen and unseen queries: nothing of it was learned from."""

    def test() -> scores.Search:
        return replace(task.test.read(), seen=None)

    return replace(task, test=Sealed(test))
