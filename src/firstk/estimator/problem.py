"""The problem: the only place where objective, ordering and solver meet.

It refuses triples that mean nothing, turns data into statistics, settles what was left to "auto", and hands a pencil to
the solver and the solution to a fitted encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstk import __version__, objectives, orderings, solvers
from firstk._base.checks import bad_parameter, check_matrix, require
from firstk._base.linalg import row_space
from firstk._base.rows import as_dense, projected
from firstk.contracts import Objective, Pencil, Solution, settings_of
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP
from firstk.estimator import auto as selection
from firstk.exceptions import IllegalCombinationError, InvalidInputError
from firstk.moments.batches import checked
from firstk.moments.fingerprint import Fingerprint
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments
from firstk.moments.row_sample import VECTORS, RowSample
from firstk.moments.statistics import Statistics
from firstk.objectives import Similarity


@dataclass(frozen=True)
class Problem:
    """An objective, an ordering and a solver that fit together, and the width asked for."""

    objective: Objective
    ordering: Any
    solver: Any
    n_components: int | None = None
    progress: Any = iter
    network: Any = "linear"
    init: Any = "auto"
    device: Any = "auto"
    seed: int = 0
    verbose: bool = False
    ranks: Any = None  # the processes that share the rows; None where all rows are here

    # -- from data to statistics -----------------------------------------------------------------------------

    def empty(self, n_features: int) -> Statistics:
        """Return statistics of no data yet, for vectors of width `n_features`."""
        pairs = self.objective.supervision == "pairs"
        moments = PairMoments(self._precision) if pairs else Moments(self._precision, owner="fit")
        return Statistics(moments, RowSample(self.objective.sample_size), n_features)

    def check_streamable(self, what: str) -> None:
        """Refuse data that are never at hand as a whole, where training needs them so."""
        if not self.solver.trains:
            return
        require("torch", "torch", "Training by gradient")
        from firstk.solvers.gradient import build as training

        training.check_streamable(self, what)

    def statistics_of(self, batch: Any) -> Statistics | None:
        """Return the statistics of a batch in any form that :func:`firstk.moments.batches.checked` takes."""
        rows = checked(self.objective, batch)
        return None if rows is None else self.measure(rows)

    def measure(self, rows: dict[str, Any], n_features: int | None = None) -> Statistics:
        """Return the statistics of rows ("X", with "y" or "weight") or pairs ("left", "right", "scores")."""
        vectors = rows["left"] if self.objective.supervision == "pairs" else rows["X"]
        statistics = self.empty(n_features or vectors.shape[1])
        self._accumulate(statistics, rows)
        statistics.sample.update(_weighty(rows))
        statistics.fingerprint = Fingerprint.of(rows)
        return statistics

    def _accumulate(self, statistics: Statistics, rows: dict[str, Any]) -> None:
        """Take rows or pairs into the moments."""
        moments = statistics.moments
        if isinstance(moments, PairMoments):
            moments.update(rows["left"], rows["right"], rows.get("scores"))
        else:
            moments.update(rows["X"], **self._beside(rows))

    def _beside(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Name what stands beside the vectors as the moments know it: labels, targets, weights."""
        y, takes = rows.get("y"), self.objective.supervision
        labels = takes == "labels" or (takes == "labels or targets" and np.asarray(y).dtype.kind != "f")
        beside = {} if takes == "rows" else {"y": y} if labels else {"targets": y}
        return beside | {"sample_weight": rows.get("weight")}

    @property
    def _precision(self) -> str:
        return str(getattr(self.solver, "precision", "auto"))

    # -- from statistics to an encoder -----------------------------------------------------------------------

    def fit(self, rows: dict[str, Any]) -> tuple[FittedEncoder, Statistics]:
        """Fit data that are at hand as a whole; with fewer rows than columns, in a basis of the row space."""
        within = self._row_basis(rows)
        if within is None:
            statistics = self.measure(rows)
            if self.ranks is not None:
                statistics = self.ranks.merged(statistics)
            return self.solve(statistics, rows), statistics
        basis, centre = within
        vectors = {name: part for name, part in rows.items() if name in VECTORS}
        # Moments are taken of centred rows and get their means back: projected with a large offset, rows lose digits.
        centred, offset = projected(vectors, basis, centre), centre @ basis
        statistics = self.empty(len(basis))
        self._accumulate(statistics, rows | centred)
        statistics.moments.shift(offset)
        inside = rows | {name: part + offset for name, part in centred.items()}
        # Which rows are sampled, in what order, and who they are: hashes of the rows as they came, not of coordinates.
        statistics.fingerprint = Fingerprint.of(rows)
        statistics.sample = RowSample(self.objective.sample_size).update(_weighty(rows)).in_basis(basis)
        statistics.basis = basis
        return self.solve(statistics, inside).from_basis(basis), statistics

    def _row_basis(self, rows: dict[str, Any]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return a basis of the row space and the mean of the rows; None where the columns are used as they are."""
        sides = [rows[name] for name in VECTORS if name in rows]
        count, p = sum(part.shape[0] for part in sides), sides[0].shape[1]
        # Networks that are not linear, orderings that weigh weights, and those who watch see the coordinates they gave.
        if count >= p or self.ranks is not None or not self.objective.rotation_free or self.network != "linear":
            return None
        if getattr(self.solver, "watch", None) is not None:
            return None
        X = check_matrix(np.vstack([as_dense(part) for part in sides]), "fit").astype(np.float64)
        return row_space(X), X.mean(axis=0)

    def solve(self, statistics: Statistics, rows: dict[str, Any] | None = None) -> FittedEncoder:
        """Settle what is "auto", solve the pencil or train from it, and build the encoder."""
        objective, choice = self.objective, None
        moments = statistics.moments
        if isinstance(moments, Moments) and objective.conventions.centring != "none":
            moments.check_digits(moments.variances())
        if objective.candidates():
            objective.check_data(statistics)  # before folds are cut: a refusal speaks of the rows that were given
            choice = selection.choose(
                objective,
                statistics.sample,
                lambda rows: self.measure(rows, statistics.n_features),
                self._solve_settled,
                getattr(self.ordering, "omega", None),
                self.progress,
            )
            objective = choice.objective
        if self.solver.trains:
            return self._train_settled(objective, statistics, rows, choice)
        return self._solve_settled(objective, statistics, choice)

    def _solve_settled(
        self, objective: Objective, statistics: Statistics, choice: selection.Choice | None = None
    ) -> FittedEncoder:
        moments = statistics.moments
        if moments.rows < 2:
            raise InvalidInputError(f"Fitting needs at least two rows. Got n_samples = {moments.rows}.")
        solution = self._axes(objective.pencil(statistics), moments.eps)
        mean, query_mean = _means(objective, moments)
        return FittedEncoder(
            components=solution.components,
            spectrum=solution.spectrum,
            mean=mean,
            query_mean=query_mean,
            decoder=objective.decoder(statistics, solution.components),
            head=objective.head(statistics, solution.components),
            normalized=objective.conventions.normalized,
            pinned=solution.pinned,
            config=self._config(objective, statistics, choice, len(solution.components)),
        )

    def _axes(self, pencil: Pencil, eps: float) -> Solution:
        """Solve a pencil, for the answer or for a start, and check the ordering against the width found."""
        solution = (solvers.ClosedForm() if self.solver.trains else self.solver).solve(pencil, self.n_components, eps)
        self.ordering.check(len(solution.components))
        return solution

    def _train_settled(
        self,
        objective: Objective,
        statistics: Statistics,
        rows: dict[str, Any] | None,
        choice: selection.Choice | None,
    ) -> FittedEncoder:
        """Train from the pencil's axes, or from where `init` says."""
        require("torch", "torch", "Training by gradient")
        from firstk.solvers.gradient import build as training
        from firstk.solvers.gradient import finish as finishing

        request = self.request(objective, statistics, rows)
        task = training.build(request)
        outcome = self.solver.train(task, self.seed, self.verbose)
        config = self._config(objective, statistics, choice, task.measure.weights.d) | {
            "solver_settings": settings_of(outcome.plan),
            "estimator": task.measure.estimator,
            "ended": outcome.ended,
            "epochs": outcome.epochs,
        }
        statistics.derived["trace"] = outcome.trace
        return finishing.fitted(request, task, config)

    def request(self, objective: Objective, statistics: Statistics, rows: dict[str, Any] | None) -> Any:
        """Return what is to be trained, with everything settled but how; see `firstk.solvers.gradient.build.build`."""
        from firstk.solvers.gradient import build as training

        if statistics.moments.rows < 2:
            raise InvalidInputError(f"Fitting needs at least two rows. Got n_samples = {statistics.moments.rows}.")
        pencil = objective.pencil(statistics)
        solution = self._axes(pencil, statistics.moments.eps)
        mean, query_mean = _means(objective, statistics.moments)
        return training.Request(
            objective, self.ordering, self.solver, statistics, rows, mean, query_mean,
            self.network, self.init, self.device, self.seed, pencil, solution, self.n_components,
            self.ranks,
        )  # fmt: skip

    def _config(
        self, objective: Objective, statistics: Statistics, choice: selection.Choice | None, d: int
    ) -> dict[str, Any]:
        """Plain facts about the fit, kept with the encoder and saved with it."""
        config = {
            "library_version": __version__,
            "objective": objective.name,
            "settings": settings_of(objective),
            "ordering": self.ordering.name,
            "ordering_settings": settings_of(self.ordering),
            "omega": self.ordering.measure(d, objective.conventions.omega).described(),
            "solver": self.solver.name,
            "metric": objective.conventions.metric,
            "rows": statistics.moments.rows,
        }
        if len(supported := self.ordering.blocks(d)) < d:  # curves recommend these lengths alone
            config["supported"] = list(supported)
        if statistics.fingerprint.rows == statistics.moments.rows:
            config["data_fingerprint"] = str(statistics.fingerprint)
        if choice is not None:
            config["auto"] = [settings_of(candidate) | {"score": score} for candidate, score in choice.scores]
        return config


def pose(
    objective: Any,
    ordering: Any,
    solver: Any,
    n_components: int | None,
    *,
    network: Any = "linear",
    pairs: bool = False,
) -> Problem:
    """Resolve the three axes, once, and refuse what means nothing together."""
    goal = objectives.resolve(objective)
    if isinstance(goal, Similarity):
        goal = goal.for_pairs() if pairs else goal.for_rows()
    if pairs and goal.supervision != "pairs":
        raise IllegalCombinationError(
            f"Fitting objective '{goal.name}' on pairs",
            f"it learns from {'rows with labels' if goal.supervision == 'labels' else 'rows'}, not from pairs",
            "objective='similarity' with fit_pairs, or fit(X, y) with this one",
        )
    if not pairs and goal.supervision == "pairs":
        raise IllegalCombinationError(
            "Fitting pairs with fit(X)",
            "no pairs were given",
            "fit_pairs(left, right, scores), or objective='similarity'",
        )
    order, net = orderings.resolve(ordering), _resolved_network(network)
    closed = goal.exact and order.has_closed_form and net == "linear"
    chosen = solvers.resolve(solver, closed)
    _check_triple(goal, order, chosen, net)
    return Problem(goal, order, chosen, n_components, network=net)


def _resolved_network(network: Any) -> Any:
    """Return "linear", an `MLP`, or a module."""
    if isinstance(network, str):
        if network not in ("linear", "mlp"):
            raise bad_parameter("network", "PrefixEncoder", "'linear', 'mlp', MLP(...) or a torch module", network)
        return MLP() if network == "mlp" else network
    if isinstance(network, MLP):
        network.check()
    elif not (hasattr(network, "parameters") and hasattr(network, "forward")):
        raise bad_parameter("network", "PrefixEncoder", "'linear', 'mlp', MLP(...) or a torch module", network)
    return network


def _check_triple(goal: Objective, order: Any, solver: Any, network: Any) -> None:
    """Refuse triples that mean nothing: what was asked, why it means nothing, what to use."""
    pair = f"objective '{goal.name}' with ordering '{order.name}'"
    if not solver.trains:
        _check_closed(goal, order, network)
        return
    if "linear" in order.traits and network != "linear":
        raise IllegalCombinationError(
            f"ordering '{order.name}' with a nonlinear network",
            "it acts on the rows of an encoder that is a matrix",
            "network='linear', or ordering='full_prefix'",
        )
    if "decoder" in order.traits and goal.conventions.scaling != "orthonormal":
        raise IllegalCombinationError(
            pair, "it is defined for a decoder that rebuilds the vectors", "objective='reconstruction'"
        )
    if "scale" in order.traits and goal.form in ("ratio_trace", "pairs") and not getattr(goal, "code_eps", 0.0):
        raise IllegalCombinationError(
            pair,
            "the objective is blind to the scale of the code, so the penalty is lowered by shrinking it to nothing",
            "ordering='full_prefix'; for the baselines of full-prefix learning, Fisher(code_eps=1e-4)",
        )


def _check_closed(goal: Objective, order: Any, network: Any) -> None:
    if network != "linear":
        raise IllegalCombinationError(
            f"network={network!r} with solver 'closed_form'",
            "closed forms exist for linear encoders only",
            "network='linear', or solver='gradient'",
        )
    if not goal.exact or not order.has_closed_form:
        what = f"objective '{goal.name}'" if not goal.exact else f"ordering '{order.name}'"
        raise IllegalCombinationError(
            f"{what} with solver 'closed_form'", "no pencil has it as its answer", "solver='gradient' or 'auto'"
        )


def _weighty(rows: dict[str, Any]) -> dict[str, Any]:
    """Leave out rows of weight zero: they count for nothing, in a sample too."""
    weight = rows.get("weight")
    if weight is None or weight.all():
        return rows
    kept = np.flatnonzero(weight)
    return {name: part if part is None else part[kept] for name, part in rows.items()}


def _means(objective: Objective, moments: Moments | PairMoments) -> tuple[np.ndarray, np.ndarray]:
    """Return what is subtracted from documents and from queries, by the objective's line of the table."""
    if isinstance(moments, PairMoments):
        return moments.right_mean, moments.left_mean
    mean = np.zeros(moments.p) if objective.conventions.centring == "none" else moments.mean
    return mean, mean
