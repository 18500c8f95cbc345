"""The files that ``fieldbo plan`` writes: their names, and what must not be replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fieldbo._numerics.arrays import Array
from fieldbo.errors import InputError, counted
from fieldbo.vehicles.mavlink.flight_plan import Waypoint
from fieldbo.vehicles.mavlink.geofence import GeoFence
from fieldbo.vehicles.mavlink.plan_files import fence_file, is_ours, plan_file, waypoint_file
from fieldbo.vehicles.mavlink.settings import MavlinkSettings

_PLAN, _TEXT = ".plan", ".waypoints"


@dataclass(frozen=True)
class PlanFiles:
    """The files of plans.

    Attributes
    ----------
    missions : tuple of Path
        One per battery; their names sort in the order of the batteries.
    fence : Path or None
        None if the files of the missions hold the fence.
    """

    missions: tuple[Path, ...]
    fence: Path | None

    @classmethod
    def of(cls, name: str, text: bool, out: Path | None, batteries: Sequence[int]) -> PlanFiles:
        """Return the files of plans for batteries.

        Parameters
        ----------
        name : str
            Of the mission or run.
        text : bool
            Whether the format is text, with the fence in a file of its own.
        out : Path or None
            The file that was asked for.
        batteries : sequence of int

        Raises
        ------
        InputError
            The format does not fit the file's name, or a file exists that fieldbo did not write.
        """
        file = out or Path(f"{name}{_TEXT if text else _PLAN}")
        if text and file.suffix == _PLAN:
            raise InputError(
                f"{file} is the name of a plan for QGroundControl, but the format is wpl",
                expected=f"a name such as {file.with_suffix(_TEXT)}",
                where="--out",
            )
        missions: tuple[Path, ...] = (file,)
        if len(batteries) > 1:
            digits = len(str(batteries[-1]))
            missions = tuple(_with(file, f"battery-{number:0{digits}d}") for number in batteries)
        files = cls(missions, _with(file, "fence") if text else None)
        for path in (*missions, *([] if files.fence is None else [files.fence])):
            _check_free(path)
        return files

    def write(
        self, routes: Sequence[Sequence[Waypoint]], fence: GeoFence, link: MavlinkSettings, home: Array
    ) -> None:
        """Write a route into each mission's file, and the fence.

        Raises
        ------
        InputError
            A file cannot be written.
        """
        text = plan_file if self.fence is None else waypoint_file
        for file, route in zip(self.missions, routes, strict=True):
            _write(file, text(route, fence, link, home))
        if self.fence is not None and fence.zones:
            _write(self.fence, fence_file(fence))

    def beside(self, fence: GeoFence) -> list[str]:
        """Return a line on the fence's own file, if it has one."""
        if self.fence is None:
            return []
        if not fence.zones:
            return ["there is no fence to write"]
        return [f"wrote the fence, with {counted(len(fence.zones), 'zone')}, to {self.fence}"]

    def doubts(self, link: MavlinkSettings) -> list[str]:
        """Return warnings about files of an earlier plan, and a format that misleads an autopilot."""
        kept = {*self.missions, self.fence}
        first = self.missions[0]
        others = first.parent.glob(f"{first.stem.rpartition('-')[0]}-*{first.suffix}")
        left = sorted(file for file in others if len(self.missions) > 1 and file not in kept)
        warnings = [f"{file} is left over from an earlier plan" for file in left]
        if self.fence is not None and link.firmware == "px4":
            warnings.append(
                "row 0 of the mission is the home, as ArduPilot expects; PX4 would go there first: use "
                "--format plan with QGroundControl, or --upload"
            )
        return warnings


def _with(file: Path, part: str) -> Path:
    return file.with_name(f"{file.stem}-{part}{file.suffix}")


def _check_free(file: Path) -> None:
    """Raise an `InputError` if a file exists that fieldbo did not write."""
    if not file.is_file():
        return
    try:
        ours = is_ours(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        ours = False
    if not ours:
        raise InputError(
            f"{file} exists, and is not a plan that fieldbo wrote",
            expected="a new file, or a plan of fieldbo to replace",
            where="--out",
            fix="choose another name with --out, or move the file away",
        )


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}", where="--out") from None
