"""A saved alignment as `transform_files` takes it: vectors of either model into the shared code or the other space."""

from __future__ import annotations

from pathlib import Path

from firstk._base.checks import check_choice
from firstk.alignment.fitted import FORMAT, FittedAlignment
from firstk.encoder.code_map import CodeMap
from firstk.encoder.storage.folder import CONFIG, read_manifest
from firstk.exceptions import InvalidInputError

SHARED, NEW, OLD = "shared", "new", "old"


def is_alignment(folder: str | Path) -> bool:
    """Tell whether a folder holds a saved alignment."""
    return (Path(folder) / CONFIG).is_file() and read_manifest(folder).format == FORMAT


def translation(alignment: FittedAlignment, side: str | None, into: str | None) -> CodeMap:
    """Return a map from vectors of one model.

    Parameters
    ----------
    alignment : FittedAlignment
    side : {"document", "query"}, optional
        Documents, the old model's vectors, or queries, the new one's; those that can go `into` a space, if not given.
    into : {"shared", "new", "old"}, optional
        The ordered shared code, the space of the new model (of old vectors) or that of the old one (of new vectors).
        The shared code if not given.
    """
    into = check_choice(into or SHARED, (SHARED, NEW, OLD), "into", "firstk transform")
    given = "query" if into == OLD else "document"
    side = check_choice(side or given, ("document", "query"), "side", "firstk transform")
    if into != SHARED and side != given:
        whose = "old" if into == NEW else "new"
        raise InvalidInputError(
            f"Only vectors of the {whose} model can be translated into the {into} space: leave out --side {side}, or "
            "--into for the shared code."
        )
    made_by, name = f"{alignment.fingerprint()} {into}", "An alignment"
    if into == NEW:
        return CodeMap(alignment.p, alignment.q, lambda X, k: alignment.old_to_new(X)[:, :k], made_by, name)
    if into == OLD:
        return CodeMap(alignment.q, alignment.p, lambda X, k: alignment.new_to_old(X)[:, :k], made_by, name)
    if side == "query":
        return CodeMap(alignment.q, alignment.d, alignment.encode_new, made_by, name, shared=True)
    return CodeMap(alignment.p, alignment.d, alignment.encode_old, made_by, name, shared=True)
