"""Contents of a saved model: facts for programs, text and a table for people. Reading it checks the folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstk._base.json_records import to_plain
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.record import FitRecord, ModelShape, read_config
from firstk.encoder.storage.card import smallest_lengths
from firstk.encoder.storage.folder import (
    CARD,
    CONFIG,
    EVALUATION,
    FORMAT_VERSION,
    TENSORS,
    read_extra_bytes,
    read_manifest,
    read_model,
)
from firstk.exceptions import CorruptModelError, InvalidInputError
from firstk.quality.choice import Choice
from firstk.quality.curve import PrefixCurve, shown_lengths
from firstk.words.choice import answer
from firstk.words.text import bytes_text

__all__ = ["model_info"]

_FLOAT32 = 4


@dataclass(frozen=True)
class ModelInfo:
    """Facts about a saved model.

    Attributes
    ----------
    path : str
    shape, record : ModelShape and FitRecord
        What config.json says of the encoder.
    files : mapping
        Bytes of every file in the folder.
    integrity : mapping
        What was found of each file: "matches", "not checked", "missing", "does not match", "not of the model".
    embedded_bytes : int or None
        The most that a code has as embedded bits; None of models saved without cells for them.
    """

    path: str
    shape: ModelShape
    record: FitRecord
    files: Mapping[str, int]
    integrity: Mapping[str, str]
    embedded_bytes: int | None = None

    @property
    def d(self) -> int:
        """Width of the code."""
        return self.shape.d

    @property
    def curve(self) -> PrefixCurve | None:
        """Quality against k, where that was saved."""
        return self.record.curve_up_to(self.d)

    @property
    def smallest(self) -> dict[float, int]:
        """Smallest k for each share of the score, as float32; empty where no curve was saved, or a choice says more."""
        return {} if self.curve is None or self.choice is not None else smallest_lengths(self.curve)

    @property
    def choice(self) -> Choice | None:
        """What to store, where that was saved."""
        return self.record.choice_up_to(self.d)

    @property
    def whole(self) -> bool:
        """Whether every file that is trusted is there and is what was saved."""
        return not {"missing", "does not match"} & set(self.integrity.values())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        config = to_plain(self.shape) | self.record.to_dict()
        told = {name: value for name, value in config.items() if name not in ("curve", "auto", "choice")}
        return {
            "path": self.path,
            **told,
            "format_version": FORMAT_VERSION,
            "curve": None if self.curve is None else self.curve.to_dict(),
            "choice": None if self.choice is None else self.choice.to_dict(),
            "smallest_k": {f"{keep:g}": k for keep, k in self.smallest.items()},
            "bytes_per_vector": {"raw": self._raw_bytes, "full": _FLOAT32 * self.d}
            | {f"keep {keep:g}": _FLOAT32 * k for keep, k in self.smallest.items()}
            | ({} if self.embedded_bytes is None else {"embedded": self.embedded_bytes}),
            "bytes_on_disk": sum(self.files.values()),
            "files": {
                name: {"bytes": self.files.get(name), "integrity": found} for name, found in self.integrity.items()
            },
            "whole": self.whole,
        }

    @property
    def _raw_bytes(self) -> int:
        """Bytes of a raw vector: as they came where that was saved, else as float32."""
        known = None if self.choice is None else self.choice.input_bytes
        return _FLOAT32 * self.shape.p if known is None else known

    def __str__(self) -> str:
        shape, fit, curve, most = self.shape, self.record, self.curve, self.embedded_bytes
        objective, ordering = fit.title or "unknown", fit.ordering or "unknown"
        source = f" (made by {fit.source_model})" if fit.source_model else ""
        rows = "an unknown number of" if fit.rows is None else f"{fit.rows:,}"
        lines = [
            f"{self.path} holds an encoder from vectors of {shape.p} columns{source} to codes of {self.d} coordinates.",
            f"Objective {objective}, ordering {ordering}, fitted on {rows} {fit.unit}s by "
            f"firstk {fit.library_version}.",
            "Codes are brought to unit norm after the cut." if shape.normalized else "Codes are not normalized.",
        ]
        whose = "the best prefix" if curve is None or curve.input_score is None else "the raw vectors"
        if curve is None:
            lines.append("No curve was saved with it: pass curve= to save, or run firstk curve.")
        elif self.choice is not None:
            lines += answer(self.choice)
        elif self.smallest:
            share, k = max(self.smallest.items())
            of = "the best prefix's" if curve.input_score is None else "the raw vectors'"
            lines.append(f"The first {k} coordinates keep {100 * share:g} % of {of} {curve.metric}.")
        broken = [f"{name} {found}" for name, found in self.integrity.items() if found in ("missing", "does not match")]
        if broken:
            lines += [f"The encoder itself is whole, but: {', '.join(broken)}. Copy or save the model again."]
        else:
            lines += ["The files are whole: config.json matches its digest, the others their checksums."]
        foreign = [name for name, found in self.integrity.items() if found == "not of the model"]
        lines += [f"Files that are not the model's: {', '.join(foreign)}."] if foreign else []
        bits = "" if most is None else f"; 1 to {most:,} as embedded bits"
        table = [
            ("objective", _with_settings(fit.title, fit.settings)),
            ("ordering", _with_settings(fit.ordering, fit.ordering_settings)),
            ("omega", _some(fit.omega)),
            ("solver", fit.solver),
            ("network", shape.network),
            ("columns, coordinates", f"{shape.p}, {self.d} ({shape.pinned} set by the objective)"),
            ("classes", None if shape.classes is None else len(shape.classes)),
            (f"{fit.unit}s seen", rows),
            ("data fingerprint", fit.fingerprint),
            ("source model", fit.source_model),
            ("bytes per vector", f"{_FLOAT32 * self.d:,} as float32, uncut; {self._raw_bytes:,} raw{bits}"),
            ("size on disk", f"{bytes_text(sum(self.files.values()))}, {len(self.files)} files"),
            ("format version", FORMAT_VERSION),
            ("firstk", fit.library_version),
        ]
        lines += ["", *(f"  {name:<22}{value}" for name, value in table if value not in (None, ""))]
        if curve is not None:
            shown = shown_lengths(curve.k)
            beside = " Other precisions: firstk report." if EVALUATION in self.files else ""
            lines += ["", f"  The first k coordinates as float32.{beside}"]
            lines += [f"  {'k':>6}  {curve.metric:>20}  {'bytes':>16}"]
            lines += [f"  {k:>6}  {score:>20.4f}  {_FLOAT32 * k:>16,}" for k, score in curve if k in shown]
            if self.choice is None:  # it says which length to take, in which precision
                lines += [
                    f"  smallest k that keeps {keep:.4g} of the score of {whose}, as float32: {k}"
                    for keep, k in self.smallest.items()
                ]
        # What a terminal only shows: a model from elsewhere may hold anything in its texts.
        return "\n".join("".join(sign if sign.isprintable() else "?" for sign in line) for line in lines)


def model_info(path: str | Path) -> ModelInfo:
    """Read and check a saved model; a damaged or foreign folder raises an error."""
    folder, most = Path(path), None
    manifest = read_manifest(folder)
    shape, record = read_config(manifest.config, folder)
    if shape.network == "custom":  # its code is not here, so it cannot be built; its files can be read
        read_model(folder)
    else:
        encoder = FittedEncoder.load(folder)
        with suppress(InvalidInputError):  # of one without cells
            most = encoder.quantizer(None).bytes
    files = {file.name: file.stat().st_size for file in sorted(folder.iterdir()) if file.is_file()}
    integrity = {CONFIG: "matches", TENSORS: "matches"}
    for name in manifest.files:
        if name != TENSORS:
            integrity[name] = "matches" if name in files else "missing"
            try:
                if name in files:
                    read_extra_bytes(folder, name)
            except CorruptModelError:
                integrity[name] = "does not match"
    if CARD in files:
        integrity[CARD] = "not checked"
    integrity |= {name: "not of the model" for name in files if name not in integrity}
    return ModelInfo(str(path), shape, record, files, integrity, most)


def _with_settings(name: str, settings: Mapping[str, Any]) -> str:
    told = ", ".join(f"{key}={_some(value)}" for key, value in settings.items() if value is not None)
    return f"{name} ({told})" if told else name


def _some(value: object) -> str | None:
    """Return a value as text, cut where it is long."""
    if value is None:
        return None
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
