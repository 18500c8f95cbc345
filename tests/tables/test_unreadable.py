"""Files that are not read: the error says what each is, and what to export."""

from __future__ import annotations

import gzip
import io
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fieldbo.errors import InputError
from fieldbo.tables.containers import CONTAINERS, container_of
from fieldbo.tables.opening import open_table, open_track


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def archive(*names, **contents):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name in names:
            file.writestr(name, "x")
        for name, text in contents.items():
            file.writestr(name, text)
    return content.getvalue()


FILES = {
    "log.mat": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64" + bytes(100), "a MATLAB file"),
    "new.mat": (b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(100), "a MATLAB file"),
    "log.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "an old Excel workbook"),
    "boat.dat": (b'"TOB1","CR1000X"\r\n\0\1\2', r"boat\.dat is a binary Campbell file"),
    "boat3.dat": (b'"TOB3","CR1000X"\r\n\x8f\2', "a binary Campbell file"),
    "log.hobo": (b"HOBO\0\1\2\3", "an Onset HOBO file"),
    "log.wsl": (b"\0\1\2\3", "an In-Situ log"),
    "page.pdf": (b"%PDF-1.7\n", "a PDF document"),
    "chart.png": (b"\x89PNG\r\n\x1a\n", "a picture"),
    "photo.jpg": (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a picture"),
    "lake.tif": (b"II*\x00\x08\x00\x00\x00", "a raster"),
    "ride.fit": (b"\x0e\x10\x43\x08\x00\x01\x00\x00.FIT\x00\x00", "a Garmin activity"),
    "sonar.sl2": (b"\x02\x00\x01\x00\xb2\x07\x08\x00" + bytes(100), "a Lowrance or Simrad sonar log"),
    "sonar.sl3": (b"\x03\x00\x01\x00\x80\x0c\x08\x00" + bytes(100), "a Lowrance or Simrad sonar log"),
    "sonar.rsd": (b"\x06\x04\x00\x00" + bytes(100), "a Garmin sonar log"),
    "line.sgy": ("C 1 CLIENT".encode("cp500") + bytes(3600), "seismic or sub-bottom traces"),
    "echo.raw": (b"\x30\x00\x00\x00CON0" + bytes(50), "a Simrad echo sounder log"),
    "beams.all": (b"\x30\x00\x00\x00\x02I" + bytes(50), "a Kongsberg multibeam log"),
    "beams.kmall": (b"\x30\x01\x00\x00#IIP" + bytes(50), "a Kongsberg multibeam log"),
    "side.xtf": (b"{\x01\x00\x00" + bytes(50), "a side-scan sonar log"),
    "talk.bag": (b"#ROSBAG V2.0\n", "a log of ROS 1"),
    "talk.mcap": (b"\x89MCAP0\r\n", "a log for Foxglove"),
    "log.parquet": (b"PAR1\x15\x04", "a Parquet file"),
    "log.npy": (b"\x93NUMPY\x01\x00", "a NumPy array"),
    "log.pkl": (b"\x80\x05\x95\x00\x00\x00", "a Python pickle"),
    "log.mdb": (b"\x00\x01\x00\x00Standard Jet DB\x00", "an Access database"),
    "log.7z": (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    "log.dbf": (b"\x03\x7c\x05\x01", "a part of a shapefile"),
    "log.zip": (archive("a.csv", "b.jpg"), r"a ZIP archive of a\.csv, b\.jpg"),
    "log.kmz": (archive("doc.kml"), "a zipped KML"),
    "log.ods": (
        archive(mimetype="application/vnd.oasis.opendocument.spreadsheet"),
        "a LibreOffice spreadsheet",
    ),
    "log.docx": (archive("word/document.xml"), "a Word document"),
    "log.npz": (archive("x.npy"), "a NumPy archive"),
    "cut.zip": (archive("a.csv")[:20], "damaged or cut off"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_not_read_is_named_with_what_to_do(name):
    content, what = FILES[name]
    Path(name).write_bytes(content)
    with pytest.raises(InputError, match=what) as error:
        open_table(Path(name))
    assert "fix:" in str(error.value)
    with pytest.raises(InputError, match=what):
        open_track(Path(name))


def test_text_is_no_container_and_has_no_layers():
    Path("log.csv").write_text("lat,lon,v\n47,8,1\n48,8,2\n")
    assert container_of(Path("log.csv")) is None
    with pytest.raises(InputError, match=r"log\.csv is text, and has no layer 'x'"):
        open_table(Path("log.csv"), layer="x")
    assert len(open_track(Path("log.csv"))) == 2


HEADS = {
    "a.gpx": b"<gpx>",
    "a.kml": b"<kml>",
    "a.geojson": b'{"type":"FeatureCollection"',
    "a.nmea": b"$GPGGA,1\n$GPGGA,2\n",
    "a.bin": b"\xa3\x95\x80",
    "a.ulg": b"ULog\x01\x12\x35",
    "a.tlog": b"\x00\x05\xd0\x00\x00\x00\x00\x00\xfd",
    "a.nc": b"CDF\x01",
    "b.nc": b"\x89HDF\r\n\x1a\n",
    "a.xlsx": b"PK\x03\x04",
    "a.gpkg": b"SQLite format 3\0",
    "a.rsk": b"SQLite format 3\0",
    "a.shp": b"\x00\x00\x27\x0a",
    "a.fgb": b"fgb\x03fgb\x00",
}


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(sorted(HEADS)), st.binary(max_size=300))
def test_any_bytes_behind_the_mark_of_a_format_are_read_or_one_error(name, content):
    Path(name).write_bytes(HEADS[name] + content)
    with suppress(InputError):
        assert len(open_table(Path(name))) > 0


def test_a_compressed_track_is_to_be_unpacked_and_compressed_text_is_read():
    Path("a.gpx.gz").write_bytes(gzip.compress(b"<gpx><wpt lat='1' lon='2'/></gpx>"))
    with pytest.raises(InputError, match=r"a\.gpx\.gz is a file of the kind GPX, compressed with gzip"):
        open_table(Path("a.gpx.gz"))
    Path("a.csv.gz").write_bytes(gzip.compress(b"lat,lon,v\n47,8,1\n48,8,2\n"))
    assert len(open_table(Path("a.csv.gz"))) == 2


def test_a_file_that_would_fill_the_memory_is_refused_before_it_is_read():
    with Path("big.gpx").open("wb") as file:
        file.write(b"<gpx>")
        file.truncate(400_000_000)
    with pytest.raises(InputError, match=r"big\.gpx has 400 MB"):
        open_table(Path("big.gpx"))


def test_every_format_has_a_module_with_a_reader():
    names = {container.module for container in CONTAINERS}
    assert names >= {
        "rsk",
        "gpx",
        "kml",
        "geojson",
        "nmea",
        "ardupilot",
        "tlog",
        "px4",
        "netcdf",
        "vector",
        "xlsx",
    }


def test_what_a_reader_does_not_expect_is_said_to_be_damage(monkeypatch):
    def fail(path, layer):
        raise OverflowError("too large")

    monkeypatch.setattr("fieldbo.tables.containers.geojson.read", fail)
    Path("lake.geojson").write_text('{"type": "FeatureCollection"}')
    for opened in (open_table, open_track):
        with pytest.raises(InputError, match=r"is damaged, or of a form .*: OverflowError") as error:
            opened(Path("lake.geojson"))
        assert isinstance(error.value.__cause__, OverflowError)


def test_a_zip_archive_with_a_hole_is_refused():
    whole = archive(**{"a.csv": "lat,lon,chl\n47.1,8.1,3\n"})
    for at in range(4, len(whole) - 8, 3):
        Path("log.zip").write_bytes(whole[:at] + whole[at + 7 :])
        with suppress(InputError):
            open_table(Path("log.zip"))


def test_a_file_of_too_many_columns_is_refused_at_once():
    Path("log.csv").write_text("\n".join(",".join(["a"] * 10_001) for _ in range(3)))
    with pytest.raises(InputError, match="10,001 cells"):
        open_table(Path("log.csv"))
