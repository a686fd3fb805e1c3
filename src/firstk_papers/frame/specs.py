"""Specs of experiments: read from the folders of the papers, validated, and found by name."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from firstk.exceptions import InvalidInputError
from firstk_papers.frame.claims import Claim
from firstk_papers.frame.types import JsonDict

HERE = Path(__file__).parents[1]


class Paper(NamedTuple):
    """A paper by author and year, and its title."""

    citation: str
    title: str


PAPERS = {
    "talukder2026": Paper(
        "Talukder et al. 2026", "Objective-Specific Privileged Bases via Full-Prefix Matryoshka Learning"
    ),
    "bao2020": Paper("Bao et al. 2020", "Regularized linear autoencoders recover the principal components, eventually"),
    "balestriero2024": Paper(
        "Balestriero and LeCun 2024", "How Learning by Reconstruction Produces Uninformative Features for Perception"
    ),
}
TIERS = ("smoke", "full", "authors")


@dataclass(frozen=True)
class Spec:
    """One experiment: a figure, table, theorem or identity of a paper.

    Attributes
    ----------
    id : str
        Paper and name, as in "talukder2026/fig1".
    title, where : str
        What it shows, and where in the paper.
    study, report : str
        Module in the paper's folder (or any module, by its dotted name), and the function in it that reads the cells.
    seed : int
    reading : str
        Our own, of the full tier.
    timed : tuple of str
        Measures that are times or ratios of times, and so are not the same in every run.
    substitutes : tuple of dict
        What the paper used, what is used here instead, and why.
    tiers : dict
        Settings of each tier; "authors" is there where the code of a paper's authors has other settings than its text.
    claims : tuple of Claim
    """

    id: str
    title: str
    where: str
    study: str
    report: str
    seed: int
    reading: str
    timed: tuple[str, ...]
    substitutes: tuple[dict[str, str], ...]
    tiers: dict[str, JsonDict]
    claims: tuple[Claim, ...]

    @property
    def paper(self) -> str:
        """Id of the paper."""
        return self.id.partition("/")[0]

    @property
    def figure(self) -> str:
        """Its id without the letter of a part: "talukder2026/fig6" for "talukder2026/fig6a"."""
        return self.id[:-1] if self.id[-2:-1].isdigit() and self.id[-1].isalpha() else self.id

    @property
    def stem(self) -> str:
        """Name of its result files."""
        return self.id.replace("/", "-")

    def settings(self, tier: str) -> JsonDict:
        """Return the settings of a tier, seed included."""
        return {"seed": self.seed, **self.tiers[tier]}


def catalogue(folder: Path = HERE) -> dict[str, Spec]:
    """Read all specs of a folder, in the order of papers and names: ours, or ones of your own in the same layout."""
    paths = sorted(folder.glob("*/*.toml"), key=_order)
    return {spec.id: spec for spec in map(read_spec, paths)}


def choose(names: list[str], specs: Mapping[str, Spec], tier: str = "full") -> list[Spec]:
    """Return the specs of names: an id ("bao2020/fig6a"), all parts of a figure ("bao2020/fig6"), a paper, "all"."""
    chosen: dict[str, Spec] = {}
    for name in names:
        found = [s for s in specs.values() if name in ("all", s.paper, s.id, s.figure)]
        if not found:
            raise _unknown(name, specs)
        inside = {spec.id: spec for spec in found if tier in spec.tiers}
        if not inside:
            having = ", ".join(spec.id for spec in specs.values() if tier in spec.tiers)
            raise InvalidInputError(f"'{name}' has no tier '{tier}'. These have: {having}.")
        chosen |= inside
    return list(chosen.values())


def _unknown(name: str, specs: Mapping[str, Spec]) -> InvalidInputError:
    """Build the error for a name that nothing has: the nearest few, because all of them are a screen full."""
    papers = list(dict.fromkeys(spec.paper for spec in specs.values()))
    known = list(dict.fromkeys(["all", *papers, *specs, *(spec.figure for spec in specs.values())]))
    near = get_close_matches(name, known)
    if near:
        *others, last = near
        meant = f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"
    else:
        meant = f"There are the papers {', '.join(papers)}, and all."
    return InvalidInputError(f"There is no experiment '{name}'. {meant} 'firstk reproduce' names every one.")


def read_spec(path: Path) -> Spec:
    """Read one spec and its claims; an error in them names the file."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        claims = json.loads(path.with_suffix(".expected.json").read_text(encoding="utf-8"))["claims"]
        return _spec(f"{path.parent.name}/{path.stem}", found, claims)
    except KeyError as error:
        raise InvalidInputError(f"The experiment '{path.parent.name}/{path.stem}' lacks {error}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"'{path}' cannot be read: it is no TOML: {error}.") from None
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"'{path.with_suffix('.expected.json')}' cannot be read: it is not JSON: {error}."
        ) from None
    except (TypeError, OSError, InvalidInputError) as error:
        raise InvalidInputError(f"The experiment '{path.parent.name}/{path.stem}' cannot be read: {error}") from None


def _spec(name: str, found: JsonDict, claims: list[JsonDict]) -> Spec:
    known = {part.name for part in fields(Spec)} - {"id", "tiers", "claims"} | {"settings", *TIERS}
    if unknown := set(found) - known:
        raise InvalidInputError(f"it has no field {', '.join(sorted(unknown))}. It has {', '.join(sorted(known))}.")
    common = found.get("settings", {})
    spec = Spec(
        id=name,
        title=found["title"],
        where=found["where"],
        study=found["study"],
        report=found.get("report", "report"),
        seed=found.get("seed", 0),
        reading=found.get("reading", ""),
        timed=tuple(found.get("timed", ())),
        substitutes=tuple(found.get("substitutes", ())),
        tiers={tier: {**common, **found.get(tier, {})} for tier in TIERS if tier in found or tier != "authors"},
        claims=tuple(Claim(**claim) for claim in claims),
    )
    ids = [claim.id for claim in spec.claims]
    if len(set(ids)) < len(ids):
        raise InvalidInputError("two of its claims have the same id.")
    return spec


def _order(path: Path) -> tuple[int, str, tuple[str, int, str]]:
    """Sort our papers as they are listed, others by name; and the experiments of a paper."""
    papers, paper = list(PAPERS), path.parent.name
    return papers.index(paper) if paper in PAPERS else len(papers), paper, _natural(path.stem)


def _natural(stem: str) -> tuple[str, int, str]:
    """Sort fig2 before fig10."""
    letters = stem.rstrip("0123456789")
    number = stem[len(letters) :]
    return letters, int(number or 0), stem
