#!/usr/bin/env bash
# rasterio 1.4.4 (GDAL 3.10.3): a side file `.aux.xml` that begins with an XML declaration is ignored, in silence.
#
# GDAL keeps what a raster's own format cannot hold, such as names of classes, values for no data and statistics,
# in `FILE.aux.xml`. One expects that it reads the file as any program for XML would, with or without the line
# `<?xml version="1.0"?>` or a comment at its top. But it then reads nothing of it, and says nothing: a file that an
# XML library, an editor or `xmllint --format` has written or tidied up has lost its value for no data, and gaps
# count as numbers. So fieldbo writes `class.tif.aux.xml` without that line.
#
# Seen on Linux x86_64, CPython 3.11; gdalinfo 3.6.2 and 3.10.3 of Debian do the same:
#
#     as GDAL writes it: no data is 7, classes are by me
#     by ElementTree, without a declaration: no data is 7, classes are by me
#     by ElementTree, with its declaration: no data is None, classes are by None
#     with a comment first: no data is None, classes are by None
#
# Fails if GDAL reads any of the last two, or not the first two.
set -euo pipefail

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rasterio==1.4.4 numpy==2.2.6

cat > look.py <<'PYTHON'
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy
import rasterio

PLAIN = """<PAMDataset>
  <Metadata>
    <MDI key="by">me</MDI>
  </Metadata>
  <PAMRasterBand band="1">
    <NoDataValue>7</NoDataValue>
  </PAMRasterBand>
</PAMDataset>
"""
place = rasterio.transform.from_origin(10, 10, 1, 1)
with rasterio.open("classes.tif", "w", "GTiff", 2, 2, 1, dtype="uint8", transform=place) as raster:
    raster.write(numpy.zeros((1, 2, 2), dtype="uint8"))


def look(how, content):
    Path("classes.tif.aux.xml").write_bytes(content)
    with rasterio.open("classes.tif") as raster:
        nodata, by = raster.nodata, raster.tags().get("by")
    print(f"{how}: no data is {nodata if nodata is None else int(nodata)}, classes are by {by}")
    return nodata, by


def by_element_tree(declared):
    return ElementTree.tostring(ElementTree.fromstring(PLAIN), encoding="UTF-8", xml_declaration=declared)


seen = [
    look("as GDAL writes it", PLAIN.encode()),
    look("by ElementTree, without a declaration", by_element_tree(False)),
    look("by ElementTree, with its declaration", by_element_tree(True)),
    look("with a comment first", b"<!-- by hand -->\n" + PLAIN.encode()),
]
sys.exit("it behaves otherwise by now" if seen != [(7, "me"), (7, "me"), (None, None), (None, None)] else 0)
PYTHON
venv/bin/python look.py
