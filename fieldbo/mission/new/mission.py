"""Write a further mission for a world."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fieldbo._numerics.arrays import Array
from fieldbo.belief.question import LevelSet, Question, Side
from fieldbo.belief.value_scale import Transform
from fieldbo.errors import InputError
from fieldbo.mission.amounts import amount
from fieldbo.mission.default_policy import AUTO
from fieldbo.mission.files import name_of, toml_text, write_whole
from fieldbo.mission.load import load_mission
from fieldbo.mission.mission import Mission
from fieldbo.mission.new.aside import folder_aside
from fieldbo.mission.new.writer import four_digits, mission_text
from fieldbo.mission.world_file import load_world
from fieldbo.world.fields.table import TableField
from fieldbo.world.world import Quantity, World

_QUANTILES: dict[Side, float] = {"above": 0.7, "below": 0.3}
_MANY_ZEROS = 0.25  # of the readings, from which the default threshold is one of the others
_STOPS = 40  # of the default battery, besides a few crossings
_CROSSINGS = 5


class Threshold(NamedTuple):
    """A threshold in the unit of the value, and a note on how it was chosen."""

    value: float
    note: str = ""


@dataclass(frozen=True)
class LevelSetMission:
    """What a new mission asks, and with which battery.

    Parameters
    ----------
    threshold : float, optional
        In the unit of the value; by default, a quantile of the readings.
    side : {"above", "below"}
    quantile : float, optional
        Of the readings; by default 0.7, or 0.3 for the set below.
    battery : str or float, optional
        In the world's cost unit, or with a unit; by default, enough for 40 stops and a few crossings.
    """

    threshold: float | None = None
    side: Side = "above"
    quantile: float | None = None
    battery: str | float | None = None

    def check(self, transform: Transform = "none") -> None:
        """Raise an `InputError` if threshold or quantile is out of range, or both are given."""
        if self.threshold is not None and self.quantile is not None:
            raise InputError(
                "--threshold and --quantile were both given",
                expected="one of the two: the threshold, or a quantile of the readings as the threshold",
                where="--quantile",
            )
        if self.quantile is not None and not 0 < self.quantile < 1:
            raise InputError(
                f"quantile {self.quantile}", expected="a number between 0 and 1", where="--quantile"
            )
        least = 0.0 if transform == "log" else -np.inf
        if self.threshold is not None and not least < self.threshold < np.inf:
            raise InputError(
                f"threshold = {self.threshold}",
                expected="a finite number" + (" above 0, to have a log" if transform == "log" else ""),
                where="--threshold",
            )

    def threshold_of(self, values: Array) -> Threshold:
        """Return the threshold, given the readings (n,).

        By default it is a quantile of the readings; if many are 0, the median of those above 0.

        Raises
        ------
        InputError
            There are no readings, or all of them lie on the side of the quantile that was asked for.

        Examples
        --------
        >>> LevelSetMission().threshold_of(np.array([0.0, 0.0, 0.0, 0.4, 2.0, 3.0]))[0]
        2.0
        """
        if self.threshold is not None:
            return Threshold(self.threshold)
        if not len(values):
            raise InputError(
                "the threshold is missing, and there are no readings to take it from",
                expected="--threshold NUMBER",
                where="--threshold",
            )
        least, largest = float(values.min()), float(values.max())
        end, extreme = (least, "least") if self.side == "above" else (largest, "largest")
        if self.quantile is not None:
            threshold = float(np.quantile(values, self.quantile))
            if threshold == end and least < largest:
                raise InputError(
                    f"the quantile {self.quantile:g} is the {extreme} reading, {end:g}: every reading is at "
                    f"or {self.side} it",
                    expected=f"a quantile that some readings are not {self.side}",
                    where="--quantile",
                    fix=f"{np.mean(values == end):.0%} of the readings are {end:g}: choose another quantile, "
                    "or --threshold NUMBER",
                )
            return Threshold(threshold)
        share = float(np.mean(values == 0.0))
        if least == 0.0 < largest and share >= _MANY_ZEROS:
            threshold = float(np.median(values[values > 0.0]))
            return Threshold(
                threshold,
                f"{share:.0%} of the readings are 0: the threshold is the median of the others, "
                f"{threshold:.4g}; choose another with --threshold. A column of log(1 + value) as --value "
                "may suit such counts better",
            )
        threshold = float(np.quantile(values, _QUANTILES[self.side]))
        if threshold == end and least < largest:
            threshold = float(np.median(values[values != end]))
            return Threshold(
                threshold,
                f"{np.mean(values == end):.0%} of the readings are {end:g}, the {extreme}: the threshold is "
                f"the median of the others, {threshold:.4g}; choose another with --threshold",
            )
        return Threshold(threshold)

    def tables(
        self, name: str, threshold: float, battery: float, home: Any = None, spread: float = 0.0
    ) -> dict[str, Any]:
        """Return title, question, agent and policy of a mission about the quantity `name` of a spread."""
        side = {} if self.side == "above" else {"side": self.side}
        given = battery if self.battery is None else self.battery
        number = Quantity(spread=spread).number(threshold)
        return {
            "title": f"Where is {name} at or {self.side} {number}?",
            "question": {"kind": "level-set", "threshold": threshold, **side},
            "agent": {"battery": given, **({} if home is None else {"home": home})},
            "policy": {"kind": AUTO},
        }


def make_mission(
    name: str,
    world: str,
    asked: LevelSetMission,
    start: Any = None,
    folder: Path | None = None,
    *,
    fitted_model: bool = False,
) -> tuple[Path, Mission]:
    """Write ``missions/NAME.toml`` for a world, by default in the working directory.

    Parameters
    ----------
    name, world : str
    asked : LevelSetMission
    start : optional
        A place as mission files hold it; by default, the world's start. It is also the home.
    folder : Path, optional
    fitted_model : bool
        Whether the model begins with the fit of a world that is fitted to a table.

    Returns
    -------
    file : Path
    mission : Mission

    Raises
    ------
    InputError
        The mission exists, or does not fit the world. Nothing is written then.
    """
    name_of("mission", name)
    asked.check()
    file = (Path() if folder is None else folder) / "missions" / f"{name}.toml"
    if file.exists():
        raise InputError(
            f"{file} exists", expected="a new name: nothing is overwritten", fix="choose another name"
        )
    loaded = load_world(world)
    tables = _make_tables(loaded, asked, start)
    if isinstance(loaded.field, TableField):
        text = mission_text(tables, loaded.field, fitted_model=fitted_model)
    elif fitted_model:
        raise InputError(
            f"the world {world} is not fitted to a table",
            expected="--fitted-model with a world that fieldbo new world made",
            where="--fitted-model",
            fix="leave out --fitted-model",
        )
    else:
        text = toml_text(tables)
    with folder_aside(file.parent.parent) as aside:
        part = aside / file.name
        write_whole(part, text.encode())
        try:
            mission = load_mission(part)
        except InputError as error:
            raise InputError(error.problem, expected=error.expected, where="--world", fix=error.fix) from None
        file.parent.mkdir(exist_ok=True)
        part.replace(file)
    return file, mission


def _make_tables(world: World, asked: LevelSetMission, start: Any) -> dict[str, Any]:
    table = world.field if isinstance(world.field, TableField) else None
    if table is not None:
        threshold = asked.threshold_of(table.readings.values).value
    else:
        threshold = asked.threshold_of(np.empty(0) if world.live else world.truth(world.domain.sites)).value
    if asked.battery is not None:
        amount(asked.battery, world.cost_unit, "--battery")
    home = start_of(world) if start is None else start
    quantity = world.quantity
    tables = asked.tables(quantity.name, threshold, _estimate_battery(world), home, quantity.spread)
    title, begin = tables.pop("title"), {} if start is None else {"start": start}
    tables["agent"] = {**tables["agent"], **begin}
    return {"format": 1, "title": title, "world": world.name, "seed": 0, **tables}


def one_sided(question: Question, values: ArrayLike, quantity: Quantity) -> list[str]:
    """Return a note if all readings (n,) lie on the same side of a threshold; none otherwise."""
    if not isinstance(question, LevelSet) or not np.size(values):
        return []
    least, largest = float(np.min(values)), float(np.max(values))
    if least <= question.threshold <= largest:
        return []
    side, end = ("below", largest) if largest < question.threshold else ("above", least)
    return [
        f"every reading lies {side} the threshold of {quantity.amount(question.threshold)}; "
        f"the {'largest' if side == 'below' else 'least'} is {quantity.amount(end)}"
    ]


def start_of(world: World) -> Any:
    """Return the world's start as mission files hold it: in degrees if the world has a CRS."""
    start = np.asarray(world.start)
    if world.domain.georeference is None:
        return start.tolist()
    latitude, longitude = world.domain.georeference.degrees(start)[0].tolist()
    return {"latitude": round(latitude, 7), "longitude": round(longitude, 7)}


def _estimate_battery(world: World) -> float:
    """Return a battery for a few crossings of the world and about forty samples."""
    sites = world.domain.sites
    travel = world.cost.travel(np.asarray(world.start), sites)
    farthest = float(travel[np.isfinite(travel)].max(initial=0.0))
    return four_digits(_CROSSINGS * 2.0 * farthest + _STOPS * float(world.cost.sampling_cost(sites).mean()))
