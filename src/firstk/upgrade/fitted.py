"""A frozen alignment: translations and the ordered shared code of two models, saved and loaded; numpy only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from firstk._base.array_types import MatrixLike
from firstk._base.arrays import under, within
from firstk._base.checks import bad_parameter, check_choice, check_prefix
from firstk._base.rows import unit_rows
from firstk.encoder import ALIGNMENT, CodeMap, read_model, write_model
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError
from firstk.upgrade.contract import AffineMap, AlignmentSolution

_MAPS = ("old_to_new", "new_to_old", "encode_old", "encode_new")
_OWNER = "FittedAlignment"


@dataclass(frozen=True, eq=False)
class FittedAlignment:
    """Translations between the vectors of an old model and a new one, and their ordered shared code.

    Attributes
    ----------
    solution : AlignmentSolution
        The four maps, and the agreement of each coordinate of the shared code.
    unit_old, unit_new : bool
        Whether vectors of that model have unit norm: then so have translations into its space.
    config : mapping
        JSON values that record how it was fitted: method, settings, number of pairs, what "auto" tried; and, where
        `firstk align` made it, the verdict in words.
    """

    solution: AlignmentSolution
    unit_old: bool = False
    unit_new: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def d(self) -> int:
        """Width of the shared code."""
        return self.solution.encode_old.d

    @property
    def p(self) -> int:
        """Width of the old vectors."""
        return self.solution.old_to_new.p

    @property
    def q(self) -> int:
        """Width of the new vectors."""
        return self.solution.new_to_old.p

    @property
    def spectrum(self) -> np.ndarray:
        """Agreement of each coordinate, descending."""
        return self.solution.spectrum

    # -- the shared code -------------------------------------------------------------------------------------

    def encode_old(self, X: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the first `k` coordinates of the shared code of old vectors; all if not given.

        Codes of both sides are compared by cosine; they are not scaled to unit norm, so they can be cut further.
        """
        owner = f"{_OWNER}.encode_old"
        return self.solution.encode_old.cut(check_prefix(k, self.d, owner))(X, owner)

    def encode_new(self, Q: MatrixLike, k: int | None = None) -> np.ndarray:
        """Return the first `k` coordinates of the shared code of new vectors; all if not given."""
        owner = f"{_OWNER}.encode_new"
        return self.solution.encode_new.cut(check_prefix(k, self.d, owner))(Q, owner, "Q")

    def __getitem__(self, cut: slice) -> FittedAlignment:
        """Return the alignment whose shared code ends at k: ``alignment[:k]``. Translations stay as they are."""
        if not isinstance(cut, slice) or cut.start not in (None, 0) or cut.step not in (None, 1):
            raise bad_parameter("k", f"{_OWNER}[:k]", "a slice from the start, such as [:64]", cut)
        return replace(self, solution=self.solution.cut(check_prefix(cut.stop, self.d, f"{_OWNER}[:k]")))

    # -- translations ----------------------------------------------------------------------------------------

    def old_to_new(self, X: MatrixLike) -> np.ndarray:
        """Translate old vectors into the space of the new model."""
        Y = self.solution.old_to_new(X, f"{_OWNER}.old_to_new")
        return unit_rows(Y, out=Y) if self.unit_new else Y

    def new_to_old(self, Q: MatrixLike) -> np.ndarray:
        """Translate new vectors into the space of the old model."""
        Y = self.solution.new_to_old(Q, f"{_OWNER}.new_to_old", "Q")
        return unit_rows(Y, out=Y) if self.unit_old else Y

    def code_map(self, side: str | None = None, into: str | None = None) -> CodeMap:
        """Return a map from vectors of one model, as `transform_files` takes it.

        Parameters
        ----------
        side : {"document", "query"}, optional
            Documents, the old model's vectors, or queries, the new one's; those that can go `into` a space, if not
            given.
        into : {"shared", "new", "old"}, optional
            The ordered shared code, the space of the new model (of old vectors) or that of the old one (of new
            vectors). The shared code if not given.
        """
        into = check_choice(into or "shared", ("shared", "new", "old"), "into", "firstk transform")
        given = "query" if into == "old" else "document"
        side = check_choice(side or given, ("document", "query"), "side", "firstk transform")
        if into != "shared" and side != given:
            whose = "old" if into == "new" else "new"
            raise InvalidInputError(
                f"Only vectors of the {whose} model can be translated into the {into} space: leave out --side {side}, "
                "or --into for the shared code."
            )
        made_by, name = f"{self.fingerprint()} {into}", "An alignment"
        if into == "new":
            return CodeMap(self.p, self.q, lambda X, k: self.old_to_new(X)[:, :k], made_by, name)
        if into == "old":
            return CodeMap(self.q, self.p, lambda X, k: self.new_to_old(X)[:, :k], made_by, name)
        width, encode = (self.q, self.encode_new) if side == "query" else (self.p, self.encode_old)
        return CodeMap(width, self.d, encode, made_by, name, shared=True)

    def facts(self) -> dict[str, Any]:
        """Return what it is and how it was fitted, for JSON."""
        known = {name: self.config.get(name) for name in ("method", "settings", "pairs", "verdict")}
        widths = {"old_width": self.p, "new_width": self.q, "components": self.d}
        return widths | {"fingerprint": self.fingerprint()} | known

    def __str__(self) -> str:
        none = ["It was saved without an evaluation: firstk align OLD NEW -o FOLDER makes one."]
        about = (
            f"An alignment of vectors of {self.p} numbers (old) and {self.q} (new): one code of {self.d}, "
            f"{self.config.get('method')}, fitted on {self.config.get('pairs', 0):,} pairs."
        )
        return "\n".join((about, *self.config.get("verdict", none)))

    # -- storage ---------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """Return a short hash of the numbers of the alignment: two alignments that encode alike have the same."""
        digest = hashlib.sha256()
        for name, part in sorted(self._arrays().items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()[:16]

    def save(self, path: str | Path, *, extra: Mapping[str, str | bytes] | None = None) -> Path:
        """Write the alignment into the folder `path`, atomically: config.json, model.safetensors and README.md.

        Parameters
        ----------
        path : path
            A new or empty folder, or one that holds a firstk model, which is replaced.
        extra : mapping of str or bytes, optional
            What further files hold, by name.
        """
        config = dict(self.config) | {
            "widths": {"old": self.p, "new": self.q, "code": self.d},
            "unit": {"old": self.unit_old, "new": self.unit_new},
        }
        return write_model(path, config, self._arrays(), card=_card(self), extra=extra, format=ALIGNMENT)

    @classmethod
    def load(cls, path: str | Path) -> FittedAlignment:
        """Read an alignment from a folder; raise CorruptModelError for a damaged or foreign one."""
        config, stored = read_model(path, ALIGNMENT)
        try:
            widths, unit = (config.pop(name) for name in ("widths", "unit"))
            p, q, d = (int(widths[name]) for name in ("old", "new", "code"))
            shapes = {"old_to_new": (q, p), "new_to_old": (p, q), "encode_old": (d, p), "encode_new": (d, q)}
            maps = {name: _map(within(stored, name), shapes[name]) for name in _MAPS}
            spectrum = stored["spectrum"]
            if spectrum.shape != (d,) or not np.isfinite(spectrum).all():
                raise ValueError(f"its spectrum has shape {spectrum.shape}, and the code {d} coordinates")
            solution = AlignmentSolution(**maps, spectrum=spectrum)
            return cls(solution, bool(unit["old"]), bool(unit["new"]), config)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            why = error if isinstance(error, FirstkError) else f"{error!r:.200}"
            raise CorruptModelError(f"'{path}' is a damaged firstk alignment: {why}") from None

    def _arrays(self) -> dict[str, np.ndarray]:
        made = {"spectrum": self.spectrum}
        for name in _MAPS:
            made |= under(name, getattr(self.solution, name).arrays())
        return {name: np.ascontiguousarray(part) for name, part in made.items()}


def _map(stored: dict[str, np.ndarray], shape: tuple[int, int]) -> AffineMap:
    mean, weight, offset = (stored.pop(name) for name in ("mean", "weight", "offset"))
    if (weight.shape, mean.shape, offset.shape) != (shape, shape[1:], shape[:1]):
        raise ValueError(f"a map has shape {weight.shape}, and {shape} is needed")
    if not all(part.dtype == np.float64 and np.isfinite(part).all() for part in (mean, weight, offset)):
        raise ValueError("a map holds numbers that are not finite, or not float64")
    if stored:
        raise ValueError(f"it holds arrays that belong nowhere: {', '.join(sorted(stored))}")
    return AffineMap(mean, weight, offset)


def _card(alignment: FittedAlignment) -> str:
    method, pairs = (alignment.config.get(name, "") for name in ("method", "pairs"))
    return (
        "# A firstk alignment\n\n"
        f"Translates between vectors of an old model ({alignment.p} numbers) and a new one ({alignment.q}), and "
        f"encodes both to one ordered code of {alignment.d}. Method: {method}; pairs: {pairs}.\n\n"
        "```python\nfrom firstk import PrefixAlignment\n\n"
        'alignment = PrefixAlignment.load("this folder")\n'
        "alignment.encode_old(old_vectors, k)  # compared by cosine with\n"
        "alignment.encode_new(new_queries, k)\n"
        "alignment.old_to_new(old_vectors)  # or translated\n```\n"
    )
