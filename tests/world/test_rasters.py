"""Rasters of other programs: each is read as GDAL, xarray or the maker's own program reads it."""

import numpy as np
import pytest
import rasterio
import shapely
import xarray
from pyproj import CRS, Transformer
from rasterio.shutil import copy

from fieldbo.domain.axes import Axis
from fieldbo.domain.domain import Domain
from fieldbo.errors import InputError
from fieldbo.mission.bathymetry import check_deepest, read_bottom
from fieldbo.world.grids import copies_of, files_of
from fieldbo.world.raster import read_mean, read_raster

UTM = "EPSG:32633"
WEST, NORTH, CELL = 370_000.0, 5_913_000.0, 20.0
SHAPE = (12, 15)
DEPTHS = np.round(1.0 + np.add.outer(np.arange(12.0), 0.5 * np.arange(15.0)), 2)  # metres, north first
AFFINE = rasterio.transform.from_origin(WEST, NORTH, CELL, CELL)
X = WEST + CELL * (np.arange(15) + 0.5)
Y = NORTH - CELL * (np.arange(12) + 0.5)
PLACES = np.array([[X[3], Y[2]], [X[10], Y[7]], [0.5 * (X[4] + X[5]), Y[5]]])
EXPECTED = np.array([DEPTHS[2, 3], DEPTHS[7, 10], 0.5 * (DEPTHS[5, 4] + DEPTHS[5, 5])])


def write_tiff(
    path, values=DEPTHS, dtype="float32", count=1, transform=AFFINE, crs=UTM, after=None, **options
):
    with rasterio.open(
        path, "w", driver="GTiff", width=values.shape[1], height=values.shape[0], count=count, dtype=dtype,
        transform=transform, crs=crs, **options,
    ) as file:  # fmt: skip
        for band in range(1, count + 1):
            file.write(values.astype(dtype), band)
        if after is not None:
            after(file)
    return path


def sampled(path, places=PLACES[:2], band=1):
    """Return what rasterio reads at places, with scale and offset."""
    with rasterio.open(path) as file:
        raw = np.array([float(v[0]) for v in file.sample(places, indexes=band)])
        return raw * file.scales[band - 1] + file.offsets[band - 1]


def test_scale_and_offset_of_a_band_are_applied(tmp_path):
    def state(file):
        file.scales, file.offsets, file.units = (0.01,), (-5.0,), ("m",)

    raw = np.where(DEPTHS > 17, -32768, np.round((DEPTHS + 5.0) * 100))
    path = write_tiff(tmp_path / "cm.tif", raw, "int16", after=state, nodata=-32768)
    bottom = read_bottom(path, UTM)
    assert bottom.depth_at(PLACES) == pytest.approx(EXPECTED)
    assert bottom.depth_at(PLACES[:2]) == pytest.approx(sampled(path))
    assert np.isnan(bottom.depth_at([[X[-1], Y[-1]]]))[0]


def test_the_unit_of_a_band_is_converted_and_said(tmp_path):
    def state(file):
        file.units, file.descriptions = ("ft",), ("depth",)

    bottom = read_bottom(write_tiff(tmp_path / "ft.tif", DEPTHS / 0.3048, "float64", after=state), UTM)
    assert bottom.depth_at(PLACES) == pytest.approx(EXPECTED)
    assert "depths (called depth), converted from ft to m" in bottom.source


@pytest.mark.parametrize("way", ["mask", "alpha", "sidecar"])
def test_masked_cells_have_no_value(tmp_path, way):
    known = DEPTHS < 17
    path = tmp_path / "m.tif"
    if way == "alpha":
        size = {"width": 15, "height": 12, "count": 2, "dtype": "uint8", "transform": AFFINE, "crs": UTM}
        with rasterio.open(path, "w", driver="GTiff", **size) as file:
            file.write(DEPTHS.astype("uint8"), 1)
            file.write((255 * known).astype("uint8"), 2)
            file.colorinterp = (rasterio.enums.ColorInterp.gray, rasterio.enums.ColorInterp.alpha)
    else:
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=way == "mask"):
            write_tiff(path, after=lambda file: file.write_mask(known))
    raster = read_raster(path)
    assert np.array_equal(np.isfinite(raster.values), known[::-1])
    names = sorted(file.name for file in files_of(path))
    assert names == (["m.tif", "m.tif.msk"] if way == "sidecar" else ["m.tif"])
    for name, content in copies_of(path, "prior-mean").items():
        (tmp_path / name).write_bytes(content)
    again = read_raster(tmp_path / "prior-mean.tif")
    assert np.array_equal(again.values, raster.values, equal_nan=True)


@pytest.mark.parametrize("way", ["south-up", "quarter turn", "mirrored"])
def test_rows_and_columns_may_run_either_way(tmp_path, way):
    values, affine = {
        "south-up": (DEPTHS[::-1], rasterio.Affine(CELL, 0, WEST, 0, CELL, NORTH - 12 * CELL)),
        "mirrored": (DEPTHS[:, ::-1], rasterio.Affine(-CELL, 0, WEST + 15 * CELL, 0, -CELL, NORTH)),
        "quarter turn": (DEPTHS.T, rasterio.Affine(0, CELL, WEST, -CELL, 0, NORTH)),
    }[way]
    path = write_tiff(tmp_path / "t.tif", values, transform=affine)
    assert read_bottom(path, UTM).depth_at(PLACES) == pytest.approx(EXPECTED)
    assert sampled(path) == pytest.approx(EXPECTED[:2])


def rotated(path):
    write_tiff(path, transform=AFFINE @ rasterio.Affine.rotation(10))


def picture(path):
    size = {"width": 15, "height": 12, "count": 3, "dtype": "uint8", "transform": AFFINE, "crs": UTM}
    with rasterio.open(path, "w", driver="GTiff", photometric="RGB", **size) as file:
        file.write(np.stack([DEPTHS.astype("uint8")] * 3))


def unplaced(path):
    write_tiff(path, transform=rasterio.Affine.identity(), crs=None)


def by_points(path):
    corners = [(0, 0, WEST, NORTH), (0, 15, WEST + 300, NORTH), (12, 0, WEST, NORTH - 240)]
    points = [rasterio.control.GroundControlPoint(r, c, x, y) for r, c, x, y in corners]
    write_tiff(path, transform=None, crs=None, after=lambda file: setattr(file, "gcps", (points, CRS(UTM))))


def undeclared(path):
    write_tiff(path, np.where(DEPTHS > 17, -9999, DEPTHS))


def several(path):
    write_tiff(path, count=2, after=lambda file: setattr(file, "descriptions", ("depth", "uncertainty")))


def unknown_sign(path):
    write_tiff(path, DEPTHS - 10)


def degrees_in_metres(path):
    write_tiff(path, transform=rasterio.transform.from_origin(13.0, 53.4, 0.001, 0.001))


def infinite(path):
    write_tiff(path, np.where(DEPTHS > 17, 1e30, DEPTHS))


@pytest.mark.parametrize(
    ("make", "problem", "fix"),
    [
        (rotated, "the raster is rotated", "gdalwarp x.tif"),
        (picture, "holds colours", "Raw data"),
        (unplaced, "x.tif does not say its place", "georeference"),
        (by_points, "placed by control points alone", "gdalwarp x.tif"),
        (undeclared, r"\d+ cells of x.tif hold -9999, and the others 1 to 17", "-a_nodata -9999 x.tif"),
        (infinite, r"cells of x.tif hold 1e\+30", "-a_nodata"),
        (several, r"2 bands: 1 \(depth\), 2 \(uncertainty\)", "name it"),
        (unknown_sign, "48% of its values above 0 and 48% below", "--positive up"),
        (degrees_in_metres, "the raster's coordinates look like degrees", "--crs EPSG:4326"),
    ],
)
def test_a_raster_that_leaves_something_open_is_asked_about(tmp_path, make, problem, fix):
    make(tmp_path / "x.tif")
    with pytest.raises(InputError, match=problem) as raised:
        read_bottom(tmp_path / "x.tif", UTM)
    assert fix in raised.value.fix


def test_what_people_say_settles_it(tmp_path):
    several(tmp_path / "two.tif")
    assert read_bottom(tmp_path / "two.tif", UTM, "depth").depth_at(PLACES) == pytest.approx(EXPECTED)
    unknown_sign(tmp_path / "sign.tif")
    up, down = (read_bottom(tmp_path / "sign.tif", UTM, positive=p).depth_at(PLACES) for p in ("up", "down"))
    assert up == pytest.approx(-(EXPECTED - 10))
    assert down == pytest.approx(EXPECTED - 10)


def test_a_vertical_crs_says_unit_and_direction(tmp_path):
    path = write_tiff(tmp_path / "v.tif", -DEPTHS / 0.3048, "float64", crs="EPSG:32633+8228")
    assert CRS("EPSG:8228").axis_info[0].direction == "up"
    bottom = read_bottom(path, UTM)
    assert bottom.depth_at(PLACES) == pytest.approx(EXPECTED, rel=1e-5)
    assert "elevations (its vertical CRS is positive up), converted from foot to m" in bottom.source


def test_a_bag_is_elevation_whatever_its_vertical_crs_says(tmp_path):
    path = write_tiff(tmp_path / "e.tif", -DEPTHS)
    copy(path, tmp_path / "e.bag", driver="BAG")
    bottom = read_bottom(tmp_path / "e.bag", UTM, "elevation")
    assert bottom.depth_at(PLACES) == pytest.approx(EXPECTED)

    def call(file):
        file.descriptions = ("depth",)

    path = write_tiff(
        tmp_path / "d.tif", DEPTHS * np.where(DEPTHS < 3, 1, -1), crs="EPSG:32633+5703", after=call
    )
    with pytest.raises(
        InputError, match="is called depth, but its vertical CRS is positive up, and most values"
    ):
        read_bottom(path, UTM)


TO_DEGREES = Transformer.from_crs(UTM, "EPSG:4326", always_xy=True)
PLACE_DEGREES = np.column_stack(TO_DEGREES.transform(*PLACES.T))


def slope(longitude, latitude):
    return 1.0 + 100.0 * (longitude - 13.0) + 10.0 * (latitude - 53.3)


def geographic(path, longitudes, latitudes=None, dims=("lat", "lon"), attributes=None, **more):
    latitudes = np.arange(53.4, 53.2, -0.005) if latitudes is None else latitudes
    values = slope(*np.meshgrid(longitudes % 360.0, latitudes))
    coordinates = {"lat": latitudes, "lon": longitudes}
    array = xarray.DataArray(values, coordinates, ("lat", "lon"), name="depth").transpose(*dims)
    array.attrs = {"units": "m"} | (attributes or {})
    array.to_netcdf(path, **more)
    return path


LONGITUDES = np.arange(12.8, 13.3, 0.005)


@pytest.mark.parametrize("case", ["lat, lon", "lon, lat", "ascending", "netcdf 4"])
def test_longitudes_and_latitudes_in_any_order_are_wgs84(tmp_path, case):
    dims = ("lon", "lat") if case == "lon, lat" else ("lat", "lon")
    latitudes = np.arange(53.2, 53.4, 0.005) if case == "ascending" else None
    engine = "h5netcdf" if case == "netcdf 4" else "scipy"
    path = geographic(tmp_path / "g.nc", LONGITUDES, latitudes, dims, engine=engine)
    bottom = read_bottom(path, UTM)
    assert bottom.depth_at(PLACES) == pytest.approx(slope(*PLACE_DEGREES.T), abs=1e-6)


@pytest.mark.parametrize(
    "places", [[(-4.0, 50.0)], [(-0.002, 50.0), (0.002, 50.0)], [(179.998, -17.0), (-179.998, -17.0)]]
)
def test_longitudes_from_0_to_360_are_found(tmp_path, places):
    longitudes, latitudes = np.arange(0.0, 360.0, 0.25), np.linspace(-80, 80, 65)
    values = 50.0 + 10.0 * np.cos(np.radians(longitudes)) + np.zeros((65, 1))
    array = xarray.DataArray(
        values, dims=("lat", "lon"), coords={"lat": latitudes, "lon": longitudes}, name="depth"
    )
    array.to_netcdf(tmp_path / "globe.nc", engine="scipy")
    crs = {-4.0: "EPSG:32630", -0.002: "EPSG:32630", 179.998: "EPSG:32660"}[places[0][0]]
    xy = np.column_stack(
        Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(*np.array(places).T)
    )
    expected = 50.0 + 10.0 * np.cos(np.radians(np.array(places)[:, 0]))
    assert read_bottom(tmp_path / "globe.nc", crs).depth_at(xy) == pytest.approx(expected, abs=1e-4)
    east, north = (
        Axis(n, "m", float(v.min()) - 1, float(v.max()) + 1)
        for n, v in zip(("east", "north"), xy.T, strict=True)
    )
    domain = Domain.grid([east, north], (2, 2), crs=crs)
    mean = read_mean(tmp_path / "globe.nc", domain, None, "depth")
    assert mean.covers(xy).all()
    assert mean.values(xy) == pytest.approx(expected, abs=1e-4)


def test_a_degree_sign_in_the_crs_is_understood(tmp_path):
    import h5py

    path = tmp_path / "wkt.nc"
    coordinates = {"y": Y, "x": X}
    data = xarray.Dataset(
        {"depth": (("y", "x"), DEPTHS, {"grid_mapping": "crs"}), "crs": ((), 0)}, coordinates
    )
    data.to_netcdf(path, engine="h5netcdf")
    wkt = CRS(UTM).to_wkt().replace("Between 12°E", "Between 12°E")
    assert "°" in wkt
    with h5py.File(path, "a") as file:  # as nccopy and ncks write it: fixed length, said to be ASCII
        raw = np.bytes_(wkt.encode("utf-8"))
        file["crs"].attrs.create("crs_wkt", raw, dtype=h5py.string_dtype("ascii", len(raw)))
    bottom = read_bottom(path, "EPSG:32632")
    to_zone = Transformer.from_crs(UTM, "EPSG:32632", always_xy=True)
    there = np.column_stack(to_zone.transform(*PLACES.T))
    assert bottom.depth_at(there) == pytest.approx(EXPECTED, abs=1e-4)
    assert "UTM zone 33N" in bottom.source


def test_a_grid_mapping_without_wkt_is_that_of_cf(tmp_path):
    said = {k: v for k, v in CRS(UTM).to_cf().items() if k != "crs_wkt"}
    coordinates = {
        "northing": ("northing", Y / 1000, {"units": "km", "standard_name": "projection_y_coordinate"}),
        "easting": ("easting", X / 1000, {"units": "km", "standard_name": "projection_x_coordinate"}),
    }
    depth = (("easting", "northing"), DEPTHS.T, {"grid_mapping": "utm", "units": "m"})
    xarray.Dataset({"depth": depth, "utm": ((), 0, said)}, coordinates).to_netcdf(
        tmp_path / "cf.nc", engine="scipy"
    )
    assert read_bottom(tmp_path / "cf.nc", UTM).depth_at(PLACES) == pytest.approx(EXPECTED, abs=1e-3)


def test_a_gebco_file_is_elevation_and_only_its_variable_counts(tmp_path):
    latitudes = np.arange(53.2, 53.4, 1 / 240)
    longitudes = np.arange(12.8, 13.3, 1 / 240)
    values = -np.round(slope(*np.meshgrid(longitudes, latitudes)))
    values[:, :40] = 30  # land
    data = xarray.Dataset(
        {
            "elevation": (("lat", "lon"), values.astype("int16"), {"units": "m", "grid_mapping": "crs",
                          "standard_name": "height_above_mean_sea_level"}),
            "crs": ((), b"", {"grid_mapping_name": "latitude_longitude", "semi_major_axis": 6378137.0,
                              "inverse_flattening": 298.257223563}),
            "lat_bnds": (("lat", "nv"), np.zeros((len(latitudes), 2))),
        },
        {"lat": ("lat", latitudes, {"units": "degrees_north", "bounds": "lat_bnds"}),
         "lon": ("lon", longitudes, {"units": "degrees_east"})},
    )  # fmt: skip
    data.to_netcdf(tmp_path / "gebco.nc", engine="h5netcdf")
    bottom = read_bottom(tmp_path / "gebco.nc", UTM)
    assert bottom.depth_at(PLACES) == pytest.approx(slope(*PLACE_DEGREES.T), abs=0.51)
    assert "elevations (called elevation)" in bottom.source


def test_packed_values_keep_their_valid_range_and_marks(tmp_path):
    packed = np.round(DEPTHS * 100).astype("int16")
    packed[0, 0], packed[0, 1], packed[0, 2] = -1, 30000, -9
    said = {"scale_factor": 0.01, "valid_range": np.array([0, 2500], "int16"), "missing_value": np.int16(-9)}
    data = xarray.Dataset({"depth": (("time", "y", "x"), packed[None], said)}, {"y": Y, "x": X, "time": [0]})
    data.to_netcdf(tmp_path / "p.nc", engine="scipy")
    raster = read_raster(tmp_path / "p.nc")
    assert raster.values[::-1][1:] == pytest.approx(DEPTHS[1:])
    assert np.isnan(raster.values[-1, :3]).all()
    assert raster.values[-1, 3:] == pytest.approx(DEPTHS[0, 3:])


def old_gmt(path):
    flat = {"x_range": [0, 1], "y_range": [0, 1], "spacing": [1, 1], "dimension": [2, 2], "z_range": [0, 1]}
    data = {name: (("side",), np.array(v)) for name, v in flat.items()} | {"z": (("xysize",), np.zeros(4))}
    xarray.Dataset(data).to_netcdf(path, engine="scipy")


def over_time(path):
    values = np.stack([DEPTHS, DEPTHS])
    xarray.Dataset({"depth": (("time", "y", "x"), values)}, {"y": Y, "x": X}).to_netcdf(path, engine="scipy")


def cdf5(path):
    path.write_bytes(b"CDF\x05" + bytes(60))


def in_miles(path):
    coordinates = {"y": ("y", Y, {"units": "miles"}), "x": ("x", X, {"units": "miles"})}
    said = {"crs_wkt": CRS(UTM).to_wkt()}
    data = {"depth": (("y", "x"), DEPTHS, {"grid_mapping": "crs"}), "crs": ((), 0, said)}
    xarray.Dataset(data, coordinates).to_netcdf(path, engine="h5netcdf")


@pytest.mark.parametrize(
    ("make", "problem", "fix"),
    [
        (old_gmt, "a grid of GMT in its old form", "gmt grdconvert x.nc"),
        (over_time, r"0 variables over two dimensions; over more: depth \(time, y, x\)", "select one time"),
        (cdf5, "of the kind CDF-5", "nccopy -k nc4"),
        (in_miles, "coordinates x are in 'miles'", None),
    ],
)
def test_a_netcdf_file_that_is_not_read_says_what_it_is(tmp_path, make, problem, fix):
    make(tmp_path / "x.nc")
    with pytest.raises(InputError, match=problem) as raised:
        read_bottom(tmp_path / "x.nc", UTM)
    assert fix is None or fix in raised.value.fix


def test_grids_of_surfer_gmt_arcinfo_and_xyz_are_read(tmp_path):
    header = (
        f"ncols 15\nnrows 12\nxllcorner {WEST}\nyllcorner {NORTH - 240}\ncellsize 20\nNODATA_value -9999\n"
    )
    rows = np.where(DEPTHS > 17, -9999, DEPTHS)
    (tmp_path / "arc.asc").write_text(header + "\n".join(" ".join(map(str, row)) for row in rows.tolist()))
    (tmp_path / "arc.prj").write_text(CRS(UTM).to_wkt("WKT1_ESRI"))
    surfer = f"DSAA\n15 12\n{X[0]} {X[-1]}\n{Y[-1]} {Y[0]}\n{DEPTHS.min()} {DEPTHS.max()}\n"
    body = "\n".join(" ".join(map(str, row)) for row in DEPTHS[::-1].tolist())
    (tmp_path / "surfer.grd").write_text(surfer + body + "\n")
    xyz = [f"{x} {y} {v}" for y, row in zip(Y, DEPTHS, strict=True) for x, v in zip(X, row, strict=True)]
    (tmp_path / "points.xyz").write_text("\n".join(xyz) + "\n")
    gmt = xarray.Dataset({"z": (("y", "x"), DEPTHS[::-1])}, {"y": Y[::-1], "x": X})
    gmt.to_netcdf(tmp_path / "gmt.nc", engine="scipy")
    (tmp_path / "gmt.nc").rename(tmp_path / "gmt.grd")
    for name in ("arc.asc", "surfer.grd", "points.xyz", "gmt.grd"):
        bottom = read_bottom(tmp_path / name, UTM)
        assert bottom.depth_at(PLACES) == pytest.approx(EXPECTED, abs=1e-4), name
    assert "UTM zone 33N" in read_bottom(tmp_path / "arc.asc", UTM).source
    assert np.isnan(read_raster(tmp_path / "arc.asc").values).sum() == (DEPTHS > 17).sum()
    assert {file.name for file in files_of(tmp_path / "arc.asc")} == {"arc.asc", "arc.prj"}
    assert [file.name for file in files_of(tmp_path / "gmt.grd")] == ["gmt.grd"]
    (tmp_path / "scattered.xyz").write_text("0 0 1\n1 0.3 2\n0.2 5 3\n")
    with pytest.raises(InputError, match=r"scattered.xyz can't be read") as raised:
        read_raster(tmp_path / "scattered.xyz")
    assert "grid the points" in raised.value.fix


def test_water_of_unusual_depth_is_asked_about():
    check_deepest(np.array([12.2, np.nan]), None, "cm.tif")
    check_deepest(np.array([1220.0]), 1300.0, "cm.tif")
    with pytest.raises(InputError, match="up to 1,220 m deep") as raised:
        check_deepest(np.array([103.0, 1220.0]), None, "cm.tif")
    assert '--deepest "1220 m"' in raised.value.fix


def test_shapely_and_the_raster_agree_on_what_is_covered(tmp_path):
    bottom = read_bottom(write_tiff(tmp_path / "r.tif"), UTM)
    rng = np.random.default_rng(3)
    places = rng.uniform([WEST - 50, NORTH - 300], [WEST + 350, NORTH + 50], (200, 2))
    inside = shapely.contains_xy(shapely.box(WEST, NORTH - 240, WEST + 300, NORTH), *places.T)
    assert np.array_equal(np.isfinite(bottom.depth_at(places)), inside)


def test_a_netcdf_file_that_breaks_its_library_is_refused(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("unspecified error")

    (tmp_path / "lake.nc").write_bytes(b"CDF\x01")
    monkeypatch.setattr(xarray, "open_dataset", fail)
    with pytest.raises(InputError, match="unspecified error"):
        read_raster(tmp_path / "lake.nc")
