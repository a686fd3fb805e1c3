"""The problem: the only place where objective, ordering and solver meet.

It raises an error for combinations that are not defined, turns data into statistics, settles what was left to "auto",
and hands a request to the solver.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from firstk import __version__, objectives, orderings, solvers
from firstk._base.checks import (
    UnsavedMember,
    bad_parameter,
    check_choice,
    check_finite,
    check_flag,
    check_matrix,
    check_verbose,
    class_path,
    explaining_small_numbers,
    is_int,
    is_share,
)
from firstk._base.json_records import settings_of
from firstk._base.linalg import row_space, signed
from firstk._base.memory import check_fits
from firstk._base.prefix_weights import NAMES as OMEGA_NAMES
from firstk._base.progress import Verbose, showing
from firstk._base.rows import as_dense, is_sparse, projected, sliceable
from firstk.contracts import (
    Columns,
    Conventions,
    FitRequest,
    MomentObjective,
    Objective,
    Ordering,
    Pencil,
    Processes,
    Solver,
    Width,
)
from firstk.data.task import Pairs, Rows, of_columns
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP
from firstk.encoder.record import FitRecord
from firstk.estimator.auto import MOST_ROWS, AutoChoice, choose
from firstk.estimator.query_mean import with_own_mean
from firstk.exceptions import FewRowsWarning, IllegalCombinationError, InvalidInputError
from firstk.metrics.curve import METRICS
from firstk.moments.fingerprint import (
    Fingerprint,
    fingerprint_and_priorities,
    pair_hashes,
    row_priorities,
    taught_hashes,
)
from firstk.moments.moments import Moments
from firstk.moments.pairs import PairMoments
from firstk.moments.statistics import VECTORS, RowSample, Statistics, lowest_rows, sample_capacity
from firstk.moments.stream import checked
from firstk.solvers._principal_axes import CenteredRows, principal_axes
from firstk.solvers.closed_form import share_family

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike
    from torch import nn

# Dense arrays up to this size are made of sparse rows without a thought; beyond it, leading axes are found without.
_DENSE_BYTES = 2**28
# Arrays of that size that a dense fit holds at a time.
_DENSE_COPIES = 4
# Numbers from which on a second thread is worth starting.
_LARGE = 2**23


# A fit on fewer rows warns; a fit of a file with fewer is refused.
FEWEST_ROWS = 10


@dataclass(frozen=True)
class Problem:
    """An objective, an ordering and a solver that fit together, and the width asked for."""

    objective: Objective
    ordering: Ordering
    solver: Solver
    n_components: Width | float = None  # a share is cut off what solvers find for "rank"
    network: str | MLP | nn.Module = "linear"
    init: str | ArrayLike = "auto"
    device: str | torch.device = "auto"
    random_state: int | np.random.RandomState | None = None
    seed: int = 0
    verbose: Verbose = False
    processes: Processes | None = None  # those that share the rows; None where all rows are here

    # -- from data to statistics -----------------------------------------------------------------------------

    def seeded(self) -> Problem:
        """Return the problem with the seed of its training drawn, after a check of what training starts from."""
        if not self.solver.trains:
            for name in ("init", "device"):
                check_choice(getattr(self, name), ("auto",), name, "PrefixEncoder with a closed form")
            return self
        named = isinstance(self.init, str) and self.init in ("auto", "random")
        if not isinstance(self.network, str) and not named:
            raise IllegalCombinationError(
                f"init={'an array' if not isinstance(self.init, str) else repr(self.init)} with a nonlinear network",
                "a network starts with the weights it was made with",
                "init='auto', and for a start of your own a torch module as network",
            )
        if getattr(self.solver, "resume", False) and self.random_state is None:
            raise InvalidInputError(
                "Gradient(resume=True) needs a random_state, in the run that is stopped as in the one that goes on: "
                "with random_state=None every run draws a seed of its own. Set PrefixEncoder(random_state=0), say."
            )
        return replace(self, seed=int(check_random_state(self.random_state).randint(2**31 - 1)))

    def check_streamable(self, what: str) -> None:
        """Raise an error where `what` keeps statistics alone and the solver needs the rows."""
        self.solver.check_streamable(self.objective, self.ordering, self.network, what)

    def statistics_of(self, batch: Any) -> Statistics | None:
        """Return the statistics of a batch in any form that :func:`firstk.moments.stream.checked` takes."""
        data = checked(self.objective, batch)
        return None if data is None else self.accumulate(data)

    def accumulate(self, data: Rows | Pairs) -> Statistics:
        """Return the statistics of rows or pairs."""
        vectors: Any = data.arrays[0]
        n, p = vectors.shape
        if n * p < _LARGE or is_sparse(vectors):
            moments, hashed = self.moments_of(data), self._hashed(data, p)
        else:
            with ThreadPoolExecutor(1) as pool:  # hashes use one core, and products leave some of the others' time
                coming = pool.submit(self._hashed, data, p)
                moments, hashed = self.moments_of(data), coming.result()
        sample, fingerprint, learned = hashed
        return Statistics(moments, sample, p, fingerprint=fingerprint, learned=learned)

    def moments_of(self, data: Rows | Pairs) -> Moments | PairMoments:
        """Return the moments of rows or pairs."""
        columns, takes = data.columns, self.objective.supervision
        if isinstance(data, Pairs):
            return PairMoments(self.solver.precision).update(columns["left"], columns["right"], columns.get("scores"))
        y = columns.get("y")
        labels = takes == "labels" or (takes == "labels or targets" and np.asarray(y).dtype.kind != "f")
        given = {} if takes == "rows" else {"y": y} if labels else {"targets": y}
        moments = Moments(self.solver.precision, owner="fit")
        return moments.update(columns["X"], **given, sample_weight=columns.get("weight"))

    def _hashed(self, data: Rows | Pairs, n_features: int) -> tuple[RowSample, Fingerprint, np.ndarray]:
        """Return a sample of rows, and who they are, as they came, all together and one by one.

        The sample is the objective's, or else for quantizers, by a hash that costs next to nothing.
        """
        size, columns = self.objective.sample_size, data.columns
        sample = RowSample(max(size, sample_capacity(n_features)))
        if not size and isinstance(data, Rows) and data.weight is None:
            fingerprint, priorities = fingerprint_and_priorities(columns)
            learned = taught_hashes(columns["X"], priorities if data.y is None else None)
            return sample.update(columns, priorities), fingerprint, learned
        kept = _weighty(columns)
        sample.update(kept, None if size else row_priorities(kept))
        learned = pair_hashes(columns) if isinstance(data, Pairs) else taught_hashes(columns["X"])
        return sample, Fingerprint.of(columns), learned

    # -- from statistics to an encoder -----------------------------------------------------------------------

    def fit(
        self, data: Rows | Pairs, documents: RowSample | None = None, queries: RowSample | None = None
    ) -> tuple[FittedEncoder, Statistics | None]:
        """Fit data that are at hand as a whole; with fewer rows than columns, in a basis of the row space.

        Of large sparse rows that stay sparse, no statistics are kept. `documents` are of the store that pairs are from,
        `queries` some without judgements.
        """
        columns = data.columns
        with showing(self.verbose), explaining_small_numbers(columns.get("X", 0.0)):
            if isinstance(data, Rows) and self._stays_sparse(data.X):
                return self._asked(self._fit_sparse(data), queries), None
            vectors = {name: part for name, part in columns.items() if name in VECTORS}
            count, p = sum(part.shape[0] for part in vectors.values()), next(iter(vectors.values())).shape[1]
            # Networks, orderings that weigh weights, and those who watch see the coordinates they gave.
            as_given = not self.objective.rotation_free or self.network != "linear" or self.solver.shows_coordinates
            if count >= p or self.processes is not None or as_given:
                statistics = self.accumulate(data)
                if self.processes is not None:
                    statistics = self.processes.merged(statistics)
                encoder = self.solve(statistics, columns)
            else:
                X = check_matrix(np.vstack([as_dense(part) for part in vectors.values()]), "fit").astype(np.float64)
                basis, centre = row_space(X), X.mean(axis=0)
                # Moments are of centred rows and get their means back: projected with an offset, rows lose digits.
                centred, offset = projected(vectors, basis, centre), centre @ basis
                moments = self.moments_of(of_columns({**columns, **centred}))
                moments.moved(offset, *vectors.values())
                # Which rows are sampled, in what order, and who they are: hashes of the rows as they came.
                sample, fingerprint, learned = self._hashed(data, p)
                sample = sample.in_basis(basis)
                statistics = Statistics(moments, sample, p, basis, fingerprint=fingerprint, learned=learned)
                inside = columns | {name: part + offset for name, part in centred.items()}
                encoder = self.solve(statistics, inside).from_basis(basis)
        statistics.documents, statistics.queries = documents, queries
        encoder = encoder if documents is None else _with_documents(encoder, statistics)
        return self._asked(encoder, queries), statistics

    def _stays_sparse(self, X: Any) -> bool:
        """Tell whether a few leading axes of large sparse rows are asked for; raise if others do not fit in memory."""
        if not is_sparse(X) or (dense := 8 * X.shape[1] * min(X.shape)) <= _DENSE_BYTES:
            return False
        known = objectives.registered(self.objective) and getattr(self.objective, "principal", False)
        principal = known and not self.solver.trains and self.processes is None
        if principal and isinstance(self.n_components, int) and self.n_components <= min(X.shape) // 4:
            return True
        way_out = (
            f"pass n_components of at most {min(X.shape) // 4}: then rows stay sparse."
            if principal
            else "reduce the columns first: PrefixEncoder(512) without an objective keeps rows sparse, and its codes "
            f"are what objective '{self.objective.name}' can be fitted on."
        )
        check_fits(_DENSE_COPIES * dense, f"Fitting {X.shape[0]:,} sparse rows of {X.shape[1]:,} columns", way_out)
        return False

    def _fit_sparse(self, data: Rows) -> FittedEncoder:
        """Find the leading axes of sparse rows by their products with vectors."""
        columns, objective = data.columns, self.objective
        X, weight = columns["X"].astype(np.float64), columns.get("weight")
        with np.errstate(invalid="ignore"):  # zero times NaN or infinity is NaN, in the row that holds it
            check_finite((X @ np.zeros(X.shape[1]))[:, None], "fit")
        share = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight / weight.sum()
        mean = np.zeros(X.shape[1]) if objective.conventions.centring == "none" else np.asarray(X.T @ share)
        assert isinstance(self.n_components, int)
        found = principal_axes(CenteredRows(X, mean, weight), self.n_components)
        self.ordering.check(len(found.components))
        encoder = FittedEncoder(
            components=found.components,
            spectrum=found.spectrum,
            mean=mean,
            query_mean=mean,
            decoder=found.components.T,
            normalized=objective.conventions.normalized,
            pinned=found.pinned,
        )
        record = self._record(encoder, objective, X.shape[0], Fingerprint.of(columns))
        sample = lowest_rows(_weighty({"X": X} if weight is None else {"X": X, "weight": weight}))
        return replace(encoder, record=record, sample=sample)

    def solve(self, statistics: Statistics, rows: Columns | None = None) -> FittedEncoder:
        """Settle what is "auto" and let the solver find the encoder."""
        objective, moments = self.objective, statistics.moments
        with showing(self.verbose), explaining_small_numbers(getattr(moments, "mean", 0.0)):
            if isinstance(moments, Moments) and objective.conventions.centring != "none":
                moments.check_digits(moments.variances())
            if objective.candidates():
                # Before folds are cut, so that the error is about the rows that were given.
                objective.check_data(statistics)
                # Candidates are compared by their closed form where the one chosen is trained.
                solver = solvers.ClosedForm() if self.solver.trains else self.solver
                with statistics.sharing():  # neighbors mined for the choice serve the pencil of all rows too
                    choice = choose(
                        objective,
                        statistics,
                        lambda rows: self.moments_of(of_columns(rows)),
                        lambda candidate, kept: share_family(candidate.pencil(kept), kept.moments.eps, kept.shared),
                        lambda candidate, kept: self._solved_by(solver, self.request(candidate, kept)),
                        self.ordering.omega,
                        self.verbose,
                    )
                    request = self.request(choice.objective, statistics, rows)
            else:
                choice, request = None, self.request(objective, statistics, rows)
            encoder = self._solved_by(self.solver, request, choice)
            encoder = replace(_with_documents(encoder, statistics), learned=statistics.learned)
            if moments.rows < FEWEST_ROWS:
                warnings.warn(too_few_rows(moments.rows), FewRowsWarning, stacklevel=2)
            return self._asked(encoder, statistics.queries)

    def _asked(self, encoder: FittedEncoder, queries: RowSample | None) -> FittedEncoder:
        """Return the encoder for queries like some: with their mean where that helps, and bits where they look."""
        sample = encoder.sample
        if queries is None or sample is None:
            return encoder
        if self.objective.conventions.centring != "none":
            documents = as_dense(sliceable(sample["X"])[:MOST_ROWS])
            encoder = with_own_mean(encoder, queries["X"], documents)
        return replace(encoder, sample={**sample, "queries": queries["X"]})

    def _solved_by(self, solver: Solver, request: FitRequest, choice: AutoChoice | None = None) -> FittedEncoder:
        statistics, encoder = request.statistics, solver.solve(request)
        if request.objective.conventions.scaling == "projection":
            # Orthonormal rows that span, prefix by prefix, what these span; signs by convention.
            axes = np.ascontiguousarray(np.linalg.qr(encoder.components.T)[0].T)
            encoder = replace(encoder, components=np.asarray(axes * signed(axes)[:, None]))
        if isinstance(self.n_components, float):
            held = np.cumsum(encoder.spectrum[: encoder.pinned])
            encoder = encoder[: 1 + int(np.searchsorted(held[:-1], self.n_components * held[-1], side="right"))]
        record = self._record(encoder, request.objective, statistics.moments.rows, statistics.fingerprint, choice)
        return replace(encoder, record=record)

    def request(self, objective: Objective, statistics: Statistics, rows: Columns | None = None) -> FitRequest:
        """Return what a solver is asked to find for an objective with nothing left to "auto"."""
        if statistics.moments.rows < 2:
            raise InvalidInputError(f"Fitting needs at least two rows. Got n_samples = {statistics.moments.rows}.")
        pencil = objective.pencil(statistics)
        if not objectives.registered(objective):
            # Raise an error for a pencil of a user's own objective that is none, or that does not fit the data.
            p = statistics.moments.p
            owner = f"{type(objective).__name__}.pencil"
            if not isinstance(pencil, Pencil) or (pencil.M is None) == (pencil.factor is None):
                raise bad_parameter("result", owner, "a Pencil with M or with factor", type(pencil).__name__)
            if objective.conventions.scaling == "orthonormal" and pencil.N is not None:
                got = "an N: axes are orthonormal in N, which conventions call scaling='metric'"
                raise bad_parameter("N", owner, "None, as the objective's conventions say scaling='orthonormal'", got)
            for name in ("M", "N", "factor"):
                part = getattr(pencil, name)
                if part is None:
                    continue
                wanted = (p, p) if name != "factor" else (p, np.shape(part)[-1] if np.ndim(part) else 0)
                if np.shape(part) != wanted or not np.isfinite(part).all():
                    allowed = (
                        f"finite numbers of shape {wanted if name != 'factor' else (p, 'r')} (the columns of the data)"
                    )
                    raise bad_parameter(name, owner, allowed, f"shape {np.shape(part)}, or numbers that are not finite")
                if name != "factor" and not np.allclose(
                    part, np.transpose(part), rtol=1e-6, atol=1e-9 * np.abs(part).max()
                ):
                    raise bad_parameter(name, owner, "a symmetric matrix", "one that is not: return (M + M.T) / 2")
        moments = statistics.moments
        if isinstance(moments, PairMoments):
            mean, query_mean = moments.right_mean, moments.left_mean
        else:
            mean = np.zeros(moments.p) if objective.conventions.centring == "none" else moments.mean
            query_mean = mean
        return FitRequest(
            objective,
            self.ordering,
            statistics,
            pencil,
            mean,
            query_mean,
            n_components="rank" if isinstance(self.n_components, float) else self.n_components,
            rows=rows,
            network=self.network,
            init=self.init,
            device=self.device,
            seed=self.seed,
            verbose=self.verbose,
            processes=self.processes,
        )

    def _record(
        self,
        encoder: FittedEncoder,
        objective: Objective,
        rows: int,
        fingerprint: Fingerprint,
        choice: AutoChoice | None = None,
    ) -> FitRecord:
        """Return the record of a fit: that of the solver, with what was asked of it and of which rows."""
        d, members = encoder.d, {"objective": (objective, objectives), "ordering": (self.ordering, orderings)}
        supported = self.ordering.blocks(d)
        return replace(
            encoder.record,
            objective=objective.name,
            settings=settings_of(objective),
            ordering=self.ordering.name,
            ordering_settings=settings_of(self.ordering),
            omega=self.ordering.prefix_weights(d, objective.conventions.omega).described(),
            solver=self.solver.name,
            metric=objective.conventions.metric,
            rows=rows,
            data_fingerprint=str(fingerprint) if fingerprint.rows == rows else None,
            supported=tuple(supported) if len(supported) < d else None,  # curves recommend these lengths alone
            own_classes={
                axis: class_path(member) for axis, (member, room) in members.items() if not room.registered(member)
            },
            auto=tuple(settings_of(tried) | {"score": score} for tried, score in choice.scores) if choice else (),
            library_version=__version__,
        )


def pose(
    objective: object,
    ordering: object,
    solver: object,
    n_components: Width | float,
    *,
    network: object = "linear",
    pairs: bool = False,
    verbose: object = False,
    **start: Any,
) -> Problem:
    """Resolve the three axes, once, and raise an error for combinations that are not defined.

    Parameters
    ----------
    objective, ordering, solver, n_components, network, verbose
        As `PrefixEncoder` takes them.
    pairs : bool
        Whether the data are pairs.
    **start
        init, device and random_state, which `Problem.seeded` checks.
    """
    named = n_components is None or (isinstance(n_components, str) and n_components == "rank")
    if not named and not is_share(n_components) and (not is_int(n_components) or n_components < 1):
        expected = "a positive int, a share in (0, 1), 'rank' or None"
        raise bad_parameter("n_components", "PrefixEncoder", expected, n_components)
    goal = objectives.resolve(objective).resolved(pairs)
    if not objectives.registered(goal):
        # Raise an error for conventions of a user's own objective that are none.
        owner, own = f"{type(goal).__name__}.conventions", goal.conventions
        if not isinstance(own, Conventions):
            raise bad_parameter("conventions", type(goal).__name__, "a firstk.contracts.Conventions", own)
        check_choice(own.scaling, ("orthonormal", "metric", "noise", "projection", "power"), "scaling", owner)
        sides = ("sides",) if goal.supervision == "pairs" else ("mean", "none")
        check_choice(own.centring, sides, "centring", owner)
        check_flag(own.normalized, "normalized", owner)
        check_choice(own.omega, OMEGA_NAMES, "omega", owner)
        check_choice(own.metric, (*METRICS, "pair_agreement"), "metric", owner)
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
    order, net = orderings.resolve(ordering), network
    if isinstance(net, MLP):
        net.check()
    elif isinstance(net, str) and net in ("linear", MLP.name):
        net = MLP() if net == MLP.name else net
    elif isinstance(net, str) or not (hasattr(net, "parameters") and hasattr(net, "forward")):
        raise bad_parameter("network", "PrefixEncoder", "'linear', 'mlp', MLP(...) or a torch module", net)
    if isinstance(solver, str) and solver == "auto":
        # The quickest that finds what is asked for.
        solver = "quasi_newton" if isinstance(goal, MomentObjective) else "gradient"
        if net != "linear" or not order.has_closed_form:
            solver = "gradient"
        elif goal.exact:
            solver = "closed_form"
    chosen = solvers.resolve(solver)
    chosen.check_combination(goal, order, net)  # type: ignore[arg-type]
    shown = check_verbose(verbose, "PrefixEncoder")
    return Problem(goal, order, chosen, n_components, network=net, verbose=shown, **start)  # type: ignore[arg-type]


def settled(given: object, record: FitRecord) -> Objective:
    """Rebuild the objective of a fit, with every "auto" resolved, from the record of the fit.

    Parameters
    ----------
    given : str or object
        The estimator's `objective`; needed for a user-defined class, which is not recorded.
    record : FitRecord
    """
    own = record.own_classes.get("objective")
    if own is None:
        return objectives.restore(record.objective, record.settings)
    if isinstance(given, UnsavedMember):
        raise AttributeError(given.message)
    for pairs in (False, True):
        found = objectives.resolve(given).resolved(pairs)
        if class_path(found) == own:
            changed = {name: value for name, value in record.settings.items() if settings_of(found)[name] != value}
            return replace(found, **changed) if changed else found  # type: ignore[type-var]
    raise AttributeError(UnsavedMember("objective", own).message)


def too_few_rows(n: int) -> str:
    """Return what is wrong with a fit on `n` rows, and how many are needed."""
    return (
        f"{n} rows are too few to learn from: a code of n - 1 coordinates holds any n rows exactly, and says nothing "
        f"about others. Fit on at least {FEWEST_ROWS} rows (those held out are not counted); several for each "
        "coordinate and class are better."
    )


def _weighty(rows: Columns) -> Columns:
    """Leave out rows of weight zero: they count for nothing, in a sample too."""
    if (weight := rows.get("weight")) is None or weight.all():
        return rows
    kept = np.flatnonzero(weight)
    return {name: part[kept] for name, part in rows.items()}


def _with_documents(encoder: FittedEncoder, statistics: Statistics) -> FittedEncoder:
    """Return the encoder with sampled documents or rows as quantizers take them, and whether codes will be searched.

    Codes that learned from scored pairs are for comparing pairs, unless the documents of a store are known.
    """
    sample, name = statistics.to_encode
    columns = {"X": name, "weight": "weight"}
    vectors = {column: sample[own] for column, own in columns.items() if own in sample} if len(sample) else None
    moments = statistics.moments
    compared = isinstance(moments, PairMoments) and moments.scored and statistics.documents is None
    return replace(encoder, sample=vectors, record=replace(encoder.record, searched=not compared))
