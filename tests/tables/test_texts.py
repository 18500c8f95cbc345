"""Any text with a line of names and a line per reading is read, whatever stands around it, or refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from fieldbo.errors import InputError
from fieldbo.tables import decoding
from fieldbo.tables.coordinates import read_degrees
from fieldbo.tables.opening import open_table
from fieldbo.tables.rows import delimiter_of

N = 15
NAMES = ["time", "lat", "lon", "depth", "chl"]
UNITS = ["UTC", "degrees_north", "degrees_east", "m", "mg m-3"]
ROWS = [[f"2026-07-14T09:00:{i:02d}Z", f"47.3{i:02d}", f"8.5{i:02d}", f"{i % 4}.5", f"{3 + i * i / 7:.3f}"]
        for i in range(N)]  # fmt: skip
CHL = [float(row[4]) for row in ROWS]


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def table_of(*rows, between=",", name="log.csv", end="\n"):
    path = Path(name)
    path.write_text("\n".join(between.join(row) for row in rows) + end, encoding="utf-8", newline="")
    return open_table(path)


def refused(text, name="log.txt"):
    path = Path(name)
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(InputError) as caught:
        open_table(path)
    return str(caught.value)


PREAMBLES = {
    "none": [],
    "title": [["Survey of the lake"]],
    "keys": [["Logger", "7"], ["Interval", "10", "s"], ["Owner", "Smith, Jane".replace(",", "")], [""]],
    "longer than the table": [[f"remark {i}"] for i in range(400)],
    "padded by a spreadsheet": [[f"remark {i}", "", "", "", ""] for i in range(30)],
    "sections": [["[Logger settings]"], ["Sample period = 10 s"], ["[Data]"]],
    "ruled": [["Survey"], ["-" * 20, "-" * 20, "-" * 20, "-" * 20, "-" * 20]],
}


@pytest.mark.parametrize("between", [",", ";", "\t"])
@pytest.mark.parametrize("above", PREAMBLES)
def test_lines_above_the_names_are_left_out_whatever_their_number(above, between):
    table = table_of(*PREAMBLES[above], NAMES, *ROWS, between=between)
    assert table.names == tuple(NAMES)
    assert table.numbers("chl").tolist() == CHL
    assert table.lines[0] == len(PREAMBLES[above]) + 2


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize(
    "units",
    [UNITS, ["", "(deg)", "(deg)", "[m]", "[mg/l]"], [*UNITS[:3], "1", "1e-3"], ["", "", "", "", "ug/l"],
     ["-", "dd", "dd", "Faden", "Teile"]],
)  # fmt: skip
def test_a_line_of_units_is_recognised_even_if_some_are_numbers_or_not_known(units, ruled):
    table = table_of(NAMES, units, *[["---"] * 5] * ruled, *ROWS)
    assert table.numbers("chl").tolist() == CHL
    assert table.units["chl"] == units[4].strip("[]")
    assert any("line 2" in note for note in table.notes)


STATISTICS = [["Mean", "47.3", "8.5", "1.5", "8"], ["SD", "0.1", "0.1", "1", "3"],
              ["Min", "47", "8", "0", "0"],
              ["Max", "48", "9", "3", "30"], ["Count", "15", "15", "15", "15"]]  # fmt: skip


@pytest.mark.parametrize("at", [1, 8, N + 1], ids=["above the readings", "between", "at the end"])
def test_rows_of_statistics_are_no_readings(at):
    rows = [NAMES, *ROWS]
    table = table_of(*rows[:at], *STATISTICS, *rows[at:])
    assert table.numbers("chl").tolist() == CHL
    assert f"left out: Mean (line {at + 1})" in table.notes
    assert f"left out: Count (line {at + 5})" in table.notes


@pytest.mark.parametrize(
    "label", [["", "", "MEAN VALUE:"], ["Average", "", ""], ["STANDARD DEVIATION", "", ""]]
)
def test_a_statistic_is_found_in_any_column(label):
    names = [*NAMES[:3], "site", "chl"]
    rows = [[*row[:3], "MEAN LAKE", row[4]] for row in ROWS]
    table = table_of(
        names, *rows, ["", "47.3", "8.5", *label[-1:], "8"] if not label[0] else [*label, "", "8"]
    )
    assert len(table) == N


def test_stations_named_like_statistics_remain():
    names = ["station", "lat", "lon", "chl"]
    stations = ["N", "SE", "N", "MAX", "SE"] * 3
    table = table_of(names, *([s, *row[1:3], row[4]] for s, row in zip(stations, ROWS, strict=True)))
    assert table.cells["station"] == tuple(stations)


def test_a_column_that_says_which_statistic_a_row_is_is_asked_about():
    rows = [[kind, *row[1:]] for row in ROWS for kind in ("mean", "max")]
    with pytest.raises(InputError, match="the rows hold statistics: max, mean"):
        table_of(["statistic", *NAMES[1:]], *rows)


def test_names_that_are_repeated_for_each_session_are_left_out():
    table = table_of(NAMES, UNITS, *ROWS[:6], ["Session 2"], NAMES, UNITS, *ROWS[6:])
    assert table.numbers("chl").tolist() == CHL
    assert "left out: the column names again (2 lines: 10, 11)" in table.notes
    assert "left out: lines above the column names (line 9)" in table.notes


def test_a_second_table_with_other_columns_is_refused():
    with pytest.raises(InputError, match="another table begins in line 18: station, ph, sal, o2, no3"):
        table_of(NAMES, *ROWS, ["Session 2"], ["station", "ph", "sal", "o2", "no3"], *ROWS)


def test_rows_without_a_number_remain_as_gaps():
    table = table_of(NAMES, *ROWS[:4], [ROWS[4][0], "ERR", "ERR", "ERR", "ERR"], *ROWS[5:])
    assert len(table) == N


def test_two_lines_of_names_are_put_together():
    table = table_of(["", "", "", "surface", "", "bottom", ""],
                     ["time", "lat", "lon", "temp", "chl", "temp", "chl"],
                     ["UTC", "deg", "deg", "degC", "ug/l", "degC", "ug/l"],
                     *([*row, "9", row[4]] for row in ROWS))  # fmt: skip
    assert table.names[3:] == ("surface temp", "surface chl", "bottom temp", "bottom chl")
    assert table.units["bottom temp"] == "degC"
    assert "lines 1 and 2 hold the column names" in table.notes


def test_a_line_that_a_logger_cut_off_between_sessions_is_left_out_and_named():
    rows = [[*row[:-1], f"{value}.5"] for row in ROWS for value in (3, 4, 5)]
    rows[20] = rows[20][:3]
    table = table_of(NAMES, *rows)
    assert len(table) == len(rows) - 1
    assert "left out: lines that are cut off (line 22)" in table.notes


def test_a_last_number_with_fewer_decimals_than_all_others_is_cut_off():
    table = table_of(NAMES, *ROWS[:-1], [*ROWS[-1][:-1], "31.0"], end="")
    assert "the file ends within line 16, which is left out" in table.notes
    assert len(table_of(NAMES, *ROWS, end="")) == N


# -- quotes and decimal signs ---------------------------------------------------------------------------


def test_quotes_are_those_of_rfc_4180():
    notes = ['"north, deep"', '"a ""quoted"" word"', '"two\nlines"', "plain", '""']
    table = table_of([*NAMES, '"note, free"'], *([*row, notes[i % 5]] for i, row in enumerate(ROWS)))
    assert table.numbers("chl").tolist() == CHL
    assert table.cells["note, free"][:5] == ("north, deep", 'a "quoted" word', "two\nlines", "plain", "")
    assert table.lines.tolist()[:5] == [2, 3, 4, 6, 7]


def test_text_with_several_commas_in_quotes_hides_no_names():
    table = table_of(["Station", "Lat", "Lon", "Chl"], *([f'"Lake, north basin, buoy {i}"', *r[1:3], r[4]]
                                                        for i, r in enumerate(ROWS)))  # fmt: skip
    assert table.names == ("Station", "Lat", "Lon", "Chl")
    assert table.cells["Station"][2] == "Lake, north basin, buoy 2"


def test_decimal_commas_in_quotes_between_commas_are_points():
    table = table_of(NAMES, *([row[0], *(f'"{cell.replace(".", ",")}"' for cell in row[1:])] for row in ROWS))
    assert table.names == tuple(NAMES)
    assert table.numbers("chl").tolist() == CHL
    assert "decimal commas are read as points" in table.notes


def test_decimal_commas_between_blanks_are_points():
    table = table_of(NAMES, *([cell.replace(".", ",") for cell in row] for row in ROWS), between="  ")
    assert table.numbers("chl").tolist() == CHL


@pytest.mark.parametrize(
    ("cells", "part"),
    [(['"1,234.5"', "2.5"], "has a comma between thousands"),
     (['"1,5"', "2.5"], "decimal commas and points are mixed"),
     (['"1,234"', '"2,345"'],
      "a decimal comma, or a comma between thousands")],
)  # fmt: skip
def test_commas_whose_meaning_is_not_clear_are_refused(cells, part):
    with pytest.raises(InputError, match=part):
        table_of(["t", "v"], *([str(i), cell] for i, cell in enumerate(cells)))


@pytest.mark.parametrize("broken", ['"buoy', 'x"'])
def test_a_quote_that_swallows_rows_is_refused_with_its_line(broken):
    rows = [[*row, "ok"] for row in ROWS]
    rows[3][5] = '"buoy'
    if broken == 'x"':
        rows[9][5] = 'x"'
    with pytest.raises(InputError, match="a quote is opened and never closed") as caught:
        table_of([*NAMES, "note"], *rows)
    assert "line 5" in str(caught.value)


def test_a_hash_within_a_table_is_a_comment_only_where_no_station_can_be():
    table = table_of(["station", *NAMES], *([f"#{i}", *row] for i, row in enumerate(ROWS)))
    assert table.cells["station"][:2] == ("#0", "#1")
    commented = table_of(NAMES, *ROWS[:3], ["#" + ROWS[3][0], *ROWS[3][1:]], *ROWS[4:])
    assert len(commented) == N - 1
    assert "left out: comments (line 5)" in commented.notes


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        (["a,b;c", "1,5;2", "2,5;3"], ";"),
        (["time,note", "1,a b c d", "2,e f g h"], ","),
        (["Temp, °C;Depth, m", "12,5;3,2", "12,6;3,4"], ";"),
        (["lat lon chl", "47,31 8,5 3,2", "47,32 8,6 3,3"], None),
        (["Name = a", "Name = b", "Name = c", "t,lat,lon", "1,2,3", "2,3,4", "3,4,5"], ","),
        (["a|b", "1|2", "3|4"], "|"),
        (["one", "2", "3"], None),
    ],
)
def test_the_delimiter_is_the_one_that_splits_names_and_readings_alike(lines, delimiter):
    assert delimiter_of(lines) == delimiter


# -- what is no table -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('{"type": "x", "values": [1, 2, 3]}', ["is JSON"]),
        ('[{"t": 1, "v": 2}, {"t": 2, "v": 3}]', ["is JSON"]),
        ('<?xml version="1.0"?>\n<data><row t="1"/></data>', ["is XML (data)"]),
        ('<?xml version="1.0"?>\n<Body_xle><Data/></Body_xle>', ["Solinst Levelogger", "export it as CSV"]),
        ("<!DOCTYPE html>\n<html><body><p>hello</p></body></html>", ["is a web page"]),
        ("* Sea-Bird SBE 19plus Data File:\n* FileName = a\n*END*\n" + "0A1B2C3D4E5F60718293A4B5C6D7\n" * 9,
         ["a raw Sea-Bird .hex file", ".cnv"]),
        ("* Sea-Bird SBE 19plus V 2 Data File:\n* Temperature SN = 6789\n*END*\n0A1B2C3D4E5F\n0A1B2C3D4E60\n",
         ["a raw Sea-Bird .hex file", ".cnv"]),
        ('"TOB1","Boat1","CR1000","1","CR1000.Std.1","CPU:a.CR1","1","Lake"\n"SECONDS","NANOSECONDS"\n',
         ["a binary Campbell file", "convert it to TOA5 with CardConvert"]),
        ("ODF_HEADER,\n FILE_SPECIFICATION='x',\n", ["an ODF file"]),
        ("{\\rtf1\\ansi hello}", ["rich text"]),
        ("We left the harbour at dawn, and the wind was light from the north.\nIt took an hour to the first\n"
         "station, where the probe was lowered slowly to the bottom and back.\nNo fish were seen today.\n",
         ["text without columns"]),
        ("2026-07-14 09:00 left the harbour\n2026-07-14 09:30 first station, calm\n"
         "2026-07-14 09:40 probe lost\n"
         "2026-07-14 10:00 found it again at the buoy\n", ["text without columns"]),
    ],
)  # fmt: skip
def test_a_text_that_is_no_table_is_refused_by_its_name(text, parts):
    said = refused(text)
    assert all(part in said for part in parts)
    assert "fix:" in said


def test_a_file_that_is_too_large_is_refused_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(decoding, "LARGEST", 500)
    said = refused(",".join(NAMES) + "\n" + "\n".join(map(",".join, ROWS)))
    assert "MB of text" in said
    assert "export a mean per second" in said


def test_one_table_in_an_archive_is_read_and_several_are_asked_about():
    content = "\n".join(map(",".join, [NAMES, *ROWS]))
    with zipfile.ZipFile("one.zip", "w") as archive:
        archive.writestr("result.csv", content)
    table = open_table(Path("one.zip"))
    assert table.numbers("chl").tolist() == CHL
    assert "read result.csv in the archive" in table.notes
    with zipfile.ZipFile("one.zip", "a") as archive:
        archive.writestr("other.csv", content)
    with pytest.raises(InputError, match=r"a ZIP archive of result\.csv, other\.csv"):
        open_table(Path("one.zip"))


def test_a_character_that_is_cut_in_half_does_not_stop_the_rest():
    Path("log.csv").write_bytes("\n".join(map(",".join, [NAMES, *ROWS])).encode("utf-16")[:-1])
    assert len(open_table(Path("log.csv"))) >= N - 1


def test_names_without_readings_and_readings_without_names_are_refused():
    assert "has no readings" in refused(",".join(NAMES) + "\n")
    assert "holds numbers, not names" in refused("\n".join(",".join(row[1:]) for row in ROWS))


def test_the_letter_n_beside_latitudes_is_no_statistic():
    times = ["" if i % 3 == 0 else f"2024-05-01 12:{i:02d}" for i in range(20)]
    rows = [(at, f"{i}.5", "N" if i < 10 else "S", f"8.{i}", "E", f"{i}.25") for i, at in enumerate(times)]
    table = table_of(("time", "lat", "ns", "lon", "ew", "temp"), *rows)
    assert (len(table), table.notes) == (20, ())


def test_letters_of_sides_are_no_labels_where_rows_of_statistics_have_theirs():
    above = ["65.45;Mean;-0.51;;;;481.1;;", "0.003;Std Dev;0.004;;;;32.8;;", "65.44;Min;-0.52;;;;410.0;;"]
    names = "lat;NS;lon;EW;date;depth m;cond;batt;record"
    rows = [f"65.45{i};N;0.51{i};W;2019062212323{i};{i}.25;{410 + i}.5;12.{i};{i}" for i in range(6)]
    Path("log.csv").write_text("\n".join([*above, names, *rows, names, *rows]) + "\n")
    table = open_table(Path("log.csv"))
    assert len(table) == 12
    assert [note for note in table.notes if "N (line" in note] == []


def test_a_word_among_the_letters_of_sides_changes_no_side():
    rows = [f"47.{i}31;S;8.{i}52;W;{5 + i}.5" for i in range(6)]
    Path("log.csv").write_text("\n".join(["lat;NS;lon;EW;chl", *rows, "47.25;x;8.25;W;7.5"]) + "\n")
    with pytest.raises(InputError, match="'x' stands beside a latitude"):
        read_degrees(open_table(Path("log.csv")), "lat", "latitude")


def test_readings_above_other_names_are_no_rows_of_statistics():
    first = [f"2023-12-{i:02}T10:28:04Z,{i}.5,40.{i:02},N,63.{i:02},W" for i in range(1, 25)]
    second = [f"{i}.5,2024-01-{i:02}T10:28:04Z,63.{i:02},W,40.{i:02},N" for i in range(1, 25)]
    names = ["time,chl,lat,NS,lon,EW", "chl,time,lon,EW,lat,NS"]
    Path("log.csv").write_text("\n".join([names[0], *first, names[1], *second]) + "\n")
    with pytest.raises(InputError):
        open_table(Path("log.csv"))
