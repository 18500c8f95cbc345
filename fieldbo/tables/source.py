"""How a file of readings is opened: which of its tables and quantities, and with which track."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.tables.joining import GAP_S, join_track
from fieldbo.tables.opening import open_table, open_track
from fieldbo.tables.table import Table


@dataclass(frozen=True)
class Opening:
    """What a file of readings needs to be read besides its path.

    Parameters
    ----------
    quantity : str, optional
        Which quantity to read, of several in one column.
    layer : str, optional
        Which of several tables in a file: a layer, a sheet, a track or a kind of message.
    track : Path, optional
        A track with the positions of a log that has none.
    track_offset_s : float, optional
        Seconds to add to the times of the log, so that they are those of the track.
    track_gap_s : float
        The furthest that two fixes of the track may be apart, in seconds.
    """

    quantity: str | None = None
    layer: str | None = None
    track: Path | None = None
    track_offset_s: float | None = None
    track_gap_s: float = GAP_S

    def open(self, path: Path, time: str | None = None) -> Table:
        """Return the table in a file; `time` is the column by which it is joined with the track.

        Raises
        ------
        InputError
            A file can't be read, or an option does not fit it.
        """
        table = open_table(path, quantity=self.quantity, layer=self.layer)
        if self.track is not None:
            column = None if time is None else table.column(time, "--time")
            return join_track(
                table,
                open_track(self.track),
                time=column,
                offset_s=self.track_offset_s,
                gap_s=self.track_gap_s,
            )
        if self.track_offset_s is not None:
            raise InputError(
                "--track-offset was given without a track",
                expected="--track FILE",
                where="--track-offset",
                fix="add the file of the track, or leave the offset out",
            )
        return table
