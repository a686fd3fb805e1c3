"""A saved alignment: what is in its folder, and maps from vectors of either model as `transform_files` takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from firstk._base.checks import check_choice
from firstk._base.json_records import to_plain
from firstk.advice.upgrade.records import FILE, UpgradeReport
from firstk.advice.upgrade.verdict import verdict_of
from firstk.alignment.fitted import FORMAT, FittedAlignment
from firstk.encoder.code_map import CodeMap
from firstk.encoder.storage.folder import CONFIG, read_extra, read_manifest
from firstk.exceptions import InvalidInputError

SHARED, NEW, OLD = "shared", "new", "old"


def is_alignment(folder: str | Path) -> bool:
    """Tell whether a folder holds a saved alignment."""
    return (Path(folder) / CONFIG).is_file() and read_manifest(folder, None).format == FORMAT


def alignment_facts(folder: str | Path) -> dict[str, Any]:
    """Return what is in the folder of an alignment, for JSON: its maps, how it was fitted, and the verdict on it."""
    alignment = FittedAlignment.load(folder)
    record = read_extra(folder, FILE)
    report = None if record is None else UpgradeReport.from_json(record)
    return {
        "alignment": str(folder),
        "old_width": alignment.p,
        "new_width": alignment.q,
        "components": alignment.d,
        "method": alignment.config.get("method"),
        "settings": alignment.config.get("settings"),
        "pairs": alignment.config.get("pairs"),
        "fingerprint": alignment.fingerprint(),
        "verdict": None if report is None else list(verdict_of(report).lines),
        "report": None if report is None else to_plain(report),
    }


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
