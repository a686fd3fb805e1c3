"""The documentation site: ``make docs`` writes it to docs/_build/html, without network and with warnings as errors.

Pages are the Markdown files of this folder; the reference comes from docstrings; the gallery runs ``examples/``.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from sphinx.ext.autodoc.mock import mock  # noqa: E402

import firstk  # noqa: E402
from architecture_figure import drawing  # noqa: E402
from search_page import write_search_page  # noqa: E402
from site_text import write_api_pages, write_summaries  # noqa: E402

write_api_pages(HERE / "api")
(HERE / "api" / "architecture.svg").write_text(drawing(), "utf-8")

project = "firstk"
author = "The firstk developers"
project_copyright = "the firstk developers"
version = release = firstk.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
templates_path = ["_templates"]
root_doc = "index"

# Markdown.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure", "config.cache"]

# Reference.
autosummary_generate = True
autodoc_member_order = "groupwise"
# Docstrings are read where the packages of extras are missing, too.
EXTRAS = ("torch", "numba", "sentence_transformers", "datasets", "transformers", "faiss", "qdrant_client", "mteb")
autodoc_mock_imports = [name for name in EXTRAS if find_spec(name) is None]
autodoc_typehints = "none"  # numpydoc's sections name the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_validation_checks: set[str] = set()

# Examples run while the site is built; what lacks data says so on its page.
# A server of an example puts its socket here, and would print a warning on the page without it.
os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d\d_",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("firstk",),
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # its page would load scripts from elsewhere
    "plot_gallery": "True",
    "image_scrapers": ("matplotlib",),
    "capture_repr": (),
    "thumbnail_size": (400, 280),
}

# The site.
html_theme = "pydata_sphinx_theme"
html_title = "firstk"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "faq": [], "compared-with": []}


def skip_what_others_document(app, what, name, obj, skip, options):
    """Leave out members that come from scikit-learn or torch: their docstrings refer to pages of their own."""
    return True if (getattr(obj, "__module__", None) or "").startswith(("sklearn", "torch")) else None


def write_beside_pages(app, error) -> None:
    """Write llms.txt, the reference in one file, and the pages of ``firstk demo`` and of a search."""
    from firstk.cli import demo

    if error is None and app.builder.name == "html":
        with mock(autodoc_mock_imports):
            write_summaries(Path(app.outdir))
        write_search_page(Path(app.outdir) / "search-page")
        with contextlib.redirect_stdout(io.StringIO()):
            demo.run(Path(app.outdir) / "demo", quiet=True)


def setup(app) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("autodoc-skip-member", skip_what_others_document)
    app.connect("build-finished", write_beside_pages)
