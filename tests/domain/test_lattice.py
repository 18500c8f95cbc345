"""Sites at a spacing inside an outline."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from fieldbo.domain import Obstacle
from fieldbo.domain.georeference import Georeference, crs_name, local_crs
from fieldbo.domain.lattice import lattice
from fieldbo.errors import InputError

POND = shapely.Point(500.0, 300.0).buffer(100.0).difference(shapely.Point(520.0, 300.0).buffer(25.0))


@pytest.mark.parametrize("pattern", ["square", "hexagonal"])
@given(
    spacing=st.floats(4.0, 30.0), clearance=st.floats(0.0, 10.0), shift=st.tuples(*[st.floats(-1e6, 1e6)] * 2)
)
@settings(max_examples=examples(25), deadline=None)
def test_every_node_that_keeps_the_clearance_is_a_site_and_no_other(pattern, spacing, clearance, shift):
    pond = shapely.transform(POND, lambda xy: xy + np.array(shift))
    domain = lattice(pond, spacing, pattern, clearance=clearance)
    free = shapely.buffer(pond, -clearance, join_style="mitre")
    assert shapely.buffer(free, 1e-3).covers(shapely.MultiPoint(domain.sites))
    dense = shapely.buffer(free, -1e-3)
    per_site = spacing**2 * (1.0 if pattern == "square" else np.sqrt(3.0) / 2.0)
    edge = dense.length * spacing  # sites within a spacing of the edge may fall on either side
    assert abs(domain.size * per_site - dense.area) <= edge
    assert domain.spacing.tolist() == [pytest.approx(spacing)] * 2


def test_a_hexagonal_lattice_has_six_neighbours_at_the_spacing():
    sites = lattice(POND, 12.0, "hexagonal").sites
    gaps = np.linalg.norm(sites[:, None] - sites[None], axis=2)
    neighbours = (np.abs(gaps - 12.0) < 1e-6).sum(axis=1)
    inner = shapely.buffer(POND, -13.0).contains(shapely.points(sites))
    assert inner.sum() > 50
    assert (neighbours[inner] == 6).all()


def test_the_same_place_has_the_same_sites_whatever_the_outline():
    whole, part = (
        lattice(POND, 10.0),
        lattice(shapely.intersection(POND, shapely.box(433, 0, 600, 600)), 10.0),
    )
    among = {tuple(site) for site in whole.sites.round(6)}
    assert {tuple(site) for site in part.sites.round(6)} <= among


def test_sites_keep_out_of_obstacles():
    pier = Obstacle("pier", corners=((450, 290), (480, 290), (480, 320), (450, 320)))
    domain = lattice(POND, 5.0, "hexagonal", [pier], 2.0)
    away = shapely.distance(shapely.points(domain.sites), pier.polygon)
    assert away.min() >= 2.0 - 1e-6
    assert domain.obstacle_at([465.0, 300.0]).name == "pier"


def test_too_many_sites_are_refused_with_a_spacing_that_works():
    with pytest.raises(InputError, match="10,000,141 sites; their covariances") as raised:
        lattice(shapely.box(0, 0, 31_623, 31_623), 10.0)
    spacing = float(str(raised.value.fix).split("spacing of ")[1].split(" m")[0])
    assert 1000 < lattice(shapely.box(0, 0, 31_623, 31_623), spacing).size < 5000


@pytest.mark.parametrize(("latitude", "longitude", "crs"), [
    (47.3, 8.5, "EPSG:32632"),
    (-33.9, 18.4, "EPSG:32734"),
    (0.0, 36.5, "EPSG:32637"),
    (-16.8, 179.9, "EPSG:32760"),
    (83.9, -30.5, "EPSG:32625"),
    (88.0, 0.0, "EPSG:5041"),
    (-85.0, 0.0, "EPSG:5042"),
])  # fmt: skip
def test_the_local_crs_is_the_utm_zone_or_polar(latitude, longitude, crs):
    assert local_crs([latitude], [longitude]) == crs
    georeference = Georeference(crs)
    there = georeference.degrees(georeference.metres([[latitude, longitude]]))[0]
    assert there == pytest.approx([latitude, longitude], abs=1e-9)


@pytest.mark.parametrize(
    ("latitude", "longitude", "part"),
    [
        ([47.0, 47.1], [8.0, 15.0], "at most 6 degrees wide"),
        ([10.0, 10.0], [-179.9, 179.9], "crosses the antimeridian"),
        ([112.0], [45.0], "they look swapped"),
        ([200.0], [300.0], "check the units"),
    ],
)
def test_positions_that_are_not_one_place_are_refused(latitude, longitude, part):
    with pytest.raises(InputError) as raised:
        local_crs(latitude, longitude)
    assert part in f"{raised.value}"


@pytest.mark.parametrize(
    ("crs", "part"),
    [
        ("EPSG:4326", "is in degrees"),
        ("EPSG:2263", "is in US survey foot"),
        ("nowhere", "is not a coordinate reference system"),
    ],
)
def test_a_crs_that_is_not_metric_is_refused(crs, part):
    with pytest.raises(InputError, match=part):
        Georeference(crs)


def test_a_crs_is_named_with_its_code():
    assert crs_name("EPSG:32632") == "WGS 84 / UTM zone 32N (EPSG:32632)"
