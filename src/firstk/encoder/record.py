"""How an encoder was fitted, and what shape it has: the two records that config.json of a saved model is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from firstk._base.json_records import Allowed, Count, JsonRecord, from_plain
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.quality.choice import Choice
from firstk.quality.curve import PrefixCurve

# Objectives that similarity stands for, by what it keeps or learns from.
_SIMILARITY = ("pairs", "neighbors", "dot_products", "projections", "variance")
_Positions = Annotated[int, Allowed("an int of at least 0", lambda n: n >= 0)]


@dataclass(frozen=True)
class SavedParameters:
    """Constructor parameters of an estimator as JSON values, and why others were left out, by name."""

    given: dict[str, Any]
    left_out: dict[str, str]


@dataclass(frozen=True)
class FittedPart:
    """Rows or pairs that were learned from at a time: how many, which ones, and the seed that drew those held out."""

    rows: int | None
    data_fingerprint: str | None
    random_state: int | None


@dataclass(frozen=True)
class FitRecord(JsonRecord):
    """How an encoder was fitted; empty for one that was made without a fit.

    Attributes
    ----------
    objective, ordering : str
        Names, and `settings` and `ordering_settings` with everything "auto" settled.
    omega : str or mapping, optional
        Weights of prefixes: a name, or {k: weight}.
    solver, metric : str
    rows : int, optional
        How many rows or pairs were seen.
    data_fingerprint : str, optional
        Which ones, in any order: "1012 rows, 3fa9...".
    parts : tuple of FittedPart
        Where rows were added later, all fits in order.
    supported : tuple of int, optional
        Prefix lengths at which the order is fixed, where these are not all.
    searched : bool
        Whether codes are searched; those that learned from scored pairs alone are compared.
    auto : tuple of mapping
        Candidates for "auto" settings, with their scores.
    own_classes : mapping
        Paths of classes of a user's own, by "objective" and "ordering".
    solver_settings : mapping
    estimator : str, optional
        Whether training sums over prefixes "exact"ly or "sampled".
    ended : str, optional
        Why training or the search for a rotation ended.
    epochs, steps : int, optional
        How long it took.
    optimality_gap : float, optional
        Share of the possible decrease of the loss that training missed, where the optimum is known.
    curve, choice : PrefixCurve and Choice, optional
        Quality against k, and what to store.
    source_model : str, optional
        The model that made the vectors.
    feature_names : tuple of str, optional
    parameters : SavedParameters, optional
    library_version : str, optional
    """

    objective: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    ordering: str = ""
    ordering_settings: dict[str, Any] = field(default_factory=dict)
    omega: Mapping[str, float] | str | None = None
    solver: str = ""
    metric: str = ""
    rows: int | None = None
    data_fingerprint: str | None = None
    parts: tuple[FittedPart, ...] = ()
    supported: tuple[int, ...] | None = None
    searched: bool = True
    auto: tuple[dict[str, Any], ...] = ()
    own_classes: dict[str, str] = field(default_factory=dict)
    solver_settings: dict[str, Any] = field(default_factory=dict)
    estimator: str | None = None
    ended: str | None = None
    epochs: int | None = None
    steps: int | None = None
    optimality_gap: float | None = None
    curve: PrefixCurve | None = None
    choice: Choice | None = None
    source_model: str | None = None
    feature_names: tuple[str, ...] | None = None
    parameters: SavedParameters | None = None
    library_version: str | None = None

    @property
    def title(self) -> str:
        """What people call the objective: as ``--objective`` takes it, then what it keeps or learns from.

        Examples
        --------
        >>> FitRecord("pairs", solver="gradient").title, FitRecord("reconstruction").title
        ('similarity, pairs, gradient', 'reconstruction')
        """
        if self.objective not in _SIMILARITY:
            return self.objective
        return f"similarity, {self.objective}" + (", gradient" if self.solver == "gradient" else "")

    @property
    def unit(self) -> str:
        """What was learned from: "pair" or "row"."""
        return "pair" if self.objective == "pairs" else "row"

    @property
    def fingerprint(self) -> str | None:
        """The data fingerprint, in the unit that was learned from."""
        found = self.data_fingerprint
        return None if found is None else found.replace(" rows", f" {self.unit}s", 1)

    @property
    def random_state(self) -> int | None:
        """The seed among the saved parameters, where it was a number."""
        given = None if self.parameters is None else self.parameters.given.get("random_state")
        return given if isinstance(given, int) else None

    @property
    def fits(self) -> tuple[FittedPart, ...]:
        """The fits that an encoder is made of: one, or several where rows were added."""
        return self.parts or (FittedPart(self.rows, self.data_fingerprint, self.random_state),)

    def supported_up_to(self, d: int) -> tuple[int, ...] | None:
        """Return the lengths up to `d` at which the order of the code is fixed; None where it is at every one."""
        if self.supported is None:
            return None
        return tuple(sorted(k for k in self.supported if k <= d)) or (d,)

    def curve_up_to(self, d: int) -> PrefixCurve | None:
        """Return the curve as far as a code of `d` coordinates goes: a cut encoder has the first part of it."""
        curve = self.curve
        if curve is not None and curve.supported is None:  # a user's own: the fit says which lengths are
            curve = replace(curve, supported=self.supported_up_to(d))
        return None if curve is None else curve.cut(d)

    def choice_up_to(self, d: int) -> Choice | None:
        """Return the choice; None for a code that was cut below what it chose."""
        chosen = None if self.choice is None else self.choice.own
        return self.choice if chosen is None or chosen.point.k <= d else None


@dataclass(frozen=True)
class ModelShape:
    """What the arrays of a saved encoder are: widths, labels and the kind of network.

    Attributes
    ----------
    d, p, pinned : int
    normalized : bool
    classes : tuple, optional
        Labels of the head: text, numbers or booleans, all of one kind.
    network : str
        "linear", "mlp", or "custom" for a module of the user's own.
    layers, unit_code : int and bool, optional
        Of an MLP.
    """

    d: Count
    p: Count
    pinned: _Positions
    normalized: bool
    classes: tuple[Any, ...] | None = None
    network: str = "linear"
    layers: Count | None = None
    unit_code: bool | None = None


def read_config(config: Mapping[str, Any], path: object) -> tuple[ModelShape, FitRecord]:
    """Return the two records in a config.json; raise CorruptModelError where it does not hold them."""
    names = {part.name for part in fields(ModelShape)}
    try:
        shape = from_plain(ModelShape, {name: value for name, value in config.items() if name in names})
        record = FitRecord.from_dict({name: value for name, value in config.items() if name not in names})
        record.curve_up_to(shape.d)
    except (InvalidInputError, TypeError) as error:
        raise CorruptModelError(
            f"'{path}' is a damaged firstk model: its config.json cannot be read ({error})"
        ) from None
    if shape.pinned > shape.d:
        raise CorruptModelError(
            f"'{path}' is a damaged firstk model: its widths are d={shape.d}, p={shape.p}, pinned={shape.pinned}."
        )
    return shape, record
