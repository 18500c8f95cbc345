"""`Result`: the outcome of a run with its summary, report, maps, tables and pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fieldbo._numerics.blas import one_blas_thread
from fieldbo._numerics.streams import stream
from fieldbo.agent.agent import Agent
from fieldbo.agent.stopping import final_verdict
from fieldbo.errors import UnknownNameError
from fieldbo.messages import EndReason, Observation, Query, Rejected
from fieldbo.mission.files import write_whole
from fieldbo.results import tables
from fieldbo.results.answers import OptimumAnswer
from fieldbo.results.curve import Step
from fieldbo.results.notes import notes_of
from fieldbo.results.outcome import Account, Outcome
from fieldbo.results.recommendation import best_plays
from fieldbo.results.report import Report, report, summary

if TYPE_CHECKING:
    import xarray

    from fieldbo.results.plot import ResultPlot

PICTURES = ("path", "map", "curve")
"""Names of the pictures of a run folder, without their extension."""


@dataclass(frozen=True, eq=False, repr=False)
class Result(Outcome):
    """The result of a run.

    `print` shows the report with which ``fieldbo run`` ends. The attributes are those of `Outcome`.

    Examples
    --------
    >>> import fieldbo
    >>> result = fieldbo.run(fieldbo.load_mission("lake-level-set", {"agent": {"battery": 300}}))
    >>> print(str(result).splitlines()[0])
    Battery spent after 9 sites.
    """

    @classmethod
    def of(cls, agent: Agent, curve: Sequence[Step] = (), reason: EndReason | str | None = None) -> Result:
        """Return the result of an agent's run so far, for example at the end of your own loop.

        Parameters
        ----------
        agent : Agent
        curve : sequence of Step
            One per settled order, as `Scorer.step` returns them.
        reason : EndReason or str, optional
            Why the run ended: an `EndReason`, or its value, such as ``"step limit"``.

        Raises
        ------
        UnknownNameError
            There is no such reason.
        """
        ended, stated = _end_reason(reason), agent.stated
        result = cls(
            mission=agent.mission,
            run=agent.run,
            end_reason=ended,
            curve=tuple(curve),
            queries=tuple(i.order for i in agent.issued.values() if isinstance(i.order, Query)),
            observations=tuple(e for e in agent.history if isinstance(e, Observation)),
            rejections=tuple(e for e in agent.history if isinstance(e, Rejected)),
            surface=stated.surface,
            scale=stated.scale,
            hyperparameters=agent.hyperparameters,
            cost=agent.spent,
            blinded=agent.blinded,
            notes=tuple(notes_of(agent, ended)),
            accounts=tuple(Account.of(agent, k) for k in range(len(agent.vehicles))),
            verdict=final_verdict(agent),
            commands=tuple(agent.commands),
            failures=agent.failures.so_far(),
        )
        if not agent.domain.control_sets or not isinstance(result.answer, OptimumAnswer):
            return result
        state = replace(agent.seen(), draw=partial(stream, agent.mission.seed, "score"))
        with one_blas_thread():
            return replace(result, best_plays=best_plays(state, result.answer.reported.point, stated))

    def report(self) -> Report:
        """Return the closing report: the answer, its scores, the cost, and notes."""
        return report(self)

    def __str__(self) -> str:
        return str(self.report())

    def __repr__(self) -> str:
        return f"<Result of {self.run}: {self.report().heading}>"

    def summary(self) -> dict[str, Any]:
        """Return the run in numbers, as in ``summary.json``; only the keys that apply to its question."""
        return summary(self)

    def maps(self) -> xarray.Dataset:
        """Return the final maps as a labelled data set, with CF names and units; see `results.maps`."""
        from fieldbo.results import maps

        return maps.of(self)

    def tables(self) -> dict[str, bytes]:
        """Return the CSV files of a run folder, by name: observations, path, curve and ledger."""
        return tables.of(self)

    def readings(self) -> tuple[list[str], list[list[Any]]]:
        """Return the header and rows of ``observations.csv``, one row per reading."""
        return tables.readings(self)

    @property
    def plot(self) -> ResultPlot:
        """Draw one panel each into your own figures; see `ResultPlot`.

        Examples
        --------
        >>> import fieldbo
        >>> from matplotlib.figure import Figure
        >>> result = fieldbo.run(fieldbo.load_mission("lake-level-set", {"agent": {"battery": 100}}))
        >>> ax = Figure().subplots()
        >>> sorted(result.plot.ledger(ax))
        ['battery', 'left', 'planned', 'spent']
        """
        from fieldbo.results.plot import ResultPlot

        return ResultPlot(self)

    def pictures(self, format: str = "png", width: str = "screen") -> dict[str, bytes]:
        """Return the pictures of a run folder, by name: path, map and curve.

        Parameters
        ----------
        format : {"png", "svg", "pdf"}
        width : {"screen", "column", "page"}
            Size for a screen, or for one column (89 mm) or both columns (183 mm) of a paper.

        Raises
        ------
        InputError
            There is no such format or width.
        """
        from fieldbo.results import plot

        drawn = {}
        plot.check(format, width)
        for name in PICTURES:
            file = io.BytesIO()
            plot.save(getattr(plot, f"{name}_picture")(self, width), file, format)
            drawn[f"{name}.{format}"] = file.getvalue()
        return drawn

    def save(self, folder: Path | str, format: str = "png", width: str = "screen") -> None:
        """Write summary, tables, maps and pictures into a folder; no file is ever left half-written.

        Writes ``summary.json``, ``observations.csv``, ``path.csv``, ``curve.csv``, ``ledger.csv``,
        ``map.nc``, ``path.png``, ``map.png`` and ``curve.png``.

        Parameters
        ----------
        folder : Path or str
        format : {"png", "svg", "pdf"}
            Of the pictures, and their extension.
        width : {"screen", "column", "page"}
            Size of the pictures, see `pictures`.
        """
        from fieldbo.results import maps, plot

        plot.check(format, width)  # before anything is written
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "summary.json", json.dumps(self.summary(), indent=2).encode() + b"\n")
        for name, content in self.tables().items():
            write_whole(folder / name, content)
        write_whole(folder / "map.nc", maps.labelled(self).file())
        for name, picture in self.pictures(format, width).items():
            write_whole(folder / name, picture)


def _end_reason(reason: str | None) -> EndReason | None:
    """Return the reason of that value."""
    try:
        return None if reason is None else EndReason(reason)
    except ValueError:
        raise UnknownNameError.of("end reason", reason, EndReason, where="reason") from None
