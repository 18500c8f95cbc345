"""Sphinx configuration. ``make docs`` builds the site into build/docs, offline, with warnings as errors."""

import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
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
exclude_patterns = ["_ext", "_examples", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip", "gallery/*.json"]
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

# The gallery reads a copy of the scripts alone: it takes every folder with a README for a part of itself.
shutil.rmtree(HERE / "_examples", ignore_errors=True)
(HERE / "_examples").mkdir()
for script in [HERE.parent / "examples/README.txt", *(HERE.parent / "examples").glob("[0-9]*.py")]:
    shutil.copy2(script, HERE / "_examples")

sphinx_gallery_conf = {
    "image_scrapers": ("gallery_figures",),
    "examples_dirs": "_examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(0\d|10|13)_",  # the others need more than fieldbo
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
