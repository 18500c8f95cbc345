#!/usr/bin/env bash
# GDAL 3.12.4 (pyogrio 0.13.0): geometries of a KML or a GeoJSON file are left out, and nothing is raised.
#
# In KML, an inner boundary with two rings becomes one hole, and a picture on the ground (GroundOverlay) becomes a
# polygon. In GeoJSON, a feature with a broken geometry becomes one without a geometry, and a member of "features" that
# is a bare geometry is dropped. One expects an error, as for other broken files. So fieldbo counts the geometries of
# both formats itself, and names what GDAL did not read.
#
# Seen on Linux x86_64, CPython 3.11:
#
#     kml: 2 polygons of 1 polygon and 1 picture, 1 hole of 2
#     geojson: 3 features of 4, 1 with a geometry
#
# Fails if GDAL reads something else.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyogrio==0.13.0 shapely==2.1.2

cat > read.py <<'PYTHON'
import json
import sys
import warnings
from pathlib import Path

import pyogrio
import shapely

warnings.simplefilter("ignore")


def ring(west, size):
    corners = [(west, 1), (west + size, 1), (west + size, 1 + size), (west, 1)]
    return f"<LinearRing><coordinates>{' '.join(f'{x},{y}' for x, y in corners)}</coordinates></LinearRing>"


Path("lake.kml").write_text(
    '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><Polygon>'
    f"<outerBoundaryIs>{ring(0, 9)}</outerBoundaryIs>"
    f"<innerBoundaryIs>{ring(5, 1)}{ring(7, 1)}</innerBoundaryIs></Polygon></Placemark>"
    "<GroundOverlay><LatLonBox><north>1</north><south>0</south><east>1</east><west>0</west></LatLonBox>"
    "</GroundOverlay></Document></kml>"
)
square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
geometries = [square, {"type": "Polygon", "coordinates": [[["a", 0], [1, 0], [1, 1], [0, 0]]]}, {"type": "Circle"}]
features = [{"type": "Feature", "properties": {}, "geometry": g} for g in geometries]
Path("lake.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [*features, square]}))


def read(file):
    return shapely.from_wkb(pyogrio.raw.read(file)[2])


kml, geojson = read("lake.kml"), read("lake.geojson")
holes = int(shapely.get_num_interior_rings(kml).sum())
known = sum(g is not None for g in geojson)
print(f"kml: {len(kml)} polygons of 1 polygon and 1 picture, {holes} hole of 2")
print(f"geojson: {len(geojson)} features of {len(features) + 1}, {known} with a geometry")
sys.exit("it behaves otherwise by now" if (len(kml), holes, len(geojson), known) != (2, 1, 3, 1) else 0)
PYTHON
venv/bin/python read.py
