"""Saving, loading and sharing an estimator: a folder on disk, laid out as Hugging Face repositories are.

Constructor parameters are saved as JSON. What JSON cannot hold (a module, an array, a generator) is left out and
named, with the reason; it comes back as its default. The moments of the rows can be kept beside the encoder, so that a
loaded one learns on.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from firstk import objectives, orderings, solvers
from firstk._base import arrays
from firstk._base.array_types import MatrixLike
from firstk._base.checks import UnsavedMember, check_verbose, is_int, is_share
from firstk._base.json_records import settings_of
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.network import MLP, TrainedMLP
from firstk.encoder.record import SavedParameters
from firstk.encoder.storage.folder import read_extra_bytes
from firstk.encoder.storage.hub import local_folder, upload
from firstk.exceptions import CorruptModelError, FirstkError, InvalidInputError
from firstk.moments.statistics import Statistics
from firstk.quality.choose import Choice
from firstk.quality.curve import PrefixCurve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import nn

# File of a model folder that holds the moments of the rows, where they were kept.
MOMENTS = "moments.safetensors"


class SavedModels:
    """Storage methods of an estimator that has an ``encoder_``."""

    def save(
        self,
        path: str | Path,
        *,
        curve: PrefixCurve | None = None,
        choice: Choice | None = None,
        source_model: str | None = None,
        extra: Mapping[str, str | bytes] | None = None,
        moments: bool = False,
        held_out: MatrixLike | tuple[MatrixLike, ArrayLike | None] | None = None,
    ) -> Path:
        """Write the encoder into the folder `path`, atomically: config.json, model.safetensors and README.md.

        Parameters
        ----------
        path : path
            A new or empty folder, or one that holds a firstk model, which is replaced.
        curve : PrefixCurve, optional
            Quality against k, kept with the model and shown on its card.
        choice : Choice, optional
            What to store, kept and shown with it: ``evaluation.choose()``.
        source_model : str, optional
            Name of the model that made the vectors.
        extra : mapping of str or bytes, optional
            What further files hold, by name.
        moments : bool
            Keep the moments of the rows too, in moments.safetensors, so that a loaded encoder can learn on: 8 p^2
            bytes, and a sample of the rows themselves, at most 8,192 of them (of pairs, and of the documents of their
            store where it is known, as many each).
        held_out : array-like of shape (n, p), tuple (X, y) or RowProfile, optional
            Rows that the fit has not seen, 256 or more, whose profile is saved, or that profile: `check` later compares
            new rows with it. Without them it is that of rows of the fit. Rows themselves are not saved.
        """
        encoder: FittedEncoder = self.encoder_  # type: ignore[attr-defined]
        names = getattr(self, "feature_names_in_", None)
        record = replace(
            encoder.record,
            feature_names=None if names is None else tuple(str(name) for name in names),
            parameters=saved_parameters(self.get_params(deep=False)),  # type: ignore[attr-defined]
        )
        if MOMENTS in (extra or {}):
            raise InvalidInputError(f"'{MOMENTS}' holds the moments of the rows: write it with moments=True.")
        if moments:
            extra = dict(extra or {}) | {MOMENTS: self._stored_moments()}
        profile = self._profile(held_out)  # type: ignore[attr-defined]
        # Cells that an evaluation asked for are kept by the encoder, and lost with a copy.
        cells = encoder._storable_cells if encoder.cells is None else encoder.cells
        return replace(encoder, record=record, profile=profile, cells=cells).save(
            path, curve=curve, choice=choice, source_model=source_model, extra=extra
        )

    def _stored_moments(self) -> bytes:
        """Return the moments of the rows as bytes; raise an error if there are none, or if they do not suffice."""
        self._check_learns_on()  # type: ignore[attr-defined]
        self._posed(pairs=self._learns_pairs()).check_streamable("save(moments=True)")  # type: ignore[attr-defined]
        statistics: Statistics = self._statistics  # type: ignore[attr-defined]
        return arrays.to_bytes(statistics.to_arrays())

    @classmethod
    def load(cls, path: str | Path, module: nn.Module | None = None, *, moments: bool = True) -> Self:
        """Read an encoder from a folder. Nothing is unpickled; a damaged or foreign folder raises CorruptModelError.

        Parameters
        ----------
        path : path
        module : torch module, optional
            For an encoder fitted with a network of your own: a network of the same architecture, into which its state
            is loaded.
        moments : bool
            Read the moments that were saved with the model, if any, so that `partial_fit` can go on; False leaves them
            on the disk.
        """
        encoder = FittedEncoder.load(path, module)
        record, own = encoder.record, encoder.record.own_classes
        try:
            if "objective" not in own:
                objectives.restore(record.objective, record.settings)
            if "ordering" not in own:
                orderings.restore(record.ordering, record.ordering_settings)
            names = record.feature_names
            if names is not None and len(names) != encoder.p:
                raise ValueError(f"feature_names must be {encoder.p} names")
            unsaved = {name: UnsavedMember(name, made_by) for name, made_by in own.items()}
            loaded = cls(**parameters_of(encoder, module) | unsaved)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            why = error if isinstance(error, FirstkError) else repr(error)
            raise CorruptModelError(
                f"'{path}' is a damaged firstk model: its settings cannot be read ({why})."
            ) from None
        for name, made_by in own.items():
            warnings.warn(
                f"The {name} of '{path}' was a {made_by}, a class of your own, which is not saved. The encoder works "
                f"without it; before you fit again, pass it: set_params({name}=...).",
                stacklevel=2,
            )
        loaded._adopt(encoder, encoder.p, names)  # type: ignore[attr-defined]
        if moments and (found := _read_moments(path, encoder)) is not None:
            loaded._statistics = found  # type: ignore[attr-defined]
        return loaded

    # -- Hugging Face ----------------------------------------------------------------------------------------

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        curve: PrefixCurve | None = None,
        source_model: str | None = None,
        extra: Mapping[str, str | bytes] | None = None,
        moments: bool = False,
    ) -> Path:
        """Do what ``save`` does, under the name that Hugging Face libraries use."""
        return self.save(save_directory, curve=curve, source_model=source_model, extra=extra, moments=moments)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        module: nn.Module | None = None,
    ) -> Self:
        """Load from a folder, or from a repository of the Hugging Face Hub where there is no such folder.

        Parameters
        ----------
        name_or_path : path or str
            A folder, or a repository such as "someone/short-embeddings", of which config.json, model.safetensors and
            README.md are fetched and nothing else. Needs the extra "hub".
        revision : str, optional
            Branch, tag or commit.
        cache_dir, token, local_files_only
            As in ``huggingface_hub.snapshot_download``.
        module : torch module, optional
            As in ``load``.
        """
        folder = local_folder(
            name_or_path, revision=revision, cache_dir=cache_dir, token=token, local_files_only=local_files_only
        )
        return cls.load(folder, module, moments=(folder / MOMENTS).is_file())  # repositories are fetched without them

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: str | bool | None = None,
        commit_message: str = "Save a firstk encoder",
        curve: PrefixCurve | None = None,
        source_model: str | None = None,
    ) -> str:
        """Save into a repository of the Hugging Face Hub, made if it does not exist, and return its address."""
        with TemporaryDirectory() as folder:
            saved = self.save(Path(folder) / "model", curve=curve, source_model=source_model)
            return upload(saved, repo_id, private=private, token=token, commit_message=commit_message)


def _read_moments(path: str | Path, encoder: FittedEncoder) -> Statistics | None:
    """Return the moments that were saved with a model; None where it was saved without them."""
    payload = read_extra_bytes(path, MOMENTS)
    if payload is None:
        return None
    stored, _ = arrays.from_bytes(payload, f"'{Path(path) / MOMENTS}'", "Save the model again.")
    found = Statistics.from_arrays(stored)
    if (found.n_features, found.moments.rows) != (encoder.p, encoder.record.rows):
        raise CorruptModelError(
            f"'{Path(path) / MOMENTS}' holds moments of {found.moments.rows:,} rows of {found.n_features} columns, and "
            f"the encoder was fitted on {encoder.record.rows} of {encoder.p}. Save the model again."
        )
    return found


# -- constructor parameters as JSON ---------------------------------------------------------------------------


def _check_width(value: object) -> None:
    named = value is None or (isinstance(value, str) and value == "rank")
    if not named and not is_share(value) and not (isinstance(value, int) and is_int(value) and value > 0):
        raise ValueError(f"{value!r} is no positive int")


def _instance_of(*kinds: type) -> Callable[[object], None]:
    def check(value: object) -> None:
        if not isinstance(value, kinds):
            raise TypeError(f"{value!r} is of type {type(value).__name__}")

    return check


def _network(name: str, settings: dict[str, Any]) -> MLP:
    network = {MLP.name: MLP}[name](**settings)
    network.check()
    return network


# How an object of each parameter is built again from its name and settings.
_BUILDERS: dict[str, Callable[[str, dict[str, Any]], object]] = {
    "objective": objectives.restore,
    "ordering": orderings.restore,
    "solver": solvers.restore,
    "network": _network,
}
# Checks of a value of each parameter that is no such object: a registered name, or a plain type.
_CHECKS: dict[str, Callable[[Any], object]] = {
    "n_components": _check_width,
    "objective": objectives.resolve,
    "ordering": orderings.resolve,
    "solver": solvers.resolve,
    "network": lambda name: {"linear": None, MLP.name: None}[name],
    "init": _instance_of(str),
    "device": _instance_of(str),
    "random_state": _instance_of(int, type(None)),
    "verbose": lambda value: check_verbose(value, "PrefixEncoder"),
}
_REGISTERED = {"objective": objectives.registered, "ordering": orderings.registered}
_REASONS = {
    "network": "a module is code; pass it to load(path, module=network)",
    "init": "an array is not kept: the encoder that it led to is",
    "random_state": "a generator is not kept: pass an int",
}


def saved_parameters(parameters: Mapping[str, Any]) -> SavedParameters:
    """Return parameters as JSON values, and why some cannot be."""
    given: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, value in parameters.items():
        try:
            plain = _to_json(name, value)
            _from_json(name, plain)  # what could not be restored is named, not saved
        except (KeyError, TypeError, ValueError, AttributeError):
            own = name in _REGISTERED and not _REGISTERED[name](value)
            reason = f"a class of your own is code; pass it to set_params({name}=...)" if own else _REASONS.get(name)
            left_out[name] = reason or "it cannot be said in JSON"
        else:
            given[name] = plain
    return SavedParameters(given, left_out)


def parameters_of(encoder: FittedEncoder, module: nn.Module | None = None) -> dict[str, Any]:
    """Return the constructor parameters that a saved encoder was made with, or that lead to one like it.

    Models saved by `FittedEncoder.save` hold no parameters; theirs are taken from the record of the fit, with
    everything "auto" settled.
    """
    record = encoder.record
    if record.parameters is None:
        found: dict[str, Any] = {"n_components": encoder.d, "network": _network_of(encoder)}
        if "objective" not in record.own_classes:
            found["objective"] = objectives.restore(record.objective, record.settings)
        if "ordering" not in record.own_classes:
            found["ordering"] = orderings.restore(record.ordering, record.ordering_settings)
    else:
        found = {name: _from_json(name, value) for name, value in record.parameters.given.items()}
    return found if module is None else found | {"network": module}


def _network_of(encoder: FittedEncoder) -> str | MLP:
    """Return the settings of a trained network, from its layers; the dropout of its training is not in them."""
    if not isinstance(encoder.network, TrainedMLP):
        return "linear"
    return MLP(hidden=tuple(len(W) for W in encoder.network.weights[:-1]), normalize=encoder.network.normalize)


def _to_json(name: str, value: Any) -> object:
    """Return a parameter as a JSON value: an object as its name and settings."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int, float)):
        return json.loads(json.dumps(value, allow_nan=False))
    if name == "device":
        return str(value)
    plain = {"name": value.name, "settings": settings_of(value)}
    plain = json.loads(json.dumps(plain, default=os.fspath, allow_nan=False))
    if type(_from_json(name, plain)) is not type(value):
        raise TypeError(f"{type(value).__name__} is a class of the user's own")
    return plain


def _from_json(name: str, plain: object) -> object:
    """Return the parameter that a JSON value stands for, raising for what no estimator could have been made with."""
    try:
        if isinstance(plain, dict):
            return _BUILDERS[name](plain["name"], plain["settings"])
        _CHECKS[name](plain)
    except FirstkError as error:
        raise ValueError(f"{name}: {error}") from None
    return plain
