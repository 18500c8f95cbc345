from .comparisons import comparison_picture as comparison_picture
from .curves import curve_picture as curve_picture
from .figures import DPI as DPI
from .figures import save as save
from .maps import map_picture as map_picture
from .paths import path_picture as path_picture
from .places import place_picture as place_picture
from .worlds import world_picture as world_picture
