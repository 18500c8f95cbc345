"""Vehicle files: their content, what `new vehicle` writes, and how `check` and `schema` treat them."""

import json
import tomllib

import pytest
from jsonschema import Draft202012Validator
from working_folder import write

import fieldbo
from fieldbo.errors import InputError, UnknownNameError, errors_of
from fieldbo.vehicles.base import LINKS
from fieldbo.vehicles.file import LoadedVehicleFile, proposed, template
from fieldbo.vehicles.load import check_new, check_tolerances, load_vehicle, recorded_settings, vehicle_of
from fieldbo.vehicles.remote.link import Link
from fieldbo.vehicles.remote.settings import vehicle_schema

WORLDS = ("lake-transect", "crack-wall", "cell-growth")


@pytest.mark.parametrize("kind", LINKS.names())
def test_every_kind_of_link_is_a_value_with_an_address(kind):
    link = LINKS.get(kind)
    assert issubclass(link, Link)
    assert link() == link()
    assert isinstance(link().address, str)


@pytest.mark.parametrize("kind", LINKS.names())
@pytest.mark.parametrize("world", WORLDS)
def test_a_new_vehicle_file_states_every_setting_at_its_default(kind, world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = template(kind, fieldbo.load_world(world).domain, 'the "department\'s" boat')
    write("boat.toml", text)
    written, bare = LoadedVehicleFile.read("boat.toml"), LoadedVehicleFile.read(kind)
    assert written.link == bare.link
    assert written.settings.watch == bare.settings.watch
    assert written.settings.title == 'the "department\'s" boat'
    assert (written.settings.frame is None) == (world == "cell-growth")
    faults = list(Draft202012Validator(vehicle_schema()).iter_errors(tomllib.loads(text)))
    assert faults == []


@pytest.mark.parametrize("kind", LINKS.names())
def test_every_setting_of_a_link_has_a_description_in_the_schema(kind):
    (link,) = [
        option
        for option in vehicle_schema()["properties"]["link"]["oneOf"]
        if option["properties"]["kind"]["const"] == kind
    ]
    assert all(of.get("description") for name, of in link["properties"].items() if name != "kind")


def test_the_schema_is_json_with_the_bounds_of_each_setting():
    schema = vehicle_schema()
    json.dumps(schema, allow_nan=False)
    silence = schema["$defs"]["Watch"]["properties"]["silence_s"]
    assert silence["exclusiveMinimum"] == 0
    assert silence["description"].startswith("Watchdog")


def test_new_vehicle_writes_a_file_that_check_explains_and_never_overwrites_one(
    tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    code, out, _ = command("new", "vehicle", "boat", "--link", "mqtt", "--world", "lake-transect")
    assert (code, out.splitlines()[0]) == (0, "boat.toml")
    before = (tmp_path / "boat.toml").read_bytes()
    code, _, err = command("new", "vehicle", "boat", "--link", "mavlink", "--world", "lake-transect")
    assert (code, "boat.toml exists" in err) == (2, True)
    assert (tmp_path / "boat.toml").read_bytes() == before
    code, out, _ = command("check", "boat.toml")
    assert code == 0
    assert "mqtt://localhost:1883/fieldbo/robot" in out
    assert "5 s of silence" in out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[link]\nkind = 'mqtt'", "format is missing"),
        ("format = 1", "link is missing"),
        ("format = 1\n[link]\nhost = 'x'", "kind is missing"),
        ("format = 1\n[link]\nkind = 'mqt'", "did you mean 'mqtt'"),
        ("format = 1\n[link]\nkind = 'by-hand'", "unknown link"),
        ("format = 1\n[link]\nkind = 'mqtt'\nhots = 'x'", "did you mean 'host'"),
        ("format = 1\n[link]\nkind = 'mqtt'\n[watch]\nsilence_s = 0", "silence_s = 0"),
        ("format = 1\n[link]\nkind = 'mqtt'\n[watch]\nsilence = 3", "did you mean 'silence_s'"),
        ("format = 1\n[link]\nkind = 'mqtt'\n[reports]\nlow = 3\nhigh = 2", "low = 3"),
        ("format = 1\n[link]\nkind = 'mqtt'\n[reports]\naccuracy = [1, -1]", "accuracy"),
        ("format = 1\n[link]\nkind = 'mqtt'\n[battery]\nfull = -1", "full = -1"),
        ("format = 1\n[link]\nkind = 'mqtt'\n[frame]\nalong = 'x'\nleft = 'x'", ""),
    ],
)
def test_an_error_in_a_vehicle_file_names_its_place(text, message, tmp_path):
    write(tmp_path / "boat.toml", text)
    mission = fieldbo.load_mission("lake-level-set")
    with pytest.raises(InputError) as error:
        load_vehicle(str(tmp_path / "boat.toml"), mission)
    assert message in str(error.value)


def test_a_missing_file_is_an_error():
    with pytest.raises(InputError, match="the file does not exist"):
        LoadedVehicleFile.read("boat.toml")


def test_each_run_has_its_own_session_and_a_resumed_run_keeps_it():
    first, second = recorded_settings("mqtt"), recorded_settings("mqtt")
    assert first["session"] != second["session"]
    mission = fieldbo.load_mission("lake-level-set")
    assert vehicle_of(json.loads(json.dumps(first)), mission).session == first["session"]


def test_a_recorded_vehicle_of_an_unknown_kind_is_an_error():
    with pytest.raises(UnknownNameError):
        vehicle_of({"kind": "hovercraft"}, fieldbo.load_mission("lake-level-set"))


def test_by_hand_and_a_robot_together_are_an_error(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = command("run", "lake-level-set", "--by-hand", "--vehicle", "mqtt")
    assert code == 2
    assert "both --by-hand and --vehicle" in err
    assert list(tmp_path.iterdir()) == []


def test_files_in_a_link_are_relative_to_the_vehicle_file(tmp_path, monkeypatch):
    (tmp_path / "boats").mkdir()
    files = 'ca_file = "ca.pem"\ncert_file = "keys/boat.pem"\nkey_file = "/etc/boat.key"'
    write(tmp_path / "boats" / "boat.toml", f"format = 1\n[link]\nkind = 'mqtt'\ntls = true\n{files}")
    monkeypatch.chdir(tmp_path)

    link = LoadedVehicleFile.read("boats/boat.toml").link
    recorded = recorded_settings("boats/boat.toml")["link"]

    assert link.ca_file == recorded["ca_file"] == str(tmp_path / "boats" / "ca.pem")
    assert link.cert_file == str(tmp_path / "boats" / "keys" / "boat.pem")
    assert link.key_file == "/etc/boat.key"


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("cert_file = 'a.pem'", "cert_file is given without TLS"),
        ("tls = true\nkey_file = 'a.key'", "key_file is given without cert_file"),
    ],
)
def test_a_certificate_needs_tls_and_a_key_its_certificate(link, message, tmp_path):
    write(tmp_path / "boat.toml", f"format = 1\n[link]\nkind = 'mqtt'\n{link}")
    with pytest.raises(InputError, match=message):
        LoadedVehicleFile.read(str(tmp_path / "boat.toml"))


@pytest.mark.parametrize(
    ("link", "warning"),
    [
        ("", None),
        ("host = '127.0.0.1'", None),
        ("host = '10.0.0.7'", "anyone who can reach the broker at mqtt://10.0.0.7:1883 can command"),
        ("host = '10.0.0.7'\nuser_from = 'U'\npassword_from = 'P'", "in plain text: set tls = true"),
        ("host = '10.0.0.7'\nuser_from = 'U'\npassword_from = 'P'\ntls = true", None),
        ("host = '10.0.0.7'\ntls = true\ncert_file = 'boat.pem'", None),
    ],
)
def test_check_warns_of_a_broker_that_anyone_may_use(link, warning, tmp_path, command):
    write(tmp_path / "boat.toml", f"format = 1\n[link]\nkind = 'mqtt'\n{link}")
    code, out, _ = command("check", str(tmp_path / "boat.toml"))
    assert code == 0
    assert ("warning" in out) == (warning is not None)
    assert warning is None or warning in " ".join(out.split())


def test_to_go_home_when_the_planner_is_silent_the_vehicle_needs_a_home(tmp_path):
    write(tmp_path / "boat.toml", "format = 1\n[link]\nkind = 'mqtt'\n[watch]\nwhen_planner_silent = 'home'")
    with pytest.raises(InputError, match="has no home"):
        load_vehicle(str(tmp_path / "boat.toml"), fieldbo.load_mission("lake-level-set"))
    with_home = fieldbo.load_mission("lake-level-set", {"agent": {"home": [0, 0]}})
    load_vehicle(str(tmp_path / "boat.toml"), with_home)


# -- does a file fit a mission -----------------------------------------------------------------------------


def fits(tmp_path, mission, *tables):
    """Return the warnings of the check of a MAVLink vehicle file with these tables against a mission."""
    text = "\n".join(["format = 1", "[link]\nkind = 'mavlink'", *tables, "[battery]\nfull = 100000"])
    write(tmp_path / "boat.toml", text)
    return check_new(recorded_settings(str(tmp_path / "boat.toml")), mission)


NEAR = "[arrival]\nwithin = 0.1"


@pytest.mark.parametrize(
    ("mission", "accuracy", "message"),
    [
        ("lake-level-set", "0.3", None),
        ("lake-level-set", "0.5", "accuracy = 0.5, wider than the spacing of the sites along depth"),
        ("lake-level-set", "[5, 0.3]", None),
        ("lake-level-set", "[5, 0.5]", "the spacing of the sites along depth"),
        ("lake-level-set", "[0.1, 0.1, 0.1]", "accuracy has 3 numbers"),
        ("wall-damage-map", "0.15", None),
        ("wall-damage-map", "[0.1, 0.2]", "half of the clearance from obstacles and outline, 0.15 m"),
    ],
)
def test_positions_no_more_accurate_than_the_spacing_or_half_the_clearance_are_an_error(
    mission, accuracy, message, tmp_path
):
    mission = fieldbo.load_mission(mission)
    tables = (NEAR, f"[reports]\naccuracy = {accuracy}")
    if message is None:
        fits(tmp_path, mission, *tables)
        return
    with pytest.raises(InputError, match=r"reports\.accuracy") as error:
        fits(tmp_path, mission, *tables)
    assert message in str(error.value)


LAKE = "[frame]\nalong = 'along'\ndepth = 'depth'\norigin = {{ latitude = 47, longitude = 8, altitude = {} }}"


@pytest.mark.parametrize(("speed", "warns"), [(4.0, False), (3.7, False), (1.5, True), (5.0, True)])
def test_a_speed_other_than_the_costs_imply_is_a_warning(speed, warns, tmp_path):
    mission = fieldbo.load_mission("lake-level-set")
    warnings = fits(tmp_path, mission, f"speed = {speed}", LAKE.format(406), NEAR)
    message = f"speed = {speed:g} m/s in [link], but the world's costs imply 4 m/s"
    assert any(message in warning for warning in warnings) == warns


def test_the_speed_that_a_flights_costs_imply_is_its_cruising_speed(tmp_path):
    wall = fieldbo.load_mission("wall-damage-map")
    assert not any("speed" in warning for warning in fits(tmp_path, wall, "speed = 1.5", NEAR))
    assert any("imply 1.5 m/s" in warning for warning in fits(tmp_path, wall, "speed = 3", NEAR))


def test_costs_that_imply_no_speed_are_not_compared(tmp_path, monkeypatch):
    mission = fieldbo.load_mission("lake-level-set")
    for seconds in (0.0, float("inf"), float("nan")):
        monkeypatch.setattr(type(mission.world.cost), "travel_s", lambda *_, s=seconds: [s])
        assert fits(tmp_path, mission, "speed = 9", NEAR) == []


@pytest.mark.parametrize(
    ("link", "altitude", "warns"),
    [
        ("altitude = 'absolute'", 406, False),
        ("altitude = 'relative'", 406, True),
        ("altitude = 'relative'", 60, False),
        ("altitude = 'relative'\nvehicle = 'boat'", 60, True),
        ("altitude = 'relative'\nvehicle = 'boat'", 0, False),
    ],
)
def test_a_high_origin_of_altitudes_above_the_arming_place_is_a_warning(link, altitude, warns, tmp_path):
    mission = fieldbo.load_mission("lake-level-set")
    warnings = fits(tmp_path, mission, link, LAKE.format(altitude), NEAR)
    assert any(f"has an altitude of {altitude} m" in warning for warning in warnings) == warns


def test_the_error_for_a_missing_full_battery_names_the_file_or_how_to_write_one(tmp_path):
    mission = fieldbo.load_mission("lake-level-set")
    write(tmp_path / "boat.toml", "format = 1\n[link]\nkind = 'mavlink'\n" + NEAR)
    with pytest.raises(InputError, match=r"set full in \[battery\] of the vehicle file") as error:
        check_new(recorded_settings(str(tmp_path / "boat.toml")), mission)
    assert "for example full = 6000; fieldbo plan does not" in " ".join(str(error.value).split())
    assert "fieldbo new vehicle" not in str(error.value)
    with pytest.raises(InputError, match="fieldbo new vehicle NAME --link mavlink"):
        check_new(recorded_settings("mavlink"), mission)


def test_check_describes_battery_arrival_and_speed_of_a_vehicle(tmp_path, command):
    text = "format = 1\n[link]\nkind = 'mavlink'\nspeed = 1.5\n[arrival]\nwithin = 0.3\n[battery]\n"
    write(tmp_path / "boat.toml", text + "full = '2.5 h'")
    code, out, _ = command("check", str(tmp_path / "boat.toml"))
    assert code == 0
    assert "  battery   full: 2.5 h; reports accurate to 1 %\n" in out
    assert "  arrival   within 0.3 of the site on each axis; stays for the world's sampling time\n" in out
    assert "  speed     1.5 m/s in plans\n" in out
    assert "set full" not in out


def test_check_says_where_each_axis_points(tmp_path, command):
    frame = "[frame]\nbearing = 60\nalong = 'x'\nleft = 'y'\ndepth = 'z'"
    write(tmp_path / "boat.toml", f"format = 1\n[link]\nkind = 'mqtt'\n{frame}")
    _, out, _ = command("check", str(tmp_path / "boat.toml"))
    assert "  domain    x leads 60° (northeast), y leads 330° (northwest), z leads down\n" in out
    assert "  reports   positions are taken as reported; " in out


@pytest.mark.parametrize(("kind", "warns"), [("mavlink", True), ("mqtt", False)])
def test_check_of_a_vehicle_alone_warns_if_percentages_mean_nothing(kind, warns, tmp_path, command):
    write(tmp_path / "boat.toml", f"format = 1\n[link]\nkind = '{kind}'")
    _, out, _ = command("check", str(tmp_path / "boat.toml"))
    assert ("set full in [battery] before you use this vehicle" in " ".join(out.split())) == warns


# -- what a world tells ------------------------------------------------------------------------------------


QUESTION = '[question]\nkind = "level-set"\nthreshold = 0.3\n'


@pytest.mark.parametrize("kind", LINKS.names())
@pytest.mark.parametrize("name", ["wall-worst-crack", "lake-lawnmower", "lake-places-level-set"])
def test_the_tolerances_of_a_new_vehicle_file_fit_its_world(kind, name):
    mission = fieldbo.load_mission(name)
    text = template(kind, mission.world.domain, "", proposed(kind, mission.world))
    file = LoadedVehicleFile.of(tomllib.loads(text), "boat")
    assert not errors_of(lambda: check_tolerances(file, mission))
    assert file.settings.arrival.within <= 1.0


def test_a_new_vehicle_file_has_the_speed_and_the_type_that_the_costs_of_the_world_imply():
    wall = proposed("mavlink", fieldbo.load_world("crack-wall"))
    assert wall["link"] == {"speed": 1.5, "vehicle": "copter"}
    assert wall["arrival"] == {"within": 0.15}
    assert wall["reports"] == {"accuracy": 0.15}
    assert "altitude" in proposed("mavlink", fieldbo.load_world("lake-places"))["link"]
    assert proposed("mqtt", fieldbo.load_world("cell-growth")) == {"link": {}}


def test_the_file_for_the_wall_can_be_planned_at_once(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    code, out, err = command("new", "vehicle", "drone", "--link", "mavlink", "--world", "crack-wall")
    assert code == 0, err
    assert "stand_off" in out
    text = (tmp_path / "drone.toml").read_text()
    origin = "origin = { latitude = 47.3, longitude = 8.5, altitude = 400 }"
    (line,) = (row for row in text.splitlines() if row.startswith("# origin ="))
    write("drone.toml", text.replace(line, origin))
    lawnmower = '[policy]\nkind = "lawnmower"\nlines = 3\nsamples = 3\n'
    write(
        "wall-lawnmower.toml",
        f'format = 1\nworld = "crack-wall"\n[agent]\nbattery = 8\n{lawnmower}' + QUESTION,
    )
    code, _, err = command("plan", "wall-lawnmower.toml", "--vehicle", "drone.toml")
    assert code == 0, err
    plan = json.loads((tmp_path / "wall-lawnmower.plan").read_text())
    assert plan["mission"]["hoverSpeed"] == 1.5
    assert [line for line in err.splitlines() if "warning" in line and "return" not in line] == []


def test_check_names_all_that_does_not_fit_at_once(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    write(
        "drone.toml",
        """
        format = 1
        link = { kind = "mavlink", fence = { radius = 1 } }
        arrival = { within = 1.0 }
        reports = { accuracy = 1.0 }

        [frame]
        origin = { latitude = 47.3, longitude = 8.5, altitude = 400 }
        bearing = 90
        along = "along"
        height = "height"
        """,
    )
    code, _, err = command("check", "wall-worst-crack", "--vehicle", "drone.toml")
    assert code == 2
    assert "4 problems" in err
    said = " ".join(err.split())
    for part in (
        "its capacity is not given",
        "within = 1, wider than half of the clearance",
        "accuracy = 1, wider than half of the clearance",
        "where: vehicle: arrival.within",
        "where: link.fence",
    ):
        assert part in said
