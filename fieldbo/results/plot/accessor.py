"""``result.plot``: pictures of a run, one panel each, in your own figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fieldbo.results.plot.curves import curve_panel
from fieldbo.results.plot.ledgers import ledger_panel, readings_panel
from fieldbo.results.plot.maps import map_panel
from fieldbo.results.plot.paths import path_panel

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

    from fieldbo.results.outcome import Outcome


class ResultPlot:
    """Draw one panel of a run into axes of yours, and return the artists by name.

    Every method takes ``ax``, and passes its other arguments on to the function that it names. Without
    axes, it makes a new figure with pyplot, as geopandas does: notebooks show it, and ``plt.savefig`` saves
    it. Axes that are given are never cleared, so panels can be drawn over each other.

    Panels follow the style in force: sizes of letters, lines and marks, the colour map of values, the colour
    cycle of lines, and the colours of background and ink. Draw and save a figure in the same style.

    Parameters
    ----------
    outcome : Outcome
        For example a `Result`.

    Examples
    --------
    >>> import fieldbo
    >>> from matplotlib.figure import Figure
    >>> result = fieldbo.run(fieldbo.load_mission("lake-level-set", {"agent": {"battery": 100}}))
    >>> left, right = Figure(layout="constrained").subplots(1, 2)
    >>> artists = result.plot.map("sd", ax=left, cmap="cividis")
    >>> artists["field"].colorbar.ax.get_ylabel()
    'chlorophyll (mg m-3)'
    >>> sorted(result.plot.curve(ax=right, scores="f1", label="tour"))
    ['f1']
    """

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def path(self, ax: Axes | None = None, **look: Any) -> dict[str, Artist]:
        """Draw the path and the readings over the field; see `path_panel`.

        Parameters
        ----------
        ax : Axes, optional
        **look
            ``color`` and ``linewidth`` of the path, ``cmap`` of the field, ``colorbar`` and ``numbered``.
        """
        return path_panel(_axes(ax), self._outcome, **look)

    def map(self, layer: str = "mean", ax: Axes | None = None, **look: Any) -> dict[str, Artist]:
        """Draw one layer of the maps; see `map_panel`.

        Parameters
        ----------
        layer : {"mean", "sd", "probability", "classes", "bound", "truth", "error"}
        ax : Axes, optional
        **look
            ``cmap``, ``vmin``, ``vmax`` and ``colorbar``.

        Raises
        ------
        InputError
            There is no such layer, or the run has none.
        """
        return map_panel(_axes(ax), self._outcome, layer, **look)

    def curve(
        self, ax: Axes | None = None, scores: Sequence[str] | str | None = None, **look: Any
    ) -> dict[str, Artist]:
        """Draw scores against cost; see `curve_panel`.

        Parameters
        ----------
        ax : Axes, optional
        scores : str or sequence of str, optional
            By default all that apply.
        **look
            ``label`` of the run, ``color`` and ``linewidth``.

        Raises
        ------
        UnknownNameError
            The run has no such score.
        """
        return curve_panel(_axes(ax), self._outcome, scores, **look)

    def ledger(
        self, ax: Axes | None = None, view: str = "total", **look: Any
    ) -> dict[str, Artist | BarContainer]:
        """Draw planned against real costs; see `ledger_panel`.

        Parameters
        ----------
        ax : Axes, optional
        view : {"total", "orders"}
        **look
            ``color`` and ``linewidth``.

        Raises
        ------
        UnknownNameError
            There is no such view.
        """
        return ledger_panel(_axes(ax), self._outcome, view, **look)

    def readings(self, ax: Axes | None = None, **look: Any) -> dict[str, Artist]:
        """Draw the values of the readings in order, with their noise; see `readings_panel`.

        Parameters
        ----------
        ax : Axes, optional
        **look
            ``color`` and ``linewidth`` of the noise.
        """
        return readings_panel(_axes(ax), self._outcome, **look)


def _axes(ax: Axes | None) -> Axes:
    """Return the axes, by default those of a new figure of pyplot."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.figure(layout="constrained").add_subplot()
