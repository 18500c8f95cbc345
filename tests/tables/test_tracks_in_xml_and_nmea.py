"""GPX, KML and NMEA 0183: read as the plain CSV of the same readings, to the last digit.

Structures were checked against test_files/garmin_gpxtpx.gpx and garmin_extensions.gpx in tkrajina/gpxpy, and
examples/data.log and examples/nmea_file in Knio/pynmea2.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from container_files import READINGS, minutes, numbers_of, same_points, seconds_of, sentence

from fieldbo.errors import InputError
from fieldbo.tables.coordinates import degrees_of
from fieldbo.tables.joining import join_track
from fieldbo.tables.opening import open_table, open_track


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def iso(second):
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


GARMIN = "http://www.garmin.com/xmlschemas/TrackPointExtension/v2"
HEAD = (
    f'<?xml version="1.0"?><gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1" xmlns:t="{GARMIN}">'
)


def point(tag, row, inner="", temperature="t:wtemp"):
    second, lat, lon, value = row
    return (
        f'<{tag} lat="{lat!r}" lon="{lon!r}"><ele>431.2</ele><time>{iso(second)}</time><extensions>'
        f"<t:TrackPointExtension><{temperature}>{value!r}</{temperature}><t:depth>1.5</t:depth>"
        f"</t:TrackPointExtension>{inner}</extensions></{tag}>"
    )


def track(rows=READINGS, name="lake", **options):
    points = "".join(point("trkpt", row, **options) for row in rows)
    return f"<trk><name>{name}</name><trkseg>{points}</trkseg></trk>"


def gpx(*parts, name="log.gpx"):
    Path(name).write_text(HEAD + "".join(parts) + "</gpx>")
    return Path(name)


def plain_waypoint(name="ramp"):
    return f'<wpt lat="47.3" lon="8.5"><name>{name}</name></wpt>'


def test_gpx_gives_the_readings_of_its_extensions():
    table = open_table(gpx(track(), plain_waypoint()))
    same_points(table, "wtemp")
    assert table.form == "GPX"
    assert (table.units["wtemp"], table.units["depth"], table.row_word) == ("degC", "m", "point")
    assert "left out: waypoints (1 point); --layer takes one of these instead" in table.notes


def test_tracks_are_read_together_or_one_by_its_name():
    path = gpx(track(READINGS[:5], "morning"), track(READINGS[5:], "evening"))
    table = open_table(path)
    same_points(table, "wtemp")
    assert set(table.cells["track"]) == {"morning", "evening"}
    assert len(open_table(path, layer="evening")) == 7
    with pytest.raises(InputError, match="noon"):
        open_table(path, layer="noon")


def test_readings_in_tracks_and_in_waypoints_are_asked_about():
    waypoints = "".join(point("wpt", row) for row in READINGS)
    path = gpx(track(), waypoints)
    with pytest.raises(InputError, match=r"tracks \(12 points\), waypoints \(12 points\)"):
        open_table(path)
    same_points(open_table(path, layer="waypoints"), "wtemp")


def test_tracks_of_two_boats_at_once_are_no_track():
    path = gpx(track(READINGS, "one"), track(READINGS, "two"))
    with pytest.raises(InputError, match="2 tracks that may be meant"):
        open_track(path)
    assert len(open_track(path, "two")) == 12
    assert len(open_track(Path("log.gpx:two"))) == 12


def test_elements_of_other_namespaces_keep_their_units_and_never_take_the_name_of_another():
    chl = '<s:q xmlns:s="urn:sonde" name="chl" uom="ug/L">3</s:q>'
    inner = f'<s:depth xmlns:s="urn:sonde" unit="ft">9</s:depth>{chl}'
    table = open_table(gpx(track(inner=inner)))
    assert table.units["depth.2"] == "ft"
    assert table.units["chl"] == "ug/L"
    assert set(table.cells["depth"]) == {"1.5"}


def test_garmins_waypoints_without_numbers_are_no_readings():
    made = "<c:T xmlns:c='http://www.garmin.com/xmlschemas/CreationTimeExtension/v1'><c:CreationTime>"
    end = f"<extensions>{made}2024-05-01T12:00:00Z</c:CreationTime></c:T></extensions></wpt>"
    waypoint = plain_waypoint().replace("</wpt>", end)
    same_points(open_table(gpx(track(), waypoint)), "wtemp")
    assert open_table(gpx(waypoint)).roles["CreationTime"] == "text"


def test_times_of_gpx_without_z_are_left_as_they_are():
    path = gpx(track())
    path.write_text(path.read_text().replace("Z</time>", "</time>"))
    assert open_table(path).cells["time"][0] == "2024-05-01T12:00:00"


@pytest.mark.parametrize("end", [200, 900, -8])
def test_gpx_cut_off_is_one_error(end):
    path = gpx(track())
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(InputError, match=r"log\.gpx is damaged or cut off: it can't be read as a GPX file"):
        open_table(path)


def test_gpx_with_entities_or_without_points_is_refused():
    Path("bomb.gpx").write_text(
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><gpx version="1.1"></gpx>'
    )
    with pytest.raises(InputError, match="entities of its own"):
        open_table(Path("bomb.gpx"))
    with pytest.raises(InputError, match="no points"):
        open_table(gpx())


# -- KML --------------------------------------------------------------------------------------------------


def kml(*placemarks, name="log.kml"):
    body = "".join(f"<Placemark>{each}</Placemark>" for each in placemarks)
    Path(name).write_text(
        '<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">'
        f"<Document><Folder>{body}</Folder></Document></kml>"
    )
    return Path(name)


def placemark(row):
    second, lat, lon, value = row
    return (
        f"<TimeStamp><when>{iso(second)}</when></TimeStamp><ExtendedData><SchemaData>"
        f'<SimpleData name="temp">{value!r}</SimpleData></SchemaData><Data name="ph"><value>7</value></Data>'
        f"</ExtendedData><Point><coordinates> {lon!r},{lat!r},0 </coordinates></Point>"
    )


def gx_track(rows=READINGS):
    whens = "".join(f"<when>{iso(row[0])}</when>" for row in rows)
    places = "".join(f"<gx:coord>{row[2]!r} {row[1]!r} 0</gx:coord>" for row in rows)
    values = "".join(f"<gx:value>{row[3]!r}</gx:value>" for row in rows)
    return (
        f"<gx:Track>{whens}{places}<ExtendedData><SchemaData><gx:SimpleArrayData name='temp'>{values}"
        "</gx:SimpleArrayData></SchemaData></ExtendedData></gx:Track>"
    )


def test_kml_gives_placemarks_with_their_data_and_tracks_with_their_times():
    table = open_table(kml(*map(placemark, READINGS)))
    same_points(table, "temp")
    assert set(table.cells["ph"]) == {"7"}
    same_points(open_table(kml(gx_track())), "temp")


def test_kml_of_areas_says_where_these_belong():
    ring = "<Polygon><outerBoundaryIs><LinearRing><coordinates>8,47 9,47 9,48 8,47</coordinates></LinearRing>"
    with pytest.raises(InputError, match="holds LinearRing and Polygon, no points") as error:
        open_table(kml(f"{ring}</outerBoundaryIs></Polygon>"))
    assert "--outline" in str(error.value)


def test_kml_with_placemarks_and_tracks_asks_and_damage_is_one_error():
    path = kml(*map(placemark, READINGS), gx_track())
    with pytest.raises(InputError, match="2 kinds of points that may be meant"):
        open_table(path)
    same_points(open_table(path, layer="tracks"), "temp")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="damaged or cut off"):
        open_table(path)


# -- NMEA -------------------------------------------------------------------------------------------------


def epoch(row, talker="GP", *, date="010524", fix=True):
    second, lat, lon, value = row
    clock = f"{datetime.fromtimestamp(second, UTC):%H%M%S.%f}"[:9]
    place = f"{minutes(lat, 'NS', 2)},{minutes(lon, 'EW', 3)}"
    return [
        sentence(f"{talker}GGA,{clock},{place},{1 if fix else 0},09,0.9,431.2,M,47.0,M,,"),
        sentence(f"{talker}RMC,{clock},{'A' if fix else 'V'},{place},2.5,080.0,{date},,,A"),
        sentence("SDDPT,3.4,0.5"),
        sentence(f"YXMTW,{value!r},C"),
    ]


def nmea(lines, name="log.nmea", end="\r\n"):
    Path(name).write_bytes((end.join(lines) + end).encode("latin-1"))
    return Path(name)


def readings_of(rows=READINGS):
    """Return the readings as the sentences hold them: with positions in minutes."""
    table = open_table(nmea([line for row in rows for line in epoch(row)], "plain.nmea"))
    places = zip(numbers_of(table, "latitude"), numbers_of(table, "longitude"), strict=True)
    return [(row[0], y, x, row[3]) for row, (y, x) in zip(rows, places, strict=True)]


def test_nmea_gives_fixes_with_the_readings_between_them():
    table = open_table(nmea([line for row in READINGS for line in epoch(row)]))
    same_points(table, "water_temperature", readings_of())
    assert np.allclose(numbers_of(table, "latitude"), [row[1] for row in READINGS], atol=2e-9, rtol=0)
    assert np.allclose(numbers_of(table, "longitude"), [row[2] for row in READINGS], atol=2e-9, rtol=0)
    assert table.cells["water_temperature"] == tuple(repr(row[3]) for row in READINGS)
    assert set(table.cells["depth_below_transducer"]) == {"3.4"}
    assert set(table.cells["depth_below_surface"]) == {"3.9"}
    assert table.roles["depth_below_surface"] == "value"
    assert table.lines.tolist() == [1 + 4 * i for i in range(12)]


def test_degrees_are_those_of_the_same_text_in_a_csv_file():
    lat, lon = minutes(47.31, "NS", 2), minutes(-8.58, "EW", 3)
    table = open_table(nmea([sentence(f"GPGLL,{lat},{lon},120000.00,A,A")] * 2))
    Path("same.csv").write_text(f"lat,ns,lon,ew\n{lat},{lon}\n")
    plain = open_table(Path("same.csv"))
    assert numbers_of(table, "latitude")[0] == pytest.approx(
        degrees_of(plain, "lat", "latitude")[0], abs=1e-12
    )
    assert numbers_of(table, "longitude")[0] < 0
    assert table.cells["time"] == ("12:00:00",)
    assert "no RMC or ZDA states the date: times are times of day in UTC" in table.notes


def test_sentences_with_wrong_checksums_are_listed_and_left_out():
    lines = [line for row in READINGS for line in epoch(row)]
    lines[7] = lines[7].replace("MTW,", "MTW,9")
    table = open_table(nmea(lines))
    assert "1 sentences with a wrong checksum left out (line 8)" in table.notes
    assert table.cells["water_temperature"][1] == ""


def test_sentences_without_a_checksum_among_others_are_left_out():
    lines = [line for row in READINGS for line in epoch(row)]
    lines[3] = lines[3].partition("*")[0]
    assert "1 sentences without a checksum left out (line 4)" in open_table(nmea(lines)).notes
    bare = open_table(nmea([line.partition("*")[0] for row in READINGS for line in epoch(row)]))
    same_points(bare, "water_temperature", readings_of())
    assert "no sentence has a checksum: damaged ones can't be told" in bare.notes


def test_a_log_of_damaged_sentences_is_one_error():
    lines = [line[:8] + "9" + line[8:] for row in READINGS for line in epoch(row)]
    with pytest.raises(InputError, match="48 sentences of 48 have a wrong checksum"):
        open_table(nmea(lines))


def test_a_sentence_cut_off_at_the_end_is_left_out():
    path = nmea([line for row in READINGS for line in epoch(row)])
    path.write_bytes(path.read_bytes()[:-6])
    table = open_table(path)
    assert "1 sentences without a checksum left out (line 48)" in table.notes
    assert table.cells["water_temperature"][-1] == ""


def test_rows_without_a_fix_have_no_position():
    table = open_table(nmea([line for i, row in enumerate(READINGS) for line in epoch(row, fix=i != 3)]))
    assert table.cells["latitude"][3] == ""
    assert sum(cell != "" for cell in table.cells["latitude"]) == 11


def test_dates_go_on_after_midnight_where_only_gga_tells_the_time():
    rows = [(READINGS[0][0] + 43_190 + 5 * i, *row[1:]) for i, row in enumerate(READINGS)]
    lines = [line for row in rows for line in epoch(row)]
    lines = [line for i, line in enumerate(lines) if i % 4 != 1 or i == 1]
    assert seconds_of(open_table(nmea(lines))) == [row[0] for row in rows]


def test_two_receivers_are_asked_about():
    lines = [line for row in READINGS for line in [*epoch(row), *epoch(row, "II")[:2]]]
    with pytest.raises(InputError, match=r"GP \(24 positions\), II \(24 positions\)"):
        open_table(nmea(lines))
    same_points(open_table(nmea(lines), layer="GP"), "water_temperature", readings_of())


def test_several_readings_between_fixes_are_rows_of_their_own():
    lines = [line for row in READINGS for line in [*epoch(row), sentence("SDDPT,3.6,0.5")]]
    table = open_table(nmea(lines))
    assert table.cells["depth_below_transducer"] == ("3.4", "3.6") * 12
    assert table.cells["latitude"][0] == table.cells["latitude"][1]


@pytest.mark.parametrize("form", ["{} ", "[{}] ", "{},", "{}\t"])
def test_a_loggers_times_place_the_readings_between_the_fixes(form):
    """The logger's clock is two hours and 0.25 s ahead, as local time is."""
    lines = []
    for row in [(READINGS[0][0] + i, 47 + i / 1000, 8.0, i) for i in range(10)]:
        stamps = [row[0] + 7200.25 + later for later in (0, 0, 0.5, 0.5)]
        lines += [
            form.format(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S.%f}") + line
            for at, line in zip(stamps, epoch(row), strict=True)
        ]
    table = open_table(nmea(lines))
    assert np.allclose(seconds_of(table), [READINGS[0][0] + i + 0.5 for i in range(10)])
    assert np.allclose(
        numbers_of(table, "latitude")[:-1], [47 + (i + 0.5) / 1000 for i in range(9)], atol=1e-8
    )
    assert table.cells["latitude"][-1] == ""
    assert any("its clock is +7200.250 s from that of the fixes" in note for note in table.notes)
    assert np.allclose(seconds_of(open_track(Path("log.nmea"))), [READINGS[0][0] + i for i in range(10)])


def test_depths_in_feet_are_metres_exactly_and_transducers_keep_their_units():
    lines = [
        *epoch(READINGS[0])[:2],
        sentence("SDDBT,10.0,f,,M,,F"),
        sentence("YXXDR,C,14.25,C,WTEMP,G,31.5,,SAL"),
    ]
    table = open_table(nmea(lines))
    assert table.cells["depth_below_transducer"] == ("3.04800",)
    assert table.cells["WTEMP (C)"] == ("14.25",)
    assert table.cells["SAL"] == ("31.5",)


def test_letters_of_units_are_believed_and_a_temperature_in_fahrenheit_says_so():
    lines = [*epoch(READINGS[0])[:2], sentence("YXMTW,71.6,F"), sentence("SDDBT,8.2,x,2.5,y,,F")]
    table = open_table(nmea(lines))
    assert table.cells["water_temperature (degF)"] == ("71.6",)
    assert "depth_below_transducer" not in table.names


def test_dates_of_a_receiver_that_are_1024_weeks_behind_are_refused():
    stamp = f"{datetime.fromtimestamp(READINGS[0][0] + 1024 * 604_800, UTC):%Y-%m-%d %H:%M:%S} "
    with pytest.raises(InputError, match="dates are 7,168 days behind those of the logger"):
        open_table(nmea([stamp + line for line in epoch(READINGS[0])]))


def test_a_log_without_a_fix_is_refused():
    with pytest.raises(InputError, match="no valid position"):
        open_table(nmea([line for row in READINGS for line in epoch(row, fix=False)]))


@pytest.mark.parametrize("make", ["gpx", "nmea", "kml"])
def test_tracks_of_every_form_place_a_log_without_positions(make):
    path = {
        "gpx": lambda: gpx(track()),
        "kml": lambda: kml(gx_track()),
        "nmea": lambda: nmea([line for row in READINGS for line in epoch(row)]),
    }[make]()
    rows = "\n".join(f"{iso(row[0])},{row[3]!r}" for row in READINGS)
    Path("sonde.csv").write_text(f"time,temperature\n{rows}\n")
    joined = join_track(open_table(Path("sonde.csv")), open_track(path))
    same_points(joined, "temperature", readings_of() if make == "nmea" else READINGS)
