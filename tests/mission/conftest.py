"""New places without what is the same for all of them: the UTM zone and the picture."""

from functools import cache

import pyproj.database
import pytest
from matplotlib.figure import Figure

from fieldbo.results import plot


@pytest.fixture(scope="session", autouse=True)
def zone_looked_up_once():
    """Look up a UTM zone once for each area, because the whole database is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyproj.database, "query_utm_crs_info", cache(pyproj.database.query_utm_crs_info))
        yield


@pytest.fixture(autouse=True)
def blank_places(request, monkeypatch):
    """Leave the pictures of new places blank, except in tests of ``pictures``."""
    if not request.node.get_closest_marker("pictures"):
        monkeypatch.setattr(plot, "place_picture", lambda *_: Figure(figsize=(1, 1)))
