"""A file that is written whole or not at all: under a draft's name beside it, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from firstk._checks import InvalidInput


@contextlib.contextmanager
def whole_file(path: str | Path, what: str) -> Iterator[Path]:
    """Yield a draft to write; it takes the place of `path` when the block ends well, and goes away when it does not.

    Parameters
    ----------
    path : path-like
        The file to write; its folder is made where it is missing, an existing file is replaced.
    what : str
        What the sentence of an error calls the file, such as "An ONNX model".
    """
    target = Path(path).resolve()  # a link stays a link: what it points to is replaced
    if target.is_dir():
        raise InvalidInput(f"{what} is a file, and '{path}' is a folder. Name a file in it.")
    # In the same folder, because only there is a rename one step.
    draft = target.parent / f".firstk-{secrets.token_hex(6)}.tmp"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        os.replace(draft, target)
    except OSError as error:
        raise InvalidInput(
            f"Cannot write '{path}': {error.strerror or error}. Choose another place; nothing was changed there."
        ) from None
    finally:
        with contextlib.suppress(OSError):  # what kept the draft from being written was said already
            draft.unlink(missing_ok=True)
