"""The figure of a diagnosis: how variance and what a task needs of it build up along the principal axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firstk._base.atomic_file import atomic_file
from firstk._base.checks import require
from firstk.encoder.curve import PrefixCurve
from firstk.evaluation.report.figures import plot_curves
from firstk.exceptions import InvalidInputError

FORMATS = (".svg", ".png", ".pdf")


def check_figure(path: Path) -> None:
    """Raise for a figure that cannot be written, before long work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidInputError(f"A figure ends in {', '.join(FORMATS)}. Got '{path}'.")
    require("matplotlib.figure", "report", "A figure")
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(f"Cannot write a figure to '{path}'. Choose a file in a folder that exists.")


def plot_spectrum(spectrum: PrefixCurve, alignment: Sequence[PrefixCurve] = ()) -> Any:
    """Draw the share of variance against k and, next to it, alignment(k) in the forms given.

    Parameters
    ----------
    spectrum : PrefixCurve
        Share of variance that the first k axes hold.
    alignment : sequence of PrefixCurve
        Forms of alignment(k), the leading one first; none without labels.

    Returns
    -------
    figure : matplotlib figure
    """
    figure_module = require("matplotlib.figure", "report", "plot_spectrum")
    panels = [([spectrum], ())] + ([(list(alignment[:1]), tuple(alignment[1:]))] if alignment else [])
    figure = figure_module.Figure(figsize=(6.4 * len(panels), 3.8), layout="constrained")
    for ax, (ours, others) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        ax.set_ylim(0, 1.02)
        plot_curves(ours, others, ax=ax)
    return figure


def write_figure(path: Path, spectrum: PrefixCurve | None, alignment: Sequence[PrefixCurve] = ()) -> Path:
    """Write the figure by an atomic write; its ending is its format."""
    check_figure(path)
    if spectrum is None:
        raise InvalidInputError("There is no spectrum to draw: the vectors do not vary.")
    with atomic_file(path, "A figure") as temporary:
        plot_spectrum(spectrum, alignment).savefig(temporary, format=path.suffix.lower()[1:], dpi=150)
    return path
