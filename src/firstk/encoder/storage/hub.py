"""Download from and upload to the Hugging Face Hub.

Only the files that a model is made of are fetched, and they are read as any folder is: checked, never unpickled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from firstk._base.atomic_file import current
from firstk._base.checks import require
from firstk.encoder.storage.folder import CARD, CONFIG, TENSORS
from firstk.exceptions import InvalidInputError

_Answer = TypeVar("_Answer")
FILES = (CONFIG, TENSORS, CARD)
_OFFLINE = "Without a network, copy the folder of the model here and pass its path."
# "name" or "owner/name"; anything else that is not a folder is a path that does not exist.
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def local_folder(name_or_path: str | os.PathLike[str], **options: object) -> Path:
    """Return the folder that a path names, or into which a repository was downloaded.

    Parameters
    ----------
    name_or_path : path or str
    **options
        revision, cache_dir, token, local_files_only; of ``huggingface_hub.snapshot_download``.
    """
    try:
        path = current(Path(os.fspath(name_or_path)))
        if path.is_dir():
            return path
    except (TypeError, ValueError, OSError):
        raise InvalidInputError(
            f"from_pretrained takes a folder or the name of a repository. Got {name_or_path!r}."
        ) from None
    if not isinstance(name_or_path, str) or not _REPOSITORY.fullmatch(name_or_path):
        raise InvalidInputError(
            f"'{name_or_path}' is neither a folder nor the name of a repository such as 'someone/short-embeddings'."
        )
    hub = require("huggingface_hub", "hub", f"Loading '{name_or_path}', which is not a local folder,")
    where = f"Cannot load '{name_or_path}': there is no such folder here, and on the Hugging Face Hub"
    return Path(_asked(hub.snapshot_download, where, repo_id=name_or_path, allow_patterns=list(FILES), **options))


def upload(folder: Path, repo_id: str, *, private: bool | None, token: str | bool | None, commit_message: str) -> str:
    """Upload a saved model into a repository, made if it does not exist, and return its address."""
    hub = require("huggingface_hub", "hub", "Saving to the Hugging Face Hub")
    api, where = hub.HfApi(token=token), f"Cannot save to '{repo_id}': on the Hugging Face Hub"
    address = _asked(api.create_repo, where, repo_id=repo_id, private=private, exist_ok=True)
    _asked(api.upload_folder, where, repo_id=repo_id, folder_path=str(folder), commit_message=commit_message)
    return str(address)


def _asked(call: Callable[..., _Answer], where: str, **options: object) -> _Answer:
    """Call the hub; turn whatever fails there into an error message with a way out."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return call(**options)
    except HFValidationError as error:
        raise InvalidInputError(f"{where} a repository cannot have this name ({error}).") from None
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "an error")
        raise InvalidInputError(
            f"{where} the answer was {status}. Check the name and the revision; a private repository needs a token."
        ) from None
    except LocalEntryNotFoundError:
        raise InvalidInputError(
            f"{where} nothing can be reached; the cache does not hold it either. {_OFFLINE}"
        ) from None
    except Exception as error:  # the client's own kinds of failure differ between its versions
        raise InvalidInputError(f"{where} the request failed ({type(error).__name__}: {error}). {_OFFLINE}") from None
