"""Reports: curves of quality against k as one page to forward, or as a figure.

Everything here reads records only, so a page can be written anywhere, long after the encoder and its data are gone.
"""

from firstk.advice.report.byte_chart import draw_tradeoff
from firstk.advice.report.figures import plot_curves, plot_tradeoff
from firstk.advice.report.page import Page, Section
from firstk.advice.report.page_html import render_page, write_page
from firstk.advice.report.sections import curve_section, storage_section

__all__ = [
    "Page",
    "Section",
    "curve_section",
    "draw_tradeoff",
    "plot_curves",
    "plot_tradeoff",
    "render_page",
    "storage_section",
    "write_page",
]
