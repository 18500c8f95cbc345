"""Files that hold tables but are not plain text: a module each, with ``read(path, layer) -> Table``."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.tables.containers.unreadable import refuse_unreadable
from fieldbo.tables.table import Table

_HEAD = 4096
_BLANK = b"\xef\xbb\xbf \r\n\t"
_SQLITE, _ZIP, _GZIP = b"SQLite format 3\0", b"PK\x03\x04", b"\x1f\x8b"
_NMEA = re.compile(rb"[^\r\n$!]{0,80}[$!][A-Z][A-Z0-9]{3,9},[^\r\n]*")
_TLOG = {0xFE: 6, 0xFD: 10}  # bytes of a MAVLink header by the mark at its beginning


@dataclass(frozen=True)
class Container:
    """A format, recognised by the first bytes of a file and its suffix.

    Attributes
    ----------
    name : str
        What the format is called in messages.
    fits : callable
        Whether a file has this format, from its first bytes and its suffix in lower case.
    module : str
        Module in this package with ``read(path, layer) -> Table``; imported when it is needed. If it has
        ``read_track(path, layer)``, too, that gives the positions alone.
    like_text : bool
        Whether it may hold several quantities in one column, as text may; `read` takes one, too.
    largest : int
        Bytes of a file that are read at most.
    """

    name: str
    fits: Callable[[bytes, str], bool]
    module: str
    like_text: bool = False
    largest: int = 100_000_000

    def read(self, path: Path, layer: str | None = None, quantity: str | None = None) -> Table:
        """Return the table in a file of this format.

        Parameters
        ----------
        path : Path
        layer : str, optional
            Which of several tables: a layer, a sheet, a track or a kind of message.
        quantity : str, optional
            Which of several quantities in one column.

        Raises
        ------
        InputError
            The file is damaged, or it holds no readings; or it holds several tables, and none is named.
        """
        self._check_size(path)
        read = import_module(f"{__name__}.{self.module}").read
        if quantity is not None and not self.like_text:
            raise InputError(
                f"quantity is {quantity!r}, but {path.name} is no table of text",
                expected="a table with several quantities in one column",
                where="--quantity",
                fix="leave --quantity out, and name a column with --value",
            )
        with self._damage_named(path):
            table: Table = read(path, layer, quantity) if self.like_text else read(path, layer)
        return table

    def read_track(self, path: Path, layer: str | None = None) -> Table:
        """Return the positions in a file of this format, as `read` does where it has no others.

        Raises
        ------
        InputError
            As `read` does.
        """
        self._check_size(path)
        module = import_module(f"{__name__}.{self.module}")
        with self._damage_named(path):
            track: Table = getattr(module, "read_track", module.read)(path, layer)
        return track

    @contextmanager
    def _damage_named(self, path: Path) -> Iterator[None]:
        """Turn what no reader expects of a damaged file into an `InputError`."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{path.name} is damaged, or of a form that fieldbo can't read: {type(error).__name__}",
                expected=f"a whole file of the kind {self.name}",
                where=str(path),
                fix="copy it from the instrument again, or export it anew",
            ) from error

    def _check_size(self, path: Path) -> None:
        size = path.stat().st_size
        if size > self.largest:
            raise InputError(
                f"{path.name} has {size / 1e6:,.0f} MB",
                expected=f"at most {self.largest / 1e6:,.0f} MB of {self.name}",
                where=str(path),
                fix="give a part of it, or a mean per second",
            )


def _is_geopackage(head: bytes, suffix: str) -> bool:
    return head.startswith(_SQLITE) and (head[68:70] == b"GP" or suffix == ".gpkg")


def _is_nmea(head: bytes, suffix: str) -> bool:
    """Return whether most of the first lines are sentences of NMEA 0183, perhaps behind a logger's time."""
    lines = [line for line in head.split(b"\n")[:-1] or [head] if line.strip()][:40]
    return bool(lines) and 2 * sum(_NMEA.match(line) is not None for line in lines) > len(lines)


def _is_dataflash(head: bytes, suffix: str) -> bool:
    return head.startswith((b"\xa3\x95\x80", b"FMT, 128,"))


def _is_tlog(head: bytes, suffix: str) -> bool:
    """Return whether a file begins with a time in microseconds and a MAVLink packet."""
    if suffix not in (".tlog", ".rlog") and not 1e15 < int.from_bytes(head[:8], "big") < 4.2e15:
        return False
    return len(head) > 20 and head[8] in _TLOG


def _is_geojson(head: bytes, suffix: str) -> bool:
    start = head.lstrip(_BLANK)
    named = re.search(rb'"type"\s*:\s*"(FeatureCollection|Feature|Point|MultiPoint)"', head)
    return start.startswith(b"{") and (suffix == ".geojson" or named is not None)


def _is_xml(root: bytes) -> Callable[[bytes, str], bool]:
    tag = re.compile(rb"<(\w+:)?" + root + rb"[\s>]")
    return lambda head, _: head.lstrip(_BLANK).startswith(b"<") and tag.search(head) is not None


def _is_vector(head: bytes, suffix: str) -> bool:
    return head.startswith((b"\x00\x00\x27\x0a", b"fgb\x03"))


def _is_netcdf(head: bytes, suffix: str) -> bool:
    return head.startswith((b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF\r\n\x1a\n"))


def _is_workbook(head: bytes, suffix: str) -> bool:
    return head.startswith(_ZIP) and suffix in (".xlsx", ".xlsm", ".xltx", ".xltm")


_LARGE = 1_000_000_000  # bytes of formats that don't hold texts

CONTAINERS: tuple[Container, ...] = (
    Container("GeoPackage", _is_geopackage, "vector", largest=_LARGE),
    Container("RBR log", lambda head, _: head.startswith(_SQLITE), "rsk", largest=_LARGE),
    Container("Excel workbook", _is_workbook, "xlsx", like_text=True),
    Container("NetCDF", _is_netcdf, "netcdf", largest=_LARGE),
    Container("PX4 log", lambda head, _: head.startswith(b"ULog\x01\x12\x35"), "px4", largest=_LARGE),
    Container("ArduPilot log", _is_dataflash, "ardupilot", largest=_LARGE),
    Container("MAVLink log", _is_tlog, "tlog"),
    Container("GPX", _is_xml(b"gpx"), "gpx"),
    Container("KML", _is_xml(b"kml"), "kml"),
    Container("GeoJSON", _is_geojson, "geojson"),
    Container("vector layer", _is_vector, "vector", largest=_LARGE),
    Container("NMEA 0183", _is_nmea, "nmea"),
)


def container_of(path: Path) -> Container | None:
    """Return the format of a file; None if it is text, or can't be opened.

    Raises
    ------
    InputError
        The file is of a known kind that is not read: the error says what it is and what to export.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    suffix = path.suffix.lower()
    found = _find(head, suffix)
    if found is None and head.startswith(_GZIP):
        _refuse_compressed(path)
    elif found is None:
        refuse_unreadable(path, head)
    return found


def _find(head: bytes, suffix: str) -> Container | None:
    return next((each for each in CONTAINERS if each.fits(head, suffix)), None)


def _refuse_compressed(path: Path) -> None:
    """Raise an `InputError` if a file is a compressed container; text is read even so."""
    try:
        with gzip.open(path) as file:
            inside = _find(file.read(_HEAD), Path(path.stem).suffix.lower())
    except (OSError, EOFError, zlib.error):
        return
    if inside is not None:
        raise InputError(
            f"{path.name} is a file of the kind {inside.name}, compressed with gzip",
            expected="the file itself",
            where=str(path),
            fix="unpack it with gunzip, and give the file in it",
        )
