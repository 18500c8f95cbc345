"""RBR's .rsk: read as the plain CSV of the same readings, to the last digit.

The layouts were checked against pyrsktools in gunnarvoet/pyrsktools and RBRglobal/RSKtools (positions:
RSKreadannotations.m in rui-zhang-ocean/RSKtools), and the readers of version 3 in pyRSKtools 1.3.0.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from container_files import READINGS, numbers_of, same_points, seconds_of

from fieldbo.errors import InputError
from fieldbo.tables.joining import join_track
from fieldbo.tables.opening import open_table

CHANNELS = [(1, "cond06", "Conductivity", "mS/cm", 0), (2, "temp09", "Temperature", "°C", 0),
            (3, "temp10", "Temperature", "°C", 1), (4, "dpth01", "Depth", "m", 0)]  # fmt: skip
ROWS = [(1000 * row[0], 0.25, row[3], 99.0, 1.5) for row in READINGS]


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rsk(rows=ROWS, channels=CHANNELS, name="cast.rsk", columns=4, extra=""):
    path = Path(name)
    path.unlink(missing_ok=True)
    stored = "".join(f", channel{i + 1:02d} DOUBLE" for i in range(columns))
    base = sqlite3.connect(path)
    base.executescript(f"""
        PRAGMA synchronous = OFF;
        CREATE TABLE dbInfo (version VARCHAR(50), type VARCHAR(50));
        CREATE TABLE instruments (instrumentID INTEGER PRIMARY KEY, serialID INTEGER, model TEXT);
        CREATE TABLE channels (channelID INTEGER PRIMARY KEY, shortName TEXT, longName TEXT, units TEXT,
                               longNamePlainText TEXT, unitsPlainText TEXT, isMeasured INT, isDerived INT);
        CREATE TABLE instrumentChannels (instrumentID INTEGER, channelID INTEGER, channelOrder INTEGER,
                                         channelStatus INTEGER);
        CREATE TABLE region (datasetID INTEGER, regionID INTEGER PRIMARY KEY, type VARCHAR(50), tstamp1 LONG,
                             tstamp2 LONG, label VARCHAR(512), description TEXT);
        CREATE TABLE regionGeoData (regionID INTEGER, latitude DOUBLE, longitude DOUBLE);
        CREATE TABLE geodata (tstamp LONG, latitude DOUBLE, longitude DOUBLE, accuracy REAL, kind TEXT);
        CREATE TABLE data (tstamp BIGINT PRIMARY KEY{stored});
        INSERT INTO dbInfo VALUES ('2.19.0', 'EPdesktop');
        INSERT INTO instruments VALUES (1, 60275, 'RBRconcerto');
        {extra}""")
    for number, short, long, unit, status in channels:
        base.execute("INSERT INTO channels VALUES (?,?,?,?,?,?,1,0)", (number, short, long, unit, long, unit))
        base.execute("INSERT INTO instrumentChannels VALUES (1, ?, ?, ?)", (number, number, status))
    base.executemany(f"INSERT INTO data VALUES ({','.join('?' * (columns + 1))})", rows)
    base.commit()
    base.close()
    return path


def positions():
    """Return SQL that gives each reading a fix of its own, by a telephone."""
    return "".join(
        f"INSERT INTO geodata VALUES ({1000 * r[0]}, {r[1]!r}, {r[2]!r}, 5.0, '');" for r in READINGS
    )


def test_channels_have_their_names_and_units_and_positions_are_those_of_the_fixes():
    table = open_table(rsk(extra=positions()))
    same_points(table, "Temperature")
    assert table.names == ("time", "Conductivity", "Temperature", "Depth", "latitude", "longitude")
    assert (table.units["Temperature"], table.roles["Depth"], table.row_word) == ("°C", "depth", "record")
    assert "channels that the instrument hides are left out: Temperature" in table.notes
    assert table.notes[0] == "RBR .rsk of an RBRconcerto: names and units of its channels"


def test_a_cast_is_where_the_first_fix_within_it_lies():
    start, end = ROWS[2][0], ROWS[5][0]
    extra = (
        f"INSERT INTO region VALUES (1, 1, 'PROFILE', {start}, {end}, '', '');"
        f"INSERT INTO region VALUES (1, 2, 'GPS', {start + 1}, {start + 1}, '', '');"
        "INSERT INTO regionGeoData VALUES (2, 47.5, 8.25);"
    )
    table = open_table(rsk(extra=extra))
    assert table.cells["latitude"] == ("", "", *["47.5"] * 4, *[""] * 6)
    assert any("1 profile at the first fix within it" in note for note in table.notes)
    assert "8 records without a position" in table.notes


def test_times_are_not_said_to_be_utc_and_a_track_asks_for_the_offset():
    """Ruskin sets the clock to UTC or to local time, and the file does not say which."""
    table = open_table(rsk())
    assert table.cells["time"][0] == "2024-05-01T12:00:00"
    assert "latitude" not in table.names
    Path("t.csv").write_text(
        "time,lat,lon\n" + "".join(f"{seconds_iso(r[0])},{r[1]!r},{r[2]!r}\n" for r in READINGS)
    )
    with pytest.raises(InputError, match="no offset from UTC"):
        join_track(table, open_table(Path("t.csv")))
    same_points(join_track(table, open_table(Path("t.csv")), offset_s=0.0), "Temperature")


def seconds_iso(second):
    minutes, seconds = divmod(int(second) - READINGS[0][0], 60)
    return f"2024-05-01T12:{minutes:02d}:{seconds:02d}Z"


def test_columns_of_data_go_by_the_order_of_channels_where_it_differs_from_their_ids():
    channels = [(41, "temp09", "Temperature", "°C", 0), (12, "cond06", "Conductivity", "mS/cm", 0)]
    path = rsk([row[:3] for row in ROWS], channels, columns=2)
    base = sqlite3.connect(path)
    base.execute("UPDATE instrumentChannels SET channelOrder = CASE channelID WHEN 12 THEN 1 ELSE 2 END")
    base.commit()
    base.close()
    assert numbers_of(open_table(path), "Temperature") == [row[3] for row in READINGS]


def version_3(schedules=(1,)):
    path = Path("v3.rsk")
    base = sqlite3.connect(path)
    base.executescript("""
        PRAGMA synchronous = OFF;
        CREATE TABLE channel (id INTEGER, shortName TEXT, longName TEXT, unit TEXT);
        CREATE TABLE instrumentChannel (instrumentId INTEGER, channelId INTEGER, channelOrder INTEGER,
                                        channelStatus INTEGER);
        CREATE TABLE data (timestamp BIGINT, scheduleId INTEGER, channel01 DOUBLE);
        INSERT INTO channel VALUES (7, 'temp09', 'Temperature', '°C');
        INSERT INTO instrumentChannel VALUES (1, 7, 1, 0);""")
    for schedule in schedules:
        base.executemany(
            "INSERT INTO data VALUES (?, ?, ?)", [(r[0], schedule, r[2] + 5 * (schedule - 1)) for r in ROWS]
        )
    base.commit()
    base.close()
    return path


def test_version_3_is_read_and_its_schedules_are_asked_about():
    table = open_table(version_3())
    assert numbers_of(table, "Temperature") == [row[3] for row in READINGS]
    assert seconds_of(table) == [row[0] for row in READINGS]
    Path("v3.rsk").unlink()
    path = version_3((1, 2))
    with pytest.raises(InputError, match=r"1 \(12 readings\), 2 \(12 readings\)"):
        open_table(path)
    assert numbers_of(open_table(path, layer="1"), "Temperature") == [row[3] for row in READINGS]


def test_what_ruskin_has_not_decoded_is_refused():
    path = rsk()
    base = sqlite3.connect(path)
    base.execute("DROP TABLE data")
    base.close()
    with pytest.raises(InputError, match="Ruskin has not decoded what it downloaded"):
        open_table(path)
    with pytest.raises(InputError, match="no readings"):
        open_table(rsk([]))
    with pytest.raises(InputError, match="does not say what channel04 measured"):
        open_table(rsk(channels=CHANNELS[:3]))


@pytest.mark.parametrize("length", [120, 3000, 9000])
def test_a_damaged_database_is_one_error(length):
    path = rsk()
    content = path.read_bytes()
    path.write_bytes(content[:length] if length < 9000 else content[:4096] + b"\xff" * len(content[4096:]))
    with pytest.raises(InputError, match="damaged or cut off: it can't be read as an RBR log"):
        open_table(path)


def test_another_database_is_named_by_its_tables():
    base = sqlite3.connect("notes.sqlite")
    base.execute("CREATE TABLE catches (species, weight)")
    base.commit()
    base.close()
    with pytest.raises(InputError, match="an SQLite database of a kind that is not known: catches"):
        open_table(Path("notes.sqlite"))
    assert not Path("notes.sqlite-wal").exists()
