"""Sphinx configuration. ``make docs`` builds the site into build/docs, offline, with warnings as errors."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
os.environ.setdefault("MPLBACKEND", "agg")

import fieldbo

project = "fieldbo"
author = "The fieldbo developers"
copyright = author
version = release = fieldbo.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "reference_pages",
    "mathml",
    "offline",
]
exclude_patterns = ["_ext", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip", "gallery/*.json"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = True
# Single backticks in docstrings also name parameters.
nitpick_ignore_regex = [("py:(obj|mod)", r".*"), ("py:class", r"collections\..*")]
default_role = "py:obj"
highlight_language = "python"
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline", "fieldlist"]
myst_heading_anchors = 4
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = False  # reference_pages writes a page for every public object
autodoc_typehints = "none"  # numpydoc's Parameters have the types, with shapes and units
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "image_scrapers": ("gallery_figures",),
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r".",
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r"$^",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1,
    "reference_url": {"fieldbo": None},
    "doc_module": ("fieldbo",),
    "backreferences_dir": None,
    "inspect_global_variables": False,
    "write_computation_times": False,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "fieldbo"
html_static_path = ["_static"]
html_css_files = ["fieldbo.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
}
