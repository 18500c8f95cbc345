"""Show the figures that an example's global variables hold, since fieldbo draws without pyplot."""

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from fieldbo.results.plot import save


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Write the figures that a block has drawn, and return how to show them."""
    shown = block_vars.setdefault("shown_figures", [])
    names = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure) and not any(value is figure for figure in shown):
            shown.append(value)
            names.append(str(next(block_vars["image_path_iterator"])))
            save(value, names[-1])
    return figure_rst(names, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    return scrape
