"""Reports: curves of quality against k as one page to forward, or as a figure.

Everything here reads records only, so a page can be written anywhere, long after the encoder and its data are gone.
"""

from firstk.report.figures import plot_curves
from firstk.report.html import render_page, write_page
from firstk.report.page import Page, Section

__all__ = ["Page", "Section", "plot_curves", "render_page", "write_page"]
