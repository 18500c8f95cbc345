"""Open exports in QGIS, and print what it shows, as JSON; run by the Python for which Debian builds QGIS."""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from qgis.core import Qgis, QgsApplication, QgsRasterLayer, QgsVectorLayer

VECTORS = {
    "run.gpkg": "{folder}/run.gpkg|layername=readings",
    "trajectory.nc": "{folder}/trajectory.nc",
    "path.gpx": "{folder}/path.gpx|layername=track_points",
    "run.kml": "{folder}/run.kml|layername=classes",
    "readings.geojson": "{folder}/readings.geojson",
    "observations.csv": "file://{folder}/observations.csv?xField=longitude&yField=latitude&crs=EPSG:4326",
}
RASTERS = {
    "map.tif": "{folder}/map.tif",
    "class.tif": "{folder}/class.tif",
    "mean": 'NETCDF:"{folder}/map.nc":mean',
    "class": 'NETCDF:"{folder}/map.nc":class',
}


def plain(value):
    """A value as JSON holds it; times in UTC."""
    if hasattr(value, "toUTC"):
        return value.toUTC().toString("yyyy-MM-ddTHH:mm:ss.zzz") + "Z"
    return value if isinstance(value, int | float | str) else None


def vector(source):
    layer = QgsVectorLayer(source, "layer", "delimitedtext" if source.startswith("file:") else "ogr")
    types = {field.name(): field.typeName() for field in layer.fields()}
    rows = []
    for feature in layer.getFeatures():
        place = feature.geometry().centroid().asPoint()
        rows.append({name: plain(feature[name]) for name in types} | {"x": place.x(), "y": place.y()})
    return {"valid": layer.isValid(), "crs": layer.crs().authid(), "types": types, "rows": rows}


def raster(source):
    layer = QgsRasterLayer(source, "layer")
    data = layer.dataProvider()
    found = data.bandStatistics(1)
    classes = getattr(layer.renderer(), "classes", list)()
    return {
        "valid": layer.isValid(),
        "crs": layer.crs().authid(),
        "least": found.minimumValue,
        "greatest": found.maximumValue,
        "mean": found.mean,
        "classes": [[entry.value, entry.label] for entry in classes],
    }


application = QgsApplication([], False)
application.initQgis()
folder = Path(sys.argv[1]).resolve()
shown = {name: raster(source.format(folder=folder)) for name, source in RASTERS.items()}
shown |= {name: vector(source.format(folder=folder)) for name, source in VECTORS.items()}
print(json.dumps({"version": Qgis.QGIS_VERSION, **shown}), flush=True)
os._exit(0)  # QGIS 3.22 crashes when it ends
