"""Saving, loading and sharing an estimator: folders on disk, laid out as Hugging Face repositories are."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from firstk import objectives, orderings
from firstk.encoder.curve import PrefixCurve
from firstk.encoder.fitted import FittedEncoder
from firstk.encoder.storage.hub import local_folder, upload
from firstk.estimator import parameters as _parameters
from firstk.exceptions import CorruptModelError, FirstkError


class SavedModels:
    """Storage methods of an estimator that has an ``encoder_``."""

    def save(
        self,
        path: str | Path,
        *,
        curve: PrefixCurve | None = None,
        source_model: str | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Path:
        """Write the encoder into the folder `path`: config.json, model.safetensors and README.md, whole or not at all.

        Parameters
        ----------
        path : path
            A new or empty folder, or one that holds a firstk model, which is replaced.
        curve : PrefixCurve, optional
            Quality against k, kept with the model and shown on its card.
        source_model : str, optional
            Name of the model that made the vectors.
        extra : mapping of str, optional
            Texts of further files by name.
        """
        encoder: FittedEncoder = self.encoder_  # type: ignore[attr-defined]
        names = getattr(self, "feature_names_in_", None)
        config = dict(encoder.config) | {
            "feature_names": None if names is None else [str(name) for name in names],
            "parameters": _parameters.expressed(self.get_params(deep=False)),  # type: ignore[attr-defined]
        }
        return replace(encoder, config=config).save(path, curve=curve, source_model=source_model, extra=extra)

    @classmethod
    def load(cls, path: str | Path, module: Any = None) -> Self:
        """Read an encoder from a folder. Nothing is unpickled; a damaged or foreign folder gets a sentence.

        Parameters
        ----------
        path : path
        module : torch module, optional
            For an encoder fitted with a network of your own: a network of the same make, into which its state is read.
        """
        encoder = FittedEncoder.load(path, module)
        config = encoder.config
        try:
            own = {str(name): str(path) for name, path in config.get("own_classes", {}).items()}
            if "objective" not in own:
                objectives.restore(config["objective"], config["settings"])
            if "ordering" not in own:
                orderings.restore(config["ordering"], config["ordering_settings"])
            names = _column_names(config.get("feature_names"), encoder.p)
            _ = str(config["solver"]) + str(config["metric"])
            loaded = cls(**_parameters.restored(encoder, module))
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
        return loaded

    # -- Hugging Face ----------------------------------------------------------------------------------------

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        curve: PrefixCurve | None = None,
        source_model: str | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Path:
        """Do what ``save`` does, under the name that Hugging Face libraries use."""
        return self.save(save_directory, curve=curve, source_model=source_model, extra=extra)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        module: Any = None,
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
        return cls.load(folder, module)

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


def _column_names(names: Any, p: int) -> list[str] | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != p or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names must be {p} names")
    return names
