"""Exports, read back by other libraries, agree with the record."""

import csv
import json
import shutil
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import shapely
import xarray
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap.records import Schema
from mcap_protobuf.decoder import DecoderFactory
from scipy.spatial.transform import Rotation

import fieldbo
from fieldbo.agent.agent import Agent
from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.domain.frame import Frame, Origin
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.messages import GoHome, Lost, Observation, Query, Rejected, Telemetry
from fieldbo.policies.baselines import Random
from fieldbo.record.record import Record
from fieldbo.record.store import ORDERS
from fieldbo.runs.export import FORMATS, Recorded, export, raster, read_run, vector
from fieldbo.runs.export import log as export_log
from fieldbo.runs.export.log import Places
from fieldbo.runs.export.placement import Placement
from fieldbo.runs.folder import begin
from fieldbo.runs.runner import run
from fieldbo.testing import small_mission
from fieldbo.vehicles.base import Simulated

ORIGIN = {"latitude": 47.31, "longitude": 8.58, "altitude": 406.0}
FRAME = {"origin": ORIGIN, "bearing": 60.0, "along": "along", "depth": "depth"}
GROUND = Frame(Origin(**ORIGIN), 60.0, along="along", depth="depth").over(
    [Axis("along", "m", 0, 1400), Axis("depth", "m", 0, 18, "down")]
)
MILLIMETRE = 1e-3
ANYWHERE = [name for name in FORMATS if name not in ("geotiff", "contours", "gpkg")]  # those need a map


class Eventful(Simulated):
    """A boat with every kind of event: parts, readings under way, rejections, losses, repetitions."""

    def events(self, timeout_s):
        return [changed for event in super().events(timeout_s) for changed in self.change(event)]

    def outcome(self, order):
        """It forgets its answers."""

    def change(self, event):
        match int(event.order.rsplit("/", 1)[1]):
            case 2:
                return [Rejected(event.order, "shallow water")]
            case 3:
                half = replace(event, cost=event.cost / 2)
                none = {
                    name: getattr(event, name)[:0]
                    for name in ("sites", "values", "noise_variances", "times_s")
                }
                first = replace(half, last=False, time_s=float(event.times_s[0]) - 1, **none)
                return [first, replace(half, part=1)]
            case 4:
                on_the_way = event.sites - [[0.0, 0.25]]
                return [
                    replace(
                        event,
                        sites=np.concatenate([on_the_way, event.sites]),
                        values=[np.nan, *event.values],
                        noise_variances=np.repeat(event.noise_variances, 2),
                        times_s=[float(event.times_s[0]) - 2, *event.times_s],
                        channels={"turbidity": [3.5, np.nan]},
                    )
                ]
            case 5:
                return [event, event]
            case 6:
                time_s = float(event.times_s[0])
                return [Lost(event.order, "no link"), Telemetry(0, event.position, 700.0, time_s)]
            case _:
                return [event]


def made(folder, mission, overrides, vehicle=Simulated, vehicles=(), on_step=None):
    """Run a mission in a run folder, as the command line does."""
    loaded = fieldbo.load_mission(mission, overrides)
    folder, record = begin(loaded, folder, vehicles)
    with record:
        result = run(loaded, [vehicle(loaded)], record, on_step)
    result.save(folder)
    return folder


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A run on the lake with a vehicle whose frame is known."""
    folder = tmp_path_factory.mktemp("lake") / "lake-1"
    overrides = {"agent": {"battery": 900, "home": [0, 0]}, "model": {"learn": False}}
    return made(folder, "lake-level-set", overrides, Eventful, [{"link": {}, "frame": FRAME}])


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """A run of a factory cell with free variables."""
    few = {"agent": {"max_steps": 12}, "model": {"learn": False}}
    return made(tmp_path_factory.mktemp("cell") / "cell-1", "cell-growth", {**few, "policy": {"kind": "etc"}})


@dataclass
class Log:
    """Times and messages of a log by topic, as read by another library."""

    times: dict
    messages: dict
    schemas: dict
    order: list


def read_log(file):
    times, messages, schemas, order = defaultdict(list), defaultdict(list), {}, []
    with file.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            topic = channel.topic
            if channel.message_encoding == "json":
                decoded = json.loads(message.data)
                schemas[topic] = json.loads(schema.data)
            else:
                decoded = DecoderFactory().decoder_for("protobuf", schema)(message.data)
                schemas[topic] = schema.name
            times[topic].append(message.log_time)
            messages[topic].append(decoded)
            order.append(message.log_time)
        counted = reader.get_summary().statistics
    assert counted.message_count == len(order)
    return Log(times, messages, schemas, order)


@pytest.fixture(scope="module")
def log(lake, tmp_path_factory):
    (file,) = export(lake, ["mcap"], tmp_path_factory.mktemp("log"))
    return read_log(file)


@pytest.fixture(scope="module")
def recorded(lake):
    return read_run(lake)


def collection(file):
    """The features of a file, checked against RFC 7946."""
    whole = json.loads(file.read_text(encoding="utf-8"))
    assert whole["type"] == "FeatureCollection"
    assert "crs" not in whole
    for feature in whole["features"]:
        assert feature["type"] == "Feature"
        assert isinstance(feature["properties"], dict)
        shape = shapely.geometry.shape(feature["geometry"])
        assert shape.is_valid
        assert shape.has_z
        west, south, east, north = shape.bounds
        assert -180 <= west <= east <= 180
        assert -90 <= south <= north <= 90
    return whole["features"]


def sites_of(features):
    """The sites of points in the domain, by the frame."""
    positions = np.array([feature["geometry"]["coordinates"] for feature in features])
    return GROUND.from_geodetic(positions[:, [1, 0, 2]])


# -- tables and maps -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lake", "cell"])
def test_exported_tables_and_maps_equal_those_of_the_run_folder(name, request, tmp_path):
    folder = request.getfixturevalue(name)

    files = export(folder, ["csv", "netcdf"], tmp_path / "out")

    same = {"observations.csv", "path.csv", "curve.csv", "ledger.csv", "map.nc"}
    assert {file.name for file in files} == {*same, "trajectory.nc"}
    for file in same:
        assert (tmp_path / "out" / file).read_bytes() == (folder / file).read_bytes()


def test_a_trajectory_holds_the_readings_with_time_and_place(lake, recorded, tmp_path):
    export(lake, ["netcdf"], tmp_path)

    with xarray.open_dataset(tmp_path / "trajectory.nc", engine="scipy") as data:
        data.load()
    result = recorded.result
    assert data.attrs["featureType"] == "trajectory"
    assert data["trajectory"].attrs["cf_role"] == "trajectory_id"
    assert data["trajectory"].item() == b"lake-1" or data["trajectory"].item() == "lake-1"
    np.testing.assert_array_equal(np.stack([data["along"], data["depth"]], axis=1), result.sites)
    np.testing.assert_array_equal(data["value"], result.values)
    degrees = np.stack([data[name] for name in ("latitude", "longitude", "altitude")], axis=1)
    np.testing.assert_allclose(GROUND.from_geodetic(degrees), result.sites, atol=MILLIMETRE)
    seconds = np.concatenate([o.times_s for o in result.observations])
    began = np.datetime64(recorded.began.replace(tzinfo=None))
    np.testing.assert_allclose((data["time"].values - began) / np.timedelta64(1, "s"), seconds, atol=1e-3)
    assert data["turbidity"].values[np.isfinite(data["turbidity"])].tolist() == [3.5]
    assert data["value"].attrs["units"] == "mg m-3"
    assert data["depth"].attrs["positive"] == "down"


def test_the_trajectory_of_a_cell_has_settings_and_no_degrees(cell, tmp_path):
    export(cell, ["netcdf"], tmp_path)

    with xarray.open_dataset(tmp_path / "trajectory.nc", engine="scipy") as data:
        assert {"calcium", "boron", "ammonium", "potassium", "pH"} <= set(data.coords)
        assert "latitude" not in data
        assert data.sizes["obs"] == len(read_run(cell).result.values)


# -- GeoJSON ---------------------------------------------------------------------------------------------


def test_geojson_has_path_readings_and_map_at_their_positions(lake, recorded, tmp_path):
    export(lake, ["geojson"], tmp_path)
    result = recorded.result

    (path,) = collection(tmp_path / "path.geojson")
    way = np.array(path["geometry"]["coordinates"])
    assert path["geometry"]["type"] == "LineString"
    np.testing.assert_allclose(GROUND.from_geodetic(way[:, [1, 0, 2]]), result.path, atol=MILLIMETRE)

    readings = collection(tmp_path / "readings.geojson")
    np.testing.assert_allclose(sites_of(readings), result.sites, atol=MILLIMETRE)
    header, rows = result.readings()
    for feature, row in zip(readings, rows, strict=True):
        said = feature["properties"]
        expected = {
            k: None if isinstance(v, float) and np.isnan(v) else v for k, v in zip(header, row, strict=True)
        }
        assert {k: said[k] for k in header} == expected
        when = recorded.began + timedelta(seconds=float(said["time_s"]))
        assert said["time"] == when.isoformat(timespec="milliseconds")

    sites = collection(tmp_path / "map.geojson")
    np.testing.assert_allclose(sites_of(sites), recorded.mission.world.domain.sites, atol=MILLIMETRE)
    expected = np.where(result.answer.not_inspected, 2, result.answer.above)
    np.testing.assert_array_equal([item["properties"]["class"] for item in sites], expected)
    sure = result.answer.surface.exceedance(result.answer.threshold)
    assert [item["properties"]["exceedance"] for item in sites] == sure.tolist()


def test_a_frame_file_takes_precedence_over_the_frame_of_the_vehicle(lake, tmp_path):
    file = tmp_path / "frame.toml"
    file.write_text(
        '[link]\nkind = "any"\n[frame]\norigin = { latitude = -33.0, longitude = 18.4 }\n'
        'along = "along"\ndepth = "depth"\n'
    )

    export(lake, ["geojson"], tmp_path / "out", file)

    first = collection(tmp_path / "out" / "readings.geojson")[0]
    assert first["geometry"]["coordinates"] == [18.4, -33.0, 0.0]


@pytest.mark.slow
def test_geojson_without_a_frame_is_an_error_with_an_example(tmp_path):
    folder = made(tmp_path / "run", "lake-level-set", {"agent": {"battery": 60}})

    with pytest.raises(InputError, match="on the ground is unknown") as error:
        export(folder, ["csv", "geojson"])

    assert not (folder / "export").exists(), "half an export was written"
    table = str(error.value).split("with a table such as")[1]
    file = tmp_path / "frame.toml"
    file.write_text(table)
    assert len(export(folder, ["csv", "geojson"], frame=file)) == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[link]\n", r"there is no \[frame\]"),
        ('[frame]\nalong = "along"\n', "'depth' has no direction"),
        ('[frame]\nalong = "along"\ndept = "depth"\n', "did you mean 'depth'"),
        ('[frame]\nalong = "along"\ndepth = "depth"\n', "on the ground is unknown"),
    ],
)
def test_an_invalid_frame_is_an_error(lake, tmp_path, text, said):
    (tmp_path / "frame.toml").write_text(text)

    with pytest.raises(InputError, match=said):
        export(lake, ["geojson"], tmp_path / "out", tmp_path / "frame.toml")


def test_geojson_of_a_factory_cell_is_an_error(cell, tmp_path):
    with pytest.raises(InputError, match=r"(?s)GeoJSON needs places.*export the run to csv, netcdf or mcap"):
        export(cell, ["geojson"], tmp_path)


class Named(Simulated):
    """A vehicle whose channels have the names of other columns."""

    def events(self, timeout_s):
        named = dict.fromkeys(["value", "along", "along channel", "time_s", "cost", "noise_sd", "time", "ph"])
        channels = {name: [-float(k)] for k, name in enumerate(named)}
        return [
            replace(event, channels=channels)
            if isinstance(event, Observation) and len(event.values)
            else event
            for event in super().events(timeout_s)
        ]


@pytest.mark.slow
def test_a_channel_named_like_a_column_does_not_replace_it(tmp_path):
    vehicle = {"link": {}, "frame": FRAME}
    folder = made(tmp_path / "run", "lake-level-set", {"agent": {"battery": 60}}, Named, [vehicle])
    recorded = read_run(folder)
    result = recorded.result
    files = {file.name: file for file in export(folder, ["csv", "geojson", "netcdf"])}

    header, *rows = csv.reader(files["observations.csv"].read_text().splitlines())
    assert len(header) == len(set(header))
    assert rows
    for said, row, value, site in zip(
        collection(files["readings.geojson"]), rows, result.values, result.sites, strict=True
    ):
        of = dict(zip(header, row, strict=True))
        assert float(of["value"]) == said["properties"]["value"] == value
        assert float(of["along"]) == said["properties"]["along"] == site[0]
        assert float(of["time_s"]) == said["properties"]["time_s"] > 0
        when = recorded.began + timedelta(seconds=float(of["time_s"]))
        assert said["properties"]["time"] == when.isoformat(timespec="milliseconds")
        channels = ["value channel", "along channel", "along channel channel", "time_s channel"]
        channels += ["cost channel", "noise_sd channel", "time channel", "ph"]
        assert sorted(float(of[name]) for name in channels) == [-float(k) for k in range(7, -1, -1)]
        assert sorted(said["properties"][name] for name in channels) == [-float(k) for k in range(7, -1, -1)]
    with xarray.open_dataset(files["trajectory.nc"], engine="scipy") as data:
        np.testing.assert_array_equal(data["value"], result.values)
        np.testing.assert_array_equal(data["along"], result.sites[:, 0])
        assert set(data["value_channel"].values) == {0.0}


def test_an_axis_named_like_a_column_does_not_replace_it(tmp_path):
    axes = [Axis("value", "m", 0.0, 9.0), Axis("cost", "m", 0.0, 9.0)]
    small = small_mission(Random(), battery=20.0)
    mission = replace(small, world=replace(small.world, domain=Domain.grid(axes, small.world.domain.shape)))
    result = fieldbo.run(mission)

    header, rows = result.readings()

    assert header == ["order", "value axis", "cost axis", "value", "noise_sd", "time_s", "cost"]
    assert [row[1:4] for row in rows] == [[*s, v] for s, v in zip(result.sites, result.values, strict=True)]


def test_each_vehicle_has_a_path(tmp_path):
    single = small_mission(Random(), battery=30.0)
    far = single.world.domain.sites[-1]
    mission = replace(single, vehicles=(single.vehicles[0], replace(single.vehicles[0], start=far, home=far)))
    with Record.create(tmp_path / "run.sqlite", "r", {}) as record:
        result = fieldbo.run(mission, record=record)
        rows, began = tuple(record.rows()), datetime.fromisoformat(record.begun_utc)
    frame = replace(Frame.usual(mission.world.domain.axes), origin=Origin(**ORIGIN))
    recorded = Recorded(tmp_path, mission, "r", began, rows, frame)

    for name, content in (vector.encode_geojson(recorded) | raster.encode_netcdf(recorded)).items():
        (tmp_path / name).write_bytes(content)

    of = {query.id: query.vehicle for query in result.queries}
    paths = collection(tmp_path / "path.geojson")
    assert [path["properties"]["vehicle"] for path in paths] == [0, 1]
    assert sum(path["properties"]["cost"] for path in paths) == pytest.approx(result.cost)
    readings = collection(tmp_path / "readings.geojson")
    assert [item["properties"]["vehicle"] for item in readings] == [
        of[o.order] for o in result.observations for _ in o.values
    ]
    for number, path in enumerate(paths):
        way = [tuple(place) for place in path["geometry"]["coordinates"]]
        own = {
            tuple(item["geometry"]["coordinates"])
            for item in readings
            if item["properties"]["vehicle"] == number
        }
        (home,) = Placement(mission.world.domain, recorded.ground).degrees(mission.vehicles[number].start)
        assert way[0] == way[-1] == tuple(home)
        assert set(way) == {tuple(home), *own}
    with xarray.open_dataset(tmp_path / "trajectory.nc", engine="scipy") as data:
        assert data["vehicle"].values.tolist() == [of[o.order] for o in result.observations for _ in o.values]


# -- logs ------------------------------------------------------------------------------------------------


def test_each_order_of_the_record_is_a_goal(log, recorded):
    orders = [row.message for row in recorded.rows if row.kind in ORDERS]

    assert [item["order"] for item in log.messages["/goal"]] == [item.id for item in orders]
    assert [item["kind"] for item in log.messages["/goal"]][-1] == "go-home"
    places = [[item["site"]["along"], item["site"]["depth"]] for item in log.messages["/goal"]]
    np.testing.assert_array_equal(places, [item.site for item in orders])
    np.testing.assert_allclose(local(log, "/goal/pose"), GROUND.local(places), atol=MILLIMETRE)


def test_each_other_row_of_the_record_is_an_event(log, recorded):
    others = [row for row in recorded.rows if row.kind not in ORDERS]

    kinds = Counter(row.kind for row in others)
    assert {"observation", "rejected", "lost", "telemetry", "end"} <= set(kinds)
    for said, row in zip(log.messages["/event"], others, strict=True):
        assert (said["seq"], said["kind"], said["time_utc"]) == (row.seq, row.kind, row.time_utc)
        assert said.get("order") == row.order
        assert said["body"] == row.body.get("message", said["body"])


def test_each_reading_occurs_once_with_its_time(log, recorded):
    result = recorded.result
    readings = log.messages["/reading"]

    assert len(readings) == len(result.values)
    values = [item.get("value", np.nan) for item in readings]
    np.testing.assert_array_equal(values, result.values)
    places = [[item["site"]["along"], item["site"]["depth"]] for item in readings]
    np.testing.assert_array_equal(places, result.sites)
    seconds = np.array([item["time_s"] for item in readings])
    np.testing.assert_array_equal(seconds, np.concatenate([o.times_s for o in result.observations]))
    began = round(recorded.began.timestamp() * 1000) * 1_000_000
    np.testing.assert_allclose(np.array(log.times["/reading"]) - began, seconds * 1e9, atol=1)
    assert [item["channels"] for item in readings if item["channels"]] == [{"turbidity": 3.5}]


def test_poses_and_fixes_follow_the_vehicle(log, recorded):
    """One pose per reading, and per part or telemetry with another position."""
    events = [e for e in recorded.result.observations if len(e.values) == 0]
    heard = [row for row in recorded.rows if row.kind == "telemetry"]
    assert len(log.messages["/pose"]) == len(recorded.result.values) + len(events) + len(heard)
    assert len(log.messages["/fix"]) == len(log.messages["/pose"])

    places = local(log, "/pose")
    fixes = [[fix.latitude, fix.longitude, fix.altitude] for fix in log.messages["/fix"]]
    np.testing.assert_allclose(GROUND.local(GROUND.from_geodetic(fixes)), places, atol=MILLIMETRE)
    read = {tuple(np.round(place, 6)) for place in GROUND.local(recorded.result.sites)}
    assert read <= {tuple(np.round(place, 6)) for place in places}
    for pose, when in zip(log.messages["/pose"], log.times["/pose"], strict=True):
        assert pose.timestamp.seconds * 10**9 + pose.timestamp.nanos == when


def test_the_battery_equals_that_of_the_ledger(log, recorded):
    books = recorded.result.accounts[0]
    last = log.messages["/battery"][-1]

    assert (last["remaining"], last["spent"], last["unit"]) == (books.left, books.spent, "s")
    assert [item["reported"] for item in log.messages["/battery"] if "reported" in item] == [700.0]
    spent = [item["spent"] for item in log.messages["/battery"]]
    assert spent == sorted(spent)
    told_of = {entry.left for _, entry, _ in books.lines if np.isfinite(entry.left)}
    assert told_of <= {item["remaining"] for item in log.messages["/battery"]} | {900.0}


def test_the_times_of_a_log_never_decrease(log):
    assert log.order == sorted(log.order)


def test_messages_match_the_schemas_in_the_log(log):
    """Viewers require a single type per field, and properties for objects."""
    for topic in ("/goal", "/reading", "/battery", "/event"):
        schema = log.schemas[topic]
        assert_plain(schema)
        for message in log.messages[topic]:
            jsonschema.validate(message, schema)
    named = {topic: schema for topic, schema in log.schemas.items() if isinstance(schema, str)}
    assert named == {
        "/goal/pose": "foxglove.PoseInFrame",
        "/goal/route": "foxglove.PosesInFrame",
        "/pose": "foxglove.PoseInFrame",
        "/fix": "foxglove.LocationFix",
        "/belief": "foxglove.Grid",
    }


def assert_plain(schema):
    assert schema["type"] in ("object", "array", "string", "number", "integer", "boolean")
    if schema["type"] == "array":
        assert_plain(schema["items"])
    if schema["type"] == "object":
        for item in schema["properties"].values():
            assert_plain(item)


def local(log, topic):
    """The positions of poses."""
    points = [message.pose.position for message in log.messages[topic]]
    return np.array([[point.x, point.y, point.z] for point in points])


def cells(grid):
    """Centres (n, 3) and layers (n, fields) of grid cells, in the order of the bytes."""
    pose = grid.pose
    turned = Rotation.from_quat([getattr(pose.orientation, axis) for axis in "xyzw"])
    layers = np.frombuffer(grid.data, "<f4").reshape(-1, grid.column_count, len(grid.fields))
    assert grid.cell_stride == 4 * len(grid.fields)
    assert grid.row_stride == grid.column_count * grid.cell_stride
    row, column = np.indices(layers.shape[:2])
    x, y = (column + 0.5) * grid.cell_size.x, (row + 0.5) * grid.cell_size.y
    flat = np.stack([x, y, np.zeros_like(x)], axis=-1).reshape(-1, 3)
    corner = [getattr(pose.position, axis) for axis in "xyz"]
    return turned.apply(flat) + corner, layers.reshape(-1, len(grid.fields))


def by_place(places, layers):
    """Rows sorted by position."""
    places = np.round(places, 3) + 0.0
    order = np.lexsort(places.T)
    return places[order], np.asarray(layers)[order]


def test_the_last_belief_is_the_map(log, recorded):
    grid = log.messages["/belief"][-1]
    maps = recorded.result.maps()
    names = [field.name for field in grid.fields]

    places, layers = by_place(*cells(grid))

    expected = np.stack([maps[name].values.ravel() for name in names], axis=1)
    sites, expected = by_place(GROUND.local(recorded.mission.world.domain.sites), expected)
    assert names == ["mean", "sd", "exceedance"]
    np.testing.assert_allclose(places, sites, atol=2 * MILLIMETRE)
    np.testing.assert_allclose(layers, expected, rtol=1e-5, atol=1e-6)


def test_each_belief_equals_that_of_the_agent_at_the_time(log, recorded):
    """An agent with the same events has the same belief after each order."""
    agent = Agent(recorded.mission, recorded.name)
    believed = []
    for row in recorded.rows:
        message = row.message if row.kind not in ("stop", "end") else None
        if isinstance(message, Query | GoHome):
            agent.replay(message, row.body["memory"], row.body["why"])
        elif message is not None:
            before = len(agent.history)
            agent.tell(message)
            read = isinstance(message, Observation) and message.last and len(message.values)
            if read and len(agent.history) > before:
                surface, scale = agent.stated
                believed.append(scale.to_user(surface.mean))

    grids = log.messages["/belief"]
    assert len(grids) in (len(believed), len(believed) + 1)
    domain = recorded.mission.world.domain
    for grid, mean in zip(grids, believed, strict=False):
        _, layers = by_place(*cells(grid))
        _, expected = by_place(GROUND.local(domain.sites), mean[:, None])
        np.testing.assert_allclose(layers[:, 0], expected[:, 0], rtol=1e-5, atol=1e-6)


def test_the_number_of_beliefs_in_a_long_run_is_limited(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(export_log, "_MOST_BELIEFS", 4)

    (file,) = export(lake, ["mcap"], tmp_path)

    assert 2 <= len(read_log(file).messages["/belief"]) <= 5


LAYOUTS = [
    ({"along": "a", "left": "b"}, "left"),
    ({"along": "a", "right": "b"}, "right"),
    ({"along": "b", "left": "a"}, "swapped"),
    ({"along": "a", "height": "b"}, "wall"),
    ({"along": "a", "depth": "b"}, "transect"),
    ({"depth": "a", "right": "b"}, "depth first"),
]


@given(
    layout=st.sampled_from(LAYOUTS),
    bearing=st.floats(0, 360),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    data=st.data(),
)
def test_grid_cells_are_centred_on_their_sites_for_any_orientation(layout, bearing, shape, data):
    domain = Domain.grid([Axis("a", "m", -3, 12), Axis("b", "m", 1, 5)], shape)
    kept = data.draw(st.lists(st.booleans(), min_size=domain.size, max_size=domain.size))
    if any(kept):
        domain = domain.restricted(np.array(kept))
    ground = Frame(bearing=bearing, **layout[0]).over(domain.axes)
    values = np.arange(1.0, domain.size + 1)

    message = Places(domain, ground).belief({"mean": values}, export_log._stamp(7))

    places, layers = cells(decoded(message))
    defined = np.isfinite(layers[:, 0])
    assert defined.sum() == domain.size
    if min(shape) > 1:  # a lone site of an axis may be anywhere on it
        found = by_place(places[defined], layers[defined])
        expected = by_place(ground.local(domain.sites), values[:, None])
        np.testing.assert_allclose(found[1], expected[1])
        np.testing.assert_allclose(found[0], expected[0], atol=2 * MILLIMETRE)


def decoded(message):
    schema = type(message).get_schema()
    return DecoderFactory().decoder_for("protobuf", Schema(1, schema.data, schema.encoding, schema.name))(
        message.encode()
    )


@pytest.mark.parametrize(
    "domain",
    [
        Domain.box([Axis("x", "m", 1e5, 1e5 + 20), Axis("y", "m", 0, 30)], 16),
        Domain.grid([Axis("x", "m", 0, 9)], (4,)),
        Domain.grid([Axis("x", "m", 0, 9), Axis("y", "m", 0, 9), Axis("height", "m", 0, 9)], (2, 3, 2)),
    ],
    ids=["box", "line", "space"],
)
def test_sites_that_are_not_a_plane_grid_become_a_point_cloud(domain):
    ground = Frame.usual(domain.axes).over(domain.axes)
    mean, sd = np.arange(domain.size) + 0.5, np.full(domain.size, 0.25)

    cloud = decoded(Places(domain, ground).belief({"mean": mean, "sd": sd}, export_log._stamp(7)))

    assert [field.name for field in cloud.fields] == ["x", "y", "z", "mean", "sd"]
    rows = np.frombuffer(cloud.data, "<f4").reshape(domain.size, -1)
    corner = [cloud.pose.position.x, cloud.pose.position.y, cloud.pose.position.z]
    np.testing.assert_allclose(rows[:, :3] + corner, ground.local(domain.sites), atol=MILLIMETRE)
    np.testing.assert_allclose(rows[:, 3:], np.stack([mean, sd], axis=1))


def test_a_factory_cell_has_settings_but_no_poses_and_no_belief(cell, tmp_path):
    (file,) = export(cell, ["mcap"], tmp_path)

    log, recorded = read_log(file), read_run(cell)
    assert set(log.messages) == {"/goal", "/reading", "/setting", "/battery", "/event"}
    names = [axis.name for axis in recorded.mission.world.domain.axes]
    settings = [[item["setting"][name] for name in names] for item in log.messages["/setting"]]
    np.testing.assert_array_equal(settings, recorded.result.sites)
    for goal, query in zip(log.messages["/goal"], recorded.result.queries, strict=True):
        controls = np.ones(len(names), dtype=bool) if query.controls is None else query.controls
        assert list(goal["site"]) == [name for name, on in zip(names, controls, strict=True) if on]
    assert any(len(goal["site"]) < len(names) for goal in log.messages["/goal"]), "nothing was left free"
    for topic, messages in log.messages.items():
        for message in messages:
            jsonschema.validate(message, log.schemas[topic])


@pytest.mark.slow
def test_a_world_in_metres_needs_no_frame_for_a_log(tmp_path):
    folder = made(tmp_path / "run", "wall-damage-map", {"agent": {"battery": 20}})

    (file,) = export(folder, ["mcap"])

    log, result = read_log(file), read_run(folder).result
    assert "/fix" not in log.messages
    along, height = result.sites[:, 0], result.sites[:, 1]
    poses = {tuple(place) for place in local(log, "/pose").tolist()}
    assert set(zip(along, np.zeros(len(along)), height, strict=True)) <= poses


# -- when, and what is left alone ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_can_be_exported_in_progress_and_after_a_crash(tmp_path):
    folder, frame = tmp_path / "run", tmp_path / "frame.toml"
    frame.write_text('[frame]\norigin = { latitude = 47, longitude = 8 }\nalong = "along"\ndepth = "depth"\n')

    def look(step):
        if step.step != 3:
            return
        before = digests(folder)
        export(folder, ANYWHERE, tmp_path / "live", frame)
        assert digests(folder) == before
        shutil.copytree(folder, tmp_path / "crashed")

    made(folder, "lake-level-set", {"agent": {"battery": 300}}, on_step=look)
    export(tmp_path / "crashed", ANYWHERE, frame=frame)

    for place in (tmp_path / "live", tmp_path / "crashed" / "export"):
        assert len(collection(place / "readings.geojson")) == 3
        assert len(read_log(place / "run.mcap").messages["/reading"]) == 3
        assert (place / "curve.csv").read_text().count("\n") == 4
    assert read_run(tmp_path / "crashed").result.end_reason is None


def digests(folder):
    return {file: sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file()}


def test_a_run_without_readings_can_be_exported(tmp_path):
    mission = fieldbo.load_mission("lake-level-set")
    folder, record = begin(mission, tmp_path / "run", [{"frame": FRAME}])
    with record:
        with pytest.raises(InputError, match="the record of run is empty"):
            export(folder, ["csv"])
        record.order(Agent(mission, "run").ask())

    files = export(folder, ANYWHERE)

    assert {file.suffix for file in files} == {".csv", ".nc", ".geojson", ".gpx", ".kml", ".mcap", ".png"}
    assert collection(folder / "export" / "readings.geojson") == []
    (path,) = collection(folder / "export" / "path.geojson")
    assert path["geometry"]["type"] == "Point"
    with xarray.open_dataset(folder / "export" / "trajectory.nc", engine="scipy") as data:
        assert data.sizes["obs"] == 0
    assert set(read_log(folder / "export" / "run.mcap").messages) == {"/goal", "/goal/pose"}


def test_existing_files_are_only_replaced_on_request(lake, tmp_path):
    (tmp_path / "path.csv").write_text("mine")

    with pytest.raises(InputError, match=r"(?s)already holds path\.csv.*--replace"):
        export(lake, ["csv"], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["path.csv"]

    export(lake, ["csv"], tmp_path, replace=True)
    assert (tmp_path / "path.csv").read_bytes() == (lake / "path.csv").read_bytes()


def test_a_file_as_output_folder_is_an_error(lake, tmp_path):
    (tmp_path / "out").write_text("")

    with pytest.raises(InputError, match="can't be written"):
        export(lake, ["csv"], tmp_path / "out")


def test_an_unknown_format_is_an_error_with_the_nearest_name(lake):
    with pytest.raises(UnknownNameError, match="did you mean 'netcdf'"):
        export(lake, ["csv", "netcfd"])


def test_a_missing_mcap_library_is_an_error_with_the_install_command(lake, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "foxglove", None)

    with pytest.raises(InputError, match=r"fieldbo\[mcap\]"):
        export(lake, ["mcap"], tmp_path)


def test_the_command_takes_a_run_name_and_prints_the_files(lake, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    shutil.copytree(lake, Path("runs") / "lake-1")

    lines = said("export", "lake-1", "csv", "mcap").split()

    assert [Path(line).name for line in lines][-1] == "run.mcap"
    assert all(Path(line).is_file() for line in lines)
    assert Path(lines[0]).parent == Path("runs/lake-1/export")


def test_the_command_reports_an_error_in_one_message(lake, command, tmp_path):
    code, out, err = command("export", lake.parent / "lake-2", "csv")

    assert (code, out) == (2, "")
    assert "there is no run" in err
