"""Reports: curves of quality against k as one page to forward, or as a figure.

Everything here reads records only, so a page can be written anywhere, long after the encoder and its data are gone.
"""

from firstk.advice.report.figures import plot_curves
from firstk.advice.report.html import render_page, write_page
from firstk.advice.report.page import Page, Section
from firstk.advice.report.tradeoff import draw_tradeoff, plot_tradeoff

__all__ = ["Page", "Section", "draw_tradeoff", "plot_curves", "plot_tradeoff", "render_page", "write_page"]
