"""Binary files that are not read: what each of them is, and what to export instead."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fieldbo.errors import InputError
from fieldbo.tables.decoding import TEXTS, files_in

_CSV = "export it as CSV from the program that wrote it"
_SOUNDINGS = "export the soundings as text with latitude, longitude and depth from the survey program"


@dataclass(frozen=True)
class Unreadable:
    """A kind of file that fieldbo does not read.

    Attributes
    ----------
    name : str
        What it is, with its article.
    fits : callable
        Whether a file is one, from its first bytes and its suffix in lower case.
    fix : str
        What to give instead.
    """

    name: str
    fits: Callable[[bytes, str], bool]
    fix: str = _CSV


def _begins(*magic: bytes) -> Callable[[bytes, str], bool]:
    return lambda head, _: head.startswith(magic)


def _has(magic: bytes, at: int, *suffixes: str) -> Callable[[bytes, str], bool]:
    return lambda head, suffix: head[at : at + len(magic)] == magic and (not suffixes or suffix in suffixes)


def _ends(*suffixes: str) -> Callable[[bytes, str], bool]:
    """Return a test by suffix, of files that are not text: with control characters among the first bytes."""
    return lambda head, suffix: suffix in suffixes and _is_binary(head)


def _is_binary(head: bytes) -> bool:
    return b"\0" in head[:512] and not head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _is_lowrance(head: bytes, suffix: str) -> bool:
    if len(head) < 8 or suffix not in (".sl2", ".sl3", ".slg"):
        return False
    return struct.unpack("<H", head[:2])[0] in (1, 2, 3)


def _is_mapinfo(head: bytes) -> bool:
    return head.lstrip().lower().startswith((b"!table", b"version"))


def _is_segy(head: bytes, suffix: str) -> bool:
    text = head[:3200]
    card = text.startswith((b"C 1", b"C01", "C 1".encode("cp500"), "C01".encode("cp500")))
    return (len(head) >= 3200 and card) or suffix in (".sgy", ".segy")


KINDS: tuple[Unreadable, ...] = (
    Unreadable("a MATLAB file", lambda head, suffix: head.startswith(b"MATLAB ") or (
        suffix == ".mat" and _is_binary(head)), "write it with writetable(T, 'readings.csv') in MATLAB"),
    Unreadable(
        "an old Excel workbook (.xls), or another Office file of before 2007",
        _begins(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
        "save it as .xlsx or as CSV (UTF-8)",
    ),
    Unreadable(
        "a binary Campbell file",
        _begins(b'"TOB1"', b'"TOB2"', b'"TOB3"'),
        "convert it to TOA5 with CardConvert in LoggerNet",
    ),
    Unreadable(
        "an Onset HOBO file (.hobo, .dtf)", _ends(".hobo", ".dtf"), "export it as CSV from HOBOware"
    ),
    Unreadable("an In-Situ log (.wsl)", _ends(".wsl"),
               "export it as CSV from Win-Situ, or as HTML from VuSitu"),
    Unreadable("a PDF document", _begins(b"%PDF"), "export the readings as CSV; a page can't be read"),
    Unreadable("a picture, sound or film", lambda head, _: head.startswith(
        (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM6", b"RIFF")), "export the readings themselves"),
    Unreadable(
        "a raster (TIFF)",
        _begins(b"II*\0", b"MM\0*", b"II+\0"),
        "give readings at points; a raster of depths belongs to --bathymetry",
    ),
    Unreadable(
        "a Garmin activity (.fit)", _has(b".FIT", 8), "export it as GPX from Garmin Connect, or with gpsbabel"
    ),
    Unreadable(
        "a Lowrance or Simrad sonar log (.sl2, .sl3)",
        _is_lowrance,
        "export it as CSV, with SonarTRX, ReefMaster or another program that reads sonar logs",
    ),
    Unreadable(
        "a Garmin sonar log (.rsd)",
        _ends(".rsd"),
        "export it as CSV, with SonarTRX, ReefMaster or another program that reads sonar logs",
    ),
    Unreadable("a Humminbird sonar log (.dat, .son)", _ends(".son", ".idx"),
               "export it as CSV, with SonarTRX, ReefMaster or PINGMapper"),
    Unreadable("seismic or sub-bottom traces (SEG-Y)", _is_segy, "export what was picked from them as CSV"),
    Unreadable(
        "a Simrad echo sounder log (.raw)",
        lambda head, _: head[4:8] in (b"CON0", b"XML0", b"CON1", b"FIL1"),
        "export the depths as CSV, for example from Echoview, ESP3 or echopype",
    ),
    Unreadable("a Kongsberg multibeam log (.kmall)", _has(b"#", 4, ".kmall", ".kmwcd"), _SOUNDINGS),
    Unreadable("a Kongsberg multibeam log (.all)", lambda head, suffix: suffix in (".all", ".wcd")
               and head[4:5] == b"\x02", _SOUNDINGS),
    Unreadable("a Reson or Teledyne sonar log (.s7k)", _ends(".s7k", ".7k"), _SOUNDINGS),
    Unreadable("a side-scan sonar log (.xtf, .jsf)", _ends(".xtf", ".jsf"), _SOUNDINGS),
    Unreadable("an ADCP's raw data", lambda head, _: head.startswith((b"\x7f\x7f", b"\xa5\x0a", b"\xa5\x05")),
               "export it as text or NetCDF from the maker's program"),
    Unreadable(
        "a log of ROS 1 (rosbag)", _begins(b"#ROSBAG"), "write it as CSV: rostopic echo -b FILE -p TOPIC"
    ),
    Unreadable("a log for Foxglove (MCAP)", _begins(b"\x89MCAP0"), "write the topic as CSV"),
    Unreadable("a Parquet file", _begins(b"PAR1"), "write it as CSV: pandas.read_parquet(FILE).to_csv(...)"),
    Unreadable("an Arrow or Feather file", _begins(b"ARROW1"),
               "write it with pandas: read_feather(FILE).to_csv('x.csv')"),
    Unreadable("a NumPy array", _begins(b"\x93NUMPY"), "write it as CSV with the names of its columns"),
    Unreadable("an R object (.rds, .RData)", lambda head, suffix: suffix in (".rds", ".rdata", ".rda")
               or head.startswith((b"RDX2", b"RDX3")), "write it with write.csv(x, 'readings.csv') in R"),
    Unreadable("a Python pickle", lambda head, suffix: suffix in (".pkl", ".pickle") and _is_binary(head),
               "write it as CSV; a pickle can run programs, so it is never opened"),
    Unreadable("an Access database", lambda head, _: head[4:19] in (b"Standard Jet DB", b"Standard ACE DB"),
               "export the table as CSV"),
    Unreadable("a GRIB file", _begins(b"GRIB"), "give readings at points"),
    Unreadable("a 7-Zip archive", _begins(b"7z\xbc\xaf\x27\x1c"), "unpack it, and give the file in it"),
    Unreadable("a RAR archive", _begins(b"Rar!"), "unpack it, and give the file in it"),
    Unreadable("a bzip2 or xz archive", _begins(b"BZh", b"\xfd7zXZ"), "unpack it, and give the file in it"),
    Unreadable(
        "a MapInfo layer, which writes 0 where there is no value",
        lambda head, suffix: suffix in (".tab", ".mif") and _is_mapinfo(head),
        "export it as GeoPackage in a GIS, and look at the zeros",
    ),
    Unreadable("a part of a shapefile", lambda head, suffix: suffix in (".shx", ".dbf", ".prj", ".qix"),
               "give the .shp file beside it"),
)  # fmt: skip


def refuse_unreadable(path: Path, head: bytes) -> None:
    """Raise an `InputError` that says what a file is, if it is known and not read."""
    suffix = path.suffix.lower()
    if head.startswith(b"PK\x03\x04"):
        if (error := _describe_archive(path)) is not None:
            raise error
        return
    for kind in KINDS:
        if kind.fits(head, suffix):
            raise _refuse(path, kind.name, kind.fix)


def _describe_archive(path: Path) -> InputError | None:
    """Return the error for a ZIP archive, which programs use for files of their own; None if of text."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            mark = archive.read("mimetype") if "mimetype" in names else b""
    except Exception:  # zipfile raises nearly anything for damaged files, ValueError and struct.error too
        return InputError(
            f"{path.name} is a ZIP archive, or a workbook, that is damaged or cut off",
            expected="a whole file",
            where=str(path),
            fix="copy it again",
        )
    files = files_in(names)
    if len(files) == 1 and files[0].lower().endswith(TEXTS):
        return None
    some = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
    what, fix = f"a ZIP archive of {some or 'nothing'}", "unpack it, and give the file in it"
    if path.suffix.lower() == ".kmz" or "doc.kml" in names:
        what, fix = "a zipped KML (.kmz)", "unpack it, and give the .kml file in it"
    elif b"opendocument.spreadsheet" in mark:
        what, fix = "a LibreOffice spreadsheet (.ods)", "save it as .xlsx or as CSV (UTF-8)"
    elif any(name.startswith("word/") for name in names):
        what, fix = "a Word document", "save its table as CSV"
    elif any(name.endswith(".npy") for name in names):
        what, fix = "a NumPy archive", "write it as CSV with the names of its columns"
    return _refuse(path, what, fix)


def _refuse(path: Path, what: str, fix: str) -> InputError:
    return InputError(
        f"{path.name} is {what}, which fieldbo does not read",
        expected="a table of readings: CSV, a maker's text export, .xlsx, .rsk, NetCDF, GPX, NMEA, "
        "GeoPackage, GeoJSON, or an autopilot's log",
        where=str(path),
        fix=fix,
    )
